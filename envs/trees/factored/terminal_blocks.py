"""Terminals in blocks: every combination of one sequence from each player's set has the same payoffs and weight."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

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


class TerminalCollector:
    """Collects terminal blocks level by level."""

    def __init__(self, players: int) -> None:
        self._players = players
        self._pools: list[list[ragged.Ragged]] = [[] for _ in range(players)]
        self._rows = [0] * players
        self._parts: list[tuple[Longs, Floats, Floats, Floats]] = []

    def add(
        self, pools: list[ragged.Ragged], sets: list[Longs], goals: Floats, weight: Floats, histories: Floats
    ) -> None:
        """Adds the blocks of a level: their `sets` [n] are rows of `pools`, for every player."""
        if not len(weight):
            return
        numbers = []
        for player, (rows, pool) in enumerate(zip(sets, pools, strict=True)):
            used, kept = merge.used_sets(rows, pool)
            self._pools[player].append(kept._replace(items=kept.items.astype(np.int32)))
            numbers.append(self._rows[player] + used)
            self._rows[player] += kept.rows
        self._parts.append(_merge(np.stack(numbers, axis=1), goals, weight, histories))

    def goals(self) -> Floats:
        """The goal values of all terminals, [n, players]."""
        return np.concatenate([np.zeros((0, self._players)), *(goals for _, goals, _, _ in self._parts)])

    def collect(self, offset: float) -> TerminalBlocks:
        """All blocks, with payoffs for goal values, and equal sets of all levels stored once."""
        sets, goals, weight, histories = (np.concatenate(parts) for parts in zip(*self._parts, strict=True))
        members = []
        for player in range(self._players):
            pool = ragged.concatenate(self._pools[player])
            self._pools[player] = []
            numbered = ragged.number_rows(pool)
            sets[:, player] = numbered.number[sets[:, player]]
            members.append(pool if numbered.size == pool.rows else pool.take(numbered.example))
            if numbered.size == pool.rows:  # sets keep their order
                sets[:, player] = numbered.example[sets[:, player]]
        sets, goals, weight, histories = _merge(sets, goals, weight, histories)
        return TerminalBlocks(tuple(members), sets, goals - offset, weight, histories)


def _merge(sets: Longs, goals: Floats, weight: Floats, histories: Floats) -> tuple[Longs, Floats, Floats, Floats]:
    """Blocks with the same sets and goal values become one."""
    ranks = [np.unique(column, return_inverse=True)[1] for column in goals.T]
    columns = [*sets.T, *ranks]
    same = unique_rows.number_rows(columns, [1 + int(column.max(initial=0)) for column in columns])
    return sets[same.example], goals[same.example], same.sums(weight), same.sums(histories)
