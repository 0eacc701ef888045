"""A hash table of fixed size on the device: 64-bit keys to rows that never move, thousands of keys at a time.

Keys are looked for window by window, a window being a few neighbouring entries that are compared at once, from the
window that the key hashes to. A key is put into the first window on its way that has an empty entry, and nothing is
ever removed: so all windows before a key's own are full, and a search may stop at an empty entry.

Keys of one call compete for empty entries by maximum, first of their high words and then of their low ones. The largest
key wins, in whatever order a device writes, and copies of a key win together; losers look again. One round is enough
for most keys; the others are moved together, so that further rounds are short.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

WINDOW = 8  # entries
MAX_WINDOWS = 64  # that are searched for a key
MAX_LOAD_FACTOR = (
    0.85  # part of a table that is used before it should take no more: searches end soon where there are empty entries
)
_LOOKED_AT = 2**16  # entries that tell how much is used
_FEW = 8  # so many times fewer keys than in the call are in a round after the first
_LEAST = 256  # but so many at least

Pair = jax.Array | tuple[jax.Array, jax.Array]  # uint32[2, V], or two uint32[V]
HashFn = Callable[[jax.Array, jax.Array], jax.Array]  # high and low words, uint32[V] each -> uint32[V]
_ZERO_BECOMES = np.uint32(0x9E3779B9)  # low word of the key that stands for (0, 0)


class Table(NamedTuple):
    """Axes: C entries, a power of two. An entry is empty where both words are 0; its number is its key's row."""

    high: jax.Array  # [C] uint32, first words of the keys
    low: jax.Array  # [C] uint32, second words


class _Keys(NamedTuple):
    """What is looked for. Axes: K keys."""

    high: jax.Array  # [K] uint32
    low: jax.Array  # [K] uint32
    home: jax.Array  # [K] uint32
    wanted: jax.Array  # [K] bool, to be added if absent


class _Progress(NamedTuple):
    passed: jax.Array  # [K] int32, windows found full
    row: jax.Array  # [K] int32, -1 until found
    new: jax.Array  # [K] bool, added in this call
    searching: jax.Array  # [K] bool


def init(bits: int) -> Table:
    """A table of 2^bits entries, all empty."""
    if not 0 <= bits <= 30:
        raise ValueError(f"bits is the logarithm of a table's size, 0 to 30; not {bits}")
    size = 2**bits
    return Table(jnp.zeros(size, jnp.uint32), jnp.zeros(size, jnp.uint32))


def count_used(table: Table) -> jax.Array:
    """[] int32, entries that are not empty."""
    return jnp.sum((table.high | table.low) != 0, dtype=jnp.int32)


def load_factor(table: Table, most: int) -> jax.Array:
    """[] float32, the part that is used of the first entries: keys are spread evenly."""
    first = Table(table.high[:most], table.low[:most])
    return jnp.asarray(count_used(first) / len(first.high), jnp.float32)


def has_capacity(table: Table) -> jax.Array:
    """[] bool, whether it should take more keys."""
    return load_factor(table, _LOOKED_AT) < MAX_LOAD_FACTOR


def hash_keys(high: jax.Array, low: jax.Array) -> jax.Array:
    """Where the search for a key starts, in as many of the lowest bits as the table needs.

    Every bit of the key changes all of them: multiplication carries upwards, shifts bring the carries down again.
    """
    mixed: jax.Array = (high ^ (low << 16 | low >> 16)) * jnp.uint32(0x9E3779B1)
    mixed = (mixed ^ (mixed >> 15) ^ low) * jnp.uint32(0x85EBCA77)
    return mixed ^ (mixed >> 13)


def lookup(table: Table, keys: Pair, *, hash_fn: HashFn = hash_keys) -> jax.Array:
    """int32[V] rows of the keys, -1 where absent."""
    nothing = jnp.zeros(keys[0].shape, jnp.bool_)
    _, progress = _search(table, _prepared(keys, nothing, hash_fn), add=False)
    return progress.row


def insert(
    table: Table, keys: Pair, wanted: jax.Array, *, hash_fn: HashFn = hash_keys
) -> tuple[Table, jax.Array, jax.Array]:
    """The table with those of the keys that are wanted (bool[V]), int32[V] rows of all, and which are new (bool[V]).

    A row is -1 where a wanted key found no place, and where a key is absent that nobody wanted; a key that is wanted in
    one position only may have its row in the others or not. Equal keys have one row; it is new for one of them at
    least. `home` must be the same in all calls.
    """
    (high, low), progress = _search(table, _prepared(keys, wanted, hash_fn), add=True)
    return Table(high, low), progress.row, progress.new


def _prepared(keys: Pair, wanted: jax.Array, home: HashFn) -> _Keys:
    high = keys[0]
    low = jnp.where((high | keys[1]) == 0, _ZERO_BECOMES, keys[1])
    return _Keys(high, low, home(high, low), wanted)


_Words = tuple[jax.Array, jax.Array]


def _search(table: Table, keys: _Keys, *, add: bool) -> tuple[_Words, _Progress]:
    count = keys.high.shape[0]
    fresh = functools.partial(jnp.zeros, count)
    start = _Progress(fresh(jnp.int32), fresh(jnp.int32) - 1, fresh(jnp.bool_), ~fresh(jnp.bool_))
    few = min(count, max(count // _FEW, _LEAST))

    def unfinished(carry: tuple[_Words, _Progress]) -> jax.Array:
        return jnp.any(carry[1].searching)

    def finish_few(carry: tuple[_Words, _Progress]) -> tuple[_Words, _Progress]:
        words, progress = carry
        (chosen,) = jnp.nonzero(progress.searching, size=few, fill_value=count)
        own: _Keys = jax.tree.map(lambda x: x.at[chosen].get(mode="clip"), keys)
        begun: _Progress = jax.tree.map(lambda x: x.at[chosen].get(mode="clip"), progress)
        begun = begun._replace(searching=chosen < count)
        words, done = jax.lax.while_loop(unfinished, lambda c: _round(c[0], own, c[1], add=add), (words, begun))
        return words, jax.tree.map(lambda all_, part: all_.at[chosen].set(part, mode="drop"), progress, done)

    first = _round((table.high, table.low), keys, start, add=add)
    found: tuple[_Words, _Progress] = jax.lax.while_loop(unfinished, finish_few, first)
    return found


def _round(words: _Words, keys: _Keys, progress: _Progress, *, add: bool) -> tuple[_Words, _Progress]:
    """One window for every key that is searched for."""
    entries = words[0].shape[0]
    window = min(WINDOW, entries)
    windows = entries // window
    place = keys.home & jnp.uint32(entries - 1)
    # Steps of 1, 2, 3, ..: they come by all windows, as those are a power of two, and crowds do not grow together.
    steps = (progress.passed * (progress.passed + 1) // 2).astype(jnp.uint32)
    at = ((place // window + steps) & jnp.uint32(windows - 1)).astype(jnp.int32)
    high, low = (word.reshape(windows, window).at[at].get(mode="promise_in_bounds") for word in words)
    slots = np.arange(window, dtype=np.int32)
    same = (high == keys.high[:, None]) & (low == keys.low[:, None])
    held = jnp.max(jnp.where(same, slots, -1), axis=1)
    # Keys of one window try its empty entries from different ones on, so that fewer compete.
    turn = (place % window).astype(jnp.int32)
    nearest = jnp.min(jnp.where((high | low) == 0, (slots - turn[:, None]) & (window - 1), window), axis=1)
    absent = progress.searching & (held < 0)
    full = absent & (nearest == window)
    passed = progress.passed + full
    row = jnp.where(progress.searching & (held >= 0), at * window + held, progress.row)
    searching = full & (passed < min(MAX_WINDOWS, windows))
    after = progress._replace(passed=passed, row=row, searching=searching)
    if not add:
        return words, after
    target = at * window + ((nearest + turn) & (window - 1))
    return _compete(words, keys, after, target, absent & ~full & keys.wanted)


def _compete(
    words: _Words, keys: _Keys, progress: _Progress, target: jax.Array, claiming: jax.Array
) -> tuple[_Words, _Progress]:
    """Each empty entry goes to the largest of the keys that claim it."""
    won = claiming
    after = []
    for word, own in zip(words, (keys.high, keys.low), strict=True):
        word = word.at[jnp.where(won, target, word.shape[0])].max(own, mode="drop")
        won &= word.at[target].get(mode="promise_in_bounds") == own
        after.append(word)
    high, low = after
    return (high, low), progress._replace(
        row=jnp.where(won, target, progress.row),
        new=progress.new | won,
        searching=progress.searching | (claiming & ~won),
    )
