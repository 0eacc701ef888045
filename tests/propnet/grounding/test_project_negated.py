"""Negated literals with variables of their own are grounded through helper relations that say the same."""

import hypothesis
import pytest
from hypothesis import strategies as st

from gdlx.propnet.circuits import compiler
from gdlx.propnet.datalog import program, safety
from gdlx.propnet.grounding import project_negated
from gdlx.propnet.syntax import rulesheet, source, terms
from gdlx.tests.helpers import random_games, support

FACTS = "(n 0) (n 1) (n 2) (e 0 1) (e 1 1) (e 2 0) (f (g 1 1)) (f (g 0 2))\n"


def _rules(text: str) -> tuple[terms.Rule, ...]:
    sheet, problems = rulesheet.parse_rulesheet(source.Source("test.gdl", text))
    assert not problems
    return safety.normalize_rules(sheet.rules)


def _helpers(text: str) -> list[str]:
    return [str(rule) for rule in project_negated.project(_rules(text)) if rule.head.name.startswith("some ")]


@pytest.mark.parametrize(
    ("rules", "helpers", "winners"),
    [
        ("(<= (goal r ?x) (n ?x) (not (e ?y ?x)))", 1, {"2"}),
        ("(<= (goal r ?x) (n ?x) (not (e ?x ?y)) (not (e ?z ?x)))", 2, set()),
        ("(<= (goal r ?x) (n ?x) (not (e ?y ?y)))", 1, set()),
        ("(<= (goal r ?x) (n ?x) (not (f (g ?x ?x))))", 0, {"0", "2"}),
        ("(<= (goal r ?x) (n ?x) (not (f (g ?x ?y))))", 1, {"2"}),
        ("(<= (goal r ?x) (n ?x) (not (f (h ?x ?y))))", 1, {"0", "1", "2"}),
        ("(<= (goal r ?x) (n ?x) (not (f ?any)))", 1, set()),
        ("(<= (goal r ?x) (n ?x) (or (e ?x 0) (not (e ?y ?x))))", 1, {"2"}),
    ],
)
def test_helpers_mean_that_there_is_none(rules: str, helpers: int, winners: set[str]) -> None:
    text = FACTS + rules
    assert len(_helpers(text)) == helpers
    for actual in (_rules(text), project_negated.project(_rules(text))):
        tables = program.DatalogProgram(actual).evaluate({})
        rows = tables["goal", 2].rows if ("goal", 2) in tables else ()
        assert {row[1] for row in rows} == winners


def test_literals_that_differ_in_names_share_a_helper() -> None:
    same = "(<= (goal r ?x) (n ?x) (not (e ?x ?y))) (<= (legal r ?a) (n ?a) (not (e ?a ?b)))"
    assert len(_helpers(FACTS + same)) == 1
    other = "(<= (goal r ?x) (n ?x) (not (e ?x ?y))) (<= (legal r ?a) (n ?a) (not (e ?b ?a)))"
    assert len(_helpers(FACTS + other)) == 2


@hypothesis.given(seed=st.integers(0, 10**9))
@hypothesis.settings(max_examples=30)
def test_random_games_agree_with_the_interpreter(seed: int) -> None:
    added = """
        (<= (lonely ?x) (n ?x) (not (e ?x ?y)))
        (<= (legal r (go ?x)) (n ?x) (not (true (at ?y))))
        (<= (next (at ?x)) (lonely ?x) (not (does ?who (go ?x))))
        (<= (next p0) (not (does r (go ?any))) (not (true (link ?z ?z))))
        (<= (sees r (saw ?x)) (n ?x) (not (next (at ?y))))
        (<= (goal r 7) (not (true (link 0 ?z))) (not (legal r (go ?m))))"""
    sheet = support.read(random_games.generate_sheet(seed) + added)
    support.RulesAndPropnet(sheet, compiler.compile_rulesheet(sheet)).compare_random(40)
