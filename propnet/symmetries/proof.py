"""Proves that a permutation of a propnet's inputs and outputs is a symmetry: every output is the same function.

Both sides are built in one circuit. Most outputs then have the same gate on both sides; for the others a SAT solver
looks for a difference.
"""

from collections.abc import Sequence

from gdlx.propnet.circuits import aig, propnet, sat

Pair = tuple[aig.Literal, aig.Literal]


def is_symmetry(propnet: propnet.PropNet, inputs: Sequence[int], outputs: Sequence[Pair]) -> bool:
    """Whether it is proved that outputs are permuted as inputs are.

    Args:
      propnet: the propnet.
      inputs: for every input node, from 1, the literal that takes its value.
      outputs: pairs of literals of the propnet; the second, after permuting, must be equal to the first before it.
    """
    circuit = propnet.as_circuit()
    builder = aig.Builder(circuit.inputs)
    source = [aig.FALSE] * (circuit.inputs + 1)  # of every input node after permuting, the literal before
    for node, literal in enumerate(inputs, 1):
        source[literal >> 1] = 2 * node + (literal & 1)
    before, after = list(range(0, 2 * circuit.inputs + 2, 2)), source
    for gate in circuit.gates:
        for literals in (before, after):
            literals.append(builder.conjunction([literals[lit >> 1] ^ (lit & 1) for lit in gate]))
    pairs = [(before[a >> 1] ^ (a & 1), after[b >> 1] ^ (b & 1)) for a, b in outputs]
    different = sorted({pair for pair in pairs if pair[0] != pair[1]})
    return all(_are_equal(builder, pair) for pair in different)


def _are_equal(builder: aig.Builder, pair: Pair) -> bool:
    circuit = builder.circuit(pair)
    a, b = circuit.outputs
    lines = [f"{{n(1..{circuit.inputs})}}.", *sat.gates_to_asp(circuit)]
    lines += ["differ :- " + ", ".join(map(sat.literal_to_asp, (a, b ^ 1))) + "."]
    lines += ["differ :- " + ", ".join(map(sat.literal_to_asp, (a ^ 1, b))) + "."]
    return sat.is_unsatisfiable([*lines, ":- not differ."])
