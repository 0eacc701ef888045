"""Sampling into a hash table: the same as dense tables, set by set; what is full, too long, stopped or divided."""

import dataclasses
import functools
import pathlib
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
    """Random numbers for trajectories on tables: those that trajectories on the environment draw."""

    streams = staticmethod(rng.make_streams)

    def __init__(self, form: sampling_form.SamplingForm) -> None:
        self.players = form.players
        self.levels = [
            ([_chooser(form, slot) for slot in level.choices], level.chance is not None) for level in form.levels
        ]

    def rows(self, streams: rng.Streams, count: int) -> tuple[rng.Streams, jax.Array]:
        words = []
        for choosers, has_chance in self.levels:
            streams, now = rng.draw_rows(streams, self.players + 1)
            words += [now[player] for player in choosers]
            words += [now[self.players]] if has_chance else []
        assert len(words) == count
        return streams, jnp.stack(words)


def _chooser(form: sampling_form.SamplingForm, slot: sampling_form.ChoiceSlot) -> int:
    """The player whose choice a slot is; in these games everybody's who comes there."""
    columns = np.unique(np.asarray(slot.column))[:-1]
    (found,) = [
        n for n in range(form.players) if (columns >= form.own(n).start).all() and (columns < form.own(n).stop).all()
    ]
    return found


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
    """Regrets and averages of every set after some iterations, with discounts made up for at every fourth.

    Not after many: without exploration rare options magnify what rounding does to their probabilities.
    """
    monkeypatch.setattr(table_state, "FOLD_INTERVAL", 4)
    task = tasks.make_tree_task(game_spec.GameSpec(game), keep_edges=True)
    form = sampling_form.sampling_form(task.tree)
    monkeypatch.setattr(outcome_sampling, "rng", SameDraws(form))
    # Without exploration both draw the same option with the same random number.
    settings: Any = jax.tree.map(np.float32, mccfr.MccfrSettings(MINIMISERS[minimiser], 0.0))
    batch, iterations, key = 64, 10, jax.random.key(3)
    env = gdlx.make(game)
    moving = packed_env.PackedEnv(env)
    config = table_state.SamplerConfig(batch, 16, optimism=settings.minimiser.optimism is not None)
    runner = table_loop.make_loop(tuple(jax.devices()[:1]), moving, config)
    table = runner.advance(table_state.init(moving, config, 8, 1), settings, key, iterations)
    dense = mccfr.init(form)
    step = jax.jit(functools.partial(mccfr.step, sampler=outcome_sampling.sample, batch=batch))
    for _ in range(iterations):
        dense = step(form, dense, settings, key)
    weight = np.asarray(table_policy.average_policy(table, settings.minimiser).cumulative_policy)
    made = table_state.cumulative_discounts(settings.minimiser, jnp.asarray(8))
    stamp = np.asarray(table.entries.stamp)
    for number, player in enumerate(task.tree.players):
        row = tables.lookup_rows(table, task, env.num_actions, number)
        known = row >= 0
        assert known.sum() > 0
        uniform = tables.uniform_reach(player)
        # What no trajectory came to is in no table, and has no regret.
        assert not np.asarray(dense.regret[number])[:, ~known].any()
        for decision in np.flatnonzero(known):
            actions = player.action[player.first[decision] : player.first[decision + 1]]
            kept = np.asarray(table.entries.regret)[row[decision], actions]
            last = stamp[row[decision]]
            missing = np.where(kept > 0, made.positive[2] - made.positive[last], made.negative[2] - made.negative[last])
            expected = np.asarray(dense.regret[number])[: len(actions), decision] * uniform[decision]
            np.testing.assert_allclose(kept * np.exp(missing), expected, rtol=2e-3, atol=2e-3)
            average = np.asarray(dense.cumulative_policy[number])[: len(actions), decision]
            kept = weight[row[decision], actions]
            np.testing.assert_allclose(kept * average.sum(), average * kept.sum(), rtol=2e-3, atol=1e-4)


@pytest.mark.parametrize(
    "game",
    [
        "kuhn_poker",
        *(pytest.param(game, marks=pytest.mark.slow) for game in ("goofspiel:cards=3", "smallest:numbers=3,steps=1")),
    ],
)
def test_baselines_leave_regrets_unbiased(game: str) -> None:
    """Means of sampled regrets, with wild baselines, against the exact ones of every set."""
    known = tables.make_random_table(game)
    config = table_state.SamplerConfig(256, 16, baselines=True)
    state = known.state._replace(baselines=wild_values(known, config))
    settings = mccfr.MccfrSettings(*jax.tree.map(np.float32, (tables.DEFAULT_SETTINGS, 0.5, 0.1)))
    for number in range(len(known.task.tree.players)):
        batch = table_sampler.TrajectoryBatch(
            known.packed, settings, tables.first_iteration_discounts(), config, None, number
        )
        tables.assert_unbiased(known, state, batch, number, 150)


def wild_values(known: tables.RandomTable, config: table_state.SamplerConfig) -> state_baselines.StateBaselines:
    """Baselines of all states that mean nothing, and of some nothing is known."""
    state = known.state._replace(
        baselines=state_baselines.init(known.packed.env.num_players, known.packed.env.num_actions, 9)
    )
    settings = mccfr.MccfrSettings(*jax.tree.map(np.float32, (tables.DEFAULT_SETTINGS, 1.0, 0.1)))
    for number in range(known.packed.env.num_players):
        batch = table_sampler.TrajectoryBatch(
            known.packed, settings, tables.first_iteration_discounts(), config, None, number
        )
        state = jax.jit(batch.update)(state, jax.random.key(number))
    values = state.baselines
    assert values is not None
    random, shape = np.random.default_rng(1), values.value[0].shape
    unknown = random.uniform(size=shape) < 0.3  # has the baseline of the choice before
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
    found = gdlx.solve("kuhn_poker", name, iterations=400, table=6, batch=256, grow=grow)
    assert found.exploitability is not None
    assert found.exploitability < 0.03
    assert found.value[0] == pytest.approx(-1 / 18, abs=0.02)


@pytest.mark.slow
def test_first_adds_one_set_for_each_trajectory() -> None:
    """After one iteration of one trajectory for each of two players at most two sets are known, and at least one."""
    process = tables.make_solver("leduc_poker", batch=1, grow="first")
    state = process.advance(process.init(), 1)
    assert 1 <= int(hash_table.count_used(state.table)) <= 2
    whole = tables.make_solver("leduc_poker", batch=1)
    assert int(hash_table.count_used(whole.advance(whole.init(), 1).table)) > 2


def test_a_full_table_keeps_what_it_has() -> None:
    process = tables.make_solver("leduc_poker", table=4)
    state = process.advance(process.init(), 20)
    assert process.measure(state, 0.0).load == pytest.approx(hash_table.MAX_LOAD_FACTOR, abs=0.2)
    assert process.dropped_visits(state) > 0
    keys = np.asarray(state.table.high)
    before = process.policy(state).cumulative_policy[:-1].sum()
    after = process.advance(state, 20)
    np.testing.assert_array_equal(after.table.high, keys)
    assert float(process.policy(after).cumulative_policy[:-1].sum()) > float(before) * 0.5  # still learning
    assert process.measure(after, 0.0).exploitability is not None


def test_no_room_for_the_end_of_a_trajectory() -> None:
    process = tables.make_solver("kuhn_poker", max_steps=2)
    with pytest.raises(table_solver.TableError, match="`max_steps=4`"):
        process.measure(process.advance(process.init(), 1), 0.0)


def sheet_of(tmp_path: pathlib.Path, goals: str) -> str:
    """One choice, then the end, whose goals are given."""
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
    process = table_solver.TableSolver(task, tables.configure())
    state = process.advance(process.init(), 1)
    if message is None:
        assert process.measure(state, 0.0).samples == 128
        assert int(state.abnormal.conflicts) > 0
    else:
        with pytest.raises(game_tree.GoalConflictError, match=message):
            process.measure(state, 0.0)


def test_goals_that_do_not_add_up(tmp_path: pathlib.Path) -> None:
    """As if random play had not shown it."""
    goals = _EVEN + "(<= (goal right 50) (true (did right yes))) (<= (goal right 0) (true (did right no)))"
    env = gdlx.make(sheet_of(tmp_path, goals), payoff="goal")
    env = dataclasses.replace(env, payoffs=payoffs.Payoffs(50.0, True, False))
    tree = game_spec.unroll_game(game_spec.GameSpec(sheet_of(tmp_path, goals), "goal"))
    process = table_solver.TableSolver(
        tasks.TableTask(game_spec.GameSpec("choice"), env, tree, None), tables.configure()
    )
    with pytest.raises(payoffs.PayoffError, match="`payoff='goal'`"):
        process.measure(process.advance(process.init(), 1), 0.0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"table": 3}, "4 to 28"),
        ({"table": 40}, "4 to 28"),
        ({"table": 28}, "smaller `table=`"),
        ({"batch": 2**26}, "smaller `batch=`"),
    ],
)
def test_what_does_not_fit(changes: dict[str, int], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "machine_memory_bytes", lambda: 2**33)
    with pytest.raises(table_solver.TableError, match=message):
        tables.make_solver("leduc_poker", **changes)


@pytest.mark.parametrize("name", ["es-mccfr", "as-mccfr"])
def test_schemes_without_tables(name: str) -> None:
    with pytest.raises(algorithms.UnknownAlgorithmError, match="no hash table"):
        tables.configure(name)


def test_the_same_key_gives_the_same_run() -> None:
    runs = []
    for seed in (1, 1, 2):
        process = tables.make_solver("kuhn_poker", seed=seed)
        whole = process.advance(process.init(), 10)
        parts = process.advance(process.advance(process.init(), 3), 7)
        np.testing.assert_array_equal(whole.entries.regret, parts.entries.regret)
        runs.append(np.asarray(whole.entries.regret))
    np.testing.assert_array_equal(runs[0], runs[1])
    assert (runs[0] != runs[2]).any()


def test_matches_tell_the_value() -> None:
    """Against the exact value of the same policies."""
    process = tables.make_solver("kuhn_poker")
    state = process.advance(process.init(), 20)
    exact = process.measure(state, 0.0).value
    task = tables.load_task("kuhn_poker")
    found = table_solver.estimate_value(task, process.policy(state), 0, 0)
    assert found.unfinished == 0
    for mean, error, value in zip(found.mean, found.error, exact, strict=True):
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
state = process.advance(process.restored(process.saved(state)), 2)
regret, policy = state.entries.regret, process.policies(state)
numbers = [np.ravel(regret[:-1]), *policy]
print(len(jax.devices()), *np.concatenate(numbers).tolist())
"""


@pytest.mark.slow  # tests/nets/models/test_sharding.py and tests/envs/packed/test_playouts.py have others of their kind
def test_one_device_and_eight() -> None:
    one, eight = (samples.run_with_devices(_DEVICES, count) for count in (1, 8))
    np.testing.assert_allclose(one, eight, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
def test_lowers_for_accelerators(platform: str) -> None:
    moving = packed_env.PackedEnv(tables.load_task("kuhn_poker").env)
    config = table_state.SamplerConfig(64, 8, "all", True)
    settings = mccfr.MccfrSettings(regret_matching.Settings(1.0, 1.0, 1.0), 0.6, 0.1)

    def run(state: table_state.TableState, key: jax.Array) -> table_state.TableState:
        return table_loop.advance(moving, state, settings, jax.random.wrap_key_data(key), 3, config=config)

    lowered = jax.export.export(jax.jit(run), platforms=[platform])(
        table_state.init(moving, config, 8, 1), jax.random.key_data(jax.random.key(0))
    )
    assert lowered.platforms == (platform,)
