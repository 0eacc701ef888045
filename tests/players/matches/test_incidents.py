"""Agents that take too long, move illegally or crash: an incident is recorded, and a random legal move is made."""

import dataclasses
import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest

from gdlx.envs.views import history
from gdlx.players.agents import agent
from gdlx.players.matches import clock_worker, contest, game_log, match, referee, scores
from gdlx.tests.helpers import players

KUHN = "kuhn_poker"


def against_first(who: agent.Agent, games: int = 6, play_seconds: float = 30.0) -> scores.MatchResult:
    others = players.FunctionAgent(players.choose_first, "good")
    arena = players.load_arena(KUHN)
    return contest.compete(arena, [who, others], games=games, play_seconds=play_seconds, start_seconds=30.0)


def crash(view: history.ActionObservationHistory, clock: agent.Clock) -> int:
    raise ValueError(f"step {view.step} cannot be")


def leave(view: history.ActionObservationHistory, clock: agent.Clock) -> int:
    sys.exit(3)


class Unshowable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("nobody may know")

    __repr__ = __str__


def hide(view: history.ActionObservationHistory, clock: agent.Clock) -> int:
    raise Unshowable


@pytest.mark.parametrize(
    ("answer", "kind", "message"),
    [
        (lambda view, clock: -1, "illegal move", "-1 is not one of "),
        (lambda view, clock: 99, "illegal move", "99 is not one of "),
        (lambda view, clock: None, "illegal move", "None is not one of "),
        (lambda view, clock: "bet", "illegal move", "'bet' is not one of "),
        (lambda view, clock: float(view.legal[0]), "illegal move", "is not one of "),
        (lambda view, clock: True, "illegal move", "True is not one of "),
        (lambda view, clock: 10**5_000, "illegal move", "something of type int that cannot be shown is not one of "),
        (lambda view, clock: Unshowable(), "illegal move", "something of type Unshowable that cannot be shown"),
        (crash, "crash", "ValueError: step "),
        (hide, "crash", "Unshowable: something of type Unshowable that cannot be shown"),
        (leave, "crash", "SystemExit: 3"),
    ],
)
def test_incidents_are_recorded(answer: Any, kind: str, message: str) -> None:
    bad = players.FunctionAgent(answer, "bad")
    actual = against_first(bad, games=3)
    assert actual.games == 3
    assert actual.incidents
    for incident in actual.incidents:
        assert (incident.agent, incident.kind) == ("bad", kind)
        assert message in incident.message
        assert incident.role == ("player2" if incident.game % 2 else "player1")  # they take turns
    assert len(actual.incidents) == len(bad.views) > 0  # every time it was asked
    assert [score.incidents for score in actual.scores] == [len(actual.incidents), 0]


def test_a_command_ends_with_its_code_though_an_agent_still_computes() -> None:
    script = """
import sys, time
from gdlx import cli
from gdlx.players.matches import clock_worker
busy = clock_worker.Worker("busy")
clock_worker._CLOSE_SECONDS = 0.1
try:
    busy.call(lambda: time.sleep(600), 0.0)
except clock_worker.DeadlineError:
    busy.close()
sys.argv = ["gdlx", "games", "--nothing"]
cli.main()
print("not reached")
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "--nothing" in ran.stderr


def test_late_answers_are_recorded_and_dropped() -> None:
    """Its answers are illegal too, but come after the end of the clock."""

    def slow(view: history.ActionObservationHistory, clock: agent.Clock) -> int:
        time.sleep(clock.seconds + 2 * clock_worker.GRACE)
        return -1

    who = players.FunctionAgent(slow, "slow")
    arena = players.load_arena(KUHN)
    judge = referee.Referee(
        arena, [who, players.FunctionAgent(players.choose_first)], start_seconds=30.0, play_seconds=0.05
    )
    reported = judge.play(0, (0, 1))
    judge.close()
    own = [incident for incident in reported.incidents if incident.agent == "slow"]
    assert own[0] == game_log.Incident(0, 2, "player1", "slow", "too late", "had not answered after 0.05 s")
    assert {incident.kind for incident in own} == {"too late"}


@pytest.mark.parametrize("move", [np.int64, np.array])
def test_whole_numbers_of_any_kind_are_moves(move: Any) -> None:
    assert against_first(players.FunctionAgent(lambda view, clock: move(view.legal[0]))).incidents == ()


def test_fallback_moves_are_random_and_legal() -> None:
    """An agent that never returns a legal move plays uniformly: the first player's actions are equally frequent."""
    judge = referee.Referee(
        players.load_arena(KUHN),
        [players.FunctionAgent(crash, "bad"), players.FunctionAgent(players.choose_first)],
        seed=3,
    )
    names = players.load_arena(KUHN).env.propnet.players[0].moves
    made = [names[judge.play(number, (0, 1)).events[2].moves[0]] for number in range(400)]
    judge.close()
    assert set(made) == {"bet", "check"}
    assert abs(made.count("bet") - 200) < 4 * 10  # four standard deviations


def test_an_agent_that_hangs_is_not_asked_again_until_it_is_done() -> None:
    """Nor waited for: its other moves are replaced at once, and it keeps only its own thread busy."""
    hung = players.HangingAgent("choose")
    threads = threading.active_count()
    arena = players.load_arena(KUHN)
    judge = referee.Referee(
        arena, [hung, players.FunctionAgent(players.choose_first)], start_seconds=30.0, play_seconds=0.05
    )
    reported = [judge.play(number, (0, 1)) for number in range(20)]
    assert threading.active_count() <= threads + 2
    messages = [incident.message for one in reported for incident in one.incidents if incident.agent == "hangs"]
    assert messages[0] == "had not answered after 0.05 s"
    assert len(messages) >= 20
    assert set(messages[1:]) == {"is still busy with an earlier question"}
    hung.release.set()
    while any(each.is_busy for each in judge._workers):
        time.sleep(0.01)
    assert [incident for incident in judge.play(20, (0, 1)).incidents if incident.agent == "hangs"] == []
    judge.close()
    assert threading.active_count() == threads


def test_an_agent_that_starts_late_plays_on() -> None:
    late = players.HangingAgent("sit")

    def lets_go(view: history.ActionObservationHistory, clock: agent.Clock) -> int:
        late.release.set()
        while judge._workers[0].is_busy:
            time.sleep(0.001)
        return view.legal[0]

    who: list[agent.Agent] = [late, players.FunctionAgent(lets_go)]
    judge = referee.Referee(players.load_arena(KUHN), who, start_seconds=0.05, play_seconds=30.0)
    kinds = []
    for number in range(5):
        late.release.clear()
        kinds += [(each.step, each.kind) for each in judge.play(number, (1, 0)).incidents if each.agent == "hangs"]
    judge.close()
    # It is late for the start alone: the other one, who moves first, lets it go.
    assert kinds == [(0, "too late")] * 5


@dataclasses.dataclass(frozen=True)
class NeverSits:
    name: str = "never"

    def start_match(self, context: agent.PlayerContext, clock: agent.Clock) -> agent.Player:
        raise OSError("no chair")


def test_an_agent_that_cannot_start_plays_at_random() -> None:
    actual = against_first(NeverSits(), games=8)
    assert [(each.game, each.step, each.kind) for each in actual.incidents] == [(n, 0, "crash") for n in range(8)]
    assert actual.incidents[0].message == "OSError: no chair"


def test_clocks_are_those_of_the_match() -> None:
    seen = []

    def look(view: history.ActionObservationHistory, clock: agent.Clock) -> int:
        seen.append((clock.seconds, 0 < clock.remaining <= clock.seconds))
        return view.legal[0]

    against_first(players.FunctionAgent(look), play_seconds=12.5)
    assert set(seen) == {(12.5, True)}


@dataclasses.dataclass(frozen=True)
class Prepared:
    """Notes what it is asked, and whether that is in the main thread, where no clock runs."""

    calls: list[tuple[str, bool]] = dataclasses.field(default_factory=list)
    name: str = "prepared"

    def prepare(self, arena: agent.Arena) -> None:
        self._note("prepare")

    def start_match(self, context: agent.PlayerContext, clock: agent.Clock) -> "Prepared":
        self._note("sit")
        return self

    def choose(self, view: history.ActionObservationHistory, clock: agent.Clock) -> int:
        return view.legal[0]

    def _note(self, what: str) -> None:
        self.calls.append((what, threading.current_thread() is threading.main_thread()))


def test_no_clock_runs_while_agents_prepare() -> None:
    who = Prepared()
    assert against_first(who, games=2).incidents == ()
    assert who.calls == [("prepare", True), ("sit", False), ("sit", False)]
    against_first(who, games=1)
    assert who.calls[3:] == [("sit", False)]  # once for an arena


def test_an_agent_that_cannot_prepare_does_not_play() -> None:
    @dataclasses.dataclass(frozen=True)
    class Unprepared(Prepared):
        def prepare(self, arena: agent.Arena) -> None:
            raise KeyError("book")

    with pytest.raises(agent.AgentError, match=r"prepared cannot prepare for kuhn_poker \(KeyError: 'book'\)"):
        against_first(Unprepared())


def test_quitting_ends_the_match_but_keeps_its_games() -> None:
    @dataclasses.dataclass(frozen=True)
    class Leaves(players.FunctionAgent):
        untimed: bool = True

    def bored(view: history.ActionObservationHistory, clock: agent.Clock) -> int:
        if len(who.views) > 5:
            raise agent.PlayerQuitError
        return view.legal[0]

    who = Leaves(bored)
    one = match.Match(
        players.load_arena(KUHN), (who, players.FunctionAgent(players.choose_first)), match.MatchSettings(games=50)
    )
    run = contest.MatchRun(one)
    with pytest.raises(agent.PlayerQuitError):
        list(run.batches())
    finished = run.finish()
    assert 2 <= finished.games <= 6
    assert sorted(run.games.number.tolist()) == list(range(finished.games))
    assert isinstance(run.games, game_log.GameRecords)


def test_a_person_is_asked_in_the_main_thread() -> None:
    """Ctrl-C must reach whoever waits for the terminal."""

    @dataclasses.dataclass(frozen=True)
    class Person(players.FunctionAgent):
        untimed: bool = True

    there: set[bool] = set()

    def look(view: history.ActionObservationHistory, clock: agent.Clock) -> int:
        there.add(threading.current_thread() is threading.main_thread())
        return view.legal[0]

    against_first(Person(look))
    assert there == {True}
    there.clear()
    against_first(players.FunctionAgent(look))
    assert there == {False}
