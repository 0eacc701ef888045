"""Figures of Deep CFR beside OpenSpiel's own, for the benchmark `train`.

python -m gdlx.experiments.bench.training.deep_cfr_figures

Both sides have the same settings: iterations, traversals, widths of layers, steps, batches, the learning rate of Adam
and the capacity of reservoirs. Their runs alternate, each from the name of a game to policies, including compilation.
Further runs of the first seed measure the time with less of it: one in a new process with the compilation cache, as in
all calls of `gdlx train` but the first, and one with programs that are already in memory.
"""

import dataclasses
import importlib.util
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from gdlx.experiments.bench import harness
from gdlx.experiments.bench.measuring import children

if TYPE_CHECKING:
    from gdlx.nets.learners import deep_cfr

_PEER = "open_spiel.python.jax.deep_cfr"
_GAMES = (("kuhn", "kuhn_poker"), ("leduc", "leduc_poker"))
_TIMES = 5.0  # target ratio to the peer


@dataclasses.dataclass(frozen=True)
class ComparisonConfig:
    """The settings of OpenSpiel's example of Deep CFR, with its default steps. OpenSpiel trains its policy network for
    the steps of its advantage networks, regardless of the argument, so that they are one number here."""

    iterations: int = 20
    traversals: int = 40
    widths: tuple[int, ...] = (64,)
    steps: int = 750
    batch: int = 256
    rate: float = 1e-3
    capacity: int = 100_000
    seeds: tuple[int, ...] = (10, 11, 12)


class _Run(NamedTuple):
    seconds: float
    again: float | None  # seconds without compilation, if measured
    error: float  # NashConv, as a fraction of the payoff range
    kept: float | None = None  # seconds with the compilation cache of an earlier process, if measured


DEFAULT_CONFIG = ComparisonConfig()


def figures(contest: ComparisonConfig = DEFAULT_CONFIG) -> Iterator[harness.Figure]:
    for name, game in _GAMES:
        yield from _of_game(name, game, contest)


def _of_game(name: str, game: str, contest: ComparisonConfig) -> Iterator[harness.Figure]:
    has_peer = importlib.util.find_spec("pyspiel") is not None and _has(_PEER)
    ours, theirs = [], []
    for number, seed in enumerate(contest.seeds):
        ours.append(_run_ours(game, contest, seed, twice=number == 0))
        if has_peer:
            theirs.append(_run_open_spiel(game, contest, seed, twice=number == 0))
    what = f"{name}: Deep CFR, {contest.iterations} iterations of {contest.traversals} traversals"
    if not has_peer:
        yield harness.missing_peer(f"{what}, with compilation", _PEER, _mean(ours, "seconds"), "s")
        yield harness.missing_peer(f"{what}, NashConv of the payoff range", _PEER, _mean(ours, "error"), "")
        return
    peer = "OpenSpiel's JAX Deep CFR"
    for how, our_field, peer_field, beside in (
        ("with compilation", "seconds", "seconds", peer),
        ("with the programs of an earlier call", "kept", "seconds", f"{peer}, which has no cache"),
        ("without compilation", "again", "again", peer),
    ):
        yield harness.Figure(
            f"{what}, {how}",
            _mean(ours, our_field),
            "s",
            peer=beside,
            peer_value=_mean(theirs, peer_field),
            target=harness.Target(_TIMES, of="ratio"),
        )
    yield harness.Figure(
        f"{what}, NashConv of the payoff range (ours {_spread(ours)}, theirs {_spread(theirs)})",
        _mean(ours, "error"),
        "",
        peer=peer,
        peer_value=_mean(theirs, "error"),
        target=harness.Target(1.0, of="ratio"),
    )


def _has(module: str) -> bool:
    """Whether a module can be imported, with its own dependencies."""
    try:
        importlib.import_module(module)
    except ImportError:
        return False
    return True


def _mean(runs: list[_Run], field: str) -> float:
    numbers = [getattr(run, field) for run in runs]
    return float(statistics.mean(number for number in numbers if number is not None))


def _spread(runs: list[_Run]) -> str:
    return ", ".join(f"{run.error:.3f}" for run in runs)


def time_run(game: str, contest: ComparisonConfig, seed: int) -> float:
    """Seconds of a run in this process, with the compilation cache."""
    from gdlx.envs import compilation_cache

    compilation_cache.enable()
    return _run_ours(game, contest, seed, twice=False).seconds


def _time_with_cached_programs(game: str, contest: ComparisonConfig, seed: int) -> float:
    """Seconds of the second of two processes that share a compilation cache."""
    script = (
        "from gdlx.experiments.bench.training import deep_cfr_figures as this\n"
        f"print(this.time_run({game!r}, this.{contest!r}, {seed}))\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        seconds = [
            float(children.run([sys.executable, "-c", script], env=os.environ | {"GDLX_CACHE": folder}).stdout)
            for _ in range(2)
        ]
    return seconds[1]


def _run_ours(game: str, contest: ComparisonConfig, seed: int, *, twice: bool) -> _Run:
    import gdlx
    from gdlx.envs import game_spec
    from gdlx.nets.learners import deep_cfr
    from gdlx.nets.models import encoders
    from gdlx.nets.values import infoset_tables
    from gdlx.solvers import tasks

    settings = deep_cfr.Settings(
        traversals=contest.traversals,
        capacity=contest.capacity,
        steps=contest.steps,
        policy_steps=contest.steps,
        batch=contest.batch,
        rate=contest.rate,
        widths=contest.widths,
    )
    begun = time.perf_counter()
    task = tasks.make_tree_task(game_spec.GameSpec(game), keep_edges=True)
    encoder = encoders.Encoder(gdlx.make(game), len(task.tree.counts.nodes) - 1)
    learner = deep_cfr.make(encoder, settings, task)
    variables = _train(learner, contest, seed)
    seconds, again, kept = time.perf_counter() - begun, None, None
    if twice:
        begun = time.perf_counter()
        _train(learner, contest, seed)
        again = time.perf_counter() - begun
        kept = _time_with_cached_programs(game, contest, seed)
    metrics = task.metrics(infoset_tables.network_policies(learner, variables, task.tree))
    low, high = task.payoff_range
    return _Run(seconds, again, sum(metrics.improvements) / (high - low), kept)


def _train(learner: "deep_cfr.DeepCfr", contest: ComparisonConfig, seed: int) -> Any:
    """Trains, and returns the parameters of the policy network."""
    import jax

    state = learner.init(jax.random.key(seed))
    for _ in range(contest.iterations):
        state, _ = learner.iterate(state)
    return jax.block_until_ready(learner.policy_params(state))  # type: ignore[no-untyped-call]


def _run_open_spiel(game: str, contest: ComparisonConfig, seed: int, *, twice: bool) -> _Run:
    import numpy as np
    import pyspiel
    from open_spiel.python import policy
    from open_spiel.python.algorithms import exploitability
    from open_spiel.python.jax import deep_cfr

    np.random.seed(seed)  # OpenSpiel uses the global generator too
    begun = time.perf_counter()
    loaded = pyspiel.load_game(game)
    solver = deep_cfr.DeepCFRSolver(
        loaded,
        policy_network_layers=contest.widths,
        advantage_network_layers=contest.widths,
        num_iterations=contest.iterations,
        num_traversals=contest.traversals,
        learning_rate=contest.rate,
        batch_size_advantage=contest.batch,
        batch_size_strategy=contest.batch,
        memory_capacity=contest.capacity,
        policy_network_train_steps=contest.steps,
        advantage_network_train_steps=contest.steps,
        seed=seed,
    )
    solver.solve()
    seconds, again = time.perf_counter() - begun, None
    average = policy.tabular_policy_from_callable(loaded, solver.action_probabilities)
    error = exploitability.nash_conv(loaded, average) / (loaded.max_utility() - loaded.min_utility())
    if twice:
        begun = time.perf_counter()
        solver.solve()  # as many more iterations, with compiled programs
        again = time.perf_counter() - begun
    return _Run(seconds, again, float(error))


if __name__ == "__main__":
    for figure in figures():
        print(*figure.cells(), sep=" | ", flush=True)
