"""Negated calls of wide relations become calls of their rules, which have fewer arguments, and no game changes."""

import itertools

import hypothesis
import pytest
from hypothesis import strategies as st

from gdlx.propnet.circuits import build, compiler
from gdlx.propnet.grounding import argument_values, ground, unfold_negated
from gdlx.propnet.syntax import rulesheet, source, terms
from gdlx.tests.helpers import random_games, support

SIZE = 4
NUMBERS = " ".join(f"(n {k})" for k in range(SIZE))
# Whether one is in danger at ?a or ?b, where ?c, ?d, ?e and ?f are ignored by some of the rules.
DANGER = f"""
(role r) {NUMBERS} (few 0) (few 1) (init (at 0)) (init (wall 3)) (init (wall 2))
(<= (legal r (go ?a ?b)) (true (at ?x)) (n ?a) (n ?b) (distinct ?a ?x) (true (wall ?w))
    (not (danger ?x ?a ?b ?w ?a ?b)))
(legal r stay)
(<= (danger ?a ?b ?c ?d ?e ?f) (true (wall ?b)) (true (at ?a)) (distinct ?b ?c) (n ?c) (n ?d) (n ?e) (n ?f))
(<= (danger ?a ?b ?c ?d ?e ?f) (true (wall ?c)) (n ?a) (n ?b) (few ?d) (n ?e) (n ?f))
(<= (danger ?a ?b ?c ?d ?e ?f) (near ?a ?e ?f) (n ?b) (n ?c) (n ?d))
(<= (near ?a ?b ?c) (true (at ?a)) (n ?b) (n ?c) (not (true (wall ?b))) (not (true (wall ?c))) (distinct ?b ?c))
(<= (next (at ?y)) (does r (go ?y ?b)))
(<= (next (wall ?b)) (does r (go ?y ?b)))
(<= (next (at ?x)) (does r stay) (true (at ?x)))
(<= (next (wall ?x)) (true (wall ?x)) (not (does r stay)))
(<= (next (wall 1)) (does r stay))
(<= terminal (true (wall 0)) (true (wall 1)) (true (wall 2)))
(<= (goal r 100) (true (at ?x)) (not (danger ?x 0 1 2 3 3))) (<= (goal r 50) (true (at ?x)) (danger ?x 0 1 2 3 3))
"""


def _unfolded(text: str) -> tuple[terms.Rule, ...]:
    return unfold_negated.unfold(support.read(text).rules, itertools.count())


def _calls(rules: tuple[terms.Rule, ...]) -> set[str]:
    return {str(atom) for rule in rules for atom, positive in terms.atoms_in(rule.body) if not positive}


def test_rules_replace_the_relation_that_they_define() -> None:
    rules = _unfolded(DANGER)
    assert "(option 0 ?x ?a ?b)" in _calls(rules)  # those of two walls and a place
    assert "(option 1 ?b ?w)" in _calls(rules)  # an argument that is one of few
    assert "(near ?x ?a ?b)" in _calls(rules)
    assert not any(call.startswith("(danger") for call in _calls(rules))


def test_fewer_rules_are_ground_and_the_game_stays_the_same() -> None:
    sheet = support.read(DANGER.replace("(true (at ?x)) (danger ?x 0 1 2 3 3)", "(true (at ?x))"))
    direct, unfolded = ground.ground(sheet, rewrite=False), ground.ground(sheet)
    assert 2 * len(unfolded.heads) < len(direct.heads)
    propnet = build.build(sheet, unfolded)
    assert support.RulesAndPropnet(sheet, propnet).compare_all(5000) is not None


@pytest.mark.parametrize(
    "changed",
    [
        DANGER.replace("(n ?d) (n ?e) (n ?f))", "(n ?d) (n ?e) (n ?f) (near ?d ?e ?f))", 1),  # uses all arguments
        DANGER.replace("(not (danger", "(danger").replace("?a ?b)))", "?a ?b))").replace("3 3)))", "3 3))"),
    ],
)
def test_relations_without_idle_arguments_and_positive_calls_stay(changed: str) -> None:
    assert _unfolded(changed) == support.read(changed).rules


def test_a_call_that_implies_less_keeps_the_argument() -> None:
    """Some walls are in no list, so the rules must still ask."""
    text = DANGER + "(<= (next (wall far)) (does r stay))"
    assert "(option 1 ?b ?w)" in _calls(_unfolded(text))
    assert "(option 2 ?x ?a ?b ?w)" in _calls(_unfolded(text)) or "(option 0 ?x ?a ?b ?w)" in _calls(_unfolded(text))
    sheet = support.read(text)
    support.RulesAndPropnet(sheet, compiler.compile_rulesheet(sheet)).compare_random(200)


@hypothesis.given(seed=st.integers(0, 10**9), data=st.data())
@hypothesis.settings(max_examples=25)
def test_random_definitions_agree_with_the_interpreter(seed: int, data: st.DataObject) -> None:
    """Literals and arguments of the wide relation and of its calls at random, in a random game."""
    names = "abcdef"
    choice = st.sampled_from
    literals = [
        "(n ?{0})",
        "(true (at ?{0}))",
        "(e ?{0} ?{1})",
        "(not (e ?{0} ?{1}))",
        "(distinct ?{0} ?{1})",
        "(m ?{0})",
    ]
    definitions = []
    for _ in range(data.draw(st.integers(1, 3))):
        parts = [
            data.draw(choice(literals)).format(data.draw(choice(names)), data.draw(choice(names)))
            for _ in range(data.draw(st.integers(0, 3)))
        ]
        head = [data.draw(choice([f"?{name}", f"?{name}", f"?{name}", "?a", "1"])) for name in names]
        bound = " ".join(f"({data.draw(choice(['n', 'n', 'm']))} ?{name})" for name in names)
        definitions.append(f"(<= (wide {' '.join(head)}) {' '.join(parts)} {bound})")
    args = " ".join(data.draw(choice(["?x", "?y", "?z", "0", "2"])) for _ in names)
    added = f"""
        (n 0) (n 1) (n 2) (m 0) (m 2) (e 0 1) (e 1 1) (e 2 0) {" ".join(definitions)}
        (<= (legal r (go ?x)) (n ?x) (true (at ?y)) (n ?z) (not (wide {args})))
        (<= (next (at ?x)) (does r (go ?x)))
        (<= (sees r (saw ?x)) (n ?x) (n ?y) (m ?z) (not (wide {args})))
        (<= (goal r 7) (wide {args}))"""
    sheet = support.read(random_games.generate_sheet(seed) + added)
    support.RulesAndPropnet(sheet, compiler.compile_rulesheet(sheet)).compare_random(30)


def test_values_of_arguments_follow_rules_and_compounds() -> None:
    values = argument_values.ArgumentValues(
        _parsed("""(n 1) (n 2) (m 2) (m 3) (init (cell 1 a)) (<= (both ?x) (n ?x) (m ?x)) (<= (any ?f) (true ?f))
        (<= (next (cell ?x b)) (both ?x)) (<= (p ?x ?k) (true (cell ?x ?k))) (<= (legal r (mark ?x)) (n ?x))
        (<= (q ?x) (does r (mark ?x))) (<= (next ?f) (true ?f)) (<= (grow (s ?x)) (grow ?x)) (grow z)""")
    )

    def symbols(body: str) -> list[object]:
        [rule] = _parsed(f"(<= (t ?x ?y) {body})")
        return [values.symbols(arg, rule.body) for arg in rule.head.args]

    assert symbols("(both ?x) (n ?y)") == [{"2"}, {"1", "2"}]
    assert symbols("(p ?x ?y)") == [{"1", "2"}, {"a", "b"}]
    assert symbols("(q ?x) (m ?x) (true (cell ?x ?y))") == [{"2"}, {"a", "b"}]
    assert symbols("(any ?x) (grow ?y)") == [None, None]


def _parsed(text: str) -> tuple[terms.Rule, ...]:
    sheet, problems = rulesheet.parse_rulesheet(source.Source("test.gdl", text))
    assert not problems
    return sheet.rules
