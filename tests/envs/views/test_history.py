"""What an agent knows of a match."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gdlx
from gdlx.envs import env
from gdlx.envs.packed import packed_env
from gdlx.envs.views import history, public


def true(row: jax.Array) -> tuple[int, ...]:
    return tuple(np.flatnonzero(np.asarray(row)).tolist())


make = functools.cache(functools.partial(gdlx.make, track=("info_key", "percepts", "actions")))


@functools.cache
def compiled(game: env.Env) -> tuple[Any, Any]:
    """Once for all seeds: to jax, every `game.step` is another function."""
    return jax.jit(game.init), jax.jit(game.step)


def seen(game: env.Env, seed: int) -> list[tuple[history.ActionObservationHistory, np.ndarray]]:
    """Every player's view at the end of a random match, and its keys on the way."""
    rng, key = np.random.default_rng(seed), jax.random.key(seed)
    init, step = compiled(game)
    state = init(key)
    views = [history.ActionObservationHistory(game, n, true(own)) for n, own in enumerate(state.legal_mask)]
    keys = [np.asarray(state.info_key)]
    while not bool(state.terminated):
        key, now = jax.random.split(key)
        moves = [int(rng.choice(view.legal)) for view in views]
        state = step(state, jnp.array(moves), now)
        views = [
            view.after(history.Event(move, true(state.percepts[n]), true(state.legal_mask[n])))
            for n, (view, move) in enumerate(zip(views, moves, strict=True))
        ]
        keys.append(np.asarray(state.info_key))
    return [(view, np.stack(keys)[:, n]) for n, view in enumerate(views)]


@pytest.mark.parametrize("game", ["leduc_poker", "blind_tictactoe", "smallest:numbers=3,steps=1", "tictactoe"])
def test_keys_are_those_of_the_environment(game: str) -> None:
    made = make(game)
    for seed in range(3):
        for view, keys in seen(made, seed):
            np.testing.assert_array_equal(view.keys, keys)
            assert view.step == len(keys) - 1
            assert len(view.step_texts()) == view.step


def test_events_are_told_in_words() -> None:
    game = make("kuhn_poker")
    view, _ = seen(game, 0)[0]
    assert "dealt" in view.step_texts()[0]


@pytest.mark.parametrize("game", ["kuhn_poker", "goofspiel:cards=3", "tictactoe", "smallest:numbers=3,steps=1"])
def test_public_keys_are_everybodys_and_those_of_a_walk(game: str) -> None:
    made = make(game)
    shared = public.find_public_info(made.propnet)
    met = public_keys_met(packed_env.PackedEnv(made, shared), 2**14, 3)
    reported = set()
    for seed in range(8):
        keys = [view.public_state_keys(shared)[:4] for view, _ in seen(made, seed)]
        assert all((own == keys[0]).all() for own in keys)
        reported |= {key.tobytes() for key in keys[0]}
    assert len(reported) > 3
    assert reported <= met


def public_keys_met(lanes: packed_env.PackedEnv, batch: int, steps: int) -> set[bytes]:
    """In the first steps of many random games."""
    rng = np.random.default_rng(0)
    games, actual, step = lanes.start(batch), set(), jax.jit(lanes.step)
    for count in range(steps + 1):
        actual |= {key.tobytes() for key in np.stack([np.asarray(word)[-1] for word in games.keys], axis=1)}
        if count < steps:
            scores = np.where(np.asarray(games.legal), rng.random(games.legal.shape), -1)
            draws = jnp.asarray(rng.random(batch), jnp.float32)
            games = step(games, jnp.asarray(scores.argmax(axis=1), jnp.int32), draws)
    return actual


def test_what_only_one_player_knows_is_not_public() -> None:
    kuhn = gdlx.make("kuhn_poker").propnet
    shown = public.find_public_info(kuhn).percepts[0].any(axis=1)
    names = {kuhn.players[0].percepts[n] for n in np.flatnonzero(shown)}
    assert names == {f"(opponent_did {move})" for move in ("bet", "call", "check", "fold")}
    assert public.find_public_info(gdlx.make("blind_tictactoe").propnet).is_empty
