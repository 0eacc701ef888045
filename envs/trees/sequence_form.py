"""SequenceForm: an unrolled game as flat arrays, passed to solvers as an argument and never baked into a program.

A player's information sets are in levels by the number of its own decisions before them, so that what leads to a set is
always in the level above. A level is a table of sets and options, padded to its widest choice; sets stand in the order
of the sequences that lead to them. The flat vector of a player is 1 for the empty sequence, then its levels.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from gdlx.envs.trees import dense_blocks, game_tree, unique_rows

Ints = game_tree.Ints
Longs = game_tree.Longs


class WideBlock(NamedTuple):
    """Ends of two-player games in dense tables, at least as wide as high: of own sequences by the other player's.

    Axes: b tables of the same shape, m own sequences, k sequences of the other player.
    """

    other: jax.Array  # [b, k] int32, places in the other player's flat vector
    payoff: jax.Array  # [b, m, k] float, the player's payoff times the weight of chance; 0 where there is no end


class TallBlock(NamedTuple):
    """Tables that are higher than wide: a product is fastest where the longer side is contiguous."""

    other: jax.Array  # [b, k]
    payoff: jax.Array  # [b, k, m]


class SmallBlock(NamedTuple):
    """Tables of a few cells, or few of them: faster cell by cell, over all of them at once."""

    other: jax.Array  # [k, b]
    payoff: jax.Array  # [k, m, b]


Block = WideBlock | TallBlock | SmallBlock
_ROUNDING = 4  # times the relative precision: what sums of payoffs may be wrong by
_SMALL, _TINY = 4, 256  # cells of a table, and of all tables together


class SparseEntries(NamedTuple):
    """Other ends, one by one. Axes: T ends, P players, m own sequences that have any."""

    own: jax.Array  # [T] int32 below m, sorted
    others: jax.Array  # [P - 1, T] int32, places in the flat vectors of the other players
    payoff: jax.Array  # [T] float
    rows: jax.Array  # [m] int32, places in the player's own flat vector


class PlayerForm(NamedTuple):
    """One player. Axes: L levels, w options and n sets of a level.

    Sums over ends come out as one vector: those of the blocks in order, of the entries, and a 0. The sources tell
    where in it the sum of a sequence is.
    """

    parent: tuple[jax.Array, ...]  # L x [n] int32, place in the level above (0 in the first level)
    uniform: tuple[jax.Array, ...]  # L x [w, n] float, 1 / options of the set; 0 where there is no option
    regret_tolerance: tuple[
        jax.Array, ...
    ]  # L x [w, n] float, regrets up to this are rounding errors; inf where no option is
    blocks: tuple[Block, ...]
    entries: SparseEntries
    source: tuple[jax.Array, ...]  # L x [w, n] int32
    root: jax.Array  # [] int32, source of the empty sequence


class SequenceForm(NamedTuple):
    players: tuple[PlayerForm, ...]


@dataclasses.dataclass(frozen=True)
class SequenceLayout:
    """Where the sequences of one player are. Axes: I sets, S sequences."""

    place: Longs  # [S] in the flat vector
    level: Longs  # [I]
    row: Longs  # [I] in its level
    shapes: tuple[tuple[int, int], ...]  # of the levels


def compute_layout(player: game_tree.Player) -> SequenceLayout:
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
        # The options of every set one after the other: its first sequence, then counting up.
        within = np.arange(widths[sets].sum()) - np.repeat(np.cumsum(widths[sets]) - widths[sets], widths[sets])
        sequence = np.repeat(player.first[:-1][sets], widths[sets]) + within
        place[sequence] = offset + within * len(sets) + np.repeat(np.arange(len(sets)), widths[sets])
        shapes.append((width, len(sets)))
        offset += len(sets) * width
    return SequenceLayout(place, level, row, tuple(shapes))


def sequence_form(
    tree: game_tree.GameTree, payoff: game_tree.Floats | None = None
) -> tuple[SequenceForm, tuple[SequenceLayout, ...]]:
    """The arrays in the precision that jax is set to, and where every sequence is in them.

    `payoff` [T, P, B] gives the ends of the tree other payoffs: B variants of one game, to be solved as a batch.
    """
    layouts = tuple(compute_layout(player) for player in tree.players)
    payoff = tree.terminals.payoff if payoff is None else payoff
    ends = _merge_terminals(tree, layouts, payoff)
    rounding = _ROUNDING * float(np.finfo(jnp.result_type(float)).eps * np.abs(payoff).max(initial=0.0))
    tables = (
        dense_blocks.find_dense_blocks(*ends.places)
        if len(tree.players) == 2
        else dense_blocks.no_dense_blocks(len(ends.payoff))
    )
    players = []
    for number, (player, own) in enumerate(zip(tree.players, layouts, strict=True)):
        blocks, entries, places = _build_payoff_blocks(ends, tables, number)
        size = 1 + sum(sets * width for width, sets in own.shapes)
        source = np.full(size, len(places), np.int64)
        used = places >= 0  # tables may be padded with rows that are nobody's
        source[places[used]] = np.flatnonzero(used)
        parents, uniform, noise = _levels(player, own, rounding)
        players.append(PlayerForm(parents, uniform, noise, blocks, entries, _by_level(source, own), _ints(source[0])))
    return SequenceForm(tuple(players)), layouts


class _MergedTerminals(NamedTuple):
    places: list[Longs]  # P x [T]
    payoff: game_tree.Floats  # [T, P, ...]


def _merge_terminals(
    tree: game_tree.GameTree, layouts: Sequence[SequenceLayout], payoff: game_tree.Floats
) -> _MergedTerminals:
    """Ends with the same sequence of every player are one, with the sum of what they pay."""
    merged = unique_rows.number_rows(
        [np.zeros(len(tree.terminals.weight), np.int64), *tree.terminals.sequence.T],
        [1, *(player.sequences for player in tree.players)],
    )
    sequences = tree.terminals.sequence[merged.example]
    places = [own.place[sequence] for own, sequence in zip(layouts, sequences.T, strict=True)]
    weight = tree.terminals.weight.reshape(-1, *[1] * (payoff.ndim - 1))
    return _MergedTerminals(places, merged.sums(payoff * weight))


def _build_payoff_blocks(
    ends: _MergedTerminals, tables: dense_blocks.DenseBlocks, number: int
) -> tuple[tuple[Block, ...], SparseEntries, Longs]:
    """What is summed for a player, and the places of the sums in its flat vector."""
    own, payoff = ends.places[number], ends.payoff[:, number]
    others = [places for n, places in enumerate(ends.places) if n != number]
    blocks, places = [], []
    for table in tables.groups:
        side = table if number == 0 else table.transposed()
        height, width, count = side.shape
        values = np.zeros((count, height, width, *payoff.shape[1:]))
        values[side.table, side.row, side.column] = payoff[side.ends]
        other = np.zeros((count, width), np.int64)
        other[side.table, side.column] = others[0][side.ends]
        row = np.full((count, height), -1)
        row[side.table, side.row] = own[side.ends]
        block, row = _block(other, values, row)
        blocks.append(block)
        places.append(row.reshape(-1))
    rest = tables.rest[np.argsort(own[tables.rest], kind="stable")]
    rows, compact = np.unique(own[rest], return_inverse=True)
    entries = SparseEntries(
        _ints(compact),
        _ints(np.stack([places[rest] for places in others]) if others else np.zeros((0, len(rest)))),
        _floats(payoff[rest]),
        _ints(rows),
    )
    return tuple(blocks), entries, np.concatenate([*places, rows]).astype(np.int64)


def _block(other: Longs, values: game_tree.Floats, row: Longs) -> tuple[Block, Longs]:
    """Tables [b, m, k, ...] in the form that suits their shape, and the places of its sums."""
    count, height, width = values.shape[:3]
    if height * width <= _SMALL or count * height * width <= _TINY:
        return SmallBlock(_ints(other.T), _floats(values.swapaxes(0, 2))), row.T
    if height > width:
        return TallBlock(_ints(other), _floats(values.swapaxes(1, 2))), row
    return WideBlock(_ints(other), _floats(values)), row


def _by_level(vector: Longs, own: SequenceLayout) -> tuple[jax.Array, ...]:
    bounds = np.cumsum([1, *(sets * width for width, sets in own.shapes)])
    return tuple(_ints(vector[a:b].reshape(shape)) for a, b, shape in zip(bounds, bounds[1:], own.shapes, strict=False))


def _ints(values: npt.ArrayLike) -> jax.Array:
    return to_device(np.asarray(values, np.int32))


def _floats(values: npt.ArrayLike) -> jax.Array:
    return to_device(np.asarray(values, jnp.result_type(float)))


def to_device(values: npt.NDArray[Any]) -> jax.Array:
    """To the device as it is; `jnp.asarray` would compile a program for every shape."""
    there: jax.Array = jax.device_put(values)
    return there


def _levels(
    player: game_tree.Player, own: SequenceLayout, rounding: float
) -> tuple[tuple[jax.Array, ...], tuple[jax.Array, ...], tuple[jax.Array, ...]]:
    parents, uniform, noise = [], [], []
    above = 0  # where the level above starts in the flat vector
    for number, (width, _) in enumerate(own.shapes):
        members = np.flatnonzero(own.level == number)
        members = members[np.argsort(own.row[members])]
        parents.append(_ints(own.place[player.parent[members]] - above))
        options = np.diff(player.first)[members]
        is_option = np.arange(width)[:, None] < options
        uniform.append(_floats(np.where(is_option, 1 / options, 0)))
        noise.append(_floats(np.where(is_option, rounding * player.chance[members], np.inf)))
        above += 1 if number == 0 else own.shapes[number - 1][0] * own.shapes[number - 1][1]
    return tuple(parents), tuple(uniform), tuple(noise)
