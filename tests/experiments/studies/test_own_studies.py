"""Studies of our own, in miniature: growth, fastest, batch_size, and the result cache."""

import json
import math
import os
import pathlib
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import gdlx
from gdlx.envs import game_spec
from gdlx.experiments.bench.measuring import host_machine
from gdlx.experiments.studies import baselines, result_cache, study_registry
from gdlx.experiments.studies.batch_size import study as batch_size
from gdlx.experiments.studies.fastest import racing
from gdlx.experiments.studies.fastest import study as fastest
from gdlx.experiments.studies.growth import measuring
from gdlx.experiments.studies.growth import study as growth
from gdlx.solvers import tasks
from gdlx.solvers.exact import cfr


def test_a_row_is_measured_once(tmp_path: pathlib.Path) -> None:
    path, calls = tmp_path / "row.json", []

    def measure() -> result_cache.Row:
        calls.append(1)
        return {"found": len(calls)}

    assert [result_cache.load_or_measure(path, {"size": 1}, measure)["found"] for _ in range(3)] == [1, 1, 1]
    assert result_cache.load_or_measure(path, {"size": 2}, measure) == {"found": 2}  # measured with other settings
    for broken in ("", "[]", '{"settings": {"size": 2}}', '{"settings": {"size": 2}, "row": 3}'):
        result_cache.cache_path(path, {"size": 2}).write_text(broken)
        assert result_cache.load_row(path, {"size": 2}) is None
    assert result_cache.load_or_measure(path, {"size": 2}, measure) == {"found": 3}
    assert result_cache.load_or_measure(path, {"size": 1}, measure) == {"found": 1}  # not lost to them


def test_arrays_are_of_one_precision_and_one_version(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "curve.npz"
    result_cache.write_arrays(path, {"error": np.arange(3.0)})
    with jax.enable_x64(True):
        assert result_cache.load_arrays(path, ["error"]) is None
        result_cache.write_arrays(path, {"error": np.arange(4.0)})
    (actual,) = result_cache.load_arrays(path, ["error"]) or [None]
    np.testing.assert_array_equal(actual, np.arange(3.0))
    assert result_cache.load_arrays(path, ["error", "seconds"]) is None
    monkeypatch.setattr(gdlx, "__version__", "0.0.1")
    assert result_cache.load_arrays(path, ["error"]) is None


def test_another_process_has_another_environment() -> None:
    before = dict(os.environ)
    assert host_machine.run_in_subprocess(os.getenv, "GDLX_TEST", environment={"GDLX_TEST": "there"}) == "there"
    assert dict(os.environ) == before


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """Runs in this process what would run in another one; returns the environments that it would have."""
    environments = []

    def call(function: Callable[..., Any], *arguments: Any, environment: dict[str, str] | None = None) -> Any:
        environments.append(environment or {})
        return function(*arguments)

    monkeypatch.setattr(host_machine, "run_in_subprocess", call)
    return environments


def _run(study: Any, folder: pathlib.Path, minutes: float, **more: Any) -> list[study_registry.StudyTable]:
    actual = list(study.run(study_registry.StudyConfig(folder, minutes, **more)))
    for table in actual:
        assert {len(row) for row in table.rows} == {len(table.header)}
    json.dumps([table._asdict() for table in actual], allow_nan=False)
    assert (folder / study.FIGURE).stat().st_size > 10_000
    return actual


def test_the_time_of_one_of_many() -> None:
    assert measuring.time_per_call(lambda count: time.sleep(0.002 * count), 0.03) >= 0.002


def test_costs_of_a_game() -> None:
    actual = measuring.from_row(measuring.measure_game("kuhn_poker", 0.01))
    assert (actual.sets, actual.terminals, actual.nodes) == (
        12,
        30,
        58,
    )  # as in Kuhn (1950): 6 information sets per player, 30 terminals
    assert min(actual.unrolling, actual.peak_mb, actual.copying, *actual.full, *actual.sampled) > 0
    form = tasks.make_tree_task(game_spec.GameSpec("kuhn_poker")).form
    arrays = [np.asarray(leaf) for leaf in jax.tree.leaves((form, cfr.init(form)))]
    assert actual.full.megabytes * 1e6 == pytest.approx(sum(array.size * array.itemsize for array in arrays))


def _size(ends: int, power: float) -> measuring.GameCost:
    cost = measuring.IterationCost(1e-9 * ends**power, 1e-5 * ends)
    return measuring.GameCost(f"game of {ends}", ends // 4, ends, 2 * ends, 1e-6 * ends, 100.0, 1e-9 * ends, cost, cost)


def test_slopes_are_those_of_powers() -> None:
    actual = growth.slopes([_size(10**power, 1.5) for power in range(1, 8)])
    assert [round(policy.all, 6) for policy in actual] == [1.5, 1.5, 1.5, pytest.approx(1.5, abs=0.02), 1.0, 1.0]
    assert actual[0].large == pytest.approx(1.5)
    alone = growth.slopes([_size(10, 1.0)])
    assert all(math.isnan(policy.all) and math.isnan(policy.large) for policy in alone)


@pytest.mark.usefixtures("here")
def test_growth_resumes(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "FAMILIES", {"small": ("rps", "kuhn_poker")})
    first = _run(growth, tmp_path, 0.3)
    assert [row[:3] for row in first[0].rows] == [("rps", "2", "9"), ("kuhn_poker", "12", "30")]
    monkeypatch.setattr(measuring, "measure_game", None)
    assert _run(growth, tmp_path, 0.3) == first


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fastest, "GAMES", ("kuhn_poker", "biased_rps"))
    monkeypatch.setattr(fastest, "_PLAIN", ("cfr", "cfr+"))
    monkeypatch.setattr(fastest, "_SCHEDULED", ("hs-dcfr",))
    monkeypatch.setattr(fastest, "_SAMPLED", ("os-mccfr",))
    monkeypatch.setattr(
        fastest,
        "ACCURACY_TARGETS",
        (fastest.AccuracyTarget(1e-2, False, (10, 100)), fastest.AccuracyTarget(1e-3, True, (100,))),
    )


@pytest.mark.usefixtures("few")
def test_the_fastest_are_found(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, here: list[dict[str, str]]
) -> None:
    tables = _run(fastest, tmp_path, 5.0)
    assert here == [{"JAX_ENABLE_X64": precision} for precision in ("0", "0", "1", "1")]
    monkeypatch.setattr(racing, "run_race", None)
    assert _run(fastest, tmp_path, 5.0) == tables  # nothing is solved again
    seconds, _, winners, ranks = tables[:4]
    data: Any = seconds.data
    reported: Any = winners.data
    for game, winner in zip(data["games"], reported, strict=True):
        rows = data["games"][game]
        assert all(row["error"] <= 1e-2 for row in rows if row["is_reached"])
        times = {row["candidate"]: row["seconds"] for row in rows if row["is_reached"]}
        assert winner["winner"] == min(times, key=times.__getitem__)
    reached = [{row["candidate"]: row["seconds"] for row in rows} for rows in data["games"].values()]
    counted = {  # 1 and how many were faster
        name: np.mean([1 + sum(other < own[name] for other in own.values()) for own in reached]) for name in reached[0]
    }
    listed: Any = ranks.data
    assert {own["candidate"]: own["mean"] for own in listed} == pytest.approx(counted)
    assert sum(own["wins"] for own in listed) == 2


def test_a_race_takes_as_many_iterations_as_solving() -> None:
    task = tasks.make_tree_task(game_spec.GameSpec("kuhn_poker"))
    race = racing.RaceConfig("kuhn_poker", 1e-3, 60.0, 0)
    for candidate in (racing.Candidate("cfr+"), racing.Candidate("hs-dcfr", 100)):
        actual = racing.measure_candidate(task, race, candidate)
        settings: dict[str, Any] = {"horizon": 100.0} if candidate.horizon else {}
        direct = gdlx.solve(task.tree, candidate.algorithm, target="0.1%", **settings)
        assert actual.is_reached
        assert actual.iterations == direct.iterations
        assert actual.error == pytest.approx(direct.metrics[-1].error / 4)  # payoffs are from -2 to 2
        assert actual.seconds is not None
        assert actual.seconds > 0
    out_of_time = racing.measure_candidate(task, race._replace(part=1e-12, limit=0.01), racing.Candidate("cfr"))
    assert not out_of_time.is_reached
    assert out_of_time.error > 1e-12
    exact = racing.measure_candidate(task, race, racing.Candidate("lp"))
    assert exact.is_reached
    assert exact.iterations == 0


def test_ranks_of_those_that_are_late() -> None:
    def result(name: str, seconds: float | None, is_reached: bool = True) -> racing.RaceResult:
        return racing.RaceResult(name, is_reached, seconds, 1, 0.0)

    actual = {
        "one": [result("a", 1.0), result("b", 2.0), result("c", 9.0, False), result("d", None, False)],
        "two": [result("a", 6.0), result("b", 3.0), result("c", 4.0), result("d", None, False)],
        "none": [result(name, 9.0, False) for name in "abcd"],
    }
    by_name = {policy.candidate: policy for policy in fastest.ranks(actual)}
    assert {name: (policy.reached, policy.wins) for name, policy in by_name.items()} == {
        "a": (2, 1), "b": (2, 1), "c": (1, 0), "d": (0, 0),
    }  # fmt: skip
    means = {"a": (1 + 3 + 2.5) / 3, "b": (2 + 1 + 2.5) / 3, "c": (3.5 + 2 + 2.5) / 3, "d": (3.5 + 4 + 2.5) / 3}
    assert {name: policy.mean for name, policy in by_name.items()} == pytest.approx(means)
    assert [by_name[name].slowdown for name in "abd"] == [2.0, 2.0, math.inf]


def test_a_run_until_both_marks() -> None:
    actual = batch_size.measure_run(baselines.load_tree_sampler("kuhn_poker").run(64, None, 0), 4_096, 0.01)
    direct = baselines.load_tree_sampler("kuhn_poker").run(64, None, 0)
    direct.advance_to(4_096)
    assert actual.at_trajectories == pytest.approx(direct.exploitability())
    assert actual.rate > 0
    assert 0 < actual.at_seconds < 0.5


def test_batch_sizes_resume(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"GAMES": ("kuhn_poker",), "BATCHES": (64, 128), "TRAJECTORIES": 4_096, "SEEDS": 2}.items():
        monkeypatch.setattr(batch_size, name, value)
    first = _run(batch_size, tmp_path, 0.01)
    runs: Any = first[0].data
    assert [[own["batch"], len(own["runs"])] for own in runs["kuhn_poker"]] == [[64, 2], [128, 2]]
    monkeypatch.setattr(batch_size, "measure_point", None)
    assert _run(batch_size, tmp_path, 0.01) == first
