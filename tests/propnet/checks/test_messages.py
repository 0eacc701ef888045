"""Wording of messages that were once wrong: grammar, the right cause, the right file."""

import json
import pathlib

import pytest
from typer import testing

from gdlx import cli
from gdlx.propnet.checks import checker
from gdlx.propnet.common import atomic_files
from gdlx.propnet.datalog import explain, interpreter
from gdlx.propnet.io import cache
from gdlx.propnet.syntax import diagnostics, ground_terms, source
from gdlx.tests.helpers import support

FRAME = "(role r) (legal r go) (<= (next over) (does r go)) (<= terminal (true over))\n"


def _found(text: str) -> dict[str, str]:
    report = checker.check(source.Source("test.gdl", text))
    return {problem.code: problem.message for problem in (*report.errors, *report.warnings)}


@pytest.mark.parametrize(("what", "words"), [("atom", "in an atom"), ("joint action", "in a joint action")])
def test_the_article_fits(what: str, words: str) -> None:
    with pytest.raises(diagnostics.GdlError, match=words):
        ground_terms.from_text("(p ?x)", what)


def test_one_relation_depends_and_two_depend() -> None:
    one = _found(FRAME + "(goal r 50) (<= (p ?x) (q ?x) (not (p ?x))) (q 1) (<= (legal r stay) (p 1))")
    assert one["negative-cycle"] == "a ground atom depends on its own negation: (p 1)"
    two = _found(FRAME + "(goal r 50) (<= (p ?x) (q ?x) (not (s ?x))) (<= (s ?x) (p ?x)) (q 1) (<= (legal r a) (p 1))")
    assert two["negative-cycle"].startswith("ground atoms depend on their own negation: ")
    unused = _found(FRAME + "(goal r 50) (<= (p ?x) (q ?x) (not (p ?x))) (q 1)")
    assert unused["undecided"] == "`p`, which nothing uses, depends on its own negation"
    ground = _found(
        FRAME + "(goal r 50) (e 1 2) (<= (p ?x) (e ?x ?y) (not (p ?y))) (<= (legal r stay) (p 1))",
    )
    assert ground["ground-stratified"] == "`p` depends on its own negation, though no ground atom does"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("1234567890123", "has more than 9 digits"),
        ("-9999999999", "9 digits"),
        ("1.5", "is not an integer"),
        ("x", "not"),
    ],
)
def test_a_goal_that_is_too_large_is_still_an_integer(value: str, words: str) -> None:
    game = interpreter.Interpreter(support.read(FRAME + f"(goal r {value})"))
    with pytest.raises(diagnostics.GdlError, match=words):
        game.goals(game.initial)


@pytest.mark.parametrize(
    ("value", "number"), [("000000000000050", 50), ("-000000000007", -7), ("999999999", 999999999)]
)
def test_leading_zeros_are_no_digits(value: str, number: int) -> None:
    assert ground_terms.goal_value(value, "test.gdl") == number


def test_why_a_move_was_not_made() -> None:
    game = interpreter.Interpreter(support.read(FRAME + "(goal r 50) (legal r stay)"))
    with pytest.raises(diagnostics.GdlError, match="`does` depends on a move, and none was passed"):
        explain.explain_atom(game, "(does r go)", [])
    assert explain.explain_atom(game, "(does r go)", ["go"]) == ["(does r go)  (the move made)"]
    assert explain.explain_atom(game, "(does r stay)", ["go"]) == [
        "(does r stay) does not hold",
        "  it is not the move that was made; ask for the (legal ..) to see whether it could be",
    ]


def test_chance_alone_is_no_player() -> None:
    text = FRAME.replace(" r ", " random ").replace("(role r)", "(role random)") + "(goal random 50)"
    assert "the only role is `random`" in _found(text)["missing-role"]
    assert "missing-role" not in _found(FRAME + "(role random) (legal random a) (goal r 50)")


INFIX = """// a game of one move
Role(x) // who plays
LEGAL(R, go) :- Role(R) & NOT true(over). // everybody
Next(over) :- does(R, go).
Terminal :- true(over).
goal(Role, 100) :- role(Role) & Distinct(Role, y) & Or(true(over), NOT(true(over))).
"""


def test_infix_keywords_may_be_capitalised_where_they_are_no_variables() -> None:
    sheet = support.read(INFIX)
    game = interpreter.Interpreter(sheet)
    assert game.legal(game.initial) == {"x": ("go",)}
    after = game.next(game.initial, {"x": "go"})
    assert game.is_terminal(after)
    assert game.goals(after) == {"x": (100,)}


def test_a_file_that_cannot_be_written_is_named(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In some folders even removing a file that does not exist is refused."""

    def refuse(self: pathlib.Path, missing_ok: bool = False) -> None:
        raise PermissionError(1, "Operation not permitted", str(self))

    monkeypatch.setattr(pathlib.Path, "unlink", refuse)
    with pytest.raises(OSError, match=r"net\.npz") as caught:
        atomic_files.write_atomically(tmp_path / "missing" / "net.npz", b"")
    assert ".tmp" not in str(caught.value)


def test_a_relative_cache_folder_is_ignored(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.delenv("GDLX_CACHE", raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    assert cache.cache_dir() == pathlib.Path.home() / ".cache" / "gdlx"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.cache_dir() == tmp_path / "gdlx"


def test_compile_uses_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.setenv("GDLX_CACHE", str(tmp_path))

    def compile_game(*options: str) -> dict[str, object]:
        ran = testing.CliRunner().invoke(cli.app, ["--json", "compile", "kuhn_poker", *options])
        assert ran.exit_code == 0, ran.output
        result: dict[str, object] = json.loads(ran.stdout)
        return result

    first, second, third = compile_game(), compile_game(), compile_game("--passes")
    assert [result["cached"] for result in (first, second, third)] == [False, True, False]
    assert first["gates"] == second["gates"] == third["gates"]
    assert first["passes"]
    assert not second["passes"]
