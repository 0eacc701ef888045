"""Benchmark `cfr`: exact solving beside OpenSpiel's C++, scipy's sparse products, and gdlx itself one run at a time.

Iterations are timed on the same game, imported from OpenSpiel; compile times are left out. Peers and gdlx alternate in
short rounds, and the best round of each counts, because the load of the machine varies.
"""

import importlib.util
import os
import pathlib
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gdlx.experiments.bench import harness
from gdlx.experiments.bench.measuring import children

_GOOFSPIEL = "goofspiel(imp_info=True,num_cards={},points_order=descending,returns_type=win_loss)"
# Name, the game in OpenSpiel, and the target ratio to its C++ solver.
_GAMES = (
    ("kuhn", "kuhn_poker", 30.0),
    ("goofspiel-4", f"turn_based_simultaneous_game(game={_GOOFSPIEL.format(4)})", 150.0),
    ("leduc", "leduc_poker", 300.0),
    ("goofspiel-5", f"turn_based_simultaneous_game(game={_GOOFSPIEL.format(5)})", 250.0),
    ("liar's dice", "liars_dice", 100.0),
)
_PROTOTYPE = "GDLX_PROTOTYPE"  # an environment variable that names the file of a first prototype of the solver
_PROTOTYPE_NAMES = {
    "kuhn": "kuhn",
    "goofspiel-4": "goof4",
    "leduc": "leduc",
    "goofspiel-5": "goof5",
    "liar's dice": "liars",
}
Workload = Callable[[int], None]  # does a unit of work that many times

_ROUNDS, _ROUND_SECONDS = 5, 0.3


def figures() -> Iterator[harness.Figure]:
    has_peer = importlib.util.find_spec("pyspiel") is not None
    for name, game, times in _GAMES:
        if has_peer:
            yield from _iterations(name, game, times)
        else:
            yield harness.missing_peer(f"{name}: CFR+ iteration", "open_spiel")
    yield from _unrolling()
    yield from _from_rules()
    yield from _batches()
    yield from _double_precision()


def _iterations(name: str, game: str, times: float) -> Iterator[harness.Figure]:
    import jax
    import pyspiel

    from gdlx.envs.bridges import open_spiel_tree
    from gdlx.envs.trees import sequence_form
    from gdlx.solvers import algorithms
    from gdlx.solvers.exact import best_response, cfr
    from gdlx.solvers.runs import tree_solvers

    loaded = pyspiel.load_game(game)
    tree = open_spiel_tree.build_tree(loaded)
    form, _ = sequence_form.sequence_form(tree)
    plus = algorithms.find("cfr+")
    state = cfr.init(form)
    begun = time.perf_counter()
    one = tree_solvers.advance(plus.step, form, state, plus.settings, 1)
    int(one.t)
    compiled = time.perf_counter() - begun
    solver = pyspiel.CFRPlusSolver(loaded)
    measure = jax.jit(best_response.evaluate_average)

    def ours(count: int) -> None:
        int(tree_solvers.advance(plus.step, form, state, plus.settings, count).t)

    def peers(count: int) -> None:
        for _ in range(count):
            solver.evaluate_and_update_policy()

    def evaluate(count: int) -> None:
        for _ in range(count):
            jax.device_get(measure(form, one))

    sides: dict[str, Workload] = {"ours": ours, "peers": peers, "evaluate": evaluate}
    if prototype := _prototype_workload(name):
        sides["prototype"] = prototype
    if name != "liar's dice":  # where its set-up takes minutes
        if jax_cfr := _jax_cfr(loaded):
            sides["jax"] = jax_cfr
        else:
            yield harness.missing_peer(f"{name}: CFR+ iteration, beside JAX", "OpenSpiel's JAX CFR")
    if name == "liar's dice":
        sides["csr"] = _csr_products(tree)
    seconds = dict(zip(sides, _time_interleaved(list(sides.values())), strict=True))
    peers_of = {
        "peers": ("", "OpenSpiel's C++ CFRPlusSolver", times),
        "prototype": (", beside the prototype", "a 100-line prototype in JAX", 1.0),
        "jax": (", beside JAX", "OpenSpiel's JAX CFR", 1.0),
        "csr": (", beside the limit", "two scipy CSR products", 1 / 4),
    }
    for side, (label, peer, ratio) in peers_of.items():
        if side in seconds:
            yield _figure(f"{name}: CFR+ iteration{label}", seconds["ours"], peer, seconds[side], ratio)
    bound = 1 / 2 if name == "liar's dice" else None
    yield _figure(f"{name}: exploitability", seconds["evaluate"], "an iteration of ours", seconds["ours"], bound)
    yield harness.Figure(f"{name}: compiling the iteration", compiled, "s")


def _figure(name: str, ours: float, peer: str, theirs: float, bound: float | None) -> harness.Figure:
    target = None if bound is None else harness.Target(bound, of="ratio")
    return harness.Figure(name, ours * 1e6, "us", peer=peer, peer_value=theirs * 1e6, target=target)


def _time_interleaved(sides: list[Workload]) -> list[float]:
    """Seconds per unit of work for each side: the best of alternating rounds."""
    counts = []
    for side in sides:
        side(1)
        count, spent = 1, 0.0
        while spent < _ROUND_SECONDS / 4:
            count *= 2 if spent else 1
            begun = time.perf_counter()
            side(count)
            spent = time.perf_counter() - begun
        counts.append(max(1, round(count * _ROUND_SECONDS / spent)))
    best = [float("inf")] * len(sides)
    for _ in range(_ROUNDS):
        for number, (side, count) in enumerate(zip(sides, counts, strict=True)):
            begun = time.perf_counter()
            side(count)
            best[number] = min(best[number], (time.perf_counter() - begun) / count)
    return best


def _prototype_workload(name: str) -> Workload | None:
    """The prototype of the solver, a baseline, where the environment names its file."""
    path = os.environ.get(_PROTOTYPE, "")
    if not os.path.isfile(path):
        return None
    import jax
    import pyspiel

    spec = importlib.util.spec_from_file_location("sequence_form_prototype", path)
    if spec is None or spec.loader is None:
        return None
    prototype: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(prototype)
    run, _, state = prototype.make(prototype.layout(pyspiel.load_game(prototype.GAMES[_PROTOTYPE_NAMES[name]])))

    def work(count: int) -> None:
        jax.tree.leaves(run(state, 0, count))[0].block_until_ready()

    return work


def _jax_cfr(game: Any) -> Workload | None:
    try:
        from open_spiel.python.jax.cfr import jax_cfr
    except ImportError:
        return None
    solver = jax_cfr.JaxCFR(game)

    def work(count: int) -> None:
        solver.multiple_steps(count)

    return work


def _csr_products(tree: Any) -> Workload:
    """Two products with the payoffs as one sparse matrix: the minimum work of an iteration."""
    from gdlx.solvers.exact import lp

    payoff = lp.payoff_matrix(tree).astype(np.float32)
    transposed = payoff.T.tocsr()
    first, second = (np.ones(n, np.float32) for n in payoff.shape)

    def products(count: int) -> None:
        for _ in range(count):
            payoff @ second
            transposed @ first

    return products


def _unrolling() -> Iterator[harness.Figure]:
    if not pathlib.Path("/proc/self/status").exists():
        yield harness.Figure("unrolling", None, "", note="peak memory is only measured on Linux: skipped")
        return
    for name, depth, seconds, gigabytes in (("liars_dice", 0, 30.0, 4.0), ("blind_tictactoe", 4, 60.0, 8.0)):
        spent, memory = _run_in_subprocess(_UNROLL, name, str(depth))
        label = f"unrolling {name}" + (f" to depth {depth}" if depth else "")
        yield harness.Figure(label, spent, "s", target=harness.Target(seconds))
        yield harness.Figure(f"{label}: memory", memory / 1024, "GiB", target=harness.Target(gigabytes))


_UNROLL = """
import sys, time
from gdlx.envs import game_spec
game_spec.unroll_game(game_spec.GameSpec("kuhn_poker"))
from gdlx.propnet import games
propnet = games.compile_game(sys.argv[1])
begun = time.perf_counter()
game_spec.unroll_game(game_spec.GameSpec(sys.argv[1]), propnet=propnet, depth=int(sys.argv[2]) or None)
spent = time.perf_counter() - begun
# Not getrusage, which on Linux includes the memory of the parent process.
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(spent, float(peak) / 1024)
"""


def _run_in_subprocess(code: str, *arguments: str) -> tuple[float, ...]:
    """Runs code in a fresh process, and returns the numbers that it prints."""
    ran = children.run([sys.executable, "-c", code, *arguments])
    return tuple(map(float, ran.stdout.split()))


def _from_rules() -> Iterator[harness.Figure]:
    """Wall time of the command, first with an empty cache and then with a full one."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"GDLX_CACHE": os.path.join(folder, "cache")}
        command = [sys.executable, "-m", "gdlx.cli", "solve", "leduc_poker", "--target", "0.001", "--quiet"]
        for which, bound in (("first", 15.0), ("second", 5.0)):
            begun = time.perf_counter()
            children.run(command, cwd=folder, env=environment)
            spent = time.perf_counter() - begun
            name = f"leduc from its rules to exploitability 1e-3, {which} time"
            yield harness.Figure(name, spent, "s", target=harness.Target(bound))


def _batches() -> Iterator[harness.Figure]:
    for name, spec, iterations, times in (
        ("kuhn", "kuhn_poker", 1_000, 5.0),
        ("goofspiel-4", "goofspiel:cards=4", 200, 3.0),
    ):
        batched, single = _batch_seconds(spec, iterations)
        yield harness.Figure(
            f"{name}: 1 024 settings of DCFR in one program, {iterations} iterations",
            batched,
            "s",
            peer="one after the other",
            peer_value=single,
            target=harness.Target(times, of="ratio"),
        )


def _batch_seconds(spec: str, iterations: int, runs: int = 1_024) -> tuple[float, float]:
    from gdlx.envs import game_spec
    from gdlx.envs.trees import sequence_form
    from gdlx.solvers import algorithms
    from gdlx.solvers.exact import batch, cfr, regret_matching
    from gdlx.solvers.runs import tree_solvers

    form, _ = sequence_form.sequence_form(game_spec.unroll_game(game_spec.GameSpec(spec)))
    dcfr = algorithms.find("dcfr")
    state = cfr.init(form)
    draw = np.random.default_rng(0).uniform
    settings = regret_matching.Settings(draw(1, 3, runs), draw(-1, 1, runs), draw(1, 4, runs))

    def together(_: int) -> None:
        batch.solve(form, dcfr, settings, iterations)

    singles = [
        settings._replace(alpha=np.float32(a), beta=np.float32(b), gamma=np.float32(c))
        for a, b, c in zip(*settings[:3], strict=True)
    ]

    def one_by_one(_: int) -> None:
        for single in singles:
            int(tree_solvers.advance(dcfr.step, form, state, single, iterations).t)

    together(1)
    int(tree_solvers.advance(dcfr.step, form, state, singles[0], 1).t)
    best = [float("inf"), float("inf")]
    for _ in range(3):
        for number, side in enumerate((together, one_by_one)):
            begun = time.perf_counter()
            side(1)
            best[number] = min(best[number], time.perf_counter() - begun)
    return best[0], best[1]


def _double_precision() -> Iterator[harness.Figure]:
    for spec in ("kuhn_poker", "leduc_poker"):
        reached, iterations = _run_in_subprocess(_DOUBLE, spec)
        yield harness.Figure(
            f"{spec} --x64, hs-pcfr+, {iterations:,.0f} iterations: exploitability",
            reached,
            "of the range",
            target=harness.Target(1e-9),
        )


_DOUBLE = """
import os, sys
os.environ["JAX_ENABLE_X64"] = "1"
import gdlx
solution = gdlx.solve(sys.argv[1], "hs-pcfr+", iterations=50_000)
low, high = solution.tree.payoff_range
print(max(solution.exploitability, 0.0) / (high - low), solution.iterations)
"""
