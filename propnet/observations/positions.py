"""Positions of matches as one player observes them: from random play."""

from typing import NamedTuple

import numpy as np

from gdlx.propnet.circuits import propnet
from gdlx.propnet.common import errors, seeds
from gdlx.propnet.common.text import plurals, suggestions
from gdlx.propnet.simulate import machine, random_play


class PositionError(errors.UserError, ValueError):
    """A position that no match has."""


class Event(NamedTuple):
    """One joint action as a player observes it, by numbers of moves and percepts."""

    move: int
    percepts: tuple[int, ...]
    legal: tuple[int, ...]  # afterwards; none once the match is over


class Position(NamedTuple):
    """A match so far, as one player observes it. Axes: T joint actions, N roles."""

    player: int
    first: tuple[int, ...]  # legal moves in the initial state
    events: tuple[Event, ...]  # [T]
    moves: tuple[tuple[int, ...], ...]  # [T][N] what all did
    is_over: bool


def find_player(net: propnet.PropNet, name: str) -> int:
    """Returns the number of a player by its name, or by its number from 1.

    >>> from gdlx.propnet import games
    >>> find_player(games.compile_game("tictactoe"), "o")
    1
    """
    names = [role.name for role in net.players]
    if name in names:
        return names.index(name)
    if name.isdecimal() and 1 <= int(name) <= len(names):
        return int(name) - 1
    near = suggestions.is_it(name, names, most=1)
    raise PositionError(f"{net.name} has no player {name!r}{near}; its players are {', '.join(names)}")


def random_position(net: propnet.PropNet, player: int, steps: int | None, seed: int = 0) -> Position:
    """Plays a match at random, and returns what a player has observed.

    Args:
      net: The propnet.
      player: The player.
      steps: Joint actions to play; None for half of a match.
      seed: The seed of the match.

    Raises:
      PositionError: If the match ends before.

    >>> from gdlx.propnet import games
    >>> position = random_position(games.compile_game("kuhn_poker"), player=0, steps=2)
    >>> len(position.events), position.is_over
    (2, False)
    """
    if steps is None:
        whole = _play(net, player, None, seed)
        return _play(net, player, len(whole.events) // 2, seed)
    position = _play(net, player, steps, seed)
    if len(position.events) < steps:
        ended = plurals.count(len(position.events), "joint action")
        raise PositionError(
            f"the match of {net.name} with seed {seed} ends after {ended}, so that there is no position after {steps}; "
            "take fewer moves or another seed"
        )
    return position


_LONGEST = 10_000  # joint actions of a match


def _play(net: propnet.PropNet, player: int, steps: int | None, seed: int) -> Position:
    random, game = np.random.default_rng(seeds.non_negative(seed)), machine.for_propnet(net)
    moves, percepts = ([len(names) for names in parts] for parts in _names(net))
    role = [number for number, role in enumerate(net.roles) if not role.is_random][player]
    state = game.initial(1)
    legal = _legal(game, state, moves)
    first = _numbers(legal[role]) if legal else ()
    joints: list[tuple[int, ...]] = []
    events: list[Event] = []
    while legal and len(events) < (_LONGEST if steps is None else steps):
        does = [random_play.sample_legal_moves(rows, random) for rows in legal]
        state, sees = game.step(state, np.concatenate(does))
        legal = _legal(game, state, moves)
        joints.append(tuple(int(np.argmax(rows)) for rows in does))
        seen = _numbers(machine.split_rows(sees, percepts)[role])
        events.append(Event(joints[-1][role], seen, _numbers(legal[role]) if legal else ()))
    return Position(player, first, tuple(events), tuple(joints), not legal)


def _names(net: propnet.PropNet) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    return [role.moves for role in net.roles], [role.percepts for role in net.roles]


def _legal(game: machine.StateMachine, state: machine.Rows, sizes: list[int]) -> list[machine.Rows]:
    """The legal moves of every role; none once the match is over."""
    terminal, _ = game.terminal_and_goals(state)
    rows = machine.split_rows(game.legal(state), sizes)
    return [] if terminal[0] or not all(row.any() for row in rows) else rows


def _numbers(rows: machine.Rows) -> tuple[int, ...]:
    return tuple(np.flatnonzero(rows).tolist())
