"""Monte Carlo CFR: sampled counterfactual values in place of exact ones, on batches of trajectories in lockstep.

An iteration updates every player in turn: it draws one batch of samples under the current policies and updates the
player's regrets once, with the means over the batch. Samplers estimate the values (`outcome_sampling`,
`external_sampling`). This module has what they share: the state, regret and average updates, and sharding over devices.
"""

import functools
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from gdlx.envs.trees import device_arrays, sampling_form
from gdlx.solvers.exact import realization_plans, regret_matching


class MccfrSettings(NamedTuple):
    """Hyperparameters, all traced. A sampler ignores those that it does not use."""

    minimiser: regret_matching.Settings
    exploration: Any = 0.6  # of the updated player, in outcome sampling
    decay: Any = None  # step size of the baselines per visit; None: no baselines
    average_strategy: Any = None  # external_sampling.AverageStrategy; None: traverse all actions


Tables = tuple[jax.Array, ...]  # P x [A, I], A actions and I information sets of each player


class MccfrState(NamedTuple):
    """Axes: P players, A actions, I information sets of a player, H actions of players and chance at all nodes.

    Each player has separate tables: updating a slice of one larger table is many times slower in XLA.
    """

    regret: Tables  # P x [A, I]
    cumulative_policy: Tables  # P x [A, I], sums for the average policies
    policy: Tables  # P x [A, I]
    baseline: Tables | None  # P x [H], estimated value to each player of each action at every node
    t: jax.Array  # [] int32, iterations done; each is one batch for every player


class BatchEstimates(NamedTuple):
    """Estimates from one batch that updates one player.

    Axes: A actions, I information sets of the updated player, V those of the player whose average policy is updated.
    """

    values: jax.Array  # [A, I] estimates of counterfactual values
    average_reach: jax.Array  # [V] estimates of reach, up to a constant factor
    value_sums: jax.Array | None = None  # [H] sums of the values backed up through each action
    counts: jax.Array | None = None  # [H] number of those values


class Sampler(Hashable, Protocol):
    """Estimates counterfactual values by sampling. `axis` is the mesh axis over which the batch is sharded."""

    def __call__(
        self,
        form: sampling_form.SamplingForm,
        state: MccfrState,
        settings: MccfrSettings,
        key: jax.Array,
        player: int,
        *,
        batch: int,
        axis: str | None = None,
    ) -> BatchEstimates:
        """Returns the means over a batch."""


def init(form: sampling_form.SamplingForm, *, baselines: bool = False) -> MccfrState:
    """Returns the initial state: zero regrets and uniform policies."""
    zeros = tuple(device_arrays.to_device(np.zeros(table.shape, table.dtype)) for table in form.uniform_by_player)
    no_baseline = device_arrays.to_device(np.zeros(form.histories, form.share.dtype))
    baseline = (no_baseline,) * form.players if baselines else None
    return MccfrState(zeros, zeros, form.uniform_by_player, baseline, device_arrays.to_device(np.zeros((), np.int32)))


def step(
    form: sampling_form.SamplingForm,
    state: MccfrState,
    settings: MccfrSettings,
    key: jax.Array,
    *,
    sampler: Sampler,
    batch: int,
    axis: str | None = None,
) -> MccfrState:
    """Runs one iteration: a batch for every player in turn.

    `key` is the key of the run and the same in every step; the iteration number is folded in. With `axis`, this device
    samples its shard of the batch, and sums are taken over that mesh axis.
    """
    t = state.t + 1
    by = regret_matching.discounts(settings.minimiser, t)
    now = jax.random.fold_in(key, t)
    for player in range(form.players):
        means = sampler(form, state, settings, jax.random.fold_in(now, player), player, batch=batch, axis=axis)
        state = update(form, state, settings, by, means, player)
    return state._replace(t=t)


def averaged_player(players: int, player: int) -> int:
    """Returns whose average policy is updated with a player's regrets: the opponent's of two players, else its own."""
    return 1 - player if players == 2 else player


def update(
    form: sampling_form.SamplingForm,
    state: MccfrState,
    settings: MccfrSettings,
    by: regret_matching.Discounts,
    means: BatchEstimates,
    player: int,
) -> MccfrState:
    """Updates the average policy, the baselines, and the regrets and policy of `player`."""
    other = averaged_player(form.players, player)
    weight = state.cumulative_policy[other] * by.average + state.policy[other] * means.average_reach
    old, uniform = state.policy[player], form.uniform_by_player[player]
    # Without the barrier XLA recomputes the mean over all actions in the update of each one.
    mean: jax.Array = jax.lax.optimization_barrier(realization_plans.sum_over_actions(old * means.values))  # type: ignore[no-untyped-call]
    new = means.values - mean
    noise = jnp.where(uniform > 0, 0.0, jnp.inf)
    total, policy = regret_matching.update(state.regret[player], new, uniform, noise, by)
    if by.optimism is not None:  # the last sampled regret stays the prediction until the next one
        policy = jnp.where((new != 0).any(axis=0), policy, old)
    return state._replace(
        regret=_put(state.regret, player, total),
        policy=_put(state.policy, player, policy),
        cumulative_policy=_put(state.cumulative_policy, other, weight),
        baseline=_update_baselines(state, settings, means, player),
    )


def _put(tables: Tables, player: int, table: jax.Array) -> Tables:
    return (*tables[:player], table, *tables[player + 1 :])


def _update_baselines(state: MccfrState, settings: MccfrSettings, means: BatchEstimates, player: int) -> Tables | None:
    """Move baselines towards the mean backed-up value; n visits of a batch count as n steps of size `decay`."""
    if state.baseline is None or means.value_sums is None or means.counts is None:
        return state.baseline
    old = state.baseline[player]
    mean = means.value_sums / jnp.maximum(means.counts, 1)
    step_size = 1 - (1 - settings.decay) ** means.counts
    return _put(state.baseline, player, old + step_size * (mean - old))


Advance = Callable[..., MccfrState]


class SampledLoop(NamedTuple):
    """`advance(form, state, settings, key, count)` runs iterations; `place` puts its arguments on the devices."""

    advance: Advance
    place: Callable[[Any], Any]


@functools.lru_cache
def make_loop(devices: tuple[jax.Device, ...], sampler: Sampler, batch: int) -> SampledLoop:
    """Returns a loop that shards the batch over the largest number of devices that divides it."""
    num_devices = next(n for n in range(len(devices), 0, -1) if batch % n == 0)
    axis = "batch" if num_devices > 1 else None

    def advance(
        form: sampling_form.SamplingForm, state: MccfrState, settings: MccfrSettings, key: jax.Array, count: Any
    ) -> MccfrState:
        final: MccfrState = jax.lax.fori_loop(
            0, count, lambda _, s: step(form, s, settings, key, sampler=sampler, batch=batch, axis=axis), state
        )
        return final

    if axis is None:
        return SampledLoop(jax.jit(advance), functools.partial(jax.device_put, device=devices[0]))
    mesh = jax.sharding.Mesh(np.array(devices[:num_devices]), (axis,))
    replicated = jax.sharding.PartitionSpec()  # type: ignore[no-untyped-call]
    sharded = jax.shard_map(advance, mesh=mesh, in_specs=replicated, out_specs=replicated, check_vma=False)
    return SampledLoop(jax.jit(sharded), functools.partial(jax.device_put, device=jax.NamedSharding(mesh, replicated)))
