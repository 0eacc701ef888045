"""SequenceForm: an unrolled game as flat arrays, passed to solvers as an argument, never as a compile-time constant.

A player's information sets are in levels by the number of the player's decisions before them, so that the sequence that
leads to a set is always in the level above. A level is a table of actions by information sets, padded to the most
actions; sets are in the order of the sequences that lead to them. The flat vector of a player has the empty sequence
first, then the levels.
"""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from gdlx.envs.trees import block_payoffs, dense_blocks, device_arrays, game_tree, unique_rows

Ints = game_tree.Ints
Longs = game_tree.Longs


class WideBlock(NamedTuple):
    """Terminals of two-player games in dense tables that are at least as wide as high.

    Axes: b tables of the same shape, m sequences of the player, k sequences of the other player.
    """

    other: jax.Array  # [b, k] int32, places in the other player's flat vector
    payoff: jax.Array  # [b, m, k] float, the player's payoff times the chance reach; 0 where there is no terminal


class TallBlock(NamedTuple):
    """Tables that are higher than wide: a product is fastest where the longer side is contiguous."""

    other: jax.Array  # [b, k]
    payoff: jax.Array  # [b, k, m]


class SmallBlock(NamedTuple):
    """Small tables, or few of them: it is faster to loop over cells, with all tables at once."""

    other: jax.Array  # [k, b]
    payoff: jax.Array  # [k, m, b]


Block = WideBlock | TallBlock | SmallBlock
_ROUNDING = 4  # times the relative precision: error bound for sums of payoffs
_SMALL, _TINY = 4, 256  # cells of a table, and of all tables together


class SparseEntries(NamedTuple):
    """The remaining terminals, one by one. Axes: T terminals, P players, m sequences of the player that have any."""

    sequence: jax.Array  # [T] int32 below m, sorted
    others: jax.Array  # [P - 1, T] int32, places in the flat vectors of the other players
    payoff: jax.Array  # [T] float
    rows: jax.Array  # [m] int32, places in the player's flat vector


class PlayerForm(NamedTuple):
    """The arrays of one player. Axes: L levels, w actions and n information sets of a level.

    Sums over terminals form one vector: those of the blocks in order, of the entries, of `factored`, and a 0. `source`
    and `root` are the positions of the sequences' sums in it.
    """

    parent: tuple[jax.Array, ...]  # L x [n] int32, place in the level above (0 in the first level)
    uniform: tuple[jax.Array, ...]  # L x [w, n] float, 1 / number of actions; 0 where there is no action
    # L x [w, n] float, regrets up to this are rounding errors; inf where there is no action
    regret_tolerance: tuple[jax.Array, ...]
    blocks: tuple[Block, ...]
    entries: SparseEntries
    source: tuple[jax.Array, ...]  # L x [w, n] int32
    root: jax.Array  # [] int32, source of the empty sequence
    factored: block_payoffs.BlockPayoffs | None = None  # terminals of trees that were unrolled in blocks
    copies: tuple[jax.Array, ...] | None = None  # L x [w, n] float, the symmetric actions an action stands for


class SequenceForm(NamedTuple):
    """A game in sequence form, the input of exact solvers: one `PlayerForm` for every player. A pytree.

    >>> import gdlx
    >>> form, _ = sequence_form(gdlx.unroll("kuhn_poker"))
    >>> [uniform.shape for uniform in form.players[0].uniform]  # of every level: actions, information sets
    [(2, 3), (2, 3)]
    """

    players: tuple[PlayerForm, ...]

    def __repr__(self) -> str:
        try:  # leaves of a pytree need not be arrays
            infosets = ", ".join(str(sum(level.shape[-1] for level in player.uniform)) for player in self.players)
            return f"SequenceForm({len(self.players)} players; information sets {infosets})"
        except (AttributeError, IndexError, TypeError):
            return f"SequenceForm({len(jax.tree.leaves(self))} leaves)"


@dataclasses.dataclass(frozen=True)
class SequenceLayout:
    """Positions of the sequences of one player. Axes: I information sets, S sequences."""

    place: Longs  # [S] in the flat vector
    level: Longs  # [I]
    row: Longs  # [I] in its level
    shapes: tuple[tuple[int, int], ...]  # of the levels


def compute_layout(player: game_tree.Player) -> SequenceLayout:
    """Assigns information sets to levels, and sequences to places in the flat vector."""
    widths = np.diff(player.first)
    owner = np.repeat(np.arange(player.sets), widths)  # of sequence 1 + n
    level = np.zeros(player.sets, np.int64)
    while True:
        deeper = np.where(player.parent > 0, level[owner[player.parent - 1]] + 1, 0) if player.sets else level
        if (deeper == level).all():
            break
        level = deeper
    place = np.zeros(player.sequences, np.int64)
    row = np.zeros(player.sets, np.int64)
    shapes = []
    offset = 1
    for number in range(int(level.max(initial=-1)) + 1):
        sets = np.flatnonzero(level == number)
        sets = sets[np.argsort(place[player.parent[sets]], kind="stable")]
        width = int(widths[sets].max())
        row[sets] = np.arange(len(sets))
        # The actions of a set are consecutive sequences.
        within = np.arange(widths[sets].sum()) - np.repeat(np.cumsum(widths[sets]) - widths[sets], widths[sets])
        sequence = np.repeat(player.first[:-1][sets], widths[sets]) + within
        place[sequence] = offset + within * len(sets) + np.repeat(np.arange(len(sets)), widths[sets])
        shapes.append((width, len(sets)))
        offset += len(sets) * width
    return SequenceLayout(place, level, row, tuple(shapes))


def sequence_form(
    tree: game_tree.GameTree, payoff: game_tree.Floats | None = None
) -> tuple[SequenceForm, tuple[SequenceLayout, ...]]:
    """Converts a tree to sequence form, in jax's default precision.

    Args:
      tree: the unrolled game.
      payoff: [T, P, B] other payoffs for the terminals of the tree: B variants of one game, to be solved as a batch.

    Returns:
      The arrays, and for every player the positions of its sequences in them.

    >>> import gdlx
    >>> form, layouts = sequence_form(gdlx.unroll("kuhn_poker"))
    >>> form
    SequenceForm(2 players; information sets 6, 6)
    """
    layouts = tuple(compute_layout(player) for player in tree.players)
    payoff = tree.terminals.payoff if payoff is None else payoff
    terminals = _merge_terminals(tree, layouts, payoff)
    largest = max(np.abs(payoff).max(initial=0.0), *(abs(bound) for bound in tree.payoff_range))
    rounding = _ROUNDING * float(np.finfo(jnp.result_type(float)).eps * largest)
    tables = (
        dense_blocks.find_dense_blocks(*terminals.places)
        if len(tree.players) == 2
        else dense_blocks.no_dense_blocks(len(terminals.payoff))
    )
    sizes = [1 + sum(sets * width for width, sets in layout.shapes) for layout in layouts]
    factored = (
        [None] * len(layouts)
        if tree.blocks is None
        else block_payoffs.build(
            tree.blocks,
            [layout.place for layout in layouts],
            sizes,
            None if tree.is_whole else [player.plan_scale for player in tree.players],
        )
    )
    players = []
    for number, (player, layout, size) in enumerate(zip(tree.players, layouts, sizes, strict=True)):
        blocks, entries, places = _build_payoff_blocks(terminals, tables, number)
        further = factored[number]
        if further is not None:
            places = np.concatenate([places, further.rows])
        source = np.full(size, len(places), np.int64)
        used = places >= 0  # padding rows of tables belong to no sequence
        source[places[used]] = np.flatnonzero(used)
        parents, uniform, noise, copies = _levels(player, layout, rounding)
        by_level = _by_level(source, layout)
        payoffs = None if further is None else further.payoffs
        players.append(
            PlayerForm(
                parents,
                uniform,
                noise,
                blocks,
                entries,
                by_level,
                device_arrays.ints(source[0]),
                payoffs,
                None if player.orbits is None else copies,
            )
        )
    return SequenceForm(tuple(players)), layouts


class _MergedTerminals(NamedTuple):
    places: list[Longs]  # P x [T]
    payoff: game_tree.Floats  # [T, P, ...]


def _merge_terminals(
    tree: game_tree.GameTree, layouts: Sequence[SequenceLayout], payoff: game_tree.Floats
) -> _MergedTerminals:
    """Merges terminals with the same sequence of every player, and sums their weighted payoffs."""
    merged = unique_rows.number_rows(
        [np.zeros(len(tree.terminals.weight), np.int64), *tree.terminals.sequence.T],
        [1, *(player.sequences for player in tree.players)],
    )
    sequences = tree.terminals.sequence[merged.example]
    places = [layout.place[sequence] for layout, sequence in zip(layouts, sequences.T, strict=True)]
    weight = tree.terminals.weight.reshape(-1, *[1] * (payoff.ndim - 1))
    return _MergedTerminals(places, merged.sums(payoff * weight))


def _build_payoff_blocks(
    terminals: _MergedTerminals, tables: dense_blocks.DenseBlocks, number: int
) -> tuple[tuple[Block, ...], SparseEntries, Longs]:
    """The payoff blocks of a player, and the places of their sums in its flat vector."""
    player_places, payoff = terminals.places[number], terminals.payoff[:, number]
    others = [places for n, places in enumerate(terminals.places) if n != number]
    blocks, places = [], []
    for table in tables.groups:
        side = table if number == 0 else table.transposed()
        height, width, count = side.shape
        values = np.zeros((count, height, width, *payoff.shape[1:]))
        values[side.table, side.row, side.column] = payoff[side.ends]
        other = np.zeros((count, width), np.int64)
        other[side.table, side.column] = others[0][side.ends]
        row = np.full((count, height), -1)
        row[side.table, side.row] = player_places[side.ends]
        block, row = _block(other, values, row)
        blocks.append(block)
        places.append(row.reshape(-1))
    rest = tables.rest[np.argsort(player_places[tables.rest], kind="stable")]
    rows, compact = np.unique(player_places[rest], return_inverse=True)
    entries = SparseEntries(
        device_arrays.ints(compact),
        device_arrays.ints(np.stack([places[rest] for places in others]) if others else np.zeros((0, len(rest)))),
        device_arrays.floats(payoff[rest]),
        device_arrays.ints(rows),
    )
    return tuple(blocks), entries, np.concatenate([*places, rows]).astype(np.int64)


def _block(other: Longs, values: game_tree.Floats, row: Longs) -> tuple[Block, Longs]:
    """Stores tables [b, m, k, ...] in the fastest layout for their shape; also returns the places of the sums."""
    count, height, width = values.shape[:3]
    if height * width <= _SMALL or count * height * width <= _TINY:
        return SmallBlock(device_arrays.ints(other.T), device_arrays.floats(values.swapaxes(0, 2))), row.T
    if height > width:
        return TallBlock(device_arrays.ints(other), device_arrays.floats(values.swapaxes(1, 2))), row
    return WideBlock(device_arrays.ints(other), device_arrays.floats(values)), row


def _by_level(vector: Longs, layout: SequenceLayout) -> tuple[jax.Array, ...]:
    bounds = np.cumsum([1, *(sets * width for width, sets in layout.shapes)])
    pieces = zip(bounds, bounds[1:], layout.shapes, strict=False)
    return tuple(device_arrays.ints(vector[a:b].reshape(shape)) for a, b, shape in pieces)


def _levels(
    player: game_tree.Player, layout: SequenceLayout, rounding: float
) -> tuple[tuple[jax.Array, ...], tuple[jax.Array, ...], tuple[jax.Array, ...], tuple[jax.Array, ...]]:
    parents, uniform, noise, copies = [], [], [], []
    above = 0  # start of the level above in the flat vector
    place = 1  # start of the level
    stands_for = np.zeros(1 + sum(width * sets for width, sets in layout.shapes))
    stands_for[layout.place] = 1 if player.orbits is None else player.orbits.copies
    for number, (width, sets) in enumerate(layout.shapes):
        members = np.flatnonzero(layout.level == number)
        members = members[np.argsort(layout.row[members])]
        parents.append(device_arrays.ints(layout.place[player.parent[members]] - above))
        each = stands_for[place : place + width * sets].reshape(width, sets)
        uniform.append(device_arrays.floats(each / each.sum(axis=0)))
        noise.append(device_arrays.floats(np.where(each > 0, rounding * player.chance[members], np.inf)))
        copies.append(device_arrays.floats(each))
        above += 1 if number == 0 else layout.shapes[number - 1][0] * layout.shapes[number - 1][1]
        place += width * sets
    return tuple(parents), tuple(uniform), tuple(noise), tuple(copies)
