"""PropNet -> StateGraph: breadth first, all states of a step at once."""

import dataclasses
import functools
import itertools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gdlx.envs import payoffs
from gdlx.envs.states import layers, state_count, state_index, state_information, state_labels, transitions
from gdlx.envs.trees import game_tree, state_evaluation
from gdlx.envs.trees.factored import ragged
from gdlx.propnet.checks import repetition
from gdlx.propnet.circuits import propnet
from gdlx.propnet.common import deadlines, errors, limits
from gdlx.propnet.simulate import machine

Ints = game_tree.Ints
Longs = game_tree.Longs
Bools = game_tree.Bools
Floats = game_tree.Floats
Words = state_labels.Words

_ADD_COUNTER = f"Add a step counter to its rules, e.g. {repetition.STEP_COUNTER}"
_SHOWN_ACTIONS = 12
_MAX_BLOCK_BYTES = 4 * 2**30  # for the joint actions of one state, which are evaluated together
_BATCH_EDGES = 2**20  # joint actions of a batch, which bounds the memory of what is computed for it


class HiddenStateError(errors.UserError, ValueError):
    """A game in which some player does not always know the state."""


class Batch(NamedTuple):
    """States of a layer in which every player, and chance, has as many moves. Axes: B states, P players."""

    states: Longs  # [B]
    widths: tuple[int, ...]  # [P] moves of each player, 1 where it has no choice
    chance: int  # moves of chance, 1 where it has no choice

    @property
    def fan(self) -> int:
        """Joint actions of each state."""
        return int(np.prod(self.widths, dtype=np.int64)) * self.chance


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class StateGraph:
    """A game of states: all states that can be reached, with the states that follow each joint action.

    Axes: S states, in the order of their layers, the initial state first; P players; E joint actions of all states,
    ordered by state, then by the players' moves in file order, chance's moves changing fastest; W words of registers.

    An information set of a player is a state in which it has a choice, in the order of their numbers; `players` has
    their actions. Every information set counts as following the empty sequence: how it was reached does not matter.
    """

    name: str
    players: tuple[game_tree.Player, ...]
    decision: Ints  # [S, P] the information set of each player, -1 where it has no choice
    width: Ints  # [S, P] legal moves of each player, 0 in terminal states
    chance: Ints  # [S] legal moves of chance, all equally likely; 1 without chance, 0 in terminal states
    first_edge: Longs  # [S + 1]
    successor: Ints  # [E]
    payoff: Floats  # [S, P] in terminal states, 0 in others
    layer: Ints  # [S] joint actions on the longest way from the initial state; every successor has a larger one
    words: Words  # [S, W] the registers
    zero_sum: bool
    offset: float  # what was subtracted from goal values to give payoffs
    unplayable: int  # terminal states in which some role had no legal move

    def __repr__(self) -> str:
        return f"StateGraph({self.name}: {self.states:,} states, {self.edges:,} joint actions)"

    @property
    def states(self) -> int:
        return len(self.layer)

    @property
    def edges(self) -> int:
        return len(self.successor)

    @property
    def is_terminal(self) -> Bools:
        """[S] whether the game ends there."""
        ends: Bools = self.chance == 0
        return ends

    @functools.cached_property
    def depth(self) -> int:
        """Joint actions of the longest match."""
        return int(self.layer.max())

    @functools.cached_property
    def is_turn_taking(self) -> bool:
        """Whether no state gives two players a choice."""
        return not bool(((self.width > 1).sum(axis=1) > 1).any())

    @functools.cached_property
    def batches(self) -> tuple[Batch, ...]:
        """The states that are not terminal, the last layer first: all successors of a batch are in earlier ones."""
        alive = np.flatnonzero(~self.is_terminal)
        shape = np.column_stack([self.depth - self.layer[alive], self.width[alive], self.chance[alive]])
        order = np.lexsort(shape.T[::-1])
        shape = shape[order]
        begins = np.flatnonzero(np.any(np.diff(shape, axis=0, prepend=-1), axis=1)).tolist()
        batches = []
        for begin, end in itertools.pairwise([*begins, len(alive)]):
            group = Batch(alive[order[begin:end]], tuple(shape[begin, 1:-1].tolist()), int(shape[begin, -1]))
            size = max(1, _BATCH_EDGES // group.fan)
            batches += [group._replace(states=group.states[n : n + size]) for n in range(0, end - begin, size)]
        return tuple(batches)

    def successors(self, batch: Batch) -> Longs:
        """[B, moves of player 0, .., moves of player P - 1, moves of chance] the states after a batch."""
        rows = self.first_edge[batch.states][:, None] + np.arange(batch.fan)
        after: Longs = self.successor[rows].astype(np.int64)
        return after.reshape(len(batch.states), *batch.widths, batch.chance)

    @functools.cached_property
    def tree(self) -> game_tree.GameTree:
        """The information sets and sizes in the form in which policies are shown and stored.

        Its terminals are those of the graph, but it has no sequences that lead to them.
        """
        ends = np.flatnonzero(self.is_terminal)
        terminals = game_tree.Terminals(
            np.zeros((len(ends), len(self.players)), np.int32),
            self.payoff[ends],
            np.ones(len(ends)),
            np.ones(len(ends)),
        )
        by_layer = np.bincount(self.layer).tolist()
        sets = [
            np.bincount(self.layer, weights=self.width[:, n] > 0, minlength=len(by_layer))
            for n in range(len(self.players))
        ]
        counts = game_tree.Counts(
            tuple(by_layer),
            tuple(map(float, by_layer)),
            tuple(tuple(map(int, row)) for row in zip(*sets, strict=True)) if sets else (),
        )
        return game_tree.GameTree(
            self.name, self.players, terminals, counts, self.zero_sum, self.offset, self.unplayable
        )


def build(
    game: propnet.PropNet,
    mode: payoffs.PayoffMode = "auto",
    *,
    max_joint_actions: int = limits.NODES,
    goal_conflict: state_evaluation.GoalConflictMode = "refuse",
    report: Callable[[int, int], None] | None = None,
) -> StateGraph:
    """Builds the graph of all states that can be reached.

    Args:
      game: the compiled rules.
      mode: how goal values become payoffs, as in `gdlx.make`.
      max_joint_actions: limit on the joint actions of all states together, which bounds time and memory.
      goal_conflict: what to do where a player has several goal values or none, as in `unroll`.
      report: called as `report(step, states)` after every step, with the states so far.

    Raises:
      HiddenStateError: a player does not always know the state.
      TooLargeError: there are too many states, or play can go on for ever.
      UnplayableError, GoalConflictError, PayoffError: as for `unroll`.

    >>> from gdlx.propnet import games
    >>> build(games.compile_game("tictactoe"))
    StateGraph(tictactoe: 5,478 states, 16,167 joint actions)
    """
    information = state_information.infer_state_information(game)
    if information.ambiguity is not None:
        raise HiddenStateError(_explain(game, information.ambiguity))
    return _Builder(game, mode, information.unproved, max_joint_actions, goal_conflict).run(report)


def _explain(game: propnet.PropNet, ambiguity: transitions.Ambiguity) -> str:
    return (
        f"the states of {game.name} are not its information sets: {ambiguity.in_words()}. Solve its tree instead, as "
        "`algorithm='dcfr'` does"
    )


class _Builder:
    def __init__(
        self,
        game: propnet.PropNet,
        mode: payoffs.PayoffMode,
        unproved: tuple[int, ...],
        max_joint_actions: int,
        goal_conflict: state_evaluation.GoalConflictMode,
    ) -> None:
        self.game, self.unproved, self.max_joint_actions = game, unproved, max_joint_actions
        self.evaluator = state_evaluation.StateEvaluator(game, mode, goal_conflict)
        self.registers = len(game.initial)
        self.sizes = [len(role.moves) for role in game.roles]
        self.player_roles = [n for n, role in enumerate(game.roles) if not role.is_random]
        start = state_labels.pack_columns(machine.for_propnet(game).initial(1))
        self.index = state_index.StateIndex(start.shape[1])
        self.index.add(start)
        self.edges = 0
        # Of every step: widths, moves of chance, legal moves of players, goals, successors.
        self.widths: list[Ints] = []
        self.chance: list[Ints] = []
        self.actions: list[list[Ints]] = [[] for _ in self.player_roles]
        self.goals: list[Floats] = []
        self.stuck: list[Bools] = []
        self.successors: list[Ints] = []

    def run(self, report: Callable[[int, int], None] | None) -> StateGraph:
        done, step, is_layered = 0, 0, True
        while done < len(self.index):
            deadlines.check()
            begin, done = done, len(self.index)
            reached = self._expand(self.index.words[begin:done], step)
            is_layered &= reached >= done
            step += 1
            if report:
                report(step, len(self.index))
        return self._finish(is_layered)

    def _expand(self, words: Words, step: int) -> int:
        """Adds the states that follow those of a step; returns the smallest number of these."""
        states = state_labels.unpack_columns(words, self.registers)
        legal, _, stuck, goals = self.evaluator.evaluate(states)
        rows = machine.split_rows(legal, self.sizes)
        fan = np.prod([part.sum(axis=0, dtype=np.float64) for part in rows], axis=0)
        self._limit(float(fan.sum()), float(fan.max()), step)
        self.widths.append(np.stack([rows[n].sum(axis=0) for n in self.player_roles], axis=1).astype(np.int32))
        random_rows = [part for part, role in zip(rows, self.game.roles, strict=True) if role.is_random]
        alive = legal.any(axis=0)
        chance = np.prod([part.sum(axis=0) for part in random_rows], axis=0) if random_rows else np.ones(len(words))
        self.chance.append(np.where(alive, chance, 0).astype(np.int32))
        for collected, number in zip(self.actions, self.player_roles, strict=True):
            has_choice = rows[number].sum(axis=0) > 1
            collected.append(np.nonzero(rows[number][:, has_choice].T)[1].astype(np.int32))
        self.goals.append(goals)
        self.stuck.append(stuck)
        parts, distinct = [], []
        for part in transitions.expand(self.game, states, legal, percepts_of=self.unproved):
            deadlines.check()
            if (ambiguity := transitions.find_ambiguity(self.game, states, part)) is not None:
                raise HiddenStateError(_explain(self.game, ambiguity))
            following = state_labels.pack_columns(part.following)
            numbering = state_index.number_words(following)
            parts.append(numbering.number)
            distinct.append(following[numbering.example])
        sizes = [len(rows) for rows in distinct]
        if not sum(sizes):
            return len(self.index)
        merged = state_index.number_words(np.concatenate(distinct))
        numbers = self.index.add(np.concatenate(distinct)[merged.example])
        bounds = np.cumsum([0, *sizes])
        for local, (first, last) in zip(parts, itertools.pairwise(bounds.tolist()), strict=True):
            self.successors.append(numbers[merged.number[first:last]][local].astype(np.int32))
        return int(numbers.min())

    def _limit(self, more: float, most: float, step: int) -> None:
        """Raises if a step with `more` joint actions, `most` of one state, exceeds a limit."""
        if step == limits.STEPS:
            raise game_tree.TooLargeError(f"{self.game.name} continues after {step} joint actions", _ADD_COUNTER)
        if self.edges + more > self.max_joint_actions:
            count = state_count.count_states(self.game)
            estimate = "" if count.exact else f"; random play shows more than {count.states:.1e} states in total"
            raise game_tree.TooLargeError(
                f"{self.game.name} has too many states: {len(self.index):,} were found in {step} steps, and those of "
                f"the last step alone have {more:,.0f} joint actions; allowed are {self.max_joint_actions:,} in total"
                f"{estimate}",
                "Make the game smaller with its parameters, or allow more with `max_nodes=`: a joint action takes "
                "about 100 bytes",
            )
        if most * (self.registers + sum(self.sizes)) > _MAX_BLOCK_BYTES:
            raise game_tree.TooLargeError(
                f"{self.game.name} has a state with {most:,.0f} joint actions, too many to evaluate at once",
                "Make the game smaller with its parameters",
            )
        self.edges += int(more)

    def _finish(self, is_layered: bool) -> StateGraph:
        width, chance = np.concatenate(self.widths), np.concatenate(self.chance)
        goals, stuck = np.concatenate(self.goals), np.concatenate(self.stuck)
        after = ragged.Ragged(_first_edges(width, chance), np.concatenate([np.zeros(0, np.int32), *self.successors]))
        actions = [
            ragged.Ragged(_first_actions(width[:, n]), np.concatenate(parts)) for n, parts in enumerate(self.actions)
        ]
        words = self.index.words
        layer: Ints | None = np.repeat(np.arange(len(self.widths), dtype=np.int32), [len(rows) for rows in self.widths])
        if not is_layered:
            layer = layers.longest_paths(after.starts, after.items)
        if layer is None:
            raise game_tree.TooLargeError(self._describe_cycle(after), _ADD_COUNTER)
        if not is_layered:
            order = np.argsort(layer, kind="stable")
            after = after.take(order)
            after = after._replace(items=np.argsort(order).astype(np.int32)[after.items])
            actions = [rows.take(order) for rows in actions]
            width, chance, goals, stuck, words = width[order], chance[order], goals[order], stuck[order], words[order]
            layer = layer[order]
        is_end = chance == 0
        units = self.evaluator.payoffs(goals[is_end & ~stuck], is_complete=True)
        labels = state_labels.StateLabels(self.game, words)
        return StateGraph(
            name=self.game.name,
            players=tuple(
                _player(role, width[:, n], actions[n].items, layer, labels) for n, role in enumerate(self.game.players)
            ),
            decision=np.where(width > 1, np.cumsum(width > 1, axis=0) - 1, -1).astype(np.int32),
            width=width,
            chance=chance,
            first_edge=after.starts,
            successor=after.items,
            payoff=np.where((is_end & ~stuck)[:, None], goals - units.offset, 0.0),
            layer=layer,
            words=words,
            zero_sum=units.zero_sum,
            offset=units.offset,
            unplayable=int(stuck.sum()),
        )

    def _describe_cycle(self, after: ragged.Ragged) -> str:
        """Names the joint actions of a cycle."""
        cycle = layers.find_cycle(after.starts, after.items)
        source = np.searchsorted(after.starts, cycle, side="right") - 1
        actions = []
        for state, edge in zip(source[:_SHOWN_ACTIONS].tolist(), cycle, strict=False):
            column = state_labels.unpack_columns(self.index.words[[state]], self.registers)
            legal = self.evaluator.evaluate(column)[0]
            part = next(iter(transitions.expand(self.game, column, legal)))
            row = edge - int(after.starts[state])
            names = (role.moves[moves[row]] for role, moves in zip(self.game.roles, part.moves, strict=True))
            actions.append(f"[{' '.join(names)}]")
        more = f", .. ({len(cycle)} joint actions)" if len(cycle) > _SHOWN_ACTIONS else ""
        state_text = state_labels.StateLabels(self.game, self.index.words[source[:1]])[0]
        return (
            f"{self.game.name} need not end: the state {state_text} is reached again after "
            f"{', '.join(actions)}{more}, and backward induction needs a game without cycles"
        )


def _first_edges(width: Ints, chance: Ints) -> Longs:
    return ragged.starts_of(np.prod(width, axis=1, dtype=np.int64) * chance)


def _first_actions(width: Ints) -> Longs:
    """Where the actions of every state begin, of those with a choice."""
    return ragged.starts_of(np.where(width > 1, width, 0))


def _player(
    role: propnet.Role, width: Ints, actions: Ints, layer: Ints, labels: state_labels.StateLabels
) -> game_tree.Player:
    """The information sets of a player: the states in which it has a choice."""
    states = np.flatnonzero(width > 1)
    numbers = np.concatenate([np.full(1, -1, np.int32), actions])
    return game_tree.Player(
        name=role.name,
        parent=np.zeros(len(states), np.int32),
        first=np.concatenate([[1], 1 + np.cumsum(width[states])]).astype(np.int32),
        step=layer[states],
        chance=np.ones(len(states)),
        action=numbers,
        action_name=numbers,
        action_names=role.moves,
        views=labels,
        view=states.astype(np.int32),
    )
