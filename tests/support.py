"""What several test files share: random circuits with a plain evaluator, and sheets written in a test."""

import itertools
from collections.abc import Sequence

from hypothesis import strategies as st

from gdlx.propnet import check, circuit, rulesheet, source


def read(text: str, name: str = "test.gdl", gdl: int | None = None) -> rulesheet.Rulesheet:
    """The sheet of a text that has no errors."""
    return check.check(source.Source(name, text), gdl=gdl).require_usable()


@st.composite
def circuits(draw: st.DrawFn, max_inputs: int = 6, max_gates: int = 14) -> circuit.Circuit:
    """Any circuit the type allows: with constants, single literals, contradictions and equal gates."""
    inputs = draw(st.integers(0, max_inputs))
    gates: list[circuit.Gate] = []
    for number in range(draw(st.integers(0, max_gates))):
        literals = st.integers(0, 2 * (inputs + number) + 1)
        # Literals near the last gate are more likely, or most circuits would be shallow.
        near = literals.map(lambda lit, top=2 * (inputs + number) + 1: top - lit // 3)
        gates.append(tuple(sorted(draw(st.sets(st.one_of(literals, near), min_size=1, max_size=5)))))
    outputs = draw(st.lists(st.integers(0, 2 * (inputs + len(gates)) + 1), min_size=1, max_size=5))
    return circuit.Circuit(inputs, tuple(gates), tuple(outputs))


def tables(gates: circuit.Circuit, columns: Sequence[Sequence[bool]]) -> list[tuple[bool, ...]]:
    """The outputs of a circuit for each column of input values, computed gate by gate."""
    found = []
    for column in columns:
        value = [False, *column]
        for gate in gates.gates:
            value.append(all(value[literal >> 1] != bool(literal & 1) for literal in gate))
        found.append(tuple(value[literal >> 1] != bool(literal & 1) for literal in gates.outputs))
    return found


def all_columns(inputs: int) -> list[tuple[bool, ...]]:
    return list(itertools.product((False, True), repeat=inputs))
