"""A hash table of fixed size on the device: maps 64-bit keys to stable rows, thousands of keys per call.

A search probes window by window, from the window that the key hashes to; a window is a few neighbouring entries that
are compared at once. A key is inserted into the first probed window with an empty entry, and nothing is ever removed:
so all windows before the one that holds a key are full, and a search may stop at an empty entry.

Keys of one call compete for empty entries by maximum, first of their high words and then of their low words. The
largest key wins, in whatever order the device writes, and copies of a key win together; losers probe again. One round
is enough for most keys; the others are compacted, so that further rounds are short.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

LEAST_BITS, MOST_BITS = 4, 28  # base-2 logarithms of the sizes that solvers accept
WINDOW = 8  # entries
MAX_WINDOWS = 64  # probed for a key
MAX_LOAD_FACTOR = 0.85  # callers should insert no more beyond it: searches are short while there are empty entries
_LOAD_SAMPLE = 2**16  # entries from which the load factor is estimated
_COMPACTION = 8  # rounds after the first search for so many times fewer keys
_MIN_COMPACTED = 256  # but at least for this many

Pair = jax.Array | tuple[jax.Array, jax.Array]  # uint32[2, V], or two uint32[V]
HashFn = Callable[[jax.Array, jax.Array], jax.Array]  # high and low words, uint32[V] each -> uint32[V]
_ZERO_KEY_LOW = np.uint32(0x9E3779B9)  # low word of the key that replaces (0, 0), which marks empty entries


class Table(NamedTuple):
    """Axes: C entries, a power of two. An entry is empty if both words are 0; its index is the row of its key."""

    high: jax.Array  # [C] uint32, first words of the keys
    low: jax.Array  # [C] uint32, second words


class _Keys(NamedTuple):
    """Keys of a search. Axes: K keys."""

    high: jax.Array  # [K] uint32
    low: jax.Array  # [K] uint32
    home: jax.Array  # [K] uint32
    to_insert: jax.Array  # [K] bool, whether to insert it if absent


class _Progress(NamedTuple):
    passed: jax.Array  # [K] int32, full windows so far
    row: jax.Array  # [K] int32, -1 until found
    new: jax.Array  # [K] bool, inserted in this call
    searching: jax.Array  # [K] bool


def init(bits: int) -> Table:
    """Returns an empty table of 2^bits entries.

    Raises:
      ValueError: If `bits` is not between 0 and 30.
    """
    if not 0 <= bits <= 30:
        raise ValueError(f"`bits=` is the base-2 logarithm of the table size and must be 0 to 30, not {bits}")
    size = 2**bits
    return Table(jnp.zeros(size, jnp.uint32), jnp.zeros(size, jnp.uint32))


def largest_bits(row_bytes: int, available: float, *, actions: int = 1) -> int:
    """Returns the base-2 logarithm of the largest table that fits into memory.

    Args:
      row_bytes: of one entry with all that is stored for it.
      available: bytes for the table.
      actions: numbers in a row of the widest array, all of which must be indexable by int32.

    >>> largest_bits(100, 2**20), largest_bits(100, 2**60), largest_bits(100, 2**60, actions=500)
    (13, 28, 22)
    """
    rows = min(available / row_bytes, (2**31 - 1) / max(1, actions))
    return min(MOST_BITS, max(LEAST_BITS, int(max(1, rows)).bit_length() - 1))


def count_used(table: Table) -> jax.Array:
    """Returns the number of entries that are not empty, [] int32."""
    return jnp.sum((table.high | table.low) != 0, dtype=jnp.int32)


def load_factor(table: Table, most: int) -> jax.Array:
    """Estimates the load factor, [] float32, from the first `most` entries; keys are spread evenly."""
    first = Table(table.high[:most], table.low[:most])
    return jnp.asarray(count_used(first) / len(first.high), jnp.float32)


def has_capacity(table: Table) -> jax.Array:
    """Returns whether more keys should be inserted, [] bool."""
    return load_factor(table, _LOAD_SAMPLE) < MAX_LOAD_FACTOR


def hash_keys(high: jax.Array, low: jax.Array) -> jax.Array:
    """Hashes keys to the start of their search; a table uses the lowest bits.

    Every bit of the key affects all of them: multiplication carries upwards, shifts bring the carries down again.
    """
    mixed: jax.Array = (high ^ (low << 16 | low >> 16)) * jnp.uint32(0x9E3779B1)
    mixed = (mixed ^ (mixed >> 15) ^ low) * jnp.uint32(0x85EBCA77)
    return mixed ^ (mixed >> 13)


def lookup(table: Table, keys: Pair, *, hash_fn: HashFn = hash_keys) -> jax.Array:
    """Returns the rows int32[V] of the keys, -1 where absent."""
    no_key = jnp.zeros(keys[0].shape, jnp.bool_)
    _, progress = _search(table, _prepare_keys(keys, no_key, hash_fn), add=False)
    return progress.row


def insert(
    table: Table, keys: Pair, to_insert: jax.Array, *, hash_fn: HashFn = hash_keys
) -> tuple[Table, jax.Array, jax.Array]:
    """Inserts the keys of `to_insert` (bool[V]); returns the table, all rows int32[V], and bool[V] which keys are new.

    A row is -1 where a key to insert did not fit, and where an absent key is not to be inserted. If a key occurs more
    than once and is to be inserted in one position only, the other positions may or may not have its row. Equal keys
    share one row; at least one of them is reported as new. `hash_fn` must be the same in all calls.
    """
    (high, low), progress = _search(table, _prepare_keys(keys, to_insert, hash_fn), add=True)
    return Table(high, low), progress.row, progress.new


def _prepare_keys(keys: Pair, to_insert: jax.Array, home: HashFn) -> _Keys:
    high = keys[0]
    low = jnp.where((high | keys[1]) == 0, _ZERO_KEY_LOW, keys[1])
    return _Keys(high, low, home(high, low), to_insert)


_Words = tuple[jax.Array, jax.Array]


def _search(table: Table, keys: _Keys, *, add: bool) -> tuple[_Words, _Progress]:
    count = keys.high.shape[0]
    zeros = functools.partial(jnp.zeros, count)
    start = _Progress(zeros(jnp.int32), zeros(jnp.int32) - 1, zeros(jnp.bool_), ~zeros(jnp.bool_))
    few = min(count, max(count // _COMPACTION, _MIN_COMPACTED))

    def unfinished(carry: tuple[_Words, _Progress]) -> jax.Array:
        return jnp.any(carry[1].searching)

    def finish_few(carry: tuple[_Words, _Progress]) -> tuple[_Words, _Progress]:
        words, progress = carry
        (chosen,) = jnp.nonzero(progress.searching, size=few, fill_value=count)
        compacted: _Keys = jax.tree.map(lambda x: x.at[chosen].get(mode="clip"), keys)
        started: _Progress = jax.tree.map(lambda x: x.at[chosen].get(mode="clip"), progress)
        started = started._replace(searching=chosen < count)
        words, done = jax.lax.while_loop(unfinished, lambda c: _round(c[0], compacted, c[1], add=add), (words, started))
        return words, jax.tree.map(lambda all_, part: all_.at[chosen].set(part, mode="drop"), progress, done)

    first = _round((table.high, table.low), keys, start, add=add)
    final: tuple[_Words, _Progress] = jax.lax.while_loop(unfinished, finish_few, first)
    return final


def _round(words: _Words, keys: _Keys, progress: _Progress, *, add: bool) -> tuple[_Words, _Progress]:
    """Probe one window for every key that is still searched for."""
    entries = words[0].shape[0]
    window = min(WINDOW, entries)
    windows = entries // window
    place = keys.home & jnp.uint32(entries - 1)
    # Triangular probing visits all windows, since their number is a power of two, and avoids clustering.
    steps = (progress.passed * (progress.passed + 1) // 2).astype(jnp.uint32)
    at = ((place // window + steps) & jnp.uint32(windows - 1)).astype(jnp.int32)
    high, low = (word.reshape(windows, window).at[at].get(mode="promise_in_bounds") for word in words)
    slots = np.arange(window, dtype=np.int32)
    same = (high == keys.high[:, None]) & (low == keys.low[:, None])
    slot = jnp.max(jnp.where(same, slots, -1), axis=1)
    # Keys of one window start at different entries of it, so that fewer compete.
    first_slot = (place % window).astype(jnp.int32)
    offset = jnp.min(jnp.where((high | low) == 0, (slots - first_slot[:, None]) & (window - 1), window), axis=1)
    absent = progress.searching & (slot < 0)
    full = absent & (offset == window)
    passed = progress.passed + full
    row = jnp.where(progress.searching & (slot >= 0), at * window + slot, progress.row)
    searching = full & (passed < min(MAX_WINDOWS, windows))
    after = progress._replace(passed=passed, row=row, searching=searching)
    if not add:
        return words, after
    target = at * window + ((offset + first_slot) & (window - 1))
    return _compete(words, keys, after, target, absent & ~full & keys.to_insert)


def _compete(
    words: _Words, keys: _Keys, progress: _Progress, target: jax.Array, claiming: jax.Array
) -> tuple[_Words, _Progress]:
    """Gives each empty entry to the largest of the keys that claim it."""
    won = claiming
    after = []
    for word, key_word in zip(words, (keys.high, keys.low), strict=True):
        word = word.at[jnp.where(won, target, word.shape[0])].max(key_word, mode="drop")
        won &= word.at[target].get(mode="promise_in_bounds") == key_word
        after.append(word)
    high, low = after
    return (high, low), progress._replace(
        row=jnp.where(won, target, progress.row),
        new=progress.new | won,
        searching=progress.searching | (claiming & ~won),
    )
