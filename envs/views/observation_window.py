"""The players' last T actions and percepts as arrays for neural networks: `init` and `update` along a match.

The exact information state is a sequence of any length, identified by `State.info_key`; this is its recent part.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from gdlx.envs import env as envs
from gdlx.envs import game_facts, host
from gdlx.propnet.common.text import suggestions

ENCODERS = ("state", "infostate", "window:T")
_MOST_STEPS = 100_000


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


def encoder_steps(env: envs.Env, name: str, known: Sequence[str] = ()) -> int:
    """The number of steps in the window of an encoder, `"infostate"` or `"window:T"`.

    `"infostate"` has as many as `max_steps`, or else as the longest of a thousand random matches.
    """
    if name == "infostate":
        return env.max_steps or game_facts.probe(env.propnet).longest_match
    kind, _, steps = name.partition(":")
    if kind == "window" and steps.isdecimal() and 1 <= int(steps) <= _MOST_STEPS:
        return int(steps)
    raise envs.EnvError(
        f"{name!r} is no encoder of observations; there are state, infostate, and window:T with T steps, as "
        f"window:4{suggestions.is_it(name, (*ENCODERS, *known))}"
    )


def of_node(env: envs.Env, node: host.Node, player: int, *, steps: int) -> npt.NDArray[np.bool_]:
    """A player's row of the tensor at a node on the host; `steps` may be 0.

    >>> from gdlx.envs import make_env
    >>> game = make_env.make("rps")
    >>> nodes = host.HostEnv(game.propnet, game.payoffs, 10)
    >>> of_node(game, nodes.apply_actions(nodes.start, (2, 0)), 0, steps=1).astype(int).tolist()
    [0, 0, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0]
    """
    tensor = np.zeros(tensor_size(env, steps=steps), np.bool_)
    events = tensor[: tensor.size - env.num_actions].reshape(steps, env.num_actions + env.num_percepts)
    recent = node.events[max(0, len(node.events) - steps) :]
    for row, (actions, percepts) in zip(events[steps - len(recent) :], recent, strict=True):
        row[actions[player]] = True
        row[[env.num_actions + number for number in percepts[player]]] = True
    tensor[[tensor.size - env.num_actions + action for action in node.position.legal[player]]] = True
    return tensor
