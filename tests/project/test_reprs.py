"""Public objects print in one short line: they are looked at in notebooks and error messages."""

import functools

import jax
import jax.numpy as jnp
import pytest

import gdlx
from gdlx.envs.packed import packed_env, sharded_playouts
from gdlx.envs.trees import sequence_form
from gdlx.nets.models import replay_buffers


@functools.cache
def objects() -> dict[str, object]:
    env, tree = gdlx.make("rps"), gdlx.unroll("rps")
    packed = packed_env.PackedEnv(env)
    state = jax.eval_shape(lambda: packed.start(64))
    stats = sharded_playouts.PlayoutStats(None, 12, 3, 0, 0, 0, 0, ())  # type: ignore[arg-type]
    return {
        "env": env,
        "propnet": env.propnet,
        "role": env.propnet.roles[0],
        "tree": tree,
        "player": tree.players[0],
        "sequence form": sequence_form.sequence_form(tree)[0],
        "solution": gdlx.solve("rps", "lp"),
        "packed environment": packed,
        "packed state": state,
        "playouts": stats,
        "replay buffer": replay_buffers.init(jnp.float32(0), capacity=4),
    }


@pytest.mark.parametrize("name", objects())
def test_one_short_line(name: str) -> None:
    text = repr(objects()[name])
    assert "\n" not in text
    assert len(text) < 120
