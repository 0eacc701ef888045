"""The CFR family on the sequence form against recursion with dictionaries, iteration by iteration in float64."""

import math
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from gdlx.envs.bridges import open_spiel_tree
from gdlx.envs.trees import game_tree, sequence_form, unroll
from gdlx.propnet import games
from gdlx.solvers import tabular_policies
from gdlx.solvers.exact import best_response, cfr, fictitious_play, regret_matching
from gdlx.tests.helpers import explicit, sheets

FLOOR = -math.inf
SETTINGS = {
    "cfr": regret_matching.Settings(),
    "cfr+": regret_matching.Settings(beta=FLOOR, gamma=1.0),
    "lcfr": regret_matching.Settings(1.0, 1.0, 1.0),
    "dcfr": regret_matching.Settings(1.5, 0.0, 2.0),
    "dcfr-half": regret_matching.Settings(1.5, 0.5, 1.5),
    "pcfr+": regret_matching.Settings(beta=FLOOR, gamma=2.0, optimism=1.0),
    "pdcfr+": regret_matching.Settings(2.3, FLOOR, 5.0, optimism=1.0),
    "scheduled": regret_matching.Settings(
        1.0, -1.0, 30.0, alpha_change=3.0, beta_change=-2.0, gamma_change=-5.0, horizon=7.0
    ),
    "explorative": regret_matching.Settings(1.5, 0.0, 2.0, optimism=0.5, exploration=0.1),
}
TWO = ["kuhn_poker", "goofspiel:cards=3", sheets.COINS]
MORE = ["smallest:numbers=2,steps=2", "monty_hall"]

step = jax.jit(cfr.step, static_argnames="alternating")
average = jax.jit(cfr.average_policies)
evaluate = jax.jit(best_response.evaluate_average)


@jax.jit
def run(
    game: sequence_form.SequenceForm, state: cfr.CfrState, settings: regret_matching.Settings, iterations: int
) -> cfr.CfrState:
    last: cfr.CfrState = jax.lax.fori_loop(0, iterations, lambda _, s: cfr.step(game, s, settings), state)
    return last


@pytest.fixture(autouse=True)
def _x64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def assert_same_run(
    tree: game_tree.GameTree,
    root: explicit.Node,
    settings: regret_matching.Settings,
    iterations: int,
    *,
    alternating: bool = True,
    seed: int | None = None,
) -> None:
    """Regrets, policies and averages after every iteration; with a seed, from random initial regrets."""
    game, layouts = sequence_form.sequence_form(tree)
    slow, state = explicit.ReferenceCfr(root, len(tree.players)), cfr.init(game)
    if seed is not None:
        rng = np.random.default_rng(seed)
        start = tuple(np.concatenate([[1], rng.normal(size=player.sequences - 1)]) for player in tree.players)
        state = cfr.init_from_regrets(game, tabular_policies.to_levels(tree, layouts, start))
        slow.start(explicit.from_arrays(tree, start))
    for _ in range(iterations):
        slow.iterate(settings, alternating)
        state = step(game, state, settings, alternating=alternating)
        pairs = [(state.regret, slow.regret), (state.policy, slow.policy), (average(game, state), slow.average())]
        for ours, theirs in pairs:
            arrays = [tabular_policies.player_from_levels(*row) for row in zip(layouts, ours, strict=True)]
            for own, other in zip(arrays, explicit.to_arrays(tree, theirs), strict=True):
                np.testing.assert_allclose(own, other, rtol=1e-9, atol=1e-9)
    assert int(state.t) == iterations


@pytest.mark.parametrize("alternating", [True, False], ids=["alternating", "simultaneous"])
@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting_on_kuhn_poker(name: str, alternating: bool) -> None:
    assert_same_run(*explicit.load_game("kuhn_poker"), SETTINGS[name], 12, alternating=alternating)


@pytest.mark.parametrize("name", ["dcfr", "pdcfr+"])
@pytest.mark.parametrize("spec", [*TWO[1:], *MORE], ids=["goofspiel", "coins", "smallest", "monty_hall"])
def test_other_games(spec: str, name: str) -> None:
    """Simultaneous moves, general-sum payoffs with chance between two players, three players, and a single one."""
    assert_same_run(*explicit.load_game(spec), SETTINGS[name], 10)


def test_three_players_at_once() -> None:
    assert_same_run(*explicit.load_game("smallest:numbers=2,steps=2"), SETTINGS["dcfr-half"], 10, alternating=False)


@pytest.mark.parametrize("spec", ["liars_dice:sides=3", pytest.param("leduc_poker", marks=pytest.mark.slow)])
def test_larger_games(spec: str) -> None:
    assert_same_run(*explicit.load_game(spec), SETTINGS["cfr+"], 4)


@pytest.mark.parametrize("name", ["cfr+", "explorative"])
def test_initial_regrets(name: str) -> None:
    assert_same_run(*explicit.load_game("kuhn_poker"), SETTINGS[name], 6, seed=1)


def test_open_spiels_states() -> None:
    """Chance that is not uniform, and a game whose levels are not those of a rulesheet."""
    pyspiel = pytest.importorskip("pyspiel")
    for name, iterations in (("kuhn_poker(players=3)", 4), ("dark_hex(board_size=2)", 4), ("matrix_brps", 20)):
        game = pyspiel.load_game(name)
        assert_same_run(
            open_spiel_tree.build_tree(game),
            explicit.from_open_spiel(game.new_initial_state()),
            SETTINGS["cfr+"],
            iterations,
        )


def test_open_spiels_own_solvers() -> None:
    """The averages of OpenSpiel's CFR and CFR+ have the same values after the same number of iterations."""
    pyspiel = pytest.importorskip("pyspiel")
    theirs = pyspiel.load_game("kuhn_poker")
    tree = open_spiel_tree.build_tree(theirs)
    game, _ = sequence_form.sequence_form(tree)
    for name, solver in (("cfr", pyspiel.CFRSolver(theirs)), ("cfr+", pyspiel.CFRPlusSolver(theirs))):
        state = cfr.init(game)
        for _ in range(15):
            solver.evaluate_and_update_policy()
            state = step(game, state, SETTINGS[name], alternating=True)
        ours = float(evaluate(game, state).nash_conv)
        assert ours == pytest.approx(pyspiel.nash_conv(theirs, solver.average_policy()), abs=1e-9)


@pytest.mark.parametrize(
    ("spec", "name", "iterations", "bound", "value"),
    [
        ("kuhn_poker", "cfr+", 300, 1e-3, -1 / 18),  # Kuhn (1950)
        ("kuhn_poker", "pcfr+", 300, 1e-6, -1 / 18),
        ("leduc_poker", "cfr+", 150, 2e-2, -0.085606),  # sequence-form LP
        ("leduc_poker", "dcfr", 150, 2e-2, -0.085606),
        ("simple_poker", "dcfr", 300, 1e-3, 1 / 3),
    ],
)
def test_convergence(spec: str, name: str, iterations: int, bound: float, value: float) -> None:
    tree, _ = explicit.load_game(spec) if spec != "leduc_poker" else (unroll.unroll(games.compile_game(spec)), None)
    game, _ = sequence_form.sequence_form(tree)
    state = run(game, cfr.init(game), SETTINGS[name], iterations)
    evaluation = evaluate(game, state)
    assert float(evaluation.nash_conv) / 2 < bound
    assert float(evaluation.nash_conv) >= -1e-12
    assert float(evaluation.value[0]) == pytest.approx(value, abs=2 * bound)


def test_the_bound_on_regret() -> None:
    """In zero-sum games NashConv of the averages is at most the sum of the players' average regrets."""
    for spec in TWO[:2]:
        game, _ = sequence_form.sequence_form(explicit.load_game(spec)[0])
        state = cfr.init(game)
        for _ in range(20):
            state = step(game, state, SETTINGS["cfr"], alternating=False)
            nash_conv = float(evaluate(game, state).nash_conv)
            assert nash_conv <= float(best_response.average_regret_bound(state).sum()) + 1e-9


# ---- fictitious play


def test_fictitious_play_answers_averages() -> None:
    tree, root = explicit.load_game("kuhn_poker")
    game, layouts = sequence_form.sequence_form(tree)
    advance = jax.jit(fictitious_play.step, static_argnames="alternating")
    state = advance(game, cfr.init(game), regret_matching.Settings())
    for policy in tabular_policies.from_levels(tree, layouts, state.policy):
        assert np.allclose(policy[1:], 0.5)
    for _ in range(5):
        before = explicit.from_arrays(tree, tabular_policies.from_levels(tree, layouts, average(game, state)))
        state = advance(game, state, regret_matching.Settings(), alternating=False)
        answer = explicit.from_arrays(tree, tabular_policies.from_levels(tree, layouts, state.policy))
        for player in (0, 1):
            others = {key: chosen for key, chosen in before.items() if key[0] != player}
            got = explicit.expected(root, others | {key: chosen for key, chosen in answer.items() if key[0] == player})
            best = max(explicit.expected(root, others | pure)[player] for pure in explicit.pure_policies(root, player))
            assert got[player] == pytest.approx(best)


def test_fictitious_play_converges() -> None:
    game, _ = sequence_form.sequence_form(explicit.load_game("kuhn_poker")[0])
    state = jax.lax.fori_loop(
        0, 1_000, lambda _, s: fictitious_play.step(game, s, regret_matching.Settings()), cfr.init(game)
    )
    assert float(evaluate(game, state).nash_conv) / 2 < 0.02


# ---- batches and devices


@pytest.mark.parametrize("spec", ["kuhn_poker", *MORE])
def test_a_batch_is_a_loop(spec: str) -> None:
    """Settings and states with a batch axis: the same as one run after the other."""
    game, _ = sequence_form.sequence_form(explicit.load_game(spec)[0])
    alpha, beta, gamma = np.array([1.5, np.inf, 2.3]), np.array([0.0, FLOOR, FLOOR]), np.array([2.0, 1.0, 5.0])
    optimism = np.array([0.0, 0.0, 1.0])
    together = regret_matching.Settings(*map(jnp.asarray, (alpha, beta, gamma, optimism)))
    batch = cfr.init(game, (3,))
    for _ in range(8):
        batch = step(game, batch, together)
    evaluation = evaluate(game, batch)
    for number in range(3):
        alone = regret_matching.Settings(*(float(values[number]) for values in (alpha, beta, gamma, optimism)))
        state = cfr.init(game)
        for _ in range(8):
            state = step(game, state, alone)
        single = evaluate(game, state)
        one = jax.tree.map(lambda leaf, n=number: leaf[..., n] if leaf.ndim else leaf, batch)
        for ours, theirs in zip(jax.tree.leaves(one), jax.tree.leaves(state), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(evaluation.value[:, number], single.value, atol=1e-9)
        np.testing.assert_allclose(evaluation.nash_conv[number], single.nash_conv, atol=1e-9)


def test_vmap_is_a_loop() -> None:
    game, _ = sequence_form.sequence_form(explicit.load_game("kuhn_poker")[0])
    gammas = jnp.array([0.0, 1.0, 3.0])

    @jax.jit
    def nash_conv(gamma: jax.Array) -> jax.Array:
        settings = regret_matching.Settings(1.5, 0.0, gamma)
        return best_response.evaluate_average(game, run(game, cfr.init(game), settings, 10)).nash_conv

    np.testing.assert_allclose(jax.vmap(nash_conv)(gammas), [float(nash_conv(gamma)) for gamma in gammas], rtol=1e-9)


@pytest.mark.parametrize("spec", ["leduc_poker", "smallest:numbers=2,steps=2"])  # dense tables, and single entries
@pytest.mark.parametrize("what", ["cfr", "fictitious play", "evaluation"])
def test_programs_for_other_devices(spec: str, what: str) -> None:
    with jax.enable_x64(False):
        game, _ = sequence_form.sequence_form(unroll.unroll(games.compile_game(spec)))
        state = cfr.init(game)
        settings = jax.tree.map(jnp.float32, SETTINGS["pdcfr+"])
        functions = {"cfr": cfr.step, "fictitious play": fictitious_play.step}
        if what == "evaluation":
            exported = jax.export.export(jax.jit(best_response.evaluate_average), platforms=["cuda", "tpu"])(
                game, state
            )
        else:
            exported = jax.export.export(jax.jit(functions[what]), platforms=["cuda", "tpu"])(game, state, settings)
    assert exported.platforms == ("cuda", "tpu")
    assert "custom_call" not in exported.mlir_module()
    assert not any(name in exported.mlir_module() for name in ("f64", "i64>>"))
