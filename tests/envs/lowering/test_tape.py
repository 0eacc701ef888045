"""Tapes and their three forms against plain evaluation: random circuits, games, and recursion through state."""

import functools

import hypothesis
import jax
import numpy as np
import pytest
from hypothesis import strategies as st

import gdlx
from gdlx.envs.lowering import cpu_kernel, levelled, lower, playout_tape, rolled, tape
from gdlx.propnet import games
from gdlx.propnet.circuits import aig, propnet
from gdlx.propnet.simulate import straight_line
from gdlx.tests.helpers import sheets, support, tapes

FORMS: tuple[lower.LoweringMode, ...] = ("rolled", "levelled", "straight")
SMALL = ("kuhn_poker", "tictactoe", "maze")
DOZEN = (
    *("blind_tictactoe", "goofspiel", "latent_tictactoe", "leduc_poker", "liars_dice", "monty_hall", "repeated_rps"),
    *("rps", "smallest"),
)
SLOW = [pytest.param(game, marks=pytest.mark.slow) for game in ("meier", "connect_four", "krieg_tictactoe", "gops")]


def net_of(game: str) -> propnet.PropNet:
    return sheets.compile_text(sheets.MAZE, iterated=True) if game == "maze" else games.compile_game(game)


def all_outputs(propnet: propnet.PropNet) -> list[int]:
    parts = [np.concatenate([role.legal, role.sees, role.goal]) for role in propnet.roles]
    return [*propnet.next.tolist(), propnet.terminal, *np.concatenate(parts).tolist()]


def words(rows: int, columns: int, seed: int = 0) -> tape.Words:
    return np.random.default_rng(seed).integers(0, 2**32, (rows, columns), np.uint32)


def of_circuit(gates: aig.Circuit) -> tape.Tape:
    builder = tape.TapeBuilder(gates.inputs)
    return builder.tape(builder.add_circuit(gates, {n: 2 * n for n in range(1, gates.inputs + 1)}))


@hypothesis.given(values=st.tuples(*[st.integers(0, 5)] * 3))
def test_the_builder_folds_without_changing_meaning(values: tuple[int, int, int]) -> None:
    a, b, c = values
    builder = tape.TapeBuilder(2)
    made = {
        "and": builder.conjunction(a, b),
        "or": builder.disjunction(a, b),
        "xor": builder.xor(a, b),
        "select": builder.select(a, b, c),
        "all": builder.all_of(values),
        "any": builder.any_of(values),
        "none": builder.all_of([]),
    }
    program = builder.tape(list(made.values()))
    columns = support.all_columns(2)
    for (x, y), actual in zip(
        columns, tapes.unpack_columns(tapes.interpret_tape(program, tapes.pack_columns(columns)), 4), strict=True
    ):
        p, q, r = ([False, True, x, not x, y, not y][literal] for literal in values)
        expected = (p and q, p or q, p != q, q if p else r, p and q and r, p or q or r, True)
        assert actual == expected, made


@hypothesis.given(gates=st.one_of(support.circuits(), support.formulas()))
def test_the_tape_of_a_circuit(gates: aig.Circuit) -> None:
    columns = support.all_columns(gates.inputs)
    program = of_circuit(gates)
    assert tapes.unpack_columns(
        tapes.interpret_tape(program, tapes.pack_columns(columns)), len(columns)
    ) == support.evaluate_circuit(gates, columns)
    assert program.rows <= 1 + gates.inputs + program.operations
    assert 0 not in program.target


@hypothesis.settings(max_examples=20)
@hypothesis.given(gates=st.one_of(support.circuits(), support.formulas()))
def test_every_form_of_a_circuit(gates: aig.Circuit) -> None:
    columns = support.all_columns(gates.inputs)
    program, inputs = of_circuit(gates), tapes.pack_columns(columns)
    expected = support.evaluate_circuit(gates, columns)
    with jax.disable_jit():
        for run in (rolled.run, levelled.run, lower._run_straight):
            actual = np.asarray(run(program, jax.numpy.asarray(inputs)))
            assert tapes.unpack_columns(actual, len(columns)) == expected


@hypothesis.given(early=support.circuits(max_inputs=4), late=support.circuits(max_inputs=6), ranks=st.integers(1, 3))
def test_inputs_that_come_after_the_first_segment(early: aig.Circuit, late: aig.Circuit, ranks: int) -> None:
    """As in a playout: counts of legal moves are ready first, and the moves drawn from them are written then."""
    known = max(early.inputs, late.inputs - ranks, 0)
    builder = tape.TapeBuilder(known + ranks)
    middle = builder.add_circuit(early, {n: 2 * n for n in range(1, early.inputs + 1)})
    order = [*range(known + 1, known + ranks + 1), *range(1, known + 1)]  # late inputs are the circuit's first
    outputs = builder.add_circuit(late, {n: 2 * node for n, node in enumerate(order[: late.inputs], 1)})
    program = builder.tape(outputs, middle=middle)
    columns = support.all_columns(known + ranks)[:64]
    inputs = tapes.pack_columns(columns)
    assert len(program.segments) == 2
    rows = np.zeros((program.rows, 2), np.uint32)
    rows[1 : known + 1] = inputs[:known]
    first = tape.Tape(**{**vars(program), "segments": program.segments[:1], "outputs": program.intermediate})
    first = tape.Tape(**{**vars(first), "output_mask": program.intermediate_mask})
    counted = tapes.interpret_tape(first, rows[1 : known + 1])
    assert tapes.unpack_columns(counted, len(columns)) == support.evaluate_circuit(
        early, [column[: early.inputs] for column in columns]
    )
    actual = tapes.interpret_tape(program, rows[1 : known + 1], late=(1 + known, inputs[known:]))
    given = [[column[node - 1] for node in order[: late.inputs]] for column in columns]
    assert tapes.unpack_columns(actual, len(columns)) == support.evaluate_circuit(late, given)


@pytest.mark.parametrize("game", [*SMALL, *DOZEN, *SLOW])
def test_every_form_of_a_game(game: str, monkeypatch: pytest.MonkeyPatch) -> None:
    propnet = net_of(game)
    assert bool(len(propnet.feedback)) == (game == "maze")
    outputs = all_outputs(propnet)
    inputs = words(propnet.inputs - len(propnet.feedback), 5)
    program = straight_line.compile_cone(propnet, outputs)
    expected = np.stack(
        straight_line.run(program, [inputs[node - 1] for node in program.inputs], np.zeros(5, np.uint32))
    )
    made = tape.compile_tape(propnet, outputs)
    assert np.array_equal(tapes.interpret_tape(made, inputs), expected)
    monkeypatch.setattr(lower, "WORDS_PER_GROUP", 2)  # so that five words are three groups, the last one not full
    for form in FORMS:
        for width in (256, 2, None) if game in SMALL else (256,):  # in one piece, in several, without
            monkeypatch.setattr(cpu_kernel, "choose_width", lambda rows, width=width: width)
            actual = jax.jit(functools.partial(lower.run, made, form=form))(inputs)
            assert np.array_equal(np.asarray(actual), expected), (form, width)


@pytest.mark.parametrize("games", [0, 1, 8, 9, 79, 81, 600])
def test_any_number_of_words(games: int) -> None:
    """Rows are made wider where that is faster, and cut again."""
    propnet = net_of("tictactoe")
    made = tape.compile_tape(propnet, all_outputs(propnet))
    inputs = words(propnet.inputs, games)
    actual = jax.jit(lambda rows: lower.run(made, rows))(inputs)
    assert np.array_equal(np.asarray(actual), tapes.interpret_tape(made, inputs))


def test_a_result_that_is_divided_among_threads() -> None:
    """As large as XLA divides, though pieces should not be: it must still compile, and be right."""

    def doubled(rows: jax.Array) -> jax.Array:
        return rows * 2 + 1

    given = np.arange(2**20, dtype=np.uint32).reshape(1024, 1024)
    actual = jax.jit(lambda rows: cpu_kernel.run_fused(doubled, rows))(given)
    assert np.array_equal(np.asarray(actual), given * 2 + 1)


def test_a_game_whose_moves_are_always_legal() -> None:
    """Its cone of legal moves has no operation and looks at no input, in a program that has other cones."""
    env = gdlx.make("smallest", form="straight")
    assert not tape.compile_tape(env.propnet, np.concatenate([role.legal for role in env.propnet.roles])).operations
    state = jax.jit(lambda: env.step(env.init(), jax.numpy.array([0, 1, 2]), None))()
    assert int(state.step) == 1


def test_the_width_of_a_piece() -> None:
    assert [cpu_kernel.choose_width(rows) for rows in (1, 256, 257, 512, 513, 682, 683, 819, 820)] == [
        *[256, 256, 128, 128, 96, 96, 80, 80, None]
    ]


def test_auto_is_chosen_by_platform() -> None:
    program = of_circuit(aig.Circuit(2, ((2, 4), (3, 5)), (6, 9)))
    inputs = jax.numpy.zeros((2, 1), np.uint32)
    lowered = jax.jit(lambda rows: lower.run(program, rows)).trace(inputs)
    assert "while" in lowered.lower(lowering_platforms=("cpu",)).as_text()
    assert "while" not in lowered.lower(lowering_platforms=("tpu",)).as_text()
    for platform in ("cpu", "tpu"):  # XLA fails on pieces in programs that it divides among devices
        assert "small_call" not in lowered.lower(lowering_platforms=(platform,)).as_text()


def test_rows_are_used_again() -> None:
    """A network of hundreds of operations works in little more than its state."""
    propnet = net_of("connect_four")
    program = tape.compile_tape(propnet, all_outputs(propnet))
    assert program.operations > 500
    assert program.rows < program.inputs + len(program.outputs) + 60
    whole = playout_tape.build_step_tape(propnet, 10_000)
    assert whole.rows < 3 * len(propnet.initial)


def test_the_same_operation_is_made_once() -> None:
    builder = tape.TapeBuilder(3)
    a, b, c = (builder.input(n) for n in range(3))
    assert builder.conjunction(a, b) == builder.conjunction(b, a)
    assert builder.xor(a ^ 1, b) == builder.xor(a, b) ^ 1
    assert builder.all_of([a, b, c]) == builder.all_of([c, b, a])
    builder.conjunction(a, c)  # nobody needs it
    assert builder.tape([builder.conjunction(a, b)]).operations == 1
