"""The commands compile, info, check and show: output, files and errors."""

import json
import pathlib
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

from gdlx import cli
from gdlx.propnet import games
from gdlx.propnet.checks import unplayable
from gdlx.propnet.circuits import compiler, measure
from gdlx.propnet.io import files, ggp_json
from gdlx.propnet.simulate import straight_line
from gdlx.tests.helpers import sheets, support

BOMB = "(role r) (legal r a) (<= (next x) (does r a)) (<= terminal (true x)) (goal r 100)\n" + "".join(
    f"(n {n})" for n in range(50)
)
BOMB += "\n(<= (legal r (f ?a ?b ?c ?d)) (n ?a) (n ?b) (n ?c) (n ?d))\n"
STUCK = """(role r) (legal r a) (init x) (<= (next y) (true x)) (<= terminal (true z)) (goal r 50)
    (<= (next z) (true y) (does r b)) (<= (legal r b) (true w)) (<= (next w) (true x) (true y))"""
CIRCLE = "(role r) (legal r a) (init x) (<= p (true x) (not p)) (<= terminal p) (goal r 50) (<= (next x) (true x))"


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """Change to a folder with some rulesheets."""
    monkeypatch.chdir(tmp_path)
    for name, text in {"bomb": BOMB, "stuck": STUCK, "circle": CIRCLE, "broken": "(role r"}.items():
        (tmp_path / f"{name}.gdl").write_text(text)
    return tmp_path


def answer(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> Any:
    assert cli.main([*arguments, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_info_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    result = answer(capsys, "info", "kuhn_poker")
    propnet = compiler.compile_rulesheet(games.load_rulesheet("kuhn_poker"))
    assert set(result) >= {"game", "roles", "moves", "percepts", "gates", "operations", "depth", "registers"}
    assert result["game"] == "kuhn_poker"
    assert result["roles"] == [role.name for role in propnet.roles]
    assert result["moves"] == {role.name: len(role.moves) for role in propnet.roles}
    assert result["percepts"] == {role.name: len(role.percepts) for role in propnet.players}
    assert (result["gates"], result["registers"], result["depth"]) == (
        propnet.gates,
        len(propnet.initial),
        propnet.depth,
    )
    assert 0 < result["operations"] <= propnet.operations


def test_info_reports_unplayable_states_and_shows_the_rest(
    folder: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They have no tree, but everything else."""
    (folder / "stuck.gdl").write_text(sheets.DEAD_END)
    assert "second has no legal move" in answer(capsys, "info", "stuck.gdl")["unplayable"]
    assert answer(capsys, "info", "kuhn_poker")["unplayable"] is None
    assert cli.main(["info", "stuck.gdl"]) == 0
    shown = capsys.readouterr()
    assert "registers" in shown.out
    assert shown.err.startswith("remark: second has no legal move")
    assert cli.main(["info", "stuck.gdl", "--tree"]) == 1
    assert "error: second has no legal move" in capsys.readouterr().err


def test_operations_of_large_propnets_are_not_counted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    edges = len(games.compile_game("rps").gate_inputs)
    monkeypatch.setattr(measure, "_MOST_EDGES", edges)
    assert answer(capsys, "compile", "rps")["operations"] > 0
    monkeypatch.setattr(measure, "_MOST_EDGES", edges - 1)
    monkeypatch.setattr(unplayable, "find", lambda *_: None)  # plays, for which operations are shared
    monkeypatch.setattr(straight_line, "share_operations", None)  # would fail if it were called
    assert answer(capsys, "compile", "rps")["operations"] is None
    assert answer(capsys, "info", "rps")["operations"] is None
    assert cli.main(["compile", "rps"]) == 0
    assert "operations" not in capsys.readouterr().out
    assert cli.main(["info", "rps"]) == 0
    assert "not counted" in capsys.readouterr().out


def test_seconds_cover_reading_counting_and_writing(
    folder: pathlib.Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name in ((games, "load_rulesheet"), (measure, "sizes"), (files, "save_propnet")):
        monkeypatch.setattr(module, name, _slowed(getattr(module, name)))
    assert answer(capsys, "compile", "rps", "-o", "net.npz")["seconds"] > 0.3


def _slowed(function: Callable[..., Any]) -> Callable[..., Any]:
    def slow(*arguments: Any, **named: Any) -> Any:
        time.sleep(0.1)
        return function(*arguments, **named)

    return slow


def test_info_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["info", "kuhn_poker"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["game", "kuhn_poker"]
    assert sum(line.startswith("role ") for line in lines) == 3
    assert [line.split()[0] for line in lines[4:]] == ["registers", "gates", "operations", "depth", "feedbacks"]


@pytest.mark.parametrize("suffix", ["npz", "json"])
def test_a_propnet_is_written_and_read_again(
    suffix: str, folder: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = answer(capsys, "compile", "rps", "--passes", "-o", f"net.{suffix}")
    assert set(result) >= {"game", "gates", "operations", "depth", "registers", "seconds", "peak_mb", "output"}
    assert result["output"] == f"net.{suffix}"
    assert 0 < result["seconds"] < 60
    assert result["peak_mb"] > 10
    assert result["passes"][0].keys() == {"name", "gates", "edges", "registers", "seconds"}
    again = answer(capsys, "info", f"net.{suffix}")
    for name in ("gates", "operations", "depth", "registers", "moves", "percepts", "roles"):
        assert again[name] == result[name]
    assert (
        support.RulesAndPropnet(games.load_rulesheet("rps"), files.load_propnet(folder / f"net.{suffix}")).compare_all(
            20
        )
        == 10
    )


def test_a_propnet_in_the_ggp_layout(folder: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer(capsys, "compile", "rps", "-o", "net.json", "--layout", "ggp")
    assert ggp_json.is_ggp_json(json.loads((folder / "net.json").read_text()))
    assert answer(capsys, "info", "net.json")["moves"] == answer(capsys, "info", "rps")["moves"]


def test_compile_for_people(folder: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["compile", "rps", "--passes", "-o", "net.npz"]) == 0
    *passes, sizes, written = capsys.readouterr().out.splitlines()
    assert {line.split()[0] for line in passes} >= {"constants", "flatten", "absorb", "factor", "invariants"}
    assert sizes.startswith("rps: 7 registers, ")
    assert written == "written to net.npz"


def test_compile_options_reach_the_reader(folder: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "case.gdl").write_text(
        "(role R) (legal R a) (legal r b) (<= (next x) (does r ?m)) (<= terminal (true X)) (goal R 50)"
    )
    result = answer(capsys, "compile", "case.gdl", "--fold-case", "--gdl", "2")
    assert result["moves"] == {"r": 2}
    assert result["percepts"] == {"r": 0}
    assert answer(capsys, "compile", "case.gdl", "--fold-case", "--gdl", "1")["percepts"] == {"r": 2}


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["compile", "no_such_game"], 1, "no_such_game"),
        (["compile", "rsp"], 1, "did you mean rps"),
        (["info", "goofspiel:cards=0"], 1, "cards must be an integer"),
        (["show", "rps", "--dot", "--play"], 2, "use one of them"),
        (["compile", "missing.gdl"], 1, "missing.gdl: No such file"),
        (["compile", "broken.gdl"], 1, "broken.gdl:1:1"),
        (["compile", "circle.gdl"], 1, "[negative-cycle]"),
        (["compile", "rps:n=0"], 1, "n must be an integer from 3"),
        (["compile", "rps", "-o", "net.txt"], 2, "net.txt must end in .npz or .json"),
        (["compile", "rps", "-o", "net.npz", "--layout", "ggp"], 2, "net.npz must end in .json"),
        (["compile", "rps", "-o", "nowhere/net.npz"], 2, "there is no folder nowhere"),
        (["compile", "rps", "--layout", "other"], 2, "other"),
        (["compile", "rps", "--max-memory", "1"], 2, "--max-memory"),
        (["compile", "rps", "--max-seconds", "0"], 2, "--max-seconds"),
        (["compile", "rps", "--max-seconds", "nan"], 2, "--max-seconds"),
        (["compile", "rps", "--max-rules", "0"], 2, "--max-rules"),
        (["compile", "bomb.gdl", "--max-rules", "9999"], 1, "bomb.gdl:3:1: error: grounding needs more than 9,999"),
        (["compile", "rps", "--passes", "--max-rules", "3"], 1, "--max-rules"),
        (["info", "bomb.gdl", "--max-rules", "9999"], 1, "[grounding-limit]"),
        (["show", "bomb.gdl", "--dot", "--max-rules", "9999"], 1, "[grounding-limit]"),
        (["info", "missing.npz"], 1, "missing.npz: No such file"),
        (["info", "noise.npz"], 1, "noise.npz: it is not a complete .npz file"),
        (["info", "noise.json"], 1, "noise.json: it is not JSON"),
        (["compile", "noise.npz"], 1, "noise.npz"),
        (["show", "noise.json", "--dot"], 1, "noise.json: it is not JSON"),
    ],
)
def test_mistakes_are_reported_in_a_paragraph(
    arguments: list[str], code: int, words: str, folder: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("noise.npz", "noise.json"):
        (folder / name).write_bytes(b"\x93noise\xff")
    before = sorted(folder.iterdir())
    assert cli.main(arguments) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert words in err
    assert "Traceback" not in err
    assert "bug in gdlx" not in err
    assert words in answer(capsys, *arguments, code=code)["error"]
    assert sorted(folder.iterdir()) == before


def test_a_file_that_cannot_be_written(folder: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "net.npz").mkdir()
    assert cli.main(["compile", "rps", "-o", "net.npz"]) == 1
    assert capsys.readouterr().err == "error: net.npz: Is a directory\n"
    assert list((folder / "net.npz").iterdir()) == []
    assert not list(folder.glob(".*"))


def test_an_older_file_is_replaced(folder: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "net.json").write_text("old")
    answer(capsys, "compile", "rps", "-o", "net.json")
    assert files.load_propnet(folder / "net.json").roles


def test_checking_by_play(folder: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = answer(capsys, "check", "kuhn_poker", "stuck.gdl", "--play")["files"]
    assert result[0] == {
        "file": "kuhn_poker",
        "errors": [],
        "warnings": [],
        "play": {
            "exhaustive": True,
            "states": 58,
            "matches": 30,
            "longest": 5,
            "best_goal": {"player1": 52, "player2": 52},
        },
    }
    warnings = {problem["code"] for problem in result[1]["warnings"]}
    assert warnings >= {"endless-play"}
    assert set(result[1]["warnings"][0]) >= {"code", "message", "line", "column"}


def test_checking_by_play_for_people(folder: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check", "kuhn_poker", "--play"]) == 0
    shown = capsys.readouterr().out
    assert "kuhn_poker: all states explored: 58 states, 30 terminal, longest match 5 joint actions\n" in shown
    assert shown.endswith("kuhn_poker: ok\n")
    assert cli.main(["check", "kuhn_poker"]) == 0
    assert capsys.readouterr().out == "kuhn_poker: ok\n"


def test_checking_by_play_what_cannot_be_played(folder: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A rulesheet with errors is not played, one that is too large is reported, and the others are still checked."""
    arguments = ["check", "broken.gdl", "bomb.gdl", "rps", "missing.gdl", "--play", "--max-rules", "9999"]
    broken, bomb, rps, missing = answer(capsys, *arguments, code=1)["files"]
    assert [problem["code"] for problem in broken["errors"]][:1] == ["unclosed-parenthesis"]
    assert "play" not in broken
    assert [(problem["code"], problem["line"]) for problem in bomb["errors"]] == [("grounding-limit", 3)]
    assert rps["play"]["exhaustive"]
    assert missing["errors"]


def test_a_propnet_as_a_graph(folder: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["show", "rps", "--dot"]) == 0
    drawn = capsys.readouterr().out
    assert drawn.startswith("digraph")
    assert drawn.count("{") == drawn.count("}")
    assert answer(capsys, "show", "rps", "--dot") == {"game": "rps", "dot": drawn}
    answer(capsys, "compile", "rps", "-o", "net.npz")
    assert answer(capsys, "show", "net.npz", "--dot")["dot"].startswith("digraph")


def test_stdout_is_json_only(folder: pathlib.Path) -> None:
    """Also in a separate process, whose child process grounds the rules."""
    command = [sys.executable, "-m", "gdlx.cli", "compile", "monty_hall", "--json", "-o", "net.npz"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(ran.stdout)["game"] == "monty_hall"
    assert ran.stderr == ""
