"""Batched gather, sum and scatter on rows of a hash table, for many lanes at their information sets.

Axes: R rows of a table, the last one a dummy for lanes without an information set (their row is -1); A actions;
B lanes; L words of A bits.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

_SALT = 0x9E3779B9
_UNROLLED_ACTIONS = 64  # of a sample, at most
_ACTIONS_OF_PART = 8  # of a sample from more actions


def player_salt(player: int) -> np.uint32:
    """Returns the salt for the high words of a player's keys, since players may have equal histories."""
    return np.uint32(_SALT * (player + 1) & 0xFFFFFFFF)


def player_keys(high: jax.Array, low: jax.Array, player: int) -> tuple[jax.Array, jax.Array]:
    """Returns the table keys of a player's information sets."""
    return high ^ player_salt(player), low


def uniform_from_bits(words: jax.Array) -> jax.Array:
    """Maps random bits uint32 to float32 in [0, 1)."""
    return (words >> 8).astype(jnp.float32) * 2.0**-24


def uniform_policy(legal: jax.Array) -> jax.Array:
    """Returns uniform policies over legal actions bool[A, B]; 0 where nothing is legal."""
    return jnp.where(legal, 1 / jnp.maximum(jnp.sum(legal, axis=0), 1), 0)


def proportional_policy(table: jax.Array, row: jax.Array, legal: jax.Array) -> jax.Array:
    """Returns policies [A, B] in proportion to the positive entries of these rows; uniform where there are none."""
    positive = jnp.where(legal & (row >= 0), jnp.maximum(gather(table, row), 0), 0)
    total = jnp.sum(positive, axis=0)
    return jnp.where(total > 0, positive / jnp.where(total > 0, total, 1), uniform_policy(legal))


def sample_actions(probabilities: jax.Array, draw: jax.Array) -> jax.Array:
    """Maps each draw to an action [B]."""
    count = len(probabilities)
    none = (draw < 0).astype(jnp.int32)  # 0, and varies over the same devices
    start = _Sampled(none.astype(draw.dtype), none, none)
    if count <= _UNROLLED_ACTIONS:
        sampled = _sample(start, probabilities, draw, np.arange(count))
    else:  # the same in parts: compile time grows with the actions that are unrolled
        missing = -count % _ACTIONS_OF_PART
        parts = jnp.pad(probabilities, ((0, missing), (0, 0))).reshape(-1, _ACTIONS_OF_PART, *draw.shape)
        actions = np.arange(count + missing, dtype=np.int32).reshape(-1, _ACTIONS_OF_PART)
        sampled, _ = jax.lax.scan(
            lambda sampled, part: (_sample(sampled, part[0], draw, part[1]), None), start, (parts, actions)
        )
    # Draws above the sum, which rounding may leave below 1, go to the last action.
    return jnp.minimum(sampled.reached, sampled.last)


class _Sampled(NamedTuple):
    """The draws after some actions, each [B]: sum of probabilities, actions up to the draw, last possible action."""

    total: jax.Array
    reached: jax.Array
    last: jax.Array


def _sample(sampled: _Sampled, probabilities: jax.Array, draw: jax.Array, actions: Any) -> _Sampled:
    total, reached, last = sampled
    for number, probability in enumerate(probabilities):
        total = total + probability
        reached += draw >= total
        last = jnp.where(probability > 0, actions[number], last)
    return _Sampled(total, reached, last)


def select_actions(table: jax.Array, action: jax.Array) -> jax.Array:
    """[A, B], [B] -> [B]"""
    return jnp.sum(jnp.where(np.arange(table.shape[0])[:, None] == action, table, 0), axis=0)


def pack_legal_mask(legal: jax.Array) -> jax.Array:
    """bool[A, B] -> uint32[L, B]"""
    words = -(-legal.shape[0] // 32)
    padded = jnp.pad(legal, ((0, words * 32 - legal.shape[0]), (0, 0))).reshape(words, 32, -1).astype(jnp.uint32)
    return jnp.sum(padded << np.arange(32, dtype=np.uint32)[:, None], axis=1, dtype=jnp.uint32)


def unpack_legal_mask(bits: jax.Array, row: jax.Array, moves: int) -> jax.Array:
    """Returns the legal actions bool[A, B] of these rows."""
    words = gather(bits, row)[:, None]
    return ((words >> np.arange(32, dtype=np.uint32)[:, None]) & 1).reshape(-1, row.shape[0])[:moves] == 1


def _flat_row_indices(table: jax.Array, row: jax.Array) -> jax.Array:
    """Returns the flat indices [A, B] of all actions; those of the last row where `row` is -1."""
    rows, moves = table.shape
    return jnp.where(row >= 0, row, rows - 1) * moves + np.arange(moves, dtype=np.int32)[:, None]


def gather(table: jax.Array, row: jax.Array) -> jax.Array:
    """[R, A], [B] -> [A, B]"""
    return table.reshape(-1).at[_flat_row_indices(table, row)].get(mode="promise_in_bounds")


def gather_one(table: jax.Array, row: jax.Array) -> jax.Array:
    """[R], [B] -> [B]"""
    return table.at[jnp.where(row >= 0, row, table.shape[0] - 1)].get(mode="promise_in_bounds")


def elect_representatives(representatives: jax.Array, row: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Elect one of the lanes at each row: sums are collected there, and it alone writes.

    `representatives` is the scratch int32[R] of representatives by row. Returns it updated, and int32[B] each lane's
    representative.
    """
    at = jnp.where(row >= 0, row, representatives.shape[0] - 1)
    representatives = representatives.at[at].set(jnp.arange(row.shape[0], dtype=jnp.int32), mode="promise_in_bounds")
    return representatives, representatives.at[at].get(mode="promise_in_bounds")


def sum_to_representatives(lane: jax.Array, numbers: jax.Array) -> jax.Array:
    """[B] -> [B], sums over the lanes of each representative"""
    return jnp.zeros_like(numbers).at[lane].add(numbers, mode="promise_in_bounds")


def sum_rows_to_representatives(lane: jax.Array, numbers: jax.Array) -> jax.Array:
    """[A, B] -> [A, B], sums over the lanes of each representative"""
    moves, size = numbers.shape
    place = np.arange(moves, dtype=np.int32)[:, None] * size + lane
    return jnp.zeros(moves * size, numbers.dtype).at[place].add(numbers, mode="promise_in_bounds").reshape(moves, size)


def sum_by_action(lane: jax.Array, action: jax.Array, numbers: jax.Array, moves: int) -> jax.Array:
    """Returns sums [A, B] by action over the lanes of each representative."""
    place = action * lane.shape[0] + lane
    flat = jnp.zeros(moves * lane.shape[0], numbers.dtype).at[place].add(numbers, mode="promise_in_bounds")
    return flat.reshape(moves, -1)


def sum_over_same_action(lane: jax.Array, action: jax.Array, numbers: jax.Array, moves: int) -> jax.Array:
    """Returns sums [B] over all lanes with the same row and action."""
    sums = sum_by_action(lane, action, numbers, moves).reshape(-1)
    return sums.at[action * lane.shape[0] + lane].get(mode="promise_in_bounds")


def _flat_action_index(table: jax.Array, row: jax.Array, action: jax.Array) -> jax.Array:
    """Returns the flat index [B] of one action; in the last row where `row` is -1."""
    rows, moves = table.shape
    return jnp.where(row >= 0, row, rows - 1) * moves + action


def gather_action(table: jax.Array, row: jax.Array, action: jax.Array) -> jax.Array:
    """[R, A], [B], [B] -> [B]"""
    return table.reshape(-1).at[_flat_action_index(table, row, action)].get(mode="promise_in_bounds")


def scatter_action(table: jax.Array, row: jax.Array, action: jax.Array, numbers: jax.Array) -> jax.Array:
    """Writes [B] to these actions; lanes at the same row and action must write the same number."""
    places = _flat_action_index(table, row, action)
    return table.reshape(-1).at[places].set(numbers, mode="promise_in_bounds").reshape(table.shape)


def scatter(table: jax.Array, row: jax.Array, lane: jax.Array, numbers: jax.Array) -> jax.Array:
    """Writes [A, B] to these rows, from their representative lanes."""
    is_representative = lane == jnp.arange(row.shape[0])
    places = _flat_row_indices(table, jnp.where(is_representative, row, -1))
    return table.reshape(-1).at[places].set(numbers, mode="promise_in_bounds").reshape(table.shape)


def update_stamps(stamp: jax.Array, row: jax.Array, last: jax.Array, n: jax.Array) -> jax.Array:
    """Stamp the rows, whose stamps were `last`, with n.

    The maximum always equals n. It makes XLA read the old stamps first, so that it needs no copy of them.
    """
    at = jnp.where(row >= 0, row, stamp.shape[0] - 1)
    return stamp.at[at].set(jnp.maximum(last, n), mode="promise_in_bounds")


def all_gather_lanes(part: jax.Array, axis: str | None) -> jax.Array:
    """Returns the lanes of all devices, in device order."""
    if axis is None:
        return part
    gathered: jax.Array = jax.lax.all_gather(part, axis, axis=part.ndim - 1, tiled=True)
    return gathered


def local_shard(whole: jax.Array, size: int, axis: str | None) -> jax.Array:
    """Returns this device's shard of all lanes."""
    return whole if axis is None else jax.lax.dynamic_slice(whole, (jax.lax.axis_index(axis) * size,), (size,))


def count_true(flags: jax.Array, axis: str | None) -> jax.Array:
    """Count true flags on all devices."""
    local = jnp.sum(flags, dtype=jnp.int32)
    total: jax.Array = local if axis is None else jax.lax.psum(local, axis)  # type: ignore[no-untyped-call]
    return total
