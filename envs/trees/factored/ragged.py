"""Rows of different lengths in one array, and exact numbering of equal rows."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gdlx.envs.trees import unique_rows

Array = npt.NDArray[Any]
Longs = npt.NDArray[np.int64]

_CHUNK = 2**18  # items that are worked on at once, so that intermediate results stay in the cache of a core
_SEEDS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9)


class Ragged(NamedTuple):
    """Axes: N rows, E items. Row n is `items[starts[n]:starts[n + 1]]`."""

    starts: Longs  # [N + 1]
    items: Array  # [E]

    @property
    def rows(self) -> int:
        return len(self.starts) - 1

    @property
    def lengths(self) -> Longs:
        return np.diff(self.starts)

    def take(self, rows: Longs) -> "Ragged":
        """The given rows, in the given order."""
        lengths = self.lengths[rows]
        starts = starts_of(lengths)
        items = np.empty(starts[-1], self.items.dtype)
        first = self.starts[:-1][rows]
        for part in chunks(lengths, _CHUNK):  # places take more memory than items
            places = places_of(first[part], lengths[part])
            np.take(self.items, places, out=items[starts[part.start] : starts[part.stop]], mode="clip")
        return Ragged(starts, items)


def starts_of(lengths: Array) -> Longs:
    """Where rows of these lengths begin, and where the last one ends."""
    starts = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts


def places_of(first: Longs, lengths: Longs) -> Longs:
    """The numbers first[n], first[n] + 1, .. of every row, concatenated.

    >>> places_of(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    starts = starts_of(lengths)
    places: Longs = np.arange(starts[-1])
    places += np.repeat(first - starts[:-1], lengths)
    return places


def from_groups(group: Array, items: Array, groups: int) -> Ragged:
    """Rows of the items of each group, sorted; items are below 2**62 / groups."""
    span = int(items.max(initial=0)) + 1
    key = group.astype(np.int64) * span
    key += items
    key.sort()
    key %= span
    return Ragged(starts_of(np.bincount(group, minlength=groups)), key)


def sort_rows(rows: Ragged) -> Ragged:
    """The same rows with their items in order."""
    span = int(rows.items.max(initial=0)) + 1
    items = rows.items.copy()
    for part in chunks(rows.lengths, _CHUNK):
        begin, end = rows.starts[part.start], rows.starts[part.stop]
        piece = items[begin:end]
        key = np.repeat(np.arange(part.stop - part.start) * span, rows.lengths[part])
        key += piece
        if (key[1:] < key[:-1]).any():
            key.sort()
            np.remainder(key, span, out=piece, casting="unsafe")
    return Ragged(rows.starts, items)


def number_rows(rows: Ragged) -> unique_rows.Numbering:
    """Numbers equal rows, whose items are sorted; a hash finds candidates, which are then compared item by item."""
    for seed in _SEEDS:
        hashes = _hash_rows(rows, seed) + rows.lengths.astype(np.uint64) * np.uint64(seed)
        numbering = unique_rows.number_rows([(hashes >> np.uint64(2)).astype(np.int64)], [2**62])
        if _are_equal(rows, numbering.example[numbering.number]):
            return numbering
    raise AssertionError("three hashes of 62 bits met in a pair of different rows")


def _hash_rows(rows: Ragged, seed: int) -> npt.NDArray[np.uint64]:
    """The sum of a hash of each item, modulo 2**64."""
    hashes = np.empty(rows.rows, np.uint64)
    for part in chunks(rows.lengths, _CHUNK):
        begin, end = rows.starts[part.start], rows.starts[part.stop]
        total = np.empty(end - begin + 1, np.uint64)
        total[0] = 0
        mixed = total[1:]
        mixed[:] = rows.items[begin:end]
        mixed += np.uint64(seed)
        mixed ^= mixed >> np.uint64(30)
        mixed *= np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(27)
        mixed *= np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(31)
        np.cumsum(mixed, out=mixed)  # rows are differences of the running sum
        bounds = rows.starts[part.start : part.stop + 1] - begin
        hashes[part] = total[bounds[1:]] - total[bounds[:-1]]
    return hashes


def _are_equal(rows: Ragged, others: Longs) -> bool:
    """Whether row n equals row others[n] for all n."""
    differ = np.flatnonzero(others != np.arange(rows.rows))
    lengths = rows.lengths[differ]
    if not np.array_equal(lengths, rows.lengths[others[differ]]):
        return False
    for part in chunks(lengths, _CHUNK):
        mine = places_of(rows.starts[:-1][differ[part]], lengths[part])
        theirs = places_of(rows.starts[:-1][others[differ[part]]], lengths[part])
        if not np.array_equal(rows.items[mine], rows.items[theirs]):
            return False
    return True


def chunks(lengths: Longs, size: int) -> list[slice]:
    """Divides rows into ranges of about `size` items; a longer row is a range of its own."""
    ends = np.cumsum(lengths)
    ranges: list[slice] = []
    begin = 0
    while begin < len(lengths):
        before = int(ends[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, before + size, side="right")))
        ranges.append(slice(begin, end))
        begin = end
    return ranges


def concatenate(parts: list[Ragged]) -> Ragged:
    """The rows of all parts."""
    lengths = [part.lengths for part in parts]
    items = [part.items for part in parts]
    return Ragged(
        starts_of(np.concatenate(lengths) if lengths else np.zeros(0, np.int64)),
        np.concatenate(items) if items else np.zeros(0, np.int64),
    )


def row_sums(rows: Ragged, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """[N] the sum over the items of each row of their values."""
    sums = np.zeros(rows.rows)
    for part in chunks(rows.lengths, _CHUNK):
        begin = rows.starts[part.start]
        gathered = np.append(values[rows.items[begin : rows.starts[part.stop]]], 0.0)
        starts = rows.starts[part.start : part.stop] - begin
        sums[part] = np.where(rows.lengths[part] > 0, np.add.reduceat(gathered, starts), 0.0)
    return sums


def distinct_in_rows(rows: Ragged, span: int) -> Ragged:
    """The distinct items of each row, sorted; items are below `span`."""
    lengths, items = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    step = max(1, 2**24 // max(1, span))
    for begin in range(0, rows.rows, step):
        end = min(rows.rows, begin + step)
        occurs = np.zeros((end - begin) * span, np.bool_)
        key = np.repeat(np.arange(end - begin) * span, rows.lengths[begin:end])
        key += rows.items[rows.starts[begin] : rows.starts[end]]
        occurs[key] = True
        lengths.append(occurs.reshape(end - begin, span).sum(axis=1))
        items.append(np.flatnonzero(occurs) % span)
    return Ragged(starts_of(np.concatenate(lengths)), np.concatenate(items))
