"""Benchmark `playout`: bit-packed random play, beside pgx's hand-written environments and the same propnet as C.

Every side does the same work per state: legal moves, a uniformly random one for each role, the step, and a reset where
a game has ended. Compile times are left out, and are separate figures.
"""

import ctypes
import functools
import importlib.util
import os
import pathlib
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

from gdlx.envs import devices
from gdlx.experiments.bench import harness
from gdlx.experiments.bench.measuring import children
from gdlx.experiments.bench.playouts import c_playout

_BATCH = 262_144
_PGX = {"connect_four": ("connect_four", 12.0), "tictactoe": ("tic_tac_toe", 8.0)}
_OTHERS = ("blind_tictactoe", "meier", "krieg_tictactoe")
_AS_C = {"connect_four": 12.0, "meier": 12.0, "tictactoe": None, "blind_tictactoe": None, "krieg_tictactoe": None}
_SECONDS = 2.0


def figures() -> Iterator[harness.Figure]:
    devices.use_one_device_per_core()
    ours = {}
    for game in (*_PGX, *_OTHERS):
        rate, ready, memory = _our_rate(game)
        ours[game] = rate
        yield harness.Figure(f"{game}: ready to play", ready, "s", target=harness.Target(10))
        yield harness.Figure(f"{game}: memory of a game", memory, "bytes", target=harness.Target(300))
        if game in _PGX:
            name, times = _PGX[game]
            yield _comparison_figure(
                f"{game}: playout", rate, "pgx", "pgx, best of its batch sizes", _pgx_rate(name), times
            )
        else:
            yield harness.Figure(f"{game}: playout", rate / 1e6, "M states/s", better="higher")
    for game, slower in _AS_C.items():
        name, least = f"{game}: playout, beside C", 1 / slower if slower else None
        yield _comparison_figure(name, ours[game], "cc", "the same step as C, on all cores", _c_rate(game), least)


def _comparison_figure(
    name: str, ours: float, peer: str, label: str, theirs: float | None, times: float | None
) -> harness.Figure:
    """Rates are in states per second; `theirs` is None if the peer is missing."""
    target = harness.Target(times, of="ratio") if times else None
    value, unit = ours / 1e6, "M states/s"
    if theirs is None:
        return harness.missing_peer(name, peer, value, unit, better="higher", target=target)
    return harness.Figure(name, value, unit, "higher", label, theirs / 1e6, target)


def _our_rate(game: str) -> tuple[float, float, float]:
    """States per second, seconds until the first result, bytes per game."""
    from gdlx.envs.packed import playouts, sharded_playouts
    from gdlx.propnet import games

    started = time.perf_counter()
    propnet = games.compile_game(game)
    play = sharded_playouts.ShardedPlayout(propnet, 10_000, _BATCH // playouts.GAMES_PER_WORD)
    stats = play.start(0, steps=8)
    ready = time.perf_counter() - started

    def advance(steps: int) -> None:
        nonlocal stats
        stats = play.advance(stats, steps)

    return measure_rate(advance, play.words * playouts.GAMES_PER_WORD), ready, playouts.Playout(propnet).bytes_per_game


def measure_rate(advance: Callable[[int], None], games: int, seconds: float = _SECONDS) -> float:
    """States per second of the fastest of five runs, since other load only slows a run down."""
    steps = 8
    started = time.perf_counter()
    advance(steps)
    steps = max(8, int(steps * seconds / 5 / max(time.perf_counter() - started, 1e-6)))
    best = 0.0
    for _ in range(5):
        started = time.perf_counter()
        advance(steps)
        best = max(best, steps * games / (time.perf_counter() - started))
    return best


def _pgx_rate(name: str) -> float | None:
    """The rate of pgx, in a separate process with one device, where XLA uses all cores."""
    if importlib.util.find_spec("pgx") is None:
        return None
    try:
        return children.call(pgx_rate, name)
    except ImportError:  # of a dependency
        return None


def pgx_rate(name: str) -> float:
    """The environment of pgx under vmap, with random legal actions and automatic reset, at its best batch size."""
    os.environ.pop("XLA_FLAGS", None)

    import jax
    import jax.numpy as jnp
    import pgx
    from pgx.experimental import auto_reset

    env = pgx.make(name)
    step = jax.vmap(auto_reset(env.step, env.init))

    def play(state: Any, key: Any, steps: int) -> Any:
        def one(number: Any, carry: Any) -> Any:
            state, key = carry
            key, draw, reset = jax.random.split(key, 3)
            games = state.legal_action_mask.shape[0]
            scores = jnp.log(state.legal_action_mask.astype(jnp.float32))
            action = jax.random.categorical(draw, scores, axis=1)
            return step(state, action, jax.random.split(reset, games)), key

        return jax.lax.fori_loop(0, steps, one, (state, key))

    run = jax.jit(play)
    best = 0.0
    for batch in (1_024, 8_192, 65_536, 262_144):
        state = jax.jit(jax.vmap(env.init))(jax.random.split(jax.random.key(0), batch))
        held = [(state, jax.random.key(1))]

        def advance(steps: int, held: list[Any] = held) -> None:
            held[0] = jax.block_until_ready(run(*held[0], steps))  # type: ignore[no-untyped-call]

        advance(8)
        best = max(best, measure_rate(advance, batch))
    return best


def _c_rate(game: str) -> float | None:
    """The rate of the step tape compiled by the system's C compiler, with one thread per core."""
    compiler_path = shutil.which("cc")
    if compiler_path is None:
        return None
    from gdlx.envs.packed import playouts
    from gdlx.propnet import games

    play = playouts.Playout(games.compile_game(game))
    with tempfile.TemporaryDirectory() as folder:
        source, shared = pathlib.Path(folder) / "step.c", pathlib.Path(folder) / "step.so"
        source.write_text(c_playout.generate_source(play))
        children.run(
            [compiler_path, "-O2", "-march=native", "-shared", "-fPIC", "-pthread", "-o", str(shared), str(source)]
        )
        library = ctypes.CDLL(str(shared))
        library.play.argtypes = [ctypes.c_long, ctypes.c_int]
        cores = os.cpu_count() or 1
        advance = functools.partial(_run_c, library, cores)
        return measure_rate(advance, cores * c_playout.GAMES)


def _run_c(library: ctypes.CDLL, threads: int, steps: int) -> None:
    library.play(steps, threads)
