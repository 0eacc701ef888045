"""Approximate best responses: learnt values against exact ones, and payoffs as bounds on the exact exploitability."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gdlx
from gdlx.envs import game_spec
from gdlx.envs.packed import packed_env
from gdlx.envs.trees import infoset_keys
from gdlx.solvers import tabular_policies, tasks
from gdlx.solvers.bounds import approximate_response
from gdlx.solvers.exact import best_response, realization_plans
from gdlx.solvers.mccfr import hash_table, table_policy, table_rows
from gdlx.tests.helpers import samples

CONFIG = approximate_response.LearnerConfig(steps=12, batch=512)
BITS = 8


class Frozen(NamedTuple):
    """A game and random policies."""

    task: tasks.TreeTask
    game: packed_env.PackedEnv
    policies: tabular_policies.Policies
    table: table_policy.TablePolicy


@functools.cache
def frozen(name: str) -> Frozen:
    task, game = tasks.make_tree_task(game_spec.GameSpec(name)), packed_env.PackedEnv(gdlx.make(name))
    rng = np.random.default_rng(0)
    policies = tuple(tabular_policies.normalise(own, rng.uniform(0.1, 1, own.sequences)) for own in task.tree.players)
    return Frozen(task, game, policies, table_policy.from_tabular(policies, game.env, task.tree))


def settings(found: Frozen) -> approximate_response.LearnerSettings:
    low, high = found.task.payoff_range
    return approximate_response.LearnerSettings(np.float32((high - low) / 2))


@functools.cache
def learnt(name: str, player: int, batches: int) -> approximate_response.LearnerState:
    """Shared by all tests, which only read it."""
    found = frozen(name)
    start = approximate_response.init(found.game, BITS)
    key = jax.random.key(3)
    arguments = (settings(found), key, player, batches)
    learner: approximate_response.LearnerState = approximate_response.learn(
        found.game, found.table, start, *arguments, config=CONFIG
    )
    return learner


def best_values(found: Frozen, number: int) -> Any:
    """Counterfactual values of every action of a player if all its later actions are best."""
    profile = tabular_policies.to_levels(found.task.tree, found.task.layouts, found.policies)
    player, reach = found.task.form.players[number], best_response.flat_realization_plans(found.task.form, profile)
    others = [plan for n, plan in enumerate(reach) if n != number]
    levels, _ = realization_plans.backup_values(
        player, realization_plans.utilities(player, others, ()), best_response.best_action_value(player)
    )
    return tabular_policies.player_from_levels(found.task.layouts[number], levels)


def counterfactual_reach(found: Frozen, number: int) -> Any:
    """Counterfactual reach [I] of each information set of a player: from all terminals after it."""
    tree, player = found.task.tree, found.task.tree.players[number]
    total = np.zeros(player.sets)
    plans = [
        tabular_policies.realization_plan(own, policy) for own, policy in zip(tree.players, found.policies, strict=True)
    ]
    own_reach = plans[number]
    weight = np.array(tree.terminals.weight, float)
    for n, plan in enumerate(plans):
        weight = weight * plan[tree.terminals.sequence[:, n]]
    infoset_of = np.repeat(np.arange(player.sets), np.diff(player.first))
    for end, sequence in enumerate(tree.terminals.sequence[:, number].tolist()):
        while sequence:
            decision = int(infoset_of[sequence - 1])
            total[decision] += weight[end] / own_reach[player.parent[decision]]
            sequence = int(player.parent[decision])
    return total


def table_rows_of(table: hash_table.Table, found: Frozen, player: int) -> Any:
    """Rows [I] of a player's information sets; -1 where they are not in the table."""
    high, low = infoset_keys.compute_infoset_keys(found.task.tree, player, found.game.env.num_actions)
    return np.asarray(
        jax.jit(hash_table.lookup)(table, table_rows.player_keys(jnp.asarray(high), jnp.asarray(low), player))
    )


@pytest.mark.parametrize(
    ("name", "player"),
    [("kuhn_poker", 0), ("kuhn_poker", 1), pytest.param("goofspiel:cards=3", 0, marks=pytest.mark.slow)],
)
def test_means_are_values_of_best_play(name: str, player: int) -> None:
    found, learner = frozen(name), learnt(name, player, 400)
    own = found.task.tree.players[player]
    row = table_rows_of(learner.table, found, player)
    assert (row >= 0).all()
    reach, exact = counterfactual_reach(found, player), best_values(found, player)
    checked = 0
    for decision in range(own.sets):
        for sequence in range(own.first[decision], own.first[decision + 1]):
            visits, total = (
                float(part[row[decision], own.action[sequence]]) for part in (learner.visits, learner.total)
            )
            if visits > 1_000:
                expected = exact[sequence] / reach[decision]
                error = float(settings(found).payoff_std) / np.sqrt(visits)
                assert abs(total / visits - expected) < 4 * error, (decision, sequence)
                checked += 1
    assert checked > own.sets / 2


@pytest.mark.parametrize("name", ["kuhn_poker", "goofspiel:cards=3"])
def test_responses_are_nearly_best(name: str) -> None:
    found = frozen(name)
    exact = found.task.metrics(found.policies)
    for player in range(2):
        response = approximate_response.greedy_response(learnt(name, player, 400), settings(found))
        policies = list(found.policies)
        policies[player] = table_policy.to_tabular(response, found.game.env, found.task.tree)[0][player]
        gain = found.task.metrics(tuple(policies)).value[player] - exact.value[player]
        assert 0.9 * exact.improvements[player] < gain < exact.improvements[player] + 1e-4


def test_bound() -> None:
    found = frozen("kuhn_poker")
    exact = found.task.metrics(found.policies).exploitability
    assert exact is not None
    budget = approximate_response.Budget(CONFIG, batches=400, matches=2**14, bits=BITS)
    told = approximate_response.estimate_bound(found.game, found.table, jax.random.key(0), budget)
    assert 0.8 * exact < told.exploitability < exact + 4 * told.standard_error


def played(found: Frozen, response: table_policy.TablePolicy, player: int, steps: int = CONFIG.steps) -> Any:
    key = jax.random.key(1)
    return np.asarray(
        approximate_response.play(found.game, found.table, response, key, player, matches=2**14, steps=steps),
        np.float64,
    )


def test_who_has_learnt_nothing_plays_on() -> None:
    found = frozen("kuhn_poker")
    value = found.task.metrics(found.policies).value
    for player in range(2):
        nothing = approximate_response.greedy_response(approximate_response.init(found.game, BITS), settings(found))
        payoff = played(found, nothing, player)
        assert abs(payoff.mean() - value[player]) < 4 * payoff.std() / 2**7


def test_matches_tell_the_payoff_of_a_response() -> None:
    """The payoff of a partial response: approximate at known information sets, frozen elsewhere."""
    found = frozen("kuhn_poker")
    response = approximate_response.greedy_response(learnt("kuhn_poker", 0, 1), settings(found))
    own = found.task.tree.players[0]
    row = table_rows_of(response.table, found, 0)
    is_known = np.asarray(response.cumulative_policy)[row].sum(axis=1) > 0
    is_known &= row >= 0
    assert 0 < is_known.sum() < own.sets
    policies = list(found.policies)
    learnt_policy = table_policy.to_tabular(response, found.game.env, found.task.tree)[0][0]
    is_learnt = np.concatenate([[False], np.repeat(is_known, np.diff(own.first))])
    policies[0] = np.where(is_learnt, learnt_policy, found.policies[0])
    payoff = played(found, response, 0)
    assert abs(payoff.mean() - found.task.metrics(tuple(policies)).value[0]) < 4 * payoff.std() / 2**7


def test_a_full_table_takes_no_more() -> None:
    found = frozen("kuhn_poker")
    start = approximate_response.init(found.game, 1)
    arguments = (settings(found), jax.random.key(3), 0, 20)
    learner = approximate_response.learn(found.game, found.table, start, *arguments, config=CONFIG)
    assert int(hash_table.count_used(learner.table)) == 2
    assert float(learner.visits[:-1].sum()) > 0


def test_no_room_for_the_end_counts_as_the_lowest_payoff() -> None:
    found = frozen("kuhn_poker")
    nothing = approximate_response.greedy_response(approximate_response.init(found.game, BITS), settings(found))
    assert (played(found, nothing, 0, steps=2) == found.task.payoff_range[0]).all()


def test_going_on_is_as_if_never_stopped() -> None:
    found = frozen("kuhn_poker")
    learner = approximate_response.init(found.game, BITS)
    for _ in range(2):
        learner = approximate_response.learn(
            found.game, found.table, learner, settings(found), jax.random.key(3), 0, 200, config=CONFIG
        )
    for one, other in zip(jax.tree.leaves(learner), jax.tree.leaves(learnt("kuhn_poker", 0, 400)), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("game", ["kuhn_poker", "goofspiel:cards=3", "smallest:numbers=3,steps=1"])
def test_policies_of_a_tree_as_a_table(game: str) -> None:
    tree, env = samples.load_tree(game), gdlx.make(game)
    rng = np.random.default_rng(0)
    policies = tuple(
        tabular_policies.normalise(player, rng.uniform(0.1, 1, player.sequences)) for player in tree.players
    )
    found, known = table_policy.to_tabular(table_policy.from_tabular(policies, env, tree), env, tree)
    assert known == sum(player.sets for player in tree.players)
    for own, expected in zip(found, policies, strict=True):
        np.testing.assert_allclose(own, expected, rtol=1e-6)
