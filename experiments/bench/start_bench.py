"""Benchmark `start`: the time to the first result for every library game, and to compile it in a user's program.

Each call of `gdlx playout` is a separate process; its cache is empty for the first call. The user's program is a scan
over `Env.step` under vmap and jit.
"""

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator

from gdlx.experiments.bench import harness
from gdlx.experiments.bench.measuring import children
from gdlx.propnet import library

_SECOND_CALLS = 3  # the fastest counts, since other load only slows a call down
_GAMES, _STEPS = 4_096, 20


def figures() -> Iterator[harness.Figure]:
    for game in library.names():
        with tempfile.TemporaryDirectory() as folder:
            first = call_seconds(game, folder)
            second = min(call_seconds(game, folder) for _ in range(_SECOND_CALLS))
        yield harness.Figure(f"{game}: first call of playout", first, "s", target=harness.Target(10))
        yield harness.Figure(f"{game}: second call of playout", second, "s", target=harness.Target(2))
    for game in library.names():
        seconds = children.call(compile_seconds, game)  # in its own process, so that games share no compiled code
        yield harness.Figure(
            f"{game}: Env.step in jit, vmap and scan, compiled", seconds, "s", target=harness.Target(20)
        )


def call_seconds(game: str, cache: str) -> float:
    """Seconds from the start of the command until it has printed its result."""
    settings = {
        key: value for key, value in os.environ.items() if key not in ("XLA_FLAGS", "JAX_COMPILATION_CACHE_DIR")
    }
    command = [sys.executable, "-m", "gdlx.cli", "playout", game, "--seconds", "0", "--json"]
    started = time.perf_counter()
    ran = children.run(command, env={**settings, "GDLX_CACHE": cache})
    seconds = time.perf_counter() - started
    json.loads(ran.stdout)  # raises an error if the result is incomplete
    return seconds


def compile_seconds(game: str) -> float:
    """Seconds to trace and compile a program that plays a batch of random matches."""
    import jax
    import jax.numpy as jnp

    import gdlx
    from gdlx.envs import env as envs

    env = gdlx.make(game)

    def match(key: jax.Array) -> tuple[envs.State, jax.Array]:
        def step(state: envs.State, key: jax.Array) -> tuple[envs.State, jax.Array]:
            choice, chance = jax.random.split(key)
            scores = jax.random.uniform(choice, state.legal_mask.shape)
            after = env.step(state, jnp.argmax(jnp.where(state.legal_mask, scores, -1), axis=1), chance)
            return after, after.rewards

        final: tuple[envs.State, jax.Array] = jax.lax.scan(step, env.init(key), jax.random.split(key, _STEPS))
        return final

    keys = jax.random.split(jax.random.key(0), _GAMES)
    started = time.perf_counter()
    jax.jit(jax.vmap(match)).lower(keys).compile()
    return time.perf_counter() - started
