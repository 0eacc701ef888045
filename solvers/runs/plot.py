"""Convergence plots: exploitability over iterations and over time."""

import io
import pathlib
from collections.abc import Mapping, Sequence

from gdlx.propnet.common import atomic_files
from gdlx.solvers.runs import driver


def plot_convergence(path: pathlib.Path, runs: Mapping[str, Sequence[driver.Metrics]], title: str) -> None:
    """Writes a plot with one line for each run, on logarithmic axes."""
    import matplotlib.figure

    figure = matplotlib.figure.Figure(figsize=(9, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    drawn = 0
    for name, metrics in runs.items():
        rows = [row for row in metrics if row.iterations > 0 and row.error > 0]
        drawn += len(rows)
        left.plot([row.iterations for row in rows], [row.error for row in rows], label=_plain(name))
        right.plot([max(row.seconds, 1e-6) for row in rows], [row.error for row in rows], label=_plain(name))
    is_pair = all(row.exploitability is not None for metrics in runs.values() for row in metrics)
    left.set_ylabel("exploitability (payoff units)" if is_pair else "largest improvement of a player (payoff units)")
    for axes, label in ((left, "iterations"), (right, "seconds of solving")):
        axes.set_xlabel(label)
        if drawn:  # where nobody has a choice, all improvements are 0 and have no logarithm
            axes.set_xscale("log")
            axes.set_yscale("log")
        axes.grid(True, which="major", alpha=0.3)
    right.legend(frameon=False)
    figure.suptitle(_plain(title))
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=120)
    atomic_files.write_atomically(path, data.getvalue())


def _plain(text: str) -> str:
    """Escapes text that matplotlib would typeset as mathematics: names of files may contain dollars."""
    return text.replace("$", r"\$")
