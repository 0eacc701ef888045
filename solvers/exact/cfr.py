"""Counterfactual regret minimisation on the sequence form: one step for all variants that differ only in settings.

Averages are sums of realization plans, in `step`; their weights are the setting `gamma` (`solvers/algorithms.py` has
that of each preset), which `regret_matching.discounts` turns into the factor of an iteration.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from gdlx.envs.trees import device_arrays, sequence_form
from gdlx.solvers.exact import realization_plans, regret_matching

Levels = realization_plans.Levels
# (flat plans of all players, player) -> [size] values of the player's sequences at the leaves
LeafValueFn = Callable[[Sequence[jax.Array], int], jax.Array]
FOLD_INTERVAL = 4_096  # iterations


class CfrState(NamedTuple):
    """Axes: P players, each with L levels of n information sets and w actions; further axes are a batch."""

    regret: tuple[Levels, ...]  # P x L x [w, n], cumulative counterfactual regret
    cumulative_plan: tuple[jax.Array, ...]  # P x [size], weighted sum of flat plans up to the last fold
    recent_sum: tuple[jax.Array, ...]  # P x [size], weighted sum since the last fold
    pending_discount: jax.Array  # [] float, the discount of `cumulative_plan` since the last fold
    policy: tuple[Levels, ...]  # P x L x [w, n], of the next iteration
    realization_plan: tuple[jax.Array, ...]  # P x [size], `policy` as a flat plan
    t: jax.Array  # [] int32, iterations done


def init(game: sequence_form.SequenceForm, batch: tuple[int, ...] = ()) -> CfrState:
    """Returns the state with zero regrets and uniform policies. Uses numpy, because compilation would dominate."""
    regrets, policies, reach = [], [], []
    for player in game.players:
        uniform = [np.asarray(level) for level in player.uniform]
        plan = [np.ones(1, jnp.result_type(float))]
        for parent, level in zip(player.parent, uniform, strict=True):
            plan.append((plan[-1][np.asarray(parent)] * level).reshape(-1))
        regrets.append(tuple(_spread(np.zeros_like(level), batch) for level in uniform))
        policies.append(tuple(_spread(level, batch) for level in uniform))
        reach.append(_spread(np.concatenate(plan), batch))
    zero = jax.tree.map(lambda x: device_arrays.to_device(np.zeros(x.shape, x.dtype)), tuple(reach))
    one = _spread(np.ones((), jnp.result_type(float)), batch)
    t = device_arrays.to_device(np.zeros((), np.int32))
    return CfrState(tuple(regrets), zero, zero, one, tuple(policies), tuple(reach), t)


def _spread(array: Any, batch: tuple[int, ...]) -> jax.Array:
    """Broadcast an array to a batch."""
    return device_arrays.to_device(
        np.broadcast_to(array.reshape((*array.shape, *[1] * len(batch))), (*array.shape, *batch))
    )


def init_from_regrets(game: sequence_form.SequenceForm, start: tuple[Levels, ...]) -> CfrState:
    """Returns the state with initial regrets `start`, and the policies that regret matching derives from them."""
    policy = tuple(
        tuple(map(regret_matching.match_regrets, levels, player.uniform, _copies(player)))
        for player, levels in zip(game.players, start, strict=True)
    )
    batch = next((level.shape[2:] for levels in start for level in levels), ())
    plan = tuple(
        realization_plans.flatten(realization_plans.to_realization_plan(player, levels), batch)
        for player, levels in zip(game.players, policy, strict=True)
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
    """Runs one iteration: every player in turn adds its plan to its average, then updates its regrets and its policy.

    With `alternating`, regrets are computed against the policies that earlier players have just updated, else against
    those before the iteration. `leaves` returns the values of subgames below the leaves of a depth-limited game, which
    may depend on the plans of all players.
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
            regret_matching.update(regret, added, uniform, noise, by, copies)
            for regret, added, uniform, noise, copies in zip(
                regrets[number], new, player.uniform, player.regret_tolerance, _copies(player), strict=True
            )
        ]
        recent[number] = recent[number] * by.average + state.realization_plan[number]
        regrets[number] = tuple(level for level, _ in updated)
        policies[number] = tuple(level for _, level in updated)
        reach[number] = realization_plans.flatten(
            realization_plans.to_realization_plan(player, policies[number]), batch
        )
    pending = state.pending_discount * by.average
    return CfrState(tuple(regrets), state.cumulative_plan, tuple(recent), pending, tuple(policies), tuple(reach), t)


def _copies(player: sequence_form.PlayerForm) -> Sequence[jax.Array | None]:
    """Of every level, how many symmetric actions each action stands for; None if each is one."""
    return [None] * len(player.uniform) if player.copies is None else player.copies


def instantaneous_regrets(
    player: sequence_form.PlayerForm,
    others: Sequence[jax.Array],
    policy: Levels,
    batch: tuple[int, ...] = (),
    below: Levels | None = None,
) -> Levels:
    """Returns the instantaneous counterfactual regret of every action, for the other players' flat plans `others`.

    `below` are values of sequences that are added to those of their terminals.
    """

    def mean(level: int, values: jax.Array) -> jax.Array:
        return realization_plans.sum_over_actions(values * policy[level])

    root, terminals = realization_plans.utilities(player, others, batch)
    utility = root, terminals if below is None else tuple(map(jnp.add, terminals, below))
    actions, _ = realization_plans.backup_values(player, utility, mean)
    return tuple(
        values - realization_plans.sum_over_actions(values * level)
        for values, level in zip(actions, policy, strict=True)
    )


def cumulative_plans(state: CfrState) -> tuple[jax.Array, ...]:
    """Returns the weighted sums P x [size] of all plans so far: the average plans up to scale."""
    return tuple(
        old * state.pending_discount + new for old, new in zip(state.cumulative_plan, state.recent_sum, strict=True)
    )


def fold(state: CfrState) -> CfrState:
    """Adds the recent sum to the cumulative plans.

    Called every FOLD_INTERVAL iterations: in single precision, a sum of millions of plans would round off new ones.
    """
    zero = jax.tree.map(jnp.zeros_like, state.recent_sum)
    return state._replace(
        cumulative_plan=cumulative_plans(state),
        recent_sum=zero,
        pending_discount=jnp.ones_like(state.pending_discount),
    )


def average_policies(game: sequence_form.SequenceForm, state: CfrState) -> tuple[Levels, ...]:
    """Returns the average policies; uniform at information sets that the player's own plans never reached."""
    return tuple(
        tuple(map(regret_matching.match_regrets, realization_plans.unflatten(player, plan), player.uniform))
        for player, plan in zip(game.players, cumulative_plans(state), strict=True)
    )
