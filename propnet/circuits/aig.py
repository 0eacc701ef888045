"""A boolean circuit of n-ary AND gates with inverted edges (an and-inverter graph).

Node 0 is the constant false, nodes 1..inputs are inputs, and the gates follow in topological order. A literal is
2 * node + inverted, so 0 is false and 1 is true. OR is an inverted AND of inverted literals at no extra cost.
"""

import dataclasses
import itertools
from collections.abc import Iterable, Sequence

from gdlx.propnet.common import deadlines

Literal = int
FALSE, TRUE = 0, 1

Gate = tuple[Literal, ...]  # the literals that the gate joins by AND, sorted


@dataclasses.dataclass(frozen=True)
class Circuit:
    """Gate number g is node inputs + 1 + g."""

    inputs: int
    gates: tuple[Gate, ...]
    outputs: tuple[Literal, ...]

    @property
    def operations(self) -> int:
        """Number of two-input operations that evaluate all gates."""
        return sum(len(gate) - 1 for gate in self.gates)

    @property
    def depth(self) -> int:
        """Number of gates on the longest path."""
        level = [0] * (self.inputs + 1)
        for gate in self.gates:
            level.append(1 + max(level[literal >> 1] for literal in gate))
        return max(level)


class Builder:
    """Builds a circuit gate by gate, with constant folding and structural hashing.

    >>> builder = Builder(inputs=2)
    >>> a, b = builder.input(0), builder.input(1)
    >>> builder.conjunction([b, a, a]) == builder.conjunction([a, b])
    True
    >>> builder.conjunction([a, a ^ 1]) == FALSE, builder.conjunction([a, TRUE]) == a
    (True, True)
    """

    def __init__(self, inputs: int) -> None:
        self.inputs = inputs
        self.gates: list[Gate] = []
        self._known: dict[Gate, Literal] = {}

    @staticmethod
    def input(number: int) -> Literal:
        return 2 * (number + 1)

    def conjunction(self, literals: Iterable[Literal]) -> Literal:
        gate = sorted(set(literals))
        if not gate:
            return TRUE
        if gate[0] <= TRUE:
            if gate[0] == FALSE:
                return FALSE
            gate = gate[1:]
        for first, second in itertools.pairwise(gate):
            if first ^ 1 == second:
                return FALSE
        if len(gate) <= 1:
            return gate[0] if gate else TRUE
        key = tuple(gate)
        known = self._known.get(key)
        if known is None:
            self.gates.append(key)
            known = self._known[key] = 2 * (self.inputs + len(self.gates))
        return known

    def has_gate(self, literals: Iterable[Literal]) -> bool:
        """Whether a gate with exactly these literals exists."""
        return tuple(sorted(literals)) in self._known

    def disjunction(self, literals: Iterable[Literal]) -> Literal:
        return self.conjunction([literal ^ 1 for literal in literals]) ^ 1

    def circuit(self, outputs: Iterable[Literal]) -> Circuit:
        """Returns the circuit of the gates that the outputs depend on."""
        return prune(Circuit(self.inputs, tuple(self.gates), tuple(outputs)))


def rebuild(circuit: Circuit, inputs: Sequence[Literal] | None = None) -> Circuit:
    """Folds a circuit again, with its inputs replaced by other literals over the same inputs."""
    builder = Builder(circuit.inputs)
    literal_of = [
        FALSE,
        *(inputs if inputs is not None else (builder.input(n) for n in range(circuit.inputs))),
    ]
    for gate in deadlines.watched(circuit.gates):
        literal_of.append(builder.conjunction([literal_of[lit >> 1] ^ (lit & 1) for lit in gate]))
    return builder.circuit(literal_of[lit >> 1] ^ (lit & 1) for lit in circuit.outputs)


def prune(circuit: Circuit) -> Circuit:
    """Removes gates that no output depends on."""
    first = circuit.inputs + 1
    used = bytearray(len(circuit.gates))
    for literal in circuit.outputs:
        if literal >> 1 >= first:
            used[(literal >> 1) - first] = 1
    for number in range(len(circuit.gates) - 1, -1, -1):
        if used[number]:
            for literal in circuit.gates[number]:
                if literal >> 1 >= first:
                    used[(literal >> 1) - first] = 1
    if all(used):
        return circuit
    node_of = list(range(first))
    gates: list[Gate] = []
    for number, gate in enumerate(circuit.gates):
        if used[number]:
            node_of.append(first + len(gates))
            gates.append(tuple(2 * node_of[lit >> 1] + (lit & 1) for lit in gate))
        else:
            node_of.append(0)
    return Circuit(circuit.inputs, tuple(gates), tuple(2 * node_of[lit >> 1] + (lit & 1) for lit in circuit.outputs))


def sort_topologically(inputs: int, gates: Sequence[Gate | None], outputs: Iterable[Literal]) -> Circuit:
    """Returns a circuit in topological order from gates in any order (None: unused)."""
    first = inputs + 1
    node_of: dict[int, int] = {node: node for node in range(first)}
    sorted_gates: list[Gate] = []
    outputs = tuple(outputs)
    for root in deadlines.watched(outputs):
        work = [root >> 1]
        while work:
            node = work[-1]
            if node in node_of:
                work.pop()
                continue
            gate = gates[node - first]
            assert gate is not None
            waiting = [lit >> 1 for lit in gate if lit >> 1 not in node_of]
            if waiting:
                work += waiting
                continue
            work.pop()
            node_of[node] = first + len(sorted_gates)
            sorted_gates.append(tuple(sorted(2 * node_of[lit >> 1] + (lit & 1) for lit in gate)))
    return Circuit(inputs, tuple(sorted_gates), tuple(2 * node_of[lit >> 1] + (lit & 1) for lit in outputs))
