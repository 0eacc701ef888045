"""Rows of a hash table as lanes see them: what many lanes read, add up and write at their information sets at once.

Axes: R rows of a table, the last one for lanes at no set (their row is -1); A moves; B lanes; L words of A bits.
"""

import jax
import jax.numpy as jnp
import numpy as np

_SALT = 0x9E3779B9


def player_salt(player: int) -> np.uint32:
    """What the high words of a player's keys are mixed with: players may have the same history."""
    return np.uint32(_SALT * (player + 1) & 0xFFFFFFFF)


def player_keys(high: jax.Array, low: jax.Array, player: int) -> tuple[jax.Array, jax.Array]:
    """Keys under which a player's sets are in the table."""
    return high ^ player_salt(player), low


def uniform_from_bits(words: jax.Array) -> jax.Array:
    """uint32 -> float32 in [0, 1)"""
    return (words >> 8).astype(jnp.float32) * 2.0**-24


def uniform_policy(legal: jax.Array) -> jax.Array:
    """bool[A, B] -> uniform policies; 0 where nothing is legal."""
    return jnp.where(legal, 1 / jnp.maximum(jnp.sum(legal, axis=0), 1), 0)


def proportional_policy(table: jax.Array, row: jax.Array, legal: jax.Array) -> jax.Array:
    """[A, B] in proportion to what is positive in these rows; uniform where that is nothing."""
    positive = jnp.where(legal & (row >= 0), jnp.maximum(gather(table, row), 0), 0)
    total = jnp.sum(positive, axis=0)
    return jnp.where(total > 0, positive / jnp.where(total > 0, total, 1), uniform_policy(legal))


def sample_actions(probabilities: jax.Array, draw: jax.Array) -> jax.Array:
    """The option [B] that each draw falls on."""
    total = jnp.zeros_like(draw)
    reached = last = jnp.zeros(draw.shape, jnp.int32)
    for option, probability in enumerate(probabilities):
        total = total + probability
        reached += draw >= total
        last = jnp.where(probability > 0, option, last)
    return jnp.minimum(reached, last)  # what rounding leaves above the sum is the last one's


def select_actions(table: jax.Array, action: jax.Array) -> jax.Array:
    """[A, B], [B] -> [B]"""
    return jnp.sum(jnp.where(np.arange(table.shape[0])[:, None] == action, table, 0), axis=0)


def pack_legal_mask(legal: jax.Array) -> jax.Array:
    """bool[A, B] -> uint32[L, B]"""
    words = -(-legal.shape[0] // 32)
    padded = jnp.pad(legal, ((0, words * 32 - legal.shape[0]), (0, 0))).reshape(words, 32, -1).astype(jnp.uint32)
    return jnp.sum(padded << np.arange(32, dtype=np.uint32)[:, None], axis=1, dtype=jnp.uint32)


def unpack_legal_mask(bits: jax.Array, row: jax.Array, moves: int) -> jax.Array:
    """The legal moves bool[A, B] of the sets in these rows."""
    words = gather(bits, row)
    return jnp.stack([(words[n // 32] >> (n % 32)) & 1 for n in range(moves)]) == 1


def _places(table: jax.Array, row: jax.Array) -> jax.Array:
    """Of all options [A, B] in the flat table; the last row's where there is none."""
    rows, moves = table.shape
    return jnp.where(row >= 0, row, rows - 1) * moves + np.arange(moves, dtype=np.int32)[:, None]


def gather(table: jax.Array, row: jax.Array) -> jax.Array:
    """[R, A], [B] -> [A, B]"""
    return table.reshape(-1).at[_places(table, row)].get(mode="promise_in_bounds")


def gather_one(table: jax.Array, row: jax.Array) -> jax.Array:
    """[R], [B] -> [B]"""
    return table.at[jnp.where(row >= 0, row, table.shape[0] - 1)].get(mode="promise_in_bounds")


def elect_representatives(speaker: jax.Array, row: jax.Array) -> tuple[jax.Array, jax.Array]:
    """For each lane one of those that are at the same set [B]: sums go there, and it alone writes."""
    at = jnp.where(row >= 0, row, speaker.shape[0] - 1)
    speaker = speaker.at[at].set(jnp.arange(row.shape[0], dtype=jnp.int32), mode="promise_in_bounds")
    return speaker, speaker.at[at].get(mode="promise_in_bounds")


def sum_to_representatives(lane: jax.Array, numbers: jax.Array) -> jax.Array:
    return jnp.zeros_like(numbers).at[lane].add(numbers, mode="promise_in_bounds")


def sum_rows_to_representatives(lane: jax.Array, numbers: jax.Array) -> jax.Array:
    """[A, B] of all options."""
    moves, size = numbers.shape
    place = np.arange(moves, dtype=np.int32)[:, None] * size + lane
    return jnp.zeros(moves * size, numbers.dtype).at[place].add(numbers, mode="promise_in_bounds").reshape(moves, size)


def sum_by_action(lane: jax.Array, action: jax.Array, numbers: jax.Array, moves: int) -> jax.Array:
    """[A, B]"""
    place = action * lane.shape[0] + lane
    flat = jnp.zeros(moves * lane.shape[0], numbers.dtype).at[place].add(numbers, mode="promise_in_bounds")
    return flat.reshape(moves, -1)


def sum_over_same_action(lane: jax.Array, action: jax.Array, numbers: jax.Array, moves: int) -> jax.Array:
    """[B] for each lane, over all that are at its set and made its move."""
    sums = sum_by_action(lane, action, numbers, moves).reshape(-1)
    return sums.at[action * lane.shape[0] + lane].get(mode="promise_in_bounds")


def _place_of(table: jax.Array, row: jax.Array, action: jax.Array) -> jax.Array:
    """Of one option [B] in the flat table; in the last row where there is none."""
    rows, moves = table.shape
    return jnp.where(row >= 0, row, rows - 1) * moves + action


def gather_action(table: jax.Array, row: jax.Array, action: jax.Array) -> jax.Array:
    """[R, A], [B], [B] -> [B]"""
    return table.reshape(-1).at[_place_of(table, row, action)].get(mode="promise_in_bounds")


def scatter_action(table: jax.Array, row: jax.Array, action: jax.Array, numbers: jax.Array) -> jax.Array:
    """The table with [B] written to these options; those at the same one must write the same."""
    places = _place_of(table, row, action)
    return table.reshape(-1).at[places].set(numbers, mode="promise_in_bounds").reshape(table.shape)


def scatter(table: jax.Array, row: jax.Array, lane: jax.Array, numbers: jax.Array) -> jax.Array:
    """The table with [A, B] written to the rows, by those who speak for them."""
    speaks = lane == jnp.arange(row.shape[0])
    places = _places(table, jnp.where(speaks, row, -1))
    return table.reshape(-1).at[places].set(numbers, mode="promise_in_bounds").reshape(table.shape)


def update_stamps(stamp: jax.Array, row: jax.Array, last: jax.Array, n: jax.Array) -> jax.Array:
    """Rows that had the stamps `last`, stamped n.

    The maximum is n. It tells XLA that the old stamps have been read, and that no copy of them is needed.
    """
    at = jnp.where(row >= 0, row, stamp.shape[0] - 1)
    return stamp.at[at].set(jnp.maximum(last, n), mode="promise_in_bounds")


def all_gather_lanes(part: jax.Array, axis: str | None) -> jax.Array:
    """All devices' lanes, in the order of devices."""
    if axis is None:
        return part
    whole: jax.Array = jax.lax.all_gather(part, axis, axis=part.ndim - 1, tiled=True)
    return whole


def local_shard(whole: jax.Array, size: int, axis: str | None) -> jax.Array:
    """This device's of all lanes."""
    return whole if axis is None else jax.lax.dynamic_slice(whole, (jax.lax.axis_index(axis) * size,), (size,))


def count_true(flags: jax.Array, axis: str | None) -> jax.Array:
    own = jnp.sum(flags, dtype=jnp.int32)
    whole: jax.Array = own if axis is None else jax.lax.psum(own, axis)  # type: ignore[no-untyped-call]
    return whole
