"""The referee of one game at a time: asks players for moves within clocks, and continues whatever they do.

A player gets its own moves, percepts and legal moves, and nothing else. If it takes too long, returns anything but a
legal move or raises an error, the referee makes a random legal move for it and records an incident. Forced moves are
made without asking. Chance, every player and these random moves have their own generators, seeded by the seed of the
match and the number of the game.
"""

import dataclasses
import itertools
import operator
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from gdlx.envs import host
from gdlx.envs.views import history
from gdlx.players import defaults
from gdlx.players.agents import agent
from gdlx.players.matches import clock_worker, game_log
from gdlx.propnet.common import seeds
from gdlx.propnet.syntax import diagnostics

_LONGEST_MESSAGE = 300

T = TypeVar("T")


class GameStep(NamedTuple):
    """One joint action with everything that is hidden from players. Axes: P players."""

    moves: tuple[int, ...]  # [P]
    chance: int | None  # None without a random role
    percepts: tuple[tuple[int, ...], ...]  # [P] indices of percepts


class GameRecord(NamedTuple):
    """A complete game. Axes: P players."""

    events: tuple[GameStep, ...]
    payoff: tuple[float, ...]  # [P]
    goal: tuple[int, ...]  # [P]
    unplayable: bool
    goal_conflict: bool
    incidents: tuple[game_log.Incident, ...]


class Referee:
    """Plays the games of one match. Every agent has a thread; while it is busy, only that agent misses moves."""

    def __init__(
        self,
        arena: agent.Arena,
        agents: Sequence[agent.Agent],
        *,
        labels: Sequence[str] = (),
        seed: int = 0,
        start_seconds: float = defaults.START_SECONDS,
        play_seconds: float = defaults.PLAY_SECONDS,
    ) -> None:
        self.arena, self.agents, self.labels = arena, agents, labels or [player.name for player in agents]
        self.seed, self.start_seconds, self.play_seconds = seed, start_seconds, play_seconds
        self._host = host.HostEnv(arena.env.propnet, arena.env.payoffs, arena.steps)
        self._workers = [clock_worker.Worker(label) for label in self.labels]

    def close(self) -> None:
        """Stops the threads of all agents."""
        for thread in self._workers:
            thread.close()

    def play(self, number: int, seats: Sequence[int], log: list[GameStep] | None = None) -> GameRecord:
        """Plays game `number`, in which player p is agent seats[p].

        Args:
          number: of the game, which seeds it.
          seats: [P] indices of agents.
          log: a list to which joint actions are appended while the game is played.
        """
        events = [] if log is None else log
        sequence = np.random.SeedSequence([seeds.non_negative(self.seed), number])
        chance, fallback, *generators = (np.random.default_rng(seed) for seed in sequence.spawn(2 + len(seats)))
        session = _GameSession(self, number, fallback)
        for player, (seat, random) in enumerate(zip(seats, generators, strict=True)):
            session.add_player(
                self.agents[seat],
                self._workers[seat],
                self.labels[seat],
                agent.PlayerContext(self.arena, player, random),
            )
        position = self._host.position(self.arena.env.propnet.initial.tobytes())
        views = [
            history.ActionObservationHistory(self.arena.env, player, legal)
            for player, legal in enumerate(position.legal)
        ]
        while not self._is_over(position, len(events)):
            moves = session.moves(views)
            outcome = int(chance.choice(position.chance)) if position.chance else None
            registers, percepts = self._host.transition(position.registers, moves, outcome or 0)
            position = self._host.position(registers)
            events.append(GameStep(moves, outcome, percepts))
            legal = ((),) * len(seats) if self._is_over(position, len(events)) else position.legal
            observed = itertools.starmap(history.Event, zip(moves, percepts, legal, strict=True))
            views = [view.after(event) for view, event in zip(views, observed, strict=True)]
        return GameRecord(
            events=tuple(events),
            payoff=tuple(goal - self.arena.env.payoffs.offset if position.terminal else 0.0 for goal in position.goals),
            goal=tuple(goal if position.terminal else 0 for goal in position.goals),
            unplayable=not position.terminal,
            goal_conflict=position.goal_conflict,
            incidents=tuple(session.incidents),
        )

    def _is_over(self, position: host.Position, step: int) -> bool:
        return position.terminal or position.unplayable or step >= self.arena.steps


@dataclasses.dataclass
class _TimedPlayer:
    """One agent in one game; its player is None until the match has started for it."""

    playing: agent.Agent
    thread: clock_worker.Worker
    label: str
    context: agent.PlayerContext
    player: agent.Player | None = None
    has_forfeited: bool = False  # will not start this game any more

    def start_match(self, seconds: float) -> None:
        def start() -> None:
            self.player = self.playing.start_match(self.context, agent.Clock(seconds))

        try:
            self._ask(start, seconds)
        except (clock_worker.WorkerBusyError, clock_worker.WorkerCrashError):
            self.has_forfeited = True
            raise

    def choose(self, view: history.ActionObservationHistory, seconds: float) -> int | None:
        """A legal move; None if it has forfeited the game."""
        if self.has_forfeited:
            return None
        move = self._ask(lambda: self._choose(view, agent.Clock(seconds)), seconds)
        if type(move) is not int or move not in view.legal:
            raise IllegalMoveError(f"{_shown(move, repr)} is not one of {', '.join(map(str, view.legal))}")
        return move

    def _choose(self, view: history.ActionObservationHistory, clock: agent.Clock) -> object:
        if self.player is None:
            raise agent.AgentError("it did not start the match")
        move = self.player.choose(view, clock)
        try:  # integers of any type, also one that a device has yet to compute
            return move if isinstance(move, bool) else operator.index(move)
        except TypeError:
            return move

    def _ask(self, question: Callable[[], T], seconds: float) -> T:
        if not agent.is_untimed(self.playing):
            return self.thread.call(question, seconds)
        try:
            return question()
        except agent.PlayerQuitError:
            raise
        except Exception as error:
            raise clock_worker.WorkerCrashError from error


def _shown(value: object, to_text: Callable[[object], str]) -> str:
    """The text of an object that an agent created, whose methods may raise errors."""
    try:
        return diagnostics.shorten(to_text(value), _LONGEST_MESSAGE)
    except Exception:
        return f"something of type {type(value).__name__} that cannot be shown"


class IllegalMoveError(Exception):
    """An answer that is not a legal move."""


@dataclasses.dataclass
class _GameSession:
    """The players of one game, and its incidents."""

    referee: Referee
    game: int
    fallback_random: np.random.Generator  # for moves that the referee makes
    players: list[_TimedPlayer] = dataclasses.field(default_factory=list)
    incidents: list[game_log.Incident] = dataclasses.field(default_factory=list)

    def add_player(
        self, playing: agent.Agent, thread: clock_worker.Worker, label: str, context: agent.PlayerContext
    ) -> None:
        player = _TimedPlayer(playing, thread, label, context)
        self.players.append(player)
        self._watch(lambda: player.start_match(self.referee.start_seconds), player, 0)

    def moves(self, views: Sequence[history.ActionObservationHistory]) -> tuple[int, ...]:
        """The next move of every player; all are legal."""
        return tuple(self._move(player, view) for player, view in zip(self.players, views, strict=True))

    def _move(self, player: _TimedPlayer, view: history.ActionObservationHistory) -> int:
        if len(view.legal) == 1:
            return view.legal[0]
        move = self._watch(lambda: player.choose(view, self.referee.play_seconds), player, view.step)
        return int(self.fallback_random.choice(view.legal)) if move is None else move

    def _watch(self, ask: Callable[[], T], player: _TimedPlayer, step: int) -> T | None:
        """The answer; None if there is none, which is recorded as an incident."""
        kind: game_log.IncidentKind
        try:
            return ask()
        except clock_worker.DeadlineError as error:
            kind, message = "too late", str(error)
        except IllegalMoveError as error:
            kind, message = "illegal move", str(error)
        except clock_worker.WorkerCrashError as error:
            cause = error.__cause__
            kind, message = "crash", f"{type(cause).__name__}: {_shown(cause, str)}".rstrip(": ")
        role = self.referee.arena.env.players[player.context.player]
        short = diagnostics.shorten(message, _LONGEST_MESSAGE)
        self.incidents.append(game_log.Incident(self.game, step, role, player.label, kind, short))
        return None
