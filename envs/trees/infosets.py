"""Information sets of one player, collected level by level while a game is unrolled."""

import dataclasses
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gdlx.envs.trees import game_tree
from gdlx.envs.trees.factored import ragged
from gdlx.propnet.circuits import propnet

Ints = game_tree.Ints
Longs = game_tree.Longs
Bools = game_tree.Bools
Floats = game_tree.Floats
Numbers = npt.NDArray[np.integer[Any]]


class Arrivals(NamedTuple):
    """How a player comes to the information sets of a level. Axes: I information sets, K percept rows, L legal rows."""

    parent: Ints  # [I] information set of the level before
    move: Longs  # [I]
    percept: Ints  # [I] row of `percept_rows`
    percept_rows: Bools  # [K, percepts]
    legal: Ints  # [I] row of `legal_rows`
    legal_rows: Bools  # [L, moves], distinct


class Choices(NamedTuple):
    """What players may do in the information sets of a level. Axes: I information sets, L kinds.

    A choice is one legal move or, where symmetries of the information set exchange moves, all that are alike.
    """

    kind: Ints  # [I]
    rank: Ints  # [L, moves] number of the choice that a legal move belongs to
    widths: Longs  # [L] number of choices
    only_move: Ints  # [L] the only legal move, -1 where there are several
    moves: ragged.Ragged  # [L] the first move of each choice
    copies: ragged.Ragged  # [L] how many moves each choice has
    alike: ragged.Ragged  # [L] the moves of all choices, choice after choice
    names: ragged.Ragged  # [L] their names: those of the moves, then further ones of `InfosetCollector.names`

    @classmethod
    def of_rows(cls, kind: Ints, legal_rows: Bools) -> "Choices":
        """Every legal move [L, moves] is a choice."""
        widths = legal_rows.sum(axis=1)
        starts = ragged.starts_of(widths)
        moves = np.nonzero(legal_rows)[1].astype(np.int32)
        rank = (np.cumsum(legal_rows, axis=1) - 1).astype(np.int32)
        return cls(
            kind,
            rank,
            widths,
            only_moves(legal_rows),
            ragged.Ragged(starts, moves),
            ragged.Ragged(starts, np.ones(len(moves), np.int32)),
            ragged.Ragged(starts, moves),
            ragged.Ragged(starts, moves),
        )


class InfosetCollector:
    """Call `start`, then `advance` for each level.

    With `contract`, an information set at which the player waits as before, with the same only move and without a
    percept, is not stored in the `InfosetTree`: long games of hidden turns have many. With `symmetric`, the information
    sets are representatives of orbits.
    """

    def __init__(self, role: propnet.Role, *, contract: bool = False, symmetric: bool = False) -> None:
        self.role = role
        self.contract = contract
        self.symmetric = symmetric
        self.views = 0  # information sets so far
        self.sequences = 1
        self.sets = 0
        none = np.full(1, -1, np.int32)
        # Parent, move, whether that was a choice, percept, waits:
        self.trail: list[tuple[Ints, Ints, Bools, Ints, Ints]] = [(none, none, np.zeros(1, np.bool_), none, none + 1)]
        self.percepts: list[Bools] = []
        self.percept_count = 0
        self.forced: list[Ints] = []
        # Parent, width, step, chance, action, view:
        self.decisions: list[tuple[Ints, Ints, Ints, Floats, Ints, Ints]] = []
        self.names = list(role.moves)
        self.action_names: list[Ints] = []  # of the actions of these
        self.copies: list[Ints] = []
        self.alike: list[Ints] = []
        self.orbits: list[Ints] = []  # the information sets for which each of these stands
        # Of the information sets of the current level:
        self.view = np.zeros(1, np.int32)  # row of the `InfosetTree`
        self.waits = np.zeros(1, np.int32)  # steps since then
        self.only_move = np.full(1, -1, np.int32)  # -1 where there is a choice
        self.sequence = np.zeros(1, np.int32)  # before the action
        self.first = np.zeros(1, np.int32)  # sequence of its first action, 0 where there is no choice
        self.decision = np.zeros(1, np.int32)
        self.legal = np.zeros(1, np.int32)  # row of `rank`
        self.rank = np.zeros((1, len(role.moves)), np.int32)  # rank of a move among the legal ones

    def start(self, sets: int, legal_rows: Bools, choices: Choices | None = None) -> None:
        """Begins with one information set, or with none if the game has ended at once.

        `choices` are those of the legal moves, unless each is one.
        """
        zeros = np.zeros(sets, np.int32)
        self.view = zeros
        self.forced.append(only_moves(legal_rows)[zeros])
        self.views += sets
        self._add_level(zeros, choices or Choices.of_rows(zeros, legal_rows), np.ones(sets), 0, np.ones(sets, np.int32))

    def sequence_after(self, information: Numbers, move: Longs) -> Ints:
        """The sequences after moves in information sets of the current level."""
        first = self.first[information]
        after: Ints = np.where(first > 0, first + self.rank[self.legal[information], move], self.sequence[information])
        return after.astype(np.int32, copy=False)

    def advance(
        self, to: Arrivals, chance: Floats, step: int, choices: Choices | None = None, orbit: Ints | None = None
    ) -> None:
        """Adds the information sets of the next level, with their chance reach [I], after `step` joint actions.

        `choices` are those of the legal moves, unless each is one; `orbit` [I] counts the information sets for which
        each stands.
        """
        sequence = self.sequence_after(to.parent, to.move)
        only_move = only_moves(to.legal_rows)[to.legal]
        is_new = np.ones(len(to.parent), np.bool_)
        if self.contract:
            is_alone = np.bincount(to.parent, minlength=len(self.view))[to.parent] == 1
            silent_rows: Bools = np.asarray(to.percept_rows.sum(axis=1) == 0)
            is_silent = silent_rows[to.percept]
            is_new = ~(is_alone & is_silent & (only_move >= 0) & (only_move == self.only_move[to.parent]))
        new = np.flatnonzero(is_new)
        parent = to.parent[new]
        self.trail.append(
            (
                self.view[parent].astype(np.int32),
                to.move[new].astype(np.int32),
                self.first[parent] > 0,
                (self.percept_count + to.percept[new]).astype(np.int32),
                self.waits[parent],
            )
        )
        self.percepts.append(to.percept_rows)
        self.percept_count += len(to.percept_rows)
        self.forced.append(only_move[new])
        self.view = np.where(is_new, self.views + np.cumsum(is_new) - 1, self.view[to.parent]).astype(np.int32)
        self.waits = np.where(is_new, 0, self.waits[to.parent] + 1).astype(np.int32)
        self.views += len(new)
        if choices is None:
            choices = Choices.of_rows(to.legal, to.legal_rows)
        self._add_level(sequence, choices, chance, step, np.ones(len(chance), np.int32) if orbit is None else orbit)

    def _add_level(self, sequence: Ints, choices: Choices, chance: Floats, step: int, orbit: Ints) -> None:
        kind = choices.kind
        self.only_move = choices.only_move[kind]
        width = np.where(self.only_move < 0, choices.widths[kind], 0)
        has_choice = width > 0
        self.sequence = sequence
        self.first = np.where(has_choice, self.sequences + np.cumsum(width) - width, 0).astype(np.int32)
        self.decision = np.where(has_choice, self.sets + np.cumsum(has_choice) - 1, -1).astype(np.int32)
        self.legal = kind
        self.rank = choices.rank
        decisions = np.flatnonzero(has_choice)
        kinds = kind[decisions].astype(np.int64)
        self.decisions.append(
            (
                sequence[decisions],
                width[decisions].astype(np.int32),
                np.full(len(decisions), step, np.int32),
                chance[decisions],
                choices.moves.take(kinds).items,
                self.view[decisions],
            )
        )
        if self.symmetric:
            self.action_names.append(choices.names.take(kinds).items)
            self.copies.append(choices.copies.take(kinds).items)
            self.alike.append(choices.alike.take(kinds).items)
            self.orbits.append(orbit[decisions])
        self.sequences += int(width.sum())
        self.sets += len(decisions)

    @property
    def first_infoset(self) -> int:
        """The row of the `InfosetTree` of the first information set of the level, unless some are contracted."""
        return self.views - len(self.sequence)

    def player(self) -> game_tree.Player:
        """Everything that was collected."""
        parent, move, was_choice, percept, waits = (np.concatenate(parts) for parts in zip(*self.trail, strict=True))
        rows = np.concatenate([np.zeros((0, len(self.role.percepts)), np.bool_), *self.percepts])
        forced = np.concatenate(
            [*self.forced, np.full(len(parent) - self.views, -1, np.int32)]
        )  # the initial state may be terminal
        trail = game_tree.InfosetTree(
            parent, move, was_choice, percept, rows, self.role.percepts, forced, waits if self.contract else None
        )
        parents, widths, steps, chance, actions, views = (
            np.concatenate(parts) for parts in zip(*self.decisions, strict=True)
        )
        first = np.concatenate([[1], 1 + np.cumsum(widths)]).astype(np.int32)
        action = np.concatenate([np.full(1, -1, np.int32), actions])
        player = game_tree.Player(
            self.role.name,
            parents,
            first,
            steps,
            chance,
            action,
            action,
            self.role.moves,
            trail,
            views.astype(np.int32),
        )
        if not self.symmetric:
            return player
        orbits = game_tree.Orbits(
            np.concatenate([np.ones(1, np.int32), *self.copies]),
            np.concatenate([np.zeros(0, np.int32), *self.orbits]),
            np.concatenate([np.zeros(0, np.int32), *self.alike]),
        )
        names = np.concatenate([np.full(1, -1, np.int32), *self.action_names])
        player = dataclasses.replace(player, orbits=orbits, action_name=names, action_names=tuple(self.names))
        return dataclasses.replace(player, chance=chance * player.plan_scale[parents])


def only_moves(legal_rows: Bools) -> Ints:
    """The only legal move [L], -1 where there are several."""
    return np.where(legal_rows.sum(axis=1) == 1, legal_rows.argmax(axis=1), -1).astype(np.int32)
