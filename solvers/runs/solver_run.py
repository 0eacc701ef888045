"""Runs of algorithms on games: iterative with checkpoints, or direct."""

import functools
import pathlib
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, cast

import jax
import numpy as np

from gdlx.solvers import algorithms, solution, tabular_policies, tasks
from gdlx.solvers.exact import backward_induction, lp
from gdlx.solvers.runs import driver, plot, result_folder, solver, state_solver, table_solver, tree_solvers

_SLOW_CHECKPOINT_SECONDS = 0.5  # a checkpoint that takes longer ..
_CHECKPOINT_PAUSE = 20  # .. is followed by a pause of so many times its duration

AnySolver = solver.Solver[driver.RunState]
MeasuredTask = tasks.TreeTask | tasks.StateTask


def make_solver(task: tasks.Task, algorithm: algorithms.Algorithm) -> AnySolver:
    """Builds the solver of an iterative algorithm on a game.

    Raises:
      UnknownAlgorithmError: the algorithm needs another kind of task.
    """
    built: object
    match task, algorithm.kind:
        case tasks.TableTask(), "table":
            built = table_solver.TableSolver(task, algorithm)
        case tasks.TreeTask(), "sampled":
            built = tree_solvers.SampledSolver(task, algorithm)
        case tasks.StateTask(), "states":
            built = state_solver.StateSolver(task, algorithm)
        case tasks.TreeTask(), "full":
            built = tree_solvers.FullSolver(task, algorithm)
        case _:
            raise algorithms.UnknownAlgorithmError(
                f"{algorithm.name} does not run on {task.game.spec} as it was prepared"
            )
    # The type of its state does not matter: callers only pass states back to the solver that returned them.
    return cast(AnySolver, built)


class Run:
    """A run of an iterative algorithm on a game, with checkpoints in a result folder if one is passed.

    Iterate over `snapshots` or `iterate_metrics`, stop at any time, then call `finish` for the solution. A checkpoint
    is written every `interval` seconds.
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
        self._saved, self._pause = time.monotonic(), 0.0
        self._lock = result_folder.lock(folder) if folder is not None and folder.is_dir() else None
        try:
            if resume and folder is not None:
                self._resume(folder)
            elif folder is not None:
                _begin(folder, task, self.config)
        except BaseException:
            self._unlock()
            raise

    facts: Mapping[str, Any] = {}  # as in DirectRun

    def __repr__(self) -> str:
        iterations = self.metrics[-1].iterations if self.metrics else 0
        folder = "" if self.folder is None else f", {self.folder}"
        return f"Run({self.task.game.spec}, {self.algorithm.name}: {iterations:,} iterations{folder})"

    def _resume(self, folder: pathlib.Path) -> None:
        """Restores the state and the metrics from a result folder."""
        saved, self.seconds = result_folder.read_checkpoint(folder, self.solver.to_checkpoint(self.state))
        self.state = self.solver.from_checkpoint(saved)
        earlier = result_folder.read_metrics(folder, len(self.task.players))
        # The iteration of the checkpoint is measured again; metrics of later iterations are discarded.
        self.metrics = [row for row in earlier if row.iterations < int(self.state.t)]

    def _unlock(self) -> None:
        if self._lock is not None:
            self._lock.close()

    def snapshots(
        self, stop: driver.StopCondition, every: int | None = None
    ) -> Iterator[driver.Snapshot[driver.RunState]]:
        """Run until `stop`, and yield states with their metrics, as `driver.iterate` does."""
        for snapshot in driver.iterate(self.solver, self.state, stop, every=every, seconds=self.seconds):
            self.state, self.seconds = snapshot.state, snapshot.metrics.seconds
            if self.metrics and not driver.is_scheduled(self.metrics[-1].iterations, every):
                self.metrics.pop()  # it was the last one until now; its place depends on the clock
            self.metrics.append(snapshot.metrics)
            if time.monotonic() - self._saved >= max(self.checkpoint_seconds, self._pause):
                self.save()
            yield snapshot

    def iterate_metrics(self, stop: driver.StopCondition, every: int | None = None) -> Iterator[driver.Metrics]:
        """Yields the metrics of `snapshots`."""
        for snapshot in self.snapshots(stop, every):
            yield snapshot.metrics

    @property
    def dropped_visits(self) -> int:
        """Visits of the last iteration that were dropped, because a hash table was full."""
        return self.solver.dropped_visits(self.state)

    @property
    def unplayable(self) -> int:
        """Trajectories that ended because some role had no legal move."""
        return self.solver.unplayable(self.state)

    def save(self) -> None:
        """Writes the metrics so far and a checkpoint."""
        begun = time.monotonic()
        if self.folder is not None:  # metrics first: those of iterations after the checkpoint are dropped by a resume
            result_folder.write_metrics(self.folder, self.task.players, self.metrics)
            result_folder.write_checkpoint(self.folder, self.solver.to_checkpoint(self.state), self.seconds)
        self._saved = time.monotonic()
        if (spent := self._saved - begun) > _SLOW_CHECKPOINT_SECONDS:
            self._pause = _CHECKPOINT_PAUSE * spent

    def finish(self, *, write_plot: bool = True) -> solution.Solution:
        """Saves and returns the solution so far."""
        self.state = self.solver.latest(self.state)
        policies = self.solver.policies(self.state)
        if self.metrics:
            self.metrics[-1] = self.solver.with_value(self.state, self.metrics[-1])
        self.save()
        if self.folder is not None:
            self.solver.write_policy(self.folder, self.state)
            if write_plot and any(row.improvements for row in self.metrics):
                title = f"{self.task.game.spec}, {self.algorithm.name}"
                try:
                    plot.plot_convergence(self.folder / result_folder.PLOT, {self.algorithm.name: self.metrics}, title)
                except Exception as error:  # of the library that draws: the result is written
                    warnings.warn(f"{result_folder.PLOT} was not drawn: {error}", stacklevel=2)
        self._unlock()
        return solution.Solution(
            self.task.tree,
            self.algorithm.name,
            policies,
            tuple(self.metrics),
            self.config.to_json(),
            self.solver.table(self.state),
        )


class DirectResult(NamedTuple):
    """Policies of a direct solver."""

    policies: tabular_policies.Policies
    seconds: float
    iterations: int = 0
    facts: Mapping[str, Any] = {}  # further facts for reports, as JSON


class DirectRun:
    """A run of a direct solver: like `Run`, but with one measurement, and nothing to resume."""

    dropped_visits = unplayable = 0

    def __init__(
        self,
        task: MeasuredTask,
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
        """Solves, and yields the metrics. `stop` and `every` are ignored."""
        del stop, every
        self._result = self._find()
        metrics = self.task.metrics(self._result.policies)
        self.metrics = [metrics._replace(seconds=self._result.seconds, iterations=self._result.iterations)]
        yield self.metrics[-1]

    @property
    def facts(self) -> Mapping[str, Any]:
        return {} if self._result is None else self._result.facts

    def finish(self, *, write_plot: bool = True) -> solution.Solution:
        """Saves and returns the solution. `write_plot` is ignored: there is one measurement."""
        del write_plot
        if self._result is None:
            raise RuntimeError("call `iterate_metrics` before `finish`")
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
    """Starts the run of any kind of algorithm. `direct_solver` is for algorithms that need a network."""
    if not algorithm.is_direct:
        return Run(task, algorithm, folder, resume=resume, interval=checkpoint_seconds)
    match task, algorithm.kind:
        case tasks.StateTask(), "backward-induction":
            return DirectRun(task, algorithm, functools.partial(_by_backward_induction, task), folder)
        case tasks.TreeTask() | tasks.TableTask(tree_task=tasks.TreeTask()), "exact":
            unrolled = tasks.require_tree_task(task)
            return DirectRun(unrolled, algorithm, functools.partial(_by_linear_program, unrolled), folder)
    if task.tree_task is None or algorithm.on_states:
        raise algorithms.UnknownAlgorithmError(f"{algorithm.name} does not run on {task.game.spec} as it was prepared")
    if direct_solver is None:
        algorithms.require_no_network(algorithm)
        raise AssertionError
    return DirectRun(task.tree_task, algorithm, direct_solver, folder)


def _by_linear_program(task: tasks.TreeTask) -> DirectResult:
    equilibrium = lp.solve(task.tree)
    return DirectResult(equilibrium.policies, equilibrium.seconds)


def _by_backward_induction(task: tasks.StateTask) -> DirectResult:
    solved = backward_induction.solve(task.graph)
    facts = {
        "matrix_games": solved.matrix_games,
        "matrix_games_mixed": solved.mixed,
        "tolerance": solved.tolerance,
        "error_bound": solved.error_bound,
    }
    return DirectResult(solved.policies, solved.seconds, facts=facts)


def solve_exactly(
    task: tasks.Task, algorithm: algorithms.Algorithm, folder: pathlib.Path | None = None
) -> solution.Solution:
    """Solves by linear programming or backward induction."""
    run = start_run(task, algorithm, folder)
    list(run.iterate_metrics(driver.StopCondition()))
    return run.finish()


def make_stop_condition(
    task: tasks.Task, iterations: int | None, seconds: float | None, target: float | str | None
) -> driver.StopCondition:
    """Builds a stop condition, with a relative target in payoff units of the task."""
    low, high = task.payoff_range
    if target is not None and not task.is_measured_exactly:
        raise driver.StopError(
            f"{task.game.spec} is too large to measure exploitability, so `target=` cannot be used; "
            "stop by iterations or time"
        )
    return driver.StopCondition(iterations, seconds, driver.parse_target(target, high - low))


def make_config(task: tasks.Task, algorithm: algorithms.Algorithm) -> result_folder.Config:
    """Builds the config of a run, as config.json records it."""
    is_double = jax.numpy.result_type(float) == np.float64
    return result_folder.Config(
        task.game, task.digest, algorithm, is_double, task.opponent_model, symmetries=not task.tree.is_whole
    )


def _begin(folder: pathlib.Path, task: tasks.Task, config: result_folder.Config) -> None:
    task.write_inputs(folder)
    result_folder.write_config(folder, config)
