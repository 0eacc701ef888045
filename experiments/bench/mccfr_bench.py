"""Benchmark `mccfr`: sampled solving beside OpenSpiel's C++, on the same game with the same sampling scheme.

OpenSpiel runs for a fixed time on one core; then gdlx runs on all cores until it reaches the same exploitability, with
several seeds. Compile times are left out, and are separate figures.
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
    """Our algorithm, OpenSpiel's solver, and the target ratio of their times."""

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
        solver = tree_solvers.SampledSolver(task, algorithm)
        begun = time.perf_counter()
        solver.advance(solver.init(), 0)
        solver.measure(solver.init(), 0.0)
        compiling = compiling or time.perf_counter() - begun
        spent, trajectories = _run_to_target(solver, theirs)
        seconds.append(spent)
        rates.append(trajectories / spent)
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
    """Exploitability after the fixed time, and trajectories per second; an iteration is one trajectory per player."""
    import pyspiel

    solver = getattr(pyspiel, solver_name)(game)
    begun, count = time.perf_counter(), 0
    while time.perf_counter() - begun < _SECONDS:
        for _ in range(200):
            solver.run_iteration()
        count += 200
    spent = time.perf_counter() - begun
    return pyspiel.nash_conv(game, solver.average_policy(), True) / 2, 2 * count / spent


def _run_to_target(solver: Any, target: float) -> tuple[float, int]:
    """Seconds of sampling and trajectories until the average policies reach that exploitability."""
    state, spent, count, done = solver.init(), 0.0, 1, 0
    while True:
        begun = time.perf_counter()
        state = solver.advance(state, count)
        spent += time.perf_counter() - begun
        done += count
        metrics = solver.measure(state, spent)
        if metrics.error <= target:
            return spent, metrics.samples
        count = max(1, done // 10)


def _hash_table_figures() -> Iterator[harness.Figure]:
    """A game that is too large to unroll, in a hash table; XLA distributes the work over cores."""
    from gdlx.envs import game_spec
    from gdlx.solvers import algorithms, tasks
    from gdlx.solvers.runs import table_solver

    task = tasks.make_table_task(game_spec.GameSpec("blind_tictactoe"))
    rates, loads, compiling, cores = [], [], 0.0, []
    for seed in range(_SEEDS):
        algorithm = algorithms.configure(algorithms.find("os-mccfr"), None, {"seed": seed, "table": 22})
        solver = table_solver.TableSolver(task, algorithm)
        begun = time.perf_counter()
        state = solver.advance(solver.init(), 1)
        compiling = compiling or time.perf_counter() - begun
        begun, used = time.perf_counter(), time.process_time()
        state = solver.advance(state, 100)
        spent = time.perf_counter() - begun
        cores.append((time.process_time() - used) / spent)
        rates.append(100 * 2 * solver.config.batch / spent)
        loads.append(solver.measure(state, spent).load or 0.0)
    yield harness.Figure(
        f"blind_tictactoe: trajectories into a hash table of 2^22 information sets ({min(rates):,.0f} to "
        f"{max(rates):,.0f} over {_SEEDS} seeds)",
        statistics.mean(rates),
        "/s",
        better="higher",
        target=harness.Target(200_000.0),
    )
    yield harness.Figure("blind_tictactoe: cores used", statistics.mean(cores), "", better="higher")
    yield harness.Figure("blind_tictactoe: compiling", compiling, "s")
