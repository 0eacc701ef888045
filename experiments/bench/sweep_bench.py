"""Benchmark `sweep`: a sweep of a thousand cells, beside its cells one by one; and a report on a hundred of them."""

import pathlib
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence

from gdlx.experiments.bench import harness
from gdlx.experiments.bench.measuring import children

_FILE = """games = ["kuhn_poker"]
iterations = 1000
[[algorithms]]
name = "dcfr"
alpha = { from = 0.5, to = 3.0, count = 10 }
beta = { from = -1.0, to = 1.0, count = 10 }
gamma = { from = 0.5, to = 5.0, count = 10 }
"""
_BY_COMMAND = 20  # cells that are solved by a separate command each; the rest is extrapolated
_REPORTED = 100


def figures() -> Iterator[harness.Figure]:
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        yield from _sweeps(folder)
        yield from _report(folder)


def _sweeps(folder: pathlib.Path) -> Iterator[harness.Figure]:
    """Compile times are left out on both sides; the sweep writes all its folders, its peer in one process none."""
    import gdlx
    from gdlx.envs import compilation_cache, game_spec
    from gdlx.experiments.sweeps import config, run

    compilation_cache.enable()
    path = folder / "grid.toml"
    path.write_text(_FILE)
    sweep = config.read(path)
    run.run_sweep(sweep, folder / "compiled")
    begun = time.perf_counter()
    run.run_sweep(sweep, folder / "here")
    together = time.perf_counter() - begun

    tree = game_spec.unroll_game(game_spec.GameSpec("kuhn_poker"))
    gdlx.solve(tree, sweep.cells[0].algorithm, iterations=1_000)
    begun = time.perf_counter()
    for cell in sweep.cells:
        gdlx.solve(tree, cell.algorithm, iterations=cell.stop.iterations)
    alone = time.perf_counter() - begun
    count = len(sweep.cells)
    yield harness.Figure(
        f"{count:,} cells of DCFR on kuhn_poker in one sweep",
        together,
        "s",
        peer="its cells one by one in one process, nothing written",
        peer_value=alone,
        target=harness.Target(5, of="ratio"),
    )

    by_sweep = _seconds(["sweep", str(path), "--results", str(folder / "command")])
    some = sweep.cells[:: count // _BY_COMMAND]
    spent = 0.0
    for cell in some:
        options = [text for name, value in cell.overrides.items() for text in (f"--{name}", str(value))]
        spent += _seconds(["solve", cell.game, "--algorithm", "dcfr", "--iterations", "1000", *options,
                           "--results", str(folder / "single")])  # fmt: skip
    yield harness.Figure(
        f"{count:,} cells from the command line",
        by_sweep,
        "s",
        peer=f"gdlx solve for each, extrapolated from {len(some)}",
        peer_value=spent * count / len(some),
        target=harness.Target(50, of="ratio"),
    )


def _report(folder: pathlib.Path) -> Iterator[harness.Figure]:
    runs = sorted((folder / "command" / "grid" / "cells" / "kuhn_poker").iterdir())[:_REPORTED]
    some = folder / "some"
    some.mkdir()
    for run in runs:
        shutil.copytree(run, some / run.name)
    page = folder / "report.html"
    seconds = _seconds(["report", str(some), "-o", str(page)])
    yield harness.Figure(f"report on {len(runs)} runs", seconds, "s", target=harness.Target(10))
    yield harness.Figure("its file", page.stat().st_size / 1e6, "MB", target=harness.Target(5))


def _seconds(arguments: Sequence[str]) -> float:
    """Wall time of a command."""
    begun = time.perf_counter()
    children.run([sys.executable, "-m", "gdlx.cli", *arguments, "--quiet"])
    return time.perf_counter() - begun
