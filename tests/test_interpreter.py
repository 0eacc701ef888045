"""The interpreter is the oracle of other tests, so here it is held against sheets with known behaviour, and its
evaluator against naive ones."""

import itertools
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any
from unittest import mock

import hypothesis
import hypothesis.strategies as st
import pytest

from gdlx.propnet import (
    check,
    datalog,
    diagnostics,
    explain,
    interpreter,
    joins,
    library,
    rulesheet,
    safety,
    source,
    terms,
    transcript,
    values,
)

FRAME = "(role x) (legal x go) (<= (next over) (does x go)) (<= terminal (true over)) (goal x 100)\n"


def load(text: str, gdl: int | None = None) -> interpreter.Interpreter:
    return interpreter.Interpreter(check.check(source.Source("sheet", text), gdl=gdl).require_usable())


def after(game: interpreter.Interpreter, *moves: str) -> interpreter.State:
    state = game.initial
    for typed in moves:
        state = game.next(state, transcript.joint_move(game, state, typed))
    return state


def legal(game: interpreter.Interpreter, state: interpreter.State) -> dict[str, list[str]]:
    return {role: [values.text(move) for move in moves] for role, moves in game.legal(state).items()}


def texts(state: interpreter.State) -> set[str]:
    return set(map(values.text, state))


class Seen:
    """What is expected after some moves of a game with one role, or of several; None is not looked at."""

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
        state = after(game, *self.moves)
        if self.ends is not None:
            assert game.is_terminal(state) is self.ends
        if self.goal is not None:
            wanted = {game.roles[0]: self.goal} if isinstance(self.goal, int) else self.goal
            assert game.goals(state) == {role: (value,) for role, value in wanted.items()}
        if self.legal is not None:
            assert legal(game, state)[game.roles[0]] == self.legal
        if self.state is not None:
            assert texts(state) == self.state
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
    game = load((corpus / f"{name}.kif").read_text(encoding="utf-8"))
    for expected in CORPUS[name]:
        expected.hold_against(game)


def test_more_of_the_corpus(corpus: pathlib.Path) -> None:
    def game(name: str) -> interpreter.Interpreter:
        return load((corpus / name).read_text(encoding="utf-8"))

    mutex = game("simpleMutex.kif")
    for moves in itertools.chain(*(itertools.product("abcd", repeat=length) for length in range(4))):
        try:
            state = after(mutex, *moves)
        except diagnostics.GdlError:
            continue
        assert mutex.tables(state)["likely", 0].rows == [()]
    tic = game("ticTacToe.kif")
    assert tic.roles == ("xplayer", "oplayer")
    assert legal(tic, tic.initial)["oplayer"] == ["noop"]
    closure = game("test_case_5a.kif")
    assert len(closure.tables(closure.initial)["r", 2].rows) == 3
    steps = game("test_case_2a.kif")
    state = steps.initial
    while not steps.is_terminal(state):
        [move] = steps.legal(state)["you"]
        assert steps.goals(state) == {"you": (100,)}
        state = steps.next(state, {"you": move})
    assert texts(state) == {"(state 4)"}
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
    game = load(text)
    for seen in expected:
        seen.hold_against(game)


def test_roles_keep_the_order_of_the_file() -> None:
    game = load(FRAME + "(role random) (role a) (legal random go) (legal a go) (goal a 0)")
    assert game.roles == ("x", "random", "a") == interpreter.roles(game.sheet)
    assert game.players == ("x", "a")
    assert set(game.goals(game.initial)) == {"x", "a"}


def test_percepts_belong_to_the_state_before_the_move() -> None:
    game = load(
        FRAME + "(init (room dark)) (<= (next (room lit)) (does x go)) (<= (sees x (was ?r)) (true (room ?r)))"
        "(<= (sees x (did ?m)) (does x ?m)) (<= (sees x (now ?r)) (next (room ?r))) (<= (sees x (may ?m)) (legal x ?m))"
    )
    state, joint = game.initial, {"x": "go"}
    assert texts(game.percepts(state, joint)["x"]) == {"(was dark)", "(did go)", "(now lit)", "(may go)"}
    assert texts(game.percepts(game.next(state, joint), joint)["x"]) >= {"(was lit)"}


def test_without_sees_everybody_perceives_the_joint_move() -> None:
    text = FRAME + "(role y) (legal y (say hi)) (goal y 0)"
    game = load(text)
    joint: interpreter.Joint = {"x": "go", "y": ("say", "hi")}
    assert texts(game.percepts(game.initial, joint)["x"]) == {"(does x go)", "(does y (say hi))"}
    assert game.percepts(game.initial, joint)["x"] == game.percepts(game.initial, joint)["y"]
    blind = load(text, gdl=2)
    assert blind.percepts(blind.initial, joint) == {"x": frozenset(), "y": frozenset()}


def test_random_perceives_nothing_and_strangers_neither() -> None:
    game = load(FRAME + "(role random) (legal random a) (<= (sees ?r (got ?m)) (does ?q ?m) (who ?r)) (who x) (who y)")
    assert list(game.percepts(game.initial, {"x": "go", "random": "a"})) == ["x"]


def test_judgements_are_made_without_a_move() -> None:
    # helper is used for the next state and for a judgement; there all `does` are false.
    game = load(
        "(role x) (legal x go) (<= (helper ?m) (does x ?m)) (<= (helper nothing) (role x)) (<= (next ?m) (helper ?m))"
        "(<= terminal (true go)) (<= (goal x 100) (helper nothing)) (<= (goal x 0) (helper stay))"
    )
    assert game.goals(game.initial) == {"x": (100,)}
    assert texts(game.next(game.initial, {"x": "go"})) == {"go", "nothing"}


def test_goal_and_terminal_may_use_percepts() -> None:
    game = load(
        "(role x) (legal x go) (init a) (<= (next b) (true a)) (<= (sees x end) (true b)) (<= terminal (sees x end))"
        "(<= (goal x 100) (sees x end)) (<= (goal x 0) (not (sees x end)))"
    )
    assert (game.is_terminal(game.initial), game.goals(game.initial)) == (False, {"x": (0,)})
    assert (game.is_terminal(after(game, "go")), game.goals(after(game, "go"))) == (True, {"x": (100,)})


def test_two_goal_values_or_none_are_told_as_they_are() -> None:
    game = load(FRAME + "(<= (goal x 30) (true over)) (role y) (legal y noop) (<= (goal y 5) (not (true over)))")
    assert game.goals(game.initial) == {"x": (100,), "y": (5,)}
    assert game.goals(after(game, "go noop")) == {"x": (30, 100), "y": ()}


@pytest.mark.parametrize("value", ["won", "1_0", "+5", "\N{ARABIC-INDIC DIGIT THREE}", "(f 5)", "5.0"])
def test_goals_are_plain_integers(value: str) -> None:
    game = load(FRAME.replace("100", value))
    with pytest.raises(diagnostics.GdlError, match="goal-not-integer"):
        game.goals(game.initial)


def test_stratified_only_when_ground() -> None:
    game = load(
        "(role x) (<= (legal x go) (true (left ?n)) (distinct ?n 0)) (init (left 3)) (succ 0 1) (succ 1 2) (succ 2 3)"
        "(<= (next (left ?m)) (true (left ?n)) (succ ?m ?n)) (<= terminal (true (left 0)))"
        "(<= (winning ?n) (succ ?m ?n) (not (winning ?m)))"
        "(<= (goal x 100) (true (left ?n)) (winning ?n)) (<= (goal x 0) (not (goal x 100)))"
    )
    assert [problem.code for problem in check.check(game.sheet.source).warnings] == ["ground-stratified"] * 2
    assert [game.goals(after(game, *["go"] * n)) for n in range(4)] == [{"x": (v,)} for v in (100, 0, 100, 0)]


@pytest.mark.parametrize("condition", ["", "(true (left 1))"])
def test_an_atom_that_is_neither_true_nor_false_is_an_error(condition: str) -> None:
    circle = f"(<= (legal x up) (not (legal x down)) {condition}) (<= (legal x down) (not (legal x up)) {condition})"
    sheet, _ = rulesheet.read(source.Source("sheet", FRAME + "(init (left 1))" + circle))  # not checked
    with pytest.raises(diagnostics.GdlError, match=r"\(legal x .*\) depends on its own negation.*negative-cycle"):
        interpreter.Interpreter(sheet).legal(frozenset({("left", "1")}))


def test_limits_of_an_evaluation_name_the_rule() -> None:
    digits = "".join(f"(digit {n})" for n in range(100))
    join = "(<= (legal x stay) (digit ?a) (digit ?b) (digit ?c) (digit ?d) (digit ?e) (not (five ?a ?b ?c ?d ?e)))"
    both = "(<= (five ?a ?b ?c ?d ?e) (digit ?a) (digit ?b) (digit ?c) (digit ?d) (digit ?e))"
    sheet = check.check(source.Source("sheet", FRAME + digits + "\n" + join + "\n" + both)).require_usable()
    with pytest.raises(diagnostics.GdlError, match=r"sheet:4:1: error: .*too many facts.*evaluation-limit"):
        interpreter.Interpreter(sheet, lambda: joins.Budget(facts=1_000))


def test_a_join_without_results_is_stopped_by_the_clock() -> None:
    digits = "".join(f"(digit {n})" for n in range(100))
    # Ten thousand million ways to bind the variables, and not one that the last literal lets pass.
    join = "(<= (legal x stay) (digit ?a) (digit ?b) (digit ?c) (digit ?d) (digit ?e) (distinct (f ?a ?e) (f ?a ?e)))"
    sheet = check.check(source.Source("sheet", FRAME + digits + join)).require_usable()
    with pytest.raises(diagnostics.GdlError, match=r"more than 0 s of work.*evaluation-limit"):
        interpreter.Interpreter(sheet, lambda: joins.Budget(seconds=0.2))


def test_roles_from_rules_must_be_names() -> None:
    text = (
        "(<= (role ?r) (who ?r)) (who a) (who (b 1)) (<= (legal ?r go) (role ?r)) (<= (goal ?r 1) (role ?r)) terminal"
    )
    sheet = check.check(source.Source("sheet", text)).require_usable()
    for use in (interpreter.Interpreter, interpreter.roles):
        with pytest.raises(diagnostics.GdlError, match="compound-role"):
            use(sheet)


def test_evaluating_again_gives_the_same_and_more_states_than_are_kept() -> None:
    text = FRAME + "(init (at 0)) (<= (next (at ?m)) (true (at ?n)) (succ ?n ?m))"
    game = load(text + "".join(f"(succ {n} {n + 1})" for n in range(100)))
    walk = [game.initial]
    for _ in range(90):
        walk.append(game.next(walk[-1], {"x": "go"}))
    assert [texts(state) for state in walk[1:]] == [{"over", f"(at {n + 1})"} for n in range(90)]
    assert all(game.legal(state) == {"x": ("go",)} for state in walk)


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
    game = load(FRAME + "(role y) (legal x jump) (legal y noop) (goal y 1)")
    with pytest.raises(diagnostics.GdlError, match=message.replace("?", r"\?")):
        transcript.joint_move(game, game.initial, typed)


def test_typed_moves_for_all_roles_or_for_those_that_choose() -> None:
    game = load(FRAME + "(role y) (legal x (go far)) (legal y noop) (goal y 1)")
    expected = {"x": ("go", "far"), "y": "noop"}
    assert transcript.joint_move(game, game.initial, "(go far)") == expected
    assert transcript.joint_move(game, game.initial, "(go far) noop") == expected


def test_nobody_moves_where_a_role_has_no_move() -> None:
    game = load(FRAME + "(role y) (<= (legal y noop) (true on)) (init on) (goal y 1)")
    stuck = after(game, "go noop")
    with pytest.raises(diagnostics.GdlError, match="y has no legal move"):
        transcript.joint_move(game, stuck, "go noop")
    told = list(transcript.random_match(load(FRAME + "(role y) (<= (legal y noop) (true on)) (goal y 1)"), seed=1))
    assert told == ["unplayable after 0 joint moves: no legal move for y"]


def test_a_match_told_in_words() -> None:
    game = load(library.text("kuhn_poker"))
    told = list(transcript.random_match(game, seed=1))
    assert told == list(transcript.random_match(game, seed=1))
    assert told[0].startswith("1. ")
    assert "end after" in told[-1]
    assert list(transcript.random_match(game, seed=1, max_steps=1))[-1] == "stopped after 1 joint moves"


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
    assert explain.why(load(WHY), typed, moves) == expected


def test_why_something_holds_of_a_move_that_also_holds_without_one() -> None:
    helper = "(<= (p now) (not (does x go)))\n(<= (p now) (does x go))\n(p always)\n(<= (legal x up) (p always))\n"
    game = load(FRAME + helper + "(<= (next late) (p now))")
    assert explain.why(game, "(p now)", ["go"]) == ["(p now)  (line 3)", "  (does x go)  (the move made)"]


def test_why_a_fluent_does_not_hold() -> None:
    assert explain.why(load(WHY), "(true (at 1))", [])[-1].startswith("  it is not in the state")


@pytest.mark.parametrize(
    ("typed", "moves", "message"),
    [
        ("(next (at 1))", [], "holds of a move, and none was given"),
        ("legal goal", [], "expected one atom, found 2"),
        ("(legal x ?m)", [], "variable"),
        ("(legal x", [], "never closed"),
        ("(legal x go)", ["fly"], "not legal"),
    ],
)
def test_questions_that_have_no_answer(typed: str, moves: list[str], message: str) -> None:
    with pytest.raises(diagnostics.GdlError, match=message):
        explain.why(load(WHY), typed, moves)


def test_a_long_derivation_is_cut() -> None:
    chain = "".join(f"(succ {n} {n + 1})" for n in range(1_000))
    game = load(FRAME + chain + "(number 0) (<= (number ?m) (number ?n) (succ ?n ?m)) (<= (legal x ?n) (number ?n))")
    told = explain.why(game, "(number 1000)", [])
    assert (len(told), told[-1]) == (401, "...")


def test_derivations_are_the_same_in_every_run() -> None:
    game = load(library.text("tictactoe"))
    lines = [
        explain.why(game, f"(legal {game.roles[0]} {values.text(move)})", [])
        for move in game.legal(game.initial)[game.roles[0]]
    ]
    again = load(library.text("tictactoe"))
    assert lines == [
        explain.why(again, f"(legal {again.roles[0]} {values.text(move)})", [])
        for move in again.legal(again.initial)[again.roles[0]]
    ]


# A naive evaluator, written independently: every rule is instantiated over all terms there are, stratum by stratum.

Model = dict[str, set[tuple[values.Value, ...]]]
NOWHERE = source.Span(source.Source("nowhere", ""), 0, 0)


def subterms(term: terms.Term) -> Iterator[values.Value]:
    if not any(terms.variables_in([term])):
        yield values.from_term(term)
    if isinstance(term, terms.Compound):
        for arg in term.args:
            yield from subterms(arg)


def ground_literal(literal: terms.Literal, binding: dict[str, values.Value], model: Model) -> bool:
    if isinstance(literal, terms.Or):
        return any(all(ground_literal(part, binding, model) for part in option) for option in literal.options)
    if isinstance(literal, terms.Distinct):
        left, right = (values.from_term(term, binding) for term in (literal.left, literal.right))
        return (left == right) == literal.equal
    atom = literal.atom if isinstance(literal, terms.Not) else literal
    holds = tuple(values.from_term(arg, binding) for arg in atom.args) in model.get(atom.name, set())
    return holds == isinstance(literal, terms.Atom)


def instances(rule: terms.Rule, domain: list[values.Value], model: Model) -> Iterator[tuple[values.Value, ...]]:
    names = sorted({v.name for term in terms.rule_terms(rule) for v in terms.variables_in([term])})
    for chosen in itertools.product(domain, repeat=len(names)):
        binding = dict(zip(names, chosen, strict=True))
        if all(ground_literal(literal, binding, model) for literal in rule.body):
            yield tuple(values.from_term(arg, binding) for arg in rule.head.args)


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
    name = draw(st.sampled_from([name for name, found in STRATUM.items() if found < below] or ["p0"]))
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
        known = sorted(safety.bound(body))
        choices = [*CONSTANTS, *(terms.Variable(variable, NOWHERE) for variable in known)]
        args = tuple(draw(st.sampled_from(choices)) for _ in range(RELATIONS[name]))
        place = source.Span(NOWHERE.source, number, number)  # rules of a sheet have different places
        rule = terms.Rule(terms.Atom(name, args, place), body, False, place)
        if not any(safety.unsafe_variables(rule)):
            rules.append(rule)
    return rules


def evaluated(rules: list[terms.Rule]) -> Model:
    tables = datalog.Program(rules).evaluate({}, joins.Budget(facts=100_000, seconds=60))
    return {name: table.known for (name, _), table in tables.items() if name in RELATIONS}


def nonempty(model: Mapping[str, set[Any]]) -> dict[str, set[Any]]:
    return {name: facts for name, facts in model.items() if facts}


@hypothesis.given(programs())
def test_the_evaluator_against_a_naive_one(rules: list[terms.Rule]) -> None:
    assert nonempty(evaluated(rules)) == nonempty(naive(rules, STRATUM))


@hypothesis.given(programs(nested=2), st.sampled_from([1, 3, 256]))
def test_rules_without_or_mean_the_same(rules: list[terms.Rule], few: int) -> None:
    with mock.patch.object(safety, "_FEW_ALTERNATIVES", few):
        plain = [part for rule in rules for part in safety.without_or(rule)]
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
            game = load(text)
            assert legal(game, game.initial)["x"] == expected


def test_too_many_alternatives_are_refused_with_the_rule() -> None:
    # No option binds the variable of the next one, so that none can stand alone.
    choices = "".join(f"(or (not (distinct ?v{n} ?v{n + 1})) (not (distinct ?v{n} (f ?v{n + 1}))))" for n in range(30))
    [problem] = check.check(source.Source("sheet", FRAME + f"(<= (legal x ?v0) {choices} (role ?v30))")).errors
    assert (problem.code, problem.span and problem.span.line) == ("evaluation-limit", 2)


@st.composite
def graphs_with_ends(draw: st.DrawFn) -> list[tuple[str, str]]:
    return draw(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef")), max_size=10))


@hypothesis.given(graphs_with_ends())
def test_the_alternating_fixpoint_solves_win_and_move_games(moves: list[tuple[str, str]]) -> None:
    """A position is won if a move leads to a lost one; where neither follows (a draw), nothing is defined."""
    won: set[str] = set()
    lost: set[str] = set()
    while True:  # backwards from the ends
        before = len(won) + len(lost)
        lost |= {p for p in "abcdef" if all(to in won for start, to in moves if start == p)}
        won |= {start for start, to in moves if to in lost}
        if before == len(won) + len(lost):
            break
    text = "".join(f"(move {start} {to})" for start, to in moves) + "(<= (won ?p) (move ?p ?q) (not (won ?q)))"
    sheet, _ = rulesheet.read(source.Source("sheet", text))
    program = datalog.Program(sheet.rules)
    if won | lost == set("abcdef"):
        assert program.evaluate({})["won", 1].known == {(position,) for position in won}
    else:
        with pytest.raises(datalog.UndefinedError) as caught:
            program.evaluate({})
        assert {fact[0] for _, fact in caught.value.atoms} == set("abcdef") - won - lost


@pytest.mark.parametrize("game", library.names())
def test_library_games_can_be_played(game: str) -> None:
    told = list(transcript.random_match(load(library.text(game)), seed=3, max_steps=3))
    assert told
