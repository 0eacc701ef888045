"""Figures of studies: curves with error bands on logarithmic axes, and choices side by side."""

import io
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gdlx.propnet.common import atomic_files

Floats = npt.NDArray[np.float64]
_DPI = 120
_MARKERS = "osD^vP"
_LONGEST_NUMBER = 4  # characters
# Ratios of the highest to the lowest: below the first the axis is linear, below the second minor ticks have labels.
_CLOSE, _FEW = 3.0, 12.0


class Line(NamedTuple):
    """Axes: N points, R runs."""

    name: str
    x: Floats  # [N]
    y: Floats  # [N, R]
    style: Mapping[str, Any] = {}


class Series(NamedTuple):
    """Axes: C choices."""

    name: str
    mean: Floats  # [C]
    error: Floats  # [C] standard errors, 0 for deterministic runs


def mean_and_error(runs: Floats) -> tuple[Floats, Floats]:
    """The mean over the last axis and its standard error, which is 0 for a single run.

    >>> mean_and_error(np.array([[1.0, 3.0]]))
    (array([2.]), array([1.]))
    """
    count = runs.shape[-1]
    mean: Floats = runs.mean(axis=-1)
    if count == 1:
        return mean, np.zeros_like(mean)
    error: Floats = runs.std(axis=-1, ddof=1) / np.sqrt(count)
    return mean, error


def make_panels(rows: int, columns: int, *, width: float = 4.2, height: float = 3.4) -> tuple[Any, list[Any]]:
    """Makes a figure, and returns it with its axes, row by row."""
    import matplotlib.figure

    figure = matplotlib.figure.Figure(figsize=(width * columns, height * rows), layout="constrained")
    return figure, list(figure.subplots(rows, columns, squeeze=False).flat)


def plot_curves(
    axes: Any, lines: Sequence[Line], *, title: str, x: str, y: str, log: bool = True, reference: float | None = None
) -> None:
    """Plots means over runs with bands of one standard error, on logarithmic axes, which omit zeros. With `log=False`
    only x is logarithmic; `reference` is a dotted line, the value that the curves should converge to."""
    for line in lines:
        mean, error = mean_and_error(line.y)
        is_shown = (line.x > 0) & ((mean > 0) | (not log))
        (drawn,) = axes.plot(line.x[is_shown], mean[is_shown], label=line.name, **line.style)
        if error.any():
            # A band down to 0 would fill logarithmic axes.
            low = np.maximum(mean - error, mean / 10) if log else mean - error
            axes.fill_between(
                line.x[is_shown], low[is_shown], (mean + error)[is_shown], color=drawn.get_color(), alpha=0.2, lw=0
            )
    if reference is not None:
        axes.axhline(reference, color="black", ls=":", lw=1)
    axes.set_xscale("log")
    axes.set_yscale("log" if log else "linear")
    label_axes(axes, title, x, y)


def plot_choices(
    axes: Any, names: Sequence[str], series: Sequence[Series], marked: Sequence[str], *, title: str
) -> None:
    """Plots the result of each choice with standard errors. `marked` choices are shaded, numeric ones joined."""
    places = np.arange(len(names))
    is_named = max(map(len, names)) > _LONGEST_NUMBER
    for number, line in enumerate(series):
        look = {"marker": _MARKERS[number % len(_MARKERS)], "ms": 4, "lw": 1, "ls": "" if is_named else "-"}
        axes.errorbar(places, line.mean, line.error, capsize=2, label=line.name, **look)
    for place in (n for n, name in enumerate(names) if name in marked):
        axes.axvspan(place - 0.4, place + 0.4, color="0.85", zorder=0)
    axes.set_xlim(-0.6, len(names) - 0.4)
    low, high = (pick([pick(line.mean) for line in series]) for pick in (np.min, np.max))
    if high > _CLOSE * low:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("{x:g}" if high < _FEW * low else "")
    axes.set_xticks(places, names, rotation=40 if is_named else 0, ha="right" if is_named else "center")
    label_axes(axes, title, "", "")


def label_axes(axes: Any, title: str, x: str, y: str) -> None:
    axes.set_title(title, fontsize="medium")
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(True, which="major", alpha=0.3)


def legend_below(figure: Any, axes: Any, columns: int) -> None:
    """Adds one legend for all panels, with the labels of these axes."""
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=columns, frameon=False)


def save_figure(path: pathlib.Path, figure: Any) -> None:
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=_DPI)
    atomic_files.write_atomically(path, data.getvalue())
