"""Benchmark `mccfr`: sampled solving beside OpenSpiel's C++, the same game and the same scheme.

OpenSpiel runs for a fixed time on one core; then gdlx runs on all cores until it is as good, with several seeds.
Compile times are left out and printed.
"""

import importlib.util
import statistics
import time
from collections.abc import Iterator
from typing import Any

from gdlx.envs import devices
from gdlx.experiments import bench

_SECONDS = 10.0
_SEEDS = 5
_GAMES = (("leduc", "leduc_poker"), ("liar's dice", "liars_dice"))


def figures() -> Iterator[bench.Figure]:
    devices.one_per_core()
    if importlib.util.find_spec("pyspiel") is None:
        yield bench.Figure("outcome sampling", 0.0, "", peer="open_spiel is missing: pip install 'gdlx[peers]'")
        return
    for name, game in _GAMES:
        yield from _outcome_sampling(name, game)


def _outcome_sampling(name: str, game: str) -> Iterator[bench.Figure]:
    import pyspiel

    from gdlx.envs import spiel_tree, trees
    from gdlx.solvers import presets, processes, solve

    loaded = pyspiel.load_game(game)
    task = solve.problem(trees.Game(game), spiel_tree.tree_of(loaded, keep_edges=True))
    theirs, rate = _peer(loaded)
    algorithm = presets.find("os-mccfr")
    seconds, rates, compiling = [], [], 0.0
    for seed in range(_SEEDS):
        sampling = presets.Sampling(batch=4_096, seed=seed)
        process = processes.SampledProcess(task.tree, task.form, task.layouts, algorithm, sampling)
        begun = time.perf_counter()
        process.advance(process.init(), 0)
        process.measure(process.init(), 0.0)
        compiling = compiling or time.perf_counter() - begun
        spent, made = _until(process, theirs)
        seconds.append(spent)
        rates.append(made * 2 * sampling.batch / spent)
    spread = f"{min(seconds):.2g} to {max(seconds):.2g} s over {_SEEDS} seeds"
    yield bench.Figure(
        f"{name}: outcome sampling to exploitability {theirs:.3g} ({spread})",
        statistics.mean(seconds),
        "s",
        peer="OpenSpiel's C++ outcome sampling",
        peer_value=_SECONDS,
        target=bench.Target(20.0, of="ratio"),
    )
    yield bench.Figure(
        f"{name}: trajectories",
        statistics.mean(rates) / 1e6,
        "M/s",
        better="higher",
        peer="OpenSpiel's C++ outcome sampling",
        peer_value=rate / 1e6,
        target=bench.Target(15.0, of="ratio") if name == "leduc" else None,
    )
    yield bench.Figure(f"{name}: compiling", compiling, "s")


def _peer(game: Any) -> tuple[float, float]:
    """Exploitability after the time, and trajectories a second; one of its iterations is a trajectory per player."""
    import pyspiel

    solver = pyspiel.OutcomeSamplingMCCFRSolver(game)
    begun, count = time.perf_counter(), 0
    while time.perf_counter() - begun < _SECONDS:
        for _ in range(1_000):
            solver.run_iteration()
        count += 1_000
    spent = time.perf_counter() - begun
    return pyspiel.nash_conv(game, solver.average_policy(), True) / 2, 2 * count / spent


def _until(process: Any, target: float) -> tuple[float, int]:
    """Seconds of sampling and iterations until the average policies are that good."""
    state, spent, count, done = process.init(), 0.0, 1, 0
    while True:
        begun = time.perf_counter()
        state = process.advance(state, count)
        spent += time.perf_counter() - begun
        done += count
        if process.measure(state, spent).error <= target:
            return spent, done
        count = max(1, done // 10)
