"""States that are not terminal, but in which some role has no legal move: the game cannot go on.

`explain` says what to write, for every command alike; `find` looks for such a state by random play.
"""

import itertools
import re

import numpy as np
import numpy.typing as npt

from gdlx.propnet.circuits import propnet
from gdlx.propnet.common import errors
from gdlx.propnet.simulate import machine, random_play

Bools = npt.NDArray[np.bool_]

_COPIES, _MAX_STEPS = 64, 200
_MAX_GATES = 1_000_000  # evaluated in all steps together: about half a second
_MAX_SHOWN = 500  # letters of a state
_MAX_ABSENT = 4  # fluents in `not`


class UnplayableError(errors.UserError, ValueError):
    """Some role has no legal move in a state that is not terminal."""


def explain(propnet: propnet.PropNet, legal: Bools, state: Bools) -> str:
    """Says which role is stuck in a state [R] with legal moves [M], and what to write."""
    rows = machine.split_rows(legal[:, None], [len(role.moves) for role in propnet.roles])
    stuck = next(role.name for role, moves in zip(propnet.roles, rows, strict=True) if not moves.any())
    true = fluents(propnet, state)
    shown = " ".join(true) or "(nothing true)"
    shown = shown if len(shown) <= _MAX_SHOWN else f"{shown[:_MAX_SHOWN]} .."
    advice = advise(propnet, stuck, state)
    return (
        f"{stuck} has no legal move in a state of {propnet.name} that is not terminal: {shown}. "
        f"{advice[0].upper()}{advice[1:]}; `gdlx check --play {propnet.name}` shows the moves that lead there"
    )


def advise(propnet: propnet.PropNet, stuck: str, state: Bools) -> str:
    """Says what to write for a role that is stuck in a state [R]."""
    rule = f"(<= (legal {stuck} noop) {_when(propnet, stuck, state)})"
    return f"let {stuck} wait there, as in {rule}, or make the state terminal"


def _when(propnet: propnet.PropNet, stuck: str, state: Bools) -> str:
    """What holds where the role is stuck and fails where it has a move, in all states of a few matches.

    Mostly it is somebody else's turn, so fluents that name other roles come first; in `not`, those that name this one.
    """
    place = next(n for n, role in enumerate(propnet.roles) if role.name == stuck)
    sizes = [len(role.moves) for role in propnet.roles]
    without, free = [state[:, None]], [state[:, None][:, :0]]
    for step in itertools.islice(random_play.random_steps(propnet, _COPIES, 0), _steps(propnet)):
        has_move = machine.split_rows(step.legal, sizes)[place].any(axis=0)
        without.append(step.state[:, ~has_move & ~step.terminal])
        free.append(step.state[:, has_move & ~step.terminal])
    holds_stuck, holds_free = (_holds(propnet, np.concatenate(part, axis=1)) for part in (without, free))
    others = [role.name for role in propnet.roles if role.name != stuck]
    never_free = np.logical_not(holds_free.any(axis=1))
    if always := _naming(propnet, np.logical_and(holds_stuck.all(axis=1), never_free), others):
        return f"(true {always[0]})"
    if absent := _cover(propnet, np.logical_not(holds_stuck.any(axis=1)), holds_free, stuck):
        return " ".join(f"(not (true {name}))" for name in absent)
    sometimes = _naming(propnet, np.logical_and(holds_stuck[:, 0], never_free), others)  # one of several rules
    return f"(true {sometimes[0]})" if sometimes else ".."


def _cover(propnet: propnet.PropNet, candidates: Bools, holds: Bools, role: str) -> list[str]:
    """A few of the fluents, one of which holds in every state; none if that takes more."""
    chosen: list[str] = []
    left = np.ones(holds.shape[1], np.bool_)
    while left.any() and len(chosen) < _MAX_ABSENT:
        counts = np.where(candidates, holds[:, left].sum(axis=1), 0)
        name = _naming(propnet, np.logical_and(counts == counts.max(), counts > 0), [role])
        if not name:
            break
        chosen.append(name[0])
        left &= ~holds[propnet.fluents.index(name[0])]
    return [] if left.any() else chosen


def _naming(propnet: propnet.PropNet, fits: Bools, roles: list[str]) -> list[str]:
    """Names of fluents, first those that name one of the roles."""
    names = [name for name, fit in zip(propnet.fluents, fits, strict=True) if fit]
    return sorted(names, key=lambda name: not any(re.search(rf"[\s(]{re.escape(role)}[\s)]", name) for role in roles))


def _steps(propnet: propnet.PropNet) -> int:
    return int(np.clip(_MAX_GATES // max(1, propnet.gates), 1, _MAX_STEPS))


def _holds(propnet: propnet.PropNet, states: Bools) -> Bools:
    """[N, B] which fluents are true in states [R, B]."""
    literals = propnet.fluent_literals
    values = np.concatenate([np.zeros((1, states.shape[1]), np.bool_), states])[literals >> 1]
    return np.asarray(values ^ (literals & 1).astype(np.bool_)[:, None])


def fluents(propnet: propnet.PropNet, state: Bools) -> list[str]:
    """The fluents that are true in a state [R]."""
    return [name for name, holds in zip(propnet.fluents, _holds(propnet, state[:, None])[:, 0], strict=True) if holds]


def find(propnet: propnet.PropNet, seed: int = 0) -> str | None:
    """Plays a few random matches; explains the first state in which a role has no legal move, if there is one."""
    steps = _steps(propnet)
    for number, step in enumerate(random_play.random_steps(propnet, _COPIES, seed)):
        if step.unplayable.any():
            column = int(np.argmax(step.unplayable))
            return explain(propnet, step.legal[:, column], step.state[:, column])
        if number + 1 >= steps:
            break
    return None


def require_playable(propnet: propnet.PropNet, seed: int = 0) -> None:
    """Raises if a few random matches reach an unplayable state.

    Raises:
      UnplayableError: a role has no legal move in a state that is not terminal.
    """
    if (problem := find(propnet, seed)) is not None:
        raise UnplayableError(problem)
