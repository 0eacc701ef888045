"""What tests of sampling into hash tables share: a state that knows a whole game, and the exact regrets of it."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import gdlx
from gdlx.envs import game_spec
from gdlx.envs.packed import packed_env
from gdlx.envs.trees import game_tree, infoset_keys
from gdlx.envs.views import history, public
from gdlx.solvers import algorithms, tabular_policies, tasks
from gdlx.solvers.exact import best_response, regret_matching
from gdlx.solvers.mccfr import hash_table, mccfr, table_loop, table_rows, table_state
from gdlx.solvers.runs import table_solver

DEFAULT_SETTINGS = regret_matching.Settings()
_BITS, _STEPS = 8, 16


class RandomTable(NamedTuple):
    """A game with random policies at all its sets, kept as regrets. The state has no axis of devices."""

    task: tasks.TreeTask
    packed: packed_env.PackedEnv
    state: table_state.TableState
    rows: list[Any]  # of each player's sets
    policies: list[Any]


@functools.cache
def make_random_table(game: str, *, with_public: bool = False) -> RandomTable:
    task = tasks.make_tree_task(game_spec.GameSpec(game))
    env = gdlx.make(game)
    moving = packed_env.PackedEnv(env, public.find_public_info(env.propnet) if with_public else None)
    config = table_state.SamplerConfig(256, _STEPS)
    runner = table_loop.make_loop(tuple(jax.devices()[:1]), moving, config)
    settings = mccfr.MccfrSettings(*jax.tree.map(np.float32, (DEFAULT_SETTINGS, 1.0)))
    state = runner.advance(table_state.init(moving, config, _BITS, 1), settings, jax.random.key(0), 3)
    start = np.random.default_rng(1).uniform(0.2, 1, state.entries.regret.shape)
    state = state._replace(
        entries=state.entries._replace(
            regret=jnp.asarray(start, jnp.float32), stamp=jnp.zeros_like(state.entries.stamp)
        ),
        averages=jax.tree.map(lambda x: jnp.zeros_like(x[0]), state.averages),
    )
    actual = [lookup_rows(state, task, env.num_actions, n) for n in range(len(task.tree.players))]
    policies = []
    for player, row in zip(task.tree.players, actual, strict=True):
        assert (row >= 0).all()
        own = np.repeat(row, np.diff(player.first))
        policies.append(tabular_policies.normalise(player, np.concatenate([[1.0], start[own, player.action[1:]]])))
    return RandomTable(task, moving, state, actual, policies)


def lookup_rows(state: table_state.TableState, task: tasks.TreeTask, moves: int, player: int) -> Any:
    high, low = infoset_keys.compute_infoset_keys(task.tree, player, moves)
    keys = table_rows.player_keys(jnp.asarray(high), jnp.asarray(low), player)
    return np.asarray(jax.jit(hash_table.lookup)(state.table, keys))


def first_iteration_discounts() -> table_state.IterationDiscounts:
    return table_state.IterationDiscounts(
        table_state.cumulative_discounts(DEFAULT_SETTINGS, jnp.asarray(0)),
        regret_matching.discounts(DEFAULT_SETTINGS, jnp.asarray(1)),
        jnp.asarray(1),
    )


def exact_regrets(game: RandomTable, number: int) -> list[Any]:
    """Of each set of a player, as a hash table has them."""
    player, policy = game.task.tree.players[number], game.policies[number]
    profile = tabular_policies.to_levels(game.task.tree, game.task.layouts, game.policies)
    levels = best_response.counterfactual_values(game.task.form, profile, number)
    values = tabular_policies.player_from_levels(game.task.layouts[number], levels)
    collected = []
    for decision, reach in enumerate(uniform_reach(player)):
        part = slice(player.first[decision], player.first[decision + 1])
        collected.append((values[part] - values[part] @ policy[part]) * reach)
    return collected


def uniform_reach(player: game_tree.Player) -> Any:
    """[I] of each set if its player played uniformly: what regrets in a hash table are multiplied by."""
    actual = np.ones(player.sets)
    widths = np.diff(player.first)
    for decision in range(player.sets):
        parent = int(player.parent[decision])
        if parent:
            before = int(np.searchsorted(player.first, parent, side="right")) - 1
            actual[decision] = actual[before] / widths[before]
    return actual


Update = Callable[[table_state.TableState, jax.Array], table_state.TableState]


def assert_unbiased(
    game: RandomTable, state: table_state.TableState, update: Update, number: int, repeats: int
) -> dict[int, float]:
    """Means of sampled regrets of a player are the exact ones; standard errors of the first option of every set."""
    player = game.task.tree.players[number]
    keys = jax.random.split(jax.random.key(number), repeats)
    drawn = np.stack([np.asarray(update(state, key).entries.regret, float) for key in keys])
    drawn -= np.asarray(state.entries.regret, float)
    errors = {}
    for decision, expected in enumerate(exact_regrets(game, number)):
        part = slice(player.first[decision], player.first[decision + 1])
        got = drawn[:, game.rows[number][decision], player.action[part]]
        error = got.std(axis=0) / np.sqrt(len(got))
        assert (np.abs(got.mean(axis=0) - expected) <= 4 * error + 1e-3).all(), (number, decision)
        errors[decision] = float(error[0])
    return errors


def lookup_history(state: table_state.TableState, view: history.ActionObservationHistory) -> int:
    """The row of the set that a view is at."""
    high, low = table_key(view)
    return int(jax.jit(hash_table.lookup)(state.table, (high[None], low[None]))[0])


def table_key(view: history.ActionObservationHistory) -> tuple[Any, Any]:
    """The key of a view's set in a table."""
    high, low = view.keys[-1]
    return table_rows.player_keys(jnp.asarray(high), jnp.asarray(low), view.player)


def configure(name: str = "os-mccfr", **changes: Any) -> algorithms.Algorithm:
    return algorithms.configure(algorithms.find(name), None, {"table": 8, "batch": 64, **changes})


@functools.cache
def load_task(game: str) -> tasks.TableTask:
    return tasks.make_table_task(game_spec.GameSpec(game))


def make_solver(game: str, **changes: Any) -> table_solver.TableSolver:
    return table_solver.TableSolver(load_task(game), configure(**changes))
