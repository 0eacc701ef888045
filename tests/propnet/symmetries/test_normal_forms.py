"""Prime implicants, compared with those of truth tables."""

import itertools
import random

import pytest

from gdlx.propnet.circuits import aig
from gdlx.propnet.symmetries import normal_forms


def random_circuit(seed: int, inputs: int = 4, gates: int = 12) -> aig.Circuit:
    rng = random.Random(seed)
    made: list[aig.Gate] = []
    for number in range(gates):
        nodes = rng.sample(range(1, inputs + number + 1), 2)
        made.append(tuple(sorted(2 * node + rng.randrange(2) for node in nodes)))
    return aig.Circuit(inputs, tuple(made), ())


def truth_table(circuit: aig.Circuit) -> list[list[bool]]:
    """For every assignment the value of every literal."""
    rows = []
    for values in itertools.product([False, True], repeat=circuit.inputs):
        nodes = [False, *values]
        for gate in circuit.gates:
            nodes.append(all(nodes[literal >> 1] != bool(literal & 1) for literal in gate))
        rows.append([value != inverted for value in nodes for inverted in (False, True)])
    return rows


def prime_implicants(inputs: int, table: list[list[bool]], literal: int) -> frozenset[int]:
    implicants = []
    for choice in itertools.product((None, 0, 1), repeat=inputs):
        cube = [2 * node + which for node, which in enumerate(choice, 1) if which is not None]
        if all(row[literal] for row in table if all(row[each] for each in cube)):
            implicants.append(sum(1 << each for each in cube))
    return frozenset(a for a in implicants if not any(b != a and a & b == b for b in implicants))


@pytest.mark.parametrize("seed", range(12))
def test_normal_forms_are_all_prime_implicants(seed: int) -> None:
    circuit = random_circuit(seed)
    table = truth_table(circuit)
    forms = normal_forms.find_normal_forms(circuit)
    assert len(forms) == 2 + 2 * circuit.inputs + 2 * len(circuit.gates)
    for literal in range(2 * circuit.inputs + 2, len(forms)):
        assert forms[literal] == prime_implicants(circuit.inputs, table, literal)


def test_a_function_with_too_many_implicants_has_no_form() -> None:
    # The disjunctions (a1 or b1) and .. and (a9 or b9) have 2^9 prime implicants; the opposite has 9.
    pairs = [(4 * n + 3, 4 * n + 5) for n in range(9)]
    gates = (*pairs, tuple(2 * (19 + n) + 1 for n in range(9)))
    forms = normal_forms.find_normal_forms(aig.Circuit(18, gates, ()))
    assert forms[-2] is None
    assert forms[-1] is not None
    assert len(forms[-1]) == 9
