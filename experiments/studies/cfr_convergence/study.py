"""How fast CFR converges in three games of simultaneous moves, as in section 5.2.1 of Shafiei Khadem (2010).

M. Shafiei Khadem, Simultaneous Move Games in General Game Playing, University of Alberta 2010. Its error is the
mean square difference between the average policies and the final ones, over all states and moves (equation 5.1). We
measure exploitability as well, which that error does not show.
"""

import itertools
import pathlib
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import jax
import numpy as np
import numpy.typing as npt

from gdlx.envs import compilation_cache, game_spec
from gdlx.experiments.studies import plots, result_cache, study_registry
from gdlx.experiments.studies.cfr_convergence import graph
from gdlx.propnet import games
from gdlx.solvers import algorithms, tasks
from gdlx.solvers.runs import result_folder, tree_solvers

MINUTES, FULL_MINUTES = 8.0, 80.0
FIGURE = "cfr_convergence.png"
BOUNDS = (0.01, 0.001)
CONVERGED = 1e-6  # the most that a probability changes in the last iteration, in the thesis
_DENSE_ITERATIONS = 300  # every iteration up to here is measured
_GROWTH = 1.02  # ratio of the iterations of later measurements
_OTHER_START_DIVISOR = 4  # a run from another start has so many times fewer iterations
_SAVE_INTERVAL = 30.0  # seconds between writes of what has been measured

Floats = npt.NDArray[np.float64]


class StudyGame(NamedTuple):
    spec: str
    is_merged: bool  # whether nodes are states, as in the thesis, or histories
    first: bool  # whether the initial policies play the first move, or uniformly
    iterations: int  # in MINUTES
    nodes: int  # this and the following are from the thesis
    terminals: int
    reached: tuple[tuple[int, float], ...]  # iterations and seconds until the error is below each of BOUNDS


_GOOFSPIEL = StudyGame(
    "goofspiel:cards=5,info=perfect", True, False, 300_000, 2_936, 138, ((1_114, 1.16), (29_730, 31.09))
)
GAMES = (
    StudyGame("biased_rps", True, False, 1_000_000, 10, 9, ((17, 0.0), (87, 0.0))),
    StudyGame("repeated_rps", True, True, 200_000, 220, 55, ((45, 0.0), (236, 0.02))),
    _GOOFSPIEL,
    _GOOFSPIEL._replace(is_merged=False, iterations=100_000),
)


class StudySolver(Protocol):
    state: Any  # arrays, from which a run can resume

    def advance(self, count: int) -> None: ...

    def policy(self) -> Floats:
        """[E] the average policies: probabilities of all moves of both players at all states."""

    def exploitability(self) -> float: ...


class StateGraphSolver:
    """CFR on the graph of states."""

    def __init__(self, game: StudyGame, *, first: bool) -> None:
        propnet = games.compile_game(game.spec)
        self.graph = graph.build_graph(propnet)
        self.state: graph.GraphCfrState = graph.init(self.graph, first=first)

    def advance(self, count: int) -> None:
        self.state = graph.advance(self.graph, self.state, count)
        self.state.regret[0].block_until_ready()

    def policy(self) -> Floats:
        average = graph.average_policy(self.graph, self.state)
        pairs = zip(self.graph.levels, average, strict=True)
        return np.concatenate([np.asarray(policy)[np.asarray(level.legal)] for level, policy in pairs])

    def exploitability(self) -> float:
        return float(graph.exploitability(self.graph, graph.average_policy(self.graph, self.state)))


class TreeSolver:
    """CFR on the tree, where every history is a separate state."""

    def __init__(self, game: StudyGame) -> None:
        task = tasks.make_tree_task(game_spec.GameSpec(game.spec))
        self._solver = tree_solvers.FullSolver(task, algorithms.with_simultaneous_updates(algorithms.find("cfr")))
        self.state = self._solver.init()

    def advance(self, count: int) -> None:
        self.state = self._solver.advance(self.state, count)

    def policy(self) -> Floats:
        return np.concatenate([policy[1:] for policy in self._solver.policies(self.state)])

    def exploitability(self) -> float:
        exploitability = self._solver.measure(self.state, 0.0).exploitability
        assert exploitability is not None
        return exploitability


class ConvergenceCurve(NamedTuple):
    """Axes: N measurements."""

    iterations: Floats  # [N]
    mse: Floats  # [N] from the last policy
    exploitability: Floats  # [N] in payoffs, whose range is 100
    each: Floats  # [] seconds per iteration
    change: Floats  # [] the largest change of a probability in the last iteration
    elsewhere: Floats  # [] the error of the final policy from another start


def run(setting: study_registry.StudyConfig) -> Iterator[study_registry.StudyTable]:
    compilation_cache.enable()
    with jax.enable_x64(True):  # for sums of millions of policies
        yield _sizes()
        curves = [(game, _cached_curve(game, setting)) for game in GAMES]
    yield _speeds(curves)
    yield _final_table(curves)
    draw_figure(setting.folder / FIGURE, curves)


def display_name(game: StudyGame) -> str:
    return game.spec if game.is_merged else f"{game.spec}, unmerged"


def _cached_curve(game: StudyGame, setting: study_registry.StudyConfig) -> ConvergenceCurve:
    iterations = max(_OTHER_START_DIVISOR, round(game.iterations * setting.minutes / MINUTES))
    kind = "states" if game.is_merged else "histories"
    path = setting.folder / f"{result_folder.folder_name(game.spec)}-{kind}-{iterations}.npz"
    if (earlier := result_cache.load_arrays(path, ConvergenceCurve._fields)) is not None:
        return ConvergenceCurve(*earlier)
    setting.report(f"{display_name(game)}: {iterations:,} iterations")
    unfinished = path.with_suffix(".part.npz")
    curve = measure_curve(game, iterations, unfinished)
    result_cache.write_arrays(path, curve._asdict())
    result_cache.remove_arrays(unfinished)
    return curve


def measurement_points(iterations: int) -> list[int]:
    """The iterations after which a run is measured.

    >>> measurement_points(303)[-5:], measurement_points(1_000)[-2:]
    ([297, 298, 299, 300, 303], [984, 1000])
    """
    points = list(range(1, min(iterations, _DENSE_ITERATIONS) + 1))
    while points[-1] < iterations:
        points.append(min(iterations, max(points[-1] + 1, int(points[-1] * _GROWTH))))
    return points


class _RunRecorder:
    """The measurements and the state of a run, saved to a file from which another process can resume."""

    def __init__(self, path: pathlib.Path, solver: StudySolver) -> None:
        self.policies: list[Floats] = []
        self.errors: list[float] = []
        self.seconds: list[float] = []
        self._path, self._solver, self._written = path, solver, time.monotonic()
        leaves, shape = jax.tree.flatten(solver.state)
        names = ("policies", "errors", "seconds", *(f"state_{n}" for n in range(len(leaves))))
        if (earlier := result_cache.load_arrays(path, names)) is not None:
            self.policies, self.errors, self.seconds = map(list, earlier[:3])
            solver.state = jax.tree.unflatten(shape, [jax.numpy.asarray(leaf) for leaf in earlier[3:]])

    def add(self, seconds: float) -> None:
        self.policies.append(self._solver.policy())
        self.errors.append(self._solver.exploitability())
        self.seconds.append(seconds)
        if time.monotonic() - self._written >= _SAVE_INTERVAL:
            self._write()

    def _write(self) -> None:
        arrays: dict[str, Any] = {f"state_{n}": leaf for n, leaf in enumerate(jax.tree.leaves(self._solver.state))}
        arrays |= {"policies": self.policies, "errors": self.errors, "seconds": self.seconds}
        result_cache.write_arrays(self._path, arrays)
        self._written = time.monotonic()


def measure_curve(game: StudyGame, iterations: int, unfinished: pathlib.Path) -> ConvergenceCurve:
    solver: StudySolver = StateGraphSolver(game, first=game.first) if game.is_merged else TreeSolver(game)
    measured = _RunRecorder(unfinished, solver)
    solver.advance(0)  # compiles, which is not timed
    at = [0, *measurement_points(iterations)]
    for before, now in list(itertools.pairwise(at))[len(measured.seconds) :]:
        begun = time.perf_counter()
        solver.advance(now - before)
        measured.add(time.perf_counter() - begun)
    last = measured.policies[-1]
    solver.advance(1)
    tail = max(1, len(at) // 2)  # calls of many iterations, where the overhead of a call does not count
    return ConvergenceCurve(
        np.array(at[1:], float),
        np.array([mse(policy, last) for policy in measured.policies]),
        np.array(measured.errors),
        np.array(sum(measured.seconds[-tail:]) / (at[-1] - at[-1 - tail])),
        np.abs(solver.policy() - last).max(),
        np.array(_mse_from_other_start(game, iterations, last)),
    )


def mse(policy: Floats, last: Floats) -> float:
    """Equation 5.1: the mean over all moves of both players at all states."""
    return float(((policy - last) ** 2).mean())


def _mse_from_other_start(game: StudyGame, iterations: int, last: Floats) -> float:
    """The error of the final policies of CFR from other initial policies; on trees the solver has only one start."""
    if not game.is_merged:
        return np.nan
    solver = StateGraphSolver(game, first=not game.first)
    for before, now in itertools.pairwise(
        [0, *measurement_points(iterations // _OTHER_START_DIVISOR)]
    ):  # in parts, so that Ctrl-C interrupts
        solver.advance(now - before)
    return mse(solver.policy(), last)


def first_iteration_below(curve: ConvergenceCurve, bound: float) -> int | None:
    """The first iteration whose error is below a bound."""
    below = np.flatnonzero(curve.mse < bound)
    return int(curve.iterations[below[0]]) if len(below) else None


def stays_below_from(curve: ConvergenceCurve, bound: float) -> int:
    """The first iteration from which on all errors are below a bound; the last error is 0."""
    above = np.flatnonzero(curve.mse >= bound)
    return int(curve.iterations[above[-1] + 1]) if len(above) else int(curve.iterations[0])


def _sizes() -> study_registry.StudyTable:
    rows, data = [], []
    for game in GAMES:
        if game.is_merged:
            merged = StateGraphSolver(game, first=False).graph
            nodes, terminals = merged.nodes, merged.terminals
        else:
            counts = game_spec.unroll_game(game_spec.GameSpec(game.spec)).summary()
            nodes, terminals = counts["nodes"], counts["terminals"]
        theirs = (f"{game.nodes:,}", f"{game.terminals:,}") if game.is_merged else ("", "")
        rows.append((display_name(game), f"{nodes:,}", f"{terminals:,}", *theirs))
        data.append({"game": display_name(game), "nodes": nodes, "terminals": terminals})
    title = "sizes: nodes and terminals, theirs from Table 5.1"
    return study_registry.StudyTable(title, ("game", "nodes", "terminals", "theirs", "terminals"), rows, data)


def _speeds(curves: Sequence[tuple[StudyGame, ConvergenceCurve]]) -> study_registry.StudyTable:
    rows, data = [], []
    for game, curve in curves:
        row = [display_name(game), f"{1e6 * float(curve.each):.3g} µs"]
        reached = []
        for bound, (iterations, seconds) in zip(BOUNDS, game.reached, strict=True):
            ours = first_iteration_below(curve, bound)
            spent = None if ours is None else ours * float(curve.each)
            for_good = stays_below_from(curve, bound)
            row += ["not reached", "", ""] if ours is None else [f"{ours:,}", f"{spent:.2g} s", f"{for_good:,}"]
            row += [f"{iterations:,}", f"{seconds:g} s"] if game.is_merged else ["", ""]
            reached.append({"bound": bound, "iterations": ours, "seconds": spent, "stays": for_good})
        rows.append(row)
        data.append({"game": display_name(game), "seconds_each": float(curve.each), "reached": reached})
    columns = [text for bound in BOUNDS for text in (f"MSE < {bound:g}", "time", "for good", "theirs", "time")]
    title = "iterations until the error is below a bound, theirs from Table 5.1"
    return study_registry.StudyTable(title, ("game", "an iteration", *columns), rows, data)


def _final_table(curves: Sequence[tuple[StudyGame, ConvergenceCurve]]) -> study_registry.StudyTable:
    rows, data = [], []
    for game, curve in curves:
        at = [first_iteration_below(curve, bound) for bound in BOUNDS]
        exploitability_at = [None if x is None else float(curve.exploitability[curve.iterations == x][0]) for x in at]
        end, change, other = float(curve.exploitability[-1]), float(curve.change), float(curve.elsewhere)
        rows.append(
            (
                display_name(game),
                *("" if x is None else f"{x:.3g}" for x in exploitability_at),
                f"{curve.iterations[-1]:,.0f}",
                f"{end:.2g}",
                f"{change:.1g}",
                "" if np.isnan(other) else f"{other:.2g}",
            )
        )
        data.append(
            {
                "game": display_name(game),
                "exploitability_at": exploitability_at,
                "iterations": int(curve.iterations[-1]),
                "exploitability": end,
                "change": change,
                "elsewhere": None if np.isnan(other) else other,
            }
        )
    header = ("game", *(f"at MSE < {bound:g}" for bound in BOUNDS), "iterations", "at the end", "last change", "other")
    title = "exploitability in % of the range; the final policies, and the error of those from another start"
    return study_registry.StudyTable(title, header, rows, data)


def draw_figure(path: pathlib.Path, curves: Sequence[tuple[StudyGame, ConvergenceCurve]]) -> None:
    """As Figure 5.1, with exploitability beside it."""
    figure, (left, right) = plots.make_panels(1, 2, width=5.4, height=4.2)
    errors, exploitability = [], []
    for number, (game, curve) in enumerate(curves):
        look = {"color": f"C{number}", "ls": "-" if game.is_merged else "--", "lw": 1.2}
        is_shown = curve.iterations < curve.iterations[-1] / 3  # near the last policy the error is small by definition
        errors.append(plots.Line(display_name(game), curve.iterations[is_shown], curve.mse[is_shown, None], look))
        exploitability.append(plots.Line(display_name(game), curve.iterations, curve.exploitability[:, None], look))
        if game.is_merged:
            theirs = [iterations for iterations, _ in game.reached]
            left.plot(theirs, BOUNDS, "o", color=f"C{number}", mec="black", zorder=3)
    left.plot([], [], "o", color="white", mec="black", label="the thesis, Table 5.1")
    plots.plot_curves(left, errors, title="error: MSE from the last policy", x="iterations", y="MSE")
    plots.plot_curves(right, exploitability, title="exploitability", x="iterations", y="% of the payoff range")
    left.set_ylim(bottom=1e-7)
    plots.legend_below(figure, left, 2)
    plots.save_figure(path, figure)
