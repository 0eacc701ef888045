"""The driver: stop conditions, metrics, independence of chunks, and resuming."""

import json
import math
import pathlib
from typing import Any

import jax
import numpy as np
import pytest

from gdlx.envs import game_spec
from gdlx.envs.trees import sequence_form
from gdlx.solvers import algorithms, tasks
from gdlx.solvers.exact import cfr
from gdlx.solvers.runs import driver, policy_files, result_folder, solver_run, tree_solvers


@pytest.fixture(scope="module")
def kuhn() -> tasks.TreeTask:
    return tasks.make_tree_task(game_spec.GameSpec("kuhn_poker"))


def points(task: tasks.TreeTask, stop: driver.StopCondition, every: int | None = None) -> list[driver.Snapshot[Any]]:
    solver = solver_run.make_solver(task, algorithms.find("cfr+"))
    return list(driver.iterate(solver, solver.init(), stop, every=every))


def test_stops_after_the_iterations(kuhn: tasks.TreeTask) -> None:
    measured = points(kuhn, driver.StopCondition(iterations=37))
    assert measured[0].metrics.iterations == 0
    assert measured[-1].metrics.iterations == 37
    assert int(measured[-1].state.t) == 37


def test_zero_iterations_are_the_uniform_policy(kuhn: tasks.TreeTask) -> None:
    (only,) = points(kuhn, driver.StopCondition(iterations=0))
    # OpenSpiel: the uniform policy of Kuhn poker has NashConv 11/12 and value 1/8 for the first player.
    assert only.metrics.exploitability == pytest.approx(11 / 24)
    assert only.metrics.value[0] == pytest.approx(1 / 8)


def test_stops_at_the_target(kuhn: tasks.TreeTask) -> None:
    measured = points(kuhn, driver.StopCondition(target=1e-3))
    last = measured[-1].metrics.exploitability
    assert last is not None
    assert last <= 1e-3
    assert all(point.metrics.error > 1e-3 for point in measured[1:-1])


def test_stops_after_the_time(kuhn: tasks.TreeTask) -> None:
    measured = points(kuhn, driver.StopCondition(seconds=0.05))
    assert measured[-1].metrics.seconds >= 0.05
    assert measured[-1].metrics.iterations > 100


def test_without_a_limit_a_thousand() -> None:
    assert driver.StopCondition().last == 1_000
    assert driver.StopCondition(target=1.0).last == math.inf


def test_metrics_where_they_are_wanted(kuhn: tasks.TreeTask) -> None:
    measured = points(kuhn, driver.StopCondition(iterations=50), every=20)
    assert [point.metrics.iterations for point in measured] == [0, 20, 40, 50]


def test_chunks_do_not_matter(kuhn: tasks.TreeTask) -> None:
    coarse = points(kuhn, driver.StopCondition(iterations=60), every=60)[-1].state
    fine = points(kuhn, driver.StopCondition(iterations=60), every=7)[-1].state
    assert jax.tree.all(jax.tree.map(lambda a, b: bool((a == b).all()), coarse, fine))


@pytest.mark.parametrize(
    ("stop", "message"),
    [
        ({"iterations": -1}, "negative"),
        ({"seconds": 0.0}, "more than 0 seconds"),
        ({"target": -1.0}, "above 0"),
        ({"target": math.nan}, "above 0"),
    ],
)
def test_wrong_stops(stop: dict[str, float], message: str) -> None:
    with pytest.raises(driver.StopError, match=message):
        driver.StopCondition(**stop)  # type: ignore[arg-type]


@pytest.mark.parametrize(("text", "value"), [("0.5", 0.5), ("1%", 0.04), (" 2 % ", 0.08), (None, None), (0.25, 0.25)])
def test_targets(text: str | float | None, value: float | None) -> None:
    assert driver.parse_target(text, 4.0) == (None if value is None else pytest.approx(value))


def test_a_target_that_is_no_number() -> None:
    with pytest.raises(driver.StopError, match="not a number"):
        driver.parse_target("small", 4.0)


@pytest.mark.parametrize("number", [np.inf, np.nan])
def test_overflow_is_told(kuhn: tasks.TreeTask, number: float) -> None:
    state = cfr.init(kuhn.form)
    broken = state._replace(recent_sum=(state.recent_sum[0].at[3].set(number), state.recent_sum[1]))
    solver = solver_run.make_solver(kuhn, algorithms.find("cfr+"))
    with pytest.raises(driver.NotFiniteError, match="jax_enable_x64=True"):
        solver.measure(broken, 0.0)


def test_unknown_names() -> None:
    with pytest.raises(algorithms.UnknownAlgorithmError, match="hs-pcfr"):
        algorithms.find("cfr++")
    with pytest.raises(algorithms.UnknownAlgorithmError, match="gamma"):
        algorithms.configure(algorithms.find("cfr"), None, {"delta": 1.0})


def test_the_horizon_is_the_iterations() -> None:
    assert algorithms.configure(algorithms.find("hs-dcfr"), 250, {}).settings.horizon == 250
    assert algorithms.configure(algorithms.find("hs-dcfr"), None, {}).settings.horizon == 1_000
    assert algorithms.configure(algorithms.find("hs-dcfr"), 250, {"horizon": 10.0}).settings.horizon == 10


@pytest.mark.parametrize("name", [name for name, preset in algorithms.ALGORITHMS.items() if preset.step is not None])
def test_every_algorithm_solves_kuhn(kuhn: tasks.TreeTask, name: str) -> None:
    run = solver_run.Run(kuhn, algorithms.configure(algorithms.find(name), 1_000, {}))
    *_, last = run.snapshots(driver.StopCondition(iterations=1_000))
    assert last.metrics.error < 5e-3
    # Kuhn (1950): the first player loses 1/18 of an ante.
    assert last.metrics.value[0] == pytest.approx(-1 / 18, abs=5e-3)


def folder_of(tmp_path: pathlib.Path, name: str = "run") -> pathlib.Path:
    folder = tmp_path / name
    folder.mkdir()
    return folder


def test_going_on_is_as_if_never_stopped(kuhn: tasks.TreeTask, tmp_path: pathlib.Path) -> None:
    algorithm = algorithms.configure(algorithms.find("hs-dcfr"), 80, {})
    whole = solver_run.Run(kuhn, algorithm)
    list(whole.snapshots(driver.StopCondition(iterations=80)))
    folder = folder_of(tmp_path)
    first = solver_run.Run(kuhn, algorithm, folder)
    list(first.snapshots(driver.StopCondition(iterations=33)))
    first.finish()
    config = result_folder.read_config(folder)
    assert config == first.config
    second = solver_run.Run(kuhn, config.algorithm, folder, resume=True)
    assert second.seconds == first.seconds
    list(second.snapshots(driver.StopCondition(iterations=80)))
    finished = second.finish()
    assert jax.tree.all(jax.tree.map(lambda a, b: bool((a == b).all()), whole.state, second.state))
    counts = [row.iterations for row in result_folder.read_metrics(folder, 2)]
    assert counts == sorted(set(counts))
    assert (counts[0], counts[-1]) == (0, 80)
    assert [row.iterations for row in finished.metrics] == counts


def test_a_killed_run_loses_only_what_came_after_its_checkpoint(kuhn: tasks.TreeTask, tmp_path: pathlib.Path) -> None:
    folder = folder_of(tmp_path)
    run = solver_run.Run(kuhn, algorithms.find("cfr+"), folder, interval=0.0)
    for point in run.snapshots(driver.StopCondition(iterations=500), every=10):
        if point.metrics.iterations == 120:
            break  # without a call of `finish`
    del run, point  # releases the lock, as the end of the process would
    again = solver_run.Run(kuhn, algorithms.find("cfr+"), folder, resume=True)
    assert int(again.state.t) == 120
    assert again.metrics[-1].iterations == 110


def test_one_run_at_a_time_in_a_folder(kuhn: tasks.TreeTask, tmp_path: pathlib.Path) -> None:
    pytest.importorskip("fcntl")
    folder = folder_of(tmp_path)
    first = solver_run.Run(kuhn, algorithms.find("cfr+"), folder)
    with pytest.raises(result_folder.ResultError, match="another run is writing"):
        solver_run.Run(kuhn, algorithms.find("cfr+"), folder)
    list(first.snapshots(driver.StopCondition(iterations=1)))
    first.finish()
    solver_run.Run(kuhn, algorithms.find("cfr+"), folder, resume=True)


@pytest.mark.parametrize("name", ["dcfr", "cfr+", "pcfr+"])
def test_single_precision_stays_good(kuhn: tasks.TreeTask, name: str) -> None:
    """Plain sums of plans drift after some hundred thousand iterations."""
    solver = solver_run.make_solver(kuhn, algorithms.find(name))
    state = solver.advance(solver.init(), 1_000_000)
    last = solver.measure(state, 0.0).exploitability
    assert last is not None
    assert last < 5e-6


def test_nothing_to_choose(tmp_path: pathlib.Path) -> None:
    sheet = tmp_path / "dull.gdl"
    sheet.write_text("(role a) (role b) (init x) (<= (legal ?r go) (role ?r)) (<= (next y) (true x)) "
                     "(<= terminal (true y)) (goal a 70) (goal b 30)")  # fmt: skip
    task = tasks.make_tree_task(game_spec.GameSpec(str(sheet)))
    run = solver_run.Run(task, algorithms.find("dcfr"), folder_of(tmp_path))
    list(run.snapshots(driver.StopCondition(iterations=3)))
    finished = run.finish()
    assert finished.goals == (70.0, 30.0)
    assert finished.exploitability == 0.0


@pytest.mark.parametrize(("name", "value"), [("alpha", math.nan), ("gamma", math.inf), ("exploration", math.nan)])
def test_settings_must_be_numbers(name: str, value: float) -> None:
    with pytest.raises(algorithms.UnknownAlgorithmError, match=f"{name} must be"):
        algorithms.configure(algorithms.find("dcfr"), None, {name: value})


def test_enormous_exponents_are_the_last_policy(kuhn: tasks.TreeTask) -> None:
    collected = []
    for gamma in (1e4, 1e6):  # the largest that is accepted
        solver = solver_run.make_solver(kuhn, algorithms.configure(algorithms.find("dcfr"), None, {"gamma": gamma}))
        collected.append(solver.measure(solver.advance(solver.init(), 50), 0.0).value)
    assert collected[0] == pytest.approx(collected[1])


def test_files_of_a_result(kuhn: tasks.TreeTask, tmp_path: pathlib.Path) -> None:
    folder = folder_of(tmp_path)
    run = solver_run.Run(kuhn, algorithms.find("cfr+"), folder)
    list(run.snapshots(driver.StopCondition(iterations=20)))
    finished = run.finish()
    assert {path.name for path in folder.iterdir()} == {
        "config.json",
        "metrics.csv",
        "policy.npz",
        "checkpoint.npz",
        "convergence.png",
        ".lock",
    }
    config = json.loads((folder / "config.json").read_text())
    assert config["game"]["spec"] == "kuhn_poker"
    assert config["settings"]["beta"] == "-inf"
    assert set(config["versions"]) == {"gdlx", "jax", "numpy", "python"}
    again = policy_files.load_policies(folder, kuhn.game, kuhn.tree)
    for ours, theirs in zip(finished.policies, again, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    measured = kuhn.metrics(again)
    assert measured.exploitability == pytest.approx(finished.exploitability, abs=1e-6)


def test_folders_are_never_shared(tmp_path: pathlib.Path) -> None:
    names = [result_folder.create_folder(tmp_path, "goofspiel:cards=4", "dcfr").name for _ in range(3)]
    assert names == ["dcfr", "dcfr-2", "dcfr-3"]
    assert (tmp_path / "goofspiel_cards=4").is_dir()
    assert result_folder.create_folder(tmp_path, "../../etc/passwd.gdl", "cfr").is_relative_to(tmp_path / "passwd")


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("config.json", None, "holds no result"),
        ("config.json", "{", "cannot be read"),
        ("config.json", "[]", "cannot be read"),
        ("config.json", '{"format": 99, "versions": {"gdlx": "9"}}', "format of another version"),
        ("checkpoint.npz", "nonsense", "cannot be read"),
        ("checkpoint.npz", None, "no checkpoint.npz"),
        ("metrics.csv", "a,b\nx,y\n", "cannot be read"),
    ],
)
def test_broken_results(
    kuhn: tasks.TreeTask, tmp_path: pathlib.Path, file: str, text: str | None, message: str
) -> None:
    folder = folder_of(tmp_path)
    run = solver_run.Run(kuhn, algorithms.find("cfr+"), folder)
    list(run.snapshots(driver.StopCondition(iterations=3)))
    run.finish()
    (folder / file).unlink()
    if text is not None:
        (folder / file).write_text(text)
    with pytest.raises(result_folder.ResultError, match=message):
        solver_run.Run(kuhn, result_folder.read_config(folder).algorithm, folder, resume=True)


def test_a_checkpoint_of_another_game(kuhn: tasks.TreeTask, tmp_path: pathlib.Path) -> None:
    folder = folder_of(tmp_path)
    other = tasks.make_tree_task(game_spec.GameSpec("simple_poker"))
    run = solver_run.Run(other, algorithms.find("cfr+"), folder)
    list(run.snapshots(driver.StopCondition(iterations=1)))
    run.finish()
    with pytest.raises(result_folder.ResultError, match="another game or precision"):
        solver_run.Run(kuhn, algorithms.find("cfr+"), folder, resume=True)
    assert other.digest != kuhn.digest


def test_the_game_is_an_argument_of_the_program(kuhn: tasks.TreeTask) -> None:
    """Another game of the same shape needs no compilation."""
    payoff = kuhn.tree.terminals.payoff * 3
    form, _ = sequence_form.sequence_form(kuhn.tree, payoff)
    plus = algorithms.find("cfr+")
    tree_solvers.advance(plus.step, kuhn.form, cfr.init(kuhn.form), plus.settings, 1)
    program: Any = tree_solvers.advance
    before = program._cache_size()
    tree_solvers.advance(plus.step, form, cfr.init(form), plus.settings, 5)
    assert program._cache_size() == before
