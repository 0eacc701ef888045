"""Sweeps: every cell gives what it gives alone, is written completely or not at all, and never runs twice."""

import itertools
import json
import pathlib
import shutil
from typing import Any

import numpy as np
import pytest

from gdlx import cli
from gdlx.envs import game_spec
from gdlx.experiments.reports import gather
from gdlx.experiments.sweeps import config, plan, run, store
from gdlx.propnet import library
from gdlx.solvers import tasks
from gdlx.solvers.exact import batch
from gdlx.solvers.runs import policy_files, result_folder, solver_run
from gdlx.tests.helpers import sweeps

BASE = 'games = ["kuhn_poker"]\niterations = 10\n'


def test_cells_are_all_combinations() -> None:
    cells = config.expand_cells(sweeps.GRID)
    assert len(cells) == 2 * (4 + 2 + 2 * 2 + 2)
    assert len({cell.name for cell in cells}) == len(cells)
    pairs = {(cell.overrides["alpha"], cell.overrides["gamma"]) for cell in cells if cell.algorithm.name == "dcfr"}
    assert pairs == set(itertools.product((1.0, 1.5), (1.0, 2.0)))
    assert {cell.overrides.get("seed") for cell in cells} == {None, 0, 1}


def test_ranges() -> None:
    entry = {"name": "dcfr", "alpha": {"from": 1, "to": 100, "count": 3, "scale": "log"}}
    linear = {"name": "dcfr", "beta": {"from": -1, "to": 1, "count": 5}}
    cells = config.expand_cells({"games": ["kuhn_poker"], "iterations": 1, "algorithms": [entry, linear]})
    assert [cell.overrides.get("alpha") for cell in cells][:3] == [1.0, 10.0, 100.0]
    assert [cell.overrides.get("beta") for cell in cells][3:] == [-1.0, -0.5, 0.0, 0.5, 1.0]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("games = [", "is not valid TOML: .*at end of document"),
        ("iterations = 10", "games is missing"),
        (BASE, "algorithms is missing"),
        (BASE + 'algorithms = ["cfr+"]', r'each under a line \[\[algorithms\]\], as .* name = "cfr\+"'),
        ('games = ["kuhn_poker"]\n[[algorithms]]\nname = "cfr"', "when a run ends"),
        (BASE + "iteratons = 3", "no key 'iteratons'; is it iterations"),
        (BASE + '[[algorithms]]\nname = "dcfr"\nalhpa = 1.0', r"algorithms\[1\] has no key 'alhpa'; is it alpha"),
        (BASE + '[[algorithms]]\nname = "dfcr"', r"algorithms\[1\]: there is no algorithm 'dfcr'"),
        (BASE + '[[algorithms]]\nname = "dcfr"\nalpha = []', r"algorithms\[1\].alpha is an empty list"),
        (BASE + '[[algorithms]]\nname = "dcfr"\nalpha = "x"', r"algorithms\[1\].alpha must be a number"),
        (BASE + '[[algorithms]]\nname = "dcfr"\nalpha = nan', r"algorithms\[1\].alpha must be a number"),
        (BASE + '[[algorithms]]\nname = "dcfr"\nalpha = true', r"algorithms\[1\].alpha must be a number"),
        (BASE + '[[algorithms]]\nname = "dcfr"\nsimultaneous = 1', "simultaneous must be true or false"),
        (BASE + '[[algorithms]]\nname = "cfr"\nbatch = 3', r"algorithms\[1\]: cfr does not sample"),
        (BASE + '[[algorithms]]\nname = "os-mccfr"\nbatch = 0', "at least 1 trajectory"),
        (BASE + '[[algorithms]]\nname = "os-mccfr"\nbatch = 1.5', "batch must be a whole number"),
        (BASE + '[[algorithms]]\nname = "dcfr"\nalpha = [1, 1.0]', "kuhn_poker/dcfr,alpha=1.0-10 a second time"),
        (BASE + '[[algorithms]]\nname = "cfr"\n[[algorithms]]\nname = "cfr"', r"algorithms\[2\] has the cell"),
        (
            BASE + '[[algorithms]]\nname = "dcfr"\nalpha = 1.5\ngamma = 2.0\n[[algorithms]]\nname = "dcfr"',
            r"algorithms\[2\] has the cell kuhn_poker/dcfr-10 a second time, which is kuhn_poker/dcfr,alpha=1.5,gamma",
        ),
        (BASE + '[[algorithms]]\nname = "cfr"\nsimultaneous = false\n[[algorithms]]\nname = "cfr"', "a second time"),
        (
            'games = ["goofspiel", "goofspiel:cards=5"]\niterations = 1\n[[algorithms]]\nname = "cfr"',
            "games has 'goofspiel:cards=5' and 'goofspiel', which are the same",
        ),
        (BASE + '[[algorithms]]\nname = "dcfr"\nalpha = { from = 1.0, to = 2.0 }', "lacks count"),
        (BASE + '[[algorithms]]\nname = "dcfr"\nalpha = { from = 1.0, to = 1.0, count = 3 }', "would be the same"),
        (BASE + '[[algorithms]]\nname = "dcfr"\nalpha = { from = 0.0, to = 1.0, count = 3, scale = "log" }', "above 0"),
        (BASE + '[[algorithms]]\nname = "dcfr"\nalpha = { from = 0.0, to = 1.0, count = 1 }', "from 2 to"),
        (BASE + "seeds = [1, 1]\n[[algorithms]]\nname = 'cfr'", "seeds must be different"),
        ('games = ["kuhn_poker", "kuhn_poker"]\niterations = 1\n[[algorithms]]\nname = "cfr"', "twice"),
        ('games = ["kuhn_poker"]\niterations = 0\n[[algorithms]]\nname = "cfr"', "from 1 to .*, not 0"),
        ('games = ["kuhn_poker"]\ntarget = "x"\n[[algorithms]]\nname = "cfr"', "the target 'x' is not a number"),
        (BASE + '[[algorithms]]\nname = "os-mccfr"\nexploration = 7.0', "from 0 to 1; not 7.0"),
        (BASE + '[[algorithms]]\nname = "os-mccfr"\nepsilon = 0.1', "does not use epsilon, a setting of as-mccfr"),
        (BASE + '[[algorithms]]\nname = "os-mccfr"\nseeds = 3', "goes to the top of the file"),
        (
            BASE + "seeds = [18446744073709551616]\n[[algorithms]]\nname = 'os-mccfr'",
            "seeds must be a whole number from",
        ),
        (BASE + "seeds = 2000000000000000\n[[algorithms]]\nname = 'os-mccfr'", "seeds must be a whole number from"),
        ('games = ["kuhn_poker"]\niterations = 9999999999999\n[[algorithms]]\nname = "cfr"', "to 2,147,483,647"),
        ('games = ["kuhn_poker"]\ntarget = "-1%"\n[[algorithms]]\nname = "cfr"', "must be above 0"),
        (
            BASE
            + '[[algorithms]]\nname = "dcfr"\n'
            + "".join(f"{name} = {{ from = 0.0, to = 1.0, count = 200 }}\n" for name in ("alpha", "beta", "gamma")),
            "8,000,000 cells",
        ),
    ],
)
def test_invalid_files(text: str, says: str, tmp_path: pathlib.Path, capsys: Any) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(text)
    with pytest.raises(config.SweepError, match=says) as raised:
        config.read(path)
    assert "wrong.toml" in str(raised.value)
    assert cli.main(["sweep", str(path), "--results", str(tmp_path / "r")]) == 1
    assert "wrong.toml" in capsys.readouterr().err
    assert not (tmp_path / "r").exists()


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> run.SweepResult:
    return run.run_sweep(sweeps.make_sweep(sweeps.GRID), tmp_path_factory.mktemp("sweep") / "test")


def test_every_cell_is_as_if_alone(finished: run.SweepResult) -> None:
    """Metrics and policies, of full iterations and of sampling."""
    cells = config.expand_cells(sweeps.GRID)
    assert finished.cells == len(cells)
    assert finished.failed == ()
    table = sweeps.rows(finished.table)
    checked = cells[::5]
    assert {cell.algorithm.name for cell in checked} == {"dcfr", "cfr+", "os-mccfr", "es-mccfr"}
    for cell in checked:
        # `solve` has no argument for simultaneous updates, so the run takes the algorithm of the cell.
        is_sampled = cell.algorithm.sampling is not None
        task = tasks.make_tree_task(game_spec.GameSpec(cell.game), keep_edges=is_sampled)
        alone = solver_run.Run(task, cell.algorithm)
        for _ in alone.snapshots(cell.stop):
            pass
        actual = alone.finish()
        last = [row for row in table if row["cell"] == cell.name][-1]
        assert int(last["iterations"]) == 30
        improvements = [float(last[f"improvement_{number}"]) for number in range(1, len(actual.improvements) + 1)]
        np.testing.assert_allclose(improvements, actual.improvements, rtol=2e-3, atol=2e-4)
        kept = policy_files.load_policies(store.SweepStore(finished.folder).cell_folder(cell), task.game, task.tree)
        for one, other in zip(kept, actual.policies, strict=True):
            np.testing.assert_allclose(one, other, atol=5e-3)


def test_measurements(finished: run.SweepResult) -> None:
    table = sweeps.rows(finished.table)
    for _, group in itertools.groupby(table, key=lambda row: row["cell"]):
        own = list(group)
        assert tuple(int(row["iterations"]) for row in own) == plan.measurement_points(30, None)
        seconds = [float(row["seconds"]) for row in own]
        assert seconds == sorted(seconds)
    sampled = [row for row in table if row["algorithm"] == "os-mccfr" and row["game"] == "kuhn_poker"]
    assert {int(row["samples"]) / int(row["iterations"]) for row in sampled} == {2 * 16}


def test_results_of_cells_can_be_evaluated(finished: run.SweepResult, capsys: Any) -> None:
    folder = store.SweepStore(finished.folder).cell_folder(config.expand_cells(sweeps.GRID)[0])
    assert cli.main(["evaluate", str(folder), "--json"]) == 0
    output = json.loads(capsys.readouterr().out)
    last = [row for row in sweeps.rows(finished.table) if row["cell"] == config.expand_cells(sweeps.GRID)[0].name][-1]
    assert output["exploitability"] == pytest.approx(float(last["exploitability"]), rel=1e-3)


def test_interrupted_and_resumed_equals_uninterrupted(finished: run.SweepResult, tmp_path: pathlib.Path) -> None:
    seen = 0

    def interrupt(count: int, note: str) -> None:
        nonlocal seen
        seen += count
        if seen >= 5:
            raise KeyboardInterrupt

    folder = tmp_path / "test"
    with pytest.raises(KeyboardInterrupt):
        run.run_sweep(sweeps.make_sweep(sweeps.GRID), folder, report=interrupt)
    early = {row["cell"] for row in sweeps.rows(folder / store.TABLE)}
    assert 5 <= len(early) < len(config.expand_cells(sweeps.GRID))
    times = {path: path.stat().st_mtime_ns for path in folder.glob(f"{store.CELLS}/*/*/{result_folder.METRICS}")}
    assert len(times) == len(early)
    again = run.run_sweep(sweeps.make_sweep(sweeps.GRID), folder)
    assert again.already_finished == len(early)
    assert all(path.stat().st_mtime_ns == before for path, before in times.items())
    assert sweeps.without_times(again.table) == sweeps.without_times(finished.table)


def test_cells_that_run_alone(tmp_path: pathlib.Path) -> None:
    actual = {
        "games": ["kuhn_poker"],
        "algorithms": [
            {"name": "lp", "iterations": 1},
            {"name": "cfr+", "target": 0.01},
            {"name": "os-mccfr", "iterations": 3, "table": 8, "batch": 64},
        ],
    }
    expected = sweeps.make_sweep(actual)
    assert [group.solo_reason is not None for group in plan.group_cells(expected.cells)] == [True] * 3
    done = run.run_sweep(expected, tmp_path / "alone")
    last = {row["algorithm"]: row for row in sweeps.rows(done.table)}
    assert float(last["lp"]["exploitability"]) < 1e-6
    assert 0 < float(last["cfr+"]["exploitability"]) <= 0.01
    assert last["os-mccfr"]["iterations"] == "3"
    assert not any((tmp_path / "alone" / store.UNFINISHED).glob("*/*"))
    assert run.run_sweep(expected, tmp_path / "alone").already_finished == 3


def test_cells_that_are_being_written_are_not_results(finished: run.SweepResult, tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "sweep"
    shutil.copytree(finished.folder, folder)
    whole = gather.gather_runs([folder])
    one = next((folder / store.CELLS / "kuhn_poker").iterdir())
    one.rename(one.with_name(f".{one.name}.part"))
    gathered = gather.gather_runs([folder])
    assert len(gathered.runs) == len(whole.runs) - 1
    assert gathered.skipped == whole.skipped


def test_two_files_of_one_name(tmp_path: pathlib.Path) -> None:
    for folder, game in (("a", "kuhn_poker"), ("b", "rps")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.gdl").write_text(library.text(game))
    games = [str(tmp_path / folder / "mine.gdl") for folder in ("a", "b")]
    done = run.run_sweep(
        sweeps.make_sweep({"games": games, "iterations": 50, "algorithms": [{"name": "cfr+"}]}), tmp_path / "sweep"
    )
    last = {row["game"]: float(row["value_1"]) for row in sweeps.rows(done.table)}
    assert last[games[0]] == pytest.approx(-1 / 18, abs=0.01)
    assert last[games[1]] == pytest.approx(0, abs=0.01)


def test_seeds_are_in_the_file(tmp_path: pathlib.Path, capsys: Any) -> None:
    path = tmp_path / "seeds.toml"
    path.write_text('games = ["kuhn_poker"]\niterations = 2\n[[algorithms]]\nname = "os-mccfr"\nbatch = 4\n')
    assert cli.main(["--seed", "3", "sweep", str(path), "--results", str(tmp_path)]) == 2
    assert "in its file" in capsys.readouterr().err


def test_portions_fit_into_memory() -> None:
    cells = config.expand_cells(
        {
            "games": ["goofspiel:cards=4"],
            "iterations": 1,
            "algorithms": [{"name": "dcfr", "alpha": {"from": 1.0, "to": 2.0, "count": 500}}],
        }
    )
    (group,) = plan.group_cells(cells)
    task = plan.load_task(cells[0])
    assert isinstance(task, tasks.TreeTask)
    allowed = 4 * 2**20
    parts = plan.split_by_memory(task, group, allowed)
    assert len(parts) > 1
    assert tuple(cell for part in parts for cell in part.cells) == cells
    for part in parts:
        assert batch.needed_bytes(plan.make_batch_runs(task, part.cells)) <= allowed


def test_dry_run(tmp_path: pathlib.Path, capsys: Any) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(
        'games = ["kuhn_poker"]\niterations = 5\nseeds = 3\n[[algorithms]]\nname = "dcfr"\nalpha = [1.0, 2.0]\n'
        '[[algorithms]]\nname = "os-mccfr"\nbatch = [8, 16]\n[[algorithms]]\nname = "lp"\n'
    )
    assert cli.main(["sweep", str(path), "--dry-run", "--json", "--results", str(tmp_path / "r")]) == 0
    output = json.loads(capsys.readouterr().out)
    assert output["cells"] == 2 + 6 + 1
    assert [(row["algorithm"], row["cells"], row["alone"]) for row in output["groups"]] == [
        ("dcfr", 2, None),
        ("os-mccfr", 3, None),
        ("os-mccfr", 3, None),
        ("lp", 1, "has no iterations"),
    ]
    assert not (tmp_path / "r").exists()
