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
from gdlx.experiments.bench import host_machine
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
    every = []
    for goal in ACCURACY_TARGETS:
        found: dict[str, list[racing.RaceResult]] = {}
        for game in GAMES:
            setting.report(f"{game} to {goal.part:g} of its range")
            found[game] = load_or_run_race(
                setting.folder, racing.RaceConfig(game, goal.part, limit, setting.seed), goal
            )
        every.append((goal, found))
        yield _seconds_table(goal, limit, found)
        yield _iterations_table(goal, found)
        yield _winners_table(goal, found)
        yield _ranks_table(goal, ranks(found))
    draw_figure(setting.folder / FIGURE, every)


def load_or_run_race(folder: pathlib.Path, race: racing.RaceConfig, goal: AccuracyTarget) -> list[racing.RaceResult]:
    found = racing.find(folder, race, goal.candidates)
    if found is None:
        precision = {"JAX_ENABLE_X64": "1" if goal.x64 else "0"}
        host_machine.run_in_subprocess(racing.run_race, folder, race, goal.candidates, environment=precision)
        found = racing.find(folder, race, goal.candidates)
    assert found is not None
    return found


def seconds_to_target(results: Sequence[racing.RaceResult]) -> list[float]:
    """Seconds to the target; inf where it was not reached."""
    return [own.seconds if own.is_reached and own.seconds is not None else math.inf for own in results]


def ranks(found: Results) -> list[Rank]:
    """Ranks the algorithms, the best first."""
    names = [own.candidate for own in next(iter(found.values()))]
    spent = np.array([seconds_to_target(results) for results in found.values()])  # games, candidates
    place = scipy.stats.rankdata(spent, axis=1)
    slower = slowdowns(spent)
    found_ranks = [
        Rank(
            name,
            int(np.isfinite(spent[:, n]).sum()),
            int((slower[:, n] == 1).sum()),
            float(place[:, n].mean()),
            float(np.median(slower[:, n])),
        )
        for n, name in enumerate(names)
    ]
    return sorted(found_ranks, key=lambda rank: rank.mean)


def slowdowns(spent: Floats) -> Floats:
    """[games, candidates] seconds divided by the winner's; inf where the target was not reached."""
    first = np.where(np.isfinite(spent), spent, np.finfo(np.float64).max).min(axis=1, keepdims=True)
    ratio: Floats = spent / first
    return ratio


def _seconds_table(goal: AccuracyTarget, limit: float, found: Results) -> study_registry.StudyTable:
    def shown(own: racing.RaceResult) -> str:
        if own.seconds is None:
            return "not run"
        return f"{own.seconds:.2g}" if own.is_reached else "-"

    precision = "double" if goal.x64 else "single"
    title = f"seconds to {goal.part:g} of the payoff range, {precision} precision; -: not within {limit:g} s"
    data = {game: [own._asdict() for own in results] for game, results in found.items()}
    return _by_algorithm(title, found, shown, {"part": goal.part, "limit": limit, "games": data})


def _iterations_table(goal: AccuracyTarget, found: Results) -> study_registry.StudyTable:
    def shown(own: racing.RaceResult) -> str:
        if own.seconds is None or not own.iterations:
            return ""
        return f"{own.iterations:,}" if own.is_reached else f"({own.error:.0e})"

    title = f"iterations to {goal.part:g}; in brackets the exploitability at the time limit, as a fraction of the range"
    return _by_algorithm(title, found, shown, None)


def _by_algorithm(title: str, found: Results, shown: object, data: object) -> study_registry.StudyTable:
    assert callable(shown)
    columns = list(found.values())
    rows = [(own[0].candidate, *map(shown, own)) for own in zip(*columns, strict=True)]
    return study_registry.StudyTable(title, ("algorithm", *found), rows, data)


def _winners_table(goal: AccuracyTarget, found: Results) -> study_registry.StudyTable:
    rows, data = [], []
    for game, results in found.items():
        order = sorted((own for own in results if own.is_reached), key=lambda own: own.seconds or 0.0)
        first, second = (*order[:2], None, None)[:2]
        cells = [_result_cells(own) for own in (first, second)]
        rows.append((game, *cells[0], *cells[1]))
        data.append({"game": game, "winner": first and first.candidate, "second": second and second.candidate})
    header = ("game", "first", "seconds", "iterations", "second", "seconds", "iterations")
    return study_registry.StudyTable(f"first at {goal.part:g} of the payoff range", header, rows, data)


def _result_cells(own: racing.RaceResult | None) -> tuple[str, str, str]:
    if own is None or own.seconds is None:
        return ("none", "", "")
    return (own.candidate, f"{own.seconds:.2g}", f"{own.iterations:,}" if own.iterations else "")


def _ranks_table(goal: AccuracyTarget, found: Sequence[Rank]) -> study_registry.StudyTable:
    header = ("algorithm", "games reached", "wins", "mean rank", "times the winner's, median")
    rows = [
        (own.candidate, str(own.reached), str(own.wins), f"{own.mean:.1f}", _times(own.slowdown))
        for own in found
    ]  # fmt: skip
    data = [own._asdict() | {"slowdown": own.slowdown if math.isfinite(own.slowdown) else None} for own in found]
    return study_registry.StudyTable(f"ranks by time to {goal.part:g}", header, rows, data)


def _times(number: float) -> str:
    if math.isinf(number):
        return "-"
    return f"{number:.2g}" if number < 100 else f"{number:,.0f}"


def draw_figure(path: pathlib.Path, every: Sequence[tuple[AccuracyTarget, Results]]) -> None:
    """Plots the time of each algorithm divided by the winner's: a marker for every game, algorithms by mean rank."""
    figure, every_axes = plots.make_panels(1, len(every), width=6, height=7.4)
    for axes, (goal, found) in zip(every_axes, every, strict=True):
        order = [own.candidate for own in reversed(ranks(found))]
        ratio = slowdowns(np.array([seconds_to_target(results) for results in found.values()]))
        edge = 4 * max(10.0, ratio[np.isfinite(ratio)].max(initial=1.0))
        for number, (results, own) in enumerate(zip(found.values(), ratio, strict=True)):
            places = np.array([order.index(each.candidate) for each in results])
            reached = np.isfinite(own)
            look = {"marker": _MARKERS[number], "color": f"C{number}", "linestyle": "none"}
            y = places + 0.06 * (number - len(found) / 2)
            axes.plot(own[reached], y[reached], label=list(found)[number], markersize=6, **look)
            late = places[~reached & [each.seconds is not None for each in results]]
            x = np.full(len(late), edge * _APART**number)  # every game has its own column
            axes.plot(x, late, markerfacecolor="white", markersize=5, **look)
        last = edge * _APART ** len(found)
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
