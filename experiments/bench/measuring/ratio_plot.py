"""Plots figures: how many times better than its peer each is, or than its target if it has no peer."""

import math
import pathlib
import textwrap
from collections.abc import Sequence
from typing import Any, NamedTuple

from gdlx.experiments.bench import harness

_PER_COLUMN = 60
_LABEL = 68  # characters
_LEAST, _MOST = 1e-3, 1e4  # ratios are clipped to this range
_ROW, _FRAME = 0.2, 1.6  # inches
_LOOKS = {  # distinguishable without colour
    True: {"marker": "o", "color": "tab:blue", "label": "target met"},
    False: {"marker": "X", "color": "tab:red", "label": "target missed"},
    None: {"marker": "o", "color": "0.35", "markerfacecolor": "white", "label": "no target"},
}


class Dot(NamedTuple):
    """One figure on the axis of ratios."""

    label: str
    times: float  # how many times better than the peer, or than the target
    goal: float | None  # the ratio at the target
    holds: bool | None


def dot(figure: harness.Figure) -> Dot | None:
    """The dot of a figure; None if it has neither a peer nor a target."""
    target, goal = figure.target, None
    if figure.value is None:
        return None
    if figure.ratio is not None and figure.peer_value is not None:
        other, times = figure.peer, figure.ratio
        if target is not None:
            goal = target.bound if target.of == "ratio" else _times(target.bound, figure.peer_value, figure)
    elif target is not None and target.of == "value":
        other, times, goal = figure.target_text(), _times(figure.value, target.bound, figure), 1.0
    else:
        return None
    beside = textwrap.shorten(f" ({other})", _LABEL // 2, placeholder=" ..)")
    name = textwrap.shorten(figure.name, _LABEL - len(beside), placeholder=" ..")
    return Dot(f"{name} {beside}", _within(times), None if goal is None else _within(goal), figure.holds)


def _times(value: float, other: float, figure: harness.Figure) -> float:
    """How many times better one value is than another."""
    better, worse = (value, other) if figure.better == "higher" else (other, value)
    return better / worse if worse else math.inf


def _within(times: float) -> float:
    return min(max(times, _LEAST), _MOST)


def draw(path: pathlib.Path, figures: Sequence[harness.Figure]) -> int:
    """Plots figures, and returns how many of them have a dot."""
    import matplotlib.figure

    dots = [(figure.benchmark, marker) for figure in figures if (marker := dot(figure))]
    columns = max(1, math.ceil(len(dots) / _PER_COLUMN))
    longest = math.ceil(len(dots) / columns)
    drawn = matplotlib.figure.Figure(figsize=(8.5 * columns, _FRAME + _ROW * max(longest, 4)), layout="constrained")
    every = drawn.subplots(1, columns, squeeze=False, sharex=True)[0]
    for number, axes in enumerate(every):
        _column(axes, dots[number * longest : (number + 1) * longest])
        axes.set_ylim(max(longest, 4) - 0.4, -0.6)  # the same row height in all columns
    _legend(drawn, every[0])
    drawn.suptitle("how many times better than the peer, or else the target, in brackets", fontsize=10)
    drawn.savefig(path, dpi=110)
    return len(dots)


def _column(axes: Any, dots: Sequence[tuple[str | None, Dot]]) -> None:
    for row, (_, point) in enumerate(dots):
        axes.plot([1, point.times], [row, row], color="0.8", linewidth=1, zorder=1)
        look = {name: value for name, value in _LOOKS[point.holds].items() if name != "label"}
        axes.plot(point.times, row, linestyle="none", markersize=6, zorder=3, **look)
        if point.goal is not None:
            axes.plot(point.goal, row, marker="|", color="black", markersize=9, markeredgewidth=1.6, zorder=2)
        if row and dots[row - 1][0] != dots[row][0]:
            axes.axhline(row - 0.5, color="0.6", linewidth=0.6)
    axes.set_yticks(range(len(dots)), [point.label for _, point in dots], fontsize=7)
    axes.axvline(1, color="0.4", linewidth=0.8, zorder=0)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda times, _: f"{times:g}x")
    axes.tick_params(axis="x", top=True, labeltop=True, labelsize=8)
    axes.grid(True, axis="x", which="major", alpha=0.3)


def _legend(drawn: Any, axes: Any) -> None:
    marks = [axes.plot([], [], linestyle="none", markersize=6, **look)[0] for look in _LOOKS.values()]
    (goal,) = axes.plot([], [], linestyle="none", marker="|", color="black", markersize=9, markeredgewidth=1.6)
    names = [str(look["label"]) for look in _LOOKS.values()]
    drawn.legend([*marks, goal], [*names, "target"], loc="outside lower center", ncols=4, frameon=False, fontsize=8)
