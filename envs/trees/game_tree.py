"""GameTree: an unrolled game, with histories of the same future merged and every player's information sets numbered.

A sequence of a player is the list of its choices so far. Sequence 0 is the empty one; every action of every information
set has a separate number. Information sets built from actions and percepts have perfect recall: the information set
determines the player's sequence, so reach probabilities are functions of sequences.
"""

import dataclasses
import functools
import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from gdlx.envs.states import state_labels
from gdlx.envs.trees.factored import terminal_blocks
from gdlx.propnet.checks import unplayable
from gdlx.propnet.common import errors
from gdlx.propnet.common.text import plurals

_MANY_VIEWS = 2_000_000  # whose labels would take gigabytes
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


class TooLargeError(errors.UserError, ValueError):
    """A game with more nodes than the limit, or without an end.

    `max_nodes=` raises the limit, and `depth=` unrolls fewer steps.

    Attributes:
      reason: what is too large, without the advice on what to do that follows it in the message.

    >>> import gdlx
    >>> try:
    ...     gdlx.unroll("tictactoe", max_nodes=1000)
    ... except TooLargeError as error:
    ...     print(error.reason.split(":")[0])
    tictactoe is too large to unroll
    """

    def __init__(self, reason: str, advice: str = "") -> None:
        super().__init__(f"{reason}. {advice}" if advice else reason)
        self.reason = reason


class TooManyBlocksError(TooLargeError):
    """A game that is unrolled in blocks, but has too many of them. `max_nodes=` raises the limits in proportion."""


class TerminalsInBlocksError(TooLargeError):
    """A game with so many terminals that they are stored in blocks, where each of them is needed."""


UnplayableError = unplayable.UnplayableError


class GoalConflictError(errors.UserError, ValueError):
    """A terminal state in which some player has several goal values, or none."""


class InfosetTree(NamedTuple):
    """The tree of all information sets of a player, forced moves included.

    Axes: V information sets, Q percepts, K distinct combinations of percepts.
    """

    parent: Ints  # [V] the information set one step earlier, -1 at the start
    move: Ints  # [V] the player's move there, -1 at the start
    was_choice: Bools  # [V] whether it had another legal move there
    percept: Ints  # [V] row of `percepts`, -1 at the start
    percepts: Bools  # [K, Q]
    percept_names: tuple[str, ...]  # [Q]
    forced: Ints  # [V] the only legal move, -1 where there is a choice
    waits: Ints | None = None  # [V] steps left out before the last one: the parent's only move, without a percept


class Orbits(NamedTuple):
    """How much each information set and sequence of a tree without symmetric ones stands for. Axes as in `Player`."""

    copies: Ints  # [S] the actions, alike by symmetry, that an action stands for; they share its probability
    infosets: Ints  # [I] the information sets of the whole game that an information set stands for
    actions: Ints  # [sum of copies, without that of the empty sequence] numbers of the actions in the game


@dataclasses.dataclass(frozen=True)
class Player:
    """The information sets of one player that have a choice, in order of time.

    Axes: I information sets, S sequences.
    """

    name: str
    parent: Ints  # [I] the sequence that leads to the information set
    first: Ints  # [I + 1] its actions are the sequences first[i] .. first[i + 1] - 1
    step: Ints  # [I] joint actions taken before
    chance: Floats  # [I] chance reach, summed over the histories of the set: an upper bound on its reach
    action: Ints  # [S] number of the action in the game; -1 for the empty sequence
    action_name: Ints  # [S] its name in `action_names`; -1 for the empty sequence
    action_names: tuple[str, ...]
    # All information sets; or texts, possibly of several lines: of another library, or of the states of a graph.
    views: InfosetTree | Sequence[str]
    view: Ints  # [I] the information set in `views`
    orbits: Orbits | None = None  # if symmetric information sets were left out

    @functools.cached_property
    def plan_scale(self) -> Floats:
        """[S] by what the plan of a sequence is multiplied for the plan of one sequence of the whole game.

        It is 1 unless symmetric actions were left out: those that an action stands for share its probability.
        """
        scale = np.ones(self.sequences)
        if self.orbits is not None:
            scale /= self.orbits.copies
            for begin, end in itertools.pairwise([*np.flatnonzero(np.diff(self.step, prepend=-1)).tolist(), self.sets]):
                widths = np.diff(self.first[begin : end + 1])
                scale[self.first[begin] : self.first[end]] *= np.repeat(scale[self.parent[begin:end]], widths)
        return scale

    def __repr__(self) -> str:
        return f"Player({one_line(self.name)}: {self.sets:,} information sets)"

    @functools.cached_property
    def labels(self) -> Sequence[str]:
        """A distinct, readable label for each information set: what the player has done and perceived.

        Labels of trees with millions of information sets are made when they are read, and need not be distinct.
        """
        if isinstance(self.views, InfosetTree) and len(self.views.parent) > _MANY_VIEWS:
            return _LabelsOnDemand(self, self.views)
        if isinstance(self.views, state_labels.StateLabels):
            return self.views.at(self.view)
        return infoset_labels(self)

    @property
    def sets(self) -> int:
        return len(self.parent)

    @property
    def sequences(self) -> int:
        return int(self.first[-1])

    def options(self, decision: int) -> list[str]:
        """Names of the actions of an information set."""
        start, end = self.first[decision], self.first[decision + 1]
        return [self.action_names[n] for n in self.action_name[start:end]]


class Terminals(NamedTuple):
    """Merged terminals of a game. Axes: T terminals, P players."""

    sequence: Ints  # [T, P]
    payoff: Floats  # [T, P]
    weight: Floats  # [T] probability of the chance actions, summed over the histories
    histories: Floats  # [T] how many were merged

    def __repr__(self) -> str:
        return f"Terminals({plurals.count(len(self.weight), 'merged terminal')})"


class Level(NamedTuple):
    """Nodes after the same number of joint actions, and the edges from them. Axes: N nodes, P players, E edges.

    The edges of a node are in the order of its players' actions; the last player's (then chance's) change fastest.
    """

    decision: Ints  # [N, P] information set with a choice, -1 where there is none
    first_edge: Longs  # [N + 1]
    chance: Floats  # [E] probability of the chance action of an edge
    child: Longs  # [E] node in the next level; terminal t is -1 - t
    infoset: Ints | None = None  # [N, P] rows of the players' `InfosetTree`s; None if the tree has none


class Leaves(NamedTuple):
    """Nodes at which unrolling stopped. Axes: L leaves, P players, R registers."""

    sequence: Ints  # [L, P]
    weight: Floats  # [L]
    histories: Floats  # [L]
    state: Longs  # [L] row of `states`
    states: Bools  # [S, R] distinct states of the game
    information: Ints  # [L, P] information sets among the leaves


@dataclasses.dataclass(frozen=True)
class Counts:
    """Sizes of an unrolled game, by level: index d is after d joint actions."""

    nodes: tuple[int, ...]  # merged, terminals included
    histories: tuple[float, ...]  # unmerged, terminals included
    information_sets: tuple[tuple[int, ...], ...]  # of every player, those with a single action included


@dataclasses.dataclass(frozen=True)
class GameTree:
    """A game unrolled by `gdlx.unroll`; histories with the same future are one node.

    >>> import gdlx
    >>> gdlx.unroll("kuhn_poker")
    GameTree(kuhn_poker: 58 nodes, 12 information sets)
    """

    name: str
    players: tuple[Player, ...]
    terminals: Terminals
    counts: Counts
    zero_sum: bool
    offset: float  # what was subtracted from goal values to give payoffs
    unplayable: int  # merged terminals at which some role had no legal move
    levels: tuple[Level, ...] | None = None  # if unrolled with `keep_edges`
    leaves: Leaves | None = None  # if the depth was limited
    blocks: terminal_blocks.TerminalBlocks | None = None  # further terminals, if unrolled in blocks

    def __repr__(self) -> str:
        nodes, infosets = sum(self.counts.nodes), sum(player.sets for player in self.players)
        return f"GameTree({self.name}: {nodes:,} nodes, {infosets:,} information sets)"

    @property
    def is_whole(self) -> bool:
        """Whether the tree has all information sets, and not one for all that are symmetric."""
        return all(player.orbits is None for player in self.players)

    @property
    def listed_terminals(self) -> Terminals:
        """All terminals, for computations that need each of them.

        Raises:
          TerminalsInBlocksError: some are stored in blocks.
        """
        if self.blocks is not None:
            raise TerminalsInBlocksError(
                f"{self.name} has {self.blocks.terminals:,.0f} terminals in {len(self.blocks.weight):,} "
                "blocks, and this needs each of them listed",
                "Use the CFR family, which works on blocks, or a smaller game",
            )
        return self.terminals

    @property
    def payoff_range(self) -> tuple[float, float]:
        """The lowest and the highest payoff of any player."""
        payoff = [x.payoff for x in (self.terminals, self.blocks) if x is not None and x.payoff.size]
        return (float(min(map(np.min, payoff))), float(max(map(np.max, payoff)))) if payoff else (0.0, 0.0)

    @property
    def information_sets(self) -> dict[str, int]:
        """The number of information sets with a choice, by player."""
        return {player.name: player.sets for player in self.players}

    def summary(self) -> dict[str, Any]:
        """Sizes of the tree, by name."""
        return {
            "nodes": sum(self.counts.nodes),
            "histories": _int_if_exact(sum(self.counts.histories)),
            "terminals": _int_if_exact(
                float(self.terminals.histories.sum()) + (self.blocks.terminals if self.blocks else 0)
            ),
            "terminals_merged": len(np.unique(self.terminals.sequence, axis=0))
            + (len(self.blocks.weight) if self.blocks else 0),
            "information_sets": self.information_sets,
            "sequences": {player.name: player.sequences for player in self.players},
        }


def _int_if_exact(number: float) -> int | float:
    """As an integer if a float represents it exactly."""
    return int(number) if number < 2**53 else number


class _LabelsOnDemand(Sequence[str]):
    """The short labels of a player, each made from the path to its information set."""

    def __init__(self, player: Player, views: InfosetTree) -> None:
        self._player, self._views = player, views

    def __len__(self) -> int:
        return self._player.sets

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        if isinstance(index, slice):
            return [self[n] for n in range(*index.indices(len(self)))]
        views, events = self._views, []
        view = int(self._player.view[index])
        while views.parent[view] >= 0:
            seen = [views.percept_names[n] for n in np.flatnonzero(views.percepts[views.percept[view]])]
            action = [self._player.action_names[views.move[view]]] if views.was_choice[view] else []
            events.append(", ".join([*action, *([", ".join(seen)] if seen else [])]))
            view = int(views.parent[view])
        return "; ".join(event for event in reversed(events) if event) or "start"


def infoset_labels(player: Player) -> tuple[str, ...]:
    """`dealt K; bet`: at every step the player's action, if it had a choice, and its percepts."""
    if not isinstance(player.views, InfosetTree):
        return make_distinct([one_line(player.views[view]) or "start" for view in player.view.tolist()], [])
    tree = player.views
    percepts = [", ".join(tree.percept_names[n] for n in np.flatnonzero(row)) for row in tree.percepts]
    short: list[str] = []
    full: list[str] = []
    rows = zip(tree.parent.tolist(), tree.move.tolist(), tree.was_choice.tolist(), tree.percept.tolist(), strict=True)
    for parent, move, was_choice, percept in rows:
        if parent < 0:
            short.append("")
            full.append("")
            continue
        action, seen = player.action_names[move], percepts[percept]
        event = ", ".join(part for part in (action if was_choice else "", seen) if part)
        short.append("; ".join(part for part in (short[parent], event) if part))
        full.append(f"{full[parent]}{'; ' if full[parent] else ''}{action}: {seen or '-'}")
    options = [f"{full[view]}; may {', '.join(player.options(n))}" for n, view in enumerate(player.view.tolist())]
    return make_distinct(
        [short[v] or "start" for v in player.view.tolist()], [[full[v] for v in player.view.tolist()], options]
    )


def one_line(text: str) -> str:
    """Joins lines by semicolons and collapses spaces.

    >>> one_line("hand: 2  3\\nwon: 1\\n")
    'hand: 2 3; won: 1'
    """
    return "; ".join(words for line in text.splitlines() if (words := " ".join(line.split())))


def make_distinct(labels: Sequence[str], fuller: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Keeps each unique label, and replaces others by the first of their fuller forms that is unique.

    >>> make_distinct(["a", "b", "b"], [["a1", "b1", "b2"]])
    ('a', 'b1', 'b2')
    """
    distinct = list(labels)
    for forms in [*fuller, [f"{label} #{n}" for n, label in enumerate(labels)]]:
        seen: dict[str, int] = {}
        for label in distinct:
            seen[label] = seen.get(label, 0) + 1
        if len(seen) == len(distinct):
            break
        distinct = [form if seen[label] > 1 else label for label, form in zip(distinct, forms, strict=True)]
    return tuple(distinct)
