"""A game on the host, decision by decision: forced moves are skipped, and states and transitions are cached.

For tree search and other programs that visit a game node by node; use `Env` for thousands of games at once.
"""

import functools
import itertools
from typing import Any, NamedTuple

import numpy as np

from gdlx.envs import payoffs
from gdlx.propnet.circuits import propnet
from gdlx.propnet.simulate import machine

_CACHE_SIZE = 2**18  # cached states, and as many cached transitions

Numbers = tuple[int, ...]


class Position(NamedTuple):
    """A state of the game, with its legal actions and goal values."""

    registers: bytes
    terminal: bool
    unplayable: bool
    legal: tuple[Numbers, ...]  # actions of every player; empty once the match is over
    chance: Numbers  # actions of the random role, if there is one
    goals: Numbers  # goal value of every player, the highest if there are several; 0 if there is none
    goal_conflict: bool  # whether the state is terminal and some player has several goal values or none


class Node(NamedTuple):
    """A decision node, a chance node or a terminal node."""

    position: Position
    step: int  # joint actions taken so far
    pending_actions: Numbers | None  # the players' actions if only chance is still to act
    actions: Numbers  # the last joint action of the players, () before the first
    percepts: tuple[Numbers, ...]  # of each player, after that joint action
    views: tuple[str, ...]  # action-observation history of each player, as text
    is_over: bool
    events: tuple[tuple[Numbers, tuple[Numbers, ...]], ...] = ()  # joint actions and percepts so far, step by step

    def __deepcopy__(self, memo: dict[int, Any]) -> "Node":
        return self

    @property
    def deciders(self) -> Numbers:
        """Players who have a choice now."""
        if self.is_over or self.pending_actions is not None:
            return ()
        return tuple(player for player, legal in enumerate(self.position.legal) if len(legal) > 1)

    @property
    def is_chance(self) -> bool:
        return not self.is_over and not self.deciders


class HostEnv:
    """One game in numpy, state by state, as OpenSpiel steps a game.

    If players and chance act in the same step, the players act first.

    Attributes and methods:
      start: the first node.
      apply_actions, apply_chance: the next node after a joint action, or after an action of chance.
      returns: payoffs at a node.
      fluents: names of the true fluents of a node.

    >>> from gdlx.envs import game_facts
    >>> import gdlx
    >>> propnet = gdlx.compile("rps")
    >>> game = HostEnv(propnet, game_facts.probe(propnet).payoffs(), max_steps=10)
    >>> game
    HostEnv(rps: players player1, player2; at most 10 steps)
    >>> game.returns(game.apply_actions(game.start, (0, 1)))
    [50.0, -50.0]
    """

    def __init__(self, propnet: propnet.PropNet, payoffs: payoffs.Payoffs, max_steps: int) -> None:
        self.propnet = propnet
        self.payoffs = payoffs
        self.max_steps = max_steps
        self._machine = machine.for_propnet(propnet)
        self._sizes = [[len(r.moves) for r in propnet.roles], [len(r.percepts) for r in propnet.roles]]
        self.position = functools.lru_cache(_CACHE_SIZE)(self._position)
        self.transition = functools.lru_cache(_CACHE_SIZE)(self._move)

    def __repr__(self) -> str:
        players = ", ".join(role.name for role in self.propnet.players)
        return f"HostEnv({self.propnet.name}: players {players}; at most {self.max_steps:,} steps)"

    @functools.cached_property
    def start(self) -> Node:
        position = self.position(self.propnet.initial.tobytes())
        views = tuple(f"may {self._options(position, player)}" for player in range(len(self.propnet.players)))
        nothing = ((),) * len(self.propnet.players)
        return self._skip_forced(Node(position, 0, None, (), nothing, views, self._is_over(position, 0)))

    def apply_actions(self, node: Node, actions: Numbers) -> Node:
        """The node after a joint action. A player without a choice makes its only move, whatever is passed for it."""
        options = node.position.legal
        joint = tuple(legal[0] if len(legal) == 1 else a for legal, a in zip(options, actions, strict=True))
        for player, (legal, action) in enumerate(zip(options, joint, strict=True)):
            if action not in legal:
                name = self.propnet.players[player].name
                raise ValueError(f"action {action} of {name} is not legal; legal are {', '.join(map(str, legal))}")
        return self._skip_forced(node._replace(pending_actions=joint))

    def apply_chance(self, node: Node, action: int) -> Node:
        """The node after an action of chance."""
        if action not in node.position.chance:
            raise ValueError(f"action {action} of the random role is not legal")
        return self._skip_forced(self._stepped(node, action))

    def returns(self, node: Node) -> list[float]:
        """Payoffs; 0 unless the state is terminal."""
        if not node.position.terminal:
            return [0.0] * len(self.propnet.players)
        return [goal - self.payoffs.offset for goal in node.position.goals]

    def fluents(self, node: Node) -> tuple[str, ...]:
        """Names of the true fluents."""
        registers = np.frombuffer(node.position.registers, np.bool_)
        values = np.concatenate([[False], registers])[self.propnet.fluent_literals >> 1]
        held = values ^ (self.propnet.fluent_literals & 1).astype(bool)
        return tuple(itertools.compress(self.propnet.fluents, held.tolist()))

    def _skip_forced(self, node: Node) -> Node:
        """Makes forced moves until the next decision or chance node, or the end of the match."""
        while not node.is_over:
            if node.deciders:
                return node
            if node.pending_actions is None:
                node = node._replace(pending_actions=tuple(legal[0] for legal in node.position.legal))
            if len(node.position.chance) > 1:
                return node
            node = self._stepped(node, node.position.chance[0] if node.position.chance else 0)
        return node

    def _stepped(self, node: Node, chance: int) -> Node:
        assert node.pending_actions is not None
        registers, percepts = self.transition(node.position.registers, node.pending_actions, chance)
        position = self.position(registers)
        views = tuple(
            f"{view}\n{self._event(player, node.pending_actions[player], percepts[player], position)}"
            for player, view in enumerate(node.views)
        )
        is_over = self._is_over(position, node.step + 1)
        events = (*node.events, (node.pending_actions, percepts))
        return Node(position, node.step + 1, None, node.pending_actions, percepts, views, is_over, events)

    def _is_over(self, position: Position, step: int) -> bool:
        return position.terminal or position.unplayable or step >= self.max_steps

    def _event(self, player: int, move: int, percepts: Numbers, after: Position) -> str:
        # No name contains a semicolon, so different events have different texts.
        role = self.propnet.players[player]
        seen = "; ".join(role.percepts[n] for n in percepts)
        return f"did {role.moves[move]};; saw {seen};; may {self._options(after, player)}"

    def _options(self, position: Position, player: int) -> str:
        return "; ".join(self.propnet.players[player].moves[n] for n in position.legal[player])

    def _position(self, registers: bytes) -> Position:
        state = np.frombuffer(registers, np.bool_)
        terminal, goal_rows = self._machine.terminal_and_goals(state)
        legal_rows = machine.split_rows(self._machine.legal(state), self._sizes[0])
        unplayable = not terminal and not all(rows.any() for rows in legal_rows)
        options = [() if terminal or unplayable else _true_indices(rows) for rows in legal_rows]
        by_role = machine.split_rows(goal_rows, [len(role.goal_values) for role in self.propnet.roles])
        goals = [
            (role, _true_indices(rows))
            for role, rows in zip(self.propnet.roles, by_role, strict=True)
            if not role.is_random
        ]
        chance = [moves for role, moves in zip(self.propnet.roles, options, strict=True) if role.is_random]
        return Position(
            registers=registers,
            terminal=bool(terminal),
            unplayable=unplayable,
            legal=tuple(moves for role, moves in zip(self.propnet.roles, options, strict=True) if not role.is_random),
            chance=chance[0] if chance else (),
            goals=tuple(max((role.goal_values[n] for n in held), default=0) for role, held in goals),
            goal_conflict=bool(terminal) and any(len(held) != 1 for _, held in goals),
        )

    def _move(self, registers: bytes, chosen: Numbers, chance: int) -> tuple[bytes, tuple[Numbers, ...]]:
        """The state after a joint action, and the percepts of each player."""
        state = np.frombuffer(registers, np.bool_)
        moves = iter(chosen)
        does = np.concatenate(
            [np.arange(len(role.moves)) == (chance if role.is_random else next(moves)) for role in self.propnet.roles]
        )
        following, seen = self._machine.step(state, does)
        rows = machine.split_rows(seen, self._sizes[1])
        percepts = (
            _true_indices(bits) for role, bits in zip(self.propnet.roles, rows, strict=True) if not role.is_random
        )
        return following.tobytes(), tuple(percepts)


def _true_indices(rows: machine.Rows) -> Numbers:
    return tuple(np.flatnonzero(rows).tolist())
