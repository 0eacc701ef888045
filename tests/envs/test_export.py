"""Portability, shown without an accelerator: programs lower for CUDA and TPU, and a sharded batch plays the same."""

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest

import gdlx
from gdlx.envs import env as envs
from gdlx.envs.bridges import pgx_env
from gdlx.envs.packed import playouts
from gdlx.tests.helpers import sheets, xla_flags

PLATFORMS = ("cuda", "tpu")


def exported(function: Callable[..., Any], *arguments: Any) -> jax.export.Exported:
    program = jax.export.export(jax.jit(function), platforms=PLATFORMS)(*arguments)
    assert program.platforms == PLATFORMS
    assert "func.func public @main" in program.mlir_module()
    return program


@pytest.mark.parametrize("game", ["kuhn_poker", "smallest", "maze"])
def test_a_step_lowers_for_accelerators(game: str) -> None:
    env = sheets.make_env(sheets.MAZE, iterated=True) if game == "maze" else gdlx.make(game)
    key = jax.random.key(0)
    state = jax.eval_shape(env.init)
    actions = jax.ShapeDtypeStruct((env.num_players,), jnp.int32)  # type: ignore[no-untyped-call]
    one = exported(env.step, state, actions, key)
    assert one.out_avals[0].shape == (env.init().layout.words,)
    states, joint = (jax.tree.map(_batched, tree) for tree in (state, actions))
    many = exported(jax.vmap(env.step), states, joint, jax.random.split(key, 64))
    assert many.out_avals[0].shape == (64, env.init().layout.words)


def _batched(field: jax.ShapeDtypeStruct) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct((64, *field.shape), field.dtype)  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("game", ["tictactoe", "maze"])
def test_a_playout_step_lowers_for_accelerators(game: str) -> None:
    propnet = sheets.compile_text(sheets.MAZE, iterated=True) if game == "maze" else gdlx.make(game).propnet
    play = playouts.Playout(propnet)
    games = jax.eval_shape(lambda key: play.init(key, 4), jax.random.key(0))
    exported(play.run, games, jax.ShapeDtypeStruct((), jnp.int32))  # type: ignore[no-untyped-call]


def test_a_bridge_lowers_for_accelerators() -> None:
    env = pgx_env.PgxEnv(gdlx.make("kuhn_poker"))
    exported(lambda key: env.step(env.init(key), jnp.asarray(0), key), jax.random.key(0))


def test_an_exported_step_still_plays() -> None:
    env = gdlx.make("rps")
    start = env.init()
    actions = jnp.array([0, 2])
    program = jax.export.export(
        jax.jit(lambda state, joint: jax.tree.leaves(env.step(state, joint, None))), platforms=("cpu",)
    )(start, actions)
    call: Any = program.call
    after = jax.tree.unflatten(jax.tree.structure(start), call(start, actions))
    assert jax.tree.all(jax.tree.map(np.array_equal, after, jax.jit(env.step)(start, actions, None)))


def test_a_step_is_saved_and_loaded() -> None:
    """With its state as a named tuple: for accelerators as bytes that lower again, for this machine as a program."""
    pytest.importorskip("flatbuffers")  # jax needs it to write bytes
    env = gdlx.make("kuhn_poker")
    arguments = (env.init(), jnp.array([4, 4]), jax.random.key(0))
    for platforms in (PLATFORMS, ("cpu",)):
        saved = jax.export.export(jax.jit(env.step), platforms=platforms)(*arguments).serialize()
        loaded = jax.export.deserialize(saved)
        assert loaded.platforms == platforms
        assert loaded.out_avals[0].shape == env.init().words.shape
    call: Any = loaded.call
    after = call(*arguments)
    assert isinstance(after, envs.State)
    assert jax.tree.all(jax.tree.map(np.array_equal, after, jax.jit(env.step)(*arguments)))


SHARDED = """
import hashlib, json
import jax, jax.numpy as jnp, numpy as np
import gdlx

env = gdlx.make("kuhn_poker")
games = 1024
mesh = jax.make_mesh((jax.device_count(),), ("games",), axis_types=(jax.sharding.AxisType.Auto,))
split = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("games"))
keys = jax.device_put(jax.random.split(jax.random.key(0), games), split)

@jax.jit
def match(keys):
    def one(key):
        def step(state, key):
            actions = jnp.argmax(jnp.where(state.legal_mask, jax.random.uniform(key, state.legal_mask.shape), -1), 1)
            after = env.step(state, actions, key)
            return after, after.rewards
        return jax.lax.scan(step, env.init(key), jax.random.split(key, 5))
    return jax.vmap(one)(keys)

compiled = match.lower(keys).compile()
text = compiled.as_text()
state, rewards = compiled(keys)
print(json.dumps({
    "devices": len(state.words.sharding.device_set),
    "talk": [word for word in ("all-gather", "all-reduce", "all-to-all", "collective-permute") if word in text],
    "digest": hashlib.sha256(b"".join(np.asarray(x).tobytes() for x in jax.tree.leaves((state, rewards)))).hexdigest(),
    "ended": int(state.terminated.sum()),
}))
"""


def on_devices(count: int) -> dict[str, Any]:
    flags = xla_flags.environment_with_devices(count) | {"JAX_PLATFORMS": "cpu"}
    ran = subprocess.run([sys.executable, "-c", SHARDED], env=flags, capture_output=True, text=True, check=True)
    output: dict[str, Any] = json.loads(ran.stdout)
    return output


def test_a_sharded_batch_plays_the_same() -> None:
    """On eight devices as on one, each with its own games, without a word between them."""
    one, eight = on_devices(1), on_devices(8)
    assert (one["devices"], eight["devices"]) == (1, 8)
    assert eight["digest"] == one["digest"]
    assert eight["talk"] == []
    assert eight["ended"] == 1024
