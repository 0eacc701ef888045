"""Matches: which agent is which player in which game, and the games, vectorised if all agents allow it.

With swapping, agents rotate through the roles: in game n player p is agent (p + n) mod P, so that in every P games each
agent plays every role once. The course of a game depends on the seed and on its number, not on which other games are
played, or on how many at once.
"""

import contextlib
import dataclasses
import functools
import math
import weakref
from collections.abc import Collection, Generator, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from gdlx.envs import payoffs
from gdlx.players import defaults
from gdlx.players.agents import agent
from gdlx.players.matches import game_log, referee
from gdlx.propnet.common import errors
from gdlx.propnet.common.text import plurals
from gdlx.solvers.mccfr import table_policy

# Games of a batch: few sizes, so that few programs are compiled. Ctrl-C takes effect between two batches.
_LANES = (2**8, 2**11, 2**14)


class MatchError(errors.UserError, ValueError):
    """A match that cannot be played."""


@dataclasses.dataclass(frozen=True)
class MatchSettings:
    """The settings of a match, independent of the game and of the agents.

    >>> MatchSettings(games=10).swap
    True
    """

    games: int = defaults.GAMES  # how many to play
    swap: bool = True  # agents rotate through the roles
    seed: int = 0  # of chance, of agents, and of moves that replace illegal ones
    start_seconds: float = defaults.START_SECONDS  # the start clock, before the first move
    play_seconds: float = defaults.PLAY_SECONDS  # the play clock, of each move

    def __post_init__(self) -> None:
        if self.games < 1:
            raise MatchError(f"a match has at least 1 game, not {self.games}")
        for what, seconds in (("start", self.start_seconds), ("play", self.play_seconds)):
            if not 0 < seconds < math.inf:
                raise MatchError(f"the {what} clock must be a number of seconds above 0, not {seconds}")


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Match:
    """A match to be played: see `play_games`, or `compete` for the result of one.

    Attributes:
      arena: the game.
      agents: one for every player of the game.
      settings: number of games, clocks and seed.
      labels: names of the agents in results.

    >>> from gdlx.players.agents import agent_registry
    >>> from gdlx.players.matches import arenas
    >>> Match(arenas.make_arena("kuhn_poker"), (agent_registry.make_agent("random"),) * 2, MatchSettings(games=10))
    Match(game='kuhn_poker', agents=('random', 'random (2)'), games=10, swap=True, seed=0)
    """

    arena: agent.Arena
    agents: tuple[agent.Agent, ...]
    settings: MatchSettings = MatchSettings()

    def __repr__(self) -> str:
        settings = self.settings
        return (
            f"Match(game={self.arena.game.spec!r}, agents={self.labels}, games={settings.games}, "
            f"swap={settings.swap}, seed={settings.seed})"
        )

    def __post_init__(self) -> None:
        require_players(self.arena, [player.name for player in self.agents])

    @property
    def players(self) -> int:
        """The number of players."""
        return self.arena.env.num_players

    @functools.cached_property
    def labels(self) -> tuple[str, ...]:
        """Names of the agents, with a number where several have the same."""
        return unique_labels([player.name for player in self.agents])

    @property
    def rotations(self) -> int:
        """The number of different assignments of agents to players."""
        return self.players if self.settings.swap else 1

    def seats(self, number: int) -> tuple[int, ...]:
        """The index of the agent of every player in a game."""
        return tuple((player + number % self.rotations) % self.players for player in range(self.players))

    @property
    def is_vectorised(self) -> bool:
        """Whether games are played in parallel on the device."""
        return all(isinstance(player, agent.PolicyAgent) for player in self.agents)


class GameBatch(NamedTuple):
    """Games that were played together, and the incidents in them."""

    games: game_log.GameRecords
    incidents: tuple[game_log.Incident, ...]


def unique_labels(names: list[str]) -> tuple[str, ...]:
    """Names with a number where several are the same.

    >>> unique_labels(["random", "mccfr", "random"])
    ('random', 'mccfr', 'random (2)')
    """
    before = [names[:n].count(name) for n, name in enumerate(names)]
    return tuple(f"{name} ({count + 1})" if count else name for name, count in zip(names, before, strict=True))


def require_players(arena: agent.Arena, names: list[str]) -> None:
    """Raises MatchError unless there is one agent for every player."""
    roles = arena.env.players
    if not roles:
        raise MatchError(f"{arena.game.spec} has no players other than chance, so there is nothing to play")
    if len(names) != len(roles):
        raise MatchError(
            f"{arena.game.spec} has {plurals.count(len(roles), 'player')} ({', '.join(roles)}), and "
            f"{plurals.count(len(names), 'agent')} {'was' if len(names) == 1 else 'were'} named; name one for each"
        )


def play_games(match: Match, done: Collection[int] = ()) -> Generator[GameBatch, None, None]:
    """Plays the games that are not `done`, and yields them in batches. `agent.PlayerQuitError` ends it early."""
    for player in match.agents:
        prepare(player, match.arena)
    batches = _vectorised(match, done) if match.is_vectorised else _one_by_one(match, done)
    with contextlib.closing(batches):
        for batch in batches:
            _require_zero_sum(match.arena, batch.games)
            yield batch


_prepared: weakref.WeakKeyDictionary[agent.Arena, list[agent.Agent]] = weakref.WeakKeyDictionary()


def prepare(player: agent.Agent, arena: agent.Arena) -> None:
    """Prepares an agent for an arena, once, and before any clock runs."""
    prepared = _prepared.setdefault(arena, [])
    if not isinstance(player, agent.PreparableAgent) or any(other is player for other in prepared):
        return
    try:
        player.prepare(arena)
    except errors.UserError:
        raise
    except Exception as error:
        raise agent.AgentError(
            f"{player.name} cannot prepare for {arena.game.spec} ({type(error).__name__}: {error})"
        ) from error
    prepared.append(player)


def _vectorised(match: Match, done: Collection[int]) -> Generator[GameBatch, None, None]:
    arena, rotations = match.arena, match.rotations
    policies = [player.policy(arena) for player in match.agents if isinstance(player, agent.PolicyAgent)]
    per_rotation = -(-match.settings.games // rotations)
    lanes = next((size for size in _LANES if size >= per_rotation), _LANES[-1])
    finished = np.fromiter(done, np.int64, len(done))
    for first in range(0, per_rotation, lanes):
        for rotation in range(rotations):
            number = np.arange(first, first + lanes) * rotations + rotation
            is_needed = (number < match.settings.games) & ~np.isin(number, finished)
            if not is_needed.any():
                continue
            seats = match.seats(rotation)
            key = jax.random.fold_in(jax.random.key(match.settings.seed), rotation)
            outcomes = _play_batch(arena, [policies[seat] for seat in seats], key, lanes, first)
            yield GameBatch(game_log.select_records(_columns(arena, number, seats, outcomes), is_needed), ())


def _play_batch(
    arena: agent.Arena, policies: Sequence[Any], key: jax.Array, matches: int, first: int
) -> table_policy.MatchOutcomes:
    """Packed, 32 games to a word, if all policies are tables; networks need the observations of every game."""
    if all(isinstance(policy, table_policy.TablePolicy) for policy in policies):
        return table_policy.play_matches(
            arena.packed, tuple(policies), key, matches=matches, steps=arena.steps, first=first
        )
    from gdlx.players.agents import network_agent

    return network_agent.play_matches(arena, policies, key, matches=matches, first=first)


def _columns(
    arena: agent.Arena, number: game_log.Ints, seats: tuple[int, ...], outcomes: table_policy.MatchOutcomes
) -> game_log.GameRecords:
    """Records of the games of one rotation, in the order of the device."""
    unplayable = np.asarray(outcomes.unplayable) | ~np.asarray(outcomes.ended)
    payoff = np.asarray(outcomes.payoff, np.float64).T
    return game_log.GameRecords(
        number=number,
        agent=np.tile(np.array(seats), (len(number), 1)),
        payoff=payoff,
        goal=np.where(unplayable[:, None], 0.0, payoff + arena.env.payoffs.offset),
        length=np.asarray(outcomes.length, np.int64),
        unplayable=unplayable,
        goal_conflict=np.asarray(outcomes.goal_conflict),
        incidents=np.zeros(len(number), np.int64),
    )


def _one_by_one(match: Match, done: Collection[int]) -> Generator[GameBatch, None, None]:
    settings = match.settings
    judge = referee.Referee(
        match.arena,
        match.agents,
        labels=match.labels,
        seed=settings.seed,
        start_seconds=settings.start_seconds,
        play_seconds=settings.play_seconds,
    )
    finished = set(done)
    try:
        for number in range(match.settings.games):
            if number not in finished:
                seats = match.seats(number)
                record = judge.play(number, seats)
                yield GameBatch(_referee_record(number, seats, record), record.incidents)
    finally:
        judge.close()


def _referee_record(number: int, seats: tuple[int, ...], record: referee.GameRecord) -> game_log.GameRecords:
    return game_log.GameRecords(
        number=np.array([number]),
        agent=np.array([seats]),
        payoff=np.array([record.payoff]),
        goal=np.array([record.goal], np.float64),
        length=np.array([len(record.events)]),
        unplayable=np.array([record.unplayable]),
        goal_conflict=np.array([record.goal_conflict]),
        incidents=np.array([len(record.incidents)]),
    )


def _require_zero_sum(arena: agent.Arena, played: game_log.GameRecords) -> None:
    """Raises PayoffError if goals that had a constant sum in random play do not have it here."""
    units = arena.env.payoffs
    if units.zero_sum and (played.payoff.sum(axis=1) != 0).any():
        raise payoffs.PayoffError(
            f"the goals of {arena.game.spec} had the sum {2 * units.offset:g} in random play, but not in this match; "
            "play it with `payoff='goal'`"
        )
