"""Games of a match that have been played, as columns, and what went wrong in them."""

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple, cast, get_args

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
IncidentKind = Literal["too late", "illegal move", "crash"]


class Incident(NamedTuple):
    """A random legal move was made instead of the agent's; in the whole game, if it is of the start."""

    game: int
    step: int  # joint moves made before
    role: str
    agent: str
    kind: IncidentKind
    message: str


class GameRecords(NamedTuple):
    """In the order of their numbers. Axes: G games, P players."""

    number: Ints  # [G]
    agent: Ints  # [G, P] which agent each player was
    payoff: Floats  # [G, P]; 0 where unplayable
    goal: Floats  # [G, P]; 0 where unplayable
    length: Ints  # [G] joint moves
    unplayable: Bools  # [G] some role had no legal move, or there were too many joint moves
    goal_conflict: Bools  # [G] ended with several goal values of a player, of which the highest counts, or none
    incidents: Ints  # [G] how many there were


def parse_incident_kind(text: str) -> IncidentKind:
    """
    >>> parse_incident_kind("crash")
    'crash'
    """
    for known in get_args(IncidentKind):
        if text == known:
            return cast(IncidentKind, text)
    raise ValueError(f"{text!r} is no kind of incident")


def empty_records(players: int) -> GameRecords:
    wide = np.zeros((0, players))
    whole, false = np.zeros(0, np.int64), np.zeros(0, np.bool_)
    return GameRecords(whole, wide.astype(np.int64), wide, wide, whole, false, false, whole)


def merge_records(parts: Iterable[GameRecords]) -> GameRecords:
    """In the order of their numbers, each once."""
    together = GameRecords(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    return select_records(together, np.unique(together.number, return_index=True)[1])


def select_records(games: GameRecords, which: Any) -> GameRecords:
    """Some of the games: their places, or a mask."""
    columns: tuple[Any, ...] = games
    return GameRecords(*(column[which] for column in columns))
