"""Terminals in blocks as gathers and sums, the third way to store payoffs beside dense tables and single entries.

The expected payoff of player i for each of its sequences is M_i' P_i (M_j x_j), with M_j the sets of a player by its
sequences and P_i the payoffs by sets (`factored.terminal_blocks`); with more players, P_i multiplies the sums of all
others. Rows of a matrix that are about as long form one table [k, n], padded to the longest of them: its sums are one
fused loop without scattered additions, on CPUs and accelerators alike.
"""

import functools
import itertools
import operator
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
import scipy.sparse

from gdlx.envs.trees import device_arrays
from gdlx.envs.trees.factored import ragged, terminal_blocks

T = TypeVar("T")
Longs = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_EXACT, _GROWTH = 8, 1.15  # rows up to so long are not padded; others to lengths that grow by this factor
_UNROLLED = 4  # rows of a table that are not a loop
_FEW_ROWS = 256  # fewer rows join those of the next length


class Gathers(NamedTuple):
    """Sums of entries of a vector. Row n of the result is the sum over k of `tables[g][k, n]`, group after group."""

    tables: tuple[jax.Array, ...]  # G x [k, n] int32, places in the vector; its length stands for a 0


class Products(NamedTuple):
    """Blocks by the set of the player, as tables [k, n]."""

    others: tuple[jax.Array, ...]  # P - 1 x [k, n] int32, rows of the other players' sums
    payoff: jax.Array  # [k, n] float, payoff times chance reach; 0 for padding


class BlockPayoffs(NamedTuple):
    """The blocks of one player. Axes: P players, G groups of rows."""

    reach: tuple[Gathers, ...]  # P - 1, from the flat plans of the other players to the sums of their sets
    products: tuple[Products, ...]  # G, to the payoffs of the player's sets
    sequences: Gathers  # from these to the player's sequences
    scales: tuple[jax.Array, ...] | None = None  # P - 1 x [size], factors of the plans; None for 1
    scale: jax.Array | None = None  # [m] factors of the results


def add_up(payoffs: BlockPayoffs, others: Sequence[jax.Array]) -> jax.Array:
    """The expected payoffs of all sequences that occur in blocks, for flat plans [size, ...] of the other players."""
    if payoffs.scales is not None:
        others = [_scaled(plan, scale) for plan, scale in zip(others, payoffs.scales, strict=True)]
    sums = [_gather(gathers, plan) for gathers, plan in zip(payoffs.reach, others, strict=True)]
    total = _gather(payoffs.sequences, jnp.concatenate([_multiply(product, sums) for product in payoffs.products]))
    return total if payoffs.scale is None else _scaled(total, payoffs.scale)


def _scaled(vector: jax.Array, scale: jax.Array) -> jax.Array:
    """A vector [n, ...] times factors [n]."""
    return vector * scale.reshape(scale.shape + (1,) * (vector.ndim - 1))


def _gather(gathers: Gathers, vector: jax.Array) -> jax.Array:
    padded = jnp.concatenate([vector, jnp.zeros((1, *vector.shape[1:]), vector.dtype)])
    return jnp.concatenate(
        [_sum_rows(table, lambda rows: padded.at[rows].get(mode="promise_in_bounds")) for table in gathers.tables]
    )


def _multiply(product: Products, sums: Sequence[jax.Array]) -> jax.Array:
    def values(rows: tuple[jax.Array, tuple[jax.Array, ...]]) -> jax.Array:
        payoff, others = rows
        factors = [x.at[places].get(mode="promise_in_bounds") for places, x in zip(others, sums, strict=True)]
        if not factors:  # a single player
            return payoff
        return functools.reduce(operator.mul, factors, payoff.reshape(payoff.shape + (1,) * (factors[0].ndim - 1)))

    return _sum_rows((product.payoff, product.others), values)


def _sum_rows(tables: T, values: Callable[[T], jax.Array]) -> jax.Array:
    """The sum of values(row) over the rows of tables [k, n].

    Row by row, so that each is one fused gather and addition: XLA's reduction of a gather is ten times slower on CPUs.
    """
    rows = len(jax.tree.leaves(tables)[0])
    total = values(jax.tree.map(lambda table: table[0], tables))
    if rows <= _UNROLLED:
        for row in range(1, rows):
            total = total + values(jax.tree.map(lambda table, row=row: table[row], tables))
        return total

    def add(row: jax.Array, total: jax.Array) -> jax.Array:
        return total + values(jax.tree.map(lambda table: table[row], tables))

    summed: jax.Array = jax.lax.fori_loop(1, rows, add, total)
    return summed


class Arranged(NamedTuple):
    """Rows in groups of similar length. Axes: N rows, G groups."""

    order: Longs  # [N] the rows, group after group
    tables: list[npt.NDArray[np.int32]]  # G x [k, n] places in the items, their number for padding


def build(
    blocks: terminal_blocks.TerminalBlocks,
    places: Sequence[Longs],
    sizes: Sequence[int],
    scales: Sequence[Floats] | None = None,
) -> list["Player"]:
    """Arranges the blocks for every player.

    Args:
      blocks: the terminals.
      places: for every player, where each of its sequences is in its flat vector.
      sizes: the lengths of these vectors.
      scales: for every player, by what the plan of each of its sequences is multiplied; None for 1.
    """
    # Player by player: temporary arrays are as large as what is kept.
    sides = [
        _arrange_side(blocks, number, place, size)
        for number, (place, size) in enumerate(zip(places, sizes, strict=True))
    ]
    players = [_build_player(blocks, sides, number) for number in range(len(sides))]
    if scales is None:
        return players
    flat = []
    for scale, place, size in zip(scales, places, sizes, strict=True):
        vector = np.ones(size)
        vector[place] = scale
        flat.append(vector)
    return [
        player._replace(
            payoffs=player.payoffs._replace(
                scales=tuple(device_arrays.floats(vector) for n, vector in enumerate(flat) if n != number),
                scale=device_arrays.floats(flat[number][player.rows]),
            )
        )
        for number, player in enumerate(players)
    ]


class Player(NamedTuple):
    """`rows` are the places of the sums in the player's flat vector."""

    payoffs: BlockPayoffs
    rows: Longs


class _Side(NamedTuple):
    """The sets of one player. Axes: N sets, B blocks, m sequences in sets."""

    reach: Gathers  # from the flat plan to the sums of the sets
    ranks: Longs  # [N] places of the sets among these sums
    blocks: npt.NDArray[np.int32]  # [B] set after set
    by_set: Arranged  # places in `blocks`
    sequences: Gathers  # from the payoffs of the sets to those of sequences
    rows: Longs  # [m] places of these in the flat vector


def _arrange_side(blocks: terminal_blocks.TerminalBlocks, number: int, place: Longs, size: int) -> _Side:
    members = blocks.members[number]
    moved = ragged.sort_rows(ragged.Ragged(members.starts, place.astype(np.int32)[members.items]))
    arranged = _arrange(moved)
    reach, ranks = _gathers(moved.items, arranged, size), _ranks(arranged.order)
    del arranged
    # Blocks by the player's set, in an order of their own.
    of_set = ragged.from_groups(blocks.sets[:, number], np.arange(len(blocks.weight)), moved.rows)
    by_set = _arrange(of_set)
    # The player's sequences by the sets that have them: the transposed matrix, a sequence as often as it occurs.
    used, transposed = _transpose(moved, _ranks(by_set.order))
    del moved
    by_sequence = _arrange(transposed)
    sequences = _gathers(transposed.items, by_sequence, members.rows)
    return _Side(reach, ranks, of_set.items.astype(np.int32), by_set, sequences, used[by_sequence.order])


def _build_player(blocks: terminal_blocks.TerminalBlocks, sides: Sequence[_Side], number: int) -> Player:
    side, others = sides[number], [n for n in range(len(sides)) if n != number]
    products = []
    for table in side.by_set.tables:
        block, is_block = side.blocks.take(table, mode="clip"), table < len(side.blocks)
        rows = tuple(device_arrays.ints(np.where(is_block, sides[n].ranks[blocks.sets[block, n]], 0)) for n in others)
        payoff = blocks.payoff[block, number] * blocks.weight[block]
        products.append(Products(rows, device_arrays.floats(np.where(is_block, payoff, 0.0))))
    reach = tuple(sides[n].reach for n in others)
    return Player(BlockPayoffs(reach, tuple(products), side.sequences), side.rows)


def _transpose(rows: ragged.Ragged, rank: Longs) -> tuple[Longs, ragged.Ragged]:
    """The items that occur, and for each the ranks of the rows that have it."""
    counts = np.bincount(rows.items)
    used = np.flatnonzero(counts)
    none = np.zeros(len(rows.items), np.int8)
    by_row = scipy.sparse.csr_array((none, rows.items, rows.starts), shape=(rows.rows, len(counts)))
    return used, ragged.Ragged(ragged.starts_of(counts[used]), rank.astype(np.int32)[by_row.tocsc().indices])


def _arrange(rows: ragged.Ragged) -> Arranged:
    """Groups rows by length; rows of a group are in order of their first items, so that neighbours read the same."""
    lengths = rows.lengths
    width = _widths(lengths)[np.searchsorted(_widths(lengths), lengths)]
    first = np.zeros(rows.rows, np.int64)
    nonempty = lengths > 0
    first[nonempty] = rows.items[rows.starts[:-1][nonempty]]
    order = np.lexsort((first, width))
    tables = []
    bounds = np.flatnonzero(np.diff(width[order], prepend=-1, append=-1))
    for begin, end in itertools.pairwise(bounds.tolist()):
        group = order[begin:end]
        within = np.arange(width[group[0]], dtype=np.int32)[:, None]
        place = rows.starts[:-1].astype(np.int32)[group] + within
        place[within >= lengths[group].astype(np.int32)] = len(rows.items)
        tables.append(place)
    return Arranged(order, tables)


def _widths(lengths: Longs) -> Longs:
    """The lengths to which rows are padded, ascending."""
    counts = np.bincount(lengths)
    longest = len(counts) - 1
    widths = list(range(1, min(_EXACT, longest) + 1))
    while widths[-1] < longest:
        widths.append(min(longest, int(widths[-1] * _GROWTH) + 1))
    kept, rows, before = [], 0, 0
    for width in widths:
        rows += int(counts[before : width + 1].sum())
        before = width + 1
        if rows >= _FEW_ROWS or width == longest:
            kept.append(width)
            rows = 0
    return np.array(kept)


def _ranks(order: Longs) -> Longs:
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    return ranks


def _gathers(items: npt.NDArray[np.int32], arranged: Arranged, size: int) -> Gathers:
    """Gathers of the items in tables of places; `size` is the length of the vector."""
    tables = []
    for table in arranged.tables:
        places = items.take(table, mode="clip")
        places[table == len(items)] = size
        tables.append(device_arrays.ints(places))
    return Gathers(tuple(tables))
