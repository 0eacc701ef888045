"""Command lines of real and broken words: they end with exit code 0, 1 or 2 and never call it a bug."""

import contextlib
import functools
import io
import os
import pathlib
import random
from collections.abc import Mapping, Sequence
from typing import Any

import typer

from gdlx import cli
from gdlx.cli import application
from gdlx.propnet import library
from gdlx.tests.fuzz import damage, readers, sheets
from gdlx.tests.helpers import trials

# Words that make every command end soon. Of an option that is given twice, the last one counts.
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "check": (),
    "show": (),
    "info": ("--max-nodes", "2000"),
    "games": (),
    "compile": (),
    "playout": ("--seconds", "0", "--batch", "32", "--max-steps", "20"),
    "solve": ("--iterations", "2", "--time", "0.1", "--max-nodes", "2000", "--batch", "16", "--table", "6"),
    "evaluate": ("--max-nodes", "2000"),
    "match": ("--games", "4"),
    "tournament": ("--games", "4"),
    "sweep": ("--dry-run",),
    "results": (),
    "report": ("-o", "report.html"),
    "doctor": (),
}
_LIMITED = ("check", "show", "info", "compile", "playout", "solve", "match", "tournament")
_LIMITS = ("--max-seconds", "5", "--max-memory", "1000", "--max-rules", "20000")
_ODD_OPTIONS = (
    "--",
    "--help",
    "--version",
    "--no-such-option",
    "-",
    "--seed=x",
    "--payoff=x",
    "--gdl=3",
    "--x64=1",
    "-o",
)
_VALUES = (
    *("0", "1", "-1", "2.5", "nan", "inf", "-inf", "1e308", "1e400", "9" * 25, "", " ", "x", "\0", "\x1b[2J", "\ud800"),
    *("true", "goal", "wdl", "sum", "error", "dcfr", "cfr+", "os-mccfr", "es-mccfr", "lp", "depth-limited", "table"),
    *("player1", "random", "mccfr:iterations=2", "uct:iterations=2", "uct:x=1", "network:x", "random:y", "human"),
    *("game=kuhn_poker", "exploitability<1", "game~", "seconds>x", "1%", "(true a)", "check", "))", "?x", "2,2"),
)
_GAMES = ("kuhn_poker", "rps", "kuhn_poker:", "rps:x=1", "goofspiel:cards=3", "goofspiel:cards=-1", "no_such_game")
_PATHS = ("game.gdl", "mutant.gdl", "results", "results/a", "nowhere", ".", "/dev/null", "grid.toml", "net.json", "x/y")


@functools.cache
def _options(command: str) -> Mapping[str, bool]:
    """The options of a command and those of all commands, and whether they take a value."""
    group: Any = typer.main.get_command(application.app)
    parameters = [*group.params, *group.commands[command].params]
    names = {name: not one.is_flag for one in parameters if one.param_type_name == "option" for name in one.opts}
    return {name: takes for name, takes in names.items() if name not in ("--device", "--x64", "--clear-cache")}


def _words(chance: random.Random) -> list[str]:
    command = chance.choice(list(COMMANDS))
    games = [chance.choice((*_GAMES, *_PATHS)) for _ in range(chance.choice((0, 1, 1, 1, 1, 2)))]
    words = [command, *games]
    if command in ("match", "tournament"):
        words += chance.choices(("random", "random", "mccfr:iterations=2", "results/a", "x"), k=chance.randint(1, 3))
    for _ in range(chance.choice((0, 1, 1, 2, 3))):
        if chance.random() < 0.1:
            words.insert(chance.randint(0, len(words)), chance.choice((*_ODD_OPTIONS, *_VALUES)))
            continue
        name, takes_value = chance.choice(list(_options(command).items()))
        words.append(name)
        if takes_value != (chance.random() < 0.05):
            words.append(chance.choice((*_VALUES, *_GAMES, *_PATHS)))
    limits = (*COMMANDS[command], *(_LIMITS if command in _LIMITED else ()))
    if "--resume" in words:  # what is not asked for is taken from the folder
        limits = tuple(word for word in limits if word not in ("--batch", "16", "--table", "6"))
    place = words.index("--") if "--" in words else len(words)
    return [*words[:place], *limits, *words[place:]]


def run(words: Sequence[str], folder: pathlib.Path) -> tuple[int, str]:
    """The exit code of a command in a folder, and what it prints."""
    printed = io.StringIO()
    before = dict(os.environ)
    try:
        with contextlib.chdir(folder), contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            code = cli.main(words)
    finally:  # global options are passed on to jax as variables
        os.environ.clear()
        os.environ.update(before)
    return code, printed.getvalue()


def _require_good(words: Sequence[str], folder: pathlib.Path) -> Mapping[str, int]:
    code, printed = run(words, folder)
    if code not in (0, 1, 2) or "Traceback" in printed or "bug in gdlx" in printed:
        raise trials.Failure(f"{' '.join(map(repr, words))}: exit {code}: {printed[-1_500:]}")
    if not all(line.isprintable() for line in printed.split("\n")):
        raise trials.Failure(f"{' '.join(map(repr, words))}: prints control characters")
    if code and not printed.strip():
        raise trials.Failure(f"{' '.join(map(repr, words))}: exit {code} without a word")
    return {f"exit {code}": 1}


def _write(folder: pathlib.Path) -> None:
    (folder / "game.gdl").write_text(library.text(readers.GAME))
    for name, path in (("a sweep", ""), ("a result", "results/a"), ("propnets", "")):
        (folder / path).mkdir(parents=True, exist_ok=True)
        readers.READERS[name].write(folder / path)


def make_trial(folder: pathlib.Path) -> trials.Trial:
    """A trial is one command line, in a folder with a game, results and a sweep."""
    pristine = folder / "pristine"
    pristine.mkdir()
    _write(pristine)

    def trial(seed: int) -> Mapping[str, int]:
        chance = random.Random(seed)
        place = damage.copy(pristine, folder / "work")
        (place / "mutant.gdl").write_bytes(sheets.mutated(seed))
        return _require_good(_words(chance), place)

    return trial


_ON_FOLDERS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "a result": (
        ("evaluate", "."),
        ("results", "."),
        ("report", ".", "-o", "report.html"),
        ("solve", "--resume", ".", "--iterations", "6", "--quiet"),
    ),
    "a match": (("match", "--resume", ".", "--quiet"), ("results", ".")),
    "a training": (
        ("results", "."),
        ("evaluate", "."),
        ("match", "kuhn_poker", "network:folder=.", "random", "--games", "2"),
    ),
    "a sweep": (
        ("sweep", "grid.toml", "--results", ".", "--dry-run"),
        ("results", "."),
        ("report", ".", "-o", "r.html"),
    ),
    "propnets": (
        ("info", "net.json"),
        ("compile", "net.npz"),
        ("show", "ggp.json"),
        ("playout", "ggp.json", "--seconds", "0"),
    ),
    "policy tables": (
        ("match", "kuhn_poker", "policy.csv", "random", "--games", "2", "--results", "made"),
        ("match", "kuhn_poker", "policy.json", "random", "--games", "2", "--results", "made"),
    ),
}


def make_damaged_trial(folder: pathlib.Path) -> trials.Trial:
    """A trial is a command about a damaged folder."""
    for name in _ON_FOLDERS:
        (folder / name).mkdir()
        readers.READERS[name].write(folder / name)

    def trial(seed: int) -> Mapping[str, int]:
        chance = random.Random(seed)
        name = chance.choice(list(_ON_FOLDERS))
        place = damage.copy(folder / name, folder / "work")
        what = damage.damage(place, chance)
        try:
            return _require_good(chance.choice(_ON_FOLDERS[name]), place)
        except Exception as error:
            error.add_note(what)
            raise

    return trial
