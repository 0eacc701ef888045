"""Terminals in blocks: every combination of one sequence from each player's set has the same payoffs and weight."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gdlx.envs.trees import unique_rows
from gdlx.envs.trees.factored import blocks, merge, ragged

Floats = blocks.Floats
Longs = blocks.Longs


class TerminalBlocks(NamedTuple):
    """The payoffs of a game as a sum of products of sets. Axes: B blocks, P players.

    With M_i the matrix of player i that has a row for each of its sets, and counts in it the player's sequences, a
    block (s_1, s_2, ..) with payoff u and weight w adds w u prod_j M_j[s_j] x_j to the expected payoff of the plans x.
    """

    members: tuple[ragged.Ragged, ...]  # P, the sequences of each distinct set; int32, sorted, possibly repeated
    sets: Longs  # [B, P] rows of `members`
    payoff: Floats  # [B, P]
    weight: Floats  # [B] chance reach of every terminal in the block
    histories: Floats  # [B] histories for each combination of members

    @property
    def terminals(self) -> float:
        """The number of terminal histories."""
        lengths = [rows.lengths[sets].astype(float) for rows, sets in zip(self.members, self.sets.T, strict=True)]
        return float((np.prod(lengths, axis=0) * self.histories).sum())

    def sequence_sums(self, plans: Sequence[Floats], player: int) -> tuple[Floats, Floats]:
        """For every sequence of a player, over its terminals: the sums of payoff times reach, and of reach.

        The reach is that of chance and of the other players, whose realization plans are `plans`.
        """
        reach = self.weight.copy()
        for other, (rows, plan) in enumerate(zip(self.members, plans, strict=True)):
            if other != player:
                reach *= ragged.row_sums(rows, plan)[self.sets[:, other]]
        mine, size = self.members[player], len(plans[player])
        sums = []
        for values in (reach * self.payoff[:, player], reach):
            per_set = merge.sum_by(self.sets[:, player], values, mine.rows)
            sums.append(merge.member_sums(per_set, mine, size))
        return sums[0], sums[1]

    @property
    def stored(self) -> int:
        """The number of sequences that are stored."""
        return sum(len(rows.items) for rows in self.members)


class _Part(NamedTuple):
    """Terminal blocks while they are collected, in as little memory as possible. Axes: n blocks, P players."""

    sets: npt.NDArray[np.int32]  # [n, P]
    kind: npt.NDArray[np.int32]  # [n] goal values, as a number of `TerminalCollector`
    weight: Floats  # [n]
    histories: Floats  # [n]

    def merge(self) -> "_Part":
        """Blocks with the same sets and goal values become one."""
        columns = [*self.sets.T, self.kind]
        same = unique_rows.number_rows(columns, merge.ranges(columns))
        if same.size == len(self.kind) and (same.example[1:] > same.example[:-1]).all():
            return self
        return _Part(
            self.sets[same.example], self.kind[same.example], same.sums(self.weight), same.sums(self.histories)
        )


class TerminalCollector:
    """Collects terminal blocks level by level."""

    def __init__(self, players: int) -> None:
        self._players = players
        self._pools: list[list[ragged.Ragged]] = [[] for _ in range(players)]
        self._rows = [0] * players
        self._parts: list[_Part] = []
        self._kinds: dict[tuple[float, ...], int] = {}  # numbers of goal values

    def add(
        self, pools: list[ragged.Ragged], sets: list[Longs], goals: Floats, weight: Floats, histories: Floats
    ) -> None:
        """Adds the blocks of a level: their `sets` [n] are rows of `pools`, for every player."""
        if not len(weight):
            return
        numbers = np.empty((len(weight), self._players), np.int32)
        for player, (rows, pool) in enumerate(zip(sets, pools, strict=True)):
            used, kept = merge.used_sets(rows, pool)
            self._pools[player].append(kept._replace(items=kept.items.astype(np.int32)))
            numbers[:, player] = self._rows[player] + used
            self._rows[player] += kept.rows
        self._parts.append(_Part(numbers, self._number_goals(goals), weight, histories).merge())

    def _number_goals(self, goals: Floats) -> npt.NDArray[np.int32]:
        ranks = [np.unique(column, return_inverse=True)[1].reshape(-1) for column in goals.T]
        distinct = unique_rows.number_rows(ranks, merge.ranges(ranks))
        kinds = [self._kinds.setdefault(tuple(row), len(self._kinds)) for row in goals[distinct.example].tolist()]
        return np.array(kinds, np.int32)[distinct.number]

    def goals(self) -> Floats:
        """The distinct goal values of terminals, [K, players]."""
        return np.array(list(self._kinds), np.float64).reshape(len(self._kinds), self._players)

    def collect(self, offset: float) -> TerminalBlocks:
        """All blocks, with payoffs for goal values, and equal sets of all levels stored once."""
        goals = self.goals()
        order = np.lexsort(goals.T[::-1])
        rank = np.argsort(order).astype(np.int32)
        joined = _Part(*map(np.concatenate, zip(*self._parts, strict=True)))
        self._parts = []
        members = []
        for player in range(self._players):
            pool = ragged.concatenate(self._pools[player])
            self._pools[player] = []
            numbered = ragged.number_rows(pool)
            if numbered.size == pool.rows:  # sets keep their order
                members.append(pool)
            else:
                joined.sets[:, player] = numbered.number[joined.sets[:, player]]
                members.append(pool.take(numbered.example))
        part = joined._replace(kind=rank[joined.kind]).merge()
        del joined
        sets = part.sets.astype(np.int64)
        return TerminalBlocks(tuple(members), sets, goals[order][part.kind] - offset, part.weight, part.histories)
