"""States that are not terminal, but in which some role has no legal move: the game cannot go on.

`explain` says what to write, for every command alike; `find` looks for such a state by random play.
"""

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


class UnplayableError(errors.UserError, ValueError):
    """Some role has no legal move in a state that is not terminal."""


def explain(propnet: propnet.PropNet, legal: Bools, state: Bools) -> str:
    """Says which role is stuck in a state [R] with legal moves [M], and what to write."""
    rows = machine.split_rows(legal[:, None], [len(role.moves) for role in propnet.roles])
    stuck = next(role.name for role, moves in zip(propnet.roles, rows, strict=True) if not moves.any())
    true = fluents(propnet, state)
    shown = " ".join(true) or "(nothing true)"
    shown = shown if len(shown) <= _MAX_SHOWN else f"{shown[:_MAX_SHOWN]} .."
    advice = advise(propnet, stuck, true)
    return (
        f"{stuck} has no legal move in a state of {propnet.name} that is not terminal: {shown}. "
        f"{advice[0].upper()}{advice[1:]}; `gdlx check --play {propnet.name}` shows the moves that lead there"
    )


def advise(propnet: propnet.PropNet, stuck: str, true: list[str]) -> str:
    """Says what to write for a role that is stuck in a state in which these fluents are true."""
    others = [role.name for role in propnet.roles if role.name != stuck]
    # Mostly it is somebody else's turn.
    turn = next((name for name in true if any(re.search(rf"[\s(]{re.escape(o)}[\s)]", name) for o in others)), None)
    when = f"(true {turn or true[0]})" if turn or len(true) == 1 else ".."
    return f"let {stuck} wait there, as in (<= (legal {stuck} noop) {when}), or make the state terminal"


def fluents(propnet: propnet.PropNet, state: Bools) -> list[str]:
    """The fluents that are true in a state [R]."""
    literals = propnet.fluent_literals
    values = np.concatenate([[False], state])[literals >> 1] ^ (literals & 1).astype(np.bool_)
    return [name for name, holds in zip(propnet.fluents, values, strict=True) if holds]


def find(propnet: propnet.PropNet, seed: int = 0) -> str | None:
    """Plays a few random matches; explains the first state in which a role has no legal move, if there is one."""
    steps = int(np.clip(_MAX_GATES // max(1, propnet.gates), 1, _MAX_STEPS))
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
