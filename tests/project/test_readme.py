"""What the documents show is what happens, and what they link to or name is there.

In a ```console block, `$ gdlx ...` is run and its output compared with the lines below (`...` stands for
anything), and `$ cat FILE` makes that file from the lines below it. A ```python block is executed in a namespace of
its own, all pages in one process, and what it prints compared with its comments `# -> ...`, if it has any. Blocks
of the tutorial follow each other in one folder.
"""

import doctest
import importlib.util
import json
import pathlib
import re
import shlex
import subprocess
import sys

import pytest

from gdlx.experiments.bench import search_bench
from gdlx.propnet import library
from gdlx.tests.helpers import commands, paths

ROOT = paths.ROOT
TUTORIAL = ROOT / "docs" / "tutorial.md"
GENERATED = {ROOT / "docs" / "reference" / name for name in ("api.md", "cli.md")}  # their examples are doctests
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
DOCUMENTS = [*PAGES, *sorted((ROOT / "experiments").rglob("*.md"))]
MATCH = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
# Runs the blocks of pages that it reads as JSON, each page in a folder of its own, and prints for each block what it
# printed, and what went wrong.
RUN_BLOCKS = """
import contextlib, io, json, os, sys, traceback
from gdlx.envs import compilation_cache
compilation_cache.enable()
pages, printed = json.load(sys.stdin), {}
for page, (folder, blocks) in pages.items():
    os.chdir(folder)
    printed[page] = []
    for block in blocks:
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
            try:
                exec(compile(block, "block", "exec"), {"__name__": "__main__"})
            except BaseException:
                traceback.print_exc()
        printed[page].append((out.getvalue(), err.getvalue()))
print(json.dumps(printed))
"""
Printed = dict[str, list[tuple[str, str]]]  # of every page, the two streams of its blocks


def name_of(path: pathlib.Path) -> str:
    return str(path.relative_to(ROOT))


def find_blocks(text: str, language: str) -> list[tuple[int, str]]:
    """Every fenced block of a language with its line."""
    matches = re.finditer(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [(text.count("\n", 0, block.start()) + 1, block[1]) for block in matches]


def console_blocks() -> list[object]:
    """Every console block as a test parameter named after its place."""
    return [
        pytest.param(block, id=f"{name_of(path)}:{line}")
        for path in PAGES
        if path != TUTORIAL and path not in GENERATED
        for line, block in find_blocks(path.read_text(), "console")
    ]


def pages_with_python() -> list[object]:
    return [
        pytest.param(path, id=name_of(path))
        for path in PAGES
        if path != TUTORIAL and path not in GENERATED and find_blocks(path.read_text(), "python")
    ]


@pytest.mark.parametrize("block", console_blocks())
def test_a_console_block_shows_what_happens(block: str, tmp_path: pathlib.Path) -> None:
    run_commands(block, tmp_path)


def python_blocks(page: pathlib.Path) -> list[str]:
    has_open_spiel = importlib.util.find_spec("pyspiel") is not None
    return [block for _, block in find_blocks(page.read_text(), "python") if has_open_spiel or "spiel" not in block]


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> Printed:
    """What the blocks of all pages print. In one process, because importing jax takes longer than most blocks."""
    return run_python(
        {
            name_of(page): (tmp_path_factory.mktemp("page"), python_blocks(page))
            for page in PAGES
            if page != TUTORIAL and page not in GENERATED
        }
    )


@pytest.mark.parametrize("page", pages_with_python())
def test_the_python_blocks_of_a_page_run(page: pathlib.Path, printed: Printed) -> None:
    require_shown(python_blocks(page), printed[name_of(page)])


def test_the_tutorial_shows_what_happens(tmp_path: pathlib.Path) -> None:
    text = TUTORIAL.read_text()
    blocks = re.findall(r"^```(console|python)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert {language for language, _ in blocks} == {"console", "python"}
    for language, block in blocks:
        if language == "console":
            run_commands(block, tmp_path)
        else:
            require_shown([block], run_python({"tutorial": (tmp_path, [block])})["tutorial"])


def run_commands(block: str, folder: pathlib.Path) -> None:
    for command, shown in re.findall(r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
        program, *arguments = shlex.split(command)
        if program == "cat":
            (folder / arguments[0]).write_text(shown)
            continue
        assert program == "gdlx", f"{command!r} is not a command this test can run"
        ran = commands.run(*arguments, cwd=folder, merge=True)
        assert doctest.OutputChecker().check_output(shown, ran.stdout, MATCH), ran.stdout


def run_python(pages: dict[str, tuple[pathlib.Path, list[str]]]) -> Printed:
    given = {page: (str(folder), blocks) for page, (folder, blocks) in pages.items()}
    ran = subprocess.run([sys.executable, "-c", RUN_BLOCKS], input=json.dumps(given), capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, ""), ran.stderr
    printed: Printed = json.loads(ran.stdout)
    return printed


def require_shown(blocks: list[str], printed: list[tuple[str, str]]) -> None:
    for block, (out, err) in zip(blocks, printed, strict=True):
        assert err == ""
        shown = "".join(re.findall(r"^# -> (.*\n)", block, re.MULTILINE))
        assert not shown or doctest.OutputChecker().check_output(shown, out, MATCH), out


def test_the_table_of_games_is_the_library() -> None:
    section = (ROOT / "README.md").read_text().partition("## The games of the library")[2]
    rows = re.findall(r"^\| `(\w+)` \| (.+) \| (\d+) \| (\d+) \| (\d+) \|$", section, re.MULTILINE)
    assert [row[:2] for row in rows] == [(name, library.get(name).summary) for name in library.names()]
    games = json.loads(commands.run("games", "--sizes", "--json", cwd=ROOT).stdout)["games"]
    measured = [tuple(str(game[size]) for size in ("registers", "gates", "operations")) for game in games]
    assert [row[2:] for row in rows] == measured


def test_the_page_of_games_has_every_parameter() -> None:
    text = (ROOT / "docs" / "reference" / "games.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \|(.*)\|$", text, re.MULTILINE)
    assert [row[:2] for row in rows] == [(name, library.get(name).summary) for name in library.names()]
    for name, _, parameters in rows:
        assert re.findall(r"`(\w+)`:", parameters) == list(library.get(name).parameters)


def test_figures_of_the_readme_are_those_of_the_benchmark_page() -> None:
    rows = re.findall(r"^(\|.*\|) `gdlx bench \w+` \|$", (ROOT / "README.md").read_text(), re.MULTILINE)
    measured = (ROOT / "docs" / "benchmarks.md").read_text().splitlines()
    assert len(rows) > 3
    assert [row for row in rows if row not in measured] == []


def test_beliefs_on_the_benchmark_page_have_the_labels_of_the_code() -> None:
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    section = page.split("### search: ")[1].split("\n### ")[0]
    labels = set(re.findall(r"after \d+ joint actions, (\w+)", section))
    assert labels == set(search_bench._METHODS)


def test_links_between_documents_lead_somewhere() -> None:
    for path in DOCUMENTS:
        for target, anchor in re.findall(r"\]\(([^)#:\s]*)(?:#([^)]*))?\)", path.read_text()):
            linked = path.parent / target if target else path
            assert linked.exists(), f"{name_of(path)} links to {target}"
            assert not anchor or anchor in anchors(linked), f"{name_of(path)} links to {target}#{anchor}"


def anchors(path: pathlib.Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_files_that_documents_name_exist() -> None:
    top = "propnet|envs|solvers|nets|players|experiments|cli|tests|docs|examples"
    for path in DOCUMENTS:
        if path.name != "CHANGELOG.md":  # describes the past
            for named in re.findall(rf"`((?:{top})/[\w/.\-]+)`", path.read_text()):
                assert "NAME" in named or (ROOT / named).exists(), f"{name_of(path)} names {named}"
