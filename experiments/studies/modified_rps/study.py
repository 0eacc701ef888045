"""Convergence of searches to the equilibrium of modified rock-paper-scissors: Figure 9 of West (2024).

It plots the probabilities of the three moves over time, and the goals of the policy against a best response, for two
searches. Here are the same curves for the algorithms of `gdlx solve`; sampling ones have one sample per iteration, as
in a search, or many.
"""

import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from gdlx.envs import compilation_cache, game_spec
from gdlx.experiments.studies import plots, result_cache, study_registry
from gdlx.solvers import algorithms, tasks
from gdlx.solvers.runs import driver, solver_run

MINUTES, FULL_MINUTES = 2.0, 20.0
GAME = "modified_rps"
MOVES = ("rock", "paper", "scissors")
EQUILIBRIUM = np.array([0.4, 0.4, 0.2])  # section 4.2 of the thesis
GOALS = 50.0  # of an equilibrium policy, against any opponent
FIGURE = "modified_rps.png"
NEAR = (0.05, 0.01)  # distances of a probability
ITERATIONS, SEEDS = 20_000, 10  # in MINUTES

Floats = plots.Floats


class SearchConfig(NamedTuple):
    name: str
    algorithm: str
    settings: Mapping[str, Any] = {}


SEARCHES = (
    SearchConfig("cfr", "cfr"),
    SearchConfig("cfr+", "cfr+"),
    SearchConfig("dcfr", "dcfr"),
    SearchConfig("external, 1 sample", "es-mccfr", {"batch": 1}),
    SearchConfig("outcome, 1 sample", "os-mccfr", {"batch": 1}),
    SearchConfig("outcome with baselines, 1 sample", "vr-mccfr", {"batch": 1}),
    SearchConfig("external, 512 samples", "es-mccfr", {"batch": 512}),
)


class PolicyCurve(NamedTuple):
    """Axes: N measurements, R runs with different seeds, 1 for deterministic searches."""

    iterations: Floats  # [N]
    seconds: Floats  # [N, R] of solving
    policy: Floats  # [N, R, 3] of the first player
    worst: Floats  # [N, R] its goals against a best response

    @property
    def seconds_per_iteration(self) -> float:
        """Over the second half, where calls have many iterations and their overhead does not count."""
        middle = len(self.iterations) // 2
        spent = self.seconds[-1] - self.seconds[middle]
        return float(spent.mean() / max(1.0, self.iterations[-1] - self.iterations[middle]))

    @property
    def distance(self) -> Floats:
        """[N, R] the largest difference of a probability from the equilibrium's."""
        distance: Floats = np.abs(self.policy - EQUILIBRIUM).max(axis=2)
        return distance


def run(setting: study_registry.StudyConfig) -> Iterator[study_registry.StudyTable]:
    compilation_cache.enable()
    task = tasks.make_tree_task(game_spec.GameSpec(GAME), keep_edges=True)
    yield _equilibrium(task)
    curves = {search.name: _cached_curve(task, search, setting) for search in SEARCHES}
    yield _table(curves)
    draw_figure(setting.folder / FIGURE, curves)


def _equilibrium(task: tasks.TreeTask) -> study_registry.StudyTable:
    exact = solver_run.solve_exactly(task, algorithms.find("lp"))
    ours = [exact.policy(task.players[0])[move] for move in MOVES]
    rows = [
        (what, *(f"{x:.4g}" for x in policy), f"{goals:.4g}")
        for what, policy, goals in (
            ("ours, by linear programming", ours, exact.goals[0]),
            ("theirs", EQUILIBRIUM, GOALS),
        )
    ]
    data = {"policy": ours, "goals": exact.goals[0]}
    return study_registry.StudyTable("the equilibrium", ("", *MOVES, "goals"), rows, data)


def _cached_curve(task: tasks.TreeTask, search: SearchConfig, setting: study_registry.StudyConfig) -> PolicyCurve:
    iterations = max(10, round(ITERATIONS * setting.minutes / MINUTES))
    path = setting.folder / f"{search.name.replace(', ', '-').replace(' ', '_')}-{iterations}-{setting.seed}.npz"
    if (earlier := result_cache.load_arrays(path, PolicyCurve._fields)) is not None:
        return PolicyCurve(*earlier)
    setting.report(f"{search.name}: {iterations:,} iterations")
    algorithm = algorithms.configure(algorithms.find(search.algorithm), iterations, search.settings)
    seeds = range(setting.seed, setting.seed + (SEEDS if algorithm.is_sampled else 1))
    runs = [_run(task, algorithm, seed, iterations) for seed in seeds]
    curve = PolicyCurve(
        runs[0].iterations, *(np.stack([getattr(one, f) for one in runs], axis=1) for f in PolicyCurve._fields[1:])
    )
    result_cache.write_arrays(path, curve._asdict())
    return curve


def _run(task: tasks.TreeTask, algorithm: algorithms.Algorithm, seed: int, iterations: int) -> PolicyCurve:
    """One run; its curve has no axis of runs."""
    solver = solver_run.make_solver(task, algorithm.with_seed(seed))
    player = task.tree.players[0]
    order = [1 + player.options(0).index(move) for move in MOVES]
    rows = []
    for point in driver.iterate(solver, solver.init(), driver.StopCondition(iterations)):
        now = point.metrics
        if now.iterations:  # before the first iteration there is no average
            worst = now.value[0] - now.improvements[1] + task.tree.offset
            rows.append((now.iterations, now.seconds, solver.policies(point.state)[0][order], worst))
    return PolicyCurve(*(np.array(column, float) for column in zip(*rows, strict=True)))


def settling_index(curve: PolicyCurve, bound: float) -> int | None:
    """The index of the measurement from which on the mean distance stays within a bound."""
    outside = np.flatnonzero(curve.distance.mean(axis=1) > bound)
    first = int(outside[-1]) + 1 if len(outside) else 0
    return first if first < len(curve.iterations) else None


def _table(curves: Mapping[str, PolicyCurve]) -> study_registry.StudyTable:
    rows, data = [], []
    for name, curve in curves.items():
        row, reached = [name, f"{1e6 * curve.seconds_per_iteration:.2g} µs"], []
        for bound in NEAR:
            at = settling_index(curve, bound)
            iterations = None if at is None else int(curve.iterations[at])
            seconds = None if iterations is None else iterations * curve.seconds_per_iteration
            row += ["not yet", ""] if seconds is None else [f"{iterations:,}", f"{1e3 * seconds:.2g} ms"]
            reached.append({"within": bound, "iterations": iterations, "seconds": seconds})
        distance, error = (float(x) for x in plots.mean_and_error(curve.distance[-1]))
        worst = float(curve.worst[-1].mean())
        row += [f"{distance:.2g}" + (f" ± {error:.1g}" if error else ""), f"{worst:.2f}"]
        rows.append(row)
        data.append({"search": name, "reached": reached, "distance": distance, "error": error, "worst": worst})
    last = next(iter(curves.values())).iterations[-1]
    columns = [text for bound in NEAR for text in (f"within {bound:g}", "time")]
    title = f"iterations until all probabilities stay near the equilibrium, and the distance after {last:,.0f}"
    return study_registry.StudyTable(
        title, ("search", "an iteration", *columns, "distance", "goals against a best response"), rows, data
    )


def draw_figure(path: pathlib.Path, curves: Mapping[str, PolicyCurve]) -> None:
    """As Figure 9: probabilities of moves and goals against a best response; and the distance, on logarithmic axes."""
    figure, axes = plots.make_panels(2, 3, width=4.4, height=3.4)
    for place, number in zip(axes, range(len(MOVES)), strict=False):
        plots.plot_curves(
            place,
            _lines(curves, [curve.policy[:, :, number] for curve in curves.values()]),
            title=f"probability of {MOVES[number]}",
            x="iterations",
            y="",
            log=False,
            reference=float(EQUILIBRIUM[number]),
        )
    worst = [curve.worst for curve in curves.values()]
    plots.plot_curves(
        axes[3],
        _lines(curves, worst),
        title="goals against a best response",
        x="iterations",
        y="",
        log=False,
        reference=GOALS,
    )
    for place, over in ((axes[4], "iterations"), (axes[5], "seconds")):
        lines = _lines(curves, [curve.distance for curve in curves.values()], over)
        plots.plot_curves(place, lines, title="largest distance of a probability", x=over, y="")
    plots.legend_below(figure, axes[0], 4)
    plots.save_figure(path, figure)


def _lines(curves: Mapping[str, PolicyCurve], heights: Sequence[Floats], over: str = "iterations") -> list[plots.Line]:
    lines = []
    for (name, curve), y in zip(curves.items(), heights, strict=True):
        x = curve.iterations * (1.0 if over == "iterations" else curve.seconds_per_iteration)
        lines.append(plots.Line(name, x, y, {"lw": 1.2}))
    return lines
