"""Runs one algorithm on one game until it reaches a target, or its time limit."""

import pathlib
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from gdlx.envs import compilation_cache, game_spec
from gdlx.experiments.studies import result_cache
from gdlx.solvers import algorithms, tasks
from gdlx.solvers.runs import driver, result_folder, solver_run

_SHORT = 0.5  # seconds: shorter runs are repeated for as long in total, and the fastest counts
_MAX_REPEATS = 20
_MAX_SEQUENCES = 5_000  # of a game for linear programming, which has no time limit


class Candidate(NamedTuple):
    """An algorithm, and the horizon of its schedule if it has one."""

    algorithm: str
    horizon: int | None = None

    @property
    def name(self) -> str:
        return self.algorithm if self.horizon is None else f"{self.algorithm}, n = {self.horizon:,}"


class RaceConfig(NamedTuple):
    game: str
    part: float  # target exploitability, as a fraction of the payoff range
    limit: float  # seconds
    seed: int

    def settings(self, candidate: Candidate) -> dict[str, Any]:
        return self._asdict() | candidate._asdict()

    def path(self, folder: pathlib.Path, candidate: Candidate) -> pathlib.Path:
        name = "-".join((self.game, f"{self.part:g}", candidate.algorithm, str(candidate.horizon or "")))
        return folder / f"{result_folder.folder_name(name)}.json"


class RaceResult(NamedTuple):
    candidate: str
    is_reached: bool
    seconds: float | None  # of solving; None if the algorithm was not run
    iterations: int
    error: float  # final exploitability, as a fraction of the payoff range


def find(folder: pathlib.Path, race: RaceConfig, candidates: Sequence[Candidate]) -> list[RaceResult] | None:
    """Returns the cached results of a race, or None if any are missing."""
    rows = [result_cache.load_row(race.path(folder, candidate), race.settings(candidate)) for candidate in candidates]
    return None if None in rows else [RaceResult(**row) for row in rows if row is not None]


def run_race(folder: pathlib.Path, race: RaceConfig, candidates: Sequence[Candidate]) -> None:
    """Runs and caches a race. Call it in a new process, because precision is fixed when a process starts."""
    compilation_cache.enable()
    task = tasks.make_tree_task(game_spec.GameSpec(race.game), keep_edges=True)
    for candidate in candidates:

        def measure(candidate: Candidate = candidate) -> result_cache.Row:
            return measure_candidate(task, race, candidate)._asdict()

        result_cache.load_or_measure(race.path(folder, candidate), race.settings(candidate), measure)


def measure_candidate(task: tasks.TreeTask, race: RaceConfig, candidate: Candidate) -> RaceResult:
    chosen = algorithms.find(candidate.algorithm)
    low, high = task.payoff_range
    if chosen.is_exact:
        if sum(player.sequences for player in task.tree.players) > _MAX_SEQUENCES:
            return RaceResult(candidate.name, False, None, 0, 1.0)
        last = solver_run.solve_exactly(task, chosen).metrics[-1]
    else:
        algorithm = algorithms.configure(chosen, candidate.horizon, {}).with_seed(race.seed)
        stop = driver.StopCondition(seconds=race.limit, target=race.part * (high - low))
        last = run_to_target(task, algorithm, stop)
    error = last.error / (high - low)
    return RaceResult(candidate.name, error <= race.part, last.seconds, last.iterations, error)


def run_to_target(task: tasks.TreeTask, algorithm: algorithms.Algorithm, stop: driver.StopCondition) -> driver.Metrics:
    """The last metrics of a run. A short run is repeated without measuring: on small games most of the time is overhead
    between iterations and measurements."""
    solver = solver_run.make_solver(task, algorithm)
    *_, last = driver.iterate(solver, solver.init(), stop)
    metrics = last.metrics
    if metrics.seconds >= _SHORT:
        return metrics
    times: list[float] = []
    while len(times) < _MAX_REPEATS and sum(times) < _SHORT:
        times.append(_time_uninterrupted(solver, metrics.iterations))
    return metrics._replace(seconds=min(times))


def _time_uninterrupted(solver: solver_run.AnySolver, iterations: int) -> float:
    state = solver.init()
    begun = time.perf_counter()
    solver.advance(state, iterations)
    return time.perf_counter() - begun
