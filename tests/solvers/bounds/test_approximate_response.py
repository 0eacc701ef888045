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


def settings(frozen_game: Frozen) -> approximate_response.LearnerSettings:
    low, high = frozen_game.task.payoff_range
    return approximate_response.LearnerSettings(np.float32((high - low) / 2))


@functools.cache
def learnt(name: str, player: int, batches: int) -> approximate_response.LearnerState:
    """Shared by all tests, which only read it."""
    frozen_game = frozen(name)
    start = approximate_response.init(frozen_game.game, BITS)
    key = jax.random.key(3)
    arguments = (settings(frozen_game), key, player, batches)
    learner: approximate_response.LearnerState = approximate_response.learn(
        frozen_game.game, frozen_game.table, start, *arguments, config=CONFIG
    )
    return learner


def best_values(frozen_game: Frozen, number: int) -> Any:
    """Counterfactual values of every action of a player if all its later actions are best."""
    profile = tabular_policies.to_levels(frozen_game.task.tree, frozen_game.task.layouts, frozen_game.policies)
    player, reach = (
        frozen_game.task.form.players[number],
        best_response.flat_realization_plans(frozen_game.task.form, profile),
    )
    others = [plan for n, plan in enumerate(reach) if n != number]
    levels, _ = realization_plans.backup_values(
        player, realization_plans.utilities(player, others, ()), best_response.best_action_value(player)
    )
    return tabular_policies.player_from_levels(frozen_game.task.layouts[number], levels)


def counterfactual_reach(frozen_game: Frozen, number: int) -> Any:
    """Counterfactual reach [I] of each information set of a player: from all terminals after it."""
    tree, player = frozen_game.task.tree, frozen_game.task.tree.players[number]
    total = np.zeros(player.sets)
    plans = [
        tabular_policies.realization_plan(chosen, policy)
        for chosen, policy in zip(tree.players, frozen_game.policies, strict=True)
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


def table_rows_of(table: hash_table.Table, frozen_game: Frozen, player: int) -> Any:
    """Rows [I] of a player's information sets; -1 where they are not in the table."""
    high, low = infoset_keys.compute_infoset_keys(frozen_game.task.tree, player, frozen_game.game.env.num_actions)
    return np.asarray(
        jax.jit(hash_table.lookup)(table, table_rows.player_keys(jnp.asarray(high), jnp.asarray(low), player))
    )


@pytest.mark.parametrize(
    ("name", "player"),
    [("kuhn_poker", 0), ("kuhn_poker", 1), pytest.param("goofspiel:cards=3", 0, marks=pytest.mark.slow)],
)
def test_means_are_values_of_best_play(name: str, player: int) -> None:
    frozen_game, learner = frozen(name), learnt(name, player, 400)
    subject = frozen_game.task.tree.players[player]
    row = table_rows_of(learner.table, frozen_game, player)
    assert (row >= 0).all()
    reach, exact = counterfactual_reach(frozen_game, player), best_values(frozen_game, player)
    checked = 0
    for decision in range(subject.sets):
        for sequence in range(subject.first[decision], subject.first[decision + 1]):
            visits, total = (
                float(part[row[decision], subject.action[sequence]]) for part in (learner.visits, learner.total)
            )
            if visits > 1_000:
                expected = exact[sequence] / reach[decision]
                error = float(settings(frozen_game).payoff_std) / np.sqrt(visits)
                assert abs(total / visits - expected) < 4 * error, (decision, sequence)
                checked += 1
    assert checked > subject.sets / 2


@pytest.mark.parametrize("name", ["kuhn_poker", "goofspiel:cards=3"])
def test_responses_are_nearly_best(name: str) -> None:
    frozen_game = frozen(name)
    exact = frozen_game.task.metrics(frozen_game.policies)
    for player in range(2):
        response = approximate_response.greedy_response(learnt(name, player, 400), settings(frozen_game))
        policies = list(frozen_game.policies)
        policies[player] = table_policy.to_tabular(response, frozen_game.game.env, frozen_game.task.tree)[0][player]
        gain = frozen_game.task.metrics(tuple(policies)).value[player] - exact.value[player]
        assert 0.9 * exact.improvements[player] < gain < exact.improvements[player] + 1e-4


def test_bound() -> None:
    frozen_game = frozen("kuhn_poker")
    exact = frozen_game.task.metrics(frozen_game.policies).exploitability
    assert exact is not None
    budget = approximate_response.Budget(CONFIG, batches=400, matches=2**14, bits=BITS)
    reported = approximate_response.estimate_bound(frozen_game.game, frozen_game.table, jax.random.key(0), budget)
    assert 0.8 * exact < reported.exploitability < exact + 4 * reported.standard_error


def played(frozen_game: Frozen, response: table_policy.TablePolicy, player: int, steps: int = CONFIG.steps) -> Any:
    key = jax.random.key(1)
    return np.asarray(
        approximate_response.play(
            frozen_game.game, frozen_game.table, response, key, player, matches=2**14, steps=steps
        ),
        np.float64,
    )


def test_who_has_learnt_nothing_plays_on() -> None:
    frozen_game = frozen("kuhn_poker")
    value = frozen_game.task.metrics(frozen_game.policies).value
    for player in range(2):
        nothing = approximate_response.greedy_response(
            approximate_response.init(frozen_game.game, BITS), settings(frozen_game)
        )
        payoff = played(frozen_game, nothing, player)
        assert abs(payoff.mean() - value[player]) < 4 * payoff.std() / 2**7


def test_matches_tell_the_payoff_of_a_response() -> None:
    """The payoff of a partial response: approximate at known information sets, frozen elsewhere."""
    frozen_game = frozen("kuhn_poker")
    response = approximate_response.greedy_response(learnt("kuhn_poker", 0, 1), settings(frozen_game))
    player = frozen_game.task.tree.players[0]
    row = table_rows_of(response.table, frozen_game, 0)
    is_known = np.asarray(response.cumulative_policy)[row].sum(axis=1) > 0
    is_known &= row >= 0
    assert 0 < is_known.sum() < player.sets
    policies = list(frozen_game.policies)
    learnt_policy = table_policy.to_tabular(response, frozen_game.game.env, frozen_game.task.tree)[0][0]
    is_learnt = np.concatenate([[False], np.repeat(is_known, np.diff(player.first))])
    policies[0] = np.where(is_learnt, learnt_policy, frozen_game.policies[0])
    payoff = played(frozen_game, response, 0)
    assert abs(payoff.mean() - frozen_game.task.metrics(tuple(policies)).value[0]) < 4 * payoff.std() / 2**7


def test_a_full_table_takes_no_more() -> None:
    frozen_game = frozen("kuhn_poker")
    start = approximate_response.init(frozen_game.game, 1)
    arguments = (settings(frozen_game), jax.random.key(3), 0, 20)
    learner = approximate_response.learn(frozen_game.game, frozen_game.table, start, *arguments, config=CONFIG)
    assert int(hash_table.count_used(learner.table)) == 2
    assert float(learner.visits[:-1].sum()) > 0


def test_no_room_for_the_end_counts_as_the_lowest_payoff() -> None:
    frozen_game = frozen("kuhn_poker")
    nothing = approximate_response.greedy_response(
        approximate_response.init(frozen_game.game, BITS), settings(frozen_game)
    )
    assert (played(frozen_game, nothing, 0, steps=2) == frozen_game.task.payoff_range[0]).all()


def test_going_on_is_as_if_never_stopped() -> None:
    frozen_game = frozen("kuhn_poker")
    learner = approximate_response.init(frozen_game.game, BITS)
    for _ in range(2):
        learner = approximate_response.learn(
            frozen_game.game,
            frozen_game.table,
            learner,
            settings(frozen_game),
            jax.random.key(3),
            0,
            200,
            config=CONFIG,
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
    actual, known = table_policy.to_tabular(table_policy.from_tabular(policies, env, tree), env, tree)
    assert known == sum(player.sets for player in tree.players)
    for policy, expected in zip(actual, policies, strict=True):
        np.testing.assert_allclose(policy, expected, rtol=1e-6)
