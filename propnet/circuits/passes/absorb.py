"""Removes from a gate what its context already implies.

A gate with a single user matters only where the other inputs of its user hold, so it is simplified under that
assumption, recursively:

    a & (a & b)  = a & b        a & ~(a & b)  = a & ~b
    a & (~a & b) = false        a & ~(~a & b) = a
    ~(a & b) & ~(a & b & c) = ~(a & b)        ~(a & b) & ~(~a & b) = ~b

Constraints on the inputs are part of the context: a role makes exactly one move, and that move is legal.
"""

import collections
import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from gdlx.propnet.circuits import aig
from gdlx.propnet.circuits.passes import flatten
from gdlx.propnet.common import deadlines

_WIDEST = 400  # gates with more disjuncts are not searched for pairs that absorb each other
_DEEPEST = 60  # levels of gates simplified under one assumption; bounds the recursion


@dataclasses.dataclass(frozen=True)
class InputConstraints:
    """Constraints that hold for the inputs of a circuit whenever its outputs matter.

    `groups` are sets of input nodes of which at most one is true; `covers` has the numbers of the groups of which one
    is always true; `implied` maps an input node to literals that are true if the node is.
    """

    groups: Sequence[frozenset[int]] = ()
    covers: frozenset[int] = frozenset()
    implied: Mapping[int, Sequence[aig.Literal]] = dataclasses.field(default_factory=dict)


_NOTHING = InputConstraints()


def absorb(gates: aig.Circuit, knowledge: InputConstraints = _NOTHING) -> aig.Circuit:
    return _Absorber(gates, knowledge).run()


class _Context:
    """Literals that hold, and for some groups the member that is known to be true."""

    def __init__(self, literals: Iterable[aig.Literal] = (), chosen: Mapping[int, int] | None = None) -> None:
        self.literals = set(literals)
        self.chosen = dict(chosen or {})

    def copy(self) -> "_Context":
        return _Context(self.literals, self.chosen)


class _Absorber:
    def __init__(self, gates: aig.Circuit, knowledge: InputConstraints) -> None:
        self._gates = gates
        self._first = gates.inputs + 1
        self._knowledge = knowledge
        self._groups_of: dict[int, list[int]] = {}
        for number, group in enumerate(knowledge.groups):
            for node in group:
                self._groups_of.setdefault(node, []).append(number)
        self._single = _used_once(gates)
        self._builder = aig.Builder(gates.inputs)
        self._literal_of: dict[int, aig.Literal] = {node: 2 * node for node in range(self._first)}

    def run(self) -> aig.Circuit:
        for node, gate in enumerate(deadlines.watched(self._gates.gates), self._first):
            if node not in self._single:
                self._literal_of[node] = self._conjunction(gate, _Context())
        return self._builder.circuit(self._literal_of[lit >> 1] ^ (lit & 1) for lit in self._gates.outputs)

    def _conjunction(self, gate: aig.Gate, context: _Context) -> aig.Literal:
        """Returns a literal that equals the gate wherever the context holds."""
        deadlines.check()
        direct, pending = self._parts(gate)
        context = context.copy()
        literals: set[aig.Literal] = set()
        for literal in sorted(direct, key=self._order):
            if self._is_false(literal, context):
                return aig.FALSE
            if not self._is_true(literal, context):
                literal = self._reduced(literal, context)
                literals.add(literal)
                self._learn(literal, context)
        for number, node in enumerate(pending):
            inner = self._conjunction(self._gates.gates[node - self._first], context)
            if inner == aig.TRUE:
                return aig.FALSE
            if inner == aig.FALSE:
                continue
            literals.add(inner ^ 1)
            if number + 1 < len(pending):
                self._learn(inner ^ 1, context)
        return self._builder.conjunction(_without_redundant(self._builder, self._without_covers(literals)))

    def _parts(self, gate: aig.Gate) -> tuple[set[aig.Literal], list[int]]:
        """Returns literals that are already built, and inverted single-use gates that are not built yet."""
        direct, pending, work = set(), [], list(gate)
        while work:
            literal = work.pop()
            node = literal >> 1
            if node not in self._single:
                direct.add(self._literal_of[node] ^ (literal & 1))
            elif not literal & 1:
                work += self._gates.gates[node - self._first]
            else:
                pending.append(node)
        return direct, sorted(pending)

    def _inside(self, literal: aig.Literal) -> aig.Gate:
        number = (literal >> 1) - self._first
        return self._builder.gates[number] if number >= 0 else ()

    def _order(self, literal: aig.Literal) -> tuple[int, int, int]:
        """Sort key, literals that imply most first: inputs with consequences, wide gates, inputs, inverted literals."""
        inverted = literal & 1
        implies = 0 if inverted else len(self._inside(literal)) + 1000 * (literal >> 1 in self._knowledge.implied)
        return inverted, -implies, literal

    def _learn(self, literal: aig.Literal, context: _Context) -> None:
        work = [literal]
        while work:
            literal = work.pop()
            if literal in context.literals:
                continue
            context.literals.add(literal)
            if not literal & 1:
                work += self._inside(literal)
                work += self._knowledge.implied.get(literal >> 1, ())
                for group in self._groups_of.get(literal >> 1, ()):
                    context.chosen.setdefault(group, literal >> 1)

    def _is_true(self, literal: aig.Literal, context: _Context) -> bool:
        if literal <= 1:
            return literal == aig.TRUE
        if literal in context.literals:
            return True
        if literal & 1:
            if self._excluded(literal >> 1, context):
                return True
            return any(self._is_plain_false(lit, context) for lit in self._inside(literal))
        inside = self._inside(literal)
        return bool(inside) and all(lit in context.literals for lit in inside)

    def _is_false(self, literal: aig.Literal, context: _Context) -> bool:
        return self._is_true(literal ^ 1, context)

    def _is_plain_false(self, literal: aig.Literal, context: _Context) -> bool:
        return literal ^ 1 in context.literals or (not literal & 1 and self._excluded(literal >> 1, context))

    def _excluded(self, node: int, context: _Context) -> bool:
        """Whether another member of one of the node's groups is known to be true."""
        return any(context.chosen.get(group, node) != node for group in self._groups_of.get(node, ()))

    def _reduced(self, literal: aig.Literal, context: _Context) -> aig.Literal:
        """Replaces an inverted gate by the inverse of an input if the context implies all its other inputs."""
        if literal & 1:
            rest = [lit for lit in self._inside(literal) if lit not in context.literals]
            if len(rest) == 1:
                return rest[0] ^ 1
        return literal

    def _without_covers(self, literals: set[aig.Literal]) -> set[aig.Literal]:
        """If one of a group is always true: all inverted is FALSE, and all but one inverted is the remaining member."""
        inverted = {lit >> 1 for lit in literals if lit & 1}
        counts = collections.Counter(group for node in inverted for group in self._groups_of.get(node, ()))
        for number, count in sorted(counts.items()):
            group = self._knowledge.groups[number]
            if number not in self._knowledge.covers or len(group) < 3 or count < len(group) - 1:
                continue
            left = group - inverted
            if not left:
                return {aig.FALSE}
            literals = {lit for lit in literals if not (lit & 1 and lit >> 1 in group)} | {2 * min(left)}
        return literals


def _used_once(gates: aig.Circuit) -> set[int]:
    """Returns gates that are used by one gate and no output; cuts chains of them that are too deep."""
    counts = flatten.use_counts(gates)
    outputs = {literal >> 1 for literal in gates.outputs}
    level: dict[int, int] = {}
    for node, gate in enumerate(gates.gates, gates.inputs + 1):
        if counts[node] == 1 and node not in outputs:
            deepest = max((level[lit >> 1] + (lit & 1) for lit in gate if lit >> 1 in level), default=0)
            if deepest < _DEEPEST:
                level[node] = deepest
    return set(level)


def _without_redundant(builder: aig.Builder, literals: set[aig.Literal]) -> set[aig.Literal]:
    """Removes inverted gates that others of the same conjunction absorb, and resolves pairs of them."""
    first = builder.inputs + 1
    cubes = {lit: frozenset(builder.gates[(lit >> 1) - first]) for lit in literals if lit & 1 and lit >> 1 >= first}
    if not 1 < len(cubes) <= _WIDEST:
        return literals
    irredundant = set(literals)
    minimal: dict[frozenset[aig.Literal], aig.Literal] = {}
    by_size = sorted(cubes.items(), key=lambda item: (len(item[1]), item[0]))
    for literal, cube in by_size:
        if any(len(other) < len(cube) and other <= cube for other in minimal):
            irredundant.discard(literal)
        else:
            minimal[cube] = literal
    for literal, cube in by_size:
        for lit in sorted(cube):
            partner = minimal.get(cube - {lit} | {lit ^ 1})
            if partner is not None and partner in irredundant and literal in irredundant:
                irredundant -= {literal, partner}
                irredundant.add(builder.conjunction(cube - {lit}) ^ 1)
    return irredundant
