"""The infix form of rules parses to the same rules as KIF text."""

import pytest

from gdlx.propnet.syntax import infix
from gdlx.tests.helpers import reading

INFIX = """\
% A coin is tossed, and somebody guesses.
role(guesser). role(random).
init(coin(unknown)).

legal(random, toss(Side)) :-
    side(Side) &
    true(coin(unknown)).
legal(guesser, guess(?Side)) :- side(?Side), true(coin(unknown))
side(heads)
side(tails)   ; the end of a sentence is where the next one begins
next(coin(Side)) :- does(random, toss(Side)).
next(won) <= does(random, toss(Side)) & does(guesser, guess(Side)).
sees(guesser, landed(Side)) :-
    does(random, toss(Side)).
terminal :-
    true(coin(heads)) | true(coin(tails)).
goal(guesser, 100) :- true(won).
goal(guesser, 0) :- ~true(won).
"""


def test_a_game_written_both_ways_is_the_same() -> None:
    sheet = reading.read(INFIX)
    assert sheet.rules == reading.read(reading.SHEET.replace("?side", "?Side")).rules
    assert sheet.language == 2
    assert [rule.span.line for rule in sheet.rules] == [rule.span.line for rule in reading.read(reading.SHEET).rules]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("a & b", "a b"),
        ("a, b", "a b"),
        ("(a, b)", "a b"),
        ("a | b & c", "(or a (and b c))"),
        ("(a | b) & c", "(or a b) c"),
        ("~a", "(not a)"),
        ("not a", "(not a)"),
        ("not(a)", "(not a)"),
        ("not (a | b)", "(not (or a b))"),
        ("~(a, b)", "(not (and a b))"),
        ("~~a", "(not (not a))"),
        ("or(a, b & c)", "(or a (and b c))"),
        ("and(a, not(b))", "(and a (not b))"),
        ("p(X) & X != Y", "(p ?X) (distinct ?X ?Y)"),
        ("p(X) & f(X) \\= g(a)", "(p ?X) (distinct (f ?X) (g a))"),
        ("distinct(X, Y)", "(distinct ?X ?Y)"),
        ("~distinct(X, Y)", "(not (distinct ?X ?Y))"),
        ("p(_x, ?y, Z9, a-b, n++, 1)", "(p ?_x ?y ?Z9 a-b n++ 1)"),
        ("p(f(g(X), h(a, b)))", "(p (f (g ?X) (h a b)))"),
        ("terminal()", "(terminal)"),
    ],
)
@pytest.mark.parametrize("end", [".", "", " .\n"])
def test_infix_bodies(written: str, meant: str, end: str) -> None:
    assert reading.read(f"q(X, Y) :- {written}{end}").rules == reading.read(f"(<= (q ?X ?Y) {meant})").rules


def test_infix_errors_do_not_hide_the_rest() -> None:
    sheet, problems = reading.read_all(
        "role(x).\nlegal(x, go :- true(a).\nlegal(x, )\ngoal(x, 100).\np :- a & & b.\nterminal :- a # b.\nq."
    )
    assert [(problem.code, problem.span.line if problem.span else 0) for problem in problems] == [
        ("syntax", 2),
        ("syntax", 3),
        ("syntax", 5),
        ("syntax", 6),
    ]
    assert [str(rule) for rule in sheet.rules if rule.head.name in ("role", "goal", "q")] == [
        "(role x)",
        "(goal x 100)",
        "q",
    ]


def test_infix_nesting_has_a_limit() -> None:
    assert reading.codes("p(a). q(" + "f(" * 1_000 + "x" + ")" * 1_000 + ").\nr(b).") == ["nesting-too-deep"]
    assert reading.codes("p :- " + "~" * 1_000 + "a.") == ["nesting-too-deep"]
    assert reading.codes("p(" + "f(" * 25 + "x" + ")" * 25 + ").") == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(role x)", False),
        ("role(x).", True),
        ("terminal :- p.", True),
        ("terminal.", True),
        ("terminal", False),
        ("% c\n; d\nrole(x)", True),
        ("role x)", False),
        (") role(x)", False),
        ("", False),
        ("a" + " " * 100_000 + "b", False),
    ],
)
def test_which_form_is_decided_by_how_a_sheet_begins(text: str, expected: bool) -> None:
    assert infix.looks_infix(text) is expected
