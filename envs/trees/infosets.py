"""Information sets of one player, collected level by level while a game is unrolled."""

import numpy as np

from gdlx.envs.trees import game_tree
from gdlx.propnet.circuits import propnet

Ints = game_tree.Ints
Longs = game_tree.Longs
Bools = game_tree.Bools
Floats = game_tree.Floats


class InfosetCollector:
    """`add_level` adds the sets of a level; `sequence_after` and `record_transitions` lead to the next level."""

    def __init__(self, role: propnet.Role) -> None:
        self.role = role
        self.views = 0  # information sets so far
        self.sequences = 1
        self.sets = 0
        none = np.full(1, -1, np.int32)
        self.trail: list[tuple[Ints, Ints, Bools, Ints]] = [(none, none, np.zeros(1, np.bool_), none)]
        self.percepts: list[Bools] = []
        self.percept_count = 0
        self.forced: list[Ints] = []
        # Parent, width, step, chance, action, view:
        self.decisions: list[tuple[Ints, Ints, Ints, Floats, Ints, Ints]] = []
        # Of the information sets of the current level:
        self.sequence = np.zeros(1, np.int32)  # before the action
        self.first = np.zeros(1, np.int32)  # sequence of its first action, 0 where there is no choice
        self.decision = np.zeros(1, np.int32)
        self.rank = np.zeros((1, len(role.moves)), np.int32)  # rank of a move among the legal ones

    def add_level(self, sequence: Ints, legal: Bools, chance: Floats, step: int) -> None:
        """Adds the information sets of a level: their sequences, legal moves [sets, moves], and chance reach."""
        widths = legal.sum(axis=1)
        has_choice = widths > 1
        width = np.where(has_choice, widths, 0)
        self.sequence = sequence
        self.first = np.where(has_choice, self.sequences + np.cumsum(width) - width, 0).astype(np.int32)
        self.decision = np.where(has_choice, self.sets + np.cumsum(has_choice) - 1, -1).astype(np.int32)
        self.rank = (np.cumsum(legal, axis=1) - 1).astype(np.int32)
        self.forced.append(np.where(widths == 1, legal.argmax(axis=1), -1).astype(np.int32))
        views = np.flatnonzero(has_choice)
        action = np.nonzero(legal[views])[1].astype(np.int32)
        steps = np.full(len(views), step, np.int32)
        self.decisions.append(
            (
                sequence[views],
                width[views].astype(np.int32),
                steps,
                chance[views],
                action,
                (self.views + views).astype(np.int32),
            )
        )
        self.sequences += int(width.sum())
        self.sets += len(views)
        self.views += len(sequence)

    @property
    def first_infoset(self) -> int:
        """The number of the first information set of the current level, among all."""
        return self.views - len(self.sequence)

    def sequence_after(self, information: Ints, move: Longs) -> Ints:
        """The sequences after moves in information sets of the current level."""
        first = self.first[information]
        after: Ints = np.where(first > 0, first + self.rank[information, move], self.sequence[information])
        return after.astype(np.int32, copy=False)

    def record_transitions(self, parent: Ints, move: Longs, percept: Ints, percept_rows: Bools) -> None:
        """Records the transitions to the information sets of the next level; call it before `add_level`."""
        self.trail.append(
            (
                (self.first_infoset + parent).astype(np.int32),
                move.astype(np.int32),
                self.first[parent] > 0,
                (self.percept_count + percept).astype(np.int32),
            )
        )
        self.percepts.append(percept_rows)
        self.percept_count += len(percept_rows)

    def player(self) -> game_tree.Player:
        """Everything that was collected."""
        parent, move, was_choice, percept = (np.concatenate(parts) for parts in zip(*self.trail, strict=True))
        rows = np.concatenate([np.zeros((0, len(self.role.percepts)), np.bool_), *self.percepts])
        forced = np.concatenate(
            [*self.forced, np.full(len(parent) - self.views, -1, np.int32)]
        )  # the initial state may be terminal
        trail = game_tree.InfosetTree(parent, move, was_choice, percept, rows, self.role.percepts, forced)
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
