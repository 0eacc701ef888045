"""GameTree: a game unrolled, histories with the same future merged, decisions numbered for every player.

A sequence of a player is what it has chosen so far. Sequence 0 is the empty one; every option of every decision has
a number of its own. With perfect recall, which information sets of moves and percepts have, a player's information
set tells its sequence, so that reach probabilities are functions of sequences.
"""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gdlx.propnet.common import errors

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


class TooLargeError(errors.UserError, ValueError):
    """A game with more nodes than may be unrolled."""


class GoalConflictError(errors.UserError, ValueError):
    """An end of the game at which some player has several goal values, or none."""


class InfosetTree(NamedTuple):
    """How each information set of a player came about, forced moves included. Axes: V sets, Q percepts,
    K different sets of them."""

    parent: Ints  # [V] the set one step earlier, -1 at the start
    move: Ints  # [V] the player's move there, -1 at the start
    was_choice: Bools  # [V] whether it had another one
    percept: Ints  # [V] row of `percepts`, -1 at the start
    percepts: Bools  # [K, Q]
    percept_names: tuple[str, ...]  # [Q]
    forced: Ints  # [V] the only legal move, -1 where there is a choice


@dataclasses.dataclass(frozen=True)
class Player:
    """Decisions of one player: information sets with a choice, in order of time. Axes: I sets, S sequences."""

    name: str
    parent: Ints  # [I] the sequence that leads to the set
    first: Ints  # [I + 1] its options are the sequences first[i] .. first[i + 1] - 1
    step: Ints  # [I] joint moves made before
    chance: Floats  # [I] weight of chance of all histories in the set: how much of it there can be at most
    action: Ints  # [S] number of the option in the game; -1 for the empty sequence
    action_name: Ints  # [S] its name in `texts`; -1 for the empty sequence
    action_names: tuple[str, ...]
    views: InfosetTree | tuple[str, ...]  # where the sets are, or texts of another library that may have several lines
    view: Ints  # [I] the information set among them

    @functools.cached_property
    def labels(self) -> tuple[str, ...]:
        """What the player has done and seen before each decision, for people; no two are the same."""
        return infoset_labels(self)

    @property
    def sets(self) -> int:
        return len(self.parent)

    @property
    def sequences(self) -> int:
        return int(self.first[-1])

    def options(self, decision: int) -> list[str]:
        """Names of the options of an information set."""
        start, end = self.first[decision], self.first[decision + 1]
        return [self.action_names[n] for n in self.action_name[start:end]]


class Terminals(NamedTuple):
    """Merged ends of a game. Axes: T ends, P players."""

    sequence: Ints  # [T, P]
    payoff: Floats  # [T, P]
    weight: Floats  # [T] probability of the chance moves, summed over the histories
    histories: Floats  # [T] how many there are


class Level(NamedTuple):
    """Nodes after the same number of joint moves, and the joint moves from them. Axes: N nodes, P players, E edges.

    The edges of a node are in the order of its players' options, the last player's (then chance's) changing fastest.
    """

    decision: Ints  # [N, P] information set with a choice, -1 where there is none
    first_edge: Longs  # [N + 1]
    chance: Floats  # [E] probability of the chance move of an edge
    child: Longs  # [E] node in the next level; an end e is -1 - e
    infoset: Ints | None = None  # [N, P] rows of the players' trails; None where no trails were kept


class Leaves(NamedTuple):
    """Nodes at which unrolling stopped. Axes: L leaves, P players, R registers."""

    sequence: Ints  # [L, P]
    weight: Floats  # [L]
    histories: Floats  # [L]
    state: Longs  # [L] row of `states`
    states: Bools  # [S, R] different states of the game
    information: Ints  # [L, P] information sets among the leaves


@dataclasses.dataclass(frozen=True)
class Counts:
    """Sizes of an unrolled game, by level: index d is after d joint moves."""

    nodes: tuple[int, ...]  # merged, ends included
    histories: tuple[float, ...]  # unmerged, ends included
    information_sets: tuple[tuple[int, ...], ...]  # for every player; sets with one option included


@dataclasses.dataclass(frozen=True)
class GameTree:
    """`offset` is what was subtracted from goals to give payoffs."""

    name: str
    players: tuple[Player, ...]
    terminals: Terminals
    counts: Counts
    zero_sum: bool
    offset: float
    unplayable: int  # merged ends at which some role had no legal move
    levels: tuple[Level, ...] | None = None  # where edges were kept
    leaves: Leaves | None = None  # where the depth was limited

    @property
    def payoff_range(self) -> tuple[float, float]:
        """The lowest and the highest payoff of any player."""
        payoff = self.terminals.payoff
        return (float(payoff.min()), float(payoff.max())) if payoff.size else (0.0, 0.0)

    @property
    def information_sets(self) -> dict[str, int]:
        """Of every player, those with a choice."""
        return {player.name: player.sets for player in self.players}

    def summary(self) -> dict[str, Any]:
        """Sizes, as `gdlx info --tree` shows them."""
        return {
            "nodes": sum(self.counts.nodes),
            "histories": _int_if_exact(sum(self.counts.histories)),
            "terminals": _int_if_exact(float(self.terminals.histories.sum())),
            "terminals_merged": len(np.unique(self.terminals.sequence, axis=0)),
            "information_sets": self.information_sets,
            "sequences": {player.name: player.sequences for player in self.players},
        }


def _int_if_exact(number: float) -> int | float:
    """As an integer where a float is one exactly."""
    return int(number) if number < 2**53 else number


def infoset_labels(player: Player) -> tuple[str, ...]:
    """`dealt K; bet`: at every step the player's choice, if it had one, and what it perceived."""
    if not isinstance(player.views, InfosetTree):
        return make_distinct([one_line(player.views[view]) or "start" for view in player.view.tolist()], [])
    trail = player.views
    percepts = [", ".join(trail.percept_names[n] for n in np.flatnonzero(row)) for row in trail.percepts]
    short: list[str] = []
    full: list[str] = []
    rows = zip(
        trail.parent.tolist(), trail.move.tolist(), trail.was_choice.tolist(), trail.percept.tolist(), strict=True
    )
    for parent, move, was_choice, percept in rows:
        if parent < 0:
            short.append("")
            full.append("")
            continue
        made, seen = player.action_names[move], percepts[percept]
        told = ", ".join(part for part in (made if was_choice else "", seen) if part)
        short.append("; ".join(part for part in (short[parent], told) if part))
        full.append(f"{full[parent]}{'; ' if full[parent] else ''}{made}: {seen or '-'}")
    options = [f"{full[view]}; may {', '.join(player.options(n))}" for n, view in enumerate(player.view.tolist())]
    return make_distinct(
        [short[v] or "start" for v in player.view.tolist()], [[full[v] for v in player.view.tolist()], options]
    )


def one_line(text: str) -> str:
    """
    >>> one_line("hand: 2  3\\nwon: 1\\n")
    'hand: 2 3; won: 1'
    """
    return "; ".join(words for line in text.splitlines() if (words := " ".join(line.split())))


def make_distinct(labels: Sequence[str], fuller: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Each label as it is if no other is the same, else the first of its fuller forms that tells it apart.

    >>> make_distinct(["a", "b", "b"], [["a1", "b1", "b2"]])
    ('a', 'b1', 'b2')
    """
    found = list(labels)
    for forms in [*fuller, [f"{label} #{n}" for n, label in enumerate(labels)]]:
        seen: dict[str, int] = {}
        for label in found:
            seen[label] = seen.get(label, 0) + 1
        if len(seen) == len(found):
            break
        found = [form if seen[label] > 1 else label for label, form in zip(found, forms, strict=True)]
    return tuple(found)
