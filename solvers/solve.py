"""`gdlx.solve`: from a game's name to a Solution."""

import dataclasses
import pathlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

from gdlx.envs import game_tree, sequence_form, trees
from gdlx.solvers import driver, lp, plot, presets, processes, profiles, results, solution


@dataclasses.dataclass(frozen=True)
class Problem:
    """A game made ready for solvers."""

    game: trees.Game
    tree: game_tree.GameTree
    form: sequence_form.SequenceForm
    layouts: tuple[sequence_form.Layout, ...]

    @property
    def payoff_range(self) -> float:
        low, high = self.tree.payoff_range
        return high - low

    def metrics(self, policies: profiles.Policies, iterations: int = 0, seconds: float = 0.0) -> driver.Metrics:
        """What policies are worth."""
        found = processes.evaluate(self.form, profiles.to_levels(self.tree, self.layouts, policies))
        return processes.metrics(jax.device_get(found), iterations, seconds)

    def process(self, algorithm: presets.Algorithm) -> processes.FullProcess | processes.SampledProcess:
        """What the driver runs."""
        if algorithm.sampling is None:
            return processes.FullProcess(self.tree, self.form, self.layouts, algorithm)
        return processes.SampledProcess(self.tree, self.form, self.layouts, algorithm, algorithm.sampling)


def problem(game: trees.Game, tree: game_tree.GameTree | None = None, *, keep_edges: bool = False) -> Problem:
    """Sampling needs a tree with its edges."""
    tree = trees.unrolled(game, keep_edges=keep_edges) if tree is None else tree
    return Problem(game, tree, *sequence_form.sequence_form(tree))


class Run:
    """A run of an algorithm on a game, written to a folder as it goes if it has one.

    Iterate over `points()`; stop whenever you like; then `finish()` gives the solution. A checkpoint is written every
    `interval` seconds.
    """

    def __init__(
        self,
        task: Problem,
        algorithm: presets.Algorithm,
        folder: pathlib.Path | None = None,
        *,
        resume: bool = False,
        interval: float = 10.0,
    ) -> None:
        self.task, self.algorithm, self.folder, self.interval = task, algorithm, folder, interval
        self.config = results.Config(
            task.game, results.digest(task.tree), algorithm, jax.numpy.result_type(float) == np.float64
        )
        self.process: Any = task.process(algorithm)
        self.state: Any = self.process.init()
        self.seconds = 0.0
        self.metrics: list[driver.Metrics] = []
        self._saved = time.monotonic()
        self._lock = results.lock(folder) if folder is not None and folder.is_dir() else None
        if resume and folder is not None:
            self.state, self.seconds = results.read_checkpoint(folder, self.state)
            earlier = results.read_metrics(folder, len(task.tree.players))
            # The point of the checkpoint comes first again; what was noted after it is lost.
            self.metrics = [row for row in earlier if row.iterations < int(self.state.t)]
        elif folder is not None:
            results.write_config(folder, self.config)

    def points(self, stop: driver.Stop, every: int | None = None) -> Iterator[driver.Point[Any]]:
        for point in driver.iterate(self.process, self.state, stop, every=every, seconds=self.seconds):
            self.state, self.seconds = point.state, point.metrics.seconds
            self.metrics.append(point.metrics)
            if time.monotonic() - self._saved >= self.interval:
                self.save()
            yield point

    def save(self) -> None:
        """Write what is needed to go on."""
        if self.folder is not None:
            results.write_checkpoint(self.folder, self.state, self.seconds)
            results.write_metrics(self.folder, [player.name for player in self.task.tree.players], self.metrics)
        self._saved = time.monotonic()

    def finish(self) -> solution.Solution:
        """The solution so far, saved."""
        self.save()
        policies = self.process.policies(self.state)
        if self.folder is not None:
            results.write_policy(self.folder, policies)
            title = f"{self.task.game.spec}, {self.algorithm.name}"
            plot.convergence(self.folder / results.PLOT, {self.algorithm.name: self.metrics}, title)
        if self._lock is not None:
            self._lock.close()
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
    chosen = algorithm if isinstance(algorithm, presets.Algorithm) else presets.find(algorithm)
    samples = chosen.sampling is not None
    match game:
        case trees.Game():
            task = problem(game, keep_edges=samples)
        case game_tree.GameTree():
            task = problem(trees.Game(game.name), game)
        case _:
            task = problem(trees.Game(game), keep_edges=samples)
    if chosen.is_exact:
        return solve_exactly(task, presets.configured(chosen, None, settings))
    stop = driver.Stop(iterations, seconds, driver.parse_target(target, task.payoff_range))
    run = Run(task, presets.configured(chosen, iterations, settings))
    for point in run.points(stop, every):
        if report:
            report(point.metrics)
    return run.finish()


def solve_exactly(task: Problem, algorithm: presets.Algorithm, folder: pathlib.Path | None = None) -> solution.Solution:
    """By linear programming."""
    found = lp.solve(task.tree)
    metrics = task.metrics(found.policies)._replace(seconds=found.seconds)
    config = _config(task, algorithm)
    if folder is not None:
        results.write_config(folder, config)
        results.write_metrics(folder, [player.name for player in task.tree.players], [metrics])
        results.write_policy(folder, found.policies)
    return solution.Solution(task.tree, algorithm.name, found.policies, (metrics,), config.to_json())


def _config(task: Problem, algorithm: presets.Algorithm) -> results.Config:
    is_double = jax.numpy.result_type(float) == np.float64
    return results.Config(task.game, results.digest(task.tree), algorithm, is_double)
