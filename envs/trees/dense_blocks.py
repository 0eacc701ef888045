"""Terminals of a two-player game as dense tables, where they are dense.

Two sequences are linked if some terminal has both. A connected component is a table of the first player's sequences by
the second's. In most games, public information leaves many small tables that are nearly full, and a product with a full
table is faster than the same product entry by entry: docs/development/results-log.md has figures.
"""

import dataclasses
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse
import scipy.sparse.csgraph

from gdlx.envs.trees import unique_rows

Longs = npt.NDArray[np.int64]

_MIN_DENSITY = 0.08  # of a table; below this, single entries are faster
_OVERHEAD = 2_000  # cost of one more group of tables, in table cells


@dataclasses.dataclass(frozen=True)
class BlockGroup:
    """Tables padded to one shape. Axes: E terminals in them."""

    shape: tuple[int, int, int]  # rows, columns, tables
    ends: Longs  # [E]
    row: Longs  # [E]
    column: Longs  # [E]
    table: Longs  # [E]

    def transposed(self) -> "BlockGroup":
        """The same tables from the second player's point of view."""
        rows, columns, tables = self.shape
        return BlockGroup((columns, rows, tables), self.ends, self.column, self.row, self.table)


class DenseBlocks(NamedTuple):
    groups: tuple[BlockGroup, ...]
    rest: Longs  # terminals that are in no table


def no_dense_blocks(ends: int) -> DenseBlocks:
    return DenseBlocks((), np.arange(ends))


def find_dense_blocks(first: Longs, second: Longs) -> DenseBlocks:
    """Finds tables among terminals [T], which are specified by their (distinct) pairs of sequences."""
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
    count, component = scipy.sparse.csgraph.connected_components(links, directed=False)
    of_row, of_column = component[: rows.size], component[rows.size :]
    height, width = np.bincount(of_row, minlength=count), np.bincount(of_column, minlength=count)
    of_terminal = of_row[rows.number]
    is_dense = np.bincount(of_terminal, minlength=count) >= _MIN_DENSITY * height * width
    place_row, place_column = _place(of_row)[rows.number], _place(of_column)[columns.number]
    groups = []
    for members in _groups(height, width, np.flatnonzero(is_dense)):
        position = np.full(count, -1)
        position[members] = np.arange(len(members))
        terminals = np.flatnonzero(position[of_terminal] >= 0)
        shape = (int(height[members].max()), int(width[members].max()), len(members))
        table = position[of_terminal[terminals]]
        groups.append(BlockGroup(shape, terminals, place_row[terminals], place_column[terminals], table))
    return DenseBlocks(tuple(groups), np.flatnonzero(~is_dense[of_terminal]))


def _place(component: Longs) -> Longs:
    """The place of each member within its component."""
    order = np.argsort(component, kind="stable")
    counts = np.bincount(component)
    place = np.empty(len(component), np.int64)
    place[order] = np.arange(len(component)) - np.repeat(np.cumsum(counts) - counts, counts)
    return place


def _groups(height: Longs, width: Longs, tables: Longs) -> list[Longs]:
    """Groups tables by shape, and joins shapes while padding costs less than one more group."""
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
