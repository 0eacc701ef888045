"""Measures the cost of one game: of unrolling, and of an iteration of CFR+ and of outcome sampling."""

import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from gdlx.envs import game_spec
from gdlx.experiments.bench.measuring import host_machine
from gdlx.propnet import games
from gdlx.solvers import algorithms, tasks
from gdlx.solvers.runs import solver_run

_ROUNDS = 3


class IterationCost(NamedTuple):
    """The cost of one iteration."""

    seconds: float
    megabytes: float  # of all arrays, those of the game and those of the algorithm


class GameCost(NamedTuple):
    """The size of a game and what it costs."""

    game: str
    sets: int  # information sets with a choice, of all players
    terminals: int  # merged
    nodes: int  # merged, including terminals
    unrolling: float  # seconds, with edges
    peak_mb: float  # memory of a process that has only unrolled the game
    copying: float  # seconds to copy one half of the bytes of CFR+ to the other
    full: IterationCost  # CFR+
    sampled: IterationCost  # outcome sampling, a batch for each player


def measure_game(game: str, seconds: float) -> dict[str, Any]:
    """Measures a game, taking `seconds` for each timing. Call it in a new process, whose peak memory is measured."""
    spec = game_spec.GameSpec(game)
    propnet = games.compile_game(game)
    begun = time.perf_counter()
    tree = game_spec.unroll_game(spec, propnet=propnet, keep_edges=True)
    unrolling = time.perf_counter() - begun
    peak = host_machine.process_peak_mb()
    task = tasks.make_tree_task(spec, tree)
    full = measure_iteration(task, "cfr+", seconds)
    return to_row(
        GameCost(
            game,
            sum(tree.information_sets.values()),
            len(tree.terminals.weight),
            sum(tree.counts.nodes),
            unrolling,
            peak,
            time_copy(full.megabytes, seconds),
            full,
            measure_iteration(task, "os-mccfr", seconds),
        )
    )


def to_row(size: GameCost) -> dict[str, Any]:
    return size._asdict() | {"full": size.full._asdict(), "sampled": size.sampled._asdict()}


def from_row(row: dict[str, Any]) -> GameCost:
    return GameCost(**row | {"full": IterationCost(**row["full"]), "sampled": IterationCost(**row["sampled"])})


def measure_iteration(task: tasks.TreeTask, algorithm: str, seconds: float) -> IterationCost:
    solver = solver_run.make_solver(task, algorithms.find(algorithm))
    state = solver.advance(solver.init(), 1)  # compiles, which is not timed
    each = time_per_call(lambda count: solver.advance(state, count), seconds)
    return IterationCost(each, sum(leaf.nbytes for leaf in jax.tree.leaves((solver.arrays, state))) / 1e6)


def time_copy(megabytes: float, seconds: float) -> float:
    """A lower bound on the time of any algorithm that reads or writes all these bytes once."""
    source = np.ones(max(1, math.ceil(megabytes * 1e6 / 2)), np.uint8)
    target = np.zeros_like(source)

    def copy(count: int) -> None:
        for _ in range(count):
            np.copyto(target, source)

    return time_per_call(copy, seconds / 4)


def time_per_call(work: Callable[[int], Any], seconds: float) -> float:
    """Seconds of one of many calls: the best of several rounds, because the load of a machine varies."""
    count, spent = 1, 0.0
    work(1)
    while spent < seconds / (2 * _ROUNDS):
        begun = time.perf_counter()
        work(count)
        spent = time.perf_counter() - begun
        count *= 2
    count = max(1, round(count / 2 * seconds / _ROUNDS / spent))
    best = math.inf
    for _ in range(_ROUNDS):
        begun = time.perf_counter()
        work(count)
        best = min(best, (time.perf_counter() - begun) / count)
    return best
