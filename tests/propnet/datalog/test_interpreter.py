"""The interpreter, which other tests use as a reference: states, moves, percepts and goals."""

from collections.abc import Callable

import pytest

from gdlx.propnet import library
from gdlx.propnet.checks import checker
from gdlx.propnet.circuits import compiler
from gdlx.propnet.datalog import explain, interpreter, joins, stratify, transcript
from gdlx.propnet.syntax import diagnostics, rulesheet, source, terms
from gdlx.tests.helpers import playing, support


def test_roles_keep_the_order_of_the_file() -> None:
    game = playing.load_interpreter(playing.FRAME + "(role random) (role a) (legal random go) (legal a go) (goal a 0)")
    assert game.roles == ("x", "random", "a") == stratify.role_names(game.sheet)
    assert game.players == ("x", "a")
    assert set(game.goals(game.initial)) == {"x", "a"}


def test_percepts_belong_to_the_state_before_the_move() -> None:
    game = playing.load_interpreter(
        playing.FRAME + "(init (room dark)) (<= (next (room lit)) (does x go)) (<= (sees x (was ?r)) (true (room ?r)))"
        "(<= (sees x (did ?m)) (does x ?m)) (<= (sees x (now ?r)) (next (room ?r))) (<= (sees x (may ?m)) (legal x ?m))"
    )
    state, joint = game.initial, {"x": "go"}
    assert playing.texts(game.percepts(state, joint)["x"]) == {"(was dark)", "(did go)", "(now lit)", "(may go)"}
    assert playing.texts(game.percepts(game.next(state, joint), joint)["x"]) >= {"(was lit)"}


def test_without_sees_everybody_perceives_the_joint_move() -> None:
    text = playing.FRAME + "(role y) (legal y (say hi)) (goal y 0)"
    game = playing.load_interpreter(text)
    joint: interpreter.JointAction = {"x": "go", "y": ("say", "hi")}
    assert playing.texts(game.percepts(game.initial, joint)["x"]) == {"(does x go)", "(does y (say hi))"}
    assert game.percepts(game.initial, joint)["x"] == game.percepts(game.initial, joint)["y"]
    blind = playing.load_interpreter(text, gdl=2)
    assert blind.percepts(blind.initial, joint) == {"x": frozenset(), "y": frozenset()}


def test_random_perceives_nothing_and_strangers_neither() -> None:
    game = playing.load_interpreter(
        playing.FRAME + "(role random) (legal random a) (<= (sees ?r (got ?m)) (does ?q ?m) (who ?r)) (who x) (who y)"
    )
    assert list(game.percepts(game.initial, {"x": "go", "random": "a"})) == ["x"]


def test_judgements_are_made_without_a_move() -> None:
    # helper is used for the next state and for a state-only relation, where all `does` are false.
    game = playing.load_interpreter(
        "(role x) (legal x go) (<= (helper ?m) (does x ?m)) (<= (helper nothing) (role x)) (<= (next ?m) (helper ?m))"
        "(<= terminal (true go)) (<= (goal x 100) (helper nothing)) (<= (goal x 0) (helper stay))"
    )
    assert game.goals(game.initial) == {"x": (100,)}
    assert playing.texts(game.next(game.initial, {"x": "go"})) == {"go", "nothing"}


def test_goal_and_terminal_may_use_percepts() -> None:
    game = playing.load_interpreter(
        "(role x) (legal x go) (init a) (<= (next b) (true a)) (<= (sees x end) (true b)) (<= terminal (sees x end))"
        "(<= (goal x 100) (sees x end)) (<= (goal x 0) (not (sees x end)))"
    )
    assert (game.is_terminal(game.initial), game.goals(game.initial)) == (False, {"x": (0,)})
    assert (game.is_terminal(playing.play_moves(game, "go")), game.goals(playing.play_moves(game, "go"))) == (
        True,
        {"x": (100,)},
    )


def test_two_goal_values_or_none_are_told_as_they_are() -> None:
    game = playing.load_interpreter(
        playing.FRAME + "(<= (goal x 30) (true over)) (role y) (legal y noop) (<= (goal y 5) (not (true over)))"
    )
    assert game.goals(game.initial) == {"x": (100,), "y": (5,)}
    assert game.goals(playing.play_moves(game, "go noop")) == {"x": (30, 100), "y": ()}


@pytest.mark.parametrize("value", ["won", "1_0", "+5", "\N{ARABIC-INDIC DIGIT THREE}", "(f 5)", "5.0"])
def test_goals_are_plain_integers(value: str) -> None:
    game = playing.load_interpreter(playing.FRAME.replace("100", value))
    with pytest.raises(diagnostics.GdlError, match="goal-not-integer"):
        game.goals(game.initial)


def test_stratified_only_when_ground() -> None:
    game = playing.load_interpreter(
        "(role x) (<= (legal x go) (true (left ?n)) (distinct ?n 0)) (init (left 3)) (succ 0 1) (succ 1 2) (succ 2 3)"
        "(<= (next (left ?m)) (true (left ?n)) (succ ?m ?n)) (<= terminal (true (left 0)))"
        "(<= (winning ?n) (succ ?m ?n) (not (winning ?m)))"
        "(<= (goal x 100) (true (left ?n)) (winning ?n)) (<= (goal x 0) (not (goal x 100)))"
    )
    assert [problem.code for problem in checker.check(game.sheet.source).warnings] == ["ground-stratified"] * 2
    assert [game.goals(playing.play_moves(game, *["go"] * n)) for n in range(4)] == [
        {"x": (v,)} for v in (100, 0, 100, 0)
    ]


@pytest.mark.parametrize("condition", ["", "(true (left 1))"])
def test_an_atom_that_is_neither_true_nor_false_is_an_error(condition: str) -> None:
    circle = f"(<= (legal x up) (not (legal x down)) {condition}) (<= (legal x down) (not (legal x up)) {condition})"
    sheet, _ = rulesheet.parse_rulesheet(
        source.Source("sheet", playing.FRAME + "(init (left 1))" + circle)
    )  # not checked
    with pytest.raises(diagnostics.GdlError, match=r"\(legal x .*\) depends on its own negation.*negative-cycle"):
        interpreter.Interpreter(sheet).legal(frozenset({("left", "1")}))


def test_limits_of_an_evaluation_name_the_rule() -> None:
    digits = "".join(f"(digit {n})" for n in range(100))
    join = "(<= (legal x stay) (digit ?a) (digit ?b) (digit ?c) (digit ?d) (digit ?e) (not (five ?a ?b ?c ?d ?e)))"
    both = "(<= (five ?a ?b ?c ?d ?e) (digit ?a) (digit ?b) (digit ?c) (digit ?d) (digit ?e))"
    sheet = checker.check(source.Source("sheet", playing.FRAME + digits + "\n" + join + "\n" + both)).require_usable()
    with pytest.raises(diagnostics.GdlError, match=r"sheet:4:1: error: .*too many facts.*evaluation-limit"):
        interpreter.Interpreter(sheet, lambda: joins.Budget(facts=1_000))


def test_a_join_without_results_is_stopped_by_the_clock() -> None:
    digits = "".join(f"(digit {n})" for n in range(100))
    # Ten thousand million ways to bind the variables, and not one that the last literal lets pass.
    join = "(<= (legal x stay) (digit ?a) (digit ?b) (digit ?c) (digit ?d) (digit ?e) (distinct (f ?a ?e) (f ?a ?e)))"
    sheet = checker.check(source.Source("sheet", playing.FRAME + digits + join)).require_usable()
    with pytest.raises(diagnostics.GdlError, match=r"more than 0 s of work.*evaluation-limit"):
        interpreter.Interpreter(sheet, lambda: joins.Budget(seconds=0.2))


def test_roles_from_rules_must_be_names() -> None:
    text = (
        "(<= (role ?r) (who ?r)) (who a) (who (b 1)) (<= (legal ?r go) (role ?r)) (<= (goal ?r 1) (role ?r)) terminal"
    )
    sheet = checker.check(source.Source("sheet", text)).require_usable()
    for use in (interpreter.Interpreter, stratify.role_names):
        with pytest.raises(diagnostics.GdlError, match="compound-role"):
            use(sheet)


def test_evaluating_again_gives_the_same_and_more_states_than_are_kept() -> None:
    text = playing.FRAME + "(init (at 0)) (<= (next (at ?m)) (true (at ?n)) (succ ?n ?m))"
    game = playing.load_interpreter(text + "".join(f"(succ {n} {n + 1})" for n in range(100)))
    walk = [game.initial]
    for _ in range(90):
        walk.append(game.next(walk[-1], {"x": "go"}))
    assert [playing.texts(state) for state in walk[1:]] == [{"over", f"(at {n + 1})"} for n in range(90)]
    assert all(game.legal(state) == {"x": ("go",)} for state in walk)


@pytest.mark.parametrize("game", library.names())
def test_library_games_can_be_played(game: str) -> None:
    lines = list(transcript.random_match(playing.load_interpreter(library.text(game)), seed=3, max_steps=3))
    assert lines


_CLEARS_BLOCKS = """(role a) (role b) (node 1) (node 2) (init (blocked a 1)) (init (at 0)) (succ 0 1) (succ 1 2)
    (<= (legal ?r (clear ?n)) (true (blocked ?r ?n)))
    (<= (legal ?r pass) (role ?r) (not (true (blocked ?r ?n))))
    (<= (legal b (block ?n ?n)) (node ?n))
    (<= (next (at ?m)) (true (at ?n)) (succ ?n ?m))
    (<= (next (blocked ?r ?n)) (true (blocked ?r ?n)) (not (does ?r (clear ?n))))
    (<= (next (blocked a ?n)) (does b (block ?n ?n)))
    (<= (next quiet) (not (does ?r (block ?n ?n))))
    (<= (next same) (or (true (at 0)) (not (does ?r (clear ?n)))))
    (<= terminal (true (at 2)))
    (<= (goal ?r 100) (role ?r) (not (true (blocked ?r ?x))) (not (cut ?x1 ?x1)))
    (<= (cut ?m ?n) (node ?m) (node ?n) (distinct ?m ?n))
    (<= (goal ?r 0) (true (blocked ?r ?x)))"""


def test_a_variable_of_a_single_not_means_that_there_is_none() -> None:
    sheet = checker.check(source.Source("sheet", _CLEARS_BLOCKS)).require_usable()
    game = interpreter.Interpreter(sheet)
    legal = game.legal(game.initial)
    assert legal["a"] == (("clear", "1"),)
    assert "pass" in legal["b"]
    assert "quiet" in game.next(game.initial, {"a": ("clear", "1"), "b": "pass"})
    assert "quiet" not in game.next(game.initial, {"a": ("clear", "1"), "b": ("block", "2", "2")})
    portable = _CLEARS_BLOCKS.replace(
        "(not (true (blocked ?r ?n))))", "(not (some ?r))) (<= (some ?r) (true (blocked ?r ?n)))"
    )
    other = interpreter.Interpreter(checker.check(source.Source("sheet", portable)).require_usable())
    assert other.legal(other.initial) == legal
    comparison = support.RulesAndPropnet(sheet, compiler.compile_rulesheet(sheet))
    assert (comparison.compare_all(10) or 0) > 5


def test_a_variable_of_a_single_not_is_explained() -> None:
    game = playing.load_interpreter(_CLEARS_BLOCKS)
    assert explain.explain_atom(game, "(legal b pass)", [])[-1].strip() == (
        "(not (true (blocked b ?n)))  (does not hold)"
    )
    assert "    fails at: (not (true (blocked ?r ?n)))" in explain.explain_atom(game, "(legal a pass)", [])


_COUNTS_TO_THREE = """(role x) (init (at 0)) (succ 0 1) (succ 1 2) (succ 2 3) (legal x go) (legal x stay)
    (<= (next (at ?n)) (true (at ?m)) (does x go) (succ ?m ?n)) (<= (next (at ?n)) (true (at ?n)) (does x stay))
    (<= (sees x moved) (does x go)) (<= over (true (at 3))) (<= terminal over) (<= (goal x 100) over)
    (<= (goal x 0) (not over))"""


def _without(relation: str) -> Callable[[rulesheet.Rulesheet], tuple[terms.Rule, ...]]:
    """A wrong analysis of what is needed: it misses one relation."""
    right = stratify.needed_rules
    return lambda sheet: tuple(rule for rule in right(sheet) if rule.head.name != relation)


@pytest.mark.parametrize(
    ("analysis", "wrong"),
    [
        *(("needed_rules", _without(relation)) for relation in ("over", "sees", "succ", "next", "goal")),
        ("split_into_stages", lambda rules: stratify.Stages(rules[:-1], (), ())),
        ("role_names", lambda sheet: ("y",)),
    ],
)
def test_an_error_in_the_analysis_of_the_compiler_shows(
    monkeypatch: pytest.MonkeyPatch, analysis: str, wrong: Callable[..., object]
) -> None:
    sheet = checker.check(source.Source("sheet", _COUNTS_TO_THREE)).require_usable()
    assert support.RulesAndPropnet(sheet, compiler.compile_rulesheet(sheet)).compare_all(10) == 4
    monkeypatch.setattr(stratify, analysis, wrong)
    wrong_propnet = compiler.compile_rulesheet(sheet)
    with pytest.raises(AssertionError):
        support.RulesAndPropnet(sheet, wrong_propnet).compare_all(10)
