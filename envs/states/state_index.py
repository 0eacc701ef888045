"""Numbers states in the order in which they are found, and finds them again."""

import numpy as np
import numpy.typing as npt

from gdlx.envs.states import state_labels
from gdlx.envs.trees import unique_rows

Words = state_labels.Words
Longs = npt.NDArray[np.int64]
Ints = npt.NDArray[np.int32]

_MULTIPLIER, _SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(29)


def number_words(words: Words) -> unique_rows.Numbering:
    """Numbers distinct rows [N, W] in the order of their first occurrence; hashes only bring equal rows together.

    >>> number_words(np.array([[7], [5], [7]], np.uint64)).number.tolist()
    [0, 1, 0]
    """
    key = _hash(words)
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    is_first = np.ones(len(order), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    number = np.empty(len(order), np.int32)
    number[order] = np.cumsum(is_first, dtype=np.int32) - 1
    first = order[is_first]  # the sort is stable
    if words.shape[1] > 1 and not np.array_equal(words[first[number]], words):  # two rows have the same hash
        halves = np.ascontiguousarray(words).view(np.uint32)
        exact = unique_rows.number_rows(list(halves.T.astype(np.int64)), [2**32] * halves.shape[1])
        number, first = exact.number, np.full(exact.size, len(words))
        np.minimum.at(first, number, np.arange(len(words)))
    by_occurrence = np.argsort(first)
    rank = np.empty(len(first), np.int32)
    rank[by_occurrence] = np.arange(len(first))
    return unique_rows.Numbering(rank[number], first[by_occurrence])


def _hash(words: Words) -> Words:
    """[N] a hash of every row; the row itself if it has one word."""
    key: Words = words[:, 0].copy()
    for column in words.T[1:]:
        key *= _MULTIPLIER
        key ^= key >> _SHIFT
        key += column
    return key


class StateIndex:
    """The states of a graph so far. Axes: S states, W words.

    Sorted runs of hashes find a state, whose words are then compared. Were two states to have the same hash, the later
    one would be numbered again whenever it is reached: the graph would be larger, and not wrong.

    >>> index = StateIndex(1)
    >>> index.add(np.array([[7], [5]], np.uint64)).tolist(), index.add(np.array([[5], [9]], np.uint64)).tolist()
    ([0, 1], [1, 2])
    >>> len(index)
    3
    """

    def __init__(self, words: int) -> None:
        self._parts: list[Words] = [np.zeros((0, words), np.uint64)]
        self._runs: list[tuple[Words, Longs]] = []  # sorted hashes, and their states
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def words(self) -> Words:
        """[S, W] all states."""
        if len(self._parts) > 1:
            self._parts = [np.concatenate(self._parts)]
        return self._parts[0]

    def add(self, rows: Words) -> Longs:
        """Returns the numbers of distinct states [N, W]; those that are new get the next ones, in order."""
        key = _hash(rows)
        number = self._find(rows, key)
        is_new = number < 0
        added = int(is_new.sum())
        number[is_new] = self._size + np.arange(added)
        self._parts.append(rows[is_new])
        order = np.argsort(key[is_new], kind="stable")
        self._push(key[is_new][order], number[is_new][order])
        self._size += added
        return number

    def find(self, rows: Words) -> Longs:
        """Returns the numbers of states [N, W], -1 for unknown ones."""
        return self._find(rows, _hash(rows))

    def _find(self, rows: Words, key: Words) -> Longs:
        number = np.full(len(rows), -1, np.int64)
        if not self._runs:
            return number
        known = self.words
        for hashes, states in self._runs:
            place = np.minimum(np.searchsorted(hashes, key), len(hashes) - 1)
            hits = np.flatnonzero((hashes[place] == key) & (number < 0))
            candidates = states[place[hits]]
            equal = (known[candidates] == rows[hits]).all(axis=1)
            number[hits[equal]] = candidates[equal]
        return number

    def _push(self, hashes: Words, states: Longs) -> None:
        """Adds a run; runs of similar length are merged, so that there are few."""
        while self._runs and len(self._runs[-1][0]) <= 2 * len(hashes):
            other_hashes, other_states = self._runs.pop()
            hashes, states = np.concatenate([other_hashes, hashes]), np.concatenate([other_states, states])
            order = np.argsort(hashes, kind="stable")
            hashes, states = hashes[order], states[order]
        if len(hashes):
            self._runs.append((hashes, states))
