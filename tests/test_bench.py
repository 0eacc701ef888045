"""The benchmark harness: targets are computed, costs are measured."""

import dataclasses
import json
import operator
import pathlib
import sys
import time
import types
from collections.abc import Iterator
from typing import Literal

import pytest

from gdlx import cli
from gdlx.experiments import bench, machine, playout_plot, read_bench, start_bench
from gdlx.propnet import check, source


@pytest.mark.parametrize(
    ("value", "better", "bound", "holds", "text"),
    [
        (0.5, "lower", 1, True, "<= 1 s"),
        (1.5, "lower", 1, False, "<= 1 s"),
        (1.5, "higher", 1, True, ">= 1 s"),
        (0.5, "higher", 1, False, ">= 1 s"),
    ],
)
def test_a_target_on_the_value(
    value: float, better: Literal["lower", "higher"], bound: float, holds: bool, text: str
) -> None:
    figure = bench.Figure("f", value, "s", better, target=bench.Target(bound))
    assert figure.holds is holds
    assert figure.target_text() == text


@pytest.mark.parametrize(("better", "ratio"), [("lower", 4.0), ("higher", 0.25)])
def test_the_ratio_says_how_many_times_better_than_the_peer(better: Literal["lower", "higher"], ratio: float) -> None:
    figure = bench.Figure("f", 2.0, "s", better, "peer", 8.0, bench.Target(3, of="ratio"))
    assert figure.ratio == ratio
    assert figure.holds is (ratio >= 3)
    assert figure.target_text() == ">= 3x"


def test_nothing_is_claimed_without_a_target_or_without_the_peer() -> None:
    assert bench.Figure("f", 1.0, "s").holds is None
    missing = bench.Figure("f", 1.0, "s", peer="absent", target=bench.Target(3, of="ratio"))
    assert missing.ratio is None
    assert missing.holds is None


def test_json_has_the_documented_shape() -> None:
    result = bench.as_json([bench.Figure("f", 1.0, "s", target=bench.Target(2))])
    assert json.loads(json.dumps(result)) == {
        "machine": dataclasses.asdict(machine.describe()),
        "figures": [
            {
                "name": "f",
                "value": 1.0,
                "unit": "s",
                "peer": None,
                "peer_value": None,
                "ratio": None,
                "target": "<= 2 s",
                "holds": True,
            }
        ],
    }


def test_every_benchmark_has_its_module() -> None:
    folder = pathlib.Path(bench.__file__).parent
    assert {path.name.removesuffix("_bench.py") for path in folder.glob("*_bench.py")} == set(bench.BENCHMARKS)


def test_the_best_time_is_the_fastest_call() -> None:
    delays = iter([0.05, 0.0, 0.05])
    assert machine.best_seconds(lambda: time.sleep(next(delays)), repeats=3) < 0.04


def test_peak_memory_is_that_of_the_child() -> None:
    assert 190 < machine.peak_mb(operator.mul, b"x", 200_000_000) - machine.peak_mb(int) < 220


@pytest.mark.parametrize("size", [5_000, 70_000])
def test_the_generated_sheet_is_sound_and_as_large_as_asked(size: int) -> None:
    text = read_bench.sheet(size)
    assert size <= len(text) < size + 3_000
    assert check.check(source.Source("generated", text)).errors == ()


def test_the_plot_of_playouts(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(playout_plot, "_rate", lambda game, batch, advance: (batch**0.5, len(game) * 10))
    found = playout_plot.draw(tmp_path / "speed.svg")
    assert (tmp_path / "speed.svg").read_text().count("<path") > 24
    assert found["picture"] == str(tmp_path / "speed.svg")


def test_wrong_calls_of_the_plot(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, words in (
        (["read", "--plot", "a.png"], "only the benchmark playout"),
        (["playout", "--plot", str(tmp_path / "a.txt")], "end in .png"),
        (["playout", "--plot", str(tmp_path / "missing" / "a.png")], "a folder that is there"),
    ):
        assert cli.main(["bench", *arguments]) == 2
        assert words in " ".join(capsys.readouterr().err.split())


def test_the_first_and_the_second_call(tmp_path: pathlib.Path) -> None:
    for _ in range(2):
        assert start_bench.call_seconds("rps", str(tmp_path)) > 0
    assert list((tmp_path / "programs").rglob("jit_part*"))


def test_a_benchmark_that_fails_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def figures() -> Iterator[bench.Figure]:
        yield bench.Figure("before", 1.0, "s")
        raise RuntimeError("no peer")

    monkeypatch.setitem(sys.modules, "gdlx.experiments.broken_bench", types.SimpleNamespace(figures=figures))
    first, second = bench.run(["broken"])
    assert first.name == "before"
    assert second.name == "broken stopped early"
    assert second.peer == "RuntimeError: no peer"
