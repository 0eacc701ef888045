"""The benchmark harness: targets are computed, costs are measured."""

import dataclasses
import json
import operator
import pathlib
import shutil
import sys
import time
import types
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import pytest

import gdlx
from gdlx import cli
from gdlx.experiments.bench import (
    cfr_bench,
    compile_bench,
    harness,
    mccfr_bench,
    playout_bench,
    read_bench,
    search_bench,
    start_bench,
)
from gdlx.experiments.bench.measuring import figures_file, host_machine, ratio_plot
from gdlx.experiments.bench.playouts import playout_plot
from gdlx.propnet.checks import checker
from gdlx.propnet.syntax import source
from gdlx.solvers.search import beliefs


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
    figure = harness.Figure("f", value, "s", better, target=harness.Target(bound))
    assert figure.holds is holds
    assert figure.target_text() == text


@pytest.mark.parametrize(("better", "ratio"), [("lower", 4.0), ("higher", 0.25)])
def test_the_ratio_says_how_many_times_better_than_the_peer(better: Literal["lower", "higher"], ratio: float) -> None:
    figure = harness.Figure("f", 2.0, "s", better, "peer", 8.0, harness.Target(3, of="ratio"))
    assert figure.ratio == ratio
    assert figure.holds is (ratio >= 3)
    assert figure.target_text() == ">= 3x"


def test_nothing_is_claimed_without_a_target_or_without_the_peer() -> None:
    assert harness.Figure("f", 1.0, "s").holds is None
    missing = harness.Figure("f", 1.0, "s", peer="absent", target=harness.Target(3, of="ratio"))
    assert missing.ratio is None
    assert missing.holds is None


def _report(*figures: harness.Figure, complete: bool = True) -> figures_file.BenchReport:
    return dataclasses.replace(figures_file.new_report(), figures=figures, complete=complete)


def test_json_has_the_documented_shape() -> None:
    report = _report(harness.Figure("f", 1.0, "s", target=harness.Target(2), benchmark="read"))
    output = json.loads(json.dumps(report.to_json()))
    assert output == {
        "machine": dataclasses.asdict(host_machine.describe()),
        "versions": output["versions"],
        "when": report.when,
        "complete": True,
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
                "better": "lower",
                "bound": 2,
                "bound_of": "value",
                "note": None,
                "benchmark": "read",
            }
        ],
    }
    assert output["versions"]["gdlx"] == gdlx.__version__
    assert output["versions"]["numpy"] == np.__version__
    assert {"jax", "jaxlib", "clingo", "open_spiel", "pgx"} < output["versions"].keys()


FIGURES = (
    harness.Figure("fast", 2.0, "s", "lower", "a peer", 8.0, harness.Target(3, of="ratio"), benchmark="read"),
    harness.Figure("slow | slower", 5.0, "s", target=harness.Target(1), benchmark="read"),
    harness.Figure("bare", 7.0, "M/s", "higher", benchmark="cfr"),
    dataclasses.replace(harness.missing_peer("lonely", "pgx"), benchmark="cfr"),
)


def test_a_report_survives_its_file(tmp_path: pathlib.Path) -> None:
    report = _report(*FIGURES, complete=False)
    figures_file.write(tmp_path / "a.json", report)
    assert figures_file.read(tmp_path / "a.json") == report
    wild = harness.Figure("wild", float("nan"), "s", peer="p", peer_value=float("inf"))
    figures_file.write(tmp_path / "a.json", _report(wild))  # which JSON cannot express
    assert figures_file.read(tmp_path / "a.json").figures[0].value is None


@pytest.mark.parametrize("text", ["", "[]", "{", '{"machine": {}}', '{"figures": 3}', "[" * 100_000])
def test_a_file_without_figures(tmp_path: pathlib.Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.json").write_text(text)
    assert cli.main(["bench", "--from", str(tmp_path / "a.json")]) == 1
    printed = capsys.readouterr().err
    assert "a.json" in printed
    assert "gdlx bench NAME -o FILE.json" in printed


def test_markdown_has_a_row_for_every_figure() -> None:
    lines = figures_file.markdown(_report(*FIGURES)).splitlines()
    assert "| fast | 2 s | 8 s | 4x | a peer | >= 3x | yes |" in lines
    assert "| slow \\| slower | 5 s |  |  |  | <= 1 s | NO |" in lines
    assert "| lonely |  |  |  | peer pgx is not installed: skipped |  |  |" in lines
    assert sum(line.startswith("### ") for line in lines) == 2
    assert "Not complete" in figures_file.markdown(_report(complete=False))


def test_dots_of_figures() -> None:
    dots = [ratio_plot.dot(figure) for figure in FIGURES]
    assert dots[0] == ratio_plot.Dot("fast (a peer)", 4.0, 3.0, True)
    assert dots[1] == ratio_plot.Dot("slow | slower (<= 1 s)", 0.2, 1.0, False)
    assert dots[2:] == [None, None]
    # A target in seconds, on the axis of ratios: where the ratio would be if it were just met.
    figure = harness.Figure("start", 0.5, "s", "lower", "python", 0.1, harness.Target(1))
    assert ratio_plot.dot(figure) == ratio_plot.Dot("start (python)", 0.2, 0.1, True)
    faster = harness.Figure("rate", 30.0, "/s", "higher", target=harness.Target(10))
    assert ratio_plot.dot(faster) == ratio_plot.Dot("rate (>= 10 /s)", 3.0, 1.0, True)
    nothing = harness.Figure("error", 0.0, "", target=harness.Target(1))
    assert ratio_plot.dot(nothing) == ratio_plot.Dot("error (<= 1)", 1e4, 1.0, True)  # at the edge


def test_the_plot_has_every_dot(tmp_path: pathlib.Path) -> None:
    many = [dataclasses.replace(FIGURES[n % 2], name=f"figure {n}") for n in range(70)]
    assert ratio_plot.draw(tmp_path / "a.svg", [*many, *FIGURES[2:]]) == 70
    assert ratio_plot.draw(tmp_path / "b.png", []) == 0
    assert (tmp_path / "a.svg").read_text().count("figure 69") == 1


def test_every_benchmark_has_its_module() -> None:
    folder = pathlib.Path(harness.__file__).parent
    assert {path.name.removesuffix("_bench.py") for path in folder.glob("*_bench.py")} == set(harness.BENCHMARKS)


def test_the_best_time_is_the_fastest_call() -> None:
    delays = iter([0.5, 0.0, 0.5])
    assert host_machine.best_seconds(lambda: time.sleep(next(delays)), repeats=3) < 0.4


def test_peak_memory_is_that_of_the_child() -> None:
    assert 190 < host_machine.peak_mb(operator.mul, b"x", 200_000_000) - host_machine.peak_mb(int) < 220


@pytest.mark.parametrize("size", [5_000, 70_000])
def test_the_generated_sheet_is_valid_and_of_the_requested_size(size: int) -> None:
    text = read_bench.generate_sheet(size)
    assert size <= len(text) < size + 3_000
    assert checker.check(source.Source("generated", text)).errors == ()


def test_the_plot_of_playouts(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(playout_plot, "_rate", lambda game, batch, advance: (batch**0.5, len(game) * 10))
    actual = playout_plot.draw(tmp_path / "speed.svg")
    assert (tmp_path / "speed.svg").read_text().count("<path") > 24
    assert actual["picture"] == str(tmp_path / "speed.svg")


def test_wrong_calls(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, words in (
        (["read", "--speeds", "a.png"], "only the benchmark playout"),
        (["playout", "--speeds", str(tmp_path / "a.txt")], "end in .png"),
        (["playout", "--plot", str(tmp_path / "missing" / "a.png")], "there is no folder"),
        (["read", "-o", str(tmp_path / "a.csv")], "end in .json"),
        (["-o", str(tmp_path / "a.json")], "name the benchmarks to run"),
        (["read", "--from", str(tmp_path / "a.json")], "leave out names"),
        (["raed"], "no benchmark 'raed'"),
    ):
        assert cli.main(["bench", *arguments]) == 2
        assert words in " ".join(capsys.readouterr().err.split())


def test_the_first_and_the_second_call(tmp_path: pathlib.Path) -> None:
    for _ in range(2):
        assert start_bench.call_seconds("rps", str(tmp_path)) > 0
    assert list((tmp_path / "programs").rglob("jit_part*"))


def test_more_states_than_can_be_listed_are_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    find = beliefs.compute_belief

    def few(*arguments: Any, method: beliefs.BeliefMethod, **options: Any) -> Any:
        if method == "enumerate":
            raise beliefs.TooManyStatesError("too many")
        return find(*arguments, method=method, **options)

    monkeypatch.setattr(search_bench, "_BELIEF_GAMES", ("kuhn_poker",))
    monkeypatch.setattr(beliefs, "compute_belief", few)
    listed, *rate_figures = search_bench.belief_figures()
    assert (listed.value, listed.note) == (None, "too many")
    rates = [figure.value for figure in rate_figures if "agree" in figure.name]
    assert len(rates) == 2
    assert all(rate is not None and 0 < rate <= 1 for rate in rates)


def _benchmarks(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Installs a benchmark that fails, and one after it."""

    def broken() -> Iterator[harness.Figure]:
        yield harness.Figure("before [x]", 1.0, "s", peer="p", peer_value=2.0)
        raise error

    def sound() -> Iterator[harness.Figure]:
        yield harness.Figure("after", 3.0, "s", target=harness.Target(1))

    for name, figures in {"broken": broken, "sound": sound}.items():
        monkeypatch.setitem(sys.modules, f"gdlx.experiments.bench.{name}_bench", types.SimpleNamespace(figures=figures))
    monkeypatch.setattr(harness, "BENCHMARKS", {"broken": "stops", "sound": "goes on"})


def test_a_benchmark_that_fails_loses_nothing(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _benchmarks(monkeypatch, RuntimeError("no [peer]"))
    saved, picture = tmp_path / "a.json", tmp_path / "a.png"
    assert cli.main(["bench", "all", "-o", str(saved), "--plot", str(picture)]) == 1
    report = figures_file.read(saved)
    assert not report.complete
    assert [figure.name for figure in report.figures] == ["before [x]", "broken stopped early", "after"]
    assert [figure.benchmark for figure in report.figures] == ["broken", "broken", "sound"]
    assert report.figures[1].note == "RuntimeError: no [peer]"
    assert picture.stat().st_size > 5_000
    printed = capsys.readouterr().out
    assert "RuntimeError: no [peer]" in printed
    assert "before [x]" in printed

    assert cli.main(["bench", "--from", str(saved), "-o", str(tmp_path / "a.md")]) == 0  # nothing is measured
    assert capsys.readouterr().out == printed
    assert (tmp_path / "a.md").read_text() == figures_file.markdown(report)
    assert cli.main(["bench", "--from", str(saved), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(saved.read_text())


def test_an_interrupt_loses_nothing(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _benchmarks(monkeypatch, KeyboardInterrupt())
    written: list[figures_file.BenchReport] = []
    write = figures_file.write

    def noted(path: pathlib.Path, report: figures_file.BenchReport) -> None:
        written.append(report)
        write(path, report)

    monkeypatch.setattr(figures_file, "write", noted)
    assert cli.main(["bench", "all", "-o", str(tmp_path / "a.json"), "--json"]) == 130
    printed = capsys.readouterr()
    assert "interrupted after 1 figure" in printed.err
    output = json.loads(printed.out)
    assert output == json.loads((tmp_path / "a.json").read_text())
    assert not output["complete"]
    assert [figure["name"] for figure in output["figures"]] == ["before [x]"]
    assert len(written[0].figures) == 1  # before anything went wrong


def _hide(monkeypatch: pytest.MonkeyPatch, module: types.ModuleType, *unneeded: str) -> None:
    """Skips parts of a benchmark that need no peer."""
    for name in unneeded:
        monkeypatch.setattr(module, name, lambda: iter(()))


def test_without_open_spiel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspiel", None)
    _hide(monkeypatch, cfr_bench, "_unrolling", "_from_rules", "_batches", "_double_precision")
    _hide(monkeypatch, mccfr_bench, "_hash_table_figures")
    actual = list(harness.run(["cfr", "mccfr"]))
    assert [figure.note for figure in actual] == ["peer open_spiel is not installed: skipped"] * (5 + 4)
    assert "kuhn: CFR+ iteration" in {figure.name for figure in actual}
    assert all(figure.value is figure.ratio is figure.holds is None for figure in actual)


def test_without_the_jax_cfr_of_open_spiel(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspiel")
    monkeypatch.setitem(sys.modules, "open_spiel.python.jax.cfr", None)
    monkeypatch.setattr(cfr_bench, "_GAMES", cfr_bench._GAMES[:1])
    monkeypatch.setattr(cfr_bench, "_ROUND_SECONDS", 0.01)
    _hide(monkeypatch, cfr_bench, "_unrolling", "_from_rules", "_batches", "_double_precision")
    actual = {figure.name: figure for figure in harness.run(["cfr"])}
    assert actual["kuhn: CFR+ iteration, beside JAX"].note == "peer OpenSpiel's JAX CFR is not installed: skipped"
    assert actual["kuhn: CFR+ iteration"].ratio is not None


def test_without_pgx_and_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pgx", None)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(playout_bench, "_our_rate", lambda game: (5e6, 1.0, 20.0))
    actual = [figure for figure in harness.run(["playout"]) if figure.note]
    pgx, compiler = (f"peer {name} is not installed: skipped" for name in ("pgx", "cc"))
    assert [figure.note for figure in actual] == [pgx] * 2 + [compiler] * 5
    assert {figure.value for figure in actual} == {5.0}
    assert all(figure.holds is None for figure in actual)


def test_without_published_sheets(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_bench, "CORPUS", str(tmp_path / "none"))
    _hide(monkeypatch, compile_bench, "_library_figures", "_growth_figures")
    (figure,) = harness.run(["compile"])
    assert figure.note is not None
    assert figure.note.endswith("skipped")
