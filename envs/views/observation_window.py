"""The players' last T actions and percepts as arrays for neural networks: `init` and `update` along a match.

The exact information state is a sequence of any length, identified by `State.info_key`; this is its recent part.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from gdlx.envs import env as envs


class Window(NamedTuple):
    """Axes: N players, T steps (the last one last; zeros before the first), A actions, P percepts as in State."""

    moves: jax.Array  # [N, T, A] bool, the players' actions, one-hot
    percepts: jax.Array  # [N, T, P] bool
    legal: jax.Array  # [N, A] bool, current legal actions
    step: jax.Array  # [] int32, joint actions taken so far


def init(env: envs.Env, state: envs.State, *, steps: int) -> Window:
    """The window at the start of a match."""
    if steps < 1:
        raise envs.EnvError(f"`steps=` of an observation window must be 1 or more; got {steps}")
    return Window(
        moves=jnp.zeros((env.num_players, steps, env.num_actions), jnp.bool_),
        percepts=jnp.zeros((env.num_players, steps, env.num_percepts), jnp.bool_),
        legal=state.legal_mask,
        step=state.step,
    )


def update(window: Window, state: envs.State) -> Window:
    """The window after a step; also after a reset to the initial state, or after a step that was illegal."""
    actions = window.moves.shape[2]
    last_moves = jnp.arange(actions) == state.actions[:, None]
    moved = Window(
        moves=jnp.concatenate([window.moves[:, 1:], last_moves[:, None]], axis=1),
        percepts=jnp.concatenate([window.percepts[:, 1:], state.percepts[:, None]], axis=1),
        legal=state.legal_mask,
        step=state.step,
    )
    same, fresh = state.step == window.step, state.step == 0
    moves, percepts = (
        jnp.where(fresh, jnp.zeros_like(new), jnp.where(same, old, new))
        for old, new in ((window.moves, moved.moves), (window.percepts, moved.percepts))
    )
    return moved._replace(moves=moves, percepts=percepts)


def to_tensor(window: Window) -> jax.Array:
    """float32[N, T * (A + P) + A]: for each player its actions and percepts step by step, then its legal actions."""
    players = window.legal.shape[0]
    steps = jnp.concatenate([window.moves, window.percepts], axis=2).reshape(players, -1)
    return jnp.concatenate([steps, window.legal], axis=1).astype(jnp.float32)


def tensor_size(env: envs.Env, *, steps: int) -> int:
    """The length of one player's row of the tensor."""
    return steps * (env.num_actions + env.num_percepts) + env.num_actions
