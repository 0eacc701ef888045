"""What the machine lacks is not called a bug in gdlx: the message says what it is and what to try."""

import pathlib
import re
import subprocess
import sys

import pytest

from gdlx import cli
from gdlx.cli import application, failures
from gdlx.propnet import games

GDLX = [sys.executable, "-m", "gdlx.cli"]


@pytest.mark.parametrize(("device", "platform"), [("gpu", "cuda"), ("tpu", "tpu")])
def test_a_missing_device_names_those_there_are(device: str, platform: str) -> None:
    import jax

    if jax.default_backend() == device:
        pytest.skip(f"this machine has a {device}")
    ran = subprocess.run(
        [*GDLX, "playout", "rps", "--seconds", "0", "--device", device], capture_output=True, text=True
    )
    assert ran.returncode == 1
    assert f"no device of the platform {platform}" in ran.stderr
    assert "It finds cpu:0" in ran.stderr
    assert "--device" in ran.stderr


@pytest.mark.parametrize("command", [["playout", "rps", "--seconds", "0"], ["info", "rps", "--tree"]])
def test_negative_seeds(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*command, "--json", "--seed", "-5"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 9 bytes"),
        RuntimeError("can't start new thread"),
        ImportError("_uarray.so: failed to map segment from shared object"),
    ],
)
def test_too_little_memory_is_no_bug(error: Exception) -> None:
    explained = failures.explain(error)
    assert explained is not None
    assert "not enough memory" in explained
    assert failures.explain(ValueError("wrong")) is None


def test_a_library_that_cannot_be_loaded_is_no_bug() -> None:
    reported = failures.explain(ImportError("Encountered an error while initializing the extension."))
    assert reported is not None
    assert "not enough memory, or its installation is damaged" in reported
    assert failures.explain(ImportError("cannot import name x")) is None


@pytest.mark.parametrize("command", [info.callback.__name__ for info in cli.app.registered_commands if info.callback])
def test_advice_names_only_options_that_the_command_has(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*arguments: object) -> None:
        raise MemoryError

    monkeypatch.setattr(application._GROUP, "invoke", fail)
    application.run([command])
    message = capsys.readouterr().err
    assert "not enough memory" in message
    has = application._options_of(command)
    assert set(re.findall(r"--[a-z-]+", message)) <= has
    assert ("--batch" in message) == ("--batch" in has)
    assert ("smaller game" in message) == bool({"game", "config"} & has)


CONFLICT = "(role a) (legal a go) (init s) (<= terminal (not (true s))) (goal a 0) (goal a 1)"


def test_an_option_of_another_command_is_named_with_it(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "game.gdl").write_text(CONFLICT)
    (tmp_path / "policy.csv").write_text("player,information_set,action,probability\n")
    assert cli.main(["solve", "game.gdl"]) == 1
    assert "with --goal-conflict max;" in capsys.readouterr().err
    assert cli.main(["evaluate", "game.gdl", "--policy", "policy.csv"]) == 1
    assert "with --goal-conflict max (an option of `gdlx solve`);" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["evaluate"], ["match", "rps", "random"]])
def test_a_run_without_a_policy_names_the_command_that_resumes_it(
    command: list[str], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = "results/rps/dcfr"
    assert cli.main(["solve", "rps", "--iterations", "20", "--quiet"]) == 0
    (tmp_path / folder / "policy.npz").unlink()
    assert cli.main([*command, f"solution:folder={folder}" if command[0] == "match" else folder]) == 1
    assert f"`gdlx solve --resume {folder}`" in capsys.readouterr().err
    assert cli.main(["solve", "--resume", folder, "--iterations", "20", "--quiet"]) == 0
    assert (tmp_path / folder / "policy.npz").is_file()


def test_settings_that_overflow_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["solve", "kuhn_poker", "--alpha", "1e308", "--quiet"]) == 1
    assert "alpha must be from -1e+06 to 1e+06 or infinite" in capsys.readouterr().err


FORGOTTEN_NOOP = """
(role a) (role b) (init (turn a)) (num 1) (num 2)
(<= (legal ?p (take ?n)) (true (turn ?p)) (num ?n))
(<= (next (turn b)) (true (turn a))) (<= (next over) (true (turn b)))
(<= terminal (true over)) (goal a 50) (goal b 50)
"""


@pytest.mark.parametrize("command", [["solve"], ["info", "--tree"]])
def test_a_forgotten_noop_is_named(
    command: list[str], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "game.gdl").write_text(FORGOTTEN_NOOP)
    assert cli.main([*command, "game.gdl"]) == 1
    error = capsys.readouterr().err
    assert "b has no legal move in a state of game.gdl that is not terminal: (turn a)" in error
    assert "(legal b noop)" in error


def test_a_dollar_in_a_file_name_keeps_the_result(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / r"x$\frac$y.gdl").write_text(games.find_source("kuhn_poker").text)
    assert cli.main(["solve", r"x$\frac$y.gdl", "--iterations", "20", "--quiet"]) == 0
    assert len(list(tmp_path.glob("results/**/policy.npz"))) == 1
    assert len(list(tmp_path.glob("results/**/*.png"))) == 1


@pytest.mark.parametrize("command", [("solve", "kuhn_poker"), ("playout", "rps", "--seconds", "0")])
def test_too_little_address_space_is_refused_before_xla_aborts(command: tuple[str, ...]) -> None:
    limited = f"ulimit -v 1500000; exec {sys.executable} -m gdlx.cli {' '.join(command)} --quiet"
    ran = subprocess.run(["bash", "-c", limited], capture_output=True, text=True)
    assert ran.returncode == 1
    assert ran.stderr.startswith(
        "error: computing takes more than 2 GiB of address space, and this process may have 1.4"
    )
    assert "ulimit -v unlimited" in ran.stderr
