"""Information sets of one player, collected level by level while a game is unrolled."""

from typing import NamedTuple

import numpy as np

from gdlx.envs.trees import game_tree
from gdlx.envs.trees.factored import ragged
from gdlx.propnet.circuits import propnet

Ints = game_tree.Ints
Longs = game_tree.Longs
Bools = game_tree.Bools
Floats = game_tree.Floats


class Arrivals(NamedTuple):
    """How a player comes to the information sets of a level. Axes: I information sets, K percept rows, L legal rows."""

    parent: Ints  # [I] information set of the level before
    move: Longs  # [I]
    percept: Ints  # [I] row of `percept_rows`
    percept_rows: Bools  # [K, percepts]
    legal: Ints  # [I] row of `legal_rows`
    legal_rows: Bools  # [L, moves], distinct


class InfosetCollector:
    """Call `start`, then `advance` for each level.

    With `contract`, an information set at which the player waits as before, with the same only move and without a
    percept, is not stored in the `InfosetTree`: long games of hidden turns have many.
    """

    def __init__(self, role: propnet.Role, *, contract: bool = False) -> None:
        self.role = role
        self.contract = contract
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
        # Of the information sets of the current level:
        self.view = np.zeros(1, np.int32)  # row of the `InfosetTree`
        self.waits = np.zeros(1, np.int32)  # steps since then
        self.only_move = np.full(1, -1, np.int32)  # -1 where there is a choice
        self.sequence = np.zeros(1, np.int32)  # before the action
        self.first = np.zeros(1, np.int32)  # sequence of its first action, 0 where there is no choice
        self.decision = np.zeros(1, np.int32)
        self.legal = np.zeros(1, np.int32)  # row of `rank`
        self.rank = np.zeros((1, len(role.moves)), np.int32)  # rank of a move among the legal ones

    def start(self, sets: int, legal_rows: Bools) -> None:
        """Begins with one information set, or with none if the game has ended at once."""
        zeros = np.zeros(sets, np.int32)
        self.view = zeros
        self.forced.append(_only_moves(legal_rows)[zeros])
        self.views += sets
        self._add_level(zeros, zeros, legal_rows, np.ones(sets), 0)

    def sequence_after(self, information: Ints, move: Longs) -> Ints:
        """The sequences after moves in information sets of the current level."""
        first = self.first[information]
        after: Ints = np.where(first > 0, first + self.rank[self.legal[information], move], self.sequence[information])
        return after.astype(np.int32, copy=False)

    def advance(self, to: Arrivals, chance: Floats, step: int) -> None:
        """Adds the information sets of the next level, with their chance reach [I], after `step` joint actions."""
        sequence = self.sequence_after(to.parent, to.move)
        only_move = _only_moves(to.legal_rows)[to.legal]
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
        self._add_level(sequence, to.legal, to.legal_rows, chance, step)

    def _add_level(self, sequence: Ints, legal: Ints, legal_rows: Bools, chance: Floats, step: int) -> None:
        row_widths = legal_rows.sum(axis=1)
        widths = row_widths[legal]
        has_choice = widths > 1
        width = np.where(has_choice, widths, 0)
        self.sequence = sequence
        self.first = np.where(has_choice, self.sequences + np.cumsum(width) - width, 0).astype(np.int32)
        self.decision = np.where(has_choice, self.sets + np.cumsum(has_choice) - 1, -1).astype(np.int32)
        self.legal = legal
        self.rank = (np.cumsum(legal_rows, axis=1) - 1).astype(np.int32)
        self.only_move = _only_moves(legal_rows)[legal]
        decisions = np.flatnonzero(has_choice)
        actions = ragged.Ragged(ragged.starts_of(row_widths), np.nonzero(legal_rows)[1].astype(np.int32))
        self.decisions.append(
            (
                sequence[decisions],
                width[decisions].astype(np.int32),
                np.full(len(decisions), step, np.int32),
                chance[decisions],
                actions.take(legal[decisions].astype(np.int64)).items,
                self.view[decisions],
            )
        )
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
        return game_tree.Player(
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


def _only_moves(legal_rows: Bools) -> Ints:
    """[L] the only legal move, -1 where there are several."""
    return np.where(legal_rows.sum(axis=1) == 1, legal_rows.argmax(axis=1), -1).astype(np.int32)
