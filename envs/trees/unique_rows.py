"""Numbers distinct rows exactly, without hashing: the numbers are ranks of the rows in sorted order."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[Any]
_WORD = 2**62


class Numbering(NamedTuple):
    """Axes: N rows, K distinct ones."""

    number: Ints  # [N] int32, below K
    example: Ints  # [K] int64, a row with each number

    @property
    def size(self) -> int:
        return len(self.example)

    def sums(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """[K, ...] sums of the values [N, ...] of all rows with the same number."""
        if values.ndim == 1:
            return np.bincount(self.number, weights=values, minlength=self.size).astype(np.float64, copy=False)
        totals = np.zeros((self.size, *values.shape[1:]))
        np.add.at(totals, self.number, values)
        return totals


def number_rows(columns: Sequence[Ints], ranges: Sequence[int]) -> Numbering:
    """Numbers the rows of several integer columns; entry k of column c is in 0 .. ranges[c] - 1."""
    size = len(columns[0])
    key = np.zeros(size, np.int64)
    span = 1
    for column, bound in zip(columns, ranges, strict=True):
        if bound == 1:
            continue
        if span * bound > _WORD:  # ranks of the columns so far need fewer bits
            ranked = number_rows([key], [span])
            key, span = ranked.number.astype(np.int64), ranked.size
        key *= bound
        key += column
        span *= bound
    return _dense(key, span) if span <= max(4 * size, 2**16) else _sorted(key)


def _dense(key: Ints, span: int) -> Numbering:
    """With a table of all possible keys, if that is not much longer than the rows."""
    example = np.full(span, -1, np.int64)
    example[key[::-1]] = np.arange(len(key) - 1, -1, -1)
    seen = example >= 0
    rank = np.cumsum(seen, dtype=np.int32)
    rank -= 1
    return Numbering(rank[key], example[seen])


def _sorted(key: Ints) -> Numbering:
    order = np.argsort(key)
    ordered = key[order]
    is_first = np.empty(len(key), np.bool_)
    is_first[:1] = True
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    del ordered
    rank = np.cumsum(is_first, dtype=np.int32)
    rank -= 1
    numbers = np.empty(len(key), np.int32)
    numbers[order] = rank
    return Numbering(numbers, order[is_first])


def number_bit_columns(rows: npt.NDArray[np.bool_]) -> Numbering:
    """Numbers the columns of bool[R, N] by their bits."""
    packed = np.packbits(rows, axis=0)
    words = -(-len(packed) // 4)
    padded = np.zeros((4 * words, rows.shape[1]), np.uint8)
    padded[: len(packed)] = packed
    keys = np.ascontiguousarray(padded.T).view(np.uint32)
    return number_rows([np.zeros(rows.shape[1], np.int64), *keys.T], [1, *[2**32] * words])
