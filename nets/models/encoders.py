"""What networks see of a game, made from any rulesheet: bits of a state, or what a player has done and seen.

A player's information state is its own moves and percepts of the last T steps, its legal moves, which player it is and
how far the match has come. The same numbers come from an environment along a match (`information`) and from the
information sets of an unrolled game (`of_sets`).
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from gdlx.envs import env as envs
from gdlx.envs.trees import game_tree
from gdlx.envs.views import observation_window
from gdlx.propnet.common import errors

Floats = npt.NDArray[np.float32]


class EncoderError(errors.UserError, ValueError):
    pass


@dataclasses.dataclass(frozen=True)
class Encoder:
    """Of one game. Axes: N players, F numbers of an information state, R registers."""

    env: envs.Env
    steps: int  # T: of the window; information states that differ only before it look the same
    feature_indices: tuple[int, ...] | None = None  # numbers of information states that networks see; None: all

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise EncoderError(f"an encoder looks back 1 step or more, not {self.steps}")

    @property
    def width(self) -> int:
        """F"""
        return len(self.feature_indices) if self.feature_indices is not None else self._whole_width

    @property
    def state_width(self) -> int:
        """R + 1"""
        return len(self.env.net.initial) + 1

    def window(self, state: envs.State) -> observation_window.Window:
        """At the start of a match; `observe.update` goes on with it."""
        return observation_window.init(self.env, state, steps=self.steps)

    def information_state(self, window: observation_window.Window) -> jax.Array:
        """float32[N, F] of all players."""
        seen = observation_window.to_tensor(window)
        who = jnp.eye(self.env.num_players, dtype=jnp.float32)
        when = jnp.broadcast_to(self._progress(window.step), (self.env.num_players, 1))
        whole = jnp.concatenate([seen, who, when], axis=1)
        return whole if self.feature_indices is None else whole[:, jnp.asarray(self.feature_indices)]

    def state(self, state: envs.State) -> jax.Array:
        """float32[R + 1] of the whole state, hidden parts included."""
        return jnp.append(state.registers.astype(jnp.float32), self._progress(state.step))

    def encode_registers(self, registers: npt.NDArray[np.bool_], steps: npt.NDArray[np.int32]) -> Floats:
        """float32[N, R + 1] of whole states, by their registers [R, N] and the joint moves made [N]."""
        when = steps.astype(np.float32) / np.float32(self.steps)
        return np.concatenate([registers.T.astype(np.float32), when[:, None]], axis=1)

    def encode_infosets(self, tree: game_tree.GameTree, number: int) -> Floats:
        """float32[I, F] of a player's information sets with a choice."""
        return self.encode_views(tree, number, tree.players[number].view)

    def encode_views(self, tree: game_tree.GameTree, number: int, views: game_tree.Ints) -> Floats:
        """float32[V, F] of any information sets of a player's trail."""
        trail = tree.players[number].views
        if not isinstance(trail, game_tree.InfosetTree):
            raise EncoderError(f"{tree.name} was not unrolled from rules: its information sets cannot be encoded")
        moves = self.env.num_actions
        window = np.zeros((len(views), self.steps, moves + self.env.num_percepts), np.float32)
        at = views.copy()
        for back in range(self.steps - 1, -1, -1):
            there = np.flatnonzero(trail.parent[at] >= 0)
            window[there, back, trail.move[at[there]]] = 1
            seen = trail.percepts[trail.percept[at[there]]]
            window[there, back, moves : moves + seen.shape[1]] = seen
            at = np.where(trail.parent[at] >= 0, trail.parent[at], at)
        legal = _legal_moves(tree.players[number], trail, moves)[views]
        who = np.zeros((len(views), self.env.num_players), np.float32)
        who[:, number] = 1
        when = _steps_before(trail, views)[:, None].astype(np.float32) / np.float32(self.steps)
        whole = np.concatenate([window.reshape(len(views), -1), legal, who, when], axis=1)
        return whole if self.feature_indices is None else whole[:, list(self.feature_indices)]

    @property
    def _whole_width(self) -> int:
        return observation_window.tensor_size(self.env, steps=self.steps) + self.env.num_players + 1

    def _progress(self, step: jax.Array) -> jax.Array:
        return step.astype(jnp.float32)[None] / self.steps


def drop_unused_features(encoder: Encoder, tree: game_tree.GameTree) -> Encoder:
    """Without numbers that are 0 at all information sets of the unrolled game: most of them are, as a window has room
    for every move and percept of the game at each of its steps."""
    whole = dataclasses.replace(encoder, feature_indices=None)
    is_used = np.zeros(whole.width, np.bool_)
    for number in range(len(tree.players)):
        is_used |= (whole.encode_infosets(tree, number) != 0).any(axis=0)
    return dataclasses.replace(encoder, feature_indices=tuple(np.flatnonzero(is_used).tolist()))


def _legal_moves(player: game_tree.Player, trail: game_tree.InfosetTree, moves: int) -> Floats:
    """[V, moves] of every set."""
    legal = np.zeros((len(trail.parent), moves), np.float32)
    views = np.flatnonzero(trail.forced >= 0)
    legal[views, trail.forced[views]] = 1
    legal[np.repeat(player.view, np.diff(player.first)), player.action[1:]] = 1
    return legal


def _steps_before(trail: game_tree.InfosetTree, views: game_tree.Ints) -> game_tree.Ints:
    steps = np.zeros(len(views), np.int32)
    at = trail.parent[views]
    while (at >= 0).any():
        steps += at >= 0
        at = np.where(at >= 0, trail.parent[at], -1)
    return steps
