"""What one game costs: to unroll, and an iteration of CFR+ and of outcome sampling on it."""

import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from gdlx.envs import game_spec
from gdlx.experiments.bench import host_machine
from gdlx.propnet import games
from gdlx.solvers import algorithms, tasks
from gdlx.solvers.runs import solver_run

_ROUNDS = 3


class IterationCost(NamedTuple):
    """Of one iteration."""

    seconds: float
    megabytes: float  # of the arrays it works on: the game's and its own


class GameCost(NamedTuple):
    """What a game comes to."""

    game: str
    sets: int  # information sets with a choice, of all players
    terminals: int  # merged
    nodes: int  # merged, ends included
    unrolling: float  # seconds, edges kept
    peak_mb: float  # of a process that has unrolled it and nothing else
    copying: float  # seconds to copy half of the bytes that CFR+ works on to the other half
    full: IterationCost  # CFR+
    sampled: IterationCost  # outcome sampling, a batch for each player


def measure_game(game: str, seconds: float) -> dict[str, Any]:
    """In a process of its own, because peaks of memory stay; `seconds` for each of the timings."""
    named = game_spec.GameSpec(game)
    net = games.compile_game(game)
    begun = time.perf_counter()
    tree = game_spec.unroll_game(named, net=net, keep_edges=True)
    unrolling = time.perf_counter() - begun
    peak = host_machine.process_peak_mb()
    task = tasks.make_tree_task(named, tree)
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
    state = solver.advance(solver.init(), 1)  # compiled outside of the time
    each = time_per_call(lambda count: solver.advance(state, count), seconds)
    return IterationCost(each, sum(leaf.nbytes for leaf in jax.tree.leaves((solver.arrays, state))) / 1e6)


def time_copy(megabytes: float, seconds: float) -> float:
    """What no algorithm that reads or writes all these bytes once can beat."""
    source = np.ones(max(1, math.ceil(megabytes * 1e6 / 2)), np.uint8)
    target = np.zeros_like(source)

    def copy(count: int) -> None:
        for _ in range(count):
            np.copyto(target, source)

    return time_per_call(copy, seconds / 4)


def time_per_call(work: Callable[[int], Any], seconds: float) -> float:
    """Of one of many: the best of some rounds, because other work on a machine comes and goes."""
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
