"""Splitting or unfolding rules does not change what they derive."""

import time

import hypothesis
import pytest
from hypothesis import strategies as st

from gdlx.propnet.datalog import program, safety
from gdlx.propnet.grounding import inline_static, split_joins
from gdlx.propnet.syntax import rulesheet, source, terms

VARIABLES = ("?a", "?b", "?c", "?d", "?e")


def _rules(text: str) -> tuple[terms.Rule, ...]:
    sheet, problems = rulesheet.parse_rulesheet(source.Source("test.gdl", text))
    assert not problems
    return safety.normalize_rules(sheet.rules)


def _conclusions(rules: tuple[terms.Rule, ...], relation: terms.Relation) -> set[object]:
    return set(program.DatalogProgram(rules).evaluate({})[relation].rows)


def _names(rule: terms.Rule) -> set[str]:
    return {v.name for term in terms.rule_terms(rule) for v in terms.variables_in([term])}


arguments = st.one_of(st.sampled_from(VARIABLES), st.sampled_from(["1", "2", "(f ?a)", "(f ?b)"]))


@st.composite
def rules(draw: st.DrawFn) -> str:
    """A safe rule with joins, negation and distinct, over facts that make some of it true."""
    pairs = draw(st.lists(st.tuples(arguments, arguments), min_size=1, max_size=6))
    body = [f"(e {left} {right})" for left, right in pairs]
    bound = [name for name in VARIABLES if any(name in literal for literal in body)] or ["1"]
    known = st.sampled_from([*bound, "2", "(f 1)"])
    body += [f"(not (e {x} {y}))" for x, y in draw(st.lists(st.tuples(known, known), max_size=3))]
    body += [f"(distinct {x} {y})" for x, y in draw(st.lists(st.tuples(known, known), max_size=2))]
    head = " ".join(draw(st.lists(known, max_size=2)))
    constants = st.sampled_from(["1", "2", "3", "(f 1)", "(f 2)"])
    facts = draw(st.sets(st.tuples(constants, constants), min_size=1, max_size=12))
    shown = " ".join(draw(st.permutations(body)))
    return " ".join(f"(e {x} {y})" for x, y in sorted(facts)) + f"\n(<= (p head {head}) {shown})"


@hypothesis.given(text=rules())
def test_split_rules_conclude_the_same(text: str) -> None:
    rules_before = _rules(text)
    relation = rules_before[-1].head.relation
    parts = split_joins.split_rules(rules_before)
    if any(rule.head.relation == relation for rule in rules_before):
        expected = program.DatalogProgram(rules_before).evaluate({})
        result = program.DatalogProgram(parts).evaluate({})
        assert set(result[relation].rows) == set(expected[relation].rows)


@hypothesis.given(text=rules())
def test_parts_are_safe_small_and_complete(text: str) -> None:
    rules_before = _rules(text)
    parts = split_joins.split_rules(rules_before)
    assert not [rule for rule in parts if list(safety.unsafe_variables(rule))]
    assert max(len(_names(rule)) for rule in parts) <= len(_names(rules_before[-1]))
    literals = [literal for rule in parts for literal in rule.body]
    for literal in rules_before[-1].body:  # a negative literal has all its variables in one part, and is there once
        uses = literals.count(literal)
        assert uses == 1 if not isinstance(literal, terms.Atom) else uses >= 1


def test_a_chain_becomes_joins_of_two() -> None:
    *_, last = parts = split_joins.split_rules(_rules("(e 1 2) (<= (p ?a ?e) (e ?a ?b) (e ?b ?c) (e ?c ?d) (e ?d ?e))"))
    assert max(len(_names(rule)) for rule in parts) == 3
    assert len(last.body) == 2


def test_what_shares_nothing_with_the_head_becomes_a_condition() -> None:
    [part, rules_before] = split_joins.split_rules(_rules("(<= (p ?x ?z) (a ?x ?y) (b ?y ?z) (c ?u))"))
    assert [str(literal) for literal in part.body] == ["(c ?u)"]
    assert part.head.args == ()
    assert [str(literal) for literal in rules_before.body] == ["(a ?x ?y)", "(b ?y ?z)", part.head.name]


def test_a_variable_of_negative_literals_gets_a_domain() -> None:
    """?b is eliminated with (not (e ?b ?d)), so that part needs to know where ?d ranges."""
    text = "(e 1 2) (e 2 3) (e 3 1) (n 1) (n 3) (<= (p ?a ?d ?f) (e ?a ?b) (not (e ?b ?d)) (e ?c ?d) (e ?c ?f) (n ?f))"
    rules_before = _rules(text)
    parts = split_joins.split_rules(rules_before)
    assert any(rule.head.name.startswith(split_joins.DOMAIN) for rule in parts)
    assert not [rule for rule in parts if list(safety.unsafe_variables(rule))]
    assert _conclusions(parts, ("p", 3)) == _conclusions(rules_before, ("p", 3)) != set()


def test_one_literal_over_several_variables_is_one_domain() -> None:
    """?a is eliminated with (not (w ?a ?b ?c ?d)); (v ?b ?c ?d) says where the three others range together."""
    text = (
        "(v 1 2 3) (v 2 3 1) (w 1 1 2 3) (n 1) (n 2)"
        "(<= (p ?b ?c ?d ?f) (n ?a) (not (w ?a ?b ?c ?d)) (v ?b ?c ?d) (v ?c ?d ?f))"
    )
    parts = split_joins.split_rules(_rules(text))
    domains = [rule for rule in parts if rule.head.name.startswith(split_joins.DOMAIN)]
    assert [len(rule.head.args) for rule in domains] == [3]
    assert _conclusions(parts, ("p", 4)) == _conclusions(_rules(text), ("p", 4)) != set()


@pytest.mark.parametrize(
    "text",
    [
        "(<= (p ?x) (e ?x ?y))",
        "(<= (p ?x ?y) (e ?x ?y) (e ?y ?x))",
        "(<= p (e 1 2) (e 2 1))",
        "(<= (p ?x) (e ?x ?y) (e ?y ?z) (not (distinct ?z ?x)))",
        "(p 1)",
    ],
)
def test_rules_that_gain_nothing_stay_whole(text: str) -> None:
    sheet, _ = rulesheet.parse_rulesheet(source.Source("test.gdl", text))
    assert split_joins.split_rules(sheet.rules) == sheet.rules


def test_auxiliary_names_cannot_be_those_of_a_sheet() -> None:
    parts = split_joins.split_rules(_rules("(e 1 2) (<= (p ?a) (e ?a ?b) (e ?b ?c) (e ?c ?d))"))
    new_names = {rule.head.name for rule in parts} - {"p", "e"}
    assert new_names
    assert all(" " in name for name in new_names)


@pytest.mark.parametrize("shape", ["chain", "star", "grid", "clique"])
def test_long_rules_are_split_quickly(shape: str) -> None:
    """Nearly as long as the parser allows: a thousand literals."""
    edges = {
        "chain": [(n, n + 1) for n in range(1000)],
        "star": [(0, n) for n in range(1, 1000)],
        "grid": [(n, m) for n in range(480) for m in (n + 1, n + 22)],
        "clique": [(n, m) for n in range(44) for m in range(n)],
    }[shape]
    body = " ".join(f"(e ?x{a} ?x{b})" for a, b in edges)
    rules_before = _rules(f"(<= p {body})")
    started = time.perf_counter()
    split_joins.split_rules(rules_before)
    assert time.perf_counter() - started < 10


# ----- unfolding

SET = "(<= (set ?a ?b ?c ?d) (has ?a ?p) (has ?b ?p) (has ?c ?p) (has ?d ?p) (not (has ?d 3)))\n"
FACTS = " ".join(f"(has {n} {m})" for n in range(6) for m in (n % 2, n % 3 + 2, 9)) + "\n"
CALLER = "(<= (p ?a ?d) (set ?a ?b ?c ?d) (set ?b ?a ?d 5) (has ?c 2))\n"


def _unfolded(text: str) -> tuple[terms.Rule, ...]:
    rules_before = _rules(text)
    return inline_static.unfold(rules_before, frozenset(rule.head.relation for rule in rules_before))


def test_calls_of_a_wide_relation_are_replaced_by_its_definition() -> None:
    result = _unfolded(FACTS + SET + CALLER)
    assert not [rule for rule in result if rule.head.name == "set"]
    assert len(result[-1].body) == 11
    assert _conclusions(result, ("p", 2)) == _conclusions(_rules(FACTS + SET + CALLER), ("p", 2)) != set()
    assert not [rule for rule in split_joins.split_rules(result) if list(safety.unsafe_variables(rule))]


@pytest.mark.parametrize(
    "text",
    [
        SET.replace("set ?a", "set").replace("?a ?p", "?d ?p") + "(<= (p ?b) (set ?b ?b ?b))",  # narrow
        SET + "(set 7 7 7 7)" + CALLER,  # two rules
        SET + "(<= (p ?a) (has ?a 1) (not (set ?a ?a ?a ?a)))",  # called negated
        SET.replace("(not (has ?d 3))", "(set ?d ?c ?b ?a)") + CALLER,  # recursive
        SET.replace("(not (has ?d 3))", "(distinct ?d 3)") + CALLER,
        SET.replace("set ?a ?b", "set ?a ?a").replace("(has ?b ?p)", "") + CALLER,  # a variable twice
        SET.replace("set ?a", "set 1") + CALLER,
    ],
)
def test_other_relations_stay(text: str) -> None:
    assert _unfolded(FACTS + text) == _rules(FACTS + text)


DIFFERENT = "".join(
    f"(<= (other ?a ?b ?c ?d) (has ?a 9) (has ?b 9) (has ?c 9) (has ?d 9) (distinct {pair}))"
    for pair in ("?a ?c", "?b ?d")
)


def test_squares_that_differ_are_told_by_their_coordinates() -> None:
    text = FACTS + DIFFERENT + "(<= (p ?a ?b) (has ?a ?x) (has ?b ?x) (other ?a ?b ?x ?y) (has ?y 9))"
    result = _unfolded(text)
    assert not [rule for rule in result if rule.head.name == "other"]
    assert len([rule for rule in result if rule.head.name == "p"]) == 2
    assert _conclusions(result, ("p", 2)) == _conclusions(_rules(text), ("p", 2)) != set()


@pytest.mark.parametrize(
    "text",
    [
        DIFFERENT + "(<= (p ?a) (has ?a 9) (not (other ?a ?a ?a 1)))",
        DIFFERENT + "(other 7 7 7 7) (<= (p ?a) (other ?a ?a ?a 1))",  # a fact among the rules
        DIFFERENT + f"(<= (p ?a) {4 * '(other ?a ?b ?c ?d)'} (has ?a 9))".replace(") (o", ")(o"),  # sixteen rules
        DIFFERENT.replace("(has ?a 9)", "(has ?a ?b)")
        + "(<= (p ?a) (other ?a ?a ?a 1))",  # ties its arguments together
    ],
)
def test_other_relations_of_several_rules_stay(text: str) -> None:
    assert _unfolded(FACTS + text) == _rules(FACTS + text)


def test_relations_that_define_each_other_keep_their_meaning() -> None:
    text = FACTS + (
        "(<= (even ?a ?b ?c ?d) (odd ?b ?c ?d ?e) (has ?a ?p) (has ?e ?p))"
        "(<= (odd ?a ?b ?c ?d) (even ?b ?c ?d ?e) (has ?a ?p) (has ?e ?p))"
        "(<= (odd ?a ?b ?c ?d) (start ?a ?b ?c ?d)) (start 1 2 3 4)"
        "(<= (p ?a ?b) (even ?a ?b ?c ?d))"
    )
    assert _conclusions(_unfolded(text), ("p", 2)) == _conclusions(_rules(text), ("p", 2)) != set()


def test_relations_that_call_each_other_twice_do_not_double_for_ever() -> None:
    steps = "".join(f"(<= (a{n} ?x ?y ?z ?w) (a{n + 1} ?x ?y ?z ?u) (a{n + 1} ?u ?y ?z ?w))" for n in range(60))
    text = steps + "(a60 1 1 1 1) (a60 1 2 1 1) (<= (p ?x) (a0 ?x ?y ?z ?w))"
    result = _unfolded(text)
    assert max(len(rule.body) for rule in result) <= 100
    assert _conclusions(result, ("p", 1)) == {("1",)}


def test_many_relations_are_unfolded_quickly() -> None:
    text = "".join(
        f"(<= (a{n} ?x ?y ?z ?w) (e ?x ?y) (e ?z ?u) (e ?u ?w)) (<= (p) (a{n} 1 2 1 2))" for n in range(3000)
    )
    rules_before = _rules(text.replace("(p)", "p"))
    started = time.perf_counter()
    inline_static.unfold(rules_before, frozenset(rule.head.relation for rule in rules_before))
    assert time.perf_counter() - started < 10
