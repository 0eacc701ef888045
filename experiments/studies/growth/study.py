"""The cost of an iteration and of unrolling as games grow by six orders of magnitude: time and memory.

Every game is measured in a separate process. An iteration of CFR+ traverses all of a game; one of outcome sampling
draws 4 096 trajectories for each player, and then updates the tables of all information sets.
"""

import pathlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from gdlx.envs import devices
from gdlx.experiments.bench.measuring import host_machine
from gdlx.experiments.studies import plots, result_cache, study_registry
from gdlx.experiments.studies.growth import measuring
from gdlx.solvers.runs import result_folder

MINUTES, FULL_MINUTES = 15.0, 30.0
FIGURE = "growth.png"
FAMILIES: dict[str, tuple[str, ...]] = {
    "rps and kuhn_poker": ("rps", "kuhn_poker"),
    "repeated_rps": tuple(f"repeated_rps:rounds={n}" for n in range(2, 8)),
    "goofspiel": tuple(f"goofspiel:cards={n}" for n in range(3, 7)),
    "liars_dice": tuple(f"liars_dice:sides={n}" for n in range(2, 10)),
    "princess_and_monster": tuple(f"princess_and_monster:turns={n}" for n in range(3, 9)),
    "leduc_poker": tuple(f"leduc_poker:ranks={n}" for n in (3, 6, 10)),
    "tictactoe and gops": ("tictactoe", "gops"),
}
LARGER = {"repeated_rps": ("repeated_rps:rounds=8",), "princess_and_monster": ("princess_and_monster:turns=9",)}
_TIMINGS = 1_500  # a timing takes this fraction of the time; compiling and unrolling take most of it
_LARGE = 100_000  # terminals of a game whose arrays do not fit into a cache
_BATCH = 2 * 4_096  # trajectories of an iteration: all these games have two players
_MARKERS = "osD^vP*"


class Slope(NamedTuple):
    """The slope of a line through logarithms: 1 for linear growth."""

    what: str
    over: str
    all: float
    large: float  # of the games with at least _LARGE terminals


def run(setting: study_registry.StudyConfig) -> Iterator[study_registry.StudyTable]:
    devices.use_one_device_per_core()  # in child processes, where sampling uses every core
    seconds = setting.minutes * 60 / _TIMINGS
    sizes: dict[str, list[measuring.GameCost]] = {}
    for family, games in FAMILIES.items():
        names = (*games, *(LARGER.get(family, ()) if setting.is_full else ()))
        sizes[family] = [_cached_cost(game, seconds, setting) for game in names]
    every = sorted((size for family_sizes in sizes.values() for size in family_sizes), key=lambda size: size.terminals)
    yield _cost_table(every)
    yield _memory_table(every)
    yield _slope_table(slopes(every))
    draw_figure(setting.folder / FIGURE, sizes)


def _cached_cost(game: str, seconds: float, setting: study_registry.StudyConfig) -> measuring.GameCost:
    def measure() -> result_cache.Row:
        setting.report(game)
        return host_machine.run_in_subprocess(measuring.measure_game, game, seconds)

    path = setting.folder / f"{result_folder.folder_name(game)}.json"
    return measuring.from_row(
        result_cache.load_or_measure(
            path, {"game": game, "seconds": seconds} | result_cache.precision_settings(), measure
        )
    )


def _cost_table(sizes: Sequence[measuring.GameCost]) -> study_registry.StudyTable:
    header = (
        "game",
        "information sets",
        "terminals",
        "CFR+: us",
        "ns per set",
        "ns per terminal",
        "os-mccfr: us",
        "ns per trajectory",
    )
    rows = []
    for size in sizes:
        full, sampled = size.full.seconds * 1e9, size.sampled.seconds * 1e9
        rows.append((
            size.game,
            f"{size.sets:,}",
            f"{size.terminals:,}",
            f"{full / 1e3:,.3g}" if full < 1e6 else f"{full / 1e3:,.0f}",
            f"{full / size.sets:,.0f}",
            f"{full / size.terminals:.3g}",
            f"{sampled / 1e3:,.0f}",
            f"{sampled / _BATCH:,.0f}",
        ))  # fmt: skip
    return study_registry.StudyTable("time of an iteration", header, rows, [measuring.to_row(size) for size in sizes])


def _memory_table(sizes: Sequence[measuring.GameCost]) -> study_registry.StudyTable:
    header = ("game", "nodes", "unrolling: s", "us per node", "peak MB", "CFR+: MB", "GB/s", "copying: GB/s",
              "iteration / copy", "os-mccfr: MB")  # fmt: skip
    rows = []
    for size in sizes:
        gigabytes = size.full.megabytes / 1e3
        rows.append((
            size.game,
            f"{size.nodes:,}",
            f"{size.unrolling:.3g}",
            f"{size.unrolling / size.nodes * 1e6:.3g}",
            f"{size.peak_mb:,.0f}",
            f"{size.full.megabytes:.3g}",
            f"{gigabytes / size.full.seconds:.2g}",
            f"{gigabytes / size.copying:.2g}",
            f"{size.full.seconds / size.copying:.2g}",
            f"{size.sampled.megabytes:.3g}",
        ))  # fmt: skip
    return study_registry.StudyTable("unrolling, and memory of an iteration", header, rows, None)


def slopes(sizes: Sequence[measuring.GameCost]) -> list[Slope]:
    """How times and memory grow with the size of games."""
    axes: tuple[tuple[str, str, Callable[[measuring.GameCost], float], Callable[[measuring.GameCost], float]], ...] = (
        ("iteration of CFR+", "terminals", lambda s: s.full.seconds, lambda s: s.terminals),
        ("iteration of CFR+", "bytes", lambda s: s.full.seconds, lambda s: s.full.megabytes),
        ("iteration of os-mccfr", "terminals", lambda s: s.sampled.seconds, lambda s: s.terminals),
        ("iteration of os-mccfr", "information sets", lambda s: s.sampled.seconds, lambda s: s.sets),
        ("unrolling", "nodes", lambda s: s.unrolling, lambda s: s.nodes),
        ("memory of CFR+", "terminals", lambda s: s.full.megabytes, lambda s: s.terminals),
    )
    large = [size for size in sizes if size.terminals >= _LARGE]
    return [Slope(what, over, slope(sizes, y, x), slope(large, y, x)) for what, over, y, x in axes]


def slope(
    sizes: Sequence[measuring.GameCost],
    y: Callable[[measuring.GameCost], float],
    x: Callable[[measuring.GameCost], float],
) -> float:
    """The slope of a line through logarithms; NaN with fewer than two sizes."""
    if len({x(size) for size in sizes}) < 2:
        return float("nan")
    return float(np.polyfit(np.log([x(size) for size in sizes]), np.log([y(size) for size in sizes]), 1)[0])


def _slope_table(slopes: Sequence[Slope]) -> study_registry.StudyTable:
    rows = [(slope.what, slope.over, f"{slope.all:.2f}", f"{slope.large:.2f}") for slope in slopes]
    data = [{name: None if value != value else value for name, value in slope._asdict().items()} for slope in slopes]
    header = ("growth of", "over", "slope, all games", f"from {_LARGE:,} terminals on")
    return study_registry.StudyTable("slopes on logarithmic axes: 1 is linear growth", header, rows, data)


def draw_figure(path: pathlib.Path, families: dict[str, list[measuring.GameCost]]) -> None:
    figure, every_axes = plots.make_panels(2, 2, width=5.4, height=4.2)
    panels: tuple[tuple[str, str, str, Callable[[measuring.GameCost], tuple[float, ...]]], ...] = (
        ("an iteration (hollow: os-mccfr)", "terminals", "milliseconds",
         lambda s: (s.terminals, s.full.seconds * 1e3, s.sampled.seconds * 1e3)),
        ("CFR+, per terminal", "terminals", "nanoseconds",
         lambda s: (s.terminals, s.full.seconds / s.terminals * 1e9)),
        ("CFR+: bytes of its arrays over its time (grey: copying them)", "megabytes", "gigabytes a second",
         lambda s: (s.full.megabytes, s.full.megabytes / s.full.seconds / 1e3)),
        ("unrolling (hollow: gigabytes of os-mccfr's tables)", "nodes", "seconds, or gigabytes",
         lambda s: (s.nodes, s.unrolling, s.sampled.megabytes / 1e3)),
    )  # fmt: skip
    every = [size for sizes in families.values() for size in sizes]
    for number, (axes, (title, across, up, values)) in enumerate(zip(every_axes, panels, strict=True)):
        for colour, (family, sizes) in enumerate(families.items()):
            x, *ys = np.array([values(size) for size in sizes]).T
            lines = ("none", "none") if " and " in family else ("-", ":")  # different games do not form a curve
            for hollow, y in enumerate(ys):
                axes.plot(
                    x, y, marker=_MARKERS[colour], color=f"C{colour}", linestyle=lines[hollow], linewidth=0.8,
                    markersize=5, markerfacecolor="white" if hollow else None, label=None if hollow else family,
                )  # fmt: skip
        axes.set(title=title, xlabel=across, ylabel=up, xscale="log", yscale="log")
        axes.title.set_fontsize(10)
        axes.grid(True, which="major", alpha=0.3)
        if number == 0:
            _guide(axes, every)
        if number == 2:
            copies = sorted((size.full.megabytes, size.full.megabytes / size.copying / 1e3) for size in every)
            axes.plot(*np.array(copies).T, color="0.5", linewidth=3, alpha=0.5, zorder=0)
    plots.legend_below(figure, every_axes[0], 4)
    plots.save_figure(path, figure)


def _guide(axes: Any, sizes: Sequence[measuring.GameCost]) -> None:
    """Draws a line of slope 1 below the points, up to the largest game."""
    last = max(sizes, key=lambda size: size.terminals)
    x = np.array([last.terminals / 1e4, last.terminals])
    axes.plot(x, last.full.seconds * 1e3 / 4 * x / last.terminals, "--", color="0.4", linewidth=1, label="slope 1")
