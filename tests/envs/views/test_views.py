"""States and views as text, and the window of the last steps for networks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gdlx
from gdlx.envs import env as envs
from gdlx.envs.views import observation_window, render
from gdlx.tests.helpers import matches, sheets


def test_a_state_as_text() -> None:
    env = gdlx.make("kuhn_poker")
    assert render.state_text(env, env.init()).splitlines() == [
        "kuhn_poker, step 0",
        "  (dealing player1)",
        "player1: noop",
        "player2: noop",
        "random: (deal jack) (deal king) (deal queen)",
    ]
    last = matches.play_random(env, matches=1, steps=6).states_of(0)[-1]
    lines = render.state_text(env, last).splitlines()
    assert lines[0] == f"kuhn_poker, step {int(last.step)}"
    assert lines[-3:] == ["the end", *(f"player{n + 1}: goal {int(last.goals[n])}" for n in (0, 1))]


def test_a_view_as_text() -> None:
    env = gdlx.make("kuhn_poker", track=("percepts", "actions"))
    step = jax.jit(env.step)
    states = [env.init()]
    for actions, chance in (([4, 4], 1), ([4, 4], 0), ([0, 4], 3)):
        states.append(step(states[-1], jnp.array(actions), None, jnp.asarray(chance)))
    assert render.history_text(env, states, 1).splitlines() == [
        "player2 in kuhn_poker",
        "  1. noop",
        "  2. noop, sees (dealt jack)",
        "  3. noop, sees (opponent_did bet)",
        "may call fold",
    ]
    states.append(step(states[-1], jnp.array([4, 3]), None, jnp.asarray(3)))
    assert bool(states[-1].terminated)
    assert render.history_text(env, states, 0).splitlines()[-2:] == ["  3. bet", "  4. noop, sees (opponent_did fold)"]
    assert render.history_text(env, [], 0) == "player1 in kuhn_poker"


def test_an_unplayable_state_as_text() -> None:
    env = sheets.make_env(sheets.DEAD_END)
    hole = env.propnet.roles[0].moves.index("(go hole)")
    state = jax.jit(lambda: env.step(env.init(), jnp.array([hole, 0]), None))()
    assert "unplayable" in render.state_text(env, state)


def test_names_of_no_move() -> None:
    env = gdlx.make("kuhn_poker")
    assert [render.move_name(env, 0, n) for n in (-1, 0, 99)] == ["-", "bet", "-"]
    assert [render.chance_name(env, n) for n in (-1, 3, 99)] == ["-", "noop", "-"]


@pytest.mark.parametrize("steps", [1, 3])
def test_the_window_holds_the_last_steps(steps: int) -> None:
    env = gdlx.make("kuhn_poker")
    played = matches.play_random(env, matches=4, steps=6)

    @jax.jit
    @jax.vmap
    def along(states: envs.State) -> observation_window.Window:
        first, later = (jax.tree.map(lambda field, at=at: field[at], states) for at in (0, slice(1, None)))

        def step(
            window: observation_window.Window, state: envs.State
        ) -> tuple[observation_window.Window, observation_window.Window]:
            after = observation_window.update(window, state)
            return after, after

        return jax.lax.scan(step, observation_window.init(env, first, steps=steps), later)[1]

    windows = jax.device_get(along(jax.tree.map(lambda x: jnp.moveaxis(jnp.asarray(x), 1, 0), played.states)))
    width = observation_window.tensor_size(env, steps=steps)
    for match in range(4):
        states = played.states_of(match)
        for now in range(1, 7):
            window = observation_window.Window(*(field[match, now - 1] for field in windows))
            end = min(now, len(states) - 1)  # a finished match stays as it is
            for back in range(steps):
                moves, percepts = window.moves[:, steps - 1 - back], window.percepts[:, steps - 1 - back]
                if end - back < 1:
                    assert not moves.any()
                    assert not percepts.any()
                    continue
                assert np.array_equal(moves.argmax(axis=1), states[end - back].actions)
                assert (moves.sum(axis=1) == 1).all()
                assert np.array_equal(percepts, states[end - back].percepts)
            assert np.array_equal(window.legal, states[end].legal_mask)
            tensor = np.asarray(observation_window.to_tensor(window))
            assert tensor.shape == (2, width)
            assert tensor.dtype == np.float32
            assert tensor.sum() == window.moves.sum() + window.percepts.sum() + window.legal.sum()
            assert np.array_equal(tensor[:, -env.num_actions :], window.legal)


def test_the_window_after_a_reset_and_an_illegal_step() -> None:
    env = gdlx.make("rps", track=("percepts", "actions"))
    first = env.init()
    step, update = jax.jit(env.step), jax.jit(observation_window.update)
    window = observation_window.init(env, first, steps=2)
    illegal = step(first, jnp.array([7, 0]), None)
    assert jax.tree.all(jax.tree.map(np.array_equal, update(window, illegal), window))
    over = update(window, step(first, jnp.array([0, 1]), None))
    assert over.moves.sum() == 2
    assert jax.tree.all(jax.tree.map(np.array_equal, update(over, first), window))
    with pytest.raises(envs.EnvError, match="must be 1 or more; got 0"):
        observation_window.init(env, first, steps=0)
