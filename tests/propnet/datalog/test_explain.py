"""Typed moves, transcripts of matches, and explanations of why an atom holds or not."""

import pytest

from gdlx.propnet import library
from gdlx.propnet.datalog import explain, transcript
from gdlx.propnet.syntax import diagnostics, ground_terms
from gdlx.tests.helpers import playing


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("stay", "`stay` is not legal for x"),
        ("go go", "`go` is not legal for y"),
        ("", "has 0 moves"),
        ("(go", "never closed"),
        ("?m", "variable"),
        ("go noop noop", "has 3 moves"),
    ],
)
def test_typed_moves_that_are_wrong(typed: str, message: str) -> None:
    game = playing.load_interpreter(playing.FRAME + "(role y) (legal x jump) (legal y noop) (goal y 1)")
    with pytest.raises(diagnostics.GdlError, match=message.replace("?", r"\?")):
        transcript.parse_joint_action(game, game.initial, typed)


def test_typed_moves_for_all_roles_or_for_those_that_choose() -> None:
    game = playing.load_interpreter(playing.FRAME + "(role y) (legal x (go far)) (legal y noop) (goal y 1)")
    expected = {"x": ("go", "far"), "y": "noop"}
    assert transcript.parse_joint_action(game, game.initial, "(go far)") == expected
    assert transcript.parse_joint_action(game, game.initial, "(go far) noop") == expected


def test_nobody_moves_where_a_role_has_no_move() -> None:
    game = playing.load_interpreter(playing.FRAME + "(role y) (<= (legal y noop) (true on)) (init on) (goal y 1)")
    stuck = playing.play_moves(game, "go noop")
    with pytest.raises(diagnostics.GdlError, match="y has no legal move"):
        transcript.parse_joint_action(game, stuck, "go noop")
    lines = list(
        transcript.random_match(
            playing.load_interpreter(playing.FRAME + "(role y) (<= (legal y noop) (true on)) (goal y 1)"), seed=1
        )
    )
    assert lines == ["unplayable after 0 joint actions: no legal move for y"]


def test_a_match_told_in_words() -> None:
    game = playing.load_interpreter(library.text("kuhn_poker"))
    lines = list(transcript.random_match(game, seed=1))
    assert lines == list(transcript.random_match(game, seed=1))
    assert lines[0].startswith("1. ")
    assert "end after" in lines[-1]
    assert list(transcript.random_match(game, seed=1, max_steps=1))[-1] == "stopped after 1 joint actions"


WHY = (
    "(role x)\n(legal x go)\n(legal x stay)\n(init (at 0))\n(succ 0 1)\n(succ 1 2)\n"
    "(<= (next (at ?m)) (does x go) (true (at ?n)) (succ ?n ?m))\n"
    "(<= (next (at ?n)) (does x stay) (true (at ?n)))\n"
    "(<= terminal (true (at 2)))\n"
    "(<= (goal x 100) terminal (distinct x y))\n"
    "(<= (goal x 0) (not terminal))\n"
    "(<= (less ?a ?b) (succ ?a ?b))\n(<= (less ?a ?c) (succ ?a ?b) (less ?b ?c))\n"
    "(<= (legal x (skip ?n)) (less 0 ?n) (true (at 2)))\n"
    "(<= (twin ?a ?a) (role ?a))\n(<= (legal x twice) (twin x x))\n"
    "(<= (lonely ?a) (role ?a))\n(<= (next was2) (true (at 2)) (does x (skip (f ?n))))\n"
)


@pytest.mark.parametrize(
    ("typed", "moves", "expected"),
    [
        ("(legal x go)", [], ["(legal x go)  (fact, line 2)"]),
        ("(LEGAL x go)", [], ["(legal x go)  (fact, line 2)"]),
        (
            "(less 0 2)",
            [],
            [
                "(less 0 2)  (line 13)",
                "  (succ 0 1)  (fact, line 5)",
                "  (less 1 2)  (line 12)",
                "    (succ 1 2)  (fact, line 6)",
            ],
        ),
        ("(goal x 0)", [], ["(goal x 0)  (line 11)", "  (not terminal)  (does not hold)"]),
        (
            "(goal x 100)",
            ["go", "go"],
            [
                "(goal x 100)  (line 10)",
                "  terminal  (line 9)",
                "    (true (at 2))  (holds in the state)",
                "  x != y",
            ],
        ),
        (
            "(next (at 1))",
            ["go"],
            [
                "(next (at 1))  (line 7)",
                "  (does x go)  (the move made)",
                "  (true (at 0))  (holds in the state)",
                "  (succ 0 1)  (fact, line 5)",
            ],
        ),
        (
            "terminal",
            ["go"],
            ["terminal does not hold", "  rule in line 9: terminal", "    fails at: (true (at 2))"],
        ),
        (
            "(next (at 0))",
            ["go"],
            [
                "(next (at 0)) does not hold",
                "  rule in line 7: (next (at ?m))",
                "    can hold: (does x go)",
                "    can hold: (true (at ?n))",
                "    fails at: (succ ?n ?m)",
                "  rule in line 8: (next (at ?n))",
                "    fails at: (does x stay)",
            ],
        ),
        (
            "(twin x y)",
            [],
            ["(twin x y) does not hold", "  no rule concludes it (1 rules conclude other `twin`)"],
        ),
        (
            "(next (on (f 1)))",
            ["go"],
            ["(next (on (f 1))) does not hold", "  no rule concludes it (3 rules conclude other `next`)"],
        ),
        ("(nothing 1)", [], ["(nothing 1) does not hold", "  no rule concludes `nothing`"]),
        (
            "(lonely x)",
            [],
            ["(lonely x) does not hold", "  the game does not depend on `lonely`, so its rules are not evaluated"],
        ),
    ],
)
def test_why_something_holds_or_not(typed: str, moves: list[str], expected: list[str]) -> None:
    assert explain.explain_atom(playing.load_interpreter(WHY), typed, moves) == expected


def test_why_something_holds_of_a_move_that_also_holds_without_one() -> None:
    helper = "(<= (p now) (not (does x go)))\n(<= (p now) (does x go))\n(p always)\n(<= (legal x up) (p always))\n"
    game = playing.load_interpreter(playing.FRAME + helper + "(<= (next late) (p now))")
    assert explain.explain_atom(game, "(p now)", ["go"]) == ["(p now)  (line 3)", "  (does x go)  (the move made)"]


def test_why_a_fluent_does_not_hold() -> None:
    assert explain.explain_atom(playing.load_interpreter(WHY), "(true (at 1))", [])[-1].startswith(
        "  it is not in the state"
    )


@pytest.mark.parametrize(
    ("typed", "moves", "message"),
    [
        ("(next (at 1))", [], "depends on a move, and none was passed"),
        ("legal goal", [], "expected one atom, found 2"),
        ("(legal x ?m)", [], "variable"),
        ("(legal x", [], "never closed"),
        ("(legal x go)", ["fly"], "not legal"),
    ],
)
def test_questions_that_have_no_answer(typed: str, moves: list[str], message: str) -> None:
    with pytest.raises(diagnostics.GdlError, match=message):
        explain.explain_atom(playing.load_interpreter(WHY), typed, moves)


def test_a_long_derivation_is_cut() -> None:
    chain = "".join(f"(succ {n} {n + 1})" for n in range(1_000))
    game = playing.load_interpreter(
        playing.FRAME + chain + "(number 0) (<= (number ?m) (number ?n) (succ ?n ?m)) (<= (legal x ?n) (number ?n))"
    )
    lines = explain.explain_atom(game, "(number 1000)", [])
    assert (len(lines), lines[-1]) == (401, "...")


def test_derivations_are_the_same_in_every_run() -> None:
    game = playing.load_interpreter(library.text("tictactoe"))
    lines = [
        explain.explain_atom(game, f"(legal {game.roles[0]} {ground_terms.to_text(move)})", [])
        for move in game.legal(game.initial)[game.roles[0]]
    ]
    again = playing.load_interpreter(library.text("tictactoe"))
    assert lines == [
        explain.explain_atom(again, f"(legal {again.roles[0]} {ground_terms.to_text(move)})", [])
        for move in again.legal(again.initial)[again.roles[0]]
    ]
