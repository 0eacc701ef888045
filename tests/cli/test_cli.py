"""The command line: options in any place, errors in one paragraph, exit codes, a fast start."""

import ast
import json
import os
import pathlib
import re
import signal
import subprocess
import sys

import pytest
import typer

import gdlx
from gdlx import cli, envs, nets, players, propnet, solvers
from gdlx.cli import console
from gdlx.propnet import library
from gdlx.propnet.syntax import diagnostics
from gdlx.solvers.runs import tree_solvers

GDLX = [sys.executable, "-m", "gdlx.cli"]
COMMANDS = [command.callback.__name__ for command in cli.app.registered_commands if command.callback]


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([*GDLX, *arguments], capture_output=True, text=True)


@pytest.mark.parametrize("arguments", [["--json", "games"], ["games", "--json"]])
def test_json_before_and_after_the_command(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(arguments) == 0
    games = json.loads(capsys.readouterr().out)["games"]
    assert [game["name"] for game in games] == list(library.names())
    assert set(games[0]) == {"name", "summary", "parameters"}


@pytest.mark.parametrize(
    ("arguments", "front", "rest"),
    [
        (["show", "--seed", "1", "x"], ["--seed", "1"], ["show", "x"]),
        (["show", "--seed=1", "x", "--x64"], ["--seed=1", "--x64"], ["show", "x"]),
        (["--quiet", "check", "--", "--json"], ["--quiet"], ["check", "--", "--json"]),
        (["check", "--play", "x"], [], ["check", "--play", "x"]),
        (["games", "--json", "--seed"], ["--json", "--seed"], []),
    ],
)
def test_global_options_are_brought_to_the_front(arguments: list[str], front: list[str], rest: list[str]) -> None:
    assert cli.hoist(arguments) == (front, rest)


@pytest.mark.parametrize("front", [True, False])
def test_global_options_reach_the_command(front: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[console.Options] = []
    monkeypatch.setenv("JAX_PLATFORMS", "")
    monkeypatch.setenv("JAX_ENABLE_X64", "")
    monkeypatch.setattr(console, "emit", lambda result: None)
    original = console.options

    def options(context: typer.Context) -> console.Options:
        seen.append(original(context))
        return seen[-1]

    monkeypatch.setattr(console, "options", options)
    given = ["--device", "gpu", "--x64", "--seed=7", "--quiet", "--json"]
    assert cli.main([*given, "games"] if front else ["games", *given]) == 0
    assert seen == [console.Options("gpu", x64=True, seed=7, quiet=True, json=True)]
    assert (os.environ["JAX_PLATFORMS"], os.environ["JAX_ENABLE_X64"]) == ("cuda", "1")


@pytest.mark.parametrize("arguments", [["--version"], ["games", "--version"]])
def test_version(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(arguments) == 0
    assert capsys.readouterr().out == f"gdlx {gdlx.__version__}\n"
    assert cli.main([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"version": gdlx.__version__}


def test_no_arguments_show_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 0
    assert "Commands:" in capsys.readouterr().out


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_names_the_global_options(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([command, "--help"]) == 0
    shown = capsys.readouterr().out
    for option in ("--device", "--x64", "--seed", "--quiet", "--json", "--version"):
        assert option in shown


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nonsense"], "'nonsense'. See 'gdlx --help'"),
        (["solve", "kuhn_poker", "--iterations"], "requires an argument. See 'gdlx solve --help'"),
        (["games", "--nonsense"], "--nonsense. See 'gdlx games --help'"),
        (["games", "extra"], "extra"),
        (["games", "--seed"], "--seed"),
        (["games", "--seed", "x"], "--seed"),
        (["games", "--device", "abacus"], "abacus"),
        (["--quiet"], "Missing command"),
        (["bench", "nonsense"], "read"),
    ],
)
def test_wrong_usage_is_one_paragraph(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(arguments) == 2
    plain = capsys.readouterr()
    assert plain.out == ""
    assert plain.err.startswith("error: ")
    assert plain.err.count("\n") == 1
    assert words in plain.err
    assert cli.main(["--json", *arguments]) == 2
    assert words in json.loads(capsys.readouterr().out)["error"]


def _diagnostic() -> diagnostics.GdlError:
    return diagnostics.GdlError([diagnostics.Diagnostic("missing-role", "no role", None)], "a.gdl")


@pytest.mark.parametrize(
    ("error", "code", "shown"),
    [
        (_diagnostic(), 1, "a.gdl: error: no role [missing-role]\n"),
        (library.LibraryError("no game 'x'"), 1, "error: no game 'x'\n"),
        (
            FileNotFoundError(2, "No such file or directory", "x.gdl"),
            1,
            "error: x.gdl: No such file or directory\n",
        ),
        (OSError("disk on fire"), 1, "error: disk on fire\n"),
        (KeyboardInterrupt(), 130, "interrupted\n"),
    ],
)
def test_an_error_is_one_paragraph(
    error: BaseException,
    code: int,
    shown: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def names() -> list[str]:
        raise error

    monkeypatch.setattr(library, "names", names)
    assert cli.main(["games"]) == code
    assert capsys.readouterr() == ("", shown)
    assert cli.main(["games", "--json"]) == code
    out, err = capsys.readouterr()
    assert err == shown
    assert shown.endswith(json.loads(out)["error"] + "\n")


@pytest.mark.parametrize("game", ["missing.gdl", "no_such_game"])
def test_a_missing_game(game: str) -> None:
    ran = run("show", game)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.startswith("error: ")
    assert ran.stderr.count("\n") == 1
    assert game in ran.stderr


def test_a_bug_shows_its_traceback_only_on_demand(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(library, "names", lambda: 1 / 0)
    assert cli.main(["games"]) == 70
    quiet = capsys.readouterr().err
    assert "bug in gdlx" in quiet
    assert "Traceback" not in quiet
    monkeypatch.setenv("GDLX_DEBUG", "1")
    assert cli.main(["games"]) == 70
    assert "Traceback" in capsys.readouterr().err


def test_a_closed_pipe_is_not_an_error() -> None:
    with subprocess.Popen([*GDLX, "games"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("command", ["games", "--version"])
def test_a_full_disk_is_one_paragraph(command: str) -> None:
    with open("/dev/full", "w") as full:
        ran = subprocess.run([*GDLX, command], stdout=full, stderr=subprocess.PIPE, text=True)
    assert ran.returncode == 1
    assert ran.stderr.startswith("error: ")
    assert ran.stderr.endswith("No space left on device\n")
    assert ran.stderr.count("\n") == 1


def test_a_terminal_that_lacks_a_character_is_not_an_error(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a.gdl").write_text("; \N{BLACK SPADE SUIT}\n", encoding="utf-8")
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii"}
    ran = subprocess.run([*GDLX, "show", "a.gdl"], cwd=tmp_path, env=ascii_only, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_interrupting_a_command() -> None:
    """Send a real signal while a command works; the sleep stands for the work."""
    slow = """if True:
        import sys, time
        from gdlx import cli
        from gdlx.propnet import library
        library.names = lambda: (print("ready", flush=True), time.sleep(60))
        sys.exit(cli.main(["games"]))
    """
    command = [sys.executable, "-c", slow]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGINT)
        assert process.communicate()[1] == b"interrupted\n"
    assert process.returncode == 130


@pytest.mark.parametrize(
    "line", ["--version", "games", "--device gpu --x64 games", "check tictactoe", "show rps --play", "bench"]
)
def test_the_start_imports_nothing_heavy(line: str) -> None:
    show = "import sys; from gdlx import cli; cli.main(sys.argv[1:]); sys.stderr.write(' '.join(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", show, *line.split()], capture_output=True, text=True, check=True)
    assert not {"jax", "numpy", "clingo", "matplotlib", "scipy"} & set(ran.stderr.split())


def test_doctor_reports_every_dependency_and_peer() -> None:
    report = json.loads(run("doctor", "--json", "--device", "cpu").stdout)
    assert report["dependencies"]["jax"]
    assert set(report["peers"]) == {"open_spiel", "pgx"}
    assert report["devices"]
    assert report["cores"] >= 1


def test_doctor_survives_a_missing_device() -> None:
    ran = run("doctor", "--device", "tpu")
    assert ran.returncode == 0
    assert "tpu" in ran.stdout


def test_bench_lists_its_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", "--json"]) == 0
    assert "read" in json.loads(capsys.readouterr().out)["benchmarks"]


def test_progress_on_a_terminal_leaves_redirected_output_alone() -> None:
    terminal, its_end = os.openpty()
    ran = subprocess.run([*GDLX, "check", "tictactoe"], stdout=subprocess.PIPE, stderr=its_end, text=True)
    os.close(its_end)
    assert ran.stdout == "tictactoe: ok\n"
    assert b"checking" in os.read(terminal, 10_000)
    os.close(terminal)


def test_progress_is_hidden_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with console.progress(console.Options(), "working", total=2) as advance:
        advance("half")
        advance("all")
    assert capsys.readouterr() == ("", "")


def test_options_in_place_of_arguments(capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path) -> None:
    """The library names arguments, and the command line names options."""
    with pytest.raises(tree_solvers.BatchSizeError, match="smaller `batch=`"):
        gdlx.solve("leduc_poker", "es-mccfr", iterations=1, batch=400_000)
    solve = ["solve", "leduc_poker", "--algorithm", "es-mccfr", "--batch", "400000", "--results", str(tmp_path)]
    assert cli.main(solve) == 1
    message = " ".join(capsys.readouterr().err.split())
    assert "use a smaller --batch" in message
    assert "`" not in message
    assert cli.main(["match", "kuhn_poker", "mccfr:table=3", "random"]) != 0
    message = capsys.readouterr().err
    assert "--table" not in message
    assert "`table=` is the base-2 logarithm" in message


def test_no_message_of_the_library_names_an_option() -> None:
    """Only messages of exceptions: options of clingo occur elsewhere, and docstrings may show commands."""
    option = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
    violations = []
    for package in (propnet, envs, solvers, nets, players):
        for path in sorted(pathlib.Path(package.__path__[0]).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Raise):
                    constants = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)]
                    violations += [
                        (path.name, text) for text in constants if isinstance(text, str) and option.search(text)
                    ]
    assert violations == []


def test_info_shows_symmetries(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["info", "dark_hex", "--symmetries", "--json"]) == 0
    output = json.loads(capsys.readouterr().out)["symmetries"]
    assert (output["order"], output["order_fixing_players"], output["complete"], output["unproved"]) == (2, 2, True, 0)
    (half_turn,) = output["generators"]
    assert half_turn["x"]["role"] == "x"
    assert half_turn["x"]["moves"]["(mark 1 2)"] == "(mark 3 2)"
    assert "(mark 2 2)" not in half_turn["x"]["moves"]
    assert cli.main(["info", "rps", "--symmetries"]) == 0
    text = capsys.readouterr().out
    assert "6 with the identity, 3 of which exchange players" in text
    assert "player1 becomes player2" in text
    assert cli.main(["info", "spiel:kuhn_poker", "--symmetries"]) == 1
