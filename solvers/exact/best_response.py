"""Evaluation of policies: values, best responses, exploitability. Policies are levels, as CFR stores them."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from gdlx.envs.trees import sequence_form
from gdlx.solvers.exact import cfr, realization_plans

Levels = realization_plans.Levels
Profile = tuple[Levels, ...]  # one policy for every player


class Evaluation(NamedTuple):
    """The values of a policy profile. Axes: P players; further axes are a batch."""

    value: jax.Array  # [P] expected payoff
    best_response_value: jax.Array  # [P] expected payoff of a best response of each player

    @property
    def improvements(self) -> jax.Array:
        """[P] best-response improvement of each player."""
        return self.best_response_value - self.value

    @property
    def nash_conv(self) -> jax.Array:
        """Sum of the improvements."""
        return self.improvements.sum(axis=0)


def evaluate(game: sequence_form.SequenceForm, profile: Profile) -> Evaluation:
    """Computes the value and the best-response value of every player."""
    reach = flat_realization_plans(game, profile)
    value, best = [], []
    for number, player in enumerate(game.players):
        utility = realization_plans.utilities(player, _others(reach, number), reach[number].shape[1:])
        value.append(_expected(player, utility, reach[number]))
        best.append(realization_plans.backup_values(player, utility, best_action_value(player))[1])
    return Evaluation(jnp.stack(value), jnp.stack(best))


def evaluate_average(game: sequence_form.SequenceForm, state: cfr.CfrState) -> Evaluation:
    """Evaluates the average policies of a run."""
    # Without the barrier every use of a policy would normalise it again, which takes twice as long.
    policies: Profile = jax.lax.optimization_barrier(cfr.average_policies(game, state))  # type: ignore[no-untyped-call]
    return evaluate(game, policies)


def flat_realization_plans(game: sequence_form.SequenceForm, profile: Profile) -> list[jax.Array]:
    """Returns the realization plan of every player as a flat vector."""
    batch = next((level.shape[2:] for policy in profile for level in policy), ())
    return [
        realization_plans.flatten(realization_plans.to_realization_plan(player, policy), batch)
        for player, policy in zip(game.players, profile, strict=True)
    ]


def _others(reach: list[jax.Array], number: int) -> list[jax.Array]:
    return [plan for n, plan in enumerate(reach) if n != number]


def _expected(player: sequence_form.PlayerForm, utility: tuple[jax.Array, Levels], plan: jax.Array) -> jax.Array:
    root, levels = utility
    rows = zip(levels, realization_plans.unflatten(player, plan), strict=True)
    return root + sum(realization_plans.sum_over_actions(value * reached).sum(axis=0) for value, reached in rows)


def best_action_value(player: sequence_form.PlayerForm) -> realization_plans.InfosetValueFn:
    """Returns the function that values an information set by its best action."""

    def best(level: int, values: jax.Array) -> jax.Array:
        is_action = realization_plans.expand_like(player.uniform[level], values) > 0
        return realization_plans.max_over_actions(jnp.where(is_action, values, -jnp.inf))

    return best


def best_response(game: sequence_form.SequenceForm, profile: Profile, number: int) -> tuple[Levels, jax.Array]:
    """Returns a best response of player `number` to the others, and its expected payoff.

    It is a counterfactual best response: optimal at every information set that the others and chance may reach, also
    where the player's own earlier actions avoid it. Where the others never lead, it takes the first action.
    """
    player = game.players[number]
    reach = flat_realization_plans(game, profile)
    utility = realization_plans.utilities(player, _others(reach, number), reach[number].shape[1:])
    values, payoff = realization_plans.backup_values(player, utility, best_action_value(player))
    return greedy_policy(player, values), payoff


def greedy_policy(player: sequence_form.PlayerForm, values: Levels) -> Levels:
    """Returns the policy that takes the best action of every information set, the first of several."""
    policy = []
    for level, actions in enumerate(values):
        legal = jnp.where(realization_plans.expand_like(player.uniform[level], actions) > 0, actions, -jnp.inf)
        chosen = legal.argmax(axis=0)
        policy.append((jnp.arange(len(actions)).reshape(-1, *[1] * chosen.ndim) == chosen).astype(actions.dtype))
    return tuple(policy)


def counterfactual_values(game: sequence_form.SequenceForm, profile: Profile, number: int) -> Levels:
    """Returns the counterfactual value of every action of a player: weighted by the reach of the others and of chance.

    Args:
      game: the sequence form of an unrolled game.
      profile: a policy for every player, as levels; see `tabular_policies.to_levels`.
      number: index of the player.

    Returns:
      The values [w, n, ...] of each level.

    >>> from gdlx.envs import game_spec
    >>> from gdlx.solvers import tasks
    >>> task = tasks.make_tree_task(game_spec.GameSpec("biased_rps"))
    >>> uniform = tuple(player.uniform for player in task.form.players)
    >>> [level.shape for level in counterfactual_values(task.form, uniform, 0)]
    [(3, 1)]
    """
    player = game.players[number]
    policy = profile[number]
    reach = flat_realization_plans(game, profile)
    utility = realization_plans.utilities(player, _others(reach, number), reach[number].shape[1:])
    return realization_plans.backup_values(
        player, utility, lambda level, values: realization_plans.sum_over_actions(values * policy[level])
    )[0]


def head_to_head(game: sequence_form.SequenceForm, first: Profile, second: Profile) -> jax.Array:
    """Returns payoffs [P, P]: row i is for player i of the first profile against all others of the second."""
    rows = []
    for number in range(len(game.players)):
        mixed = tuple(first[n] if n == number else second[n] for n in range(len(game.players)))
        rows.append(evaluate(game, mixed).value)
    return jnp.stack(rows)


def average_regret_bound(state: cfr.CfrState) -> jax.Array:
    """Bounds the average overall regret of every player: the sum of its positive immediate regrets, divided by t.

    Holds for undiscounted regrets (cfr, and cfr+ as an upper bound).

    Args:
      state: a state of CFR after t iterations.

    Returns:
      The bounds [P].

    >>> from gdlx.envs import game_spec
    >>> from gdlx.solvers import tasks
    >>> task = tasks.make_tree_task(game_spec.GameSpec("biased_rps"))
    >>> average_regret_bound(cfr.init(task.form)).tolist()
    [0.0, 0.0]
    """
    totals = [sum(jnp.maximum(level, 0).max(axis=0).sum(axis=0) for level in levels) for levels in state.regret]
    return jnp.stack(jnp.broadcast_arrays(*totals)) / jnp.maximum(state.t, 1)  # 0 for players without a choice
