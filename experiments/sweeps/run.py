"""Runs a sweep: group by group, each finished cell kept at once."""

import contextlib
import pathlib
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from gdlx.experiments.sweeps import config, plan, store
from gdlx.propnet.common import errors
from gdlx.solvers import algorithms, tabular_policies, tasks
from gdlx.solvers.exact import batch
from gdlx.solvers.runs import driver, result_folder, solver_run

ProgressCallback = Callable[[int, str], None]  # cells that have just finished, and a word on what comes
RemarkCallback = Callable[[str], None]


class SweepResult(NamedTuple):
    folder: pathlib.Path
    cells: int
    already_finished: int  # had finished before, and had not failed
    failed: tuple[tuple[str, str], ...]  # cells and why
    table: pathlib.Path


def run_sweep(
    wanted: config.Sweep,
    folder: pathlib.Path,
    source: str = "",
    *,
    report: ProgressCallback = lambda count, note: None,
    remark: RemarkCallback = lambda text: None,
) -> SweepResult:
    """All cells that have not finished yet. Stopped at any time, it goes on from there when it is called again.

    `source` is the text of the file that describes the sweep, if there is one.
    """
    kept = store.SweepStore(folder)
    plan.clear_task_cache()
    with kept.open_for_writing(source, jnp.result_type(float) == np.float64):
        if source:  # a study may well put several sweeps into one folder
            kept.require_matching_cells(wanted.cells)
        kept.require_same_rules(plan.rules_digests(wanted.cells), wanted.cells)
        _set_damaged_aside(kept, wanted.cells, remark)
        left = [cell for cell in wanted.cells if not kept.is_finished(cell)]
        there = [cell for cell in wanted.cells if kept.is_finished(cell)]
        earlier = sum(kept.failure(cell) is None for cell in there)
        report(len(there), "finished before" if there else "")
        try:
            for group in plan.group_cells(left):
                _run(kept, group, report, remark)
        finally:
            table = kept.write_table(wanted.cells)
        whys = ((cell.name, kept.failure(cell)) for cell in wanted.cells)
        failed = tuple((name, why) for name, why in whys if why is not None)
    return SweepResult(folder, len(wanted.cells), earlier, failed, table)


def _set_damaged_aside(kept: store.SweepStore, cells: Sequence[config.Cell], remark: RemarkCallback) -> None:
    """They run again."""
    for cell in cells:
        if kept.is_finished(cell) and (why := kept.find_damage(cell)) is not None:
            remark(f"{cell.name} runs again ({why}); what there was is in {kept.quarantine(kept.cell_folder(cell))}")


def _run(kept: store.SweepStore, group: plan.CellGroup, report: ProgressCallback, remark: RemarkCallback) -> None:
    first = group.cells[0]
    report(0, f"{first.algorithm.name} on {first.game}")
    try:
        task = plan.load_task(first)
        if group.solo_reason is not None:
            _run_alone(kept, task, first, remark)
            report(1, "")
            return
        unrolled = tasks.require_tree_task(task)
        for portion in plan.split_by_memory(unrolled, group):
            for done in _run_together(unrolled, portion.cells):
                kept.save_cells(done)
                report(len(done), "")
    except errors.UserError as error:  # of the game, or of settings that do not fit it: other cells may well run
        left = [cell for cell in group.cells if not kept.is_finished(cell)]
        kept.save_cells([store.FinishedCell(cell, None, (), (), None, str(error)) for cell in left])
        report(len(left), "")


def _run_together(task: tasks.TreeTask, cells: Sequence[config.Cell]) -> Iterator[list[store.FinishedCell]]:
    runs = plan.make_batch_runs(task, cells)
    stop, every = cells[0].stop, cells[0].every
    assert stop.iterations is not None
    found = batch.run_chunks(runs, plan.measurement_points(stop.iterations, every))
    with contextlib.closing(found):
        for chunk in found:
            policies = _policies(task, cells[0].algorithm, chunk)
            yield [
                _finished_cell(task, cell, chunk, number, tuple(own[..., number] for own in policies))
                for number, cell in enumerate(cells[chunk.part])
            ]


def _policies(
    task: tasks.TreeTask, algorithm: algorithms.Algorithm, chunk: batch.ChunkResult
) -> tabular_policies.Policies:
    """P x [S, B]"""
    if algorithm.kind == "sampled":
        return chunk.cumulative_policy
    return tuple(
        tabular_policies.from_realization_plan(player, weight[own.place])
        for player, own, weight in zip(task.tree.players, task.layouts, chunk.cumulative_policy, strict=True)
    )


def _finished_cell(
    task: tasks.TreeTask, cell: config.Cell, chunk: batch.ChunkResult, number: int, policies: tabular_policies.Policies
) -> store.FinishedCell:
    """A run's time is its part of what its chunk took."""
    size = chunk.value.shape[2]
    each = cell.algorithm.samples * len(task.players)
    is_good = chunk.is_finite[:, number] & np.isfinite(chunk.improvements[:, :, number]).all(axis=1)
    good = len(is_good) if is_good.all() else int(np.argmin(is_good))
    metrics = [
        driver.Metrics(
            iterations,
            seconds / size,
            tuple(value[:, number].tolist()),
            tuple(improvements[:, number].tolist()),
            iterations * each,
        )
        for iterations, seconds, value, improvements in zip(
            chunk.iterations[:good], chunk.seconds, chunk.value, chunk.improvements, strict=False
        )
    ]
    made = solver_run.make_config(task, cell.algorithm)
    if good == len(chunk.iterations):
        return store.FinishedCell(cell, made, task.players, metrics, policies)
    why = str(driver.overflow_error(chunk.iterations[good]))
    return store.FinishedCell(cell, made, task.players, metrics, None, why)


def _run_alone(kept: store.SweepStore, task: tasks.Task, cell: config.Cell, remark: RemarkCallback) -> None:
    folder = kept.unfinished_folder(cell)
    folder.mkdir(parents=True, exist_ok=True)
    stop = solver_run.make_stop_condition(task, cell.stop.iterations, cell.stop.seconds, cell.target)
    run = _start_or_resume(kept, task, cell, remark)
    try:
        for _ in run.iterate_metrics(stop, cell.every):
            pass
    finally:
        if run.metrics:
            run.finish(write_plot=False)
    kept.finish_cell(cell)


def _start_or_resume(
    kept: store.SweepStore, task: tasks.Task, cell: config.Cell, remark: RemarkCallback
) -> solver_run.AnyRun:
    """A run from its last checkpoint, or from the start if there is none that can be read."""
    folder = kept.unfinished_folder(cell)
    if (folder / result_folder.CHECKPOINT).exists():
        try:
            return solver_run.start_run(task, cell.algorithm, folder, resume=True)
        except result_folder.ResultError as error:
            remark(f"{cell.name} starts anew ({error}); what there was is in {kept.quarantine(folder)}")
            folder.mkdir(parents=True)
    return solver_run.start_run(task, cell.algorithm, folder)
