"""Ends of a two-player game as dense tables, where they are dense.

Two sequences are linked if some end has both. What is linked, directly or through others, is a table of the first
player's sequences and the second's. In most games, what is public leaves many small tables that are nearly full, and
a product with a full table is faster than the same product entry by entry: docs/solving.md has figures.
"""

import dataclasses
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse
import scipy.sparse.csgraph

from gdlx.envs.trees import unique_rows

Longs = npt.NDArray[np.int64]

_MIN_DENSITY = 0.08  # of a table; below that single entries are faster
_OVERHEAD = 2_000  # what one more group of tables costs, in table cells


@dataclasses.dataclass(frozen=True)
class BlockGroup:
    """Tables padded to one shape. Axes: E ends in them."""

    shape: tuple[int, int, int]  # rows, columns, tables
    ends: Longs  # [E]
    row: Longs  # [E]
    column: Longs  # [E]
    table: Longs  # [E]

    def transposed(self) -> "BlockGroup":
        """The same, seen by the second player."""
        rows, columns, tables = self.shape
        return BlockGroup((columns, rows, tables), self.ends, self.column, self.row, self.table)


class DenseBlocks(NamedTuple):
    groups: tuple[BlockGroup, ...]
    rest: Longs  # ends that are in no table


def no_dense_blocks(ends: int) -> DenseBlocks:
    return DenseBlocks((), np.arange(ends))


def find_dense_blocks(first: Longs, second: Longs) -> DenseBlocks:
    """Tables of ends [T], given by their (different) pairs of sequences."""
    if not len(first):
        return no_dense_blocks(0)
    rows, columns = (
        unique_rows.number_rows([first], [int(first.max()) + 1]),
        unique_rows.number_rows([second], [int(second.max()) + 1]),
    )
    links = scipy.sparse.coo_array(
        (np.ones(len(first), np.int8), (rows.number, rows.size + columns.number)),
        (rows.size + columns.size,) * 2,
    )
    count, part = scipy.sparse.csgraph.connected_components(links, directed=False)
    of_row, of_column = part[: rows.size], part[rows.size :]
    height, width = np.bincount(of_row, minlength=count), np.bincount(of_column, minlength=count)
    of_end = of_row[rows.number]
    is_dense = np.bincount(of_end, minlength=count) >= _MIN_DENSITY * height * width
    place_row, place_column = _place(of_row)[rows.number], _place(of_column)[columns.number]
    groups = []
    for members in _groups(height, width, np.flatnonzero(is_dense)):
        position = np.full(count, -1)
        position[members] = np.arange(len(members))
        ends = np.flatnonzero(position[of_end] >= 0)
        shape = (int(height[members].max()), int(width[members].max()), len(members))
        groups.append(BlockGroup(shape, ends, place_row[ends], place_column[ends], position[of_end[ends]]))
    return DenseBlocks(tuple(groups), np.flatnonzero(~is_dense[of_end]))


def _place(part: Longs) -> Longs:
    """The place of each member within its part."""
    order = np.argsort(part, kind="stable")
    counts = np.bincount(part)
    place = np.empty(len(part), np.int64)
    place[order] = np.arange(len(part)) - np.repeat(np.cumsum(counts) - counts, counts)
    return place


def _groups(height: Longs, width: Longs, tables: Longs) -> list[Longs]:
    """Tables of one shape together; shapes joined while padding costs less than one more group."""
    shapes: dict[tuple[int, int], list[Longs]] = {}
    kinds = unique_rows.number_rows([height[tables], width[tables]], [int(height.max()) + 1, int(width.max()) + 1])
    for number, example in enumerate(kinds.example):
        shape = int(height[tables[example]]), int(width[tables[example]])
        shapes[shape] = [tables[kinds.number == number]]
    while True:
        best, join = 0, None
        listed = sorted(shapes)
        for n, a in enumerate(listed):
            for b in listed[n + 1 :]:
                count_a, count_b = sum(map(len, shapes[a])), sum(map(len, shapes[b]))
                both = max(a[0], b[0]), max(a[1], b[1])
                padding = both[0] * both[1] * (count_a + count_b) - a[0] * a[1] * count_a - b[0] * b[1] * count_b
                if padding - _OVERHEAD < best:
                    best, join = padding - _OVERHEAD, (a, b, both)
        if join is None:
            return [np.sort(np.concatenate(parts)) for parts in shapes.values()]
        a, b, both = join
        parts = shapes.pop(a) + shapes.pop(b)
        shapes[both] = shapes.get(both, []) + parts
