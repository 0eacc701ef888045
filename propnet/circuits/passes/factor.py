"""Factors literals that several disjuncts share: (a & b) | (a & c) = a & (b | c).

Only disjuncts that nothing else uses are factored, so every step saves operations. A step may add gates, for the rest
of each disjunct and for their OR; with `compact` only steps that add no gates are taken.
"""

import heapq

from gdlx.propnet.circuits import aig
from gdlx.propnet.circuits.passes import flatten
from gdlx.propnet.common import deadlines

_DEEPEST = 50  # nested factors


def factor(gates: aig.Circuit, *, compact: bool = False) -> aig.Circuit:
    counts = flatten.use_counts(gates)
    first = gates.inputs + 1
    builder = aig.Builder(gates.inputs)
    literal_of = [aig.FALSE, *(builder.input(n) for n in range(gates.inputs))]
    single: dict[aig.Literal, aig.Gate] = {}  # literals of gates that have one user
    for node, gate in enumerate(deadlines.watched(gates.gates), first):
        parts = [literal_of[lit >> 1] ^ (lit & 1) for lit in gate]
        cubes = [single[lit ^ 1] for lit in parts if lit & 1 and lit ^ 1 in single]
        others = [lit for lit in parts if not (lit & 1 and lit ^ 1 in single)]
        before = len(builder.gates)
        built = builder.conjunction([*others, *(lit ^ 1 for lit in _factored(builder, cubes, compact))])
        literal_of.append(built)
        is_new = built >> 1 == builder.inputs + len(builder.gates) and len(builder.gates) > before
        if counts[node] == 1 and is_new and not built & 1:
            single[built] = builder.gates[-1]
    return builder.circuit(literal_of[lit >> 1] ^ (lit & 1) for lit in gates.outputs)


def _factored(builder: aig.Builder, cubes: list[aig.Gate], compact: bool, depth: int = 0) -> list[aig.Literal]:
    """Returns literals whose OR is the OR of the cubes; the most frequent literal is factored first."""
    users: dict[aig.Literal, set[int]] = {}
    for number, cube in enumerate(cubes):
        for literal in cube:
            users.setdefault(literal, set()).add(number)
    heap = [(-len(using), literal) for literal, using in users.items() if len(using) > 1]
    heapq.heapify(heap)
    factors = []
    remaining = set(range(len(cubes)))
    while heap and depth < _DEEPEST:
        deadlines.check()
        count, literal = heapq.heappop(heap)
        if -count != len(users[literal]):
            if len(users[literal]) > 1:
                heapq.heappush(heap, (-len(users[literal]), literal))
            continue
        common = sorted(users[literal])
        shared = set(cubes[common[0]]).intersection(*(cubes[number] for number in common[1:]))
        rests = [tuple(lit for lit in cubes[number] if lit not in shared) for number in common]
        if compact and sum(len(rest) > 1 for rest in rests) + 2 > len(common):
            continue
        remaining.difference_update(common)
        for number in common:
            for other in cubes[number]:
                users[other].discard(number)
        inner = _factored(builder, rests, compact, depth + 1)
        factors.append(builder.conjunction([*shared, builder.disjunction(inner)]))
    return factors + [builder.conjunction(cubes[number]) for number in sorted(remaining)]
