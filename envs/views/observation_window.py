"""What the players know, cut to the last T steps, as arrays for networks: `init` and `update` along a match.

The exact information state is a sequence of any length, with `State.info_key` for its name; this is its recent part.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from gdlx.envs import env as envs


class Window(NamedTuple):
    """Axes: N players, T steps (the last one last; zeros before the first move), A moves, P percepts as in State."""

    moves: jax.Array  # [N, T, A] bool, own moves, one true each
    percepts: jax.Array  # [N, T, P] bool
    legal: jax.Array  # [N, A] bool, legal moves now
    step: jax.Array  # [] int32, joint moves made


def init(env: envs.Env, state: envs.State, *, steps: int) -> Window:
    """The window at the start of a match."""
    if steps < 1:
        raise envs.EnvError(f"a window holds 1 step or more, not {steps}")
    return Window(
        moves=jnp.zeros((env.num_players, steps, env.num_actions), jnp.bool_),
        percepts=jnp.zeros((env.num_players, steps, env.num_percepts), jnp.bool_),
        legal=state.legal_mask,
        step=state.step,
    )


def update(window: Window, state: envs.State) -> Window:
    """The window after a step; also after a reset to the initial state, or an illegal step that was not made."""
    actions = window.moves.shape[2]
    last_moves = jnp.arange(actions) == state.actions[:, None]
    moved = Window(
        moves=jnp.concatenate([window.moves[:, 1:], last_moves[:, None]], axis=1),
        percepts=jnp.concatenate([window.percepts[:, 1:], state.percepts[:, None]], axis=1),
        legal=state.legal_mask,
        step=state.step,
    )
    same, fresh = state.step == window.step, state.step == 0
    kept = [
        jnp.where(fresh, jnp.zeros_like(new), jnp.where(same, old, new))
        for old, new in ((window.moves, moved.moves), (window.percepts, moved.percepts))
    ]
    return moved._replace(moves=kept[0], percepts=kept[1])


def to_tensor(window: Window) -> jax.Array:
    """float32[N, T * (A + P) + A]: for each player own moves and percepts step by step, then the legal moves."""
    players = window.legal.shape[0]
    steps = jnp.concatenate([window.moves, window.percepts], axis=2).reshape(players, -1)
    return jnp.concatenate([steps, window.legal], axis=1).astype(jnp.float32)


def tensor_size(env: envs.Env, *, steps: int) -> int:
    """Numbers in one player's row of the tensor."""
    return steps * (env.num_actions + env.num_percepts) + env.num_actions
