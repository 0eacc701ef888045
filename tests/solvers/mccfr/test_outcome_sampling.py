"""Outcome sampling: unbiased against full CFR, convergent, and equal on any number of devices."""

import functools
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gdlx
from gdlx.envs import game_spec
from gdlx.envs.trees import sampling_form, sequence_form
from gdlx.solvers import algorithms, tabular_policies, tasks
from gdlx.solvers.exact import best_response, regret_matching
from gdlx.solvers.mccfr import mccfr, outcome_sampling
from gdlx.solvers.runs import solver_run, tree_solvers
from gdlx.tests.helpers import samples


def settings(exploration: float, decay: float | None = None) -> mccfr.MccfrSettings:
    return mccfr.MccfrSettings(regret_matching.Settings(1.0, 1.0, 1.0), exploration, decay)


@pytest.mark.parametrize("game", samples.GAMES)
@pytest.mark.parametrize("with_baselines", [False, True])
def test_sampled_values_are_unbiased(game: str, with_baselines: bool) -> None:
    """The mean of Q over many batches is the exact counterfactual value, for every action of every information set."""
    tree = samples.load_tree(game)
    form = sampling_form.sampling_form(tree)
    exact, layouts = sequence_form.sequence_form(tree)
    rng = np.random.default_rng(3)
    policy = samples.random_tables(form, rng)
    state = mccfr.init(form, baselines=with_baselines)._replace(policy=policy)
    if with_baselines:
        wild = rng.normal(0, 20, (form.players, form.histories))
        state = state._replace(baseline=tuple(jnp.asarray(table, form.share.dtype) for table in wild))
    policies = tabular_policies.to_levels(tree, layouts, samples.policies_from_tables(tree, policy))
    batches, size = 200, 256
    for number, player in enumerate(tree.players):

        def one(key: jax.Array, number: int = number) -> jax.Array:
            return outcome_sampling.sample(form, state, settings(0.5), key, number, batch=size).values

        drawn = np.asarray(jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(number), batches)), float)
        levels = best_response.counterfactual_values(exact, policies, number)
        expected = tabular_policies.player_from_levels(layouts[number], levels)
        for decision in range(player.sets):
            first, end = player.first[decision], player.first[decision + 1]
            samples_of_infoset = drawn[:, : end - first, decision]
            error = samples_of_infoset.std(axis=0) / np.sqrt(batches)
            # 4 standard errors, for some hundred numbers with fixed seeds.
            assert (np.abs(samples_of_infoset.mean(axis=0) - expected[first:end]) <= 4 * error + 1e-4).all(), (
                number,
                decision,
            )


@pytest.mark.parametrize("game", samples.GAMES)
def test_average_weights_are_unbiased(game: str) -> None:
    """They are proportional to a player's own reach, by a factor that does not depend on the policies."""
    tree = samples.load_tree(game)
    form = sampling_form.sampling_form(tree)
    rng = np.random.default_rng(5)
    keys = jax.random.split(jax.random.key(7), 100)

    @functools.partial(jax.jit, static_argnames="player")
    def reaches(state: mccfr.MccfrState, player: int) -> jax.Array:
        one = functools.partial(outcome_sampling.sample, form, state, settings(0.3), player=player, batch=512)
        return jax.vmap(lambda key: one(key).average_reach)(keys)

    factors = []
    for _ in range(2):
        policy = samples.random_tables(form, rng)
        state = mccfr.init(form)._replace(policy=policy)
        policies = samples.policies_from_tables(tree, policy)
        estimates = []
        for number in range(form.players):
            updated = mccfr.averaged_player(form.players, number)
            weights = np.asarray(reaches(state, updated), float)
            reach = tabular_policies.realization_plan(tree.players[number], policies[number])[
                tree.players[number].parent
            ]
            ratio = weights / reach
            estimates.append((ratio.mean(axis=0), ratio.std(axis=0) / 10))
        factors.append(estimates)
    for (first, first_error), (second, second_error) in zip(*factors, strict=True):
        assert (np.abs(first - second) <= 4 * np.hypot(first_error, second_error) + 1e-6).all()


@pytest.mark.parametrize("algorithm", ["os-mccfr", "vr-mccfr"])
def test_kuhn_is_solved(algorithm: str) -> None:
    solution = gdlx.solve("kuhn_poker", algorithm, iterations=300)
    assert solution.exploitability is not None
    assert solution.exploitability < 0.02
    assert solution.value[0] == pytest.approx(-1 / 18, abs=0.02)


@pytest.mark.parametrize(
    "minimiser", ["dcfr", *(pytest.param(name, marks=pytest.mark.slow) for name in ("cfr", "cfr+", "pcfr+"))]
)
def test_all_minimisers_converge(minimiser: str) -> None:
    base = algorithms.find("os-mccfr")
    chosen = algorithms.Algorithm("os", base.step, algorithms.find(minimiser).settings, "", sampling=base.sampling)
    solution = gdlx.solve("goofspiel:cards=3", chosen, iterations=150)
    assert solution.exploitability is not None
    assert solution.exploitability < 2.0  # of payoffs between -50 and 50


def test_three_players_and_one() -> None:
    assert max(gdlx.solve("smallest:numbers=3,steps=1", "os-mccfr", iterations=100).improvements) < 0.1  # uniform: 1.48
    assert gdlx.solve("monty_hall", "os-mccfr", iterations=200).value[0] == pytest.approx(200 / 3, abs=1.0)


def test_the_same_key_gives_the_same_run() -> None:
    task = tasks.make_tree_task(game_spec.GameSpec("kuhn_poker"), keep_edges=True)
    runs = []
    for seed in (1, 1, 2):
        chosen = algorithms.configure(algorithms.find("os-mccfr"), None, {"batch": 64, "seed": seed})
        solver = tree_solvers.SampledSolver(task, chosen)
        uninterrupted = solver.advance(solver.init(), 10)
        resumed = solver.advance(solver.advance(solver.init(), 3), 7)
        np.testing.assert_array_equal(uninterrupted.regret[0], resumed.regret[0])
        runs.append(np.asarray(uninterrupted.regret[0]))
    np.testing.assert_array_equal(runs[0], runs[1])
    assert (runs[0] != runs[2]).any()


def test_resumed_runs_equal_uninterrupted_ones(tmp_path: pathlib.Path) -> None:
    from gdlx.solvers.runs import driver, result_folder

    task = tasks.make_tree_task(game_spec.GameSpec("kuhn_poker"), keep_edges=True)
    algorithm = algorithms.find("vr-mccfr")
    uninterrupted = solver_run.Run(task, algorithm)
    list(uninterrupted.snapshots(driver.StopCondition(iterations=12)))
    first = solver_run.Run(task, algorithm, tmp_path)
    list(first.snapshots(driver.StopCondition(iterations=5)))
    first.finish()
    second = solver_run.Run(task, result_folder.read_config(tmp_path).algorithm, tmp_path, resume=True)
    list(second.snapshots(driver.StopCondition(iterations=12)))
    for expected, actual in zip(jax.tree.leaves(uninterrupted.state), jax.tree.leaves(second.state), strict=True):
        np.testing.assert_array_equal(expected, actual)


@pytest.mark.parametrize("batch", [0, -8])
def test_empty_batches(batch: int) -> None:
    with pytest.raises(algorithms.UnknownAlgorithmError, match="at least 1"):
        algorithms.configure(algorithms.find("os-mccfr"), None, {"batch": batch})


def test_a_batch_larger_than_memory() -> None:
    task = tasks.make_tree_task(game_spec.GameSpec("kuhn_poker"), keep_edges=True)
    with pytest.raises(tree_solvers.BatchSizeError, match="GiB"):
        tree_solvers.SampledSolver(task, algorithms.configure(algorithms.find("os-mccfr"), None, {"batch": 2**30}))


def test_sampling_needs_edges() -> None:
    with pytest.raises(ValueError, match="keep_edges"):
        sampling_form.sampling_form(game_spec.unroll_game(game_spec.GameSpec("kuhn_poker")))


@pytest.mark.parametrize("probability", [[0.5, 0.5], [0.1, 0.2, 0.7], [1.0], [0.97, 0.01, 0.01, 0.01]])
def test_alias_tables(probability: list[float]) -> None:
    kept, offsets = sampling_form._alias(np.array(probability))
    got = np.zeros(len(probability))
    for number, (keep, offset) in enumerate(zip(kept, offsets, strict=True)):
        got[number] += keep / len(probability)
        got[number + offset] += (1 - keep) / len(probability)
    np.testing.assert_allclose(got, probability)


_EIGHT = """
import jax, numpy as np
from gdlx.envs import game_spec
from gdlx.solvers import algorithms, tasks
from gdlx.solvers.runs import tree_solvers
task = tasks.make_tree_task(game_spec.GameSpec("kuhn_poker"), keep_edges=True)
process = tree_solvers.SampledSolver(task, algorithms.configure(algorithms.find("vr-mccfr"), None, {"batch": 64}))
state = process.advance(process.init(), 3)
print(len(jax.devices()), *np.concatenate([np.ravel(own) for own in state.regret]).tolist())
"""


@pytest.mark.slow
def test_one_device_and_eight() -> None:
    one, eight = (samples.run_with_devices(_EIGHT, count) for count in (1, 8))
    np.testing.assert_allclose(one, eight, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
def test_lowers_for_accelerators(platform: str) -> None:
    form = sampling_form.sampling_form(samples.load_tree("kuhn_poker"))

    def run(form: sampling_form.SamplingForm, state: mccfr.MccfrState, key: jax.Array) -> mccfr.MccfrState:
        unwrapped = jax.random.wrap_key_data(key)
        return mccfr.step(form, state, settings(0.6, 0.1), unwrapped, sampler=outcome_sampling.sample, batch=64)

    lowered = jax.export.export(jax.jit(run), platforms=[platform])(
        form, mccfr.init(form, baselines=True), jax.random.key_data(jax.random.key(0))
    )
    assert lowered.platforms == (platform,)
