"""Levels of blocks without symmetric ones: each block is replaced by an image, and sets are counted up to symmetry.

A block and its images have the same payoffs, and their weights are added where they are merged. Which image stands for
a block is free; taking one of a canonical world, and the first of its sets, lets most images meet.
"""

import itertools
from typing import NamedTuple

import numpy as np

from gdlx.envs.trees import infosets, unique_rows
from gdlx.envs.trees.factored import blocks, ragged, symmetry_group

Bools = blocks.Bools
Longs = blocks.Longs
Words = symmetry_group.Words

_CHUNK = 2**19  # members that are renamed at once


class Placement(NamedTuple):
    """The information sets of a level as images of representatives. Axes: I information sets, N representatives."""

    representative: Longs  # [I]
    element: Longs  # [I] maps the representative to the information set
    stabiliser: Words  # [N] elements that map the representative to itself


class PlayerOrbits:
    """The information sets of one player up to symmetry, level by level."""

    def __init__(self, group: symmetry_group.Group, player: int, collector: infosets.InfosetCollector) -> None:
        self._group, self._moves, self._percepts = group, group.moves[player], group.percepts[player]
        self.collector = collector
        self._further: dict[str, int] = {}  # names of choices of several moves
        self.placement = Placement(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.uint64))

    def start(self, sets: int, legal_rows: Bools) -> None:
        """Begins with one information set, which all symmetries keep."""
        everything = np.full(sets, self._group.everything, np.uint64)
        zeros = np.zeros(sets, np.int64)
        self.placement = Placement(zeros, zeros, everything)
        choices = self._choices(zeros.astype(np.int32), legal_rows, everything)
        self.collector.start(sets, legal_rows, choices)

    def sequence_after(self, information: infosets.Numbers, move: Longs) -> infosets.Ints:
        """The sequences, up to symmetry, after moves in information sets of the current level."""
        back = self._group.inverse[self.placement.element[information]]
        representative = self.placement.representative[information].astype(np.int32)
        return self.collector.sequence_after(representative, self._moves[back, move])

    def place(self, to: infosets.Arrivals) -> tuple[infosets.Arrivals, Placement]:
        """The representatives of the information sets of the next level, and where these are."""
        group, before = self._group, self.placement
        percepts = symmetry_group.close_rows(to.percept_rows, self._percepts)
        legal = symmetry_group.close_rows(to.legal_rows, self._moves)
        parent = before.representative[to.parent]
        element, stabiliser = before.element[to.parent], before.stabiliser[parent]
        move, percept, options = to.move, percepts.of[to.percept], legal.of[to.legal]
        spans = self._moves.shape[1], len(percepts.rows), len(legal.rows)

        def code(by: int, of: tuple[Longs, Longs, Longs]) -> Longs:
            moved: Longs = self._moves[by, of[0]] * spans[1] + percepts.image[by, of[1]]
            moved = moved * spans[2] + legal.image[by, of[2]]
            return moved

        # Among the images that have the representative for parent, the first.
        best = np.full(len(parent), spans[0] * spans[1] * spans[2], np.int64)
        by = np.zeros(len(parent), np.int64)
        for candidate in range(group.order):
            fits = symmetry_group.has(stabiliser, group.multiply[candidate, element])
            value = code(candidate, (move, percept, options))
            better = np.flatnonzero(fits & (value < best))
            best[better] = value[better]
            by[better] = candidate
        same = unique_rows.number_rows([parent, best], [len(before.stabiliser), spans[0] * spans[1] * spans[2]])
        first = same.example
        image = (
            self._moves[by[first], move[first]],
            percepts.image[by[first], percept[first]],
            legal.image[by[first], options[first]],
        )
        kept = np.zeros(len(first), np.uint64)
        for candidate in range(group.order):
            keeps = symmetry_group.has(stabiliser[first], candidate) & (code(candidate, image) == best[first])
            kept |= keeps.astype(np.uint64) << np.uint64(candidate)
        representative = same.number.astype(np.int64)
        placed = group.smallest_equal(group.inverse[by], kept[representative])
        arrivals = infosets.Arrivals(
            parent[first].astype(np.int32),
            image[0],
            image[1].astype(np.int32),
            percepts.rows,
            image[2].astype(np.int32),
            legal.rows,
        )
        return arrivals, Placement(representative, placed, kept)

    def advance(self, to: infosets.Arrivals, placement: Placement, chance: blocks.Floats, step: int) -> None:
        """Goes on to the next level; `chance` is that of representatives, with all that they stand for."""
        self.placement = placement
        choices = self._choices(to.legal, to.legal_rows, placement.stabiliser)
        sizes = np.zeros(len(placement.stabiliser), np.int64)
        for element in range(self._group.order):
            sizes += symmetry_group.has(placement.stabiliser, element)
        self.collector.advance(to, chance, step, choices, (self._group.order // sizes).astype(np.int32))

    def _choices(self, legal: infosets.Ints, legal_rows: Bools, stabiliser: Words) -> infosets.Choices:
        distinct, which = np.unique(stabiliser, return_inverse=True)
        kinds = unique_rows.number_rows([legal, which.reshape(-1)], [max(1, len(legal_rows)), max(1, len(distinct))])
        rows = legal_rows[legal[kinds.example]]
        first_alike = np.repeat(np.arange(rows.shape[1], dtype=np.int64)[None], len(rows), axis=0)
        for element in range(self._group.order):
            keeps = symmetry_group.has(stabiliser[kinds.example], element)
            # The image of a move is alike; so is every move of which it is the image.
            image = np.where(keeps[:, None], self._moves[element], np.arange(rows.shape[1]))
            np.minimum(first_alike, image, out=first_alike)
        is_first = rows & (first_alike == np.arange(rows.shape[1]))
        choices = infosets.Choices.of_rows(kinds.number, is_first)
        rank = np.take_along_axis(choices.rank, first_alike, axis=1)
        row, move = np.nonzero(rows)
        place = choices.moves.starts[row] + rank[row, move]
        copies = np.bincount(place, minlength=len(choices.moves.items)).astype(np.int32)
        alike = ragged.from_groups(place, move, len(copies))
        names = np.array([self._name(alike.items[a:b]) for a, b in itertools.pairwise(alike.starts)], np.int32)
        return choices._replace(
            rank=rank,
            alike=ragged.Ragged(ragged.starts_of(rows.sum(axis=1)), alike.items.astype(np.int32)),
            names=ragged.Ragged(choices.moves.starts, names),
            only_move=infosets.only_moves(rows),
            copies=ragged.Ragged(choices.moves.starts, copies),
        )

    def _name(self, moves: Longs) -> int:
        """The name of a choice: the number of its only move, or of further names of the collector."""
        if len(moves) == 1:
            return int(moves[0])
        names = self.collector.names
        name = " or ".join(names[move] for move in moves.tolist())
        if name not in self._further:
            self._further[name] = len(names)
            names.append(name)
        return self._further[name]


class Canonical(NamedTuple):
    """Blocks after they were replaced by images. Axes: B blocks, P players."""

    world: Longs  # [B]
    worlds: Bools  # [registers of the world, W]
    sets: list[Longs]  # P x [B]
    sides: list[blocks.Side]
    placements: list[Placement]


def canonicalise(
    game: blocks.FactoredGame,
    group: symmetry_group.Group,
    world: Longs,
    worlds: Bools,
    sets: list[Longs],
    sides: list[blocks.Side],
    placements: list[Placement],
) -> Canonical:
    """Replaces every block by one of its images.

    Args:
      game: the game.
      group: its symmetries.
      world: [B] column of `worlds` of each block.
      worlds: [registers of the world, W].
      sets: P x [B] rows of `sides[player].sets`.
      sides: the members of every player.
      placements: of the information sets in `sides`.
    """
    used, column = np.unique(world, return_inverse=True)
    column = column.reshape(-1)
    bits = group.restrict(game.world)
    images = np.concatenate([bits.apply(element, worlds[:, used]) for element in range(group.order)], axis=1)
    distinct = unique_rows.number_bit_columns(images)
    number = distinct.number.reshape(group.order, len(used))
    smallest = number.min(axis=0)
    is_smallest = number == smallest
    # Blocks whose world has several such images are tried with each.
    options = np.flatnonzero(is_smallest.T.reshape(-1))
    counts = is_smallest.sum(axis=0)
    starts = ragged.starts_of(counts)
    block = np.repeat(np.arange(len(world)), counts[column])
    element = (options % group.order)[ragged.places_of(starts[column], counts[column])]
    renamed, after, placed = [], [], []
    for player, (rows, side, placement) in enumerate(zip(sets, sides, placements, strict=True)):
        private = group.restrict(game.private[player])
        numbers, changed, where = _rename(group, private, side, placement, rows[block], element)
        renamed.append(numbers)
        after.append(changed)
        placed.append(where)
    order = np.lexsort([*renamed[::-1], block]) if len(block) > len(world) else block
    chosen = order[np.flatnonzero(np.diff(block[order], prepend=-1))]
    keep, place = np.unique(smallest, return_inverse=True)
    return Canonical(
        place.reshape(-1)[column], images[:, distinct.example[keep]], [rows[chosen] for rows in renamed], after, placed
    )


def _rename(
    group: symmetry_group.Group,
    private: symmetry_group.Bits,
    side: blocks.Side,
    placement: Placement,
    sets: Longs,
    element: Longs,
) -> tuple[Longs, blocks.Side, Placement]:
    """The images of sets [N] under elements [N] of the group, as rows of a new side."""
    elements = np.unique(element)
    rank = np.zeros(group.order, np.int64)
    rank[elements] = np.arange(len(elements))
    # Members: those of all elements that occur, element after element.
    states = np.concatenate([private.apply(each, side.private_states) for each in elements.tolist()], axis=1)
    same_state = unique_rows.number_bit_columns(states) if len(private.image[0]) else None
    columns = side.private_states.shape[1]
    stabiliser = placement.stabiliser[placement.representative]
    placed = np.concatenate(
        [group.smallest_equal(group.multiply[each, placement.element], stabiliser) for each in elements.tolist()]
    )
    sets_before = len(placement.element)
    shift = np.repeat(np.arange(len(elements)), len(side.infoset))
    infoset_before = np.tile(side.infoset, len(elements))
    kinds = unique_rows.number_rows(
        [np.tile(placement.representative, len(elements)), placed], [max(1, len(placement.stabiliser)), group.order]
    )
    infoset = kinds.number[shift * sets_before + infoset_before].astype(np.int64)
    state_before = shift * columns + np.tile(side.private, len(elements))
    state = np.zeros(len(shift), np.int64) if same_state is None else same_state.number[state_before].astype(np.int64)
    members = unique_rows.number_rows(
        [infoset, state], [max(1, kinds.size), 1 if same_state is None else max(1, same_state.size)]
    )
    table = members.number.reshape(len(elements), len(side.infoset))
    # Sets.
    pairs = unique_rows.number_rows([sets, rank[element]], [max(1, side.sets.rows), len(elements)])
    chosen, by = sets[pairs.example], rank[element][pairs.example]
    parts, local, first = [], [np.zeros(0, np.int64)], 0
    for part in ragged.chunks(side.sets.lengths[chosen], _CHUNK):
        before = side.sets.take(chosen[part])
        items = table[np.repeat(by[part], before.lengths), before.items]
        changed = ragged.sort_rows(ragged.Ragged(before.starts, items))
        distinct = ragged.number_rows(changed)
        local.append(first + distinct.number)
        parts.append(changed.take(distinct.example))
        first += distinct.size
    pool = ragged.concatenate(parts)
    del parts
    numbered = ragged.number_rows(pool)
    pool = pool.take(numbered.example)
    numbers = numbered.number[np.concatenate(local)].astype(np.int64)[pairs.number]
    representative = np.tile(placement.representative, len(elements))[kinds.example]
    after = blocks.Side(
        infoset[members.example],
        state[members.example],
        side.private_states if same_state is None else states[:, same_state.example],
        pool,
    )
    return numbers, after, Placement(representative, placed[kinds.example], placement.stabiliser)
