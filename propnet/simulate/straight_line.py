"""Compiles circuits to straight-line code of `&`, `|` and `~`, for arrays of any type: numpy bool, packed words, jax.

Every gate is emitted in the form that needs fewer inversions: a & b, or ~(~a | ~b) stored as its complement. Values
are freed after their last use. Recursion through the state becomes a block that is repeated until a fixpoint.
"""

import dataclasses
import enum
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

from gdlx.propnet.circuits import aig, propnet
from gdlx.propnet.circuits.passes import factor, flatten, pairs
from gdlx.propnet.common import graphs

Array = TypeVar("Array", bound=Any)


class Op(enum.IntEnum):
    AND = 0
    OR = 1
    NOT = 2


@dataclasses.dataclass(frozen=True)
class Instruction:
    """result = operands joined by op; afterwards the values in `last_uses` can be freed. All are literals."""

    op: Op
    result: aig.Literal
    operands: tuple[aig.Literal, ...]
    last_uses: tuple[aig.Literal, ...] = ()


@dataclasses.dataclass(frozen=True)
class Block:
    """Instructions in order; with feedbacks (input literal, literal of its next value) repeated until stable."""

    instructions: tuple[Instruction, ...]
    feedback: tuple[tuple[aig.Literal, aig.Literal], ...] = ()


@dataclasses.dataclass(frozen=True)
class StraightLineProgram:
    """Code that computes output literals from the values of input nodes."""

    inputs: tuple[int, ...]  # the nodes it reads, in order
    blocks: tuple[Block, ...]
    outputs: tuple[aig.Literal, ...]

    @property
    def operations(self) -> int:
        return sum(max(1, len(i.operands) - 1) for block in self.blocks for i in block.instructions)


def compile_cone(propnet: propnet.PropNet, outputs: Iterable[aig.Literal]) -> StraightLineProgram:
    """Compiles some literals of a propnet."""
    literals = tuple(int(literal) for literal in outputs)
    gates = propnet.as_circuit()
    gates = share_operations(aig.prune(aig.Circuit(gates.inputs, gates.gates, (*literals, *propnet.feedback.tolist()))))
    first_feedback = 1 + gates.inputs - len(propnet.feedback)
    feedback = dict(enumerate(gates.outputs[len(literals) :], first_feedback))
    return emit(gates, gates.outputs[: len(literals)], feedback)


def share_operations(gates: aig.Circuit) -> aig.Circuit:
    """Reduces the number of two-input operations by factoring and by sharing pairs of literals."""
    return flatten.flatten(pairs.extract_pairs(factor.factor(gates)))


def emit(gates: aig.Circuit, outputs: Sequence[aig.Literal], feedback: dict[int, aig.Literal]) -> StraightLineProgram:
    """Compiles output literals of a circuit; `feedback` maps input nodes to the literals of their next values."""
    first = gates.inputs + 1
    uses = {first + n: [lit >> 1 for lit in gate] for n, gate in enumerate(gates.gates)}
    uses |= {node: [literal >> 1] for node, literal in feedback.items()}
    needed = graphs.reachable(uses, [literal >> 1 for literal in outputs])
    writer = _Writer(gates)
    if needed.isdisjoint(feedback):
        writer.straight(sorted(node for node in needed if node >= first))
    else:
        for group in graphs.strongly_connected_components({node: uses.get(node, []) for node in sorted(needed)}):
            members = set(group)
            fed = sorted(members & feedback.keys())
            inner = {n: [u for u in uses[n] if u in members] for n in group if n not in feedback and n >= first}
            order = [n for g in graphs.strongly_connected_components(inner) for n in g if n in inner]
            if fed:
                writer.loop(order, [(2 * node, feedback[node]) for node in fed])
            else:
                writer.straight(order)
    return writer.program(outputs, [n for n in sorted(needed) if 0 < n < first and n not in feedback])


class _Writer:
    def __init__(self, gates: aig.Circuit) -> None:
        self._gates = gates
        self._have: set[aig.Literal] = {aig.FALSE, aig.TRUE}
        self._have.update(2 * node for node in range(1, gates.inputs + 1))
        self._blocks: list[Block] = []

    def straight(self, nodes: Sequence[int]) -> None:
        code: list[Instruction] = []
        for node in nodes:
            self._gate(node, code)
        if self._blocks and not self._blocks[-1].feedback:
            code = [*self._blocks.pop().instructions, *code]
        self._blocks.append(Block(tuple(code)))

    def loop(self, nodes: Sequence[int], feedback: list[tuple[aig.Literal, aig.Literal]]) -> None:
        before = set(self._have)
        code: list[Instruction] = []
        for node in nodes:
            self._gate(node, code)
        for _, literal in feedback:
            self._need(literal, code)
        # An inversion inside the loop is computed again in every round, so its last value can be used afterwards.
        self._have |= before
        self._blocks.append(Block(tuple(code), tuple(feedback)))

    def _gate(self, node: int, code: list[Instruction]) -> None:
        literals = self._gates.gates[node - self._gates.inputs - 1]
        missing = sum(literal not in self._have for literal in literals)
        missing_inverted = sum(literal ^ 1 not in self._have for literal in literals)
        invert = missing_inverted < missing
        operands = tuple(literal ^ invert for literal in literals)
        for literal in operands:
            self._need(literal, code)
        result = 2 * node + invert
        code.append(Instruction(Op.OR if invert else Op.AND, result, operands))
        self._have.add(result)

    def _need(self, literal: aig.Literal, code: list[Instruction]) -> None:
        if literal not in self._have:
            code.append(Instruction(Op.NOT, literal, (literal ^ 1,)))
            self._have.add(literal)

    def program(self, outputs: Sequence[aig.Literal], inputs: list[int]) -> StraightLineProgram:
        tail: list[Instruction] = []
        for literal in outputs:
            self._need(literal, tail)
        blocks = [*self._blocks, Block(tuple(tail))] if tail else self._blocks
        return StraightLineProgram(tuple(inputs), tuple(_with_last_uses(blocks, outputs)), tuple(outputs))


def _with_last_uses(blocks: Sequence[Block], outputs: Sequence[aig.Literal]) -> list[Block]:
    """Annotates each instruction outside of loops with the values that are not used any more."""
    alive = {aig.FALSE, aig.TRUE, *outputs}
    annotated = []
    for block in reversed(blocks):
        if block.feedback:
            alive.update(lit for pair in block.feedback for lit in pair)
            alive.update(lit for i in block.instructions for lit in (i.result, *i.operands))
            annotated.append(block)
            continue
        code = []
        for instruction in reversed(block.instructions):
            last = tuple(lit for lit in dict.fromkeys(instruction.operands) if lit not in alive)
            alive.update(last)
            code.append(dataclasses.replace(instruction, last_uses=last))
        annotated.append(Block(tuple(reversed(code))))
    return annotated[::-1]


Repeat = Callable[[Callable[[list[Any]], list[Any]], list[Any]], list[Any]]


def run(
    program: StraightLineProgram, inputs: Sequence[Array], false: Array, repeat: Repeat | None = None
) -> list[Array]:
    """Returns the output values. `inputs[k]` is the value of node program.inputs[k]; `false` has the same shape.

    `repeat(step, start)` applies step until a fixpoint; by default a loop for numpy arrays.
    """
    values: dict[aig.Literal, Array] = {aig.FALSE: false, aig.TRUE: ~false}
    values.update({2 * node: value for node, value in zip(program.inputs, inputs, strict=True)})
    for block in program.blocks:
        if not block.feedback:
            _execute(block.instructions, values)
            continue

        def step(fed: list[Array], block: Block = block) -> list[Array]:
            values.update({literal: value for (literal, _), value in zip(block.feedback, fed, strict=True)})
            _execute(block.instructions, values)
            return [values[literal] for _, literal in block.feedback]

        settled = (repeat or _repeat_numpy)(step, [false] * len(block.feedback))
        step(settled)
    return [values[literal] for literal in program.outputs]


def _execute(instructions: Sequence[Instruction], values: dict[aig.Literal, Array]) -> None:
    for instruction in instructions:
        operands = instruction.operands
        value = values[operands[0]]
        if instruction.op is Op.AND:
            for literal in operands[1:]:
                value = value & values[literal]
        elif instruction.op is Op.OR:
            for literal in operands[1:]:
                value = value | values[literal]
        else:
            value = ~value
        values[instruction.result] = value
        for literal in instruction.last_uses:
            values.pop(literal, None)


def _repeat_numpy(step: Callable[[list[Array]], list[Array]], start: list[Array]) -> list[Array]:
    before, after = start, step(start)
    while not all(np.array_equal(a, b) for a, b in zip(before, after, strict=True)):
        before, after = after, step(after)
    return after
