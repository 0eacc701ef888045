"""States of training as files: whatever arrays a game has, and however many devices wrote them."""

import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from gdlx.nets import checkpoints
from gdlx.nets.learners import self_play
from gdlx.nets.models import encoders
from gdlx.propnet import library
from gdlx.tests.helpers import players, samples

SETTINGS = self_play.Settings(games=16, steps=4, capacity=256, batch=32, updates=1, widths=(8, 8))
KEPT = ("kuhn_poker", "tictactoe", "princess_and_monster")


def state_shapes(game: str) -> Any:
    learner = self_play.make(encoders.Encoder(players.load_arena(game).env, 3), SETTINGS)
    return jax.eval_shape(learner.init, jax.random.key(0))


def kinds_of_arrays(shapes: Any) -> set[tuple[str, np.dtype[Any], bool]]:
    """Where an array is in a state, its type, and whether it is empty."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(shapes)
    return {(jax.tree_util.keystr(path), leaf.dtype, 0 in leaf.shape) for path, leaf in leaves}


def test_states_of_all_games_hold_arrays_as_those_that_are_kept() -> None:
    """Some have no chance actions, or no percepts, and so empty arrays."""
    kept = set().union(*map(kinds_of_arrays, map(state_shapes, KEPT)))
    for game in library.names():
        assert kinds_of_arrays(state_shapes(game)) - kept == set(), game


@pytest.mark.parametrize("game", KEPT)
def test_states_are_kept(game: str, tmp_path: pathlib.Path) -> None:
    shapes = state_shapes(game)
    # Arrays of numpy, because every shape would be a program of jax.
    state = jax.tree.map(
        lambda x: jax.random.key(5) if jnp.issubdtype(x.dtype, jax.dtypes.prng_key) else np.ones(x.shape, x.dtype),
        shapes,
    )
    checkpoints.write_state(tmp_path, 7, 2.5, state)
    actual, iteration, seconds = checkpoints.read_state(tmp_path, shapes)
    assert (iteration, seconds) == (7, 2.5)
    assert str(jax.tree.structure(actual)) == str(jax.tree.structure(state))
    samples.assert_same_leaves(actual, state)


def test_what_eight_devices_have_written_one_can_read(tmp_path: pathlib.Path) -> None:
    program = f"""
import jax, pathlib
import jax.numpy as jnp
from gdlx.nets import checkpoints
mesh = jax.sharding.Mesh(jax.devices(), ("games",))
divided = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("games"))
checkpoints.write_state(pathlib.Path({str(tmp_path)!r}), 3, 1.0, jax.device_put(jnp.arange(16.0), divided))
print(len(jax.devices()))
"""
    samples.run_with_devices(program, 8)
    actual, _, _ = checkpoints.read_state(tmp_path, jnp.zeros(16))
    np.testing.assert_array_equal(actual, np.arange(16.0))
