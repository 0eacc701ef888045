"""Circuits: simplification preserves every output, and the emitted code computes the gates."""

import functools
import itertools
from collections.abc import Callable, Sequence

import hypothesis
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import strategies as st

from gdlx.propnet.circuits import aig
from gdlx.propnet.circuits.passes import absorb, factor, flatten, pairs
from gdlx.propnet.simulate import straight_line
from gdlx.tests.helpers import support

Rewrite = Callable[[aig.Circuit], aig.Circuit]

COMPACT: Rewrite = functools.partial(factor.factor, compact=True)
REWRITES: dict[str, Rewrite] = {
    "rebuilt": aig.rebuild,
    "pruned": aig.prune,
    "flatten": flatten.flatten,
    "absorb": absorb.absorb,
    "factor": factor.factor,
    "factor, compact": COMPACT,
    "pairs": pairs.extract_pairs,
    "shared": straight_line.share_operations,
}
NEVER_MORE_GATES = {"rebuilt", "pruned", "flatten", "absorb", "factor, compact"}

any_circuit = st.one_of(support.circuits(), support.formulas())


def _well_formed(gates: aig.Circuit) -> bool:
    """Gates are in topological order, their literals sorted and distinct."""
    return all(
        gate and list(gate) == sorted(set(gate)) and gate[0] >= 0 and gate[-1] >> 1 < node
        for node, gate in enumerate(gates.gates, gates.inputs + 1)
    )


@pytest.mark.parametrize("name", REWRITES)
@hypothesis.settings(max_examples=hypothesis.settings().max_examples // 2)  # there are eight rewrites
@hypothesis.given(gates=any_circuit)
def test_a_rewritten_circuit_computes_the_same(name: str, gates: aig.Circuit) -> None:
    rewritten = REWRITES[name](gates)
    columns = support.all_columns(gates.inputs)
    assert support.evaluate_circuit(rewritten, columns) == support.evaluate_circuit(gates, columns)
    assert rewritten.inputs == gates.inputs
    assert _well_formed(rewritten)
    assert rewritten.operations <= gates.operations
    if name in NEVER_MORE_GATES:
        assert len(rewritten.gates) <= len(gates.gates)


@hypothesis.given(gates=any_circuit)
def test_simplifying_again_and_again_ends(gates: aig.Circuit) -> None:
    columns = support.all_columns(gates.inputs)
    expected = support.evaluate_circuit(gates, columns)
    size = (len(gates.gates) + 1, 0)
    for _ in range(20):
        gates = COMPACT(absorb.absorb(flatten.flatten(gates)))
        before, size = size, (len(gates.gates), gates.operations)
        assert size <= before
        if size == before:
            break
    else:
        pytest.fail("still shrinking after 20 rounds")
    assert support.evaluate_circuit(gates, columns) == expected


@hypothesis.given(gates=support.circuits(), data=st.data())
def test_inputs_are_replaced_by_literals(gates: aig.Circuit, data: hypothesis.strategies.DataObject) -> None:
    literals = [data.draw(st.integers(0, 2 * gates.inputs + 1)) for _ in range(gates.inputs)]
    rewritten = aig.rebuild(gates, literals)
    columns = support.all_columns(gates.inputs)
    replaced = [[([False, *column][lit >> 1]) != bool(lit & 1) for lit in literals] for column in columns]
    assert support.evaluate_circuit(rewritten, columns) == support.evaluate_circuit(gates, replaced)


@hypothesis.given(gates=support.circuits(), data=st.data())
def test_gates_in_any_order_are_put_in_order(gates: aig.Circuit, data: hypothesis.strategies.DataObject) -> None:
    first = gates.inputs + 1
    places = data.draw(st.permutations(range(len(gates.gates) + 2)))  # two places stay empty
    node_of = [*range(first), *(first + place for place in places)]

    def moved(literals: Sequence[int]) -> tuple[int, ...]:
        return tuple(2 * node_of[lit >> 1] + (lit & 1) for lit in literals)

    shuffled: list[aig.Gate | None] = [None] * (len(gates.gates) + 2)
    for place, gate in zip(places, gates.gates, strict=False):
        shuffled[place] = moved(gate)
    rewritten = aig.sort_topologically(gates.inputs, shuffled, moved(gates.outputs))
    columns = support.all_columns(gates.inputs)
    assert _well_formed(rewritten)
    assert support.evaluate_circuit(rewritten, columns) == support.evaluate_circuit(gates, columns)


def test_the_builder_makes_no_gate_twice() -> None:
    builder = aig.Builder(inputs=3)
    a, b, c = (builder.input(n) for n in range(3))
    both = builder.conjunction([a, b])
    assert builder.conjunction([b, a, aig.TRUE]) == both
    assert builder.disjunction([a ^ 1, b ^ 1]) == both ^ 1
    assert builder.has_gate([b, a])
    assert not builder.has_gate([a, c])
    assert builder.conjunction([]) == aig.TRUE
    assert builder.disjunction([]) == aig.FALSE
    assert builder.conjunction([aig.TRUE]) == aig.TRUE
    assert builder.conjunction([a, both, aig.FALSE]) == aig.FALSE
    assert builder.conjunction([a, a ^ 1, b]) == aig.FALSE
    assert len(builder.gates) == 1


def test_depth_and_operations() -> None:
    gates = aig.Circuit(3, ((2, 4, 6), (3, 8), (2, 4)), (10,))
    assert (gates.depth, gates.operations) == (2, 4)
    assert aig.prune(gates).operations == 3
    assert aig.Circuit(0, (), (1,)).depth == 0


def test_a_pair_beside_its_own_conjunction_is_taken_out_once() -> None:
    """Both gates hold a, b and a & b: the pair is not joined with itself."""
    gates = aig.Circuit(4, ((2, 4), (2, 4, 6, 10), (2, 4, 8, 10)), (12, 14))
    assert pairs.extract_pairs(gates).gates == ((2, 4), (6, 10), (8, 10))


def test_a_gate_that_folds_to_an_input_is_no_alternative() -> None:
    assert factor.factor(aig.Circuit(1, ((1, 2),), (4,))) == aig.Circuit(1, (), (2,))


def test_what_is_common_to_alternatives_is_taken_out() -> None:
    """(a & b) | (a & c) becomes a & (b | c); compactly only where that costs no gate."""
    two = aig.Circuit(3, ((2, 4), (2, 6), (9, 11)), (13,))
    assert factor.factor(two).gates == ((5, 7), (2, 9))
    assert COMPACT(two).gates == ((5, 7), (2, 9))
    wide = aig.Circuit(5, ((2, 4, 6), (2, 8, 10), (13, 15)), (17,))
    assert factor.factor(wide).operations == wide.operations - 1
    assert COMPACT(wide) == wide


CHAIN = 20_000


def _chain(length: int) -> aig.Circuit:
    """a1 & ~(a2 & ~(a3 & ..)), every gate used once."""
    gates: list[aig.Gate] = []
    last = 2
    for number in range(length):
        gates.append(tuple(sorted((last, 2 * (number + 2)))))
        last = 2 * (length + 1 + len(gates)) ^ 1
    return aig.Circuit(length + 1, tuple(gates), (last,))


def _stairs(height: int) -> aig.Circuit:
    """(a1 & b1) | (a1 & a2 & b2) | .. | (a1 & .. & an & bn): a factor in what every factor leaves."""
    gates = [(*range(2, 2 * n + 2, 2), 2 * (height + n)) for n in range(1, height + 1)]
    top = tuple(2 * (2 * height + n) + 1 for n in range(1, height + 1))
    return aig.Circuit(2 * height, (*gates, top), (2 * (3 * height + 1) + 1,))


@pytest.mark.parametrize("name", REWRITES)
@pytest.mark.parametrize("gates", [_chain(CHAIN), _stairs(120)], ids=["chain", "stairs"])
def test_deep_circuits_need_no_deep_recursion(name: str, gates: aig.Circuit) -> None:
    rewritten = REWRITES[name](gates)
    ones = [True] * gates.inputs
    columns = [ones, [False] * gates.inputs, [*ones[:-1], False], [False, *ones[1:]]]
    assert support.evaluate_circuit(rewritten, columns) == support.evaluate_circuit(gates, columns)


@st.composite
def knowledge(draw: st.DrawFn, inputs: int) -> absorb.InputConstraints:
    nodes = st.integers(1, inputs)
    groups = draw(st.lists(st.frozensets(nodes, min_size=1), max_size=3))
    covers = draw(st.frozensets(st.sampled_from(range(len(groups))))) if groups else frozenset()
    implied = draw(st.dictionaries(nodes, st.lists(st.integers(2, 2 * inputs + 1), max_size=3), max_size=3))
    return absorb.InputConstraints(groups, covers, implied)


def _satisfies(column: support.Column, known: absorb.InputConstraints) -> bool:
    for number, group in enumerate(known.groups):
        count = sum(column[node - 1] for node in group)
        if count > 1 or (number in known.covers and count == 0):
            return False
    return all(
        column[(literal >> 1) - 1] != bool(literal & 1)
        for node, literals in known.implied.items()
        if column[node - 1]
        for literal in literals
    )


@hypothesis.settings(max_examples=3 * hypothesis.settings.default.max_examples)  # type: ignore[union-attr]
@hypothesis.given(gates=st.one_of(support.formulas(), support.circuits().filter(lambda c: c.inputs)), data=st.data())
def test_knowledge_is_used_only_where_it_holds(gates: aig.Circuit, data: hypothesis.strategies.DataObject) -> None:
    known = data.draw(knowledge(gates.inputs))
    rewritten = absorb.absorb(gates, known)
    columns = [column for column in support.all_columns(gates.inputs) if _satisfies(column, known)]
    assert support.evaluate_circuit(rewritten, columns) == support.evaluate_circuit(gates, columns)
    assert rewritten.operations <= gates.operations


def test_each_kind_of_knowledge_removes_gates() -> None:
    group = [frozenset({1, 2, 3})]
    both = aig.Circuit(3, ((2, 4),), (8,))  # a & b
    assert absorb.absorb(both, absorb.InputConstraints(group)).outputs == (aig.FALSE,)
    neither = aig.Circuit(3, ((3, 5),), (8,))  # ~a & ~b
    assert absorb.absorb(neither, absorb.InputConstraints(group)) == neither
    assert absorb.absorb(neither, absorb.InputConstraints(group, frozenset({0}))).outputs == (6,)
    none = aig.Circuit(3, ((3, 5, 7),), (8,))
    assert absorb.absorb(none, absorb.InputConstraints(group, frozenset({0}))).outputs == (aig.FALSE,)
    assert absorb.absorb(both, absorb.InputConstraints(implied={1: [4]})).outputs == (2,)
    assert absorb.absorb(both, absorb.InputConstraints(implied={1: [5]})).outputs == (aig.FALSE,)


def _emitted(gates: aig.Circuit) -> straight_line.StraightLineProgram:
    return straight_line.emit(gates, gates.outputs, {})


def _code(gates: aig.Circuit) -> list[straight_line.Instruction]:
    return [step for block in _emitted(gates).blocks for step in block.instructions]


def _rows(program: straight_line.StraightLineProgram, inputs: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """Outputs of a program; row n of `inputs` is the value of node n + 1."""
    false = np.zeros(inputs.shape[1:], inputs.dtype)
    return np.stack(straight_line.run(program, [inputs[node - 1] for node in program.inputs], false))


@hypothesis.given(gates=any_circuit)
def test_emitted_code_computes_the_circuit(gates: aig.Circuit) -> None:
    columns = support.all_columns(gates.inputs)
    expected = np.array(support.evaluate_circuit(gates, columns)).T
    inputs = np.array(columns, np.bool_).T.reshape(gates.inputs, len(columns))
    program = _emitted(gates)
    assert np.array_equal(_rows(program, inputs), expected)
    for dtype in (np.uint8, np.uint32, np.uint64):
        wide = np.zeros((gates.inputs, 64), np.bool_)
        wide[:, : len(columns)] = inputs
        words = np.packbits(wide, axis=1, bitorder="little").view(dtype)
        bits = np.unpackbits(_rows(program, words).view(np.uint8), axis=1, bitorder="little")
        assert np.array_equal(bits[:, : len(columns)], expected)


@hypothesis.given(gates=any_circuit)
def test_values_are_dropped_after_their_last_use(gates: aig.Circuit) -> None:
    program = _emitted(gates)
    code = _code(gates)
    kept = {aig.FALSE, aig.TRUE, *program.outputs}
    last_use = {literal: number for number, step in enumerate(code) for literal in step.operands}
    dropped = {literal: number for number, step in enumerate(code) for literal in step.last_uses}
    assert dropped == {literal: number for literal, number in last_use.items() if literal not in kept}


@hypothesis.given(gates=any_circuit)
def test_every_value_is_made_once_and_before_it_is_used(gates: aig.Circuit) -> None:
    program = _emitted(gates)
    have = {aig.FALSE, aig.TRUE, *(2 * node for node in program.inputs)}
    for block in program.blocks:
        for step in block.instructions:
            assert have.issuperset(step.operands)
            assert step.result not in have
            have.add(step.result)
    assert have.issuperset(program.outputs)


def test_a_gate_of_inverted_inputs_is_an_or() -> None:
    """~a & ~b is stored as its complement a | b, which costs one operation instead of three."""
    neither = aig.Circuit(2, ((3, 5),), (6,))
    assert [(step.op, step.result) for step in _code(neither)] == [(straight_line.Op.OR, 7), (straight_line.Op.NOT, 6)]
    either = aig.Circuit(2, ((3, 5),), (7,))
    assert [step.op for step in _code(either)] == [straight_line.Op.OR]
    mixed = aig.Circuit(3, ((3, 5), (6, 9)), (10,))  # c & (a | b)
    assert [step.op for step in _code(mixed)] == [straight_line.Op.OR, straight_line.Op.AND]
    assert _emitted(mixed).operations == 2


def test_outputs_that_are_inputs_or_constants() -> None:
    program = _emitted(aig.Circuit(2, (), (0, 1, 2, 3, 5, 5)))
    assert program.inputs == (1, 2)
    rows = _rows(program, np.array([[False, True], [True, True]]))
    assert rows.tolist() == [[False] * 2, [True] * 2, [False, True], [True, False], [False] * 2, [False] * 2]


class _Loops:
    """A circuit with two strata of feedbacks: the second may use the first inverted, neither itself."""

    def __init__(self, plain: int, strata: tuple[int, int], draw: st.DrawFn) -> None:
        self.plain = plain
        self.inputs = plain + sum(strata)
        self.gates: list[aig.Gate] = []
        self.strata: list[dict[int, aig.Literal]] = []
        free = [lit for node in range(1, plain + 1) for lit in (2 * node, 2 * node + 1)]
        first = plain + 1
        for size in strata:
            nodes = range(first, first + size)
            first += size
            pool = [*free, *(2 * node for node in nodes)]
            for _ in range(draw(st.integers(0, 4))):
                pool.append(self._gate(draw(st.sets(st.sampled_from(pool), min_size=1, max_size=3)), draw))
            self.strata.append({node: draw(st.sampled_from(pool)) for node in nodes})
            free = [*pool, *(literal ^ 1 for literal in pool)]
        self.outputs = tuple(draw(st.lists(st.sampled_from(free), min_size=1, max_size=4)))

    def _gate(self, literals: set[aig.Literal], draw: st.DrawFn) -> aig.Literal:
        """The AND or the OR of literals."""
        inverted = draw(st.integers(0, 1))
        self.gates.append(tuple(sorted(literal ^ inverted for literal in literals)))
        return 2 * (self.inputs + len(self.gates)) ^ inverted

    @property
    def circuit(self) -> aig.Circuit:
        return aig.Circuit(self.inputs, tuple(self.gates), self.outputs)

    def by_hand(self, column: support.Column) -> tuple[bool, ...]:
        """The outputs at the least fixpoint, stratum by stratum."""
        value = [*column, *[False] * (self.inputs - self.plain)]
        for stratum in self.strata:
            while True:
                nodes = support.node_values(self.circuit, value)
                following = {node: nodes[lit >> 1] != bool(lit & 1) for node, lit in stratum.items()}
                if all(value[node - 1] == actual for node, actual in following.items()):
                    break
                for node, actual in following.items():
                    value[node - 1] = actual
        return support.evaluate_circuit(self.circuit, [value])[0]


@st.composite
def loops(draw: st.DrawFn) -> _Loops:
    return _Loops(draw(st.integers(1, 4)), (draw(st.integers(1, 3)), draw(st.integers(0, 3))), draw)


@hypothesis.given(loop=loops())
def test_feedback_settles_at_the_least_fixpoint(loop: _Loops) -> None:
    feedback = dict(itertools.chain(*(stratum.items() for stratum in loop.strata)))
    program = straight_line.emit(loop.circuit, loop.outputs, feedback)
    assert not set(program.inputs) & feedback.keys()
    columns = support.all_columns(loop.plain)
    expected = np.array([loop.by_hand(column) for column in columns]).T
    inputs = np.array(columns, np.bool_).T
    assert np.array_equal(_rows(program, inputs), expected)
    words = np.packbits(inputs, axis=1, bitorder="little")
    bits = np.unpackbits(_rows(program, words).view(np.uint8), axis=1, bitorder="little")
    assert np.array_equal(bits[:, : len(columns)], expected)


def test_a_loop_runs_until_its_slowest_column_is_settled() -> None:
    """A ring of eight: a mark at one place reaches the others one round after the other."""
    size = 8
    marks = range(1, size + 1)
    gates = tuple(
        tuple(sorted((2 * mark + 1, 2 * (size + 1 + (mark - 2) % size) + 1))) for mark in marks
    )  # ~(mark | predecessor)
    ring = aig.Circuit(2 * size, gates, ())
    feedback = {size + mark: 2 * (2 * size + mark) + 1 for mark in marks}
    program = straight_line.emit(ring, [2 * (2 * size)], feedback)
    columns = np.eye(size + 1, size, dtype=np.bool_).T  # one mark each; the last column has none
    assert _rows(program, columns).tolist() == [[True] * size + [False]]
