"""Rules that differ in part are merged, and derive the same facts."""

import itertools
from unittest import mock

import hypothesis
from hypothesis import strategies as st

from gdlx.propnet.datalog import program, safety
from gdlx.propnet.grounding import share_bodies
from gdlx.propnet.syntax import rulesheet, source, terms

FACTS = " ".join(
    f"({name} {x} {y})" for name, step in (("a", 1), ("b", 2), ("c", 3)) for x in range(5) for y in (x * step % 5,)
)


def _rules(text: str) -> tuple[terms.Rule, ...]:
    sheet, problems = rulesheet.parse_rulesheet(source.Source("test.gdl", text))
    assert not problems
    return safety.normalize_rules(sheet.rules)


def _merged(text: str, least_variables: int = 1) -> tuple[terms.Rule, ...]:
    with mock.patch.object(share_bodies, "_LEAST_VARIABLES", least_variables):
        return share_bodies.merge_shared_bodies(_rules(text), itertools.count())


def _assert_same(text: str, relation: terms.Relation) -> None:
    result = program.DatalogProgram(_merged(text)).evaluate({})
    assert set(result[relation].rows) == set(program.DatalogProgram(_rules(text)).evaluate({})[relation].rows)


def test_the_rest_is_joined_once() -> None:
    text = FACTS + "(<= (p ?x ?z) (c ?y ?z) (or (a ?x ?y) (b ?x ?y)))"
    merged = [rule for rule in _merged(text) if rule.head.name == "p"]
    assert [len(rule.body) for rule in merged] == [2]
    assert any(" " in literal.name for literal in merged[0].body if isinstance(literal, terms.Atom))
    _assert_same(text, ("p", 2))


def test_a_part_over_fewer_variables_joins_one_over_more() -> None:
    wide = "(<= (p ?x ?y ?z) (a ?x ?y) (c ?x ?z)) (<= (p ?x ?y ?z) (b ?x ?x) (a ?y ?y) (c ?x ?z))"
    [rule] = [rule for rule in _merged(FACTS + wide) if rule.head.name == "p"]
    assert len(rule.body) == 2
    _assert_same(FACTS + wide, ("p", 3))


def test_equal_parts_of_two_relations_are_one() -> None:
    text = FACTS + "".join(f"(<= ({p} ?x ?z) ({c} ?y ?z) (or (a ?x ?y) (b ?x ?y)))" for p, c in ("pc", "qa"))
    new_names = {rule.head.name for rule in _merged(text) if " " in rule.head.name}
    assert len(new_names) == 1
    _assert_same(text, ("p", 2))
    _assert_same(text, ("q", 2))


def test_what_shares_nothing_stays() -> None:
    text = FACTS + "(<= (p ?x) (a ?x ?y) (b ?y ?x)) (<= (p ?x) (b ?x ?y) (c ?y ?z)) (<= (q ?x) (a ?x ?y) (b ?y ?x))"
    assert set(_merged(text)) == set(_rules(text))


def test_narrow_rules_are_left_to_simplification() -> None:
    text = FACTS + "(<= (p ?x ?z) (c ?y ?z) (or (a ?x ?y) (b ?x ?y)))"
    assert _merged(text, 4) == _rules(text)


@hypothesis.given(
    bodies=st.lists(
        st.lists(st.tuples(st.sampled_from("abc"), *2 * [st.sampled_from("xyz")]), min_size=1, max_size=4), max_size=6
    ),
    negated=st.sampled_from(["", "(not (a ?x ?z))", "(distinct ?x ?z)"]),
)
def test_merged_rules_conclude_the_same(bodies: list[list[tuple[str, str, str]]], negated: str) -> None:
    text = FACTS
    for body in bodies:
        literals = " ".join(f"({name} ?{left} ?{right})" for name, left, right in body)
        text += f"(<= (p ?x ?z) {literals} (c ?x ?v) (c ?z ?v) {negated})"
    if bodies:
        _assert_same(text, ("p", 2))
        assert not [rule for rule in _merged(text) if list(safety.unsafe_variables(rule))]
