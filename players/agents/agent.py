"""The interface of agents: an agent starts matches, and its player in a match chooses moves within a clock.

    Agent.start_match(context, clock) -> Player   the clock limits thinking before the first move
    Player.choose(view, clock) -> move         `view` is the player's action-observation history (`envs.views.history`)

An agent is a description without state of a match; a player is one role in one match. Agents whose moves depend only on
the player's information state also have `policy(arena)`, so that thousands of their matches are played in parallel on
the device. Agents that compile or read something do it in `prepare(arena)`, before any clock runs.
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
    """An unknown agent, a wrong option of one, or an agent that cannot play this game."""

    names_options = False  # options of agents are written as arguments: mccfr:table=16


class PlayerQuitError(Exception):
    """The person at the terminal quits the match."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Arena:
    """A game made ready for matches between agents: its environment, step limit and clock.

    All matches use one arena, so that agents share its compiled programs.

    Attributes:
      game: the game by name, with its payoffs.
      env: the environment.
      packed: the same game, 32 matches to a word.
      steps: joint actions after which a match is stopped.
      start_seconds: the start clock of the matches, for agents that think once and then play all of them.

    >>> from gdlx.players.matches import arenas
    >>> arenas.make_arena("kuhn_poker", max_steps=10)
    Arena(game='kuhn_poker', players=('player1', 'player2'), steps=10, start_seconds=5)
    """

    game: game_spec.GameSpec
    env: env.Env
    packed: packed_env.PackedEnv
    steps: int
    start_seconds: float = defaults.START_SECONDS

    def __repr__(self) -> str:
        return (
            f"Arena(game={self.game.spec!r}, players={self.env.players}, steps={self.steps}, "
            f"start_seconds={self.start_seconds:g})"
        )


@dataclasses.dataclass(frozen=True)
class PlayerContext:
    """The arguments of a match for an agent.

    Attributes:
      arena: the game.
      player: the index of the role that the agent plays.
      random: the agent's random numbers in this match; use no others, so that matches can be repeated.

    >>> from gdlx.players.matches import arenas
    >>> context = PlayerContext(arenas.make_arena("kuhn_poker"), player=1, random=np.random.default_rng(0))
    >>> context.arena.env.propnet.players[context.player].name
    'player2'
    """

    arena: Arena
    player: int
    random: np.random.Generator


@dataclasses.dataclass(frozen=True)
class Clock:
    """A number of seconds, counted from when the clock was created.

    >>> 9 < Clock(10.0).remaining <= 10
    True
    """

    seconds: float
    started: float = dataclasses.field(default_factory=time.monotonic)

    @property
    def remaining(self) -> float:
        """Seconds left, at least 0."""
        return max(0.0, self.started + self.seconds - time.monotonic())


class Player(Protocol):
    """One role in one match.

    >>> from gdlx.players.agents import agent_registry
    >>> from gdlx.players.matches import arenas
    >>> arena = arenas.make_arena("kuhn_poker")
    >>> context = PlayerContext(arena, player=0, random=np.random.default_rng(0))
    >>> player = agent_registry.make_agent("random").start_match(context, Clock(1.0))
    >>> view = history.ActionObservationHistory(arena.env, player=0, first=(1, 3))
    >>> player.choose(view, Clock(1.0)) in view.legal
    True
    """

    def choose(self, view: history.ActionObservationHistory, clock: Clock) -> int:
        """Returns the index of a move: one of `view.legal`. Only called where there are several."""


class Agent(Protocol):
    """Plays any number of matches, each with a new `Player`.

    An agent may also have `prepare` (see `PreparableAgent`), `policy` (see `PolicyAgent`), `sources`, `untimed` and
    `depends_on_wall_clock` (see the functions of these names).

    >>> from gdlx.players.matches import contest
    >>> class FirstMove:
    ...     name = "first"
    ...
    ...     def start_match(self, context, clock):
    ...         return self
    ...
    ...     def choose(self, view, clock):
    ...         return view.legal[0]
    >>> contest.compete("kuhn_poker", [FirstMove(), "random"], games=4).scores[0].agent
    'first'
    """

    @property
    def name(self) -> str:
        """The name of the agent in results, e.g. `mccfr:seconds=1`."""

    def start_match(self, context: PlayerContext, clock: Clock) -> Player:
        """Returns a player for a new match. It may think here until the clock has run out."""


@runtime_checkable
class PreparableAgent(Protocol):
    """An agent that prepares for a game before any clock runs."""

    def prepare(self, arena: Arena) -> None:
        """Compiles programs and reads files. May be called again for the same game."""


def is_untimed(player: Agent) -> bool:
    """Whether no clock runs for an agent (its `untimed`): a person, who is asked in the main thread."""
    return bool(getattr(player, "untimed", False))


@runtime_checkable
class PolicyAgent(Protocol):
    """An agent whose moves depend only on the player's information state.

    >>> from gdlx.players.agents import agent_registry
    >>> from gdlx.players.matches import arenas
    >>> player = agent_registry.make_agent("random")
    >>> isinstance(player, PolicyAgent), type(player.policy(arenas.make_arena("kuhn_poker"))).__name__
    (True, 'TablePolicy')
    """

    def policy(self, arena: Arena) -> "table_policy.TablePolicy | network_agent.NetworkPolicy":
        """Returns a table or a network. A table is uniform at information sets that are not in it."""


def sources(player: Agent) -> list[pathlib.Path]:
    """The files that an agent plays from (its `sources()`). If they change, it is a different agent."""
    method = getattr(player, "sources", None)
    return list(method()) if method is not None else []


def depends_on_wall_clock(player: Agent) -> bool:
    """Whether what an agent learns before its first game depends on time, so that no two runs of it are alike."""
    return bool(getattr(player, "depends_on_wall_clock", False))
