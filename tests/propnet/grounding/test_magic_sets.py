"""Guarded rules derive every atom that is used, and merging or guarding rules does not change the game."""

from unittest import mock

import hypothesis
import pytest
from hypothesis import strategies as st

from gdlx.propnet.circuits import build
from gdlx.propnet.datalog import stratify
from gdlx.propnet.grounding import ground, magic_sets, split_joins
from gdlx.propnet.syntax import rulesheet, source, terms
from gdlx.tests.helpers import random_games, support

SIZE = 9
NUMBERS = " ".join(f"(n {k})" for k in range(SIZE))

# What is hidden from ?a behind ?b while ?c and ?d are ignored: used only where both are the same neighbour.
HIDDEN = f"""
(role r) {NUMBERS} (init (at 0)) (init (wall 3))
{" ".join(f"(succ {k} {k + 1})" for k in range(SIZE - 1))}
(<= (legal r (go ?y)) (true (at ?x)) (succ ?x ?y) (not (hidden ?x ?y ?y ?y)))
(<= (legal r (back ?x)) (true (at ?y)) (succ ?x ?y) (succ ?w ?x) (not (hidden ?y ?x ?w ?x)))
(legal r stay)
(<= (hidden ?a ?b ?c ?d) (true (wall ?b)) (true (at ?a)) (distinct ?b ?c) (n ?c) (n ?d))
(<= (hidden ?a ?b ?c ?d) (true (wall ?a)) (true (at ?b)) (n ?c) (n ?d) (distinct ?d ?c))
(<= (next (at ?y)) (does r (go ?y)))
(<= (next (at ?y)) (does r (back ?y)))
(<= (next (at ?x)) (does r stay) (true (at ?x)))
(<= (next (wall ?x)) (true (wall ?x)) (not (does r stay)))
(<= (next (wall ?y)) (true (wall ?x)) (does r stay) (succ ?x ?y))
(<= terminal (true (at {SIZE - 1})))
(<= (goal r 100) (true (at ?x)) (hidden ?x ?x ?x 0)) (<= (goal r 50) (true (at ?x)) (not (hidden ?x ?x ?x 0)))
"""

# A parameter that is passed through recursion, and bound in one of its steps.
CLEAR = f"""
(role r) {NUMBERS} (init (at 0)) (init (block 2)) (init (block 5))
{" ".join(f"(succ {k} {k + 1})" for k in range(SIZE - 1))}
(<= (clear ?a ?b ?skip ?twice) (succ ?a ?b) (n ?skip) (n ?twice))
(<= (clear ?a ?b ?skip ?twice) (succ ?a ?skip) (clear ?skip ?b ?skip ?twice))
(<= (clear ?a ?b ?skip ?twice) (succ ?a ?c) (not (true (block ?c))) (clear ?c ?b ?skip ?twice))
(<= (legal r (jump ?x ?y)) (true (at ?x)) (true (block ?s)) (clear ?x ?y ?s ?s))
(legal r stay)
(<= (next (at ?y)) (does r (jump ?x ?y)))
(<= (next (at ?y)) (does r stay) (true (at ?x)) (succ ?x ?y))
(<= (next (block ?x)) (true (block ?x)) (not (does r stay)))
(<= (next (block ?y)) (does r stay) (true (block ?x)) (succ ?x ?y))
(<= terminal (true (at {SIZE - 1}))) (<= terminal (not (true (block 8))) (not (true (block 5))) (true (block 7)))
(goal r 50)
"""


def _rules(text: str) -> tuple[tuple[terms.Rule, ...], frozenset[terms.Relation]]:
    stages = stratify.split_into_stages(stratify.needed_rules(support.read(text)))
    rules = tuple(dict.fromkeys((*stages.static, *stages.state, *stages.move)))
    return rules, frozenset(rule.head.relation for rule in stages.static)


def _guarded(text: str) -> tuple[terms.Rule, ...]:
    return magic_sets.apply_magic_sets(*_rules(text))


def _demands(rules: tuple[terms.Rule, ...], name: str) -> set[int]:
    """Returns the indices of the arguments that calls of a relation bind."""
    return {rule.head.relation[1] for rule in rules if rule.head.name.endswith(f"calls of 4 {name}")}


def _compare(sheet: rulesheet.Rulesheet, states: int = 200) -> None:
    propnet = build.build(sheet, ground.ground(sheet))
    support.RulesAndPropnet(sheet, propnet).compare_random(states)


@pytest.mark.parametrize("text", [HIDDEN, CLEAR])
def test_guards_change_no_game(text: str) -> None:
    sheet = support.read(text)
    unguarded = build.build(sheet, ground.ground(sheet, rewrite=False))
    guarded = build.build(sheet, ground.ground(sheet))
    assert guarded.fluents == unguarded.fluents
    assert [role.moves for role in guarded.roles] == [role.moves for role in unguarded.roles]
    assert support.RulesAndPropnet(sheet, guarded).compare_all(5000) is not None


def test_only_what_is_asked_for_is_ground() -> None:
    """Two of the four arguments range freely; callers bind one for each pair of neighbours."""
    assert _demands(_guarded(HIDDEN), "hidden") == {2}
    sheet = support.read(HIDDEN)
    direct, guarded = ground.ground(sheet, rewrite=False), ground.ground(sheet)
    assert 3 * len(guarded.heads) < len(direct.heads)


def test_recursion_passes_parameters_on() -> None:
    assert _demands(_guarded(CLEAR), "clear") == {2}


@pytest.mark.parametrize(
    "changed",
    [
        HIDDEN + "(<= (goal r 0) (hidden ?a ?b ?c ?d))",  # used with all arguments
        HIDDEN.replace("(n ?c)", "(true (wall ?c))").replace("(n ?d)", "(true (at ?d))"),  # no parameters
    ],
)
def test_relations_without_known_parameters_stay(changed: str) -> None:
    assert _guarded(changed) == _rules(changed)[0]


def test_a_call_that_knows_less_tells_less() -> None:
    assert _demands(_guarded(HIDDEN + "(<= (goal r 0) (true (wall ?c)) (hidden ?a ?b ?c ?d))"), "hidden") == {1}


def test_calls_in_one_rule_do_not_wait_for_each_other() -> None:
    """Each of two calls could bind the parameters of the other; then neither would ever be derived."""
    both = "(<= (goal r 0) (true (at ?x)) (hidden ?x ?b ?c ?d) (hidden ?b ?x ?c ?d))"
    _compare(support.read(HIDDEN + both))


def test_two_arities_of_a_relation_are_two() -> None:
    five = "(<= (hidden ?a ?b ?c ?d ?e) (n ?c) (n ?d) (n ?e) (true (at ?a)) (true (wall ?b)))"
    call = "(<= (goal r 10) (true (at ?x)) (true (wall ?y)) (not (hidden ?x ?y ?x ?x ?y)))"
    guarded = _guarded(HIDDEN + five + call)
    new_names = {rule.head.name for rule in guarded if rule.head.name.startswith(split_joins.DOMAIN)}
    assert {name.split()[-2] for name in new_names} == {"4", "5"}
    _compare(support.read(HIDDEN + five + call))


def test_names_of_demands_cannot_be_those_of_a_sheet() -> None:
    new_names = {rule.head.name for rule in _guarded(HIDDEN)} - {rule.head.name for rule in _rules(HIDDEN)[0]}
    assert new_names
    assert all(" " in name and name.startswith(split_joins.DOMAIN) for name in new_names)


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("bound", ["(m ?x)", ""])
def test_long_chains_of_relations_are_guarded_rule_by_rule(order: int, bound: str) -> None:
    """Every rule is visited a few times, whatever the order of the relations that pass parameters."""
    size = 300
    steps = [f"(<= (a{k} ?a ?b ?c ?d) (a{k + 1} ?a ?b ?c ?d))" for k in range(size)]
    last = f"(<= (a{size} ?a ?b ?c ?d) (n ?a) (n ?b) (n ?c) (n ?d)) (n 1) (m 1)"
    text = f"(<= (goal r 1) {bound} (a0 ?x ?x ?x ?x)) {' '.join(steps[::order])} {last}"
    rules = rulesheet.parse_rulesheet(source.Source("chain.gdl", text))[0].rules
    with mock.patch.object(magic_sets, "_calls", side_effect=magic_sets._calls) as looked:
        new_names = magic_sets.apply_magic_sets(rules, frozenset({("n", 1), ("m", 1)}))
    assert looked.call_count <= 7 * len(rules)
    assert len(new_names) == len(rules) + (size + 1 if bound else 0)


@hypothesis.given(seed=st.integers(0, 10**9))
@hypothesis.settings(max_examples=40)
def test_random_games_keep_their_meaning(seed: int) -> None:
    """With narrow relations guarded too, and short rules merged, so that most of these games have some."""
    sheet = support.read(random_games.generate_sheet(seed))
    with (
        mock.patch.object(magic_sets, "_LEAST_ARGUMENTS", 1),
        mock.patch("gdlx.propnet.grounding.share_bodies._LEAST_VARIABLES", 1),
    ):
        _compare(sheet, 60)
