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

Report = Callable[[int, str], None]  # cells that have just finished, and a word on what comes
Remark = Callable[[str], None]


class Outcome(NamedTuple):
    folder: pathlib.Path
    cells: int
    earlier: int  # had finished before, and had not failed
    failed: tuple[tuple[str, str], ...]  # cells and why
    table: pathlib.Path


def sweep(
    wanted: config.Sweep,
    folder: pathlib.Path,
    source: str = "",
    *,
    report: Report = lambda count, note: None,
    remark: Remark = lambda text: None,
) -> Outcome:
    """All cells that have not finished yet. Stopped at any time, it goes on from there when it is called again.

    `source` is the text of the file that describes the sweep, if there is one.
    """
    kept = store.Store(folder)
    plan.forget()
    with kept.opened(source, jnp.result_type(float) == np.float64):
        if source:  # a study may well put several sweeps into one folder
            kept.require_own_cells(wanted.cells)
        kept.require_same_rules(plan.digests_of_rules(wanted.cells), wanted.cells)
        _set_damaged_aside(kept, wanted.cells, remark)
        left = [cell for cell in wanted.cells if not kept.is_finished(cell)]
        there = [cell for cell in wanted.cells if kept.is_finished(cell)]
        earlier = sum(kept.failure(cell) is None for cell in there)
        report(len(there), "finished before" if there else "")
        try:
            for group in plan.groups_of(left):
                _run(kept, group, report, remark)
        finally:
            table = kept.write_table(wanted.cells)
        whys = ((cell.name, kept.failure(cell)) for cell in wanted.cells)
        failed = tuple((name, why) for name, why in whys if why is not None)
    return Outcome(folder, len(wanted.cells), earlier, failed, table)


def _set_damaged_aside(kept: store.Store, cells: Sequence[config.Cell], remark: Remark) -> None:
    """They run again."""
    for cell in cells:
        if kept.is_finished(cell) and (why := kept.damage(cell)) is not None:
            remark(f"{cell.name} runs again ({why}); what there was is in {kept.set_aside(kept.place(cell))}")


def _run(kept: store.Store, group: plan.Group, report: Report, remark: Remark) -> None:
    first = group.cells[0]
    report(0, f"{first.algorithm.name} on {first.game}")
    try:
        task = plan.task_of(first)
        if group.alone is not None:
            _run_alone(kept, task, first, remark)
            report(1, "")
            return
        unrolled = tasks.unrolled(task)
        for portion in plan.portions(unrolled, group):
            for done in _run_together(unrolled, portion.cells):
                kept.keep(done)
                report(len(done), "")
    except errors.UserError as error:  # of the game, or of settings that do not fit it: other cells may well run
        left = [cell for cell in group.cells if not kept.is_finished(cell)]
        kept.keep([store.Done(cell, None, (), (), None, str(error)) for cell in left])
        report(len(left), "")


def _run_together(task: tasks.Problem, cells: Sequence[config.Cell]) -> Iterator[list[store.Done]]:
    runs = plan.runs_of(task, cells)
    stop, every = cells[0].stop, cells[0].every
    assert stop.iterations is not None
    found = batch.chunks(runs, plan.measured_at(stop.iterations, every))
    with contextlib.closing(found):
        for chunk in found:
            policies = _policies(task, cells[0].algorithm, chunk)
            yield [
                _done(task, cell, chunk, number, tuple(own[..., number] for own in policies))
                for number, cell in enumerate(cells[chunk.part])
            ]


def _policies(task: tasks.Problem, algorithm: algorithms.Algorithm, chunk: batch.Chunk) -> tabular_policies.Policies:
    """P x [S, B]"""
    if algorithm.kind == "sampled":
        return chunk.weight
    return tuple(
        tabular_policies.from_plan(player, weight[own.place])
        for player, own, weight in zip(task.tree.players, task.layouts, chunk.weight, strict=True)
    )


def _done(
    task: tasks.Problem, cell: config.Cell, chunk: batch.Chunk, number: int, policies: tabular_policies.Policies
) -> store.Done:
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
    made = solver_run.config_of(task, cell.algorithm)
    if good == len(chunk.iterations):
        return store.Done(cell, made, task.players, metrics, policies)
    why = str(driver.overflowed(chunk.iterations[good]))
    return store.Done(cell, made, task.players, metrics, None, why)


def _run_alone(kept: store.Store, task: tasks.Task, cell: config.Cell, remark: Remark) -> None:
    folder = kept.unfinished(cell)
    folder.mkdir(parents=True, exist_ok=True)
    stop = solver_run.stop_of(task, cell.stop.iterations, cell.stop.seconds, cell.target)
    run = _begun(kept, task, cell, remark)
    try:
        for _ in run.measured(stop, cell.every):
            pass
    finally:
        if run.metrics:
            run.finish(picture=False)
    kept.move(cell)


def _begun(kept: store.Store, task: tasks.Task, cell: config.Cell, remark: Remark) -> solver_run.AnyRun:
    """A run from its last checkpoint, or from the start if there is none that can be read."""
    folder = kept.unfinished(cell)
    if (folder / result_folder.CHECKPOINT).exists():
        try:
            return solver_run.start(task, cell.algorithm, folder, resume=True)
        except result_folder.ResultError as error:
            remark(f"{cell.name} starts anew ({error}); what there was is in {kept.set_aside(folder)}")
            folder.mkdir(parents=True)
    return solver_run.start(task, cell.algorithm, folder)
