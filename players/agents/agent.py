"""What an agent is: it sits down at a game, thinks during a start clock, and chooses moves within a clock.

    Agent.start_match(context, clock) -> Player a new match; the clock is for thinking before the first move
    Mind.choose(sight, clock) -> move        `sight` is all that the player has done and seen (`envs.sight`)

An agent is a description and has no state of a match; a mind is one player in one match. Agents whose choice depends
on nothing but what a player knows also have `policy(arena)`: then thousands of their matches are played in lockstep.
Agents that have something to compile or to read do it in `prepare(arena)`, before any clock runs.
"""

import dataclasses
import pathlib
import time
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from gdlx.envs import env, game_spec
from gdlx.envs.packed import packed_env
from gdlx.envs.views import history
from gdlx.players import defaults
from gdlx.propnet.common import errors
from gdlx.solvers.mccfr import table_policy

if TYPE_CHECKING:
    from gdlx.players.agents import network_agent


class AgentError(errors.UserError, ValueError):
    """An agent that there is not, or that cannot play this game."""

    names_options = False  # settings of agents are written as arguments: mccfr:table=16


class PlayerQuitError(Exception):
    """Somebody at the terminal does not want to go on."""


@dataclasses.dataclass(frozen=True, eq=False)
class Arena:
    """A game to be played. One for all matches: agents share its programs. `steps` is the room for joint moves.

    `start_seconds` is the start clock of the matches, for agents that think once and then play all of them.
    """

    game: game_spec.GameSpec
    env: env.Env
    packed: packed_env.PackedEnv
    steps: int
    start_seconds: float = defaults.START_SECONDS


@dataclasses.dataclass(frozen=True)
class PlayerContext:
    """Where an agent sits; `random` is its own source of random numbers in this match."""

    arena: Arena
    player: int
    random: np.random.Generator


@dataclasses.dataclass(frozen=True)
class Clock:
    """So many seconds, from when it was made."""

    seconds: float
    started: float = dataclasses.field(default_factory=time.monotonic)

    @property
    def remaining(self) -> float:
        return max(0.0, self.started + self.seconds - time.monotonic())


class Player(Protocol):
    """One player in one match."""

    def choose(self, view: history.ActionObservationHistory, clock: Clock) -> int:
        """The number of one of `view.legal`."""


class Agent(Protocol):
    """One for all matches."""

    @property
    def name(self) -> str:
        """What it is called in results, e.g. `mccfr:seconds=1`."""

    def start_match(self, seat: PlayerContext, clock: Clock) -> Player:
        """A mind for a new match. Thinking ends when the clock does."""


@runtime_checkable
class PreparableAgent(Protocol):
    """An agent that is told of a game before any clock runs."""

    def prepare(self, arena: Arena) -> None:
        """Compile and read here. May be called again for the same game."""


def is_untimed(player: Agent) -> bool:
    """Whether no clock runs for it: a person, who is asked in the main thread."""
    return bool(getattr(player, "untimed", False))


@runtime_checkable
class PolicyAgent(Protocol):
    """An agent whose moves depend on what the player knows alone."""

    def policy(self, arena: Arena) -> "table_policy.TablePolicy | network_agent.NetworkPolicy":
        """A table has its policy at every information set that it knows; elsewhere it is uniform."""


def sources(player: Agent) -> list[pathlib.Path]:
    """Files that an agent plays from, which tells it by a method of this name: with others it is another agent."""
    told = getattr(player, "sources", None)
    return list(told()) if told is not None else []


def depends_on_wall_clock(player: Agent) -> bool:
    """Whether what it learns before its first game depends on the time that takes: no two of it are the same."""
    return bool(getattr(player, "depends_on_wall_clock", False))
