"""Queries over results, compared with plain Python on rows read by hand."""

import csv
import json
import pathlib
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from gdlx import cli
from gdlx.experiments.sweeps import config, query, run

GRID: dict[str, Any] = {
    "games": ["kuhn_poker"],
    "iterations": 20,
    "seeds": 2,
    "algorithms": [{"name": "dcfr", "alpha": [1.0, 1.5, 2.0]}, {"name": "os-mccfr", "batch": 16}],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("query") / "sweep"
    run.run_sweep(config.Sweep("query", config.expand_cells(GRID)), folder)
    return folder


def last_rows(folder: pathlib.Path) -> list[dict[str, str]]:
    with open(folder / "sweep.csv", newline="") as file:
        return list({row["cell"]: row for row in csv.DictReader(file)}.values())


def ask(capsys: Any, folder: pathlib.Path, *arguments: str) -> list[dict[str, Any]]:
    assert cli.main(["results", str(folder), "--json", *arguments]) == 0
    output: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["results"]
    return output


def test_all(folder: pathlib.Path, capsys: Any) -> None:
    expected = sorted(float(row["exploitability"]) for row in last_rows(folder))
    assert [row["exploitability"] for row in ask(capsys, folder)] == pytest.approx(expected)


def test_the_folder_may_be_an_option_as_in_other_commands(folder: pathlib.Path, capsys: Any) -> None:
    assert cli.main(["results", "--results", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["results"] == ask(capsys, folder)


def test_where(folder: pathlib.Path, capsys: Any) -> None:
    limit = sorted(float(row["exploitability"]) for row in last_rows(folder))[2]
    actual = ask(capsys, folder, "--where", f"exploitability<={limit!r}", "--where", "algorithm = dcfr")
    expected = [
        row for row in last_rows(folder) if float(row["exploitability"]) <= limit and row["algorithm"] == "dcfr"
    ]
    assert len(actual) == len(expected) > 0
    assert {row["seed"] for row in ask(capsys, folder, "--where", "seed>=1", "--columns", "seed")} == {1}
    assert len(ask(capsys, folder, "--where", "algorithm~MCCFR")) == 2
    assert len(ask(capsys, folder, "--where", "algorithm!=dcfr")) == 2
    assert len(ask(capsys, folder, "--where", "seed==1")) == len(ask(capsys, folder, "--where", "seed=1")) > 0
    assert ask(capsys, folder, "--where", "game=leduc_poker") == []


def test_order_and_columns(folder: pathlib.Path, capsys: Any) -> None:
    options = ("--sort", "alpha", "--descending", "--limit", "2", "--columns", "alpha,algorithm")
    actual = ask(capsys, folder, *options, "--where", "algorithm=dcfr")
    assert actual == [{"alpha": 2.0, "algorithm": "dcfr"}, {"alpha": 1.5, "algorithm": "dcfr"}]


def test_three_players_are_sorted_by_the_largest_improvement(tmp_path: pathlib.Path, capsys: Any) -> None:
    """They have no exploitability."""
    grid = {"games": ["smallest:players=3,numbers=3,steps=1"], "algorithms": [{"name": "cfr"}], "iterations": 1}
    run.run_sweep(config.Sweep("three", config.expand_cells(grid | {"iterations": 50})), tmp_path / "three")
    run.run_sweep(config.Sweep("more", config.expand_cells(grid)), tmp_path / "more")
    assert cli.main(["results", str(tmp_path)]) == 0
    assert "largest_improvement" in capsys.readouterr().out
    actual = [row["iterations"] for row in ask(capsys, tmp_path)]
    assert actual == [row["iterations"] for row in ask(capsys, tmp_path, "--sort", "improvement")]
    improvements = [row["largest_improvement"] for row in ask(capsys, tmp_path)]
    assert improvements == sorted(improvements)
    assert improvements[0] < improvements[1]


def test_table_and_file(folder: pathlib.Path, tmp_path: pathlib.Path, capsys: Any) -> None:
    assert cli.main(["results", str(folder), "--limit", "1"]) == 0
    shown = capsys.readouterr().out
    assert shown.splitlines()[0].split()[:3] == ["game", "algorithm", "alpha"]
    assert shown.splitlines()[-1] == "1 of 5 results"
    path = tmp_path / "all.csv"
    assert cli.main(["results", str(folder), "-o", str(path)]) == 0
    with open(path, newline="") as file:
        assert len(list(csv.DictReader(file))) == 5


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--where", "exploitability"], "is not a condition"),
        (["--where", "exploitability<small"], "'small' is not a number"),
        (["--where", "exploitabilty<1"], "is it exploitability?"),
        (["--where", "exploitability<nan"], "'nan' is not a number"),
        (["--where", "game<3"], "game is not a number"),
        (["--where", "alpha=1,5"], "alpha is a number in all results, and '1,5' is not"),
        (["--sort", "nothing_like_it"], "no result has a 'nothing_like_it'"),
        (["--columns", "alhpa"], "is it alpha?"),
    ],
)
def test_invalid_queries(arguments: list[str], says: str, folder: pathlib.Path, capsys: Any) -> None:
    assert cli.main(["results", str(folder), *arguments]) == 1
    assert says in capsys.readouterr().err


def test_nothing_there(tmp_path: pathlib.Path, capsys: Any) -> None:
    assert cli.main(["results", str(tmp_path / "none")]) == 1
    assert "is not a folder" in capsys.readouterr().err


@hypothesis.given(
    st.lists(st.one_of(st.none(), st.floats(-1e3, 1e3)), min_size=1), st.floats(-1e3, 1e3), st.sampled_from("<>=")
)
def test_comparisons(values: list[float | None], bound: float, compares: str) -> None:
    rows: list[query.Row] = [{"x": value} for value in values]
    actual = query.filter_rows(rows, [query.parse(f"x{compares}{bound!r}")])
    known = [value for value in values if value is not None]
    by_hand = {
        "<": [value for value in known if value < bound],
        ">": [value for value in known if value > bound],
        "=": [value for value in known if value == bound],
    }
    assert [row["x"] for row in actual] == by_hand[compares]
