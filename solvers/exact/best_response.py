"""What policies are worth: values, best responses, exploitability. Policies are levels, as CFR keeps them."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from gdlx.envs.trees import sequence_form
from gdlx.solvers.exact import cfr, realization_plans

Levels = realization_plans.Levels
Profile = tuple[Levels, ...]  # one policy for every player


class Evaluation(NamedTuple):
    """Of a profile. Axes: P players; further axes are a batch."""

    value: jax.Array  # [P] expected payoff
    best_response_value: jax.Array  # [P] what a best response of each player would get

    @property
    def improvements(self) -> jax.Array:
        """[P] best-response improvement of each player."""
        return self.best_response_value - self.value

    @property
    def nash_conv(self) -> jax.Array:
        """Sum of the improvements."""
        return self.improvements.sum(axis=0)


def evaluate(game: sequence_form.SequenceForm, profile: Profile) -> Evaluation:
    """Values and best responses of all players at once."""
    reach = flat_realization_plans(game, profile)
    value, best = [], []
    for number, player in enumerate(game.players):
        utility = realization_plans.utilities(player, _others(reach, number), reach[number].shape[1:])
        value.append(_expected(player, utility, reach[number]))
        best.append(realization_plans.backup_values(player, utility, best_action_value(player))[1])
    return Evaluation(jnp.stack(value), jnp.stack(best))


def evaluate_average(game: sequence_form.SequenceForm, state: cfr.CfrState) -> Evaluation:
    """Of the average policies of a run."""
    # Without the barrier every use of a policy would divide its weights anew, which takes twice as long.
    policies: Profile = jax.lax.optimization_barrier(cfr.average_policies(game, state))  # type: ignore[no-untyped-call]
    return evaluate(game, policies)


def flat_realization_plans(game: sequence_form.SequenceForm, profile: Profile) -> list[jax.Array]:
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
    return root + sum(realization_plans.sum_over_actions(own * reached).sum(axis=0) for own, reached in rows)


def best_action_value(player: sequence_form.PlayerForm) -> realization_plans.InfosetValueFn:
    """The worth of a set to one who chooses best there."""

    def best(level: int, values: jax.Array) -> jax.Array:
        is_option = realization_plans.expand_like(player.uniform[level], values) > 0
        return realization_plans.max_over_actions(jnp.where(is_option, values, -jnp.inf))

    return best


def best_response(game: sequence_form.SequenceForm, profile: Profile, number: int) -> tuple[Levels, jax.Array]:
    """A best response of one player to the others, and what it gets.

    It chooses best at every information set that the others and chance may lead to, also at those which its own earlier
    choices avoid: a counterfactual best response. Sets that the others never let happen get their first option.
    """
    player = game.players[number]
    reach = flat_realization_plans(game, profile)
    utility = realization_plans.utilities(player, _others(reach, number), reach[number].shape[1:])
    values, worth = realization_plans.backup_values(player, utility, best_action_value(player))
    return greedy_policy(player, values), worth


def greedy_policy(player: sequence_form.PlayerForm, values: Levels) -> Levels:
    """Policies that take the best option of every set, the first of several."""
    policy = []
    for level, options in enumerate(values):
        allowed = jnp.where(realization_plans.expand_like(player.uniform[level], options) > 0, options, -jnp.inf)
        chosen = allowed.argmax(axis=0)
        policy.append((jnp.arange(len(options)).reshape(-1, *[1] * chosen.ndim) == chosen).astype(options.dtype))
    return tuple(policy)


def counterfactual_values(game: sequence_form.SequenceForm, profile: Profile, number: int) -> Levels:
    """What every option of a player is worth, counting only the others' and chance's way there [w, n, ...]."""
    player = game.players[number]
    policy = profile[number]
    reach = flat_realization_plans(game, profile)
    utility = realization_plans.utilities(player, _others(reach, number), reach[number].shape[1:])
    return realization_plans.backup_values(
        player, utility, lambda level, values: realization_plans.sum_over_actions(values * policy[level])
    )[0]


def head_to_head(game: sequence_form.SequenceForm, first: Profile, second: Profile) -> jax.Array:
    """[P, P] payoffs: row i is player i taken from the first profile against all others from the second."""
    rows = []
    for number in range(len(game.players)):
        mixed = tuple(first[n] if n == number else second[n] for n in range(len(game.players)))
        rows.append(evaluate(game, mixed).value)
    return jnp.stack(rows)


def average_regret_bound(state: cfr.CfrState) -> jax.Array:
    """[P] the bound on a player's regret per iteration: the sum of its positive immediate ones, over t.

    Holds for undiscounted regrets (cfr, and cfr+ as an upper bound).
    """
    totals = [sum(jnp.maximum(level, 0).max(axis=0).sum(axis=0) for level in levels) for levels in state.regret]
    return jnp.stack(jnp.broadcast_arrays(*totals)) / jnp.maximum(state.t, 1)  # 0 for who never has a choice
