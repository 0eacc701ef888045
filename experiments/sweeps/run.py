"""Runs a sweep group by group, and writes each cell as soon as it has finished."""

import contextlib
import dataclasses
import pathlib
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from gdlx.experiments.sweeps import config, plan, store
from gdlx.propnet.common import errors
from gdlx.propnet.common.text import plurals
from gdlx.solvers import algorithms, tabular_policies, tasks
from gdlx.solvers.exact import batch
from gdlx.solvers.runs import driver, result_folder, solver_run

ProgressCallback = Callable[[int, str], None]  # the number of cells that just finished, and what runs next
WarningCallback = Callable[[str], None]


class SweepResult(NamedTuple):
    """What `run_sweep` did and wrote.

    >>> import tempfile
    >>> cells = config.expand_cells({"games": ["rps"], "iterations": 3, "algorithms": [{"name": "cfr"}]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result = run_sweep(config.Sweep("small", cells), pathlib.Path(folder))
    ...     last = result.table.read_text().splitlines()[-1]
    >>> result.cells, result.already_finished, last.split(",")[0]
    (1, 0, 'rps/cfr-3')
    """

    folder: pathlib.Path
    cells: int  # in the sweep
    already_finished: int  # finished by an earlier call, without a failure
    failed: tuple[tuple[str, str], ...]  # names of cells, and the reasons
    table: pathlib.Path  # a CSV file with every measurement

    def __repr__(self) -> str:
        return f"SweepResult({plurals.count(self.cells, 'cell')}, {len(self.failed)} failed, in {str(self.folder)!r})"


def run_sweep(
    sweep: config.Sweep,
    folder: pathlib.Path,
    source: str = "",
    *,
    report: ProgressCallback = lambda count, note: None,
    warn: WarningCallback = lambda text: None,
) -> SweepResult:
    """Runs all cells of a sweep that have not finished yet.

    Cells that differ only in numbers run in one program. If the call is interrupted, the next one resumes.

    Args:
      sweep: The sweep, for example from `read_sweep`.
      folder: Where results are written: a result folder for each cell, and a table of all measurements.
      source: The text of the file that describes the sweep, if there is one; it is stored in the folder.
      report: Called with the number of cells that just finished, and a note on what runs next.
      warn: Called with remarks, such as that a damaged cell runs again.

    Returns:
      The number of cells, those that failed, and the path of the table.

    Raises:
      SweepError: The folder belongs to another sweep, other rules, another precision or another version.

    >>> import tempfile
    >>> from gdlx import experiments
    >>> cells = config.expand_cells({"games": ["rps"], "iterations": 3, "algorithms": [{"name": "cfr+"}]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result = experiments.run_sweep(experiments.Sweep("small", cells), pathlib.Path(folder))
    >>> result.cells, result.failed
    (1, ())
    """
    results = store.SweepStore(folder)
    plan.clear_task_cache()
    with results.open_for_writing(source, jnp.result_type(float) == np.float64):
        if source:  # studies put several sweeps into one folder
            results.require_matching_cells(sweep.cells)
            results.drop_former_failures(sweep.cells)
        results.require_same_rules(plan.rules_digests(sweep.cells), sweep.cells)
        _quarantine_damaged(results, sweep.cells, warn)
        remaining = [cell for cell in sweep.cells if not results.is_finished(cell)]
        finished = [cell for cell in sweep.cells if results.is_finished(cell)]
        already_finished = sum(results.failure(cell) is None for cell in finished)
        report(len(finished), "already finished" if finished else "")
        try:
            for group in plan.group_cells(remaining):
                _run(results, group, report, warn)
        finally:
            table = results.write_table(sweep.cells)
        failures = ((cell.name, results.failure(cell)) for cell in sweep.cells)
        failed = tuple((name, reason) for name, reason in failures if reason is not None)
    return SweepResult(folder, len(sweep.cells), already_finished, failed, table)


def _quarantine_damaged(results: store.SweepStore, cells: Sequence[config.Cell], warn: WarningCallback) -> None:
    """Moves damaged results away, so that their cells run again."""
    for cell in cells:
        if results.is_finished(cell) and (reason := results.find_damage(cell)) is not None:
            moved = results.quarantine(results.cell_folder(cell))
            warn(f"{cell.name} runs again ({reason}); its old folder is now {moved}")


def _run(results: store.SweepStore, group: plan.CellGroup, report: ProgressCallback, warn: WarningCallback) -> None:
    first = group.cells[0]
    report(0, f"{first.algorithm.name} on {first.game}")
    try:
        task = plan.load_task(first)
        if group.solo_reason is not None:
            _run_alone(results, task, first, warn)
            report(1, "")
            return
        unrolled = tasks.require_tree_task(task)
        for portion in plan.split_by_memory(unrolled, group):
            for done in _run_together(unrolled, portion.cells):
                results.save_cells(done)
                report(len(done), "")
    except errors.UserError as error:  # in the game, or settings that do not fit it: other cells may still run
        remaining = [cell for cell in group.cells if not results.is_finished(cell)]
        results.save_cells([store.FinishedCell(cell, None, (), (), None, str(error)) for cell in remaining])
        report(len(remaining), "")


def _run_together(task: tasks.TreeTask, cells: Sequence[config.Cell]) -> Iterator[list[store.FinishedCell]]:
    runs = plan.make_batch_runs(task, cells)
    stop, every = cells[0].stop, cells[0].every
    assert stop.iterations is not None
    chunks = batch.run_chunks(runs, plan.measurement_points(stop.iterations, every))
    with contextlib.closing(chunks):
        for chunk in chunks:
            policies = _policies(task, cells[0].algorithm, chunk)
            yield [
                _finished_cell(task, cell, chunk, number, tuple(policy[..., number] for policy in policies))
                for number, cell in enumerate(cells[chunk.part])
            ]


def _policies(
    task: tasks.TreeTask, algorithm: algorithms.Algorithm, chunk: batch.ChunkResult
) -> tabular_policies.Policies:
    """P x [S, B]"""
    if algorithm.kind == "sampled":
        return chunk.cumulative_policy
    return tuple(
        tabular_policies.from_realization_plan(player, weight[layout.place])
        for player, layout, weight in zip(task.tree.players, task.layouts, chunk.cumulative_policy, strict=True)
    )


def _finished_cell(
    task: tasks.TreeTask, cell: config.Cell, chunk: batch.ChunkResult, number: int, policies: tabular_policies.Policies
) -> store.FinishedCell:
    """The seconds of a run are its share of those of its chunk."""
    size = chunk.value.shape[2]
    each = cell.algorithm.samples * len(task.players)
    is_finite = chunk.is_finite[:, number] & np.isfinite(chunk.improvements[:, :, number]).all(axis=1)
    num_finite = len(is_finite) if is_finite.all() else int(np.argmin(is_finite))
    metrics = [
        driver.Metrics(
            iterations,
            seconds / size,
            tuple(value[:, number].tolist()),
            tuple(improvements[:, number].tolist()),
            iterations * each,
        )
        for iterations, seconds, value, improvements in zip(
            chunk.iterations[:num_finite], chunk.seconds, chunk.value, chunk.improvements, strict=False
        )
    ]
    run_config = dataclasses.replace(solver_run.make_config(task, cell.algorithm), together=size)
    if num_finite == len(chunk.iterations):
        return store.FinishedCell(cell, run_config, task.players, metrics, policies)
    reason = str(driver.overflow_error(chunk.iterations[num_finite]))
    return store.FinishedCell(cell, run_config, task.players, metrics, None, reason)


def _run_alone(results: store.SweepStore, task: tasks.Task, cell: config.Cell, warn: WarningCallback) -> None:
    folder = results.unfinished_folder(cell)
    folder.mkdir(parents=True, exist_ok=True)
    stop = solver_run.make_stop_condition(task, cell.stop.iterations, cell.stop.seconds, cell.target)
    run = _start_or_resume(results, task, cell, warn)
    try:
        for _ in run.iterate_metrics(stop, cell.every):
            pass
    finally:
        if run.metrics:
            run.finish(write_plot=False)
    results.finish_cell(cell)


def _start_or_resume(
    results: store.SweepStore, task: tasks.Task, cell: config.Cell, warn: WarningCallback
) -> solver_run.AnyRun:
    """Resumes from the last checkpoint, or starts over if there is none that can be read."""
    folder = results.unfinished_folder(cell)
    if (folder / result_folder.CHECKPOINT).exists():
        try:
            return solver_run.start_run(task, cell.algorithm, folder, resume=True)
        except result_folder.ResultError as error:
            warn(f"{cell.name} starts over ({error}); its old folder is now {results.quarantine(folder)}")
            folder.mkdir(parents=True)
    return solver_run.start_run(task, cell.algorithm, folder)
