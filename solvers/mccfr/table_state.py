"""State of sampling into a hash table, with discounts that stay pending until an information set is visited again.

    Policies change at visits only, since discounts scale all positive regrets of an information set alike.
    Regrets and averages are stamped with the iteration of the last visit; the next visit applies all discounts since.

Every FOLD_INTERVAL iterations all pending discounts are applied, so that products of discounts stay precise.
"""

import functools
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp

from gdlx.envs.packed import packed_env
from gdlx.solvers.exact import regret_matching
from gdlx.solvers.mccfr import hash_table, state_baselines

FOLD_INTERVAL = 1_024  # iterations after which all pending discounts are applied
Grow = Literal["all", "first"]
COUNT_LIMIT = 2**30  # counters saturate here
_MIN_DISCOUNT = 1e-30  # keeps logarithms finite


class SamplerConfig(NamedTuple):
    """Static settings. `steps` is the maximal length of a trajectory in joint actions."""

    batch: int
    steps: int
    grow: Grow = "all"
    baselines: bool = False
    optimism: bool = False


class Entries(NamedTuple):
    """Axes: R rows of information sets, the last one a dummy; A actions, L words of A bits."""

    regret: jax.Array  # [R, A] float32
    score: jax.Array | None  # [R, A] float32, optimistic regret, from which policies are computed; None: from `regret`
    legal: jax.Array  # [R, L] uint32, bits of the legal actions
    stamp: jax.Array  # [R] int32, iteration of the last update, counted from the last fold
    representative: jax.Array  # [R] int32, scratch: representative lane of each row


class AveragePolicies(NamedTuple):
    """Sums for the average policies on one device. Axes as above."""

    cumulative_policy: jax.Array  # [R, A] float32
    stamp: jax.Array  # [R] int32


class TableState(NamedTuple):
    """State of a table solver. Axes: D devices."""

    table: hash_table.Table
    entries: Entries
    averages: AveragePolicies  # with a leading axis D
    t: jax.Array  # [] int32
    dropped_visits: jax.Array  # [] int32, visits in the last iteration of information sets that did not fit
    abnormal: "AbnormalTerminations"
    baselines: state_baselines.StateBaselines | None


class AbnormalTerminations(NamedTuple):
    """Counts of trajectories so far that did not end normally; each [] int32, and at most COUNT_LIMIT."""

    unfinished: jax.Array  # longer than the maximal number of steps
    conflicts: jax.Array  # some player had several goal values, or none
    unbalanced: jax.Array  # payoffs do not sum to zero in a game that was classified as zero-sum
    unplayable: jax.Array  # some role had no legal move


def init(game: packed_env.PackedEnv, config: SamplerConfig, bits: int, devices: int) -> TableState:
    """Returns an empty state with a table of 2^bits rows."""
    num_rows, moves = 2**bits + 1, max(1, game.env.num_actions)
    zeros = functools.partial(jnp.zeros, (num_rows, moves), jnp.float32)
    return TableState(
        hash_table.init(bits),
        Entries(
            regret=zeros(),
            score=zeros() if config.optimism else None,
            legal=jnp.zeros((num_rows, -(-moves // 32)), jnp.uint32),
            stamp=jnp.zeros(num_rows, jnp.int32),
            representative=jnp.zeros(num_rows, jnp.int32),
        ),
        AveragePolicies(jnp.zeros((devices, num_rows, moves), jnp.float32), jnp.zeros((devices, num_rows), jnp.int32)),
        jnp.zeros((), jnp.int32),
        jnp.zeros((), jnp.int32),
        AbnormalTerminations(*(jnp.zeros((), jnp.int32) for _ in AbnormalTerminations._fields)),
        state_baselines.init(game.env.num_players, moves, bits) if config.baselines else None,
    )


def row_bytes(players: int, actions: int, config: SamplerConfig) -> int:
    """Returns the memory of one information set on one device."""
    moves = max(1, actions)
    tables = 2 + config.optimism
    values = state_baselines.row_bytes(players, moves) if config.baselines else 0
    return 4 * (moves * tables + -(-moves // 32) + 3) + 12 + values


def updated_row_bytes(players: int, actions: int, config: SamplerConfig) -> int:
    """Returns the memory of one information set while a state and the next one exist at the same time."""
    return 2 * row_bytes(players, actions, config)


def visit_bytes(players: int, config: SamplerConfig) -> int:
    """Returns the memory of the visits of a batch."""
    return 4 * (6 + 4 * config.baselines) * config.steps * players * config.batch


def largest_bits(players: int, actions: int, config: SamplerConfig, available: float, *, devices: int = 1) -> int:
    """Returns the base-2 logarithm of the largest table that fits into memory beside the visits of a batch."""
    row = devices * updated_row_bytes(players, actions, config)
    return hash_table.largest_bits(row, available - visit_bytes(players, config), actions=actions)


class CumulativeDiscounts(NamedTuple):
    """Log of the product of the first n = 0 .. FOLD_INTERVAL discounts since a fold; each [FOLD_INTERVAL + 1]."""

    positive: jax.Array
    negative: jax.Array
    average: jax.Array


class IterationDiscounts(NamedTuple):
    """Discounts that apply in one iteration."""

    cumulative: CumulativeDiscounts
    current: regret_matching.Discounts  # of this iteration
    n: jax.Array  # [] int32, number of this iteration since the fold, from 1 on


def cumulative_discounts(settings: regret_matching.Settings, start: jax.Array) -> CumulativeDiscounts:
    """Returns the discounts since the fold after `start` iterations."""
    by = jax.vmap(lambda n: regret_matching.discounts(settings, start + n)[:3])(jnp.arange(1, FOLD_INTERVAL + 1))
    zero = jnp.zeros(1, jnp.float32)
    return CumulativeDiscounts(
        *(
            jnp.concatenate([zero, jnp.log(jnp.maximum(part, _MIN_DISCOUNT)).cumsum().astype(jnp.float32)])
            for part in by
        )
    )


def fold(state: TableState, made: CumulativeDiscounts) -> TableState:
    """Applies all pending discounts, and resets the stamps."""
    entries, averages, last = state.entries, state.averages, FOLD_INTERVAL
    positive, negative = ((part[last] - part[entries.stamp])[:, None] for part in (made.positive, made.negative))
    regrets = entries.regret * jnp.exp(jnp.where(entries.regret > 0, positive, negative))
    weight = averages.cumulative_policy * jnp.exp(made.average[last] - made.average[averages.stamp])[..., None]
    return state._replace(
        entries=entries._replace(regret=regrets, stamp=jnp.zeros_like(entries.stamp)),
        averages=AveragePolicies(weight, jnp.zeros_like(averages.stamp)),
    )
