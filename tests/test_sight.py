"""What an agent knows of a match."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gdlx
from gdlx.envs import env, sight


def true(row: jax.Array) -> tuple[int, ...]:
    return tuple(np.flatnonzero(np.asarray(row)).tolist())


def seen(game: env.Env, seed: int) -> list[tuple[sight.Sight, np.ndarray]]:
    """Every player's view at the end of a random match, and its keys on the way."""
    rng, key = np.random.default_rng(seed), jax.random.key(seed)
    state = game.init(key)
    step = jax.jit(game.step)
    views = [sight.Sight(game, n, true(own)) for n, own in enumerate(state.legal_mask)]
    keys = [np.asarray(state.info_key)]
    while not bool(state.terminated):
        key, now = jax.random.split(key)
        moves = [int(rng.choice(view.legal)) for view in views]
        state = step(state, jnp.array(moves), now)
        views = [
            view.after(sight.Event(move, true(state.percepts[n]), true(state.legal_mask[n])))
            for n, (view, move) in enumerate(zip(views, moves, strict=True))
        ]
        keys.append(np.asarray(state.info_key))
    return [(view, np.stack(keys)[:, n]) for n, view in enumerate(views)]


@pytest.mark.parametrize("game", ["leduc_poker", "blind_tictactoe", "smallest:numbers=3,steps=1", "tictactoe"])
def test_keys_are_those_of_the_environment(game: str) -> None:
    made = gdlx.make(game)
    for seed in range(3):
        for view, keys in seen(made, seed):
            np.testing.assert_array_equal(view.keys, keys)
            assert view.step == len(keys) - 1
            assert len(view.words()) == view.step


def test_events_are_told_in_words() -> None:
    game = gdlx.make("kuhn_poker")
    view, _ = seen(game, 0)[0]
    assert "dealt" in view.words()[0]
