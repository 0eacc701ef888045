"""Groups the cells of a sweep: those that run as one batch, and those that run alone."""

import collections
import contextlib
import functools
import hashlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from gdlx.envs import game_spec
from gdlx.envs.trees import sampling_form
from gdlx.experiments.sweeps import config
from gdlx.propnet import games
from gdlx.propnet.common import errors
from gdlx.solvers import algorithms, tasks
from gdlx.solvers.exact import batch
from gdlx.solvers.runs import tree_solvers

GROWTH = 1.25  # ratio of the iterations of successive measurements, unless the file sets `every`
_PORTION = 0.5  # of the memory limit of a batch, for one group of cells


class CellGroup(NamedTuple):
    """Cells that differ only in numbers and run in one program; or one cell that runs alone."""

    cells: tuple[config.Cell, ...]
    solo_reason: str | None = None  # why the cell runs alone


def measurement_points(iterations: int, every: int | None) -> tuple[int, ...]:
    """The iterations after which a run is measured.

    >>> measurement_points(12, None)
    (1, 2, 3, 4, 5, 6, 8, 10, 12)
    >>> measurement_points(12, 5)
    (5, 10, 12)
    """
    if every is not None:
        return (*range(every, iterations, every), iterations)
    points = [1]
    while points[-1] < iterations:
        points.append(min(iterations, max(points[-1] + 1, int(points[-1] * GROWTH + 0.5))))
    return tuple(points)


def load_task(cell: config.Cell) -> tasks.Task:
    try:
        return _task(cell.game, cell.algorithm.needs)
    except OSError as error:  # from reading the rulesheet
        raise config.SweepError(f"the rules {cell.game} cannot be read: {error.strerror or error}") from None


@functools.lru_cache(maxsize=1)  # cells are ordered by game
def _task(game: str, needs: algorithms.GameRepresentation) -> tasks.Task:
    return tasks.prepare(game_spec.GameSpec(game), needs)


def clear_task_cache() -> None:
    """Forgets the last game, whose rulesheet may have changed."""
    _task.cache_clear()


def rules_digests(cells: Iterable[config.Cell]) -> dict[str, str]:
    """Digests of the text of every game; leaves out games that cannot be read, whose cells will fail."""
    digests = {}
    for game in dict.fromkeys(cell.game for cell in cells):
        with contextlib.suppress(errors.UserError, OSError, ValueError):
            digests[game] = hashlib.sha256(games.find_source(game).text.encode(errors="replace")).hexdigest()[:16]
    return digests


def group_cells(cells: Iterable[config.Cell]) -> list[CellGroup]:
    """Groups cells that can share a program, regardless of memory."""
    groups: dict[Any, list[config.Cell]] = collections.defaultdict(list)
    for cell in cells:
        groups[cell.name if solo_reason(cell) else _static_signature(cell)].append(cell)
    return [CellGroup(tuple(group), solo_reason(group[0])) for group in groups.values()]


def solo_reason(cell: config.Cell) -> str | None:
    if cell.algorithm.is_exact:
        return "has no iterations"
    if cell.algorithm.kind == "table":
        return "fills the memory with its hash table"
    if cell.stop.seconds is not None or cell.target is not None:
        return "stops at its own time or target"
    return None


def _static_signature(cell: config.Cell) -> tuple[Any, ...]:
    """What a compiled program depends on."""
    algorithm, settings = cell.algorithm, cell.algorithm.settings
    missing = tuple(value is None for value in settings)
    sampling = algorithm.sampling
    static = None if sampling is None else (sampling.scheme, sampling.batch, sampling.width, sampling.decay is None)
    return cell.game, algorithm.step, algorithm.alternating, missing, static, cell.stop.iterations, cell.every


def make_batch_runs(task: tasks.TreeTask, cells: Sequence[config.Cell]) -> batch.BatchSolver:
    """Makes a batched solver that runs the cells of a group."""
    first = cells[0].algorithm
    settings = _stacked([cell.algorithm.settings for cell in cells])
    if first.kind == "full":
        return batch.FullBatchSolver(task.form, first, settings)
    sample_settings = _stacked([tree_solvers.make_sample_settings(cell.algorithm) for cell in cells])
    sampler = tree_solvers.make_sampler(sampling_form.sampling_form(task.tree), first.sampling_config, task.tree.name)
    seeds = [cell.algorithm.sampling_config.seed for cell in cells]
    return batch.SampledBatchSolver(task, sampler, sample_settings, seeds, first.samples)


def _stacked(settings: Sequence[Any]) -> Any:
    """One array [B] for each setting."""
    return jax.tree.map(lambda *values: np.asarray(values, float), *settings)


def split_by_memory(task: tasks.TreeTask, group: CellGroup, max_bytes: int = batch.MAX_BYTES) -> list[CellGroup]:
    """Splits a group into parts that fit into memory."""
    runs = make_batch_runs(task, group.cells)
    fixed = runs.bytes_per_run * runs.chunk * batch.num_workers()
    available = max(_PORTION * max_bytes - fixed, 0)
    size = max(runs.chunk * batch.num_workers(), int(available // max(1, runs.result_bytes_per_run)))
    return [CellGroup(group.cells[n : n + size]) for n in range(0, len(group.cells), size)]


def describe_group(group: CellGroup) -> dict[str, Any]:
    """Describes how a group would run, as in `gdlx sweep --dry-run`."""
    first = group.cells[0]
    names = ", ".join(dict.fromkeys(cell.algorithm.name for cell in group.cells))
    row: dict[str, Any] = {"game": first.game, "algorithm": names, "cells": len(group.cells)}
    if group.solo_reason is not None:
        return row | {"at_once": None, "bytes": None, "alone": group.solo_reason}
    try:
        task = load_task(first)
        runs = make_batch_runs(
            tasks.require_tree_task(task), split_by_memory(tasks.require_tree_task(task), group)[0].cells
        )
    except errors.UserError as error:
        return row | {"at_once": None, "bytes": None, "alone": f"would fail: {error}"}
    at_once = min(runs.count, runs.chunk * batch.num_workers())
    return row | {"at_once": at_once, "bytes": batch.needed_bytes(runs), "alone": None}
