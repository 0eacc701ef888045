"""The command `playout`: its output, and games and options that it refuses."""

import json
import os
import pathlib
import signal
import subprocess
import sys

import pytest

from gdlx.envs import payoffs
from gdlx.tests.helpers import commands, sheets, xla_flags

GDLX = [sys.executable, "-m", "gdlx.cli", "playout"]
SHORT = ("--batch", "64", "--seconds", "0")


def run(*arguments: str, devices: int | None = None) -> "subprocess.CompletedProcess[str]":
    """In a process with so many devices, or in this one."""
    if devices is None:
        return commands.run("playout", *arguments, cwd=pathlib.Path.cwd())
    environment = xla_flags.environment_with_devices(devices)
    return subprocess.run([*GDLX, *arguments], env=environment, capture_output=True, text=True)


def written(folder: pathlib.Path, text: str) -> str:
    (folder / "sheet.gdl").write_text(text)
    return str(folder / "sheet.gdl")


def test_json() -> None:
    ran = run("tictactoe", "--batch", "1000", "--seconds", "0.3", "--json")
    assert (ran.returncode, ran.stderr) == (0, "")
    result = json.loads(ran.stdout)
    assert set(result) >= {
        "game",
        "batch",
        "states",
        "seconds",
        "states_per_second",
        "mean_length",
        "mean_rewards",
        "mean_goals",
        "zero_sum",
        "matches",
        "unplayable",
        "overlong",
        "goal_conflicts",
        "ready_seconds",
    }
    assert result["game"] == "tictactoe"
    assert result["batch"] >= 1000
    assert result["batch"] % 32 == 0
    assert result["states"] % result["batch"] == 0
    assert result["states_per_second"] == pytest.approx(result["states"] / result["seconds"])
    assert 5 < result["mean_length"] < 9.5
    assert result["mean_rewards"]["x"] == pytest.approx(-result["mean_rewards"]["o"])
    assert result["mean_rewards"]["x"] == result["mean_goals"]["x"] - 50
    assert result["zero_sum"] is True


def test_text() -> None:
    ran = run("monty_hall", *SHORT)
    assert (ran.returncode, ran.stderr) == (0, "")
    lines = ran.stdout.splitlines()
    assert lines[0].startswith("monty_hall: ")
    assert "million states/s" in lines[0]
    assert "joint actions on average" in lines[1]
    assert lines[2].split()[:3] == ["candidate", "mean", "goal"]
    assert all("biased to short matches" in line for line in lines[3:])  # as such a short run may be


def test_help_explains_the_bias_to_short_matches() -> None:
    assert "they are biased to short matches" in " ".join(run("--help").stdout.split())


def test_the_seed_and_the_devices() -> None:
    """A seed determines the games, on one device and on four; the time only determines how many are played."""
    playing = ("tictactoe", "--batch", "128", "--seconds", "0", "--json", "--seed")
    first, again, other, four = (
        json.loads(run(*playing, seed, devices=devices).stdout)
        for seed, devices in (("1", None), ("1", None), ("2", None), ("1", 4))
    )
    assert first["mean_goals"] == again["mean_goals"] == four["mean_goals"]
    assert first["mean_goals"] != other["mean_goals"]


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        (sheets.CONFLICTS, (), "terminal states with several goal values or none"),
        (sheets.DEAD_END, (), "states without a legal move for some role"),
        (sheets.DEAD_END, (), "`gdlx check --play "),
        (sheets.ENDLESS, ("--max-steps", "2"), "games stopped after 2 joint actions"),
    ],
)
def test_abnormal_terminations_are_reported(
    text: str, options: tuple[str, ...], said: str, tmp_path: pathlib.Path
) -> None:
    ran = run(written(tmp_path, text), *SHORT, *options)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert said in ran.stdout


def test_what_cannot_be_played(tmp_path: pathlib.Path) -> None:
    for arguments, code, words in (
        (("tictacto",), 1, "no game 'tictacto'"),
        (("goofspiel:cards=0",), 1, "cards must be"),
        ((str(tmp_path / "missing.gdl"),), 1, "missing.gdl: No such file"),
        (("rps", "--batch", "0"), 2, "--batch"),
        (("rps", "--max-steps", "0"), 2, "--max-steps"),
        (("rps", "--payoff", "money"), 2, "--payoff"),
        (("smallest", "--payoff", "zero-sum", *SHORT), 1, "needs two players"),
        ((written(tmp_path, sheets.OVER_AT_ONCE), *SHORT), 1, "over before the first move"),
    ):
        ran = run(*arguments)
        assert (ran.returncode, ran.stdout) == (code, ""), arguments
        assert words in ran.stderr
        assert "Traceback" not in ran.stderr
        assert "bug" not in ran.stderr


def test_goal_sums_that_turn_out_not_to_be_constant(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Payoffs are inferred from the first matches; a contradiction in later ones stops the command."""
    rare = "(role a) (role b) (legal a go) (legal b go) (init (at 0)) " + " ".join(
        f"(succ {n} {n + 1})" for n in range(12)
    )
    rare += """
        (role random) (legal random up) (legal random down)
        (<= (next (at ?n)) (true (at ?m)) (succ ?m ?n) (does random up))
        (<= (next end) (does random down))
        (<= terminal (true end)) (<= terminal (true (at 12)))
        (<= (goal a 60) (true end)) (<= (goal b 40) (true end))
        (<= (goal a 90) (true (at 12))) (<= (goal b 90) (true (at 12)))
    """
    monkeypatch.setattr(payoffs, "_SAMPLED_TERMINALS", 20)
    monkeypatch.setattr(payoffs, "_ROUNDS", ((10, 100),))
    ran = run(written(tmp_path, rare), "--batch", "65536", "--seconds", "0.2")
    assert (ran.returncode, ran.stdout) == (1, "")
    assert "had the sum 100" in ran.stderr
    assert "--payoff goal" in ran.stderr


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a pseudo-terminal")
def test_progress_and_ctrl_c() -> None:
    """A terminal shows the speed; an interrupted command prints the results so far."""
    terminal, its_end = os.openpty()
    command = [*GDLX, "rps", "--batch", "64", "--seconds", "60"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=its_end, text=True) as process:
        shown = b""
        while b"states/s" not in shown:
            shown += os.read(terminal, 10_000)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate()
    os.close(its_end)
    os.close(terminal)
    assert process.returncode == 130
    assert out.splitlines()[0].endswith(", interrupted")
    assert b"playing rps" in shown


def test_a_batch_larger_than_memory() -> None:
    ran = run("tictactoe", "--batch", "99999999999")
    assert ran.returncode == 2
    assert "GiB" in ran.stderr


def test_means_of_short_runs_are_remarked() -> None:
    ran = run("tictactoe", "--batch", "64", "--seconds", "0")
    assert "biased to short matches" in ran.stdout


COUNTED = """
(role you) (init (step 0)) (<= (legal you wait) (role you))
{successors}
(<= (next (step ?m)) (true (step ?n)) (succ ?n ?m))
(<= terminal (true (step 12))) (goal you 100)
"""


def test_the_mean_length_leaves_out_unfinished_matches(tmp_path: pathlib.Path) -> None:
    """A game that always lasts 12 joint actions, stopped in the middle of a match."""
    text = COUNTED.format(successors=" ".join(f"(succ {n} {n + 1})" for n in range(12)))
    result = json.loads(run(written(tmp_path, text), "--batch", "64", "--seconds", "0.05", "--json").stdout)
    assert result["mean_length"] == 12
