"""`gdlx.solve`: from a game's name to a Solution."""

import pathlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

from gdlx.envs import game_tree, trees
from gdlx.solvers import (
    driver,
    lp,
    plot,
    presets,
    problems,
    processes,
    profiles,
    restricted,
    results,
    solution,
    table_process,
)

_LONG_WRITING, _RESTS = 0.5, 20  # seconds to write a checkpoint, and how many times that until the next one


Task = problems.Problem | problems.TableProblem


def process_of(task: Task, algorithm: presets.Algorithm) -> Any:  # a processes.Process with its own kind of state
    """An algorithm on a game, as the driver runs it."""
    if isinstance(task, problems.TableProblem):
        return table_process.TableProcess(task, algorithm)
    if algorithm.sampling is None:
        return processes.FullProcess(task, algorithm)
    return processes.SampledProcess(task, algorithm)


def uses_table(algorithm: presets.Algorithm) -> bool:
    return algorithm.sampling is not None and algorithm.sampling.table is not None


class Run:
    """A run of an algorithm on a game, written to a folder as it goes if it has one.

    Iterate over `points()`; stop whenever you like; then `finish()` gives the solution. A checkpoint is written every
    `interval` seconds.
    """

    def __init__(
        self,
        task: Task,
        algorithm: presets.Algorithm,
        folder: pathlib.Path | None = None,
        *,
        resume: bool = False,
        interval: float = 10.0,
    ) -> None:
        self.task, self.algorithm, self.folder, self.interval = task, algorithm, folder, interval
        self.config = config_of(task, algorithm)
        self.process = process_of(task, algorithm)
        self.state: Any = self.process.init()
        self.seconds = 0.0
        self.metrics: list[driver.Metrics] = []
        self._saved, self._rest = time.monotonic(), 0.0
        self._lock = results.lock(folder) if folder is not None and folder.is_dir() else None
        try:
            if resume and folder is not None:
                self._go_on(folder)
            elif folder is not None:
                _begin(folder, task, self.config)
        except BaseException:
            self._unlock()
            raise

    def _go_on(self, folder: pathlib.Path) -> None:
        """From what is in the folder."""
        kept, self.seconds = results.read_checkpoint(folder, self.process.saved(self.state))
        self.state = self.process.restored(kept)
        earlier = results.read_metrics(folder, len(self.task.players))
        # The point of the checkpoint comes first again; what was noted after it is lost.
        self.metrics = [row for row in earlier if row.iterations < int(self.state.t)]

    def _unlock(self) -> None:
        if self._lock is not None:
            self._lock.close()

    def points(self, stop: driver.Stop, every: int | None = None) -> Iterator[driver.Point[Any]]:
        for point in driver.iterate(self.process, self.state, stop, every=every, seconds=self.seconds):
            self.state, self.seconds = point.state, point.metrics.seconds
            self.metrics.append(point.metrics)
            if time.monotonic() - self._saved >= max(self.interval, self._rest):
                self.save()
            yield point

    def save(self) -> None:
        """Write what is needed to go on."""
        begun = time.monotonic()
        if self.folder is not None:
            results.write_checkpoint(self.folder, self.process.saved(self.state), self.seconds)
            results.write_metrics(self.folder, self.task.players, self.metrics)
        self._saved = time.monotonic()
        if (spent := self._saved - begun) > _LONG_WRITING:  # is then done less often
            self._rest = _RESTS * spent

    def finish(self, *, picture: bool = True) -> solution.Solution:
        """The solution so far, saved."""
        self.state = self.process.latest(self.state)
        policies = self.process.policies(self.state)
        if self.metrics:
            self.metrics[-1] = self.process.valued(self.state, self.metrics[-1])
        self.save()
        if self.folder is not None:
            self.process.write_policy(self.folder, self.state)
            if picture and any(row.gain for row in self.metrics):
                title = f"{self.task.game.spec}, {self.algorithm.name}"
                plot.convergence(self.folder / results.PLOT, {self.algorithm.name: self.metrics}, title)
        self._unlock()
        return solution.Solution(
            self.task.tree, self.algorithm.name, policies, tuple(self.metrics), self.config.to_json()
        )


def solve(
    game: str | trees.Game | game_tree.GameTree,
    algorithm: str | presets.Algorithm = presets.DEFAULT,
    *,
    iterations: int | None = None,
    seconds: float | None = None,
    target: float | str | None = None,
    every: int | None = None,
    report: Callable[[driver.Metrics], None] | None = None,
    **settings: Any,
) -> solution.Solution:
    """Solve a library game (`goofspiel:cards=4`), a rulesheet's path, or an unrolled game.

    Stops at whichever comes first of `iterations`, `seconds` and `target` (an exploitability in payoff units, or a
    part of the payoff range as in "0.01%"). Further arguments are settings of the algorithm, as `gamma=2.0`.

    >>> solution = solve("kuhn_poker", "cfr+", iterations=1000)
    >>> round(solution.value[0], 3), solution.exploitability < 1e-3
    (-0.056, True)
    """
    chosen = presets.require_own(algorithm if isinstance(algorithm, presets.Algorithm) else presets.find(algorithm))
    configured = presets.configured(chosen, None if chosen.is_exact else iterations, settings)
    if isinstance(game, game_tree.GameTree):
        if uses_table(configured):
            raise presets.UnknownAlgorithm("a hash table needs the rules of a game, not its tree")
        task: Task = problems.problem(trees.Game(game.name), game)
    else:
        named = game if isinstance(game, trees.Game) else trees.Game(game)
        if uses_table(configured):
            task = problems.table_problem(named)
        else:
            task = problems.problem(named, keep_edges=chosen.sampling is not None)
    if configured.is_exact and isinstance(task, problems.Problem):
        return solve_exactly(task, configured)
    stop = stop_of(task, iterations, seconds, target)
    run = Run(task, configured)
    for point in run.points(stop, every):
        if report:
            report(point.metrics)
    return run.finish()


def stop_of(task: Task, iterations: int | None, seconds: float | None, target: float | str | None) -> driver.Stop:
    low, high = task.payoff_range
    if target is not None and isinstance(task, problems.TableProblem) and task.whole is None:
        raise driver.WrongStop(
            f"{task.game.spec} is too large to measure exploitability, so there can be no target; "
            "say when to stop by iterations or time"
        )
    return driver.Stop(iterations, seconds, driver.parse_target(target, high - low))


def solve_exactly(
    task: problems.Problem, algorithm: presets.Algorithm, folder: pathlib.Path | None = None
) -> solution.Solution:
    """By linear programming."""
    found = lp.solve(task.tree)
    return kept(task, algorithm, found.policies, found.seconds, folder)


def kept(
    task: problems.Problem,
    algorithm: presets.Algorithm,
    policies: profiles.Policies,
    seconds: float,
    folder: pathlib.Path | None,
    iterations: int = 0,
) -> solution.Solution:
    """Policies that were found at once, with what they are worth."""
    metrics = task.metrics(policies)._replace(seconds=seconds, iterations=iterations)
    config = config_of(task, algorithm)
    if folder is not None:
        _begin(folder, task, config)
        results.write_metrics(folder, task.players, [metrics])
        results.write_policy(folder, policies)
    return solution.Solution(task.tree, algorithm.name, policies, (metrics,), config.to_json())


def config_of(task: Task, algorithm: presets.Algorithm) -> results.Config:
    is_double = jax.numpy.result_type(float) == np.float64
    modelled = None
    if isinstance(task, restricted.RestrictedProblem):
        bound = task.restriction
        modelled = results.Modelled(task.players[bound.player], bound.p, bound.digest)
    return results.Config(task.game, task.digest, algorithm, is_double, modelled)


def _begin(folder: pathlib.Path, task: Task, config: results.Config) -> None:
    if isinstance(task, restricted.RestrictedProblem):
        results.write_model(folder, task.restriction.model)
    results.write_config(folder, config)
