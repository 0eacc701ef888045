"""Counterfactual regret minimisation on the sequence form: every variant that differs only in numbers."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from gdlx.envs.trees import sequence_form
from gdlx.solvers.exact import realization_plans, regret_matching

Levels = realization_plans.Levels
LeafValueFn = Callable[
    [Sequence[jax.Array], int], jax.Array
]  # (flat plans of all, player) -> [size] worth of its sequences
FOLD_INTERVAL = 4_096  # iterations


class CfrState(NamedTuple):
    """Axes: P players, each with levels of n sets and w options; further axes are a batch."""

    regret: tuple[Levels, ...]  # P x L x [w, n], cumulative counterfactual regret
    cumulative_plan: tuple[jax.Array, ...]  # P x [size], weighted sum of flat plans up to the last fold
    recent_sum: tuple[jax.Array, ...]  # P x [size], and since then
    pending_discount: jax.Array  # [] float, what `weight` has been discounted by since then
    policy: tuple[Levels, ...]  # P x L x [w, n], of the next iteration
    realization_plan: tuple[jax.Array, ...]  # P x [size], the same as a flat plan
    t: jax.Array  # [] int32, iterations done


def init(game: sequence_form.SequenceForm, batch: tuple[int, ...] = ()) -> CfrState:
    """No regret, and uniform policies. Made by numpy, because compiling it would take longer than all the rest."""
    regrets, policies, reach = [], [], []
    for player in game.players:
        uniform = [np.asarray(level) for level in player.uniform]
        plan = [np.ones(1, jnp.result_type(float))]
        for parent, level in zip(player.parent, uniform, strict=True):
            plan.append((plan[-1][np.asarray(parent)] * level).reshape(-1))
        regrets.append(tuple(_spread(np.zeros_like(level), batch) for level in uniform))
        policies.append(tuple(_spread(level, batch) for level in uniform))
        reach.append(_spread(np.concatenate(plan), batch))
    zero = jax.tree.map(lambda x: sequence_form.to_device(np.zeros(x.shape, x.dtype)), tuple(reach))
    one = _spread(np.ones((), jnp.result_type(float)), batch)
    t = sequence_form.to_device(np.zeros((), np.int32))
    return CfrState(tuple(regrets), zero, zero, one, tuple(policies), tuple(reach), t)


def _spread(array: Any, batch: tuple[int, ...]) -> jax.Array:
    """The same for every member of a batch."""
    return sequence_form.to_device(
        np.broadcast_to(array.reshape((*array.shape, *[1] * len(batch))), (*array.shape, *batch))
    )


def init_from_regrets(game: sequence_form.SequenceForm, start: tuple[Levels, ...]) -> CfrState:
    """A state with given initial regrets, and the policies that follow from them."""
    policy = tuple(
        tuple(map(regret_matching.match_regrets, levels, player.uniform))
        for player, levels in zip(game.players, start, strict=True)
    )
    batch = next((level.shape[2:] for levels in start for level in levels), ())
    plan = tuple(
        realization_plans.flatten(realization_plans.to_realization_plan(player, own), batch)
        for player, own in zip(game.players, policy, strict=True)
    )
    zero = jax.tree.map(jnp.zeros_like, plan)
    return CfrState(start, zero, zero, jnp.ones(batch, plan[0].dtype), policy, plan, jnp.zeros((), jnp.int32))


def step(
    game: sequence_form.SequenceForm,
    state: CfrState,
    settings: regret_matching.Settings,
    *,
    alternating: bool = True,
    leaves: LeafValueFn | None = None,
) -> CfrState:
    """One iteration: every player in turn adds its plan to its average, then updates its regrets and its policy.

    Alternating: a player answers what the players before it have just become; else all answer the old policies. With
    `leaves` the game goes on below its sequences, and what that is worth may depend on everybody's plans.
    """
    t = state.t + 1
    batch = state.realization_plan[0].shape[1:]
    by = regret_matching.discounts(settings, t)
    regrets, policies, reach = list(state.regret), list(state.policy), list(state.realization_plan)
    recent = list(state.recent_sum)
    for number, player in enumerate(game.players):
        seen = reach if alternating else state.realization_plan
        others = [plan for n, plan in enumerate(seen) if n != number]
        below = None if leaves is None else realization_plans.unflatten(player, leaves(seen, number))
        new = instantaneous_regrets(player, others, policies[number], batch, below)
        updated = [
            regret_matching.update(*row, by)
            for row in zip(regrets[number], new, player.uniform, player.regret_tolerance, strict=True)
        ]
        recent[number] = recent[number] * by.average + state.realization_plan[number]
        regrets[number] = tuple(level for level, _ in updated)
        policies[number] = tuple(level for _, level in updated)
        reach[number] = realization_plans.flatten(
            realization_plans.to_realization_plan(player, policies[number]), batch
        )
    fade = state.pending_discount * by.average
    return CfrState(tuple(regrets), state.cumulative_plan, tuple(recent), fade, tuple(policies), tuple(reach), t)


def instantaneous_regrets(
    player: sequence_form.PlayerForm,
    others: Sequence[jax.Array],
    policy: Levels,
    batch: tuple[int, ...] = (),
    below: Levels | None = None,
) -> Levels:
    """Instantaneous counterfactual regret of every option, given the other players' flat plans.

    `below` is what sequences are worth beside their ends.
    """

    def mean(level: int, values: jax.Array) -> jax.Array:
        return realization_plans.sum_over_actions(values * policy[level])

    root, own = realization_plans.utilities(player, others, batch)
    utility = root, own if below is None else tuple(map(jnp.add, own, below))
    options, _ = realization_plans.backup_values(player, utility, mean)
    return tuple(
        values - realization_plans.sum_over_actions(values * own) for values, own in zip(options, policy, strict=True)
    )


def cumulative_plans(state: CfrState) -> tuple[jax.Array, ...]:
    """P x [size], weighted sums of all plans so far: the average policies up to scale."""
    return tuple(
        old * state.pending_discount + new for old, new in zip(state.cumulative_plan, state.recent_sum, strict=True)
    )


def fold(state: CfrState) -> CfrState:
    """Put recent plans to the older ones.

    Every FOLD iterations: a sum of millions of plans would lose the digits of each new one, in single precision.
    """
    nothing = jax.tree.map(jnp.zeros_like, state.recent_sum)
    return state._replace(
        cumulative_plan=cumulative_plans(state),
        recent_sum=nothing,
        pending_discount=jnp.ones_like(state.pending_discount),
    )


def average_policies(game: sequence_form.SequenceForm, state: CfrState) -> tuple[Levels, ...]:
    """The average policies; uniform where a player never comes."""
    return tuple(
        tuple(map(regret_matching.match_regrets, realization_plans.unflatten(player, weight), player.uniform))
        for player, weight in zip(game.players, cumulative_plans(state), strict=True)
    )
