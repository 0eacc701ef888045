"""Matches: which agent is which player in which game, and the games, in lockstep where the agents allow it.

With swapping, agents take turns at the roles: in game n player p is agent (p + n) mod P, so that after every P games
each of them was everybody once. What happens in a game depends on the seed and on its number, not on which others are
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
from gdlx.solvers.mccfr import table_policy

_LANES = (2**8, 2**11, 2**14)  # games at once: few sizes, so few programs; Ctrl-C is heard between two batches


class MatchError(errors.UserError, ValueError):
    """A match that cannot be played."""


@dataclasses.dataclass(frozen=True)
class MatchSettings:
    """How a match is played, whatever the game and whoever the agents are."""

    games: int = defaults.GAMES
    swap: bool = True  # agents take turns at the roles
    seed: int = 0
    start_seconds: float = defaults.START_SECONDS
    play_seconds: float = defaults.PLAY_SECONDS

    def __post_init__(self) -> None:
        if self.games < 1:
            raise MatchError(f"a match has at least 1 game, not {self.games}")
        for what, seconds in (("start", self.start_seconds), ("play", self.play_seconds)):
            if not 0 < seconds < math.inf:
                raise MatchError(f"the {what} clock must be a number of seconds above 0, not {seconds}")


@dataclasses.dataclass(frozen=True, eq=False)
class Match:
    arena: agent.Arena
    agents: tuple[agent.Agent, ...]
    settings: MatchSettings = MatchSettings()

    def __post_init__(self) -> None:
        require_players(self.arena, [player.name for player in self.agents])

    @property
    def players(self) -> int:
        return self.arena.env.num_players

    @functools.cached_property
    def labels(self) -> tuple[str, ...]:
        """Names of the agents; those of the same name are told apart by a number."""
        return unique_labels([player.name for player in self.agents])

    @property
    def rotations(self) -> int:
        return self.players if self.settings.swap else 1

    def seats(self, number: int) -> tuple[int, ...]:
        """The agent of every player in a game."""
        return tuple((player + number % self.rotations) % self.players for player in range(self.players))

    @property
    def is_vectorised(self) -> bool:
        return all(isinstance(player, agent.PolicyAgent) for player in self.agents)


class GameBatch(NamedTuple):
    """Games that were played together, and what went wrong in them."""

    games: game_log.GameRecords
    incidents: tuple[game_log.Incident, ...]


def unique_labels(names: list[str]) -> tuple[str, ...]:
    """
    >>> unique_labels(["random", "mccfr", "random"])
    ('random', 'mccfr', 'random (2)')
    """
    before = [names[:n].count(name) for n, name in enumerate(names)]
    return tuple(f"{name} ({count + 1})" if count else name for name, count in zip(names, before, strict=True))


def require_players(arena: agent.Arena, names: list[str]) -> None:
    """One agent for every player."""
    roles = arena.env.players
    if not roles:
        raise MatchError(f"{arena.game.spec} has no players but chance, so there is nothing to play")
    if len(names) != len(roles):
        raise MatchError(
            f"{arena.game.spec} has {_counted(len(roles), 'player')} ({', '.join(roles)}), and "
            f"{_counted(len(names), 'agent')} {'was' if len(names) == 1 else 'were'} named; name one for each"
        )


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def play_games(match: Match, done: Collection[int] = ()) -> Generator[GameBatch, None, None]:
    """Play the games that are not done, a few at a time. `agent.LeftMatch` ends it early."""
    for player in match.agents:
        prepare(player, match.arena)
    batches = _in_lockstep(match, done) if match.is_vectorised else _one_by_one(match, done)
    with contextlib.closing(batches):
        for batch in batches:
            _require_zero_sum(match.arena, batch.games)
            yield batch


_prepared: weakref.WeakKeyDictionary[agent.Arena, list[agent.Agent]] = weakref.WeakKeyDictionary()


def prepare(player: agent.Agent, arena: agent.Arena) -> None:
    """Before any clock runs, and once for an arena."""
    known = _prepared.setdefault(arena, [])
    if not isinstance(player, agent.PreparableAgent) or any(other is player for other in known):
        return
    try:
        player.prepare(arena)
    except errors.UserError:
        raise
    except Exception as error:
        raise agent.AgentError(
            f"{player.name} cannot prepare for {arena.game.spec} ({type(error).__name__}: {error})"
        ) from error
    known.append(player)


def _in_lockstep(match: Match, done: Collection[int]) -> Generator[GameBatch, None, None]:
    arena, rotations = match.arena, match.rotations
    policies = [player.policy(arena) for player in match.agents if isinstance(player, agent.PolicyAgent)]
    most = -(-match.settings.games // rotations)  # games of one rotation
    lanes = next((size for size in _LANES if size >= most), _LANES[-1])
    finished = np.fromiter(done, np.int64, len(done))
    for first in range(0, most, lanes):
        for rotation in range(rotations):
            number = np.arange(first, first + lanes) * rotations + rotation
            wanted = (number < match.settings.games) & ~np.isin(number, finished)
            if not wanted.any():
                continue
            seats = match.seats(rotation)
            key = jax.random.fold_in(jax.random.key(match.settings.seed), rotation)
            found = _play_batch(arena, [policies[seat] for seat in seats], key, lanes, first)
            yield GameBatch(game_log.select_records(_columns(arena, number, seats, found), wanted), ())


def _play_batch(
    arena: agent.Arena, policies: Sequence[Any], key: jax.Array, matches: int, first: int
) -> table_policy.MatchOutcomes:
    """By words of 32 games where all policies are tables; networks need what their players see, game by game."""
    if all(isinstance(policy, table_policy.TablePolicy) for policy in policies):
        return table_policy.play_matches(
            arena.packed, tuple(policies), key, matches=matches, steps=arena.steps, first=first
        )
    from gdlx.players.agents import network_agent

    return network_agent.play_matches(arena, policies, key, matches=matches, first=first)


def _columns(
    arena: agent.Arena, number: game_log.Ints, seats: tuple[int, ...], found: table_policy.MatchOutcomes
) -> game_log.GameRecords:
    """Games of one rotation, as they come from the device."""
    unplayable = np.asarray(found.unplayable) | ~np.asarray(found.ended)
    payoff = np.asarray(found.payoff, np.float64).T
    return game_log.GameRecords(
        number=number,
        agent=np.tile(np.array(seats), (len(number), 1)),
        payoff=payoff,
        goal=np.where(unplayable[:, None], 0.0, payoff + arena.env.payoffs.offset),
        length=np.asarray(found.length, np.int64),
        unplayable=unplayable,
        goal_conflict=np.asarray(found.goal_conflict),
        incidents=np.zeros(len(number), np.int64),
    )


def _one_by_one(match: Match, done: Collection[int]) -> Generator[GameBatch, None, None]:
    terms = match.settings
    judge = referee.Referee(
        match.arena,
        match.agents,
        labels=match.labels,
        seed=terms.seed,
        start_seconds=terms.start_seconds,
        play_seconds=terms.play_seconds,
    )
    finished = set(done)
    try:
        for number in range(match.settings.games):
            if number not in finished:
                seats = match.seats(number)
                told = judge.play(number, seats)
                yield GameBatch(_referee_record(number, seats, told), told.incidents)
    finally:
        judge.close()


def _referee_record(number: int, seats: tuple[int, ...], told: referee.GameRecord) -> game_log.GameRecords:
    return game_log.GameRecords(
        number=np.array([number]),
        agent=np.array([seats]),
        payoff=np.array([told.payoff]),
        goal=np.array([told.goal], np.float64),
        length=np.array([len(told.events)]),
        unplayable=np.array([told.unplayable]),
        goal_conflict=np.array([told.goal_conflict]),
        incidents=np.array([len(told.incidents)]),
    )


def _require_zero_sum(arena: agent.Arena, played: game_log.GameRecords) -> None:
    """Goals that were only seen to have a constant sum may turn out not to have it."""
    units = arena.env.payoffs
    if units.zero_sum and (played.payoff.sum(axis=1) != 0).any():
        raise payoffs.PayoffError(
            f"the goals of {arena.game.spec} had the sum {2 * units.offset:g} in random play, but not in this match; "
            "play it with `payoff='goal'`"
        )
