"""Checks by playing: a sheet for each problem, found by exhaustive play and by sampling."""

import re
import time

import pytest

from gdlx.propnet import games
from gdlx.propnet.checks import by_playing, unplayable
from gdlx.propnet.circuits import build, compiler, propnet
from gdlx.propnet.grounding import ground
from gdlx.propnet.syntax import diagnostics
from gdlx.tests.helpers import support

SOUND = """(role r) (role s) (init (step 1)) (succ 1 2) (succ 2 3) (succ 3 4)
    (<= (legal ?p (say ?x)) (role ?p) (bit ?x)) (bit 0) (bit 1)
    (<= (next (step ?n)) (true (step ?m)) (succ ?m ?n)) (<= terminal (true (step 4)))
    (<= (next same) (does r (say ?x)) (does s (say ?x)))
    (<= (next differ) (does r (say ?x)) (does s (say ?y)) (distinct ?x ?y))
    (<= (goal r 100) (true same)) (<= (goal r 0) (true differ)) (<= (goal r 0) (true (step 1)))
    (<= (goal s 0) (true same)) (<= (goal s 100) (true differ))"""

FAULTS = {
    "two-goal-values": SOUND + "(<= (goal s 50) (true differ))",
    "no-goal-value": SOUND.replace("(<= (goal s 0) (true same))", ""),
    "unplayable-state": SOUND.replace("(bit ?x)) (bit 0)", "(bit ?x) (not (blocked ?p))) (bit 0)")
    + "(<= (blocked s) (true (step 3)) (true same))",
    "endless-play": SOUND.replace("(<= terminal (true (step 4)))", "(<= (next (step 1)) (true (step 4)))")
    + "(<= (next over) (true over)) (<= (next over) (true (step 1)) (true (step 4))) (<= terminal (true over))",
    "never-wins": SOUND.replace("(<= (goal s 100) (true differ))", "(<= (goal s 50) (true differ))")
    + "(<= (goal s 100) (true same) (true differ))",
    "hidden-legal-moves": SOUND
    + "(<= (legal r pass) (true same)) (<= (next differ) (does r pass)) (<= (sees s (r ?x)) (does r (say ?x)))",
}


def built(text: str) -> propnet.PropNet:
    """Not simplified: simplification would remove problems that need an unreachable state."""
    sheet = support.read(text)
    return build.build(sheet, ground.ground(sheet))


@pytest.fixture(params=["played out", "sampled"])
def exhaustive(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    if request.param == "sampled":
        monkeypatch.setattr(by_playing, "_play_out", lambda propnet: None)
    return bool(request.param == "played out")


def test_a_sound_game_has_no_faults(exhaustive: bool) -> None:
    findings = by_playing.check_by_playing(built(SOUND))
    assert findings.problems == ()
    assert findings.exhaustive is exhaustive
    assert findings.longest == 3
    assert findings.best_goal == {"r": 100, "s": 100}
    if exhaustive:
        # Whether the last two bits were the same, at three steps; the first state; every history of perfect
        # information leads to one of these.
        assert (findings.states, findings.matches) == (7, 2)


@pytest.mark.parametrize("code", FAULTS)
def test_a_fault_is_found_and_only_that(code: str, exhaustive: bool) -> None:
    findings = by_playing.check_by_playing(built(FAULTS[code]))
    assert {problem.code for problem in findings.problems} == {code}
    for problem in findings.problems:
        severity = diagnostics.Severity.ERROR if code == "unplayable-state" else diagnostics.Severity.WARNING
        assert problem.severity is severity
        assert problem.hint
    assert findings.exhaustive is (exhaustive and code != "endless-play")


WANDERER = """(role r) (init (at 1)) (legal r stay) (legal r leave)
    (<= (next (at ?n)) (true (at ?n)) (does r stay)) (<= (next (at 2)) (true (at 1)) (does r leave))
    (<= (next (at 3)) (true (at 2)) (does r leave)) (<= terminal (true (at 3))) (goal r 100)"""


def test_a_state_repeats_although_random_play_ends() -> None:
    [problem] = by_playing.check_by_playing(built(WANDERER)).problems
    assert problem.code == "repeated-state"
    assert problem.message in (
        "a state repeats: the initial state is reached again after [stay]",
        "a state repeats: the state after [leave] is reached again after another [stay]",
    )
    counter = "(init (step 0)) (<= (next (step ?n)) (true (step ?m)) (succ ?m ?n)) (<= terminal (true (step 20)))"
    counted = WANDERER + counter + "".join(f"(succ {n} {n + 1})" for n in range(20))  # as the hint says
    assert by_playing.check_by_playing(built(counted)).problems == ()


def test_a_role_that_is_stuck_is_told_how_to_wait() -> None:
    stuck = """(role a) (role b) (init (turn a)) (<= (legal ?r go) (true (turn ?r)))
        (<= (next (turn b)) (true (turn a))) (<= (next over) (true (turn b))) (<= terminal (true over))
        (goal a 50) (goal b 50)"""
    problem = by_playing.check_by_playing(built(stuck)).problems[0]
    rule = "(<= (legal b noop) (true (turn a)))"
    assert rule in problem.hint
    with pytest.raises(unplayable.UnplayableError, match=re.escape(rule)):
        unplayable.require_playable(built(stuck))
    waiting = stuck + rule + "(<= (legal a noop) (true (turn b)))"
    assert by_playing.check_by_playing(built(waiting)).problems == ()
    unplayable.require_playable(built(waiting))


STUCK = {  # games whose authors forgot that every role needs a move in every state
    "after a deal": """(role p1) (role p2) (role random) (init deal) (card j) (card q) (card k)
        (<= (legal random (deal ?a ?b)) (true deal) (card ?a) (card ?b) (distinct ?a ?b))
        (<= (next (has p1 ?a)) (does random (deal ?a ?b))) (<= (next (has p2 ?b)) (does random (deal ?a ?b)))
        (<= (sees ?r (card ?c)) (true (has ?r ?c))) (<= (legal p1 bet) (true (has p1 ?c))) (legal p2 noop)
        (<= (next over) (not (true deal))) (<= terminal (true over)) (goal p1 50) (goal p2 50)""",
    "hide and seek": """(role hider) (role seeker) (spot 1) (spot 2) (init start)
        (<= (legal hider (hide ?s)) (spot ?s) (true start)) (<= (legal seeker (look ?s)) (spot ?s) (true hidden))
        (<= (next (at ?s)) (does hider (hide ?s))) (<= (next hidden) (true start)) (<= (next over) (true hidden))
        (<= terminal (true over)) (goal hider 50) (goal seeker 50) (<= (sees seeker x) (true start))""",
    "after two steps": """(role hider) (role seeker) (spot 1) (spot 2) (init start)
        (<= (legal hider (hide ?s)) (spot ?s) (true start)) (<= (legal seeker (look ?s)) (spot ?s) (true hidden))
        (<= (legal hider noop) (not (true start))) (<= (legal seeker noop) (true start)) (<= (next hidden) (true start))
        (<= (next (at ?s)) (does hider (hide ?s))) (<= (next (at ?s)) (true (at ?s)) (not (true (seen ?s))))
        (<= (next (seen ?s)) (does seeker (look ?s))) (<= terminal (true (seen ?s)) (true (at ?s)))
        (<= terminal none_left)
        (<= none_left (not (true start)) (not (true hidden)) (not (true (seen 1))) (not (true (seen 2))))
        (goal hider 50) (goal seeker 50) (<= (sees seeker x) (true start))""",
    "stuck at once": """(role a) (role b) (init (turn a)) (<= (legal ?p go) (true (turn ?p)))
        (<= (next over) (does a go))
        (<= terminal (true over)) (goal a 50) (goal b 50)""",
    "taking turns": """(role a) (role b) (init (heap 4)) (init (turn a)) (less 4 3) (less 3 2) (less 2 1) (less 1 0)
        (<= (legal ?p take) (true (turn ?p))) (<= (next (heap ?m)) (true (heap ?n)) (less ?n ?m))
        (<= (next (turn b)) (true (turn a))) (<= (next (turn a)) (true (turn b))) (<= terminal (true (heap 0)))
        (goal a 50) (goal b 50)""",
}


@pytest.mark.parametrize("text", STUCK.values(), ids=STUCK)
def test_rules_for_waiting_make_games_playable(text: str) -> None:
    for _ in range(4):
        stuck = [one for one in by_playing.check_by_playing(built(text)).problems if one.code == "unplayable-state"]
        if not stuck:
            break
        text += "".join(re.findall(r"as in (.*), or make", one.hint)[0] for one in stuck)
    assert by_playing.check_by_playing(built(text)).problems == ()


DEALT = """(role x) (role y) (role random) (init deal) (<= (legal ?p go) (player ?p)) (player x) (player y)
    (<= (legal random (deal ?c)) (true deal) (card ?c)) (card 1) (card 2) (<= (legal random noop) (not (true deal)))
    (<= (next (hand x ?c)) (does random (deal ?c))) (<= (next dealt) (true deal)) (<= (next over) (true dealt))
    (<= (sees x (card ?c)) (does random (deal ?c))) (<= terminal (true over)) (<= (goal ?p 50) (player ?p))"""


def test_chance_that_may_idle_or_deals_in_the_open() -> None:
    def codes(text: str) -> list[str]:
        return [problem.code for problem in by_playing.check_by_playing(built(text)).problems]

    assert codes(DEALT) == []
    idle = DEALT.replace("(<= (legal random noop) (not (true deal)))", "(legal random noop)")
    assert codes(idle) == ["chance-may-idle"]
    # The hint is the rule that was taken away.
    assert "(<= (legal random noop) (not (true deal)))" in by_playing.check_by_playing(built(idle)).problems[0].hint
    assert codes(idle.replace("noop", "rest")) == ["chance-may-idle"]  # the only move that is always legal
    assert codes(DEALT.replace("(sees x (card ?c))", "(sees ?p (card ?c)) (player ?p)")) == ["chance-is-seen"]
    assert codes(DEALT.replace("(sees x (card ?c))", "(sees ?p (card ?c)) (player ?p)").replace("hand x", "die")) == []
    once = "(<= (sees ?p (card 1)) (does random (deal 1)) (player ?p))"  # not seeing it is seeing the other
    assert codes(DEALT.replace("(<= (sees x (card ?c)) (does random (deal ?c)))", once)) == ["chance-is-seen"]


def _message(text: str) -> str:
    [problem] = by_playing.check_by_playing(built(text)).problems
    return problem.message


def test_an_example_leads_to_the_fault() -> None:
    assert _message(FAULTS["two-goal-values"]) == (
        "s has more than one goal value in a terminal state, first after "
        "[(say 0) (say 0)], [(say 0) (say 0)], [(say 0) (say 1)]"
    )
    assert _message(FAULTS["no-goal-value"]).endswith("[(say 0) (say 0)], [(say 0) (say 0)], [(say 0) (say 0)]")
    assert _message(FAULTS["never-wins"]) == "s never gets 100: the best goal seen is 50"
    assert _message(FAULTS["unplayable-state"]) == (
        "s has no legal move in a state that is not terminal, first after [(say 0) (say 0)], [(say 0) (say 0)]"
    )
    assert "had not ended after 1000 joint actions" in _message(FAULTS["endless-play"])


def test_a_fault_of_the_first_state() -> None:
    stuck = "(role r) (role s) (legal r a) (<= (legal s a) (true x)) (<= (next x) (true x)) (<= terminal (true y))"
    text = stuck + "(<= (next y) (does r a)) (goal r 50) (goal s 50) (init z)"
    assert _message(text) == "s has no legal move in a state that is not terminal, first in the initial state"
    over = "(role r) (legal r a) (init x) (<= (next x) (true x)) (<= terminal (true x)) (<= (goal r 1) (not (true x)))"
    findings = by_playing.check_by_playing(built(over))
    assert (findings.states, findings.matches, findings.longest) == (1, 1, 0)
    assert [problem.code for problem in findings.problems] == ["no-goal-value", "never-wins"]


def test_long_examples_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = "".join(f"(succ {n} {n + 1})" for n in range(1, 60))
    text = f"""(role r) (legal r a) (init (step 1)) {steps} (<= (next (step ?n)) (true (step ?m)) (succ ?m ?n))
        (<= terminal (true (step 60))) (<= (goal r 0) (true (step 1))) (<= (goal r 100) (true (step 2)))"""
    messages = {problem.code: problem.message for problem in by_playing.check_by_playing(built(text)).problems}
    assert messages["no-goal-value"].endswith("first after 59 joint actions, the last of them [a]")


def test_the_random_role_needs_no_goal_and_may_be_blind() -> None:
    text = SOUND + "(role random) (legal random a) (<= (legal random b) (true same))"
    # With a role random the sheet is GDL-II, and without a sees rule nobody sees anything.
    assert by_playing.check_by_playing(built(text)).problems == ()


def test_knowledge_is_of_the_whole_history() -> None:
    """What r perceived in the first step still determines its moves in the third."""
    text = """(role r) (role random) (legal random heads) (legal random tails) (init (step 1))
        (succ 1 2) (succ 2 3) (succ 3 4) (<= (next (step ?n)) (true (step ?m)) (succ ?m ?n))
        (<= (next (coin ?c)) (true (step 1)) (does random ?c)) (<= (next (coin ?c)) (true (coin ?c)))
        (<= (sees r ?c) (true (step 1)) (does random ?c)) (legal r wait)
        (<= (legal r (name ?c)) (true (step 3)) (true (coin ?c)))
        (<= terminal (true (step 4))) (<= (goal r 100) (true (step 4)))"""
    assert by_playing.check_by_playing(built(text)).problems == ()
    untold = text.replace("(<= (sees r ?c) (true (step 1)) (does random ?c))", "(<= (sees r now) (true (step 1)))")
    assert [problem.code for problem in by_playing.check_by_playing(built(untold)).problems] == ["hidden-legal-moves"]


def test_more_joint_moves_than_fit_anywhere_are_sampled() -> None:
    """Five roles with 200 moves each have 320 billion joint actions."""
    moves = "".join(f"(n {number})" for number in range(200))
    roles = "".join(f"(role r{number})" for number in range(5))
    text = f"""{roles} {moves} (<= (legal ?r (pick ?n)) (role ?r) (n ?n)) (<= (next over) (does r0 ?m))
        (<= terminal (true over)) (<= (goal ?r 50) (role ?r))"""
    propnet = compiler.compile_rulesheet(support.read(text))
    assert by_playing._play_out(propnet) is None


def test_two_states_for_ever_take_no_time() -> None:
    text = """(role r) (legal r a) (init on) (<= (next on) (not (true on))) (<= (next never) (true never))
        (<= (next never) (true on) (true off)) (<= (next off) (true on)) (<= terminal (true never)) (goal r 50)"""
    propnet = built(text)
    started = time.perf_counter()
    assert [problem.code for problem in by_playing.check_by_playing(propnet).problems] == ["endless-play"]
    assert time.perf_counter() - started < 30


def test_sampling_follows_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_playing, "_MAX_NODES", 20_000)
    propnet = compiler.compile_rulesheet(games.load_rulesheet("blind_tictactoe"))
    one, again, other = (by_playing._sample(propnet, seed) for seed in (1, 1, 2))
    assert one == again
    assert one.matches != other.matches
