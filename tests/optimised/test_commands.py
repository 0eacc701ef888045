"""Every command once as users run it: in a fresh process, with XLA's optimisations on (`make test-optimised`)."""

import json
import os
import pathlib
import subprocess
import sys
from typing import Any

import pytest

from gdlx import cli

pytestmark = pytest.mark.optimised
SWEEP = """
games = ["kuhn_poker"]
iterations = 50
seeds = 2
[[algorithms]]
name = "os-mccfr"
batch = 64
[[algorithms]]
name = "dcfr"
gamma = [1.0, 2.0]
"""


def run(folder: pathlib.Path, *arguments: str) -> dict[str, Any]:
    """What a command prints under --json."""
    fast = ("JAX_DISABLE_MOST_OPTIMIZATIONS", "XLA_FLAGS")  # what the other tests set
    environment = {name: value for name, value in os.environ.items() if name not in fast}
    command = [sys.executable, "-m", "gdlx.cli", *arguments, "--json"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    printed: dict[str, Any] = json.loads(done.stdout)
    return printed


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return tmp_path_factory.mktemp("commands")


@pytest.fixture(scope="module")
def solved(folder: pathlib.Path) -> dict[str, Any]:
    return run(folder, "solve", "leduc_poker", "--algorithm", "cfr+", "--iterations", "500")


def test_solve(solved: dict[str, Any]) -> None:
    # Leduc poker is worth -0.085606 chips to the first player (OpenSpiel's game by linear programming).
    assert solved["value"]["player1"] == pytest.approx(-0.085606, abs=2e-3)
    assert solved["exploitability"] < 2e-3
    assert solved["nash_conv"] == pytest.approx(sum(solved["improvements"].values()))


@pytest.mark.parametrize("algorithm", ["dcfr", "pcfr+", "fp", "lp", "os-mccfr", "es-mccfr"])
def test_solve_by(algorithm: str, folder: pathlib.Path) -> None:
    actual = run(folder, "solve", "kuhn_poker", "--algorithm", algorithm, "--iterations", "500")
    # Kuhn (1950): -1/18.
    assert actual["value"]["player1"] == pytest.approx(-1 / 18, abs=0.03)
    assert actual["exploitability"] < 0.05


def test_solve_into_a_hash_table(folder: pathlib.Path) -> None:
    actual = run(folder, "solve", "kuhn_poker", "--algorithm", "vr-mccfr", "--table", "10", "--iterations", "500")
    assert actual["exploitability"] < 0.05


def test_evaluate_a_saved_policy(solved: dict[str, Any], folder: pathlib.Path) -> None:
    again = run(folder, "evaluate", solved["result"])
    assert again["exploitability"] == pytest.approx(solved["exploitability"], rel=1e-3)


def test_evaluate_bound(folder: pathlib.Path) -> None:
    policy = run(folder, "solve", "kuhn_poker", "--algorithm", "cfr", "--iterations", "2")
    bounded = run(folder, "evaluate", policy["result"], "--bound", "--bound-seconds", "3")
    assert 0 < bounded["exploitability_bound"] < policy["exploitability"] * 1.3


def test_infoset(folder: pathlib.Path) -> None:
    # Who holds one of three cards, after the deal: the opponent holds one of the other two.
    counted = run(folder, "infoset", "kuhn_poker", "--player", "player1", "--moves", "2", "--seed", "1", "--count")
    assert (counted["histories"], counted["complete"]) == (2, True)


def test_playout(folder: pathlib.Path) -> None:
    played = run(folder, "playout", "connect_four", "--seconds", "0.5", "--batch", "8192")
    # Uniformly random matches of connect four last 21.3 moves on average.
    assert played["mean_length"] == pytest.approx(21.3, abs=0.5)


def test_match_and_tournament(solved: dict[str, Any], folder: pathlib.Path) -> None:
    match = run(folder, "match", "leduc_poker", solved["result"], "random", "--games", "2000")
    assert match["agents"][0]["payoff"]["mean"] > 0.2
    rounds = run(folder, "tournament", "kuhn_poker", "random", "uct:iterations=20", "pimc:visits=20", "--games", "4")
    assert rounds["matches"]


def test_train(folder: pathlib.Path) -> None:
    trained = run(folder, "train", "kuhn_poker", "--iterations", "2", "--set", "games=64")
    assert trained["iterations"] == 2
    assert run(folder, "evaluate", trained["result"])["learner"] == "self-play"


def test_sweep_results_and_report(folder: pathlib.Path) -> None:
    (folder / "small.toml").write_text(SWEEP)
    swept = run(folder, "sweep", "small.toml")
    assert (swept["cells"], swept["failed"]) == (4, [])
    assert len(run(folder, "results", swept["result"])["results"]) == 4
    page = run(folder, "report", swept["result"], "-o", "page.html")
    assert page
    assert (folder / "page.html").read_text().startswith("<!DOCTYPE html>")


def test_commands_on_rules(folder: pathlib.Path) -> None:
    assert {game["name"] for game in run(folder, "games")["games"]} >= {"kuhn_poker", "leduc_poker"}
    assert run(folder, "check", "kuhn_poker", "--play")["files"][0]["errors"] == []
    assert "(role player1)" in run(folder, "show", "kuhn_poker")["text"]
    assert run(folder, "info", "kuhn_poker", "--tree")["information_sets"] == {"player1": 6, "player2": 6}
    assert run(folder, "compile", "kuhn_poker", "-o", "kuhn.npz")["gates"] > 0


def test_the_other_commands(folder: pathlib.Path) -> None:
    assert run(folder, "doctor")["gdlx"]
    assert run(folder, "bench", "read")["figures"]
    assert run(folder, "experiment")


def test_every_command_is_run_here() -> None:
    text = pathlib.Path(__file__).read_text()
    names = [command.callback.__name__ for command in cli.app.registered_commands if command.callback is not None]
    interactive = {"play"}  # tests/cli/test_match.py types its answers
    assert [name for name in names if f'run(folder, "{name}"' not in text and name not in interactive] == []
