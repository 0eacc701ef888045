"""Batches: every member gives the same result as a run of its own."""

import jax.numpy as jnp
import numpy as np
import pytest

from gdlx.envs import game_spec
from gdlx.envs.trees import sequence_form
from gdlx.solvers import algorithms, tasks
from gdlx.solvers.exact import batch, best_response, cfr, regret_matching
from gdlx.solvers.mccfr import mccfr, outcome_sampling
from gdlx.solvers.runs import tree_solvers

GAMES = ("kuhn_poker", "monty_hall", "smallest:numbers=3,steps=1", "goofspiel:cards=3")


def alone(
    form: sequence_form.SequenceForm, settings: regret_matching.Settings, iterations: int
) -> best_response.Evaluation:
    state = tree_solvers.advance(cfr.step, form, cfr.init(form), settings, iterations)
    return best_response.evaluate_average(form, state)


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize("chunk", [None, 3])
def test_settings(game: str, chunk: int | None) -> None:
    form, _ = sequence_form.sequence_form(game_spec.unroll_game(game_spec.GameSpec(game)))
    draw = np.random.default_rng(1).uniform
    alpha, beta, gamma = draw(1, 3, 8), draw(-1, 1, 8), draw(1, 3, 8)
    many = regret_matching.Settings(alpha, beta, gamma, horizon=50.0)
    solved = batch.solve(form, algorithms.find("dcfr"), many, 20, chunk=chunk)
    for run in (0, 3, 7):
        expected = alone(form, regret_matching.Settings(alpha[run], beta[run], gamma[run], horizon=50.0), 20)
        np.testing.assert_allclose(solved.value[:, run], expected.value, atol=2e-4)
        np.testing.assert_allclose(solved.improvements[:, run], expected.improvements, atol=2e-4)


def test_payoffs() -> None:
    tree = game_spec.unroll_game(game_spec.GameSpec("kuhn_poker"))
    factors = np.array([1.0, 2.0, -1.0])
    form, _ = sequence_form.sequence_form(tree, tree.terminals.payoff[:, :, None] * factors)
    plus = algorithms.find("cfr+")
    solved = batch.solve(form, plus, plus.settings, 300, chunk=2)
    assert solved.value.shape == (2, 3)
    assert solved.value[0, 0] == pytest.approx(-1 / 18, abs=1e-3)
    assert solved.value[0, 1] == pytest.approx(-2 / 18, abs=2e-3)
    single, _ = sequence_form.sequence_form(tree, tree.terminals.payoff * -1)
    np.testing.assert_allclose(solved.value[:, 2], alone(single, plus.settings, 300).value, atol=1e-5)


def test_first_regrets() -> None:
    form, _ = sequence_form.sequence_form(game_spec.unroll_game(game_spec.GameSpec("kuhn_poker")))
    rng = np.random.default_rng(0)
    first = tuple(
        tuple(jnp.asarray(rng.uniform(0, 1, (*level.shape, 5)), jnp.float32) for level in player.uniform)
        for player in form.players
    )
    plus = algorithms.find("cfr+")
    solved = batch.solve(form, plus, plus.settings, 10, regrets=first)
    state = cfr.init_from_regrets(form, tuple(tuple(level[..., 4] for level in levels) for levels in first))
    expected = best_response.evaluate_average(form, tree_solvers.advance(cfr.step, form, state, plus.settings, 10))
    np.testing.assert_allclose(solved.improvements[:, 4], expected.improvements, atol=1e-5)
    assert len(set(solved.improvements[0].tolist())) == 5


def test_wrong_sizes() -> None:
    form, _ = sequence_form.sequence_form(game_spec.unroll_game(game_spec.GameSpec("kuhn_poker")))
    dcfr = algorithms.find("dcfr")
    with pytest.raises(batch.BatchError, match="nothing here is a batch"):
        batch.solve(form, dcfr, dcfr.settings, 1)
    with pytest.raises(batch.BatchError, match="2, 3"):
        batch.solve(form, dcfr, dcfr.settings._replace(alpha=np.ones(2), beta=np.ones(3)), 1)
    with pytest.raises(batch.BatchError, match="GiB"):
        batch.solve(form, dcfr, dcfr.settings._replace(alpha=np.ones(2)), 1, max_bytes=10)


def test_seeds_and_settings_of_sampling() -> None:
    """A thousand runs in one program: each equals a single run, and exploration makes them better."""
    task = tasks.make_tree_task(game_spec.GameSpec("kuhn_poker"), keep_edges=True)
    seeds = np.arange(1_024)
    minimiser = regret_matching.Settings(1.0, 1.0, np.linspace(0.5, 2.0, 1_024))
    settings = mccfr.MccfrSettings(minimiser, np.where(seeds % 2, 0.0, 0.5))
    solved = batch.solve_sampled(task, outcome_sampling.sample, settings, seeds, 100, batch=32)
    assert solved.exploitability.shape == (1_024,)
    assert solved.exploitability[::2].mean() < 0.1
    assert solved.exploitability[1::2].mean() > 2 * solved.exploitability[::2].mean()
    for number in (0, 7):
        own = settings._replace(
            minimiser=minimiser._replace(gamma=minimiser.gamma[number]), exploration=settings.exploration[number]
        )
        alone = batch.solve_sampled(task, outcome_sampling.sample, own, seeds[number : number + 1], 100, batch=32)
        np.testing.assert_allclose(alone.exploitability[0], solved.exploitability[number], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("seeds", "message"), [(3, "one size"), (2, "GiB")])
def test_batches_of_sampling_that_do_not_fit(seeds: int, message: str) -> None:
    task = tasks.make_tree_task(game_spec.GameSpec("kuhn_poker"), keep_edges=True)
    settings = mccfr.MccfrSettings(regret_matching.Settings(1.0, 1.0, 1.0), np.array([0.1, 0.2]))
    with pytest.raises(batch.BatchError, match=message):
        batch.solve_sampled(task, outcome_sampling.sample, settings, np.arange(seeds), 10, max_bytes=100)
