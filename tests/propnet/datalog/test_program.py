"""The interpreter's evaluator against naive ones, written independently."""

import itertools
from collections.abc import Iterator, Mapping
from typing import Any
from unittest import mock

import hypothesis
import hypothesis.strategies as st
import pytest

from gdlx.propnet.checks import checker
from gdlx.propnet.datalog import joins, program, safety
from gdlx.propnet.syntax import ground_terms, rulesheet, source, terms
from gdlx.tests.helpers import playing

# A naive evaluator, written independently: every rule is instantiated over all terms there are, stratum by stratum.

Model = dict[str, set[tuple[ground_terms.GroundTerm, ...]]]
NOWHERE = source.Span(source.Source("nowhere", ""), 0, 0)


def subterms(term: terms.Term) -> Iterator[ground_terms.GroundTerm]:
    if not any(terms.variables_in([term])):
        yield ground_terms.from_term(term)
    if isinstance(term, terms.Compound):
        for arg in term.args:
            yield from subterms(arg)


Binding = dict[str, ground_terms.GroundTerm]


def ground_literal(
    literal: terms.Literal, binding: Binding, model: Model, domain: list[ground_terms.GroundTerm]
) -> bool:
    if isinstance(literal, terms.Or):
        return any(all(ground_literal(part, binding, model, domain) for part in option) for option in literal.disjuncts)
    if isinstance(literal, terms.Distinct):
        left, right = (ground_terms.from_term(term, binding) for term in (literal.left, literal.right))
        return (left == right) == literal.equal
    atom = literal.atom if isinstance(literal, terms.Not) else literal
    free = sorted({variable.name for variable in terms.variables_in(atom.args)} - binding.keys())  # only in a `not`
    holds = any(
        tuple(ground_terms.from_term(arg, binding | dict(zip(free, chosen, strict=True))) for arg in atom.args)
        in model.get(atom.name, set())
        for chosen in itertools.product(domain, repeat=len(free))
    )
    return holds == isinstance(literal, terms.Atom)


def bound_somewhere(rule: terms.Rule) -> list[str]:
    """All variables but those that occur in a single literal of the rule, which is negated."""
    places: dict[str, list[bool]] = {v.name: [True] for v in terms.variables_in(rule.head.args)}
    for literal in terms.literals_in(rule.body):
        for name in {v.name for v in terms.variables_in(terms.literal_terms(literal))}:
            places.setdefault(name, []).append(not isinstance(literal, terms.Not))
    return sorted(name for name, positive in places.items() if positive != [False])


def instances(
    rule: terms.Rule, domain: list[ground_terms.GroundTerm], model: Model
) -> Iterator[tuple[ground_terms.GroundTerm, ...]]:
    names = bound_somewhere(rule)
    for chosen in itertools.product(domain, repeat=len(names)):
        binding = dict(zip(names, chosen, strict=True))
        if all(ground_literal(literal, binding, model, domain) for literal in rule.body):
            yield tuple(ground_terms.from_term(arg, binding) for arg in rule.head.args)


def naive(rules: list[terms.Rule], stratum: Mapping[str, int]) -> Model:
    domain = sorted({value for rule in rules for term in terms.rule_terms(rule) for value in subterms(term)}, key=str)
    model: Model = {}
    for level in sorted(set(stratum.values())):
        mine = [rule for rule in rules if stratum[rule.head.name] == level]
        size = -1
        while size != (size := sum(map(len, model.values()))):
            for rule in mine:
                model.setdefault(rule.head.name, set()).update(list(instances(rule, domain, model)))
    return model


RELATIONS = {"p0": 1, "p1": 2, "p2": 1, "p3": 2, "p4": 1}
STRATUM = {"p0": 0, "p1": 0, "p2": 1, "p3": 1, "p4": 2}
CONSTANTS: list[terms.Term] = [
    *(terms.Symbol(name, NOWHERE) for name in "ab"),
    terms.Compound("f", (terms.Symbol("a", NOWHERE),), NOWHERE),
]
VARIABLES = [terms.Variable(name, NOWHERE) for name in "XYZ"]
PATTERNS: list[terms.Term] = [*VARIABLES, *VARIABLES, *CONSTANTS, terms.Compound("f", (VARIABLES[0],), NOWHERE)]


@st.composite
def body_literals(draw: st.DrawFn, level: int, *, nested: int = 0) -> terms.Literal:
    kind = draw(st.sampled_from(["atom", "atom", "atom", "not", "distinct", "equal", *["or"] * (nested > 0) * 2]))
    if kind == "or":
        options = st.lists(body_literals(level, nested=nested - 1), min_size=1, max_size=2).map(tuple)
        return terms.Or(tuple(draw(st.lists(options, min_size=2, max_size=3))))
    if kind in ("distinct", "equal"):
        # No (f ?X) here: an equality would build a term, and rules could make them grow.
        sides = [draw(st.sampled_from(PATTERNS[:-1])) for _ in range(2)]
        return terms.Distinct(sides[0], sides[1], kind == "equal", NOWHERE)
    below = level if kind == "not" else level + 1
    name = draw(st.sampled_from([name for name, actual in STRATUM.items() if actual < below] or ["p0"]))
    atom = terms.Atom(name, tuple(draw(st.sampled_from(PATTERNS)) for _ in range(RELATIONS[name])), NOWHERE)
    return terms.Not(atom) if kind == "not" and level > 0 else atom


@st.composite
def programs(draw: st.DrawFn, nested: int = 0) -> list[terms.Rule]:
    """Stratified programs of safe rules; heads are flat, so that no term grows."""
    rules = []
    for _ in range(draw(st.integers(2, 6))):
        name = draw(st.sampled_from(["p0", "p1"]))
        args = tuple(draw(st.sampled_from(CONSTANTS)) for _ in range(RELATIONS[name]))
        rules.append(terms.Rule(terms.Atom(name, args, NOWHERE), (), True, NOWHERE))
    for number in range(draw(st.integers(1, 6))):
        name = draw(st.sampled_from(list(RELATIONS)))
        body = tuple(draw(st.lists(body_literals(STRATUM[name], nested=nested), min_size=1, max_size=4)))
        known = sorted(safety.bound_variables(body))
        choices = [*CONSTANTS, *(terms.Variable(variable, NOWHERE) for variable in known)]
        args = tuple(draw(st.sampled_from(choices)) for _ in range(RELATIONS[name]))
        place = source.Span(NOWHERE.source, number, number)  # rules of a sheet have different places
        rule = terms.Rule(terms.Atom(name, args, place), body, False, place)
        if not any(safety.unsafe_variables(rule)):
            rules.append(rule)
    return rules


def evaluated(rules: list[terms.Rule]) -> Model:
    tables = program.DatalogProgram(rules).evaluate({}, joins.Budget(facts=100_000, seconds=60))
    return {name: table.known for (name, _), table in tables.items() if name in RELATIONS}


def nonempty(model: Mapping[str, set[Any]]) -> dict[str, set[Any]]:
    return {name: facts for name, facts in model.items() if facts}


@hypothesis.given(programs())
def test_the_evaluator_against_a_naive_one(rules: list[terms.Rule]) -> None:
    assert nonempty(evaluated(rules)) == nonempty(naive(rules, STRATUM))


@hypothesis.given(programs(nested=2), st.sampled_from([1, 3, 256]))
def test_rules_without_or_mean_the_same(rules: list[terms.Rule], few: int) -> None:
    with mock.patch.object(safety, "_FEW_ALTERNATIVES", few):
        plain = [part for rule in rules for part in safety.eliminate_disjunctions(rule)]
    assert not any(isinstance(literal, terms.Or) for rule in plain for literal in rule.body)
    assert not any(any(safety.unsafe_variables(rule)) for rule in plain)
    assert nonempty(evaluated(plain)) == nonempty(naive(rules, STRATUM))


def test_nested_alternatives_do_not_share_a_relation() -> None:
    # The inner choices are about different variables, so that a relation for both would mix them up.
    text = (
        "(role x) (terminal) (goal x 1) (d 1) (d 2) (d 3) (a 1) (b 2)"
        "(<= (legal x (take ?n ?m)) (d ?n) (d ?m) (or (or (a ?n) (a ?n)) (or (b ?m) (b ?m))) (or (d ?n) (d ?m)))"
    )
    expected = [f"(take {n} {m})" for n in "123" for m in "123" if n == "1" or m == "2"]
    for few in (1, 2, 256):
        with mock.patch.object(safety, "_FEW_ALTERNATIVES", few):
            game = playing.load_interpreter(text)
            assert playing.legal_texts(game, game.initial)["x"] == expected


def test_too_many_alternatives_are_refused_with_the_rule() -> None:
    # No option binds the variable of the next one, so that none can stand alone.
    choices = "".join(f"(or (not (distinct ?v{n} ?v{n + 1})) (not (distinct ?v{n} (f ?v{n + 1}))))" for n in range(30))
    [problem] = checker.check(
        source.Source("sheet", playing.FRAME + f"(<= (legal x ?v0) {choices} (role ?v30))")
    ).errors
    assert (problem.code, problem.span and problem.span.line) == ("evaluation-limit", 2)


@st.composite
def graphs_with_ends(draw: st.DrawFn) -> list[tuple[str, str]]:
    return draw(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef")), max_size=10))


@hypothesis.given(graphs_with_ends())
def test_the_alternating_fixpoint_solves_win_and_move_games(moves: list[tuple[str, str]]) -> None:
    """A position is won if a move leads to a lost one; where neither follows (a draw), nothing is defined."""
    won: set[str] = set()
    lost: set[str] = set()
    while True:  # backwards from the terminals
        before = len(won) + len(lost)
        lost |= {p for p in "abcdef" if all(to in won for start, to in moves if start == p)}
        won |= {start for start, to in moves if to in lost}
        if before == len(won) + len(lost):
            break
    text = "".join(f"(move {start} {to})" for start, to in moves) + "(<= (won ?p) (move ?p ?q) (not (won ?q)))"
    sheet, _ = rulesheet.parse_rulesheet(source.Source("sheet", text))
    rules = program.DatalogProgram(sheet.rules)
    if won | lost == set("abcdef"):
        assert rules.evaluate({})["won", 1].known == {(position,) for position in won}
    else:
        with pytest.raises(program.UndefinedError) as caught:
            rules.evaluate({})
        assert {fact[0] for _, fact in caught.value.atoms} == set("abcdef") - won - lost
