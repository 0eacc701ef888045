"""Sweeps that are killed, damaged, changed or in a foreign folder: nothing is lost, and every reason is reported."""

import json
import pathlib
import signal
import subprocess
import sys
import time
from typing import Any

import pytest

from gdlx import cli
from gdlx.experiments.reports import gather
from gdlx.experiments.sweeps import config, plan, run, store
from gdlx.propnet import library
from gdlx.solvers.runs import driver, result_folder, solver_run
from gdlx.tests.helpers import sweeps


def test_killed_and_resumed(tmp_path: pathlib.Path) -> None:
    """A real process, killed without notice while it works."""
    path = tmp_path / "long.toml"
    grid = "alpha = { from = 1.0, to = 2.0, count = 40 }"
    path.write_text(f'games = ["kuhn_poker"]\nevery = 200\n[[algorithms]]\nname = "dcfr"\niterations = 400\n{grid}\n'
                    f'[[algorithms]]\nname = "lcfr"\niterations = 2000000\n')  # fmt: skip
    command = [sys.executable, "-m", "gdlx.cli", "sweep", str(path), "--results", str(tmp_path), "--quiet"]
    working = subprocess.Popen(command)
    cells = tmp_path / "long" / store.CELLS
    deadline = time.monotonic() + 120
    while not any(cells.glob("*/dcfr*")) and working.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    working.send_signal(signal.SIGKILL)
    assert working.wait() == -signal.SIGKILL
    (tmp_path / "long" / store.CELLS / "kuhn_poker" / ".half.part").mkdir()
    path.write_text(path.read_text().replace("2000000", "300"))
    before = len(list(cells.glob("*/dcfr*")))
    done = run.run_sweep(config.read(path), tmp_path / "long")
    assert (done.cells, done.failed) == (41, ())
    assert done.already_finished == before > 0
    assert not list(cells.glob("*/.*"))
    whole = run.run_sweep(config.read(path), tmp_path / "whole")
    assert sweeps.without_times(done.table) == sweeps.without_times(whole.table)


def test_cells_that_fail_do_not_stop_the_others(tmp_path: pathlib.Path, capsys: Any) -> None:
    path = tmp_path / "some.toml"
    path.write_text(
        'games = ["no_such_game", "gone.gdl", "kuhn_poker"]\niterations = 20\n'
        '[[algorithms]]\nname = "dcfr"\nalpha = [1.5, 900.0]\n'
    )
    assert cli.main(["sweep", str(path), "--dry-run"]) == 0
    assert "the rules gone.gdl cannot be read: No such file" in " ".join(capsys.readouterr().out.split())
    assert cli.main(["sweep", str(path), "--results", str(tmp_path), "--json"]) == 1
    output = json.loads(capsys.readouterr().out)
    whys = {failed["cell"]: failed["failure"] for failed in output["failed"]}
    gone = {name: why for name, why in whys.items() if name.startswith("gone")}
    assert len(gone) == 2
    assert set(gone.values()) == {"the rules gone.gdl cannot be read: No such file or directory"}
    assert whys.keys() - gone.keys() == {
        "no_such_game/dcfr,alpha=1.5-20",
        "no_such_game/dcfr,alpha=900.0-20",
        "kuhn_poker/dcfr,alpha=900.0-20",
    }
    assert "overflowed before iteration" in whys["kuhn_poker/dcfr,alpha=900.0-20"]
    assert "no_such_game" in whys["no_such_game/dcfr,alpha=1.5-20"]
    table = sweeps.rows(tmp_path / "some" / store.TABLE)
    assert {row["cell"] for row in table if not row["failure"]} == {"kuhn_poker/dcfr,alpha=1.5-20"}


@pytest.mark.parametrize(
    ("manifest", "says"),
    [
        ('{"format": 99, "x64": false}', "another version of gdlx"),
        ('{"format": 1, "x64": true}', "computed in double precision; resume with `jax_enable_x64=True`"),
        ('{"form', "cannot be read"),
        (None, "other files than those of a sweep"),
    ],
)
def test_folders_that_are_not_of_this_sweep(manifest: str | None, says: str, tmp_path: pathlib.Path) -> None:
    if manifest is None:
        (tmp_path / "mine.txt").write_text("precious")
    else:
        (tmp_path / store.MANIFEST).write_text(manifest)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(config.SweepError, match=says):
        run.run_sweep(sweeps.make_sweep(sweeps.GRID), tmp_path)
    after = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.name != result_folder.LOCK}
    assert after == before


@pytest.mark.parametrize("more", [[], [{"name": "cfr+"}]])
def test_rules_that_change_in_between(more: list[dict[str, Any]], tmp_path: pathlib.Path) -> None:
    """The rules of a sweep are fixed, also those in a file, and also if none of its cells is left to run."""
    sheet = tmp_path / "mine.gdl"
    sheet.write_text(library.text("kuhn_poker"))
    actual = {"games": [str(sheet)], "iterations": 5, "algorithms": [{"name": "cfr"}]}
    first = run.run_sweep(sweeps.make_sweep(actual), tmp_path / "sweep")
    kept = sweeps.without_times(first.table)
    sheet.write_text(library.text("leduc_poker"))
    with pytest.raises(config.SweepError, match=r"rules of .*mine\.gdl have changed"):
        run.run_sweep(sweeps.make_sweep(actual | {"algorithms": [{"name": "cfr"}, *more]}), tmp_path / "sweep")
    assert sweeps.without_times(first.table) == kept


def test_rules_that_are_fixed(tmp_path: pathlib.Path) -> None:
    """Cells that failed because of them run again."""
    sheet = tmp_path / "mine.gdl"
    actual = {"games": [str(sheet), "kuhn_poker"], "iterations": 5, "algorithms": [{"name": "cfr"}]}
    whys = []
    for text in (None, "(role", library.text("rps")):
        if text is not None:
            sheet.write_text(text)
        whys += [why for _, why in run.run_sweep(sweeps.make_sweep(actual), tmp_path / "sweep").failed]
    assert len(whys) == 2
    assert "No such file" in whys[0]
    assert "parenthes" in whys[1]
    assert {row["failure"] for row in sweeps.rows(tmp_path / "sweep" / store.TABLE)} == {""}


def test_reasons_of_failures_that_cannot_be_read(tmp_path: pathlib.Path) -> None:
    actual = {"games": ["no_such_game"], "iterations": 5, "algorithms": [{"name": "cfr"}]}
    run.run_sweep(sweeps.make_sweep(actual), tmp_path)
    (reason,) = tmp_path.rglob(store.FAILED)
    reason.write_bytes(b"\xff\xfe")
    assert len(run.run_sweep(sweeps.make_sweep(actual), tmp_path).failed) == 1


def test_a_file_of_the_same_name_elsewhere(tmp_path: pathlib.Path) -> None:
    actual = {"games": ["kuhn_poker"], "iterations": 5, "algorithms": [{"name": "cfr"}]}
    first = run.run_sweep(sweeps.make_sweep(actual), tmp_path / "sweep")
    other = actual | {"algorithms": [{"name": "dcfr"}]}
    with pytest.raises(config.SweepError, match="holds another sweep: none of its 1 cells"):
        run.run_sweep(sweeps.make_sweep(other), tmp_path / "sweep", "dcfr")
    assert len(sweeps.rows(first.table)) == len(plan.measurement_points(5, None))
    # The same sweep may be asked for more iterations.
    more = run.run_sweep(sweeps.make_sweep(actual | {"iterations": 6}), tmp_path / "sweep", "iterations = 6")
    assert (more.cells, more.already_finished, more.failed) == (1, 0, ())


def test_a_misspelt_game_is_corrected_in_the_file(tmp_path: pathlib.Path, capsys: Any) -> None:
    path = tmp_path / "my.toml"
    path.write_text(
        'games = ["kuhn_pocker"]\niterations = 5\n[[algorithms]]\nname = "cfr"\n[[algorithms]]\nname = "lcfr"\n'
    )
    assert cli.main(["sweep", str(path), "--results", str(tmp_path)]) == 1
    assert "show the best" not in capsys.readouterr().out  # there is none
    path.write_text(path.read_text().replace("pocker", "poker"))
    assert cli.main(["sweep", str(path), "--dry-run"]) == 0
    assert "cfr, lcfr" in capsys.readouterr().out  # both run in one program
    assert cli.main(["sweep", str(path), "--results", str(tmp_path)]) == 0
    assert "show the best" in capsys.readouterr().out
    assert [actual.name for actual in (tmp_path / "my" / store.CELLS).iterdir()] == ["kuhn_poker"]


@pytest.mark.parametrize(
    ("file", "content"),
    [
        (result_folder.METRICS, b"iterations,seconds\n1"),
        (result_folder.METRICS, b""),
        (result_folder.CONFIG, b""),
        (result_folder.POLICY, b"PK"),
        (result_folder.CONFIG, None),
    ],
)
def test_damaged_cells_run_again(file: str, content: bytes | None, tmp_path: pathlib.Path) -> None:
    actual = {"games": ["kuhn_poker"], "iterations": 5, "algorithms": [{"name": "dcfr", "alpha": [1.0, 1.5]}]}
    first = run.run_sweep(sweeps.make_sweep(actual), tmp_path / "sweep")
    expected = sweeps.without_times(first.table)
    damaged = store.SweepStore(first.folder).cell_folder(config.expand_cells(actual)[0])
    if content is None:
        (damaged / file).unlink()
    else:
        (damaged / file).write_bytes(content)
    remarks: list[str] = []
    again = run.run_sweep(sweeps.make_sweep(actual), tmp_path / "sweep", warn=remarks.append)
    assert again.already_finished == 1
    assert len(remarks) == 1
    assert "kuhn_poker/dcfr,alpha=1.0-5 runs again" in remarks[0]
    assert sweeps.without_times(again.table) == expected
    assert (first.folder / store.DAMAGED / damaged.relative_to(first.folder)).is_dir()


def test_damage_in_the_middle_of_a_file(tmp_path: pathlib.Path) -> None:
    """The end of the file, with its directory, is intact; a cell that is damaged twice is quarantined twice."""
    actual = {"games": ["kuhn_poker"], "iterations": 5, "algorithms": [{"name": "cfr"}]}
    for _ in range(2):
        kept = run.run_sweep(sweeps.make_sweep(actual), tmp_path)
        (policy,) = (kept.folder / store.CELLS).rglob(result_folder.POLICY)
        content = bytearray(policy.read_bytes())
        content[150:160] = bytes(b ^ 255 for b in content[150:160])
        policy.write_bytes(content)
        assert [str(policy) in why for _, why in gather.gather_runs([policy.parent]).skipped] == [True]
    run.run_sweep(sweeps.make_sweep(actual), tmp_path)
    assert len(list((tmp_path / store.DAMAGED).rglob(result_folder.POLICY))) == 2


def test_an_unreadable_manifest_loses_nothing(tmp_path: pathlib.Path) -> None:
    actual = {"games": ["kuhn_poker"], "iterations": 5, "algorithms": [{"name": "cfr"}]}
    done = run.run_sweep(sweeps.make_sweep(actual), tmp_path / "sweep")
    for broken in ('{"form', '{"format": 1, "x64": false, "rules": 3}'):
        (done.folder / store.MANIFEST).write_text(broken)
        with pytest.raises(config.SweepError, match="remove that file alone"):
            run.run_sweep(sweeps.make_sweep(actual), done.folder)
    (done.folder / store.MANIFEST).unlink()
    assert run.run_sweep(sweeps.make_sweep(actual), done.folder).already_finished == 1


def test_results_name_the_failed_cells(tmp_path: pathlib.Path, capsys: Any) -> None:
    actual = {"games": ["no_such_game", "kuhn_poker"], "iterations": 5, "algorithms": [{"name": "cfr"}]}
    done = run.run_sweep(sweeps.make_sweep(actual), tmp_path / "sweep")
    assert cli.main(["results", str(done.folder)]) == 0
    printed = capsys.readouterr()
    assert "1 of 1 results" in printed.out
    assert "no_such_game/cfr-5 failed: " in printed.err


def test_only_one_process_at_a_time(tmp_path: pathlib.Path) -> None:
    with (
        store.SweepStore(tmp_path).open_for_writing("", False),
        pytest.raises(result_folder.ResultError, match="another run"),
    ):
        run.run_sweep(sweeps.make_sweep(sweeps.GRID), tmp_path)


@pytest.mark.slow
def test_cells_that_run_alone_resume(tmp_path: pathlib.Path) -> None:
    """From their checkpoint, or from the start if that cannot be read."""
    actual = {"games": ["kuhn_poker"], "algorithms": [{"name": "os-mccfr", "iterations": 40, "table": 8, "batch": 16}]}
    (cell,) = config.expand_cells(actual)
    whole = run.run_sweep(sweeps.make_sweep(actual), tmp_path / "whole")
    kept = store.SweepStore(tmp_path / "parts")
    folder = kept.unfinished_folder(cell)
    folder.mkdir(parents=True)
    begun = solver_run.Run(plan.load_task(cell), cell.algorithm, folder)
    for _ in begun.snapshots(driver.StopCondition(iterations=20)):
        pass
    begun.finish()
    remarks: list[str] = []
    done = run.run_sweep(sweeps.make_sweep(actual), tmp_path / "parts", warn=remarks.append)
    assert remarks == []
    assert sweeps.without_times(done.table)[-1] == sweeps.without_times(whole.table)[-1]
    assert float(sweeps.rows(done.table)[-1]["seconds"]) >= begun.seconds

    folder = store.SweepStore(tmp_path / "broken").unfinished_folder(cell)
    folder.mkdir(parents=True)
    (folder / result_folder.CHECKPOINT).write_bytes(b"half of it")
    done = run.run_sweep(sweeps.make_sweep(actual), tmp_path / "broken", warn=remarks.append)
    assert len(remarks) == 1
    assert "starts over" in remarks[0]
    assert sweeps.without_times(done.table)[-1] == sweeps.without_times(whole.table)[-1]


def test_a_sweep_whose_cells_all_have_settings_is_resumed(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "grid.toml"
    path.write_text('games = ["kuhn_poker"]\niterations = 5\n[[algorithms]]\nname = "dcfr"\nalpha = [1.0, 1.5]\n')
    for finished in (0, 2):
        done = run.run_sweep(config.read(path), tmp_path / "grid", path.read_text())
        assert (done.cells, done.already_finished, done.failed) == (2, finished, ())
