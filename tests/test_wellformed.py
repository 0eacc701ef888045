"""What `check --play` finds, on sheets that each have one fault."""

import pytest

from gdlx.propnet import compiler, wellformed
from gdlx.tests import support

FRAME = "(role a) (role b) (init (step 0)) (<= (next (step 1)) (true (step 0))) (<= terminal (true (step 1)))"
MOVES = "(legal a go) (legal a stay) (legal b noop)"
GOALS = "(<= (goal a 100) (true won)) (<= (goal a 0) (not (true won))) (goal b 50) (<= (next won) (does a go))"

FAULTS = {
    "two-goal-values": FRAME + MOVES + GOALS + "(<= (goal a 50) (true won))",
    "no-goal-value": FRAME + MOVES + "(<= (next won) (does a go)) (<= (goal a 100) (true won)) (goal b 50)",
    "unplayable-state": FRAME.replace("(true (step 1))", "(true (step 2))")
    + "(<= (next (step 2)) (true (step 1)))"
    + MOVES.replace("(legal b noop)", "(<= (legal b noop) (true (step 0)))")
    + GOALS,
    "never-wins": FRAME
    + MOVES
    + GOALS
    + "(<= (goal b 100) (true (step 0)))"
    + "(<= (goal b 25) (true never) (true (step 1)))",
    "hidden-legal-moves": (
        "(role a) (role random) (legal random heads) (legal random tails) (init (step 0))"
        "(<= (next (step 1)) (true (step 0))) (<= (next (step 2)) (true (step 1))) (<= (next up) (does random heads))"
        "(<= (legal a wait) (true (step 0))) (<= (legal a x) (true (step 1)) (true up))"
        "(<= (legal a y) (true (step 1)) (not (true up))) (<= terminal (true (step 2)))"
        "(<= (goal a 100) (true (step 2))) (<= (next seen) (does a x)) (<= (sees a nothing) (true never))"
    ),
}


def found(text: str) -> wellformed.Findings:
    return wellformed.examine(compiler.compile_sheet(support.read(text)))


def test_a_good_game_has_no_faults() -> None:
    findings = found(FRAME + MOVES + GOALS)
    assert findings.exhaustive
    assert findings.problems == ()
    assert (findings.states, findings.matches, findings.longest) == (3, 2, 1)
    assert findings.best_goal == {"a": 100, "b": 50}


@pytest.mark.parametrize("code", [code for code in FAULTS if code != "never-wins"])
@pytest.mark.parametrize("exhaustive", [True, False])
def test_a_fault_is_found(code: str, exhaustive: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not exhaustive:
        monkeypatch.setattr(wellformed, "_play_out", lambda net: None)
        monkeypatch.setattr(wellformed, "_MAX_NODES", 5_000)
    findings = found(FAULTS[code])
    assert findings.exhaustive == exhaustive
    assert {problem.code for problem in findings.problems} == {code}


def test_a_goal_that_no_match_reaches_is_told() -> None:
    findings = found(FAULTS["never-wins"])
    assert [problem.code for problem in findings.problems] == ["never-wins"]
    assert "b never gets 100: the best goal seen is 50" in findings.problems[0].message


def test_an_example_names_the_moves_that_lead_there() -> None:
    (problem,) = found(FAULTS["two-goal-values"]).problems
    assert "first after [go noop]" in problem.message


def test_a_game_without_an_end_is_told_and_does_not_hang() -> None:
    findings = found("(role a) (legal a go) (init on) (next on) (<= terminal (true off)) (goal a 100)")
    assert not findings.exhaustive
    assert "endless-play" in {problem.code for problem in findings.problems}
