"""Convergence as curves: one for each configuration, the median of its seeds with a band from lowest to highest."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gdlx.experiments.reports import configurations, gather
from gdlx.solvers.runs import driver

Floats = npt.NDArray[np.float64]

_SHORTEST = 1e-6  # seconds: shorter times are not resolved
_DEEPEST = 1e-10  # of the highest error: lower ones, including zero, are drawn there


class Curve(NamedTuple):
    """Axes: N points."""

    x: Floats  # [N] rising, above 0
    median: Floats  # [N]
    low: Floats  # [N]
    high: Floats  # [N]
    runs: int  # that the curve is computed from
    excluded_runs: int  # that do not overlap with those


XValue = Callable[[driver.Metrics], float]


def iterations(row: driver.Metrics) -> float:
    return float(row.iterations)


def seconds(row: driver.Metrics) -> float:
    return max(row.seconds, _SHORTEST)


def build_curve(configuration: configurations.Configuration, across: XValue, most: int) -> Curve | None:
    """Computes the curve where all runs overlap, with at most `most` points; None if nothing was measured.

    Runs are measured at different times: values between two measurements are interpolated on logarithmic axes.
    """
    measured = [points for run in configuration.runs if len((points := _points(run, across))[0])]
    if not measured:
        return None
    first, last = max(x[0] for x, _ in measured), min(x[-1] for x, _ in measured)
    together = measured if first <= last else [max(measured, key=lambda points: points[0][-1])]
    if first > last:
        first, last = together[0][0][0], together[0][0][-1]
    every = np.unique(np.concatenate([x for x, _ in together]))
    grid = thin(every[(every >= first) & (every <= last)], most)
    lines = np.stack([_between(grid, x, y) for x, y in together])
    return Curve(
        grid,
        np.median(lines, axis=0),
        lines.min(axis=0),
        lines.max(axis=0),
        len(together),
        len(measured) - len(together),
    )


def _points(run: gather.RunRecord, across: XValue) -> tuple[Floats, Floats]:
    """The measurements, without that before the first iteration: a logarithmic axis has no zero."""
    exact = run.config.algorithm.is_exact and across is not iterations
    rows = [row for row in run.metrics if row.improvements and (row.iterations > 0 or exact)]
    x = np.array([across(row) for row in rows], np.float64)
    y = np.array([row.error for row in rows], np.float64)
    is_last = np.r_[np.diff(x) > 0, True][: len(x)]  # of measurements at the same x
    return x[is_last], y[is_last]


def _between(grid: Floats, x: Floats, y: Floats) -> Floats:
    """Interpolates errors on a logarithmic axis, or on a linear one if some are zero."""
    if (y > 0).all():
        return np.exp(np.interp(np.log(grid), np.log(x), np.log(y)))
    return np.interp(np.log(grid), np.log(x), y)


def thin(x: Floats, most: int) -> Floats:
    """At most `most` of rising numbers, evenly spaced on a logarithmic axis, including the first and the last.

    >>> thin(np.arange(1.0, 1001.0), 4).tolist()
    [1.0, 10.0, 100.0, 1000.0]
    """
    if len(x) <= most:
        return x
    targets = np.linspace(np.log(x[0]), np.log(x[-1]), most)
    nearest = np.clip(np.searchsorted(np.log(x), targets - 1e-9), 0, len(x) - 1)
    return x[np.unique(nearest)]


def lowest_drawn_error(curves: Sequence[Curve]) -> float:
    """The lowest error that is drawn."""
    highest = max(float(curve.high.max()) for curve in curves)
    above = [positive for curve in curves if (positive := curve.low[curve.low > 0]).size]
    lowest = min((float(part.min()) for part in above), default=1.0)
    return max(lowest, highest * _DEEPEST)
