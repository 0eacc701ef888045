"""Arguments that make no difference are dropped, and nothing else."""

import hypothesis
import pytest
from hypothesis import strategies as st

from gdlx.propnet.circuits import build, compiler
from gdlx.propnet.common import limits
from gdlx.propnet.datalog import program, safety
from gdlx.propnet.grounding import drop_arguments, ground
from gdlx.propnet.syntax import rulesheet, source, terms
from gdlx.tests.helpers import random_games, support

FACTS = "(bit 0) (bit 1) (n 0) (n 1) (n 2) (e 0 1) (e 1 2) (flag on)\n"


def _rules(text: str) -> tuple[terms.Rule, ...]:
    sheet, problems = rulesheet.parse_rulesheet(source.Source("test.gdl", text))
    assert not problems
    return safety.normalize_rules(sheet.rules)


def _arities(text: str, name: str) -> set[int]:
    return {
        rule.head.relation[1]
        for rule in drop_arguments.drop_unused_arguments(_rules(text))
        if rule.head.name.split()[0] == name
    }


def _assert_same(text: str) -> None:
    expected, result = (
        program.DatalogProgram(rules).evaluate({})
        for rules in (_rules(text), drop_arguments.drop_unused_arguments(_rules(text)))
    )
    for relation in (("goal", 2), ("legal", 2)):
        assert (relation in expected) == (relation in result)
        if relation in expected:
            assert set(result[relation].rows) == set(expected[relation].rows)


P = FACTS + "(<= (p ?x ?y) (bit ?x) (e ?y ?z))\n"


@pytest.mark.parametrize(
    ("text", "arity"),
    [
        (P + "(<= (goal r ?y) (p 1 ?y))", 1),
        (P + "(<= (goal r ?y) (n ?y) (bit ?v) (not (p ?v ?y)))", 1),
        (P + "(<= (p ?x ?y) (bit ?x) (p ?x ?z) (e ?y ?z)) (<= (goal r ?y) (p 0 ?y))", 1),  # passed to itself
        (P + "(<= (q ?x ?y) (bit ?x) (p ?x ?y)) (<= (goal r ?y) (q 0 ?y))", 1),
        (P + "(<= (goal r ?y) (p 2 ?y))", 2),  # not a bit
        (P + "(<= (goal r ?x) (p ?x ?y))", 2),  # uses it
        (P + "(<= (goal r ?x) (n ?x) (p ?x ?y))", 2),  # in another list
        (P + "(<= (p ?x ?y) (bit ?x) (n ?x) (e ?y ?y)) (<= (goal r ?y) (p 1 ?y))", 1),  # in two
        (P + "(<= (p ?x ?y) (bit ?x) (flag ?x) (e ?y ?y)) (<= (goal r ?y) (p 1 ?y))", 2),
        (P + "(p 2 2) (<= (goal r ?y) (p 1 ?y))", 2),
        (P + "(<= (p ?x ?y) (bit ?x) (e ?x ?y)) (<= (goal r ?y) (p 1 ?y))", 2),
        (P + "(<= (p ?x ?y) (bit ?x) (n ?y) (distinct ?x ?y)) (<= (goal r ?y) (p 1 ?y))", 2),
        (P + "(<= (p ?x ?x) (bit ?x)) (<= (goal r ?y) (p 1 ?y))", 2),
        (P + "(<= (p ?x ?y) (bit ?x) (e ?y ?z) (not (q (f ?x)))) (q (f 1)) (<= (goal r ?y) (p 1 ?y))", 2),
    ],
)
def test_only_idle_arguments_go(text: str, arity: int) -> None:
    assert _arities(text, "p") == {arity}
    _assert_same(text)


def test_a_shorter_relation_of_the_same_name_is_another() -> None:
    text = P + "(p 2) (<= (goal r ?y) (p 1 ?y)) (<= (legal r ?y) (p ?y))"
    _assert_same(text)


def test_keywords_keep_their_arguments() -> None:
    text = FACTS + "(<= (goal ?x ?y) (bit ?x) (bit ?y))"
    assert drop_arguments.drop_unused_arguments(_rules(text)) == _rules(text)


def _steps(last: int) -> rulesheet.Rulesheet:
    """Every step calls the next with both values of one more bit."""

    def bits(number: int) -> str:
        return " ".join(f"?b{n}" for n in range(number))

    def listed(number: int) -> str:
        return " ".join(f"(bit ?b{n})" for n in range(number))

    text = "(role r) (bit 0) (bit 1) (init (step 1)) (<= (legal r go) (p1 0)) (legal r stay) (goal r 50)\n"
    text += f"(<= terminal (true (step {last}))) (<= (p{last} {bits(last)}) {listed(last)} (true (step {last})))\n"
    for n in range(1, last):
        text += (
            f"(<= (next (step {n + 1})) (true (step {n})) (does r go))"
            f"(<= (p{n} {bits(n)}) {listed(n)} (true (step {n})))"
            f"(<= (p{n} {bits(n)}) {listed(n)} (not (true (step {n}))) (p{n + 1} {bits(n)} 0) (p{n + 1} {bits(n)} 1))\n"
        )
    return support.read(text)


def test_bits_that_nobody_reads_cost_nothing() -> None:
    assert len(ground.ground(_steps(30), limits.Limits(rules=2_000)).heads) < 2_000
    sheet = _steps(6)
    assert support.RulesAndPropnet(sheet, compiler.compile_rulesheet(sheet)).compare_all(100) == 7


@hypothesis.given(seed=st.integers(0, 10**9))
@hypothesis.settings(max_examples=30)
def test_random_games_keep_their_meaning(seed: int) -> None:
    wide = "\n(<= (wide ?x ?y) (n ?x) (n ?y) (true p0)) (<= (wide ?x ?y) (n ?x) (true (at ?y)))"
    calls = "(<= (goal r 7) (n ?x) (true (at ?x)) (not (wide ?x 1))) (<= (goal r 8) (wide 0 1))"
    sheet = support.read(random_games.generate_sheet(seed) + wide + calls)
    propnet = build.build(sheet, ground.ground(sheet))
    support.RulesAndPropnet(sheet, propnet).compare_random(40)
