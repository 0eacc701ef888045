"""Result folders of version 0.1, whose metrics have columns `gain_NAME` and no NashConv, can still be read."""

import csv
import json
import pathlib
import shutil

import pytest

from gdlx import cli
from gdlx.nets import checkpoints
from gdlx.solvers.runs import result_folder
from gdlx.tests.helpers import paths

OLD = paths.DATA / "results_format_4"
IMPROVEMENTS = (0.13932299613952637, 0.1419270932674408)  # of the last row of the saved files


@pytest.fixture
def solved(tmp_path: pathlib.Path) -> pathlib.Path:
    return shutil.copytree(OLD / "kuhn_poker_cfr", tmp_path / "solved")


def test_old_metrics() -> None:
    metrics = result_folder.read_metrics(OLD / "kuhn_poker_cfr", 2)
    assert [row.iterations for row in metrics] == [0, 1, 2, 3, 4]
    assert metrics[-1].improvements == IMPROVEMENTS
    assert metrics[-1].nash_conv == pytest.approx(sum(IMPROVEMENTS))
    assert metrics[-1].value[0] == pytest.approx(-0.05598966)
    assert metrics[-1].value_error == ()


def test_old_results_are_evaluated(solved: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["evaluate", str(solved), "--json"]) == 0
    evaluated = json.loads(capsys.readouterr().out)
    assert evaluated["iterations"] == 4
    assert evaluated["improvements"] == pytest.approx({"player1": IMPROVEMENTS[0], "player2": IMPROVEMENTS[1]})
    assert evaluated["nash_conv"] == pytest.approx(sum(IMPROVEMENTS))


def test_old_results_are_looked_up(solved: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    columns = "nash_conv,improvement_1,improvement_2,largest_improvement"
    assert cli.main(["results", str(solved), "--columns", columns, "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["results"]
    assert row["nash_conv"] == pytest.approx(sum(IMPROVEMENTS))
    assert (row["improvement_1"], row["improvement_2"]) == IMPROVEMENTS
    assert row["largest_improvement"] == max(IMPROVEMENTS)


def test_old_results_are_resumed(solved: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["solve", "--resume", str(solved), "--iterations", "6", "--json"]) == 0
    capsys.readouterr()
    with open(solved / result_folder.METRICS, newline="") as file:
        rows = {int(row["iterations"]): row for row in csv.DictReader(file)}
    assert sorted(rows)[:5] == [0, 1, 2, 3, 4]
    assert max(rows) == 6
    assert float(rows[4]["improvement_player2"]) == IMPROVEMENTS[1]
    for row in rows.values():
        assert not any(name.startswith("gain") for name in row)
        improvements = [float(row[f"improvement_{player}"]) for player in ("player1", "player2")]
        assert float(row["nash_conv"]) == pytest.approx(sum(improvements))
        assert float(row["nash_conv"]) == pytest.approx(2 * float(row["exploitability"]))


def test_old_sweeps_are_resumed(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(OLD / "sweep", tmp_path / "sweep")
    assert cli.main(["sweep", str(OLD / "sweep.toml"), "--results", str(tmp_path), "--json"]) == 0
    output = json.loads(capsys.readouterr().out)
    assert (output["cells"], output["earlier"], output["failed"]) == (1, 1, [])
    with open(output["table"], newline="") as file:
        last = list(csv.DictReader(file))[-1]
    assert (float(last["improvement_1"]), float(last["improvement_2"])) == pytest.approx(IMPROVEMENTS, abs=1e-6)


def test_old_metrics_of_training(tmp_path: pathlib.Path) -> None:
    (tmp_path / result_folder.METRICS).write_text("iteration,loss,gain_player1\n1,0.5,0.25\n")
    assert checkpoints.read_metrics(tmp_path) == [{"iteration": 1, "loss": 0.5, "improvement_player1": 0.25}]
