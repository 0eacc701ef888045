"""Benchmark `mccfr`: sampled solving beside OpenSpiel's C++, the same game and the same scheme.

OpenSpiel runs for a fixed time on one core; then gdlx runs on all cores until it is as good, with several seeds.
Compile times are left out and printed.
"""

import importlib.util
import statistics
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from gdlx.envs import devices
from gdlx.experiments.bench import harness

_SECONDS = 10.0
_SEEDS = 5
_GAMES = (("leduc", "leduc_poker"), ("liar's dice", "liars_dice"))


class _PeerComparison(NamedTuple):
    """A scheme of ours, OpenSpiel's, and how many times sooner ours is to be as good."""

    name: str
    algorithm: str
    peer: str
    ratio: float


_COMPARISONS = (
    _PeerComparison("outcome sampling", "os-mccfr", "OutcomeSamplingMCCFRSolver", 20.0),
    _PeerComparison("external sampling", "es-mccfr", "ExternalSamplingMCCFRSolver", 3.0),
)


def figures() -> Iterator[harness.Figure]:
    devices.use_one_device_per_core()
    has_peer = importlib.util.find_spec("pyspiel") is not None
    for name, game in _GAMES:
        for contest in _COMPARISONS:
            if has_peer:
                yield from _peer_figures(name, game, contest)
            else:
                yield harness.missing_peer(f"{name}: {contest.name}", "open_spiel")
    yield from _hash_table_figures()


def _peer_figures(name: str, game: str, contest: _PeerComparison) -> Iterator[harness.Figure]:
    import pyspiel

    from gdlx.envs import game_spec
    from gdlx.envs.bridges import open_spiel_tree
    from gdlx.solvers import algorithms, tasks
    from gdlx.solvers.runs import tree_solvers

    loaded = pyspiel.load_game(game)
    task = tasks.make_tree_task(game_spec.GameSpec(game), open_spiel_tree.build_tree(loaded, keep_edges=True))
    theirs, rate = _peer(loaded, contest.peer)
    seconds, rates, compiling = [], [], 0.0
    for seed in range(_SEEDS):
        algorithm = algorithms.configure(algorithms.find(contest.algorithm), None, {"seed": seed})
        process = tree_solvers.SampledSolver(task, algorithm)
        begun = time.perf_counter()
        process.advance(process.init(), 0)
        process.measure(process.init(), 0.0)
        compiling = compiling or time.perf_counter() - begun
        spent, made = _run_to_target(process, theirs)
        seconds.append(spent)
        rates.append(made / spent)
    spread = f"{min(seconds):.2g} to {max(seconds):.2g} s over {_SEEDS} seeds"
    peer = f"OpenSpiel's C++ {contest.name}"
    yield harness.Figure(
        f"{name}: {contest.name} to exploitability {theirs:.3g} ({spread})",
        statistics.mean(seconds),
        "s",
        peer=peer,
        peer_value=_SECONDS,
        target=harness.Target(contest.ratio, of="ratio"),
    )
    yield harness.Figure(
        f"{name}: {contest.name}, trajectories",
        statistics.mean(rates) / 1e6,
        "M/s",
        better="higher",
        peer=peer,
        peer_value=rate / 1e6,
        target=harness.Target(15.0, of="ratio") if (name, contest.algorithm) == ("leduc", "os-mccfr") else None,
    )
    yield harness.Figure(f"{name}: {contest.name}, compiling", compiling, "s")


def _peer(game: Any, solver_name: str) -> tuple[float, float]:
    """Exploitability after the time, and trajectories a second; one of its iterations is a trajectory per player."""
    import pyspiel

    solver = getattr(pyspiel, solver_name)(game)
    begun, count = time.perf_counter(), 0
    while time.perf_counter() - begun < _SECONDS:
        for _ in range(200):
            solver.run_iteration()
        count += 200
    spent = time.perf_counter() - begun
    return pyspiel.nash_conv(game, solver.average_policy(), True) / 2, 2 * count / spent


def _run_to_target(process: Any, target: float) -> tuple[float, int]:
    """Seconds of sampling and trajectories until the average policies are that good."""
    state, spent, count, done = process.init(), 0.0, 1, 0
    while True:
        begun = time.perf_counter()
        state = process.advance(state, count)
        spent += time.perf_counter() - begun
        done += count
        found = process.measure(state, spent)
        if found.error <= target:
            return spent, found.samples
        count = max(1, done // 10)


def _hash_table_figures() -> Iterator[harness.Figure]:
    """A game that cannot be unrolled, in a hash table; the machine's cores are shared out by XLA."""
    from gdlx.envs import game_spec
    from gdlx.solvers import algorithms, tasks
    from gdlx.solvers.runs import table_solver

    task = tasks.make_table_task(game_spec.GameSpec("blind_tictactoe"))
    rates, loads, compiling, cores = [], [], 0.0, []
    for seed in range(_SEEDS):
        algorithm = algorithms.configure(algorithms.find("os-mccfr"), None, {"seed": seed, "table": 22})
        process = table_solver.TableSolver(task, algorithm)
        begun = time.perf_counter()
        state = process.advance(process.init(), 1)
        compiling = compiling or time.perf_counter() - begun
        begun, used = time.perf_counter(), time.process_time()
        state = process.advance(state, 100)
        spent = time.perf_counter() - begun
        cores.append((time.process_time() - used) / spent)
        rates.append(100 * 2 * process.config.batch / spent)
        loads.append(process.measure(state, spent).load or 0.0)
    yield harness.Figure(
        f"blind_tictactoe: trajectories into a hash table of 2^22 sets ({min(rates):,.0f} to {max(rates):,.0f} over "
        f"{_SEEDS} seeds)",
        statistics.mean(rates),
        "/s",
        better="higher",
        target=harness.Target(200_000.0),
    )
    yield harness.Figure("blind_tictactoe: cores used", statistics.mean(cores), "", better="higher")
    yield harness.Figure("blind_tictactoe: compiling", compiling, "s")
