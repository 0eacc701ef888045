"""The commands solve, evaluate and info --tree, as a user runs them."""

import csv
import json
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from gdlx import cli
from gdlx.cli import infoset_table
from gdlx.envs.trees import unroll
from gdlx.tests.helpers import commands

GDLX = [sys.executable, "-m", "gdlx.cli"]


def run_process(*arguments: str, cwd: pathlib.Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*GDLX, *arguments], capture_output=True, text=True, cwd=cwd, check=False)


@pytest.fixture(scope="module")
def solved(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    where = tmp_path_factory.mktemp("solved")
    ran = commands.run("solve", "kuhn_poker", "--algorithm", "cfr+", "--iterations", "200", cwd=where)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "exploitability" in ran.stdout
    assert "gdlx evaluate results/kuhn_poker/cfr+" in ran.stdout
    return where


def test_solve_json(tmp_path: pathlib.Path) -> None:
    ran = commands.run("solve", "kuhn_poker", "--target", "0.1%", "--json", cwd=tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")
    result = json.loads(ran.stdout)
    assert set(result) >= {
        "game",
        "algorithm",
        "iterations",
        "seconds",
        "goals",
        "value",
        "exploitability",
        "nash_conv",
        "improvements",
        "payoff_range",
        "result",
    }
    assert result["exploitability"] <= 0.004
    assert set(result["improvements"]) == {"player1", "player2"}
    assert result["nash_conv"] == pytest.approx(sum(result["improvements"].values()))
    assert result["nash_conv"] == pytest.approx(2 * result["exploitability"])
    assert result["value"]["player1"] == pytest.approx(-1 / 18, abs=0.01)
    assert result["payoff_range"] == [-2.0, 2.0]
    assert (tmp_path / result["result"] / "policy.npz").exists()


def test_evaluate(solved: pathlib.Path) -> None:
    ran = commands.run("evaluate", "results/kuhn_poker/cfr+", cwd=solved)
    assert ran.returncode == 0
    assert "(dealt king); (opponent_did bet)" in ran.stdout
    assert "call 100.0%" in ran.stdout


def test_evaluate_at_a_history(solved: pathlib.Path) -> None:
    where = "results/kuhn_poker/cfr+"
    ran = commands.run("evaluate", where, "--player", "player1", "--history", "(dealt queen)", "--json", cwd=solved)
    (row,) = json.loads(ran.stdout)["policy"]
    assert row["policy"]["check"] > 0.95
    ran = commands.run("evaluate", where, "--player", "player1", "--history", "(dealt ace)", cwd=solved)
    assert ran.returncode == 1
    assert "the nearest of its 6 information sets" in ran.stderr
    ran = commands.run("evaluate", where, "--history", "(dealt queen)", cwd=solved)
    assert ran.returncode == 2
    assert "--player" in ran.stderr


def test_evaluate_to_a_file(solved: pathlib.Path) -> None:
    ran = commands.run("evaluate", "results/kuhn_poker/cfr+", "-o", "policy.csv", cwd=solved)
    assert ran.returncode == 0
    rows = list(csv.DictReader((solved / "policy.csv").open()))
    assert len(rows) == 24


def test_information_sets_have_reach_and_values_in_the_order_of_the_rules(solved: pathlib.Path) -> None:
    where = "results/kuhn_poker/cfr+"
    rows = json.loads(commands.run("evaluate", where, "--player", "player1", "--json", cwd=solved).stdout)["policy"]
    # The rules declare the jack first; the tree has the sets in another order.
    assert [row["history"] for row in rows[:3]] == ["(dealt jack)", "(dealt queen)", "(dealt king)"]
    assert [row["reach"] for row in rows[:3]] == pytest.approx([1 / 3] * 3)
    # Kuhn (1950): the queen that checks loses a third; a bet with it is called by the king and loses two.
    assert rows[1]["value"] == pytest.approx(-1 / 3, abs=0.02)
    assert rows[1]["action_values"]["bet"] == pytest.approx(-1 / 2, abs=0.02)
    assert sum(row["reach"] * row["value"] for row in rows[:3]) == pytest.approx(-1 / 18, abs=0.01)
    shown = commands.run("evaluate", where, cwd=solved).stdout
    assert "fold 0.0% (-1)" in shown  # the king that folds, which it never does


def test_a_folder_above_results_names_them(solved: pathlib.Path) -> None:
    for above in (".", "results", "results/kuhn_poker"):
        ran = commands.run("evaluate", above, cwd=solved)
        assert (ran.returncode, "results/kuhn_poker/cfr+" in ran.stderr) == (1, above != "."), ran.stderr


def test_output_says_how_many_information_sets_it_lists(solved: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = "results/kuhn_poker/cfr+"
    ran = commands.run("evaluate", where, "--json", cwd=solved)
    assert json.loads(ran.stdout)["listed"] == {"player1": 6, "player2": 6}
    assert "listed" not in ran.stderr
    monkeypatch.setattr(infoset_table, "_MAX_SORTED", 4)
    for arguments in (("--json",), ()):
        ran = commands.run("evaluate", where, *arguments, cwd=solved)
        assert "the first information sets only, 4 of 6 of player1 and 4 of 6 of player2; --all lists all" in ran.stderr
    result = json.loads(commands.run("evaluate", where, "--player", "player2", "--json", cwd=solved).stdout)
    assert (result["listed"], len(result["policy"])) == ({"player2": 4}, 4)
    assert result["information_sets"] == {"player1": 6, "player2": 6}
    ran = commands.run("evaluate", where, "--all", "--json", cwd=solved)
    assert json.loads(ran.stdout)["listed"] == {"player1": 6, "player2": 6}
    assert "listed" not in ran.stderr


def test_a_policy_written_by_hand_is_evaluated(tmp_path: pathlib.Path) -> None:
    table = tmp_path / "bold.csv"
    table.write_text("player,information_set,action,probability\nplayer1,(dealt jack),bet,1\n")
    ran = commands.run("evaluate", "kuhn_poker", "--policy", "bold.csv", "--json", cwd=tmp_path)
    result = json.loads(ran.stdout)
    assert "nothing for 11 of 12 information sets" in ran.stderr
    assert "player1 '(dealt queen)', '(dealt king)', " in ran.stderr
    assert result["exact"]
    assert {name: listed["count"] for name, listed in result["missing"].items()} == {"player1": 5, "player2": 6}
    assert "(dealt jack)" not in result["missing"]["player1"]["first"]
    by_history = {row["history"]: row for row in result["policy"] if row["player"] == "player1"}
    assert by_history["(dealt jack)"]["policy"] == {"bet": 1.0, "check": 0.0}
    # Both cards of the opponent call a bet half of the time.
    assert by_history["(dealt jack)"]["value"] == pytest.approx(-0.5)
    assert result["exploitability"] > 0.3
    ran = commands.run("evaluate", "bold.csv", cwd=tmp_path)
    assert ran.returncode == 1
    assert "gdlx evaluate GAME --policy bold.csv" in ran.stderr


def test_resume(solved: pathlib.Path) -> None:
    ran = commands.run("solve", "--resume", "results/kuhn_poker/cfr+", "--iterations", "300", "--json", cwd=solved)
    assert json.loads(ran.stdout)["iterations"] == 300
    ran = commands.run("solve", "--resume", "results/kuhn_poker/cfr+", "--iterations", "100", cwd=solved)
    assert "has 300 iterations already" in ran.stderr
    assert "`gdlx solve --resume results/kuhn_poker/cfr+ --iterations 600`" in ran.stderr
    ran = run_process("solve", "--resume", "results/kuhn_poker/cfr+", "--x64", cwd=solved)
    assert ran.returncode == 1
    assert "single precision; resume it without --x64" in ran.stderr


def test_nothing_to_resume(tmp_path: pathlib.Path) -> None:
    assert commands.run("solve", "simple_poker", "--algorithm", "lp", cwd=tmp_path).returncode == 0
    ran = commands.run("solve", "--resume", "results/simple_poker/lp", cwd=tmp_path)
    assert ran.returncode == 1
    assert "was solved at once: there is nothing to resume" in ran.stderr


def test_rules_that_have_changed(tmp_path: pathlib.Path) -> None:
    sheet = tmp_path / "my.gdl"
    text = commands.run("show", "simple_poker", cwd=tmp_path).stdout
    sheet.write_text(text)
    assert commands.run("solve", "my.gdl", "--iterations", "5", cwd=tmp_path).returncode == 0
    sheet.write_text(commands.run("show", "kuhn_poker", cwd=tmp_path).stdout)
    ran = commands.run("evaluate", "results/my/dcfr", cwd=tmp_path)
    assert ran.returncode == 1
    assert "other rules" in ran.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("solve",), 2, "name a GAME"),
        (("solve", "kuhn_poker", "--resume", "x"), 2, "not both"),
        (("solve", "kuhn_poker", "--algorithm", "magic"), 1, "there is no algorithm 'magic'; there are auto, cfr"),
        (("solve", "kuhn_poker", "--iterations", "-5"), 2, "--iterations"),
        (("solve", "kuhn_poker", "--time", "-1"), 1, "more than 0 seconds"),
        (("solve", "kuhn_poker", "--target", "tiny"), 1, "not a number"),
        (("solve", "goofspiel:cards=5", "--algorithm", "dcfr", "--max-nodes", "1000"), 1, "too large to unroll"),
        (("solve", "smallest:numbers=2,steps=1", "--algorithm", "lp"), 1, "zero-sum"),
        (("solve", "--resume", "nowhere"), 1, "holds no result"),
        (("solve", "--resume", "nowhere", "--alpha", "3"), 2, "leave out --alpha"),
        (("solve", "kuhn_poker", "--alpha", "nan"), 1, "alpha must be"),
        (("solve", "kuhn_poker", "--algorithm", "lp", "--gamma", "3"), 1, "no settings"),
        (("solve", "connect_four", "--algorithm", "dcfr"), 1, "too large to unroll"),
        (
            ("solve", "krieg_tictactoe", "--algorithm", "dcfr"),
            1,
            "gdlx solve krieg_tictactoe --algorithm os-mccfr --table 22",
        ),
        (("evaluate", "nowhere"), 1, "nowhere holds no result: it does not exist"),
        (("evaluate", "spiel:kuhn_poker"), 1, "`gdlx evaluate spiel:kuhn_poker --policy POLICY`"),
        (("evaluate", "kuhn_poker", "--policy", "none:x"), 1, "there is no file none:x of a policy and no module"),
        (("evaluate", "kuhn_poker"), 1, "`gdlx evaluate kuhn_poker --policy POLICY`"),
        (("evaluate", "kuhn_poker", "--policy", "none.csv"), 1, "none.csv does not exist"),
        (("evaluate", "nowhere", "--gdl", "1"), 2, "leave out --gdl without --policy"),
    ],
)
def test_mistakes(tmp_path: pathlib.Path, arguments: tuple[str, ...], code: int, message: str) -> None:
    ran = commands.run(*arguments, cwd=tmp_path)
    assert ran.returncode == code
    assert message in ran.stderr
    assert "Traceback" not in ran.stderr
    assert ran.stdout == ""


def test_games_that_are_not_zero_sum_are_remarked(tmp_path: pathlib.Path) -> None:
    ran = commands.run("solve", "smallest:numbers=2,steps=1", "--iterations", "5", cwd=tmp_path)
    assert ran.returncode == 0
    assert "not a two-player zero-sum game" in ran.stderr


def test_an_interrupted_run_is_saved(tmp_path: pathlib.Path) -> None:
    process = subprocess.Popen(
        [*GDLX, "solve", "leduc_poker", "--iterations", "100000000", "--checkpoint", "0"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    folder = tmp_path / "results" / "leduc_poker" / "dcfr"
    while not (folder / "checkpoint.npz").exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert process.returncode == 130, err
    assert "exploitability" in out
    assert "--resume" in err
    assert (folder / "policy.npz").exists()
    again = commands.run("solve", "--resume", str(folder), "--iterations", "1", "--json", cwd=tmp_path)
    assert again.returncode == 0  # it is past that already


def test_info_tree(tmp_path: pathlib.Path) -> None:
    result = json.loads(commands.run("info", "leduc_poker", "--tree", "--json", cwd=tmp_path).stdout)
    # FACTS: counted with OpenSpiel.
    assert sum(result["information_sets"].values()) == 936
    assert result["terminals"] == 5_520
    assert result["histories"] == 9_457
    assert 4_000 < result["estimated_histories"] < 20_000
    shown = commands.run("info", "kuhn_poker", "--tree", cwd=tmp_path)
    assert "58 nodes for 58 histories" in shown.stdout
    assert "estimated size: " in shown.stderr


@pytest.mark.parametrize(("game", "depth"), [("blind_tictactoe", 3), ("phantom_tictactoe", 9)])
def test_info_refuses_a_game_too_large_before_unrolling_it(
    game: str, depth: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Random play alone shows the size, and the message names the command that unrolls as much as fits."""

    def unexpected(*_: object) -> None:
        raise AssertionError("a level was unrolled")

    monkeypatch.setattr(unroll._Unroller, "_evaluate", unexpected)
    assert cli.main(["info", game, "--tree"]) == 1
    message = " ".join(capsys.readouterr().err.split())
    assert "joint actions; allowed are 60,000,000" in message
    assert message.endswith(f"Unroll fewer steps: gdlx info {game} --tree --depth {depth}")


def test_the_depth_that_info_suggests_fits(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["info", "blind_tictactoe", "--tree", "--max-nodes", "30000"]) == 1
    command = capsys.readouterr().err.strip().rpartition("gdlx ")[2].split()
    assert command == ["info", "blind_tictactoe", "--tree", "--depth", "2"]
    assert cli.main([*command, "--max-nodes", "30000", "--json"]) == 0
    steps = json.loads(capsys.readouterr().out)["steps"]
    assert len(steps) == 3
    assert max(step["nodes"] for step in steps) <= 30_000


def test_info_suggests_no_depth_if_none_fits(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["info", "kuhn_poker", "--tree", "--max-nodes", "2"]) == 1
    message = capsys.readouterr().err
    assert "--max-nodes" in message
    assert "--depth" not in message


def test_games_of_open_spiel(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyspiel")
    assert cli.main(["info", "spiel:kuhn_poker", "--tree", "--json"]) == 0
    output = json.loads(capsys.readouterr().out)
    assert (output["terminals"], output["information_sets"]) == (30, {"player0": 6, "player1": 6})
    assert cli.main(["info", "spiel:kuhn_poker"]) == 1
    assert "gdlx info spiel:kuhn_poker --tree" in capsys.readouterr().err
    assert cli.main(["playout", "spiel:kuhn_poker"]) == 1
    assert "which has no rulesheet, and this needs one" in capsys.readouterr().err
    assert cli.main(["solve", "spiel:chess"]) == 1
    printed = capsys.readouterr().err
    assert "too large to unroll" in printed
    assert "--table" not in printed  # a hash table needs rules
