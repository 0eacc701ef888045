"""The games of a match as columns, and the incidents in them."""

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple, cast, get_args

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
IncidentKind = Literal["too late", "illegal move", "crash"]


class Incident(NamedTuple):
    """A random legal move replaced the agent's. An incident at the start of a match may affect the whole game."""

    game: int
    step: int  # joint actions before it
    role: str
    agent: str
    kind: IncidentKind
    message: str


class GameRecords(NamedTuple):
    """Games, sorted by number. Axes: G games, P players."""

    number: Ints  # [G]
    agent: Ints  # [G, P] index of the agent that was each player
    payoff: Floats  # [G, P]; 0 where unplayable
    goal: Floats  # [G, P]; 0 where unplayable
    length: Ints  # [G] joint actions
    unplayable: Bools  # [G] some role had no legal move, or there were too many joint actions
    goal_conflict: Bools  # [G] a player ended with several goal values, of which the highest counts, or with none
    incidents: Ints  # [G] number of incidents


def parse_incident_kind(text: str) -> IncidentKind:
    """The kind of an incident from text; ValueError if there is no such kind.

    >>> parse_incident_kind("crash")
    'crash'
    """
    for known in get_args(IncidentKind):
        if text == known:
            return cast(IncidentKind, text)
    raise ValueError(f"{text!r} is not a kind of incident")


def empty_records(players: int) -> GameRecords:
    """Records of no games."""
    floats, ints, bools = np.zeros((0, players)), np.zeros(0, np.int64), np.zeros(0, np.bool_)
    return GameRecords(ints, floats.astype(np.int64), floats, floats, ints, bools, bools, ints)


def merge_records(parts: Iterable[GameRecords]) -> GameRecords:
    """All games, sorted by number, without duplicates."""
    merged = GameRecords(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    return select_records(merged, np.unique(merged.number, return_index=True)[1])


def select_records(games: GameRecords, which: Any) -> GameRecords:
    """Some of the games, by indices or a mask."""
    columns: tuple[Any, ...] = games
    return GameRecords(*(column[which] for column in columns))
