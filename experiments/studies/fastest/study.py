"""Which algorithm first reaches an exploitability of 1e-3 and of 1e-6 of the payoff range, on ten games.

Seconds are those of solving, without compiling and measuring. Runs to 1e-6 are in double precision. Schedules have a
horizon that a user must choose; each is run with two, and both are reported.
"""

import math
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.stats

from gdlx.envs import devices
from gdlx.experiments.bench.measuring import host_machine
from gdlx.experiments.studies import plots, study_registry
from gdlx.experiments.studies.fastest import racing

MINUTES, FULL_MINUTES = 25.0, 120.0
FIGURE = "fastest.png"
GAMES = (
    "biased_rps",
    "kuhn_poker",
    "princess_and_monster",
    "gops:rounds=2",
    "goofspiel:cards=4",
    "goofspiel:cards=5",
    "leduc_poker",
    "leduc_poker:ranks=6",
    "liars_dice:sides=4",
    "liars_dice",
)
_PLAIN = ("cfr", "cfr+", "lcfr", "dcfr", "dcfr-half", "pcfr+", "pdcfr+", "fp")
_SCHEDULED = ("hs-dcfr", "hs-dcfr-15", "hs-pcfr+")
_SAMPLED = ("os-mccfr", "vr-mccfr", "es-mccfr", "as-mccfr")
_MARKERS = "osD^v<>P*X"
_APART = 1.35
_SECONDS_PER_MINUTE = 4 / 25  # time limit of an algorithm on a game, per minute of the whole study


class AccuracyTarget(NamedTuple):
    part: float  # of the payoff range
    x64: bool
    horizons: tuple[int, ...]  # of schedules

    @property
    def candidates(self) -> list[racing.Candidate]:
        scheduled = [racing.Candidate(name, n) for name in _SCHEDULED for n in self.horizons]
        return [*map(racing.Candidate, _PLAIN), *scheduled, *map(racing.Candidate, (*_SAMPLED, "lp"))]


ACCURACY_TARGETS = (AccuracyTarget(1e-3, False, (100, 1_000)), AccuracyTarget(1e-6, True, (1_000, 10_000)))
Floats = npt.NDArray[np.float64]
Results = Mapping[str, Sequence[racing.RaceResult]]  # by game


class Rank(NamedTuple):
    """The results of one algorithm on all games."""

    candidate: str
    reached: int  # games
    wins: int
    mean: float  # rank, from 1; algorithms that did not reach the target share the last ranks
    slowdown: float  # median of the time divided by the winner's; inf where the target was not reached


def run(setting: study_registry.StudyConfig) -> Iterator[study_registry.StudyTable]:
    devices.use_one_device_per_core()  # in child processes, where sampling uses every core
    limit = setting.minutes * _SECONDS_PER_MINUTE
    results_by_target = []
    for goal in ACCURACY_TARGETS:
        results: dict[str, list[racing.RaceResult]] = {}
        for game in GAMES:
            setting.report(f"{game} to {goal.part:g} of its range")
            results[game] = load_or_run_race(
                setting.folder, racing.RaceConfig(game, goal.part, limit, setting.seed), goal
            )
        results_by_target.append((goal, results))
        yield _seconds_table(goal, limit, results)
        yield _iterations_table(goal, results)
        yield _winners_table(goal, results)
        yield _ranks_table(goal, ranks(results))
    draw_figure(setting.folder / FIGURE, results_by_target)


def load_or_run_race(folder: pathlib.Path, race: racing.RaceConfig, goal: AccuracyTarget) -> list[racing.RaceResult]:
    results = racing.find(folder, race, goal.candidates)
    if results is None:
        precision = {"JAX_ENABLE_X64": "1" if goal.x64 else "0"}
        host_machine.run_in_subprocess(racing.run_race, folder, race, goal.candidates, environment=precision)
        results = racing.find(folder, race, goal.candidates)
    assert results is not None
    return results


def seconds_to_target(results: Sequence[racing.RaceResult]) -> list[float]:
    """Seconds to the target; inf where it was not reached."""
    return [result.seconds if result.is_reached and result.seconds is not None else math.inf for result in results]


def ranks(results: Results) -> list[Rank]:
    """Ranks the algorithms, the best first."""
    names = [result.candidate for result in next(iter(results.values()))]
    spent = np.array([seconds_to_target(game_results) for game_results in results.values()])  # games, candidates
    place = scipy.stats.rankdata(spent, axis=1)
    slower = slowdowns(spent)
    unsorted = [
        Rank(
            name,
            int(np.isfinite(spent[:, n]).sum()),
            int((slower[:, n] == 1).sum()),
            float(place[:, n].mean()),
            float(np.median(slower[:, n])),
        )
        for n, name in enumerate(names)
    ]
    return sorted(unsorted, key=lambda rank: rank.mean)


def slowdowns(spent: Floats) -> Floats:
    """[games, candidates] seconds divided by the winner's; inf where the target was not reached."""
    first = np.where(np.isfinite(spent), spent, np.finfo(np.float64).max).min(axis=1, keepdims=True)
    ratio: Floats = spent / first
    return ratio


def _seconds_table(goal: AccuracyTarget, limit: float, results: Results) -> study_registry.StudyTable:
    def shown(result: racing.RaceResult) -> str:
        if result.seconds is None:
            return "not run"
        return f"{result.seconds:.2g}" if result.is_reached else "-"

    precision = "double" if goal.x64 else "single"
    title = f"seconds to {goal.part:g} of the payoff range, {precision} precision; -: not within {limit:g} s"
    data = {game: [result._asdict() for result in game_results] for game, game_results in results.items()}
    return _by_algorithm(title, results, shown, {"part": goal.part, "limit": limit, "games": data})


def _iterations_table(goal: AccuracyTarget, results: Results) -> study_registry.StudyTable:
    def shown(result: racing.RaceResult) -> str:
        if result.seconds is None or not result.iterations:
            return ""
        return f"{result.iterations:,}" if result.is_reached else f"({result.error:.0e})"

    title = f"iterations to {goal.part:g}; in brackets the exploitability at the time limit, as a fraction of the range"
    return _by_algorithm(title, results, shown, None)


def _by_algorithm(title: str, results: Results, shown: object, data: object) -> study_registry.StudyTable:
    assert callable(shown)
    columns = list(results.values())
    rows = [
        (algorithm_results[0].candidate, *map(shown, algorithm_results))
        for algorithm_results in zip(*columns, strict=True)
    ]
    return study_registry.StudyTable(title, ("algorithm", *results), rows, data)


def _winners_table(goal: AccuracyTarget, results: Results) -> study_registry.StudyTable:
    rows, data = [], []
    for game, game_results in results.items():
        order = sorted(
            (result for result in game_results if result.is_reached), key=lambda result: result.seconds or 0.0
        )
        first, second = (*order[:2], None, None)[:2]
        cells = [_result_cells(result) for result in (first, second)]
        rows.append((game, *cells[0], *cells[1]))
        data.append({"game": game, "winner": first and first.candidate, "second": second and second.candidate})
    header = ("game", "first", "seconds", "iterations", "second", "seconds", "iterations")
    return study_registry.StudyTable(f"first at {goal.part:g} of the payoff range", header, rows, data)


def _result_cells(result: racing.RaceResult | None) -> tuple[str, str, str]:
    if result is None or result.seconds is None:
        return ("none", "", "")
    return (result.candidate, f"{result.seconds:.2g}", f"{result.iterations:,}" if result.iterations else "")


def _ranks_table(goal: AccuracyTarget, ranking: Sequence[Rank]) -> study_registry.StudyTable:
    header = ("algorithm", "games reached", "wins", "mean rank", "times the winner's, median")
    rows = [
        (rank.candidate, str(rank.reached), str(rank.wins), f"{rank.mean:.1f}", _times(rank.slowdown))
        for rank in ranking
    ]  # fmt: skip
    data = [rank._asdict() | {"slowdown": rank.slowdown if math.isfinite(rank.slowdown) else None} for rank in ranking]
    return study_registry.StudyTable(f"ranks by time to {goal.part:g}", header, rows, data)


def _times(number: float) -> str:
    if math.isinf(number):
        return "-"
    return f"{number:.2g}" if number < 100 else f"{number:,.0f}"


def draw_figure(path: pathlib.Path, results_by_target: Sequence[tuple[AccuracyTarget, Results]]) -> None:
    """Plots the time of each algorithm divided by the winner's: a marker for every game, algorithms by mean rank."""
    figure, every_axes = plots.make_panels(1, len(results_by_target), width=6, height=7.4)
    for axes, (goal, results) in zip(every_axes, results_by_target, strict=True):
        order = [rank.candidate for rank in reversed(ranks(results))]
        ratio = slowdowns(np.array([seconds_to_target(game_results) for game_results in results.values()]))
        edge = 4 * max(10.0, ratio[np.isfinite(ratio)].max(initial=1.0))
        for number, (game_results, game_ratio) in enumerate(zip(results.values(), ratio, strict=True)):
            places = np.array([order.index(each.candidate) for each in game_results])
            reached = np.isfinite(game_ratio)
            look = {"marker": _MARKERS[number], "color": f"C{number}", "linestyle": "none"}
            y = places + 0.06 * (number - len(results) / 2)
            axes.plot(game_ratio[reached], y[reached], label=list(results)[number], markersize=6, **look)
            late = places[~reached & [each.seconds is not None for each in game_results]]
            x = np.full(len(late), edge * _APART**number)  # every game has its own column
            axes.plot(x, late, markerfacecolor="white", markersize=5, **look)
        last = edge * _APART ** len(results)
        axes.axvline(edge / 2, color="0.6", linewidth=0.8)
        middle = math.sqrt(edge * last / _APART)
        axes.text(middle, 1.01, "not in time", ha="center", fontsize=8, transform=axes.get_xaxis_transform())
        axes.set_yticks(range(len(order)), order)
        axes.set(xscale="log", xlabel="times the time of the fastest", xlim=(0.8, last * 1.2))
        axes.set_xticks(10.0 ** np.arange(math.log10(edge / 2)))
        axes.minorticks_off()
        axes.set_title(f"to {goal.part:g} of the payoff range", loc="left", fontsize=11)
        axes.grid(True, axis="both", which="major", alpha=0.3)
    plots.legend_below(figure, every_axes[0], 5)
    plots.save_figure(path, figure)
