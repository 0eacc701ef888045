"""What the documents show is what happens.

In a ```console block, `$ gdlx ...` is run and its output compared with the lines below (`...` stands for
anything), and `$ cat FILE` makes that file from the lines below it. A ```python block is executed, and what it
prints compared with its comments `# -> ...`, if it has any. Blocks of the tutorial follow each other in one folder.
"""

import doctest
import json
import pathlib
import re
import shlex
import subprocess
import sys

import pytest

from gdlx.propnet import library
from gdlx.tests.helpers import paths

ROOT = paths.ROOT
TUTORIAL = ROOT / "docs" / "tutorial.md"
DOCUMENTS = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
MATCH = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def blocks(language: str) -> list[object]:
    """Every fenced block of a language, as a test parameter named after its place."""
    found: list[object] = []
    for path in DOCUMENTS:
        if path == TUTORIAL:
            continue
        text = path.read_text()
        for block in re.finditer(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
            line = text.count("\n", 0, block.start()) + 1
            found.append(pytest.param(block[1], id=f"{path.relative_to(ROOT)}:{line}"))
    return found


@pytest.mark.parametrize("block", blocks("console"))
def test_a_console_block_shows_what_happens(block: str, tmp_path: pathlib.Path) -> None:
    run_commands(block, tmp_path)


@pytest.mark.parametrize("block", blocks("python"))
def test_a_python_block_runs(block: str, tmp_path: pathlib.Path) -> None:
    run_python(block, tmp_path)


def test_the_tutorial_shows_what_happens(tmp_path: pathlib.Path) -> None:
    found = re.findall(r"^```(console|python)\n(.*?)^```$", TUTORIAL.read_text(), re.MULTILINE | re.DOTALL)
    assert {language for language, _ in found} == {"console", "python"}
    for language, block in found:
        (run_commands if language == "console" else run_python)(block, tmp_path)


def run_commands(block: str, folder: pathlib.Path) -> None:
    for command, shown in re.findall(r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
        program, *arguments = shlex.split(command)
        if program == "cat":
            (folder / arguments[0]).write_text(shown)
            continue
        assert program == "gdlx", f"{command!r} is not a command this test can run"
        ran = subprocess.run(
            [sys.executable, "-m", "gdlx.cli", *arguments],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert doctest.OutputChecker().check_output(shown, ran.stdout, MATCH), ran.stdout


def run_python(block: str, folder: pathlib.Path) -> None:
    if "spiel" in block:
        pytest.importorskip("pyspiel")
    ran = subprocess.run([sys.executable, "-c", block], cwd=folder, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
    shown = "".join(re.findall(r"^# -> (.*\n)", block, re.MULTILINE))
    assert not shown or doctest.OutputChecker().check_output(shown, ran.stdout, MATCH), ran.stdout


def test_the_table_of_games_is_the_library() -> None:
    section = (ROOT / "README.md").read_text().partition("## The games of the library")[2]
    rows = re.findall(r"^\| `(\w+)` \| (.+) \| (\d+) \| (\d+) \| (\d+) \|$", section, re.MULTILINE)
    assert [row[:2] for row in rows] == [(name, library.get(name).summary) for name in library.names()]
    command = [sys.executable, "-m", "gdlx.cli", "games", "--sizes", "--json"]
    games = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["games"]
    measured = [tuple(str(game[size]) for size in ("registers", "gates", "operations")) for game in games]
    assert [row[2:] for row in rows] == measured


def test_links_between_documents_lead_somewhere() -> None:
    for path in DOCUMENTS:
        for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text()):
            assert (path.parent / target).exists(), f"{path.relative_to(ROOT)} links to {target}"
