"""The action-observation history of one player: all that an agent may know of a match."""

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
    """One joint action as a player observes it: its action, its percepts, and its legal actions afterwards."""

    move: int
    percepts: tuple[int, ...]
    legal: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class ActionObservationHistory:
    """The actions and percepts of one player so far.

    Attributes:
      game: the environment.
      player: the number of the player.
      first: legal actions before the first joint action.
      events: what happened, one event per joint action.

    >>> import gdlx
    >>> view = ActionObservationHistory(gdlx.make("kuhn_poker"), player=0, first=(4,))
    >>> view = view.after(Event(move=4, percepts=(), legal=(4,)))
    >>> view.step, view.legal, view.legal_names
    (1, (4,), ('noop',))
    """

    game: env.Env
    player: int
    first: tuple[int, ...]
    events: tuple[Event, ...] = ()

    @property
    def legal(self) -> tuple[int, ...]:
        """Legal actions now; none once the match is over."""
        return self.events[-1].legal if self.events else self.first

    @property
    def legal_names(self) -> tuple[str, ...]:
        """The names of the legal actions, in the order of `legal`."""
        moves = self.game.propnet.players[self.player].moves
        return tuple(moves[number] for number in self.legal)

    @property
    def percept_names(self) -> tuple[str, ...]:
        """The names of all percepts so far, the latest last."""
        return tuple(name for event in self.events for name in self.event_names(event)[1])

    @property
    def step(self) -> int:
        """Joint actions taken so far."""
        return len(self.events)

    def initial(self) -> "ActionObservationHistory":
        """The history before the first joint action."""
        return dataclasses.replace(self, events=())

    def after(self, event: Event) -> "ActionObservationHistory":
        """The history extended by an event."""
        return dataclasses.replace(self, events=(*self.events, event))

    @functools.cached_property
    def keys(self) -> Keys:
        """[T + 1, 2] keys of the information sets after 0, 1, .., T joint actions, as in `State.info_key`."""
        options, moves, senses = _constants(self.game)
        hashes = []
        for event in self.events:
            hashes.append(_sum(moves, (event.move,)) + _sum(senses, event.percepts) + _sum(options, event.legal))
        return _chained(_extended(np.zeros(2, np.uint32), _sum(options, self.first)), hashes)

    def public_state_keys(self, shared: public.PublicInfo) -> Keys:
        """[T + 1, 2] keys of the public states, as in `PackedState.keys`."""
        hashes = []
        for event in self.events:
            percepts = shared.percepts[self.player][list(event.percepts)].sum(axis=0, dtype=np.uint32)
            hashes.append(percepts + shared.moves[self.player][event.move])
        return _chained(np.zeros(2, np.uint32), hashes)

    def step_texts(self) -> list[str]:
        """Every step as readable text: the player's action, then its percepts."""
        return ["; ".join(filter(None, (move, ", ".join(seen)))) for move, seen in map(self.event_names, self.events)]

    def event_names(self, event: Event) -> tuple[str, list[str]]:
        """Names of the player's action and of its percepts."""
        role = self.game.propnet.players[self.player]
        return role.moves[event.move], [role.percepts[number] for number in event.percepts]


def _constants(game: env.Env) -> tuple[info_key.HashConstants, info_key.HashConstants, info_key.HashConstants]:
    """For legal actions, for the player's actions, and for percepts."""
    return (
        info_key.hash_constants(game.num_actions, 1),
        info_key.hash_constants(game.num_actions, 2),
        info_key.hash_constants(game.num_percepts, 3),
    )


def _sum(table: info_key.HashConstants, numbers: tuple[int, ...]) -> Keys:
    return np.asarray(table[list(numbers)].sum(axis=0, dtype=np.uint32), np.uint32)


def _chained(start: Keys, events: Sequence[Keys]) -> Keys:
    """The key at the start, and after each of the events."""
    keys = [start]
    for event in events:
        keys.append(_extended(keys[-1], event))
    return np.stack(keys)


def _extended(key: Keys, event: Keys) -> Keys:
    with np.errstate(over="ignore"):
        return np.array(info_key.extend_words((key[0], key[1]), (event[0], event[1])), np.uint32)
