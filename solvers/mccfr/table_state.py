"""What sampling into a hash table keeps, and discounts that are made up for when a set is visited again.

    policies change by visits alone, since discounts scale all positive regrets of a set alike;
    regrets and averages have the iteration of their last visit, and get all discounts since then at the next one.

Every FOLD iterations all discounts are made up for, so that products of discounts stay precise.
"""

import functools
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp

from gdlx.envs.packed import packed_env
from gdlx.solvers.exact import regret_matching
from gdlx.solvers.mccfr import hash_table, state_baselines

FOLD_INTERVAL = 1_024  # iterations between two times that all discounts are made up for
Grow = Literal["all", "first"]
COUNT_LIMIT = 2**30  # where counting stops
_LEAST = 1e-30  # of a discount: its logarithm is finite


class SamplerConfig(NamedTuple):
    """What is static. `steps` is the room for joint moves of a trajectory."""

    batch: int
    steps: int
    grow: Grow = "all"
    baselines: bool = False
    optimism: bool = False


class Entries(NamedTuple):
    """Axes: R rows of information sets, the last one for those that have no place; A moves, L words of A bits."""

    regret: jax.Array  # [R, A] float32
    score: jax.Array | None  # [R, A] float32, what policies are made of where it is not the regret
    legal: jax.Array  # [R, L] uint32, bits of the legal moves
    stamp: jax.Array  # [R] int32, iterations of the fold after which the regret was updated
    representative: jax.Array  # [R] int32, scratch: which of the lanes that are at a set speaks for it


class AveragePolicies(NamedTuple):
    """Of one device. Axes as above."""

    cumulative_policy: jax.Array  # [R, A] float32
    stamp: jax.Array  # [R] int32


class TableState(NamedTuple):
    """Axes: D devices."""

    table: hash_table.Table
    entries: Entries
    averages: AveragePolicies  # with a first axis D
    t: jax.Array  # [] int32
    dropped_visits: jax.Array  # [] int32, visits of the last iteration for which there was no place
    abnormal: "AbnormalTerminations"
    baselines: state_baselines.StateBaselines | None  # baselines


class AbnormalTerminations(NamedTuple):
    """How many trajectories so far ended other than they should; each [] int32, and at most MANY."""

    unfinished: jax.Array  # had no room for their end
    conflicts: jax.Array  # some player had several goal values, or none
    unbalanced: jax.Array  # payoffs that are not opposite, in a game that was taken for zero-sum
    unplayable: jax.Array  # some role had no legal move


def init(game: packed_env.PackedEnv, config: SamplerConfig, bits: int, devices: int) -> TableState:
    size, moves = 2**bits + 1, max(1, game.env.num_actions)
    zeros = functools.partial(jnp.zeros, (size, moves), jnp.float32)
    return TableState(
        hash_table.init(bits),
        Entries(
            regret=zeros(),
            score=zeros() if config.optimism else None,
            legal=jnp.zeros((size, -(-moves // 32)), jnp.uint32),
            stamp=jnp.zeros(size, jnp.int32),
            representative=jnp.zeros(size, jnp.int32),
        ),
        AveragePolicies(jnp.zeros((devices, size, moves), jnp.float32), jnp.zeros((devices, size), jnp.int32)),
        jnp.zeros((), jnp.int32),
        jnp.zeros((), jnp.int32),
        AbnormalTerminations(*(jnp.zeros((), jnp.int32) for _ in AbnormalTerminations._fields)),
        state_baselines.init(game.env.num_players, moves, bits) if config.baselines else None,
    )


def row_bytes(game: packed_env.PackedEnv, config: SamplerConfig) -> int:
    """Of one information set, on one device."""
    moves = max(1, game.env.num_actions)
    tables = 2 + config.optimism
    values = state_baselines.row_bytes(game.env.num_players, moves) if config.baselines else 0
    return 4 * (moves * tables + -(-moves // 32) + 3) + 12 + values


def visit_bytes(game: packed_env.PackedEnv, config: SamplerConfig) -> int:
    """Of a batch of trajectories."""
    return 4 * (6 + 4 * config.baselines) * config.steps * game.env.num_players * config.batch


class CumulativeDiscounts(NamedTuple):
    """Logarithms of the discounts of the first n = 0 .. FOLD iterations of a fold, multiplied up; each [FOLD + 1]."""

    positive: jax.Array
    negative: jax.Array
    average: jax.Array


class IterationDiscounts(NamedTuple):
    cumulative: CumulativeDiscounts
    current: regret_matching.Discounts  # of this iteration
    n: jax.Array  # [] int32, the number of this iteration in the fold


def cumulative_discounts(settings: regret_matching.Settings, start: jax.Array) -> CumulativeDiscounts:
    """Of the fold that begins after `start` iterations."""
    by = jax.vmap(lambda n: regret_matching.discounts(settings, start + n)[:3])(jnp.arange(1, FOLD_INTERVAL + 1))
    none = jnp.zeros(1, jnp.float32)
    return CumulativeDiscounts(
        *(jnp.concatenate([none, jnp.log(jnp.maximum(part, _LEAST)).cumsum().astype(jnp.float32)]) for part in by)
    )


def fold(state: TableState, made: CumulativeDiscounts) -> TableState:
    """The state with all discounts made up for."""
    entries, averages, last = state.entries, state.averages, FOLD_INTERVAL
    positive, negative = ((part[last] - part[entries.stamp])[:, None] for part in (made.positive, made.negative))
    regrets = entries.regret * jnp.exp(jnp.where(entries.regret > 0, positive, negative))
    weight = averages.cumulative_policy * jnp.exp(made.average[last] - made.average[averages.stamp])[..., None]
    return state._replace(
        entries=entries._replace(regret=regrets, stamp=jnp.zeros_like(entries.stamp)),
        averages=AveragePolicies(weight, jnp.zeros_like(averages.stamp)),
    )
