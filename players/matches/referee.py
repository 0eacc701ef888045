"""The referee of one game at a time: asks minds within clocks, and goes on whatever they do.

A mind gets its own moves, percepts and legal moves, and nothing else. Who takes too long, answers with anything but a
legal move or raises an error has a random legal move made for it, which is an incident. Forced moves are made without
asking. Chance, every mind and those random moves have generators of their own, of the seed and the game's number.
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
from gdlx.players.matches import game_log, worker
from gdlx.propnet.syntax import diagnostics

_LONGEST_MESSAGE = 300

T = TypeVar("T")


class GameStep(NamedTuple):
    """One joint move, as nobody of the players sees it. Axes: P players."""

    moves: tuple[int, ...]  # [P]
    chance: int | None  # None without a random role
    percepts: tuple[tuple[int, ...], ...]  # [P] numbers


class GameRecord(NamedTuple):
    """A game with all that happened in it. Axes: P players."""

    events: tuple[GameStep, ...]
    payoff: tuple[float, ...]  # [P]
    goal: tuple[int, ...]  # [P]
    unplayable: bool
    goal_conflict: bool
    incidents: tuple[game_log.Incident, ...]


class Referee:
    """Of the games of one match. Every agent has one thread, which it keeps busy at its own expense."""

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
        self._host = host.HostEnv(arena.env.net, arena.env.payoffs, arena.steps)
        self._workers = [worker.Worker(label) for label in self.labels]

    def close(self) -> None:
        for each in self._workers:
            each.close()

    def play(self, number: int, seats: Sequence[int], told: list[GameStep] | None = None) -> GameRecord:
        """Game `number`, in which player p is agent seats[p]. Joint moves are added to `told` as they are made."""
        events = [] if told is None else told
        source = np.random.SeedSequence([self.seed & (2**64 - 1), number])
        chance, instead, *own = (np.random.default_rng(each) for each in source.spawn(2 + len(seats)))
        table = _GameSession(self, number, instead)
        for player, (seat, random) in enumerate(zip(seats, own, strict=True)):
            table.seat(
                self.agents[seat],
                self._workers[seat],
                self.labels[seat],
                agent.PlayerContext(self.arena, player, random),
            )
        position = self._host.position(self.arena.env.net.initial.tobytes())
        views = [
            history.ActionObservationHistory(self.arena.env, player, legal)
            for player, legal in enumerate(position.legal)
        ]
        while not self._is_over(position, len(events)):
            moves = table.moves(views)
            drawn = int(chance.choice(position.chance)) if position.chance else None
            registers, percepts = self._host.transition(position.registers, moves, drawn or 0)
            position = self._host.position(registers)
            events.append(GameStep(moves, drawn, percepts))
            legal = ((),) * len(seats) if self._is_over(position, len(events)) else position.legal
            seen = itertools.starmap(history.Event, zip(moves, percepts, legal, strict=True))
            views = [view.after(event) for view, event in zip(views, seen, strict=True)]
        return GameRecord(
            events=tuple(events),
            payoff=tuple(goal - self.arena.env.payoffs.offset if position.terminal else 0.0 for goal in position.goals),
            goal=tuple(goal if position.terminal else 0 for goal in position.goals),
            unplayable=not position.terminal,
            goal_conflict=position.goal_conflict,
            incidents=tuple(table.incidents),
        )

    def _is_over(self, position: host.Position, step: int) -> bool:
        return position.terminal or position.unplayable or step >= self.arena.steps


@dataclasses.dataclass
class _TimedPlayer:
    """One agent in one game; it has no mind until it has sat down."""

    who: agent.Agent
    thread: worker.Worker
    label: str
    context: agent.PlayerContext
    player: agent.Player | None = None
    has_forfeited: bool = False  # will not sit down any more in this game

    def start_match(self, seconds: float) -> None:
        def sat() -> None:
            self.player = self.who.start_match(self.context, agent.Clock(seconds))

        try:
            self._ask(sat, seconds)
        except (worker.WorkerBusyError, worker.WorkerCrashError):
            self.has_forfeited = True
            raise

    def choose(self, view: history.ActionObservationHistory, seconds: float) -> int | None:
        """A legal move; None if it is not at the table."""
        if self.has_forfeited:
            return None
        move = self._ask(lambda: self._chosen(view, agent.Clock(seconds)), seconds)
        if type(move) is not int or move not in view.legal:
            raise IllegalMoveError(f"{_shown(move, repr)} is not one of {', '.join(map(str, view.legal))}")
        return move

    def _chosen(self, view: history.ActionObservationHistory, clock: agent.Clock) -> object:
        if self.player is None:
            raise agent.AgentError("it did not sit down")
        move = self.player.choose(view, clock)
        try:  # a whole number of any kind, also one that a device has yet to compute
            return move if isinstance(move, bool) else operator.index(move)
        except TypeError:
            return move

    def _ask(self, question: Callable[[], T], seconds: float) -> T:
        if not agent.is_untimed(self.who):
            return self.thread.call(question, seconds)
        try:
            return question()
        except agent.PlayerQuitError:
            raise
        except Exception as error:
            raise worker.WorkerCrashError from error


def _shown(found: object, how: Callable[[object], str]) -> str:
    """Of whatever an agent made, which may break when it is looked at."""
    try:
        return diagnostics.shorten(how(found), _LONGEST_MESSAGE)
    except Exception:
        return f"something of type {type(found).__name__} that cannot be shown"


class IllegalMoveError(Exception):
    """An answer that is no legal move."""


@dataclasses.dataclass
class _GameSession:
    """Those who play one game, and what goes wrong in it."""

    referee: Referee
    game: int
    fallback_random: np.random.Generator  # of moves that are made for agents
    players: list[_TimedPlayer] = dataclasses.field(default_factory=list)
    incidents: list[game_log.Incident] = dataclasses.field(default_factory=list)

    def seat(self, who: agent.Agent, thread: worker.Worker, label: str, seat: agent.PlayerContext) -> None:
        player = _TimedPlayer(who, thread, label, seat)
        self.players.append(player)
        self._watch(lambda: player.start_match(self.referee.start_seconds), player, 0)

    def moves(self, views: Sequence[history.ActionObservationHistory]) -> tuple[int, ...]:
        """Everybody's next, which are legal."""
        return tuple(self._move(player, view) for player, view in zip(self.players, views, strict=True))

    def _move(self, player: _TimedPlayer, view: history.ActionObservationHistory) -> int:
        if len(view.legal) == 1:
            return view.legal[0]
        move = self._watch(lambda: player.choose(view, self.referee.play_seconds), player, view.step)
        return int(self.fallback_random.choice(view.legal)) if move is None else move

    def _watch(self, ask: Callable[[], T], player: _TimedPlayer, step: int) -> T | None:
        """The answer; None where there is none, and that is put down."""
        kind: game_log.IncidentKind
        try:
            return ask()
        except worker.DeadlineError as error:
            kind, message = "too late", str(error)
        except IllegalMoveError as error:
            kind, message = "illegal move", str(error)
        except worker.WorkerCrashError as error:
            cause = error.__cause__
            kind, message = "crash", f"{type(cause).__name__}: {_shown(cause, str)}".rstrip(": ")
        role = self.referee.arena.env.players[player.context.player]
        short = diagnostics.shorten(message, _LONGEST_MESSAGE)
        self.incidents.append(game_log.Incident(self.game, step, role, player.label, kind, short))
        return None
