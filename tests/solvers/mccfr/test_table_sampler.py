"""Sampling into a hash table: equal to dense tables; full tables, long games, bad goals, limits and sharding."""

import dataclasses
import functools
import pathlib
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gdlx
from gdlx.envs import devices, game_spec, payoffs
from gdlx.envs.lowering import rng
from gdlx.envs.packed import packed_env
from gdlx.envs.trees import game_tree, sampling_form
from gdlx.solvers import algorithms, tasks
from gdlx.solvers.exact import regret_matching
from gdlx.solvers.mccfr import (
    hash_table,
    mccfr,
    outcome_sampling,
    state_baselines,
    table_loop,
    table_policy,
    table_sampler,
    table_state,
)
from gdlx.solvers.runs import table_solver
from gdlx.tests.helpers import samples, tables

PLUS = regret_matching.Settings(beta=-np.inf, gamma=1.0)
MINIMISERS = {
    "linear": regret_matching.Settings(1.0, 1.0, 1.0),
    "cfr+": PLUS,
    "dcfr": regret_matching.Settings(1.5, 0.0, 2.0),
    "pcfr+": PLUS._replace(optimism=1.0, gamma=2.0),
    "schedule": regret_matching.Settings(
        1.0, -1.0, 5.0, alpha_change=1.0, beta_change=-1.0, gamma_change=-2.0, horizon=10.0
    ),
}


class SameDraws:
    """Replaces `rng` in sampling on trees, to draw the same random numbers as sampling on the environment."""

    make_streams = staticmethod(rng.make_streams)

    def __init__(self, form: sampling_form.SamplingForm) -> None:
        self.players = form.players
        self.levels = [
            ([_chooser(form, slot) for slot in level.choices], level.chance is not None) for level in form.levels
        ]

    def draw_rows(self, streams: rng.Streams, count: int) -> tuple[rng.Streams, jax.Array]:
        words = []
        for choosers, has_chance in self.levels:
            streams, now = rng.draw_rows(streams, self.players + 1)
            words += [now[player] for player in choosers]
            words += [now[self.players]] if has_chance else []
        assert len(words) == count
        return streams, jnp.stack(words)


def _chooser(form: sampling_form.SamplingForm, slot: sampling_form.ChoiceSlot) -> int:
    """Returns the player that acts in a slot; in these games it is the same at all nodes."""
    columns = np.unique(np.asarray(slot.column))[:-1]
    (chooser,) = [
        n
        for n in range(form.players)
        if (columns >= form.player_columns(n).start).all() and (columns < form.player_columns(n).stop).all()
    ]
    return chooser


@pytest.mark.parametrize(
    ("game", "minimiser"),
    [
        pytest.param("kuhn_poker", "linear", marks=pytest.mark.slow),
        ("kuhn_poker", "dcfr"),
        pytest.param("goofspiel:cards=3", "cfr+", marks=pytest.mark.slow),
        pytest.param("goofspiel:cards=3", "pcfr+", marks=pytest.mark.slow),
        pytest.param("goofspiel:cards=3", "schedule", marks=pytest.mark.slow),
        pytest.param("smallest:numbers=3,steps=1", "linear", marks=pytest.mark.slow),
        ("monty_hall", "linear"),
    ],
)
def test_equals_dense_tables(game: str, minimiser: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Regrets and averages of every information set are equal after some iterations, with folds at every fourth.

    Not after many: without exploration rare actions magnify rounding errors of their probabilities.
    """
    monkeypatch.setattr(table_state, "FOLD_INTERVAL", 4)
    task = tasks.make_tree_task(game_spec.GameSpec(game), keep_edges=True)
    form = sampling_form.sampling_form(task.tree)
    monkeypatch.setattr(outcome_sampling, "rng", SameDraws(form))
    # Without exploration both sample the same action with the same random number.
    settings: Any = jax.tree.map(np.float32, mccfr.MccfrSettings(MINIMISERS[minimiser], 0.0))
    batch, iterations, key = 64, 10, jax.random.key(3)
    env = gdlx.make(game)
    packed = packed_env.PackedEnv(env)
    config = table_state.SamplerConfig(batch, 16, optimism=settings.minimiser.optimism is not None)
    loop = table_loop.make_loop(tuple(jax.devices()[:1]), packed, config)
    table = loop.advance(table_state.init(packed, config, 8, 1), settings, key, iterations)
    dense = mccfr.init(form)
    step = jax.jit(functools.partial(mccfr.step, sampler=outcome_sampling.sample, batch=batch))
    for _ in range(iterations):
        dense = step(form, dense, settings, key)
    weight = np.asarray(table_policy.average_policy(table, settings.minimiser).cumulative_policy)
    discounts = table_state.cumulative_discounts(settings.minimiser, jnp.asarray(8))
    stamp = np.asarray(table.entries.stamp)
    for number, player in enumerate(task.tree.players):
        row = tables.lookup_rows(table, task, env.num_actions, number)
        known = row >= 0
        assert known.sum() > 0
        uniform = tables.uniform_reach(player)
        # Information sets that were never visited are not in the table, and have no regret.
        assert not np.asarray(dense.regret[number])[:, ~known].any()
        for decision in np.flatnonzero(known):
            actions = player.action[player.first[decision] : player.first[decision + 1]]
            actual = np.asarray(table.entries.regret)[row[decision], actions]
            last = stamp[row[decision]]
            pending = np.where(
                actual > 0,
                discounts.positive[2] - discounts.positive[last],
                discounts.negative[2] - discounts.negative[last],
            )
            expected = np.asarray(dense.regret[number])[: len(actions), decision] * uniform[decision]
            np.testing.assert_allclose(actual * np.exp(pending), expected, rtol=2e-3, atol=2e-3)
            average = np.asarray(dense.cumulative_policy[number])[: len(actions), decision]
            actual = weight[row[decision], actions]
            np.testing.assert_allclose(actual * average.sum(), average * actual.sum(), rtol=2e-3, atol=1e-4)


@pytest.mark.parametrize(
    "game",
    [
        "kuhn_poker",
        *(pytest.param(game, marks=pytest.mark.slow) for game in ("goofspiel:cards=3", "smallest:numbers=3,steps=1")),
    ],
)
def test_baselines_leave_regrets_unbiased(game: str) -> None:
    """Means of sampled regrets, with wild baselines, against the exact regrets of every information set."""
    known = tables.make_random_table(game)
    config = table_state.SamplerConfig(256, 16, baselines=True)
    settings = mccfr.MccfrSettings(*jax.tree.map(np.float32, (tables.DEFAULT_SETTINGS, 0.5, 0.1)))
    discounts = tables.first_iteration_discounts()
    updates = [
        jax.jit(table_sampler.TrajectoryBatch(known.packed, settings, discounts, config, None, number).update)
        for number in range(len(known.task.tree.players))
    ]
    state = known.state._replace(baselines=wild_values(known, updates))
    for number, update in enumerate(updates):
        tables.assert_unbiased(known, state, update, number, 150)


def wild_values(known: tables.RandomTable, updates: Sequence[tables.Update]) -> state_baselines.StateBaselines:
    """Returns random baselines for all states that updates meet; some are unknown."""
    state = known.state._replace(
        baselines=state_baselines.init(known.packed.env.num_players, known.packed.env.num_actions, 9)
    )
    for number, update in enumerate(updates):
        state = update(state, jax.random.key(number))
    values = state.baselines
    assert values is not None
    random, shape = np.random.default_rng(1), values.value[0].shape
    unknown = random.uniform(size=shape) < 0.3  # these use the baseline of the previous action
    return values._replace(
        value=tuple(
            jnp.asarray(np.where(unknown, np.nan, random.normal(0, 20, shape)), jnp.float32) for _ in values.value
        )
    )


@pytest.mark.parametrize(
    ("name", "grow"),
    [
        pytest.param("os-mccfr", "all", marks=pytest.mark.slow),
        pytest.param("os-mccfr", "first", marks=pytest.mark.slow),
        ("vr-mccfr", "all"),
    ],
)
def test_kuhn_is_solved(name: str, grow: str) -> None:
    solution = gdlx.solve("kuhn_poker", name, iterations=1_600, table=8, batch=64, grow=grow)
    assert solution.exploitability is not None
    assert solution.exploitability < 0.03
    assert solution.value[0] == pytest.approx(-1 / 18, abs=0.02)


@pytest.mark.slow
def test_first_adds_one_infoset_per_trajectory() -> None:
    """One iteration has one trajectory for each of two players, and adds one or two information sets."""
    solver = tables.make_solver("leduc_poker", batch=1, grow="first")
    state = solver.advance(solver.init(), 1)
    assert 1 <= int(hash_table.count_used(state.table)) <= 2
    growing_all = tables.make_solver("leduc_poker", batch=1)
    assert int(hash_table.count_used(growing_all.advance(growing_all.init(), 1).table)) > 2


def test_a_full_table_keeps_what_it_has() -> None:
    solver = tables.make_solver("leduc_poker", table=4)
    state = solver.advance(solver.init(), 20)
    assert solver.measure(state, 0.0).load == pytest.approx(hash_table.MAX_LOAD_FACTOR, abs=0.2)
    assert solver.dropped_visits(state) > 0
    keys = np.asarray(state.table.high)
    before = solver.policy(state).cumulative_policy[:-1].sum()
    after = solver.advance(state, 20)
    np.testing.assert_array_equal(after.table.high, keys)
    assert float(solver.policy(after).cumulative_policy[:-1].sum()) > float(before) * 0.5  # still learning
    assert solver.measure(after, 0.0).exploitability is not None


def test_trajectories_longer_than_max_steps() -> None:
    solver = tables.make_solver("kuhn_poker", max_steps=2)
    with pytest.raises(table_solver.TableError, match="`max_steps=4`"):
        solver.measure(solver.advance(solver.init(), 1), 0.0)


def sheet_of(tmp_path: pathlib.Path, goals: str) -> str:
    """Writes a rulesheet with one simultaneous choice and these goals; returns its path."""
    sheet = tmp_path / "choice.gdl"
    sheet.write_text(
        "(role left) (role right) (init open) (move yes) (move no)\n"
        "(<= (legal ?p ?m) (role ?p) (move ?m) (true open))\n"
        "(<= (next (did ?p ?m)) (does ?p ?m))\n"
        "(<= terminal (not (true open)))\n" + goals
    )
    return str(sheet)


_EVEN = "(<= (goal left 50) (true (did left yes))) (<= (goal left 100) (true (did left no)))\n"


@pytest.mark.parametrize(
    ("goals", "allowed", "message"),
    [
        (_EVEN + "(goal right 50) (<= (goal right 0) (true (did left no)))", "refuse", "`goal_conflict='max'`"),
        (_EVEN + "(goal right 50) (<= (goal right 0) (true (did left no)))", "max", None),
    ],
)
def test_several_goal_values(goals: str, allowed: Any, message: str | None, tmp_path: pathlib.Path) -> None:
    tree = game_spec.unroll_game(game_spec.GameSpec(sheet_of(tmp_path, goals), goal_conflict="max"))
    env = gdlx.make(sheet_of(tmp_path, goals), payoff="goal")
    task = tasks.TableTask(game_spec.GameSpec("choice", "goal", allowed), env, tree, None)
    solver = table_solver.TableSolver(task, tables.configure())
    state = solver.advance(solver.init(), 1)
    if message is None:
        assert solver.measure(state, 0.0).samples == 128
        assert int(state.abnormal.conflicts) > 0
    else:
        with pytest.raises(game_tree.GoalConflictError, match=message):
            solver.measure(state, 0.0)


def test_goals_that_do_not_add_up(tmp_path: pathlib.Path) -> None:
    """The environment claims that the game is zero-sum, as if random play had not detected otherwise."""
    goals = _EVEN + "(<= (goal right 50) (true (did right yes))) (<= (goal right 0) (true (did right no)))"
    env = gdlx.make(sheet_of(tmp_path, goals), payoff="goal")
    env = dataclasses.replace(env, payoffs=payoffs.Payoffs(50.0, True, False))
    tree = game_spec.unroll_game(game_spec.GameSpec(sheet_of(tmp_path, goals), "goal"))
    solver = table_solver.TableSolver(
        tasks.TableTask(game_spec.GameSpec("choice"), env, tree, None), tables.configure()
    )
    with pytest.raises(payoffs.PayoffError, match="`payoff='goal'`"):
        solver.measure(solver.advance(solver.init(), 1), 0.0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"table": 3}, "4 to 28"),
        ({"table": 40}, "4 to 28"),
        ({"table": 28}, "use a smaller table, `table=25` or less"),
        ({"batch": 2**26}, "smaller `batch=`"),
    ],
)
def test_tables_and_batches_that_do_not_fit(
    changes: dict[str, int], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "machine_memory_bytes", lambda: 2**33)
    with pytest.raises(table_solver.TableError, match=message):
        tables.make_solver("leduc_poker", **changes)


@pytest.mark.parametrize("name", ["es-mccfr", "as-mccfr"])
def test_algorithms_without_tables(name: str) -> None:
    with pytest.raises(algorithms.UnknownAlgorithmError, match="no hash table"):
        tables.configure(name)


def test_the_same_key_gives_the_same_run() -> None:
    runs = []
    for seed in (1, 1, 2):
        solver = tables.make_solver("kuhn_poker", seed=seed)
        uninterrupted = solver.advance(solver.init(), 10)
        resumed = solver.advance(solver.advance(solver.init(), 3), 7)
        np.testing.assert_array_equal(uninterrupted.entries.regret, resumed.entries.regret)
        runs.append(np.asarray(uninterrupted.entries.regret))
    np.testing.assert_array_equal(runs[0], runs[1])
    assert (runs[0] != runs[2]).any()


def test_matches_estimate_the_value() -> None:
    """The estimates agree with the exact value of the same policies."""
    solver = tables.make_solver("kuhn_poker")
    state = solver.advance(solver.init(), 20)
    exact = solver.measure(state, 0.0).value
    task = tables.load_task("kuhn_poker")
    scores = table_solver.estimate_value(task, solver.policy(state), 0, 0)
    assert scores.unfinished == 0
    for mean, error, value in zip(scores.mean, scores.error, exact, strict=True):
        assert 0 < error < 0.02
        assert abs(mean - value) < 4 * error


_DEVICES = """
import sys
import jax, numpy as np
from gdlx.envs import game_spec
from gdlx.solvers.mccfr import hash_table
from gdlx.solvers import algorithms, tasks
from gdlx.solvers.runs import table_solver
task = tasks.make_table_task(game_spec.GameSpec("goofspiel:cards=3"))
chosen = algorithms.configure(algorithms.find("vr-mccfr"), None, {"batch": 64, "table": 8})
process = table_solver.TableSolver(task, chosen, tuple(jax.devices()))
state = process.advance(process.init(), 3)
# Through a checkpoint and back, whatever the number of devices.
state = process.advance(process.from_checkpoint(process.to_checkpoint(state)), 2)
regret, policy = state.entries.regret, process.policies(state)
numbers = [np.ravel(regret[:-1]), *policy]
print(len(jax.devices()), *np.concatenate(numbers).tolist())
"""


@pytest.mark.slow  # tests/nets/models/test_sharding.py and tests/envs/packed/test_playouts.py have similar tests
def test_one_device_and_eight() -> None:
    one, eight = (samples.run_with_devices(_DEVICES, count) for count in (1, 8))
    np.testing.assert_allclose(one, eight, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
def test_lowers_for_accelerators(platform: str) -> None:
    packed = packed_env.PackedEnv(tables.load_task("kuhn_poker").env)
    config = table_state.SamplerConfig(64, 8, "all", True)
    settings = mccfr.MccfrSettings(regret_matching.Settings(1.0, 1.0, 1.0), 0.6, 0.1)

    def run(state: table_state.TableState, key: jax.Array) -> table_state.TableState:
        return table_loop.advance(packed, state, settings, jax.random.wrap_key_data(key), 3, config=config)

    lowered = jax.export.export(jax.jit(run), platforms=[platform])(
        table_state.init(packed, config, 8, 1), jax.random.key_data(jax.random.key(0))
    )
    assert lowered.platforms == (platform,)
