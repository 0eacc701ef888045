"""`compile`, `info`, `show --dot` and `check --play` as a user and as a program see them."""

import json
import pathlib
from typing import Any

import pytest

from gdlx import cli
from gdlx.propnet import files

SIZES = {"gates", "operations", "depth", "registers"}


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = cli.main(list(arguments))
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    code, out, _ = run(capsys, *arguments, "--json")
    assert code == 0
    result = json.loads(out)
    assert isinstance(result, dict)
    return result


def test_info_tells_roles_and_sizes(capsys: pytest.CaptureFixture[str]) -> None:
    result = answer(capsys, "info", "kuhn_poker")
    assert result["game"] == "kuhn_poker"
    assert result["roles"] == ["player1", "player2", "random"]
    assert result["moves"] == {"player1": 5, "player2": 5, "random": 4}
    assert set(result["percepts"]) == {"player1", "player2"}
    assert set(result) >= SIZES


@pytest.mark.parametrize(("name", "layout"), [("net.npz", "gdlx"), ("net.json", "gdlx"), ("net.json", "ggp")])
def test_compile_writes_a_network_that_reads_back(
    capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path, name: str, layout: str
) -> None:
    path = tmp_path / name
    result = answer(capsys, "compile", "simple_poker", "-o", str(path), "--layout", layout)
    assert set(result) >= SIZES | {"game", "seconds", "peak_mb", "passes", "output"}
    again = answer(capsys, "info", str(path))
    assert (again["roles"], again["registers"]) == (result["roles"], len(files.load(path).initial))
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_compile_tells_what_each_pass_did(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "compile", "tictactoe", "--passes")
    assert code == 0
    for name in ("constants", "equal registers", "flatten", "absorb", "factor", "invariants"):
        assert f"  {name} " in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compile", "rps", "-o", "net.txt"], "must end in .npz or .json"),
        (["compile", "rps", "-o", "net.npz", "--layout", "ggp"], "must end in .json"),
        (["compile", "rps", "-o", "nowhere/net.npz"], "there is no folder nowhere"),
        (["compile", "rsp"], "rps"),
        (["info", "missing.npz"], "missing.npz: No such file"),
        (["compile", "missing.gdl"], "missing.gdl: No such file"),
        (["info", "goofspiel:cards=0"], "cards"),
        (["show", "rps", "--dot", "--play"], "ask for one"),
    ],
)
def test_wrong_calls_are_one_paragraph(
    capsys: pytest.CaptureFixture[str],
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, *arguments)
    assert code in (1, 2)
    assert out == ""
    assert message in err
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


def test_check_play_tells_what_it_played(capsys: pytest.CaptureFixture[str]) -> None:
    result = answer(capsys, "check", "--play", "kuhn_poker")
    (file,) = result["files"]
    assert (file["errors"], file["warnings"]) == ([], [])
    assert file["play"] == {
        "exhaustive": True,
        "states": 58,
        "matches": 30,
        "longest": 5,
        "best_goal": {"player1": 52, "player2": 52},
    }


def test_a_limit_stops_compiling_and_names_the_rule(capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path) -> None:
    sheet = tmp_path / "bomb.gdl"
    digits = "".join(f"(digit {n})" for n in range(30))
    rest = "(role x) (init (p 1)) (<= terminal (big 1 2 3)) (goal x 100) (legal x go)\n"
    bomb = "(<= (big ?a ?b ?c) (digit ?a) (digit ?b) (digit ?c) (true (p ?a)))"
    sheet.write_text(rest + digits + "\n" + bomb)
    code, out, err = run(capsys, "compile", str(sheet), "--max-rules", "100")
    assert (code, out) == (1, "")
    assert f"{sheet}:3:1: error: grounding needs more than 100 ground rules" in err


def test_dot_draws_the_network(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "show", "rps", "--dot")
    assert code == 0
    assert out.startswith("digraph")
    assert "does player1 rock" in out
