"""A rule that explodes because of numbers that facts allow is reported with the numbers that matches reach."""

import pytest

from gdlx.propnet import games
from gdlx.propnet.common import limits
from gdlx.propnet.syntax import diagnostics


def _game(highest: int) -> str:
    return f"""
        (role r) (init (score 0)) (init (pot 0)) (init (step 0)) (num {highest})
        {" ".join(f"(succ {n} {n + 1})" for n in range(highest))}
        (<= (num ?x) (succ ?x ?y))
        (<= (leq ?x ?x) (num ?x)) (<= (leq ?x ?z) (succ ?x ?y) (leq ?y ?z))
        (legal r up) (legal r stay)
        (<= (next (step ?t)) (true (step ?s)) (succ ?s ?t))
        (<= (next (score ?t)) (true (score ?s)) (succ ?s ?t))
        (<= (next (pot ?s)) (true (pot ?s)) (does r stay))
        (<= (next (pot ?t)) (true (pot ?s)) (does r up) (succ ?s ?t))
        (<= (legal r (say ?x ?a ?b)) (true (score ?a)) (true (pot ?b)) (leq ?a ?x) (leq ?b ?x))
        (<= terminal (true (step 7))) (goal r 0)"""


def test_the_facts_to_cut_are_named_with_what_matches_reach() -> None:
    with pytest.raises(diagnostics.GdlError) as caught:
        games.compile_game(rules=_game(40), within=limits.Limits(rules=5_000))
    [problem] = caught.value.diagnostics
    assert problem.hint is not None
    assert "?x, ?a and ?b may be any number up to 40, because of the facts of `num` and `succ`" in problem.hint
    assert "but random matches reach 7 at most" in problem.hint


def test_cutting_them_helps() -> None:
    games.compile_game(rules=_game(8), within=limits.Limits(rules=5_000))


def test_rules_without_numbers_keep_their_hint() -> None:
    names = " ".join(f"(n c{n})" for n in range(30))
    rules = f"(role r) {names} (<= (legal r (m ?x ?y ?z)) (n ?x) (n ?y) (n ?z)) terminal (goal r 0)"
    with pytest.raises(diagnostics.GdlError) as caught:
        games.compile_game(rules=rules, within=limits.Limits(rules=5_000))
    [problem] = caught.value.diagnostics
    assert problem.hint is not None
    assert problem.hint.startswith("split the rule")
