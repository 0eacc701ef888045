"""Building propnets from ground rules: recursion through the state, allowed dependencies, and numbering."""

import itertools
import pathlib

import pytest

from gdlx.propnet.checks import checker
from gdlx.propnet.circuits import build, compiler, propnet
from gdlx.propnet.grounding import ground
from gdlx.propnet.io import files
from gdlx.propnet.syntax import diagnostics, rulesheet, source
from gdlx.tests.helpers import support

# Doors between rooms open and shut; who gets where from room 1 is a least fixpoint, over cycles of rooms too.
EDGES = ((1, 2), (2, 3), (3, 1), (3, 4), (4, 2), (4, 5))
DOORS = (
    "(role r)"
    + "".join(f"(door {a} {b})" for a, b in EDGES)
    + """
    (<= (legal r (turn ?x ?y)) (door ?x ?y))
    (<= (next (open ?x ?y)) (true (open ?x ?y)) (not (does r (turn ?x ?y))))
    (<= (next (open ?x ?y)) (does r (turn ?x ?y)) (not (true (open ?x ?y))))
    (<= (sees r (lit ?x)) (reached ?x))
    (<= terminal (reached 5) (reached 3))
    (<= (goal r 100) (reached 5))
    (<= (goal r 0) (not (reached 5)))
"""
)
RECURSIONS = {
    "linear": "(reached 1) (<= (reached ?y) (reached ?x) (true (open ?x ?y)))",
    "pairs": """
        (<= (path ?x ?y) (true (open ?x ?y)))
        (<= (path ?x ?z) (path ?x ?y) (path ?y ?z))
        (reached 1) (<= (reached ?y) (path 1 ?y))""",
    "two relations": """
        (even 1) (<= (odd ?y) (even ?x) (true (open ?x ?y))) (<= (even ?y) (odd ?x) (true (open ?x ?y)))
        (<= (reached ?x) (even ?x)) (<= (reached ?x) (odd ?x))""",
    "one on top of the other, inverted": """
        (near 1) (<= (near ?y) (near ?x) (true (open ?x ?y)))
        (<= (far ?x) (door ?x ?y) (not (near ?x))) (<= (far ?x) (far ?y) (door ?x ?y) (not (near ?x)))
        (<= (reached 5) (near 5)) (<= (reached 3) (not (far 3)))""",
    "after the move": """
        (reached 1) (<= (reached ?y) (reached ?x) (true (open ?x ?y)))
        (wet 1) (<= (wet ?y) (wet ?x) (true (open ?x ?y)) (not (does r (turn ?x ?y))))
        (<= (wet ?y) (wet ?x) (does r (turn ?x ?y))) (<= (sees r (wet ?x)) (wet ?x))""",
}


def doors(name: str) -> rulesheet.Rulesheet:
    return support.read(DOORS + RECURSIONS[name])


def _built(sheet: rulesheet.Rulesheet) -> propnet.PropNet:
    return build.build(sheet, ground.ground(sheet))


@pytest.fixture(params=["unrolled", "iterated"])
def unrolled(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    if request.param == "iterated":
        monkeypatch.setattr(build, "_UNROLLED_GATES", 0)
    return bool(request.param == "unrolled")


@pytest.mark.parametrize("name", RECURSIONS)
def test_recursion_through_state_is_a_least_fixpoint(name: str, unrolled: bool, tmp_path: pathlib.Path) -> None:
    sheet = doors(name)
    propnet = _built(sheet)
    assert (len(propnet.feedback) == 0) == unrolled
    simplified = compiler.simplify(propnet)
    count = support.RulesAndPropnet(sheet, propnet).compare_all(100)
    assert count is not None
    assert count > 30
    for suffix in ("npz", "json"):
        files.save_propnet(simplified, tmp_path / f"net.{suffix}")
        again = files.load_propnet(tmp_path / f"net.{suffix}")
        assert support.RulesAndPropnet(sheet, again).compare_all(100) == count


def test_a_board_with_many_circles(unrolled: bool) -> None:
    """Who connects two sides of a 4x4 board of hexagons."""
    cells = list(itertools.product(range(4), repeat=2))
    near = [(a, b) for a in cells for b in cells if (b[0] - a[0], b[1] - a[1]) in {(0, 1), (1, 0), (1, -1)}]
    facts = "".join(f"(cell {x} {y})" for x, y in cells)
    facts += "".join(f"(near {a} {b} {c} {d}) (near {c} {d} {a} {b})" for (a, b), (c, d) in near)
    sheet = support.read(f"""(role red) (role blue) (init (control red)) {facts}
        (<= (taken ?x ?y) (true (stone ?p ?x ?y)))
        (<= (legal ?p (put ?x ?y)) (true (control ?p)) (cell ?x ?y) (not (taken ?x ?y)))
        (<= (legal ?p noop) (role ?p) (not (true (control ?p))))
        (<= (next (stone ?p ?x ?y)) (does ?p (put ?x ?y))) (<= (next (stone ?p ?x ?y)) (true (stone ?p ?x ?y)))
        (<= (next (control red)) (true (control blue))) (<= (next (control blue)) (true (control red)))
        (<= (joined 0 ?y) (true (stone red 0 ?y)))
        (<= (joined ?x ?y) (joined ?a ?b) (near ?a ?b ?x ?y) (true (stone red ?x ?y)))
        (<= red_wins (joined 3 ?y))
        (<= free (cell ?x ?y) (not (taken ?x ?y)))
        (<= terminal red_wins) (<= terminal (not free))
        (<= (goal red 100) red_wins) (<= (goal red 0) (not red_wins))
        (<= (goal blue 0) red_wins) (<= (goal blue 100) (not red_wins))""")
    propnet = compiler.compile_rulesheet(sheet)
    assert (len(propnet.feedback) == 0) == unrolled
    support.RulesAndPropnet(sheet, propnet).compare_random(300)


def test_a_circle_that_supports_only_itself_is_false(unrolled: bool) -> None:
    sheet = support.read("""(role r) (legal r a) (init x) (<= (next x) (true x)) (<= (next y) (does r a))
        (<= p (true x) q) (<= q (true x) p) (<= q (true x) (true y) p) (<= (legal r b) p)
        (<= terminal (true y) (true x)) (<= (goal r 100) (not p)) (<= (goal r 0) q)""")
    propnet = compiler.compile_rulesheet(sheet)
    assert propnet.roles[0].moves == ("a",)
    assert support.RulesAndPropnet(sheet, propnet).compare_all(10) == 2


def test_a_rule_that_needs_its_own_head_adds_nothing() -> None:
    sheet = support.read("""(role r) (legal r a) (init x) (<= (next y) (true x)) (<= (next y) (next y) (true y))
        (<= terminal (true y)) (goal r 100)""")
    assert support.RulesAndPropnet(sheet, _built(sheet)).compare_all(10) == 2


FRAME = "(role r) (legal r a) (init x) (<= (next x) (true x)) (<= (next y) (does r a)) (<= terminal (true y)) "


def _unchecked(text: str) -> rulesheet.Rulesheet:
    """A sheet that is compiled without a check, as if the check could not decide."""
    return rulesheet.parse_rulesheet(source.Source("test.gdl", text))[0]


def _code(sheet: rulesheet.Rulesheet) -> str:
    with pytest.raises(diagnostics.GdlError) as caught:
        compiler.compile_rulesheet(sheet)
    [problem] = caught.value.diagnostics
    assert problem.hint
    return f"{problem.code}: {problem.message}"


@pytest.mark.parametrize(
    ("rules", "names"),
    [
        ("(<= p (true x) (not q)) (<= q (true x) (not p)) (<= (goal r 100) p)", "pq"),
        ("(<= p (true x) (not p)) (<= (goal r 100) p)", "p"),
        ("(<= (p ?a) (e ?a ?b) (true x) (not (p ?b))) (e 1 2) (e 2 3) (e 3 1) (<= (goal r 100) (p 1))", "p"),
        ("(<= p (true x) q) (<= q s) (<= s (true y) (not p)) (<= (goal r 100) p)", "sp"),
    ],
)
def test_a_ground_negative_circle_is_an_error(rules: str, names: str) -> None:
    assert [problem.code for problem in checker.check(source.Source("a.gdl", FRAME + rules)).errors] == [
        "negative-cycle"
    ]
    message = _code(_unchecked(FRAME + rules))
    assert message.startswith("negative-cycle: ground atoms of `")
    assert {name for name in "pqs" if f"`{name}`" in message} == set(names)


@pytest.mark.parametrize(
    "rules",
    [
        # a relation that is circular, though no ground atom is: in the first state, in every state, in goals
        "(<= (win ?a) (e ?a ?b) (not (win ?b))) (<= (init (won ?a)) (win ?a)) (<= (goal r 100) (true (won 1)))",
        "(<= (win ?a) (e ?a ?b) (true x) (not (win ?b))) (<= (goal r 100) (win 1)) (<= (goal r 0) (win 2))",
        "(<= (goal r 100) (true y)) (<= (goal r 0) (not (goal r 100)))",
    ],
)
def test_sheets_that_are_stratified_once_ground_compile(rules: str) -> None:
    sheet = support.read(
        f"{FRAME} {rules} (e 1 2) (e 2 3) (e 3 4) (e 1 3) (<= (next (won ?a)) (true (won ?a)) (e ?a 4))"
    )
    support.RulesAndPropnet(sheet, _built(sheet)).compare_all(10)
    assert support.RulesAndPropnet(sheet, compiler.compile_rulesheet(sheet)).compare_all(10) == 2


@pytest.mark.parametrize(
    ("rule", "what"),
    [
        ("(<= (legal r b) (does r a)) (goal r 50)", "(legal r ..)"),
        ("(<= (legal r b) (not (does r a))) (goal r 50)", "(legal r ..)"),
        ("(<= (goal r 100) (does r a)) (goal r 50)", "(goal r ..)"),
        ("(<= terminal (moved ?m)) (<= (moved ?m) (does r ?m)) (goal r 50)", "terminal"),
        # Every role makes a move: not even that may be used, because outputs of a state are evaluated before the move.
        ("(<= (goal r 100) (not (does r a)) (not (does r b)) (not (does r c))) (legal r b) (legal r c)", "(goal r ..)"),
    ],
)
def test_judging_by_the_move_being_made_is_an_error(rule: str, what: str) -> None:
    assert _code(_unchecked(FRAME + rule)) == f"depends-on-does: {what} depends on the move being made"


def test_judging_by_a_move_through_recursion_is_an_error(unrolled: bool) -> None:
    text = DOORS + RECURSIONS["after the move"] + "(<= (legal r stop) (wet 4))"
    assert _code(_unchecked(text)) == "depends-on-does: (legal r ..) depends on the move being made"


@pytest.mark.parametrize(
    "rule",
    [
        "(<= (goal r 100) (not (true x)) (does r a)) (<= (goal r 50) (true x))",  # x is always true
        "(<= (goal r 100) (does r b)) (goal r 50)",  # b is never legal
        "(<= (goal r 100) (does r a)) (<= (goal r 100) (not (does r a)))",
    ],
)
def test_a_dependence_on_moves_that_folds_away_is_none(rule: str) -> None:
    sheet = _unchecked(FRAME + rule)
    propnet = compiler.compile_rulesheet(sheet)
    support.RulesAndPropnet(sheet, propnet).compare_all(10)


def test_percepts_of_the_state_after_and_of_legal_moves() -> None:
    sheet = support.read("""(role r) (role s) (init (n 1)) (succ 1 2) (succ 2 3) (succ 3 1)
        (<= (legal r (add ?k)) (succ ?k ?l) (not (true (n ?k)))) (legal s look) (legal s pass)
        (<= (next (n ?k)) (does r (add ?k))) (<= (next (n ?l)) (true (n ?k)) (succ ?k ?l))
        (<= (sees s (now ?k)) (does s look) (next (n ?k))) (<= (sees s (could ?m)) (legal r ?m))
        (<= (sees r (both ?k)) (next (n ?k)) (true (n ?k)) (not (legal r (add ?k))))
        (<= terminal (true (n 1)) (true (n 2)) (true (n 3))) (goal r 50) (goal s 50)""")
    for compiled in (_built(sheet), compiler.compile_rulesheet(sheet)):
        assert support.RulesAndPropnet(sheet, compiled).compare_all(100) == 6


def test_goals_and_the_end_may_use_percepts_of_the_state() -> None:
    """terminal and goal may use a (sees ..) that does not depend on a move."""
    sheet = support.read("""(role r) (init (n 1)) (succ 1 2) (succ 2 3) (legal r a) (legal r b)
        (<= (next (n ?l)) (true (n ?k)) (succ ?k ?l)) (<= (sees r (at ?k)) (true (n ?k)))
        (<= terminal (sees r (at 3))) (<= (goal r 100) (sees r (at 3))) (<= (goal r 0) (not (sees r (at 3))))""")
    assert support.RulesAndPropnet(sheet, compiler.compile_rulesheet(sheet)).compare_all(10) == 3


def test_without_percepts_of_its_own_a_sheet_shows_every_move() -> None:
    text = "(role b) (role a) (legal a x) (legal b y) (legal b z) (<= (next e) (does a x)) (<= terminal (true e))"
    sheet = support.read(text + "(goal a 50) (goal b 50)")
    propnet = compiler.compile_rulesheet(sheet)
    everything = ("(does a x)", "(does b y)", "(does b z)")
    assert [role.percepts for role in propnet.roles] == [everything, everything]
    assert support.RulesAndPropnet(sheet, propnet).compare_all(10) == 2
    blind = support.read(text + "(goal a 50) (goal b 50)", gdl=2)
    propnet = compiler.compile_rulesheet(blind)
    assert [role.percepts for role in propnet.roles] == [(), ()]
    assert support.RulesAndPropnet(blind, propnet).compare_all(10) == 2


def test_roles_keep_the_order_of_the_file_and_all_else_is_sorted() -> None:
    sheet = support.read("""(role zoe) (role random) (role adam)
        (legal zoe (m 10)) (legal zoe (m 9)) (legal zoe b) (legal adam a) (legal random z) (legal random y)
        (<= (next (f ?m)) (does zoe ?m)) (<= (next (f ?m)) (does random ?m)) (<= terminal (true (f ?m)))
        (<= (sees zoe ?m) (does random ?m)) (goal zoe 100) (goal adam 0) (goal random 7)""")
    propnet = compiler.compile_rulesheet(sheet)
    assert [role.name for role in propnet.roles] == ["zoe", "random", "adam"]
    assert [role.name for role in propnet.players] == ["zoe", "adam"]
    assert propnet.roles[0].moves == ("(m 10)", "(m 9)", "b")
    assert propnet.roles[0].percepts == ("y", "z")
    assert propnet.fluents == ("(f (m 10))", "(f (m 9))", "(f b)", "(f y)", "(f z)")
    assert propnet.roles[1].moves == ("y", "z")
    assert support.RulesAndPropnet(sheet, propnet).compare_all(10) == 7


def test_goals_of_random_are_ignored() -> None:
    sheet = support.read(FRAME + "(role random) (legal random a) (goal r 5) (goal random 100) (goal random 0)")
    propnet = compiler.compile_rulesheet(sheet)
    assert [role.goal_values for role in propnet.roles] == [(5,), ()]
    assert [role.percepts for role in propnet.roles] == [(), ()]


def test_one_goal_value_written_in_two_ways() -> None:
    sheet = support.read(FRAME + "(<= (goal r 050) (true y)) (<= (goal r 50) (not (true y))) (<= (goal r 00) (true z))")
    propnet = _built(sheet)
    assert propnet.roles[0].goal_values in ((0, 50), (50,))
    assert support.RulesAndPropnet(sheet, compiler.compile_rulesheet(sheet)).compare_all(10) == 2


def test_a_goal_that_is_no_integer_is_an_error() -> None:
    with pytest.raises(diagnostics.GdlError, match="goal value high is not an integer"):
        compiler.compile_rulesheet(_unchecked(FRAME + "(goal r high)"))


def test_moves_and_fluents_of_a_role_that_is_none_are_left_out() -> None:
    sheet = _unchecked(FRAME + "(goal r 50) (legal ghost boo) (<= (next z) (does ghost boo)) (goal ghost 3)")
    propnet = compiler.compile_rulesheet(sheet)
    assert [role.name for role in propnet.roles] == ["r"]
    assert support.RulesAndPropnet(sheet, propnet).compare_all(10) == 2


def test_a_role_without_moves_ends_play() -> None:
    sheet = support.read(FRAME + "(role idle) (goal r 50) (goal idle 50)")
    propnet = compiler.compile_rulesheet(sheet)
    assert propnet.roles[1].moves == ()
    assert support.RulesAndPropnet(sheet, propnet).compare_all(10) == 1
