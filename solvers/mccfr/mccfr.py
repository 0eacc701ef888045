"""Monte Carlo CFR: sampled counterfactual values in place of exact ones, on batches of play in lockstep.

An iteration takes, for every player in turn, one batch of samples with the policies as they are, and updates that
player's regrets once with the means over the batch. How values are sampled is a sampler's work (`outcome`, `external`);
state, updates, averages and the division among devices are here, and the same for all.
"""

import functools
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from gdlx.envs.trees import sampling_form, sequence_form
from gdlx.solvers.exact import realization_plans, regret_matching


class MccfrSettings(NamedTuple):
    """All traced. What a sampler has no use for is ignored."""

    minimiser: regret_matching.Settings
    exploration: Any = 0.6  # of the player who is updated, in outcome sampling
    decay: Any = None  # how far one visit moves a baseline; None: no baselines
    average_strategy: Any = None  # external.AverageStrategy; None: external sampling walks all options


Tables = tuple[jax.Array, ...]  # P x [A, I], A options and I information sets of each player


class MccfrState(NamedTuple):
    """Axes: P players, A options, I information sets of a player, H choices of players and of chance at all nodes.

    Each player has tables of its own: XLA is many times slower where a part of a larger table is replaced.
    """

    regret: Tables  # P x [A, I]
    cumulative_policy: Tables  # P x [A, I], sums for the average policies
    policy: Tables  # P x [A, I]
    baseline: Tables | None  # P x [H], what each player may expect after each choice at every node
    t: jax.Array  # [] int32, iterations: each is one batch for every player


class BatchEstimates(NamedTuple):
    """Over a batch, for one updated player. Axes: I its information sets, V those of the one whose average grows."""

    values: jax.Array  # [A, I] estimates of counterfactual values
    average_reach: jax.Array  # [V] estimates of reach, up to a factor that never changes
    value_sums: jax.Array | None = None  # [H] sums of what came back from below
    counts: jax.Array | None = None  # [H] and how often


class Sampler(Hashable, Protocol):
    """How values are sampled. `axis` names the devices that share the batch."""

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
        """The means over a batch."""


def init(form: sampling_form.SamplingForm, *, baselines: bool = False) -> MccfrState:
    zero = tuple(sequence_form.to_device(np.zeros(own.shape, own.dtype)) for own in form.uniform_by_player)
    none = sequence_form.to_device(np.zeros(form.histories, form.share.dtype))
    expected = (none,) * form.players if baselines else None
    return MccfrState(zero, zero, form.uniform_by_player, expected, sequence_form.to_device(np.zeros((), np.int32)))


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
    """One iteration: a batch for every player in turn. `key` is the run's, the same in every step.

    With `axis` this device plays its part of the batch, and sums are taken over the axis of that name.
    """
    t = state.t + 1
    by = regret_matching.discounts(settings.minimiser, t)
    now = jax.random.fold_in(key, t)
    for player in range(form.players):
        means = sampler(form, state, settings, jax.random.fold_in(now, player), player, batch=batch, axis=axis)
        state = update(form, state, settings, by, means, player)
    return state._replace(t=t)


def averaged_player(players: int, player: int) -> int:
    """Whose average policy grows when a player is updated: the other one's of two, else its own."""
    return 1 - player if players == 2 else player


def update(
    form: sampling_form.SamplingForm,
    state: MccfrState,
    settings: MccfrSettings,
    by: regret_matching.Discounts,
    means: BatchEstimates,
    player: int,
) -> MccfrState:
    """Averages, baselines, then the regrets and the policy of the updated player."""
    other = averaged_player(form.players, player)
    weight = state.cumulative_policy[other] * by.average + state.policy[other] * means.average_reach
    old, uniform = state.policy[player], form.uniform_by_player[player]
    # Without the barrier every option's update would compute the mean of all options anew.
    mean: jax.Array = jax.lax.optimization_barrier(realization_plans.sum_over_actions(old * means.values))  # type: ignore[no-untyped-call]
    new = means.values - mean
    noise = jnp.where(uniform > 0, 0.0, jnp.inf)
    total, policy = regret_matching.update(state.regret[player], new, uniform, noise, by)
    if by.optimism is not None:  # the last sampled regret is the prediction, until there is another
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
    """Baselines after a batch: each visit moves them a part of the way, all visits of a batch at once."""
    if state.baseline is None or means.value_sums is None or means.counts is None:
        return state.baseline
    old = state.baseline[player]
    seen = means.value_sums / jnp.maximum(means.counts, 1)
    part = 1 - (1 - settings.decay) ** means.counts
    return _put(state.baseline, player, old + part * (seen - old))


Advance = Callable[..., MccfrState]


class SampledLoop(NamedTuple):
    """`advance(form, state, settings, key, count)` makes so many iterations; `place` puts its arguments there first."""

    advance: Advance
    place: Callable[[Any], Any]


@functools.lru_cache
def make_loop(devices: tuple[jax.Device, ...], sampler: Sampler, batch: int) -> SampledLoop:
    """Iterations with the batch divided among as many of the devices as divide it."""
    used = next(n for n in range(len(devices), 0, -1) if batch % n == 0)
    axis = "batch" if used > 1 else None

    def advance(
        form: sampling_form.SamplingForm, state: MccfrState, settings: MccfrSettings, key: jax.Array, count: Any
    ) -> MccfrState:
        done: MccfrState = jax.lax.fori_loop(
            0, count, lambda _, s: step(form, s, settings, key, sampler=sampler, batch=batch, axis=axis), state
        )
        return done

    if axis is None:
        return SampledLoop(jax.jit(advance), functools.partial(jax.device_put, device=devices[0]))
    mesh = jax.sharding.Mesh(np.array(devices[:used]), (axis,))
    everywhere = jax.sharding.PartitionSpec()  # type: ignore[no-untyped-call]
    divided = jax.shard_map(advance, mesh=mesh, in_specs=everywhere, out_specs=everywhere, check_vma=False)
    return SampledLoop(jax.jit(divided), functools.partial(jax.device_put, device=jax.NamedSharding(mesh, everywhere)))
