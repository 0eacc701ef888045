"""A literal common to several alternatives is taken out: (a & b) | (a & c) = a & (b | c).

Only alternatives that nothing else uses are touched, so every step saves operations. It may cost gates, since what is
left of each alternative and their OR become gates of their own; `compact` takes only the steps that do not.
"""

import collections

from gdlx.propnet import circuit
from gdlx.propnet.passes import flatten


def factor(gates: circuit.Circuit, *, compact: bool = False) -> circuit.Circuit:
    counts = flatten.use_counts(gates)
    first = gates.inputs + 1
    builder = circuit.Builder(gates.inputs)
    literal_of = [circuit.FALSE, *(builder.input(n) for n in range(gates.inputs))]
    single: dict[circuit.Literal, circuit.Gate] = {}  # literals of gates that have one user
    for node, gate in enumerate(gates.gates, first):
        parts = [literal_of[lit >> 1] ^ (lit & 1) for lit in gate]
        cubes = [single[lit ^ 1] for lit in parts if lit & 1 and lit ^ 1 in single]
        others = [lit for lit in parts if not (lit & 1 and lit ^ 1 in single)]
        before = len(builder.gates)
        made = builder.conjunction([*others, *(lit ^ 1 for lit in _factored(builder, cubes, compact))])
        literal_of.append(made)
        is_new = made >> 1 == builder.inputs + len(builder.gates) and len(builder.gates) > before
        if counts[node] == 1 and is_new and not made & 1:
            single[made] = builder.gates[-1]
    return builder.circuit(literal_of[lit >> 1] ^ (lit & 1) for lit in gates.outputs)


def _factored(builder: circuit.Builder, cubes: list[circuit.Gate], compact: bool) -> list[circuit.Literal]:
    """Literals whose OR is the OR of the cubes."""
    found = []
    refused: set[circuit.Literal] = set()
    while cubes:
        counts = collections.Counter(lit for cube in cubes for lit in cube if lit not in refused)
        literal, count = max(counts.items(), key=lambda item: (item[1], -item[0]), default=(0, 0))
        if count < 2:
            break
        common = [cube for cube in cubes if literal in cube]
        shared = set(common[0]).intersection(*common[1:])
        rests = [tuple(lit for lit in cube if lit not in shared) for cube in common]
        if compact and sum(len(rest) > 1 for rest in rests) + 2 > len(common):
            refused.add(literal)
            continue
        cubes = [cube for cube in cubes if literal not in cube]
        found.append(builder.conjunction([*shared, builder.disjunction(_factored(builder, rests, compact))]))
    return found + [builder.conjunction(cube) for cube in cubes]
