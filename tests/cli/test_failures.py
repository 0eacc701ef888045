"""What the machine lacks is not called a bug in gdlx: the message says what it is and what to try."""

import pathlib
import subprocess
import sys

import pytest

from gdlx import cli
from gdlx.cli import failures
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
