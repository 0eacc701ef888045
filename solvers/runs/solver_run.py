"""Runs of algorithms on games: iterated with checkpoints, or all at once."""

import functools
import pathlib
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, cast

import jax
import numpy as np

from gdlx.solvers import algorithms, solution, tabular_policies, tasks
from gdlx.solvers.exact import lp
from gdlx.solvers.runs import driver, plot, result_folder, solver, table_solver, tree_solvers

_LONG_WRITING, _RESTS = 0.5, 20  # seconds to write a checkpoint, and how many times that until the next one


AnySolver = solver.Solver[driver.RunState]


def make_solver(task: tasks.Task, algorithm: algorithms.Algorithm) -> AnySolver:
    """The one place where a game and an algorithm that iterates become a solver."""
    made: object
    match task, algorithm.kind:
        case tasks.TableTask(), "table":
            made = table_solver.TableSolver(task, algorithm)
        case tasks.TreeTask(), "sampled":
            made = tree_solvers.SampledSolver(task, algorithm)
        case tasks.TreeTask(), "full":
            made = tree_solvers.FullSolver(task, algorithm)
        case _:
            raise algorithms.UnknownAlgorithmError(
                f"{algorithm.name} does not run on {task.game.spec} as it was prepared"
            )
    # Whatever its own kind of state is: nobody else looks into one, and none is given to another solver.
    return cast(AnySolver, made)


class Run:
    """A run of an algorithm on a game, written to a folder as it goes if it has one.

    Iterate over `points()` or `measured()`; stop whenever you like; then `finish()` gives the solution. A checkpoint is
    written every `interval` seconds.
    """

    def __init__(
        self,
        task: tasks.Task,
        algorithm: algorithms.Algorithm,
        folder: pathlib.Path | None = None,
        *,
        resume: bool = False,
        interval: float = 10.0,
    ) -> None:
        self.task, self.algorithm, self.folder, self.checkpoint_seconds = task, algorithm, folder, interval
        self.config = make_config(task, algorithm)
        self.solver = make_solver(task, algorithm)
        self.state = self.solver.init()
        self.seconds = 0.0
        self.metrics: list[driver.Metrics] = []
        self._saved, self._rest = time.monotonic(), 0.0
        self._lock = result_folder.lock(folder) if folder is not None and folder.is_dir() else None
        try:
            if resume and folder is not None:
                self._resume(folder)
            elif folder is not None:
                _begin(folder, task, self.config)
        except BaseException:
            self._unlock()
            raise

    facts: Mapping[str, Any] = {}  # as those of DirectRun

    def _resume(self, folder: pathlib.Path) -> None:
        """From what is in the folder."""
        kept, self.seconds = result_folder.read_checkpoint(folder, self.solver.to_checkpoint(self.state))
        self.state = self.solver.from_checkpoint(kept)
        earlier = result_folder.read_metrics(folder, len(self.task.players))
        # The point of the checkpoint comes first again; what was noted after it is lost.
        self.metrics = [row for row in earlier if row.iterations < int(self.state.t)]

    def _unlock(self) -> None:
        if self._lock is not None:
            self._lock.close()

    def snapshots(
        self, stop: driver.StopCondition, every: int | None = None
    ) -> Iterator[driver.Snapshot[driver.RunState]]:
        for point in driver.iterate(self.solver, self.state, stop, every=every, seconds=self.seconds):
            self.state, self.seconds = point.state, point.metrics.seconds
            self.metrics.append(point.metrics)
            if time.monotonic() - self._saved >= max(self.checkpoint_seconds, self._rest):
                self.save()
            yield point

    def iterate_metrics(self, stop: driver.StopCondition, every: int | None = None) -> Iterator[driver.Metrics]:
        """The metrics of `points`."""
        for point in self.snapshots(stop, every):
            yield point.metrics

    @property
    def dropped_visits(self) -> int:
        """Visits of the last iteration that nothing was learnt from."""
        return self.solver.dropped_visits(self.state)

    @property
    def unplayable(self) -> int:
        """Trajectories that ended because some role had no legal move."""
        return self.solver.unplayable(self.state)

    def save(self) -> None:
        """Write what is needed to go on."""
        begun = time.monotonic()
        if self.folder is not None:
            result_folder.write_checkpoint(self.folder, self.solver.to_checkpoint(self.state), self.seconds)
            result_folder.write_metrics(self.folder, self.task.players, self.metrics)
        self._saved = time.monotonic()
        if (spent := self._saved - begun) > _LONG_WRITING:  # is then done less often
            self._rest = _RESTS * spent

    def finish(self, *, write_plot: bool = True) -> solution.Solution:
        """The solution so far, saved."""
        self.state = self.solver.latest(self.state)
        policies = self.solver.policies(self.state)
        if self.metrics:
            self.metrics[-1] = self.solver.with_value(self.state, self.metrics[-1])
        self.save()
        if self.folder is not None:
            self.solver.write_policy(self.folder, self.state)
            if write_plot and any(row.improvements for row in self.metrics):
                title = f"{self.task.game.spec}, {self.algorithm.name}"
                plot.plot_convergence(self.folder / result_folder.PLOT, {self.algorithm.name: self.metrics}, title)
        self._unlock()
        return solution.Solution(
            self.task.tree, self.algorithm.name, policies, tuple(self.metrics), self.config.to_json()
        )


class DirectResult(NamedTuple):
    """Policies that were found at once."""

    policies: tabular_policies.Policies
    seconds: float
    iterations: int = 0
    facts: Mapping[str, Any] = {}  # that belong into the report of the result


class DirectRun:
    """A run that finds all at once: as `Run`, but with one measurement, and nothing to resume."""

    dropped_visits = unplayable = 0

    def __init__(
        self,
        task: tasks.TreeTask,
        algorithm: algorithms.Algorithm,
        find: Callable[[], DirectResult],
        folder: pathlib.Path | None = None,
    ) -> None:
        self.task, self.algorithm, self.folder = task, algorithm, folder
        self.config = make_config(task, algorithm)
        self.metrics: list[driver.Metrics] = []
        self._find = find
        self._result: DirectResult | None = None

    def iterate_metrics(self, stop: driver.StopCondition, every: int | None = None) -> Iterator[driver.Metrics]:
        """Whatever `stop` and `every` say."""
        del stop, every
        self._result = self._find()
        metrics = self.task.metrics(self._result.policies)
        self.metrics = [metrics._replace(seconds=self._result.seconds, iterations=self._result.iterations)]
        yield self.metrics[-1]

    @property
    def facts(self) -> Mapping[str, Any]:
        return {} if self._result is None else self._result.facts

    def finish(self, *, write_plot: bool = True) -> solution.Solution:
        """The solution, saved; `write_plot` is for runs with more to draw."""
        del write_plot
        if self._result is None:
            raise RuntimeError("a run is measured before it is finished")
        policies = self._result.policies
        if self.folder is not None:
            _begin(self.folder, self.task, self.config)
            result_folder.write_metrics(self.folder, self.task.players, self.metrics)
            result_folder.write_policy(self.folder, policies)
        return solution.Solution(
            self.task.tree, self.algorithm.name, policies, tuple(self.metrics), self.config.to_json()
        )


AnyRun = Run | DirectRun


def start_run(
    task: tasks.Task,
    algorithm: algorithms.Algorithm,
    folder: pathlib.Path | None = None,
    *,
    resume: bool = False,
    checkpoint_seconds: float = 10.0,
    direct_solver: Callable[[], DirectResult] | None = None,
) -> AnyRun:
    """The run of an algorithm, of whatever kind; `find` is what one with a network does."""
    if not algorithm.is_direct:
        return Run(task, algorithm, folder, resume=resume, interval=checkpoint_seconds)
    if task.tree_task is None:
        raise algorithms.UnknownAlgorithmError(f"{algorithm.name} needs {task.game.spec} unrolled")
    if algorithm.is_exact:
        direct_solver = functools.partial(_by_linear_program, task.tree_task)
    if direct_solver is None:
        algorithms.require_no_network(algorithm)
        raise AssertionError
    return DirectRun(task.tree_task, algorithm, direct_solver, folder)


def _by_linear_program(task: tasks.TreeTask) -> DirectResult:
    found = lp.solve(task.tree)
    return DirectResult(found.policies, found.seconds)


def solve_exactly(
    task: tasks.TreeTask, algorithm: algorithms.Algorithm, folder: pathlib.Path | None = None
) -> solution.Solution:
    """By linear programming."""
    run = DirectRun(task, algorithm, functools.partial(_by_linear_program, task), folder)
    list(run.iterate_metrics(driver.StopCondition()))
    return run.finish()


def make_stop_condition(
    task: tasks.Task, iterations: int | None, seconds: float | None, target: float | str | None
) -> driver.StopCondition:
    low, high = task.payoff_range
    if target is not None and task.tree_task is None:
        raise driver.StopError(
            f"{task.game.spec} is too large to measure exploitability, so there can be no target; "
            "say when to stop by iterations or time"
        )
    return driver.StopCondition(iterations, seconds, driver.parse_target(target, high - low))


def make_config(task: tasks.Task, algorithm: algorithms.Algorithm) -> result_folder.Config:
    is_double = jax.numpy.result_type(float) == np.float64
    return result_folder.Config(task.game, task.digest, algorithm, is_double, task.opponent_model)


def _begin(folder: pathlib.Path, task: tasks.Task, config: result_folder.Config) -> None:
    task.write_inputs(folder)
    result_folder.write_config(folder, config)
