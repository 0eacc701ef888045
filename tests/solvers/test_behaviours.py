"""Sheets with known behaviour, of other authors and our own, played by the interpreter."""

import itertools
import pathlib
from collections.abc import Mapping

import pytest

from gdlx.propnet.datalog import interpreter
from gdlx.propnet.syntax import diagnostics
from gdlx.tests.helpers import playing


class Seen:
    """The expected state after some moves of one role, or of several; None is not checked."""

    def __init__(
        self,
        *moves: str,
        ends: bool | None = None,
        goal: int | Mapping[str, int] | None = None,
        legal: list[str] | None = None,
        state: set[str] | None = None,
        size: int | None = None,
    ) -> None:
        self.moves, self.ends, self.goal = moves, ends, goal
        self.legal, self.state, self.size = legal, state, size

    def hold_against(self, game: interpreter.Interpreter) -> None:
        state = playing.play_moves(game, *self.moves)
        if self.ends is not None:
            assert game.is_terminal(state) is self.ends
        if self.goal is not None:
            expected = {game.roles[0]: self.goal} if isinstance(self.goal, int) else self.goal
            assert game.goals(state) == {role: (value,) for role, value in expected.items()}
        if self.legal is not None:
            assert playing.legal_texts(game, state)[game.roles[0]] == self.legal
        if self.state is not None:
            assert playing.texts(state) == self.state
        if self.size is not None:
            assert len(state) == self.size


LEFT = ["mov_left"] * 11
# What expectations.md says of each sheet, file by file.
CORPUS: dict[str, list[Seen]] = {
    "simpleMutex": [
        Seen(state={"h1", "t1"}, legal=["a", "b", "c"], ends=False),
        Seen("a", "d", "a", "a", ends=True, goal=0),
        Seen("b", ends=True, goal=100),
    ],
    "ticTacToe": [
        Seen(ends=False, legal=[f"(mark {x} {y})" for x in "123" for y in "123"]),
        Seen("(mark 1 1)", "(mark 1 3)", "(mark 3 1)", "(mark 2 2)", ends=False),
        Seen(
            *("(mark 1 1)", "(mark 1 3)", "(mark 3 1)", "(mark 2 2)", "(mark 2 1)"),
            ends=True,
            goal={"xplayer": 100, "oplayer": 0},
        ),
    ],
    "test_case_1a": [Seen(ends=False, goal=100), Seen("proceed", ends=True, goal=100)],
    "test_case_1b": [
        Seen(legal=["lose", "win"], ends=False),
        Seen("lose", state={"(state 2)"}, ends=True, goal=0, legal=[]),
        Seen("win", state={"(state 1)"}, ends=True, goal=100, legal=[]),
    ],
    "test_case_2a": [
        *(Seen(*[""] * n, legal=[f"(move move_next {n} {n + 1})"], goal=100, ends=False) for n in range(1, 3)),
    ],
    "test_case_2b": [
        Seen(size=12, legal=["mov_left", "mov_right"], goal=0),
        Seen("mov_left", ends=True, legal=[], goal=0),
    ],
    "test_case_2c": [
        Seen(size=12, legal=["mov_left", "mov_right"], goal=100),
        *(Seen(*LEFT[:1], *[""] * (n - 1), size=12 + n % 2, ends=n == 10, goal=100) for n in range(1, 11)),
    ],
    "test_case_3a": [
        Seen(legal=["(move correct_correct)"]),
        Seen("(move correct_correct)", state={"correct_correct"}, ends=True, goal=100),
    ],
    "test_case_3b": [Seen(state=set(), ends=True, legal=["noop"], goal=100)],
    "test_case_3c": [Seen(ends=False, legal=["win"]), Seen("win", ends=True, goal=100)],
    "test_case_3d": [Seen(state={"(cell alpha)"}, legal=["win"]), Seen("win", ends=True, goal=100)],
    "test_case_3e": [Seen(legal=["xplayer"], goal=100, ends=True)],
    "test_case_3f": [Seen(goal={"xplayer": 100, "yplayer": 0, "zplayer": 100}, ends=True)],
    "test_case_4a": [Seen(state={"p"}, legal=["a"]), Seen("a", state={"q"}, ends=True, goal=100)],
    "test_case_5a": [Seen(legal=["proceed"]), Seen("proceed", ends=True, goal=100)],
    "test_case_5b": [
        Seen(legal=["(draw 1 1 1 2)"]),
        Seen("(draw 1 1 1 2)", state={"done", "(line 1 1 1 2)"}, ends=True, goal=100),
    ],
    "test_case_5c": [Seen(legal=["proceed"]), Seen("proceed", ends=True, goal=100)],
    "test_case_5d": [
        Seen(legal=["proceed"], state={"(rTrue 1 2)", "(rTrue 2 1)", "(sTrue 1 2)", "(sTrue 2 1)"}),
        Seen("proceed", ends=True, goal=100),
    ],
    "test_case_5e": [
        Seen(ends=False, legal=[*(f"(reduce a {n})" for n in range(2)), *(f"(reduce c {n})" for n in range(5))]),
    ],
    "test_clean_not_distinct": [Seen(ends=False, goal=100), Seen("", ends=True, goal=100)],
    "test_distinct_beginning_rule": [
        Seen(ends=False, legal=["(do a b)", "(do b a)"]),
        Seen("(do a b)", ends=True, goal=100),
    ],
    "test_invalid_function_arities_differ": [Seen(legal=["(a 1)", "(a 2 3)"])],
    "test_invalid_sentence_arities_differ": [Seen(legal=["a"])],
}


@pytest.mark.parametrize("name", CORPUS)
def test_the_corpus_behaves_as_expected(name: str, corpus: pathlib.Path) -> None:
    game = playing.load_interpreter((corpus / f"{name}.kif").read_text(encoding="utf-8"))
    for expected in CORPUS[name]:
        expected.hold_against(game)


def test_more_of_the_corpus(corpus: pathlib.Path) -> None:
    def game(name: str) -> interpreter.Interpreter:
        return playing.load_interpreter((corpus / name).read_text(encoding="utf-8"))

    mutex = game("simpleMutex.kif")
    for moves in itertools.chain(*(itertools.product("abcd", repeat=length) for length in range(4))):
        try:
            state = playing.play_moves(mutex, *moves)
        except diagnostics.GdlError:
            continue
        assert mutex.tables(state)["likely", 0].rows == [()]
    tic = game("ticTacToe.kif")
    assert tic.roles == ("xplayer", "oplayer")
    assert playing.legal_texts(tic, tic.initial)["oplayer"] == ["noop"]
    closure = game("test_case_5a.kif")
    assert len(closure.tables(closure.initial)["r", 2].rows) == 3
    steps = game("test_case_2a.kif")
    state = steps.initial
    while not steps.is_terminal(state):
        [move] = steps.legal(state)["you"]
        assert steps.goals(state) == {"you": (100,)}
        state = steps.next(state, {"you": move})
    assert playing.texts(state) == {"(state 4)"}
    mastermind = game("mastermind.kif")
    assert not mastermind.is_terminal(mastermind.initial)


# Own sheets with the same behaviours, so that nothing depends on the corpus.
OWN: dict[str, tuple[str, list[Seen]]] = {
    "a rule with an empty body is a fact": (
        "(role x) (legal x go) (next over) (<= terminal (true over)) (<= (goal x 100))",
        [Seen(ends=False, goal=100), Seen("go", ends=True, goal=100)],
    ),
    "legal in a body, through a helper": (
        "(role x) (init (at 0)) (<= (legal x win) (true (at 0))) (<= (legal x lose) (true (at 0)))"
        "(<= (next (at ?m)) (does x ?m)) (<= can (legal x ?m)) (<= terminal (not can))"
        "(<= (goal x 100) (true (at win))) (<= (goal x 0) (true (at lose)))",
        [
            Seen(ends=False, legal=["lose", "win"]),
            Seen("win", state={"(at win)"}, ends=True, goal=100, legal=[]),
            Seen("lose", state={"(at lose)"}, ends=True, goal=0, legal=[]),
        ],
    ),
    "a static relation that rules derive": (
        "(role x) (init (at 1)) (succ 1 2) (succ 2 3) (<= (step ?a ?b) (succ ?a ?b) (distinct ?a 3))"
        "(<= (legal x (walk ?a ?b)) (true (at ?a)) (step ?a ?b)) (<= (next (at ?b)) (does x (walk ?a ?b)))"
        "(<= terminal (true (at 3))) (goal x 100)",
        [Seen(legal=["(walk 1 2)"]), Seen("", legal=["(walk 2 3)"]), Seen("", "", state={"(at 3)"}, ends=True)],
    ),
    "a whole move is a variable": (
        "(role x) (init (at 2)) (<= (to ?b left ?a) (succ ?a ?b)) (<= (to ?a right ?b) (succ ?a ?b)) (succ 1 2)"
        "(succ 2 3) (<= (legal x ?m) (true (at ?a)) (to ?a ?m ?b)) (<= (next (at ?b)) (does x ?m) (true (at ?a))"
        "(to ?a ?m ?b)) (<= terminal (not more)) (<= more (legal x right)) (goal x 0)",
        [Seen(legal=["left", "right"], ends=False), Seen("right", legal=["left"], ends=True)],
    ),
    "a fluent toggled by its absence": (
        "(role x) (legal x go) (<= (next even) (not (true even))) (<= terminal (true late))"
        "(<= (next late) (true even)) (goal x 100)",
        [Seen(state=set()), Seen("go", state={"even"}), Seen("go", "go", state={"late"}, ends=True)],
    ),
    "needless parentheses and a variable fluent": (
        "(role x) (<= (open) (not (shut))) (<= (shut) (true nothing)) (<= (legal x ?f) (may ?f) open)"
        "(may one) (<= (next ?f) (does x ?f)) (<= terminal (true one)) (<= (goal x 100) (true one))",
        [Seen(legal=["one"]), Seen("one", state={"one"}, ends=True, goal=100)],
    ),
    "unsafe rules that nothing needs, and no first state": (
        "(role x) (legal x noop) (goal x 100) (<= terminal (not (true on))) (<= (next on) (true off))"
        "(<= (apart ?a ?b) (distinct ?a ?b)) (<= (apart2 ?a) (not (apart ?a ?b)))",
        [Seen(state=set(), ends=True, legal=["noop"], goal=100)],
    ),
    "what nothing concludes is false": (
        "(role x) (<= (legal x win) (not squeak)) (<= (legal x lose) squeak) (<= (next over) (does x win))"
        "(<= terminal (true over)) (goal x 100)",
        [Seen(legal=["win"], ends=False), Seen("win", ends=True)],
    ),
    "what follows by negation does not hold at first": (
        "(role x) (init (cell a)) (<= (next (cell b)) (not (true (cell c)))) (<= (legal x win) (not (true (cell b))))"
        "(<= terminal (true (cell b))) (goal x 100)",
        [Seen(state={"(cell a)"}, legal=["win"], ends=False), Seen("win", state={"(cell b)"}, ends=True)],
    ),
    "a role variable that the body does not bind": (
        "(role x) (role y) (role z) (<= (legal ?r ?r) (true on)) (init on) (terminal)"
        "(<= (goal ?r 100) (not (bad ?r))) (<= (goal ?r 0) (bad ?r)) (bad y) (bad stranger)",
        [Seen(legal=["x"], ends=True, goal={"x": 100, "y": 0, "z": 100})],
    ),
    "hints are only hints": (
        "(role x) (base q) (base zzz) (input x b) ( init  p ) (legal x a ) (<= (next q) ( true p ))"
        "(<= terminal (true q)) (goal x 100)",
        [Seen(state={"p"}, legal=["a"]), Seen("a", state={"q"}, ends=True, goal=100)],
    ),
    "recursion over terms with a finite closure": (
        "(role x) (size 0) (size (f 0)) (r 0 0) (<= (r ?a (f ?a)) (size ?a) (r ?b ?a))"
        "(<= (legal x (pair ?a ?b)) (r ?a ?b)) (<= terminal (true on)) (goal x 0)",
        [Seen(legal=["(pair (f 0) (f (f 0)))", "(pair 0 (f 0))", "(pair 0 0)"])],
    ),
    "variables that occur twice": (
        "(role x) (legal x (draw 1 1 1 2)) (next done) (<= (next (line ?a ?b ?c ?d)) (does x (draw ?a ?b ?c ?d)))"
        "(<= (flat ?a ?y ?c ?y) (true (line ?a ?y ?c ?y))) (<= (next box) (flat ?a ?y ?c ?y))"
        "(<= (next same) (does x (draw ?a ?a ?a ?b))) (<= terminal (true done)) (<= (goal x 100) (not (true box)))",
        [Seen("", state={"done", "(line 1 1 1 2)", "same"}, ends=True, goal=100)],
    ),
    "circles without a beginning are false": (
        "(role x) (<= (p ?n) (p ?n)) (<= (q ?n) (r ?n) (n ?n)) (<= (r ?n) (q ?n)) (r 0) (n 0) (n 1)"
        "(<= (legal x (take ?n)) (n ?n) (not (p ?n)) (not (q ?n))) (<= terminal (true on)) (goal x 1)",
        [Seen(legal=["(take 1)"])],
    ),
    "recursion that feeds the first state": (
        "(role x) (<= (init (p ?a ?b)) (p ?a ?b)) (<= (p ?a ?b) (q ?b ?a)) (<= (q ?a ?b) (p ?a ?b)) (q 1 2)"
        "(legal x go) (<= terminal (true on)) (goal x 1)",
        [Seen(state={"(p 1 2)", "(p 2 1)"})],
    ),
    "left recursion": (
        "(role x) (heap a 2) (heap b 0) (heap c 5) (<= (less ?a ?b) (succ ?a ?b))"
        "(<= (less ?a ?b) (less ?c ?b) (succ ?a ?c))"
        "(succ 0 1) (succ 1 2) (succ 2 3) (succ 3 4) (succ 4 5) (<= (legal x (take ?h ?n)) (heap ?h ?m) (less ?n ?m))"
        "(<= terminal (true on)) (goal x 1)",
        [Seen(legal=[*(f"(take a {n})" for n in range(2)), *(f"(take c {n})" for n in range(5))])],
    ),
    "equality": (
        "(role x) (word yes) (word no) (<= (legal x ?w) (word ?w) (not (distinct ?w ?v)) (not (distinct no ?v)))"
        "(<= (legal x (say ?v)) (not (distinct (f ?v) ?t)) (thing ?t)) (thing (f yes)) (thing (g no))"
        "(<= terminal (true on)) (goal x 1)",
        [Seen(legal=["(say yes)", "no"])],
    ),
    "distinct before its variables are bound": (
        "(role x) (<= (legal x (do ?a ?b)) (distinct ?a ?b) (thing ?a) (not (same ?b)) (thing ?b)) (thing a) (thing b)"
        "(<= (same ?a) (role ?a)) (<= terminal (true on)) (goal x 1)",
        [Seen(legal=["(do a b)", "(do b a)"])],
    ),
    "two arities are two relations and two functions": (
        "(role x) (legal x (a 1)) (legal x (a 2 3)) (foo 1) (foo 2 3) (<= (legal x b) (foo 2))"
        "(<= (legal x c) (foo 2 3))"
        "(<= (next (got ?n)) (does x (a ?n))) (<= terminal (true (got ?n))) (goal x 1)",
        [Seen(legal=["(a 1)", "(a 2 3)", "c"]), Seen("(a 2 3)", state=set()), Seen("(a 1)", state={"(got 1)"})],
    ),
    "a name as a relation and as a function": (
        "(role x) (cell 1) (init (cell 2)) (<= (legal x (cell ?n)) (cell ?n)) (<= (legal x ?n) (true (cell ?n)))"
        "(<= terminal (true on)) (goal x 1)",
        [Seen(legal=["(cell 1)", "2"])],
    ),
}


@pytest.mark.parametrize("behaviour", OWN)
def test_own_sheets_behave_as_expected(behaviour: str) -> None:
    text, expected = OWN[behaviour]
    game = playing.load_interpreter(text)
    for seen in expected:
        seen.hold_against(game)
