"""Propnets as tapes: lists of two-input operations on numbered rows, the input of every lowering.

A row holds one bit of many games. An operation reads two rows, combines them by AND (each side inverted or not) or by
XOR, and writes one row. A row is reused as soon as its value is no longer needed, so that a tape needs few of them.
"""

import dataclasses
import itertools
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from gdlx.propnet.circuits import aig, propnet
from gdlx.propnet.simulate import straight_line

Literal = int  # 2 * node + inverted; node 0 is the constant false
FALSE, TRUE = 0, 1
_AND, _XOR = 0, 1

Ints = npt.NDArray[np.int32]
Words = npt.NDArray[np.uint32]


@dataclasses.dataclass(frozen=True)
class Segment:
    """Operations start..end. With feedback (row, row of its next value, inverted): repeated until nothing changes."""

    start: int
    end: int
    feedback: tuple[tuple[int, int, bool], ...] = ()


@dataclasses.dataclass(frozen=True, eq=False)
class Tape:
    """Axes: K operations, N inputs, U outputs. Row 0 is false, rows 1..N are the inputs. Masks are 0 or all ones.

    Operation k: a = row[left] ^ left_mask, b = row[right] ^ right_mask; row[target] = a & b, or a ^ b where xor_mask.
    """

    rows: int
    inputs: int
    left: Ints  # [K]
    right: Ints  # [K]
    target: Ints  # [K]
    left_mask: Words  # [K]
    right_mask: Words  # [K]
    xor_mask: Words  # [K]
    outputs: Ints  # [U]
    output_mask: Words  # [U]
    segments: tuple[Segment, ...]
    intermediate: Ints  # [Q] rows to read after the first segment
    intermediate_mask: Words  # [Q]

    @property
    def operations(self) -> int:
        return len(self.left)


class TapeBuilder:
    """Adds operations one by one, without duplicates."""

    def __init__(self, inputs: int) -> None:
        self.inputs = inputs
        self.operations: list[tuple[int, Literal, Literal]] = []  # kind, left, right
        self._known: dict[tuple[int, Literal, Literal], Literal] = {}

    @staticmethod
    def input(number: int) -> Literal:
        return 2 * (number + 1)

    def _make(self, kind: int, a: Literal, b: Literal) -> Literal:
        key = (kind, a, b) if a < b else (kind, b, a)
        known = self._known.get(key)
        if known is None:
            self.operations.append(key)
            known = self._known[key] = 2 * (self.inputs + len(self.operations))
        return known

    def conjunction(self, a: Literal, b: Literal) -> Literal:
        if a == b or b == TRUE:
            return a
        if a == TRUE:
            return b
        if FALSE in (a, b) or a ^ 1 == b:
            return FALSE
        return self._make(_AND, a, b)

    def disjunction(self, a: Literal, b: Literal) -> Literal:
        return self.conjunction(a ^ 1, b ^ 1) ^ 1

    def xor(self, a: Literal, b: Literal) -> Literal:
        inverted = (a ^ b) & 1
        a, b = a & ~1, b & ~1
        if a == b:
            return inverted
        if FALSE in (a, b):
            return (a | b) ^ inverted
        return self._make(_XOR, a, b) ^ inverted

    def select(self, condition: Literal, yes: Literal, no: Literal) -> Literal:
        return self.xor(no, self.conjunction(condition, self.xor(yes, no)))

    def all_of(self, literals: Iterable[Literal]) -> Literal:
        """AND of many, as a balanced tree."""
        layer = sorted(literals)
        if not layer:
            return TRUE
        while len(layer) > 1:
            pairs = [self.conjunction(a, b) for a, b in zip(layer[::2], layer[1::2], strict=False)]
            layer = pairs + layer[len(layer) // 2 * 2 :]
        return layer[0]

    def any_of(self, literals: Iterable[Literal]) -> Literal:
        return self.all_of(literal ^ 1 for literal in literals) ^ 1

    def increment(self, number: Sequence[Literal]) -> list[Literal]:
        """A binary number plus one, the lowest bit first, modulo its range."""
        carry = TRUE
        total = []
        for bit in number:
            total.append(self.xor(bit, carry))
            carry = self.conjunction(bit, carry)
        return total

    def add_circuit(self, gates: aig.Circuit, given: Mapping[int, Literal]) -> list[Literal]:
        """Adds a circuit; `given` maps its input nodes to literals. Returns its outputs."""
        literal_of = [FALSE, *(given.get(node, FALSE) for node in range(1, gates.inputs + 1))]
        for gate in gates.gates:
            literal_of.append(self.all_of(literal_of[lit >> 1] ^ (lit & 1) for lit in gate))
        return [literal_of[lit >> 1] ^ (lit & 1) for lit in gates.outputs]

    def tape(self, outputs: Sequence[Literal], middle: Sequence[Literal] | None = None) -> Tape:
        """A tape of the operations that the outputs need, in an order that needs few rows.

        With `middle`, the first segment computes these literals, and the second one everything else.
        """
        order = _schedule(self.operations, self.inputs, [*(middle or ()), *outputs])
        return _allocate(self, order, outputs, middle)


def _schedule(operations: Sequence[tuple[int, Literal, Literal]], inputs: int, outputs: Sequence[Literal]) -> list[int]:
    """Depth first from the outputs: a value is computed shortly before it is used."""
    first = inputs + 1
    done: set[int] = set(range(first))
    order: list[int] = []
    for root in outputs:
        work = [root >> 1]
        while work:
            node = work[-1]
            if node in done:
                work.pop()
                continue
            _, a, b = operations[node - first]
            waiting = [operand for operand in (b >> 1, a >> 1) if operand not in done]
            if waiting:
                work += waiting
                continue
            work.pop()
            done.add(node)
            order.append(node)
    return order


def _allocate(
    builder: TapeBuilder, order: Sequence[int], outputs: Sequence[Literal], paused: Sequence[Literal] | None
) -> Tape:
    first = builder.inputs + 1
    middle = paused or ()
    pause = len(_schedule(builder.operations, builder.inputs, middle))
    last_use = {literal >> 1: len(order) for literal in outputs}
    for position in range(len(order) - 1, -1, -1):
        if position == pause - 1:
            for literal in middle:
                last_use.setdefault(literal >> 1, pause)
        _, a, b = builder.operations[order[position] - first]
        for node in (a >> 1, b >> 1):
            last_use.setdefault(node, position)
    row_of = {node: node for node in range(first)}
    free: list[int] = []
    rows = first
    table = np.zeros((6, len(order)), np.int64)  # left, right, target, and the masks of left, right and XOR
    for position, node in enumerate(order):
        kind, a, b = builder.operations[node - first]
        left, right = row_of[a >> 1], row_of[b >> 1]
        # A row may be written by the operation that reads it last.
        free += [row_of[used] for used in sorted({a >> 1, b >> 1}) if last_use[used] == position and used]
        if free:
            target = free.pop()
        else:
            target, rows = rows, rows + 1
        row_of[node] = target
        table[:, position] = left, right, target, -(a & 1), -(b & 1), -kind
    cuts = [0, len(order)] if paused is None else [0, pause, len(order)]
    return Tape(
        rows=rows,
        inputs=builder.inputs,
        left=table[0].astype(np.int32),
        right=table[1].astype(np.int32),
        target=table[2].astype(np.int32),
        left_mask=table[3].astype(np.uint32),
        right_mask=table[4].astype(np.uint32),
        xor_mask=table[5].astype(np.uint32),
        outputs=np.array([row_of[literal >> 1] for literal in outputs], np.int32),
        output_mask=_masks([-(literal & 1) for literal in outputs]),
        segments=tuple(Segment(start, end) for start, end in itertools.pairwise(cuts)),
        intermediate=np.array([row_of[literal >> 1] for literal in middle], np.int32),
        intermediate_mask=_masks([-(literal & 1) for literal in middle]),
    )


def _masks(values: list[int]) -> Words:
    return np.array(values, np.int64).astype(np.uint32)


def compile_tape(propnet: propnet.PropNet, outputs: Iterable[Literal]) -> Tape:
    """The tape that computes some literals of a propnet from all its registers and moves, in node order.

    Recursion through state becomes segments that are repeated; rows are then not reused, because every round of such a
    segment needs the values computed before it.
    """
    literals = tuple(int(literal) for literal in outputs)
    inputs = propnet.inputs - len(propnet.feedback)
    if not len(propnet.feedback):
        circuit = propnet.as_circuit()
        gates = straight_line.share_operations(aig.prune(aig.Circuit(circuit.inputs, circuit.gates, literals)))
        builder = TapeBuilder(inputs)
        return builder.tape(builder.add_circuit(gates, {node: 2 * node for node in range(1, inputs + 1)}))
    return _with_feedback(straight_line.compile_cone(propnet, literals), inputs)


def _with_feedback(program: straight_line.StraightLineProgram, inputs: int) -> Tape:
    row_of: dict[Literal, tuple[int, int]] = {FALSE: (0, 0), TRUE: (0, 1)}  # literal -> row, inverted
    for node in range(1, inputs + 1):
        row_of[2 * node], row_of[2 * node + 1] = (node, 0), (node, 1)
    rows = inputs + 1
    operations: list[tuple[int, int, int, int, int]] = []  # left, inverted, right, inverted, target
    segments = []
    for block in program.blocks:
        start = len(operations)
        for literal, _ in block.feedback:
            row_of[literal], row_of[literal ^ 1] = (rows, 0), (rows, 1)
            rows += 1
        for instruction in block.instructions:
            flip = instruction.op is straight_line.Op.OR
            parts = [row_of[operand] for operand in instruction.operands]
            if instruction.op is straight_line.Op.NOT:
                row_of[instruction.result] = (parts[0][0], parts[0][1] ^ 1)
                continue
            row, inverted = parts[0][0], parts[0][1] ^ flip
            for other, other_inverted in parts[1:]:
                operations.append((row, inverted, other, other_inverted ^ flip, rows))
                row, inverted, rows = rows, 0, rows + 1
            row_of[instruction.result] = (row, inverted ^ flip)
            row_of[instruction.result ^ 1] = (row, inverted ^ flip ^ 1)
        feedback = tuple((row_of[lit][0], row_of[src][0], bool(row_of[src][1])) for lit, src in block.feedback)
        segments.append(Segment(start, len(operations), feedback))
    columns = np.array(operations, np.int64).reshape(-1, 5).T
    return Tape(
        rows=rows,
        inputs=inputs,
        left=columns[0].astype(np.int32),
        right=columns[2].astype(np.int32),
        target=columns[4].astype(np.int32),
        left_mask=_masks((-columns[1]).tolist()),
        right_mask=_masks((-columns[3]).tolist()),
        xor_mask=np.zeros(len(operations), np.uint32),
        outputs=np.array([row_of[literal][0] for literal in program.outputs], np.int32),
        output_mask=_masks([-row_of[literal][1] for literal in program.outputs]),
        segments=tuple(segments),
        intermediate=np.zeros(0, np.int32),
        intermediate_mask=np.zeros(0, np.uint32),
    )
