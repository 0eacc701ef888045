"""Games of states at the command line."""

import json
import pathlib
from typing import Any

from gdlx.tests.helpers import commands


def run(*arguments: str, cwd: pathlib.Path) -> dict[str, Any]:
    ran = commands.run(*arguments, "--json", cwd=cwd)
    assert (ran.returncode, ran.stderr) == (0, "")
    shown: dict[str, Any] = json.loads(ran.stdout)
    return shown


def test_solve_evaluate_and_a_history(tmp_path: pathlib.Path) -> None:
    solved = run("solve", "tictactoe", "--algorithm", "backward_induction", cwd=tmp_path)
    assert solved["value"] == {"x": 0.0, "o": 0.0}
    assert (solved["exploitability"], solved["states"], solved["joint_actions"]) == (0.0, 5_478, 16_167)
    evaluated = run("evaluate", solved["result"], "--player", "x", "--history", "(control x)", cwd=tmp_path)
    assert evaluated["exploitability"] == 0.0
    row = evaluated["policy"][0]
    assert row["reach"] == 1.0
    assert row["action_values"] == dict.fromkeys(row["policy"], 0.0)


def test_matrix_games_are_reported(tmp_path: pathlib.Path) -> None:
    ran = commands.run("solve", "repeated_rps:rounds=2", "--algorithm", "backward-induction", cwd=tmp_path)
    assert ran.returncode == 0
    assert "9 states with 36 joint actions, 2 steps" in ran.stdout
    assert "4 matrix games, 4 of them without a pure equilibrium" in ran.stdout


def test_cfr_on_states(tmp_path: pathlib.Path) -> None:
    solved = run("solve", "goofspiel:info=perfect,cards=3", "--states", "--iterations", "50", cwd=tmp_path)
    assert solved["algorithm"] == "dcfr"
    assert solved["nash_conv"] < 5


def test_refusals_name_the_option(tmp_path: pathlib.Path) -> None:
    ran = commands.run("solve", "kuhn_poker", "--states", cwd=tmp_path)
    assert ran.returncode == 1
    assert "cannot tell" in ran.stderr
    assert "--algorithm dcfr" in ran.stderr
    ran = commands.run("solve", "tictactoe", "--states", "--max-nodes", "100", cwd=tmp_path)
    assert ran.returncode == 1
    assert "--max-nodes" in ran.stderr
    assert not list(tmp_path.iterdir())
