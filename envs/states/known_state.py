"""The state of a match of a game of states, as a player knows it from what it has done and perceived."""

import functools
import itertools
from collections.abc import Callable

import numpy as np

from gdlx.envs.states import transitions
from gdlx.envs.views import history
from gdlx.propnet.circuits import memo, propnet
from gdlx.propnet.common import errors
from gdlx.propnet.simulate import machine

_CACHED_STATES = 2**16


class UnknownStateError(errors.UserError, ValueError):
    """Percepts that no joint action explains, or that leave several states possible."""


def known_state(view: history.ActionObservationHistory) -> transitions.Bools:
    """Returns the registers [R] of the state that a player is in.

    Raises:
      UnknownStateError: the game is not one of states, or the events are not of this game.

    >>> from gdlx.envs import make_env
    >>> env = make_env.make("rps")
    >>> bool((known_state(history.ActionObservationHistory(env, 0, (0, 1, 2))) == env.propnet.initial).all())
    True
    """
    game = view.game.propnet
    registers, after = game.initial.tobytes(), _steps(game)
    for event in view.events:
        registers = after(view.player, registers, event)
    return np.frombuffer(registers, np.bool_)


@memo.per_propnet
def _steps(game: propnet.PropNet) -> Callable[[int, bytes, history.Event], bytes]:
    """`_after`, cached: a match asks for the same steps at every move."""
    return functools.lru_cache(_CACHED_STATES)(functools.partial(_after, game))


def _after(game: propnet.PropNet, player: int, registers: bytes, event: history.Event) -> bytes:
    """The state after an event: that of any joint action which explains it."""
    before = np.frombuffer(registers, np.bool_)[:, None]
    judge = machine.for_propnet(game)
    role = [n for n, other in enumerate(game.roles) if not other.is_random][player]
    legal = machine.split_rows(judge.legal(before), [len(other.moves) for other in game.roles])
    legal[role] = np.zeros_like(legal[role])
    legal[role][event.move] = True
    seen = np.zeros(len(game.players[player].percepts), np.bool_)
    seen[list(event.percepts)] = True
    for part in transitions.expand(game, before, np.concatenate(legal), percepts_of=(player,)):
        after = part.following[:, (part.percepts[player] == seen[:, None]).all(axis=0)]
        may = machine.split_rows(judge.legal(after), [len(other.moves) for other in game.roles])[role]
        for column, moves in zip(after.T, may.T, strict=True):
            if tuple(itertools.compress(range(len(moves)), moves)) == event.legal:
                return bytes(column.tobytes())
    raise UnknownStateError(f"{game.players[player].name} perceived what no joint action of {game.name} explains")
