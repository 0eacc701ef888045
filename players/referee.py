"""The referee of one game at a time: asks minds within clocks, and goes on whatever they do.

A mind gets its own moves, percepts and legal moves, and nothing else. Who takes too long, answers with anything but a
legal move or raises an error has a random legal move made for it, which is an incident. Forced moves are made without
asking. Chance, every mind and those random moves have generators of their own, of the seed and the game's number.
"""

import dataclasses
import operator
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from gdlx.envs import host, sight
from gdlx.players import agent, ledger, worker
from gdlx.propnet import diagnostics

_LONGEST_MESSAGE = 300

T = TypeVar("T")


class Event(NamedTuple):
    """One joint move, as nobody of the players sees it. Axes: P players."""

    moves: tuple[int, ...]  # [P]
    chance: int | None  # None without a random role
    percepts: tuple[tuple[int, ...], ...]  # [P] numbers


class Told(NamedTuple):
    """A game with all that happened in it. Axes: P players."""

    events: tuple[Event, ...]
    payoff: tuple[float, ...]  # [P]
    goal: tuple[int, ...]  # [P]
    unplayable: bool
    goal_conflict: bool
    incidents: tuple[ledger.Incident, ...]


class Referee:
    """Of the games of one match. Every agent has one thread, which it keeps busy at its own expense."""

    def __init__(
        self,
        arena: agent.Arena,
        agents: Sequence[agent.Agent],
        *,
        labels: Sequence[str] = (),
        seed: int = 0,
        start_seconds: float = agent.START_SECONDS,
        play_seconds: float = agent.PLAY_SECONDS,
    ) -> None:
        self.arena, self.agents, self.labels = arena, agents, labels or [player.name for player in agents]
        self.seed, self.start_seconds, self.play_seconds = seed, start_seconds, play_seconds
        self._host = host.Host(arena.env.net, arena.env.payoffs, arena.steps)
        self._workers = [worker.Worker(label) for label in self.labels]

    def close(self) -> None:
        for each in self._workers:
            each.close()

    def play(self, number: int, seats: Sequence[int], told: list[Event] | None = None) -> Told:
        """Game `number`, in which player p is agent seats[p]. Joint moves are added to `told` as they are made."""
        events = [] if told is None else told
        players = len(seats)
        source = np.random.SeedSequence([self.seed & (2**64 - 1), number])
        chance, instead, *own = (np.random.default_rng(each) for each in source.spawn(2 + players))
        position, incidents = self._host.position(self.arena.env.net.initial.tobytes()), _Incidents(self, number)
        seated = [
            _Player(self.agents[seat], self._workers[seat], agent.Seat(self.arena, player, own[player]))
            for player, seat in enumerate(seats)
        ]
        views = [sight.Sight(self.arena.env, player, legal) for player, legal in enumerate(position.legal)]
        for player, seat in zip(seated, seats, strict=True):
            incidents.watch(player.sit, self.start_seconds, player, seat, 0)
        while not self._is_over(position, len(events)):
            moves = []
            for player, seat, view in zip(seated, seats, views, strict=True):
                move = view.legal[0] if len(view.legal) == 1 else None
                if move is None:
                    move = incidents.watch(player.chooser(view), self.play_seconds, player, seat, view.step)
                moves.append(int(instead.choice(view.legal)) if move is None else move)
            drawn = int(chance.choice(position.chance)) if position.chance else None
            registers, percepts = self._host.moved(position.registers, tuple(moves), drawn or 0)
            position = self._host.position(registers)
            events.append(Event(tuple(moves), drawn, percepts))
            is_over = self._is_over(position, len(events))
            views = [
                view.after(sight.Event(move, seen, () if is_over else legal))
                for view, move, seen, legal in zip(views, moves, percepts, position.legal, strict=True)
            ]
        is_end = position.terminal
        return Told(
            events=tuple(events),
            payoff=tuple(goal - self.arena.env.payoffs.offset if is_end else 0.0 for goal in position.goals),
            goal=tuple(goal if is_end else 0 for goal in position.goals),
            unplayable=not is_end,
            goal_conflict=position.goal_conflict,
            incidents=tuple(incidents.found),
        )

    def _is_over(self, position: host.Position, step: int) -> bool:
        return position.terminal or position.unplayable or step >= self.arena.steps


@dataclasses.dataclass
class _Player:
    """One agent in one game; it has no mind until it has sat down."""

    who: agent.Agent
    thread: worker.Worker
    seat: agent.Seat
    mind: agent.Mind | None = None
    is_out: bool = False  # will not sit down any more in this game

    def sit(self, seconds: float) -> None:
        def sat() -> None:
            self.mind = self.who.sit(self.seat, agent.Clock(seconds))

        try:
            self._ask(sat, seconds)
        except (worker.Busy, worker.Crashed):
            self.is_out = True
            raise

    def chooser(self, view: sight.Sight) -> Callable[[float], int | None]:
        def choose(seconds: float) -> int | None:
            if self.is_out:
                return None
            move = self._ask(lambda: self._chosen(view, agent.Clock(seconds)), seconds)
            if type(move) is not int or move not in view.legal:
                raise Illegal(f"{diagnostics.shorten(repr(move))} is not one of {', '.join(map(str, view.legal))}")
            return move

        return choose

    def _chosen(self, view: sight.Sight, clock: agent.Clock) -> object:
        if self.mind is None:
            raise agent.WrongAgent("it did not sit down")
        move = self.mind.choose(view, clock)
        try:  # a whole number of any kind, also one that a device has yet to compute
            return move if isinstance(move, bool) else operator.index(move)
        except TypeError:
            return move

    def _ask(self, question: Callable[[], T], seconds: float) -> T:
        if not agent.is_unhurried(self.who):
            return self.thread.ask(question, seconds)
        try:
            return question()
        except agent.LeftMatch:
            raise
        except Exception as error:
            raise worker.Crashed from error


class Illegal(Exception):
    """An answer that is no legal move."""


@dataclasses.dataclass
class _Incidents:
    """Of one game."""

    referee: Referee
    game: int
    found: list[ledger.Incident] = dataclasses.field(default_factory=list)

    def watch(self, ask: Callable[[float], T], seconds: float, player: _Player, seat: int, step: int) -> T | None:
        """The answer; None where there is none, and that is put down."""
        kind: ledger.Kind
        try:
            return ask(seconds)
        except worker.TooLate as error:
            kind, message = "too late", str(error)
        except Illegal as error:
            kind, message = "illegal move", str(error)
        except worker.Crashed as error:
            cause = error.__cause__
            kind, message = "crash", f"{type(cause).__name__}: {cause}".rstrip(": ")
        role = self.referee.arena.env.players[player.seat.player]
        short = diagnostics.shorten(message, _LONGEST_MESSAGE)
        self.found.append(ledger.Incident(self.game, step, role, self.referee.labels[seat], kind, short))
        return None
