"""Nothing that comes from files reaches the terminal as a control character."""

import json
import pathlib

import pytest
import rich.table

from gdlx import cli
from gdlx.cli import console
from gdlx.propnet import games
from gdlx.propnet.checks import checker
from gdlx.propnet.io import files
from gdlx.propnet.syntax import source

HOSTILE = "x\x1b]0;title\x07\u202e\u200b"
RULES = "(role x) (legal x go) (<= (next over) (does x go)) (<= terminal (true over)) (goal x 100)"


def is_clean(text: str) -> bool:
    return all(line.isprintable() for line in text.split("\n"))


@pytest.fixture
def propnet(tmp_path: pathlib.Path) -> pathlib.Path:
    """A propnet whose names try to take over the terminal."""
    path = tmp_path / f"{HOSTILE}.json"
    files.save_propnet(games.compile_game("rps"), path)
    fields = json.loads(path.read_text())
    fields["name"] = fields["roles"][0]["name"] = HOSTILE
    path.write_text(json.dumps(fields))
    return path


@pytest.mark.parametrize(
    "command", [["info"], ["compile"], ["info", "--tree"], ["playout", "--batch", "32", "--seconds", "0"]]
)
def test_names_of_propnets(command: list[str], propnet: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([command[0], str(propnet), *command[1:]]) in (0, 1)
    shown = capsys.readouterr()
    assert is_clean(shown.out)
    assert is_clean(shown.err)


@pytest.mark.parametrize("command", ["check", "info", "solve", "evaluate", "report"])
def test_names_of_files(
    command: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / f"{HOSTILE}.gdl"
    path.write_text("(role x")
    assert cli.main([command, str(path)]) in (1, 2)
    shown = capsys.readouterr()
    assert is_clean(shown.out + shown.err)
    assert "title" in shown.out + shown.err


def test_tables_and_remarks(capsys: pytest.CaptureFixture[str]) -> None:
    table = rich.table.Table(HOSTILE)
    table.add_row(HOSTILE)
    console.show(table)
    console.remark(console.Options(), HOSTILE)
    console.say(HOSTILE)
    shown = capsys.readouterr()
    assert is_clean(shown.out + shown.err)
    assert shown.out.count("title") == 3


@pytest.mark.parametrize("character", ["\u202e", "\u200b", "\u2066", "\ufeff", "\u00ad", "\U000e0041"])
@pytest.mark.parametrize("frame", ["(legal x a{}b)", "(legal x {}go)"])
def test_invisible_characters_in_symbols(character: str, frame: str) -> None:
    report = checker.check(source.Source("sheet", f"{RULES} {frame.format(character)}"))
    [problem] = [each for each in report.errors if each.code == "bad-character"]
    assert f"invisible character U+{ord(character):04X} inside a symbol" in problem.message
    assert is_clean(problem.render("sheet"))


def test_letters_of_all_scripts_are_fine() -> None:
    assert not checker.check(source.Source("sheet", RULES.replace("x go", "x öffnen_開く_открыть"))).errors
