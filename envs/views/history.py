"""What one player has done and seen so far: all that an agent may know of a match."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gdlx.envs import env
from gdlx.envs.views import info_key, public

Keys = npt.NDArray[np.uint32]


class Event(NamedTuple):
    """One joint move as a player sees it: numbers of its own move, of its percepts, and of the moves it has next."""

    move: int
    percepts: tuple[int, ...]
    legal: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class ActionObservationHistory:
    """`first` are the numbers of the moves that are legal before the first joint move."""

    game: env.Env
    player: int
    first: tuple[int, ...]
    events: tuple[Event, ...] = ()

    @property
    def legal(self) -> tuple[int, ...]:
        """Moves it has now; none once the game has ended."""
        return self.events[-1].legal if self.events else self.first

    @property
    def step(self) -> int:
        """Joint moves made."""
        return len(self.events)

    def initial(self) -> "ActionObservationHistory":
        """When nothing had happened yet."""
        return dataclasses.replace(self, events=())

    def after(self, event: Event) -> "ActionObservationHistory":
        return dataclasses.replace(self, events=(*self.events, event))

    @functools.cached_property
    def keys(self) -> Keys:
        """[T + 1, 2] keys of what the player knew after 0, 1, .., T joint moves, as `Env.info_key` has them."""
        options, moves, senses = _constants(self.game)
        heard = []
        for event in self.events:
            heard.append(_sum(moves, (event.move,)) + _sum(senses, event.percepts) + _sum(options, event.legal))
        return _chained(_extended(np.zeros(2, np.uint32), _sum(options, self.first)), heard)

    def public_state_keys(self, shared: public.PublicInfo) -> Keys:
        """[T + 1, 2] keys of what everybody knew, as `walk.Walk` has them."""
        heard = []
        for event in self.events:
            told = shared.percepts[self.player][list(event.percepts)].sum(axis=0, dtype=np.uint32)
            heard.append(told + shared.moves[self.player][event.move])
        return _chained(np.zeros(2, np.uint32), heard)

    def step_texts(self) -> list[str]:
        """What happened, for people: in every step the own move, then percepts."""
        return ["; ".join(filter(None, (move, ", ".join(seen)))) for move, seen in map(self.event_names, self.events)]

    def event_names(self, event: Event) -> tuple[str, list[str]]:
        """Of the own move and of the percepts."""
        role = self.game.net.players[self.player]
        return role.moves[event.move], [role.percepts[number] for number in event.percepts]


def _constants(game: env.Env) -> tuple[info_key.HashConstants, info_key.HashConstants, info_key.HashConstants]:
    """Of legal moves, of own moves, and of percepts."""
    return (
        info_key.hash_constants(game.num_actions, 1),
        info_key.hash_constants(game.num_actions, 2),
        info_key.hash_constants(game.num_percepts, 3),
    )


def _sum(table: info_key.HashConstants, numbers: tuple[int, ...]) -> Keys:
    return np.asarray(table[list(numbers)].sum(axis=0, dtype=np.uint32), np.uint32)


def _chained(start: Keys, heard: Sequence[Keys]) -> Keys:
    """The key at the start, and after each of the events."""
    found = [start]
    for event in heard:
        found.append(_extended(found[-1], event))
    return np.stack(found)


def _extended(key: Keys, event: Keys) -> Keys:
    with np.errstate(over="ignore"):
        return np.array(info_key.extend_words((key[0], key[1]), (event[0], event[1])), np.uint32)
