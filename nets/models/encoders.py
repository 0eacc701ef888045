"""Features of any game for networks: the bits of a state, or a player's recent actions and percepts.

A player's information state is its own actions and percepts of the last T steps, its legal actions, which player it is
and the progress of the match. The same features come from an environment during a match (`Encoder.information_state`)
and from the information sets of an unrolled game (`Encoder.encode_infosets`).
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
from gdlx.solvers.policy_sources import function_policies

Floats = npt.NDArray[np.float32]


class EncoderError(errors.UserError, ValueError):
    """A window without steps, or a tree whose information sets cannot be encoded."""


@dataclasses.dataclass(frozen=True, repr=False)
class Encoder:
    """Encodes the states and information states of one game as float32 features.

    Axes: N players, F features of an information state, R registers of a state.

    Attributes:
      env: the game.
      steps: length T of the window. Information states that differ only before it are encoded alike.
      feature_indices: features of information states that networks see; None: all.
      width: F.
      state_width: R + 1.

    >>> import gdlx
    >>> encoder = Encoder(gdlx.make("kuhn_poker"), steps=3)
    >>> state = encoder.env.init()
    >>> encoder.information_state(encoder.window(state)).shape == (2, encoder.width)
    True
    """

    env: envs.Env
    steps: int
    feature_indices: tuple[int, ...] | None = None

    def __repr__(self) -> str:
        return f"Encoder(game={self.env.name!r}, steps={self.steps}, width={self.width})"

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise EncoderError(f"the window of an encoder has 1 step or more, not {self.steps}")
        object.__setattr__(self, "env", self.env.tracking("percepts", "actions"))

    @property
    def width(self) -> int:
        """F"""
        return len(self.feature_indices) if self.feature_indices is not None else self._full_width

    @property
    def state_width(self) -> int:
        """R + 1"""
        return len(self.env.propnet.initial) + 1

    def window(self, state: envs.State) -> observation_window.Window:
        """The window at the start of a match; `observation_window.update` advances it."""
        return observation_window.init(self.env, state, steps=self.steps)

    def information_state(self, window: observation_window.Window) -> jax.Array:
        """float32[N, F] of all players."""
        observed = observation_window.to_tensor(window)
        player = jnp.eye(self.env.num_players, dtype=jnp.float32)
        progress = jnp.broadcast_to(self._progress(window.step), (self.env.num_players, 1))
        features = jnp.concatenate([observed, player, progress], axis=1)
        return features if self.feature_indices is None else features[:, jnp.asarray(self.feature_indices)]

    def state(self, state: envs.State) -> jax.Array:
        """float32[R + 1] of the full state, hidden parts included."""
        return jnp.append(state.registers.astype(jnp.float32), self._progress(state.step))

    def encode_registers(self, registers: npt.NDArray[np.bool_], steps: npt.NDArray[np.int32]) -> Floats:
        """float32[N, R + 1] of N full states, from their registers [R, N] and numbers of joint actions so far [N]."""
        progress = steps.astype(np.float32) / np.float32(self.steps)
        return np.concatenate([registers.T.astype(np.float32), progress[:, None]], axis=1)

    def encode_infosets(self, tree: game_tree.GameTree, number: int) -> Floats:
        """float32[I, F] of the information sets where a player has a choice."""
        return self.encode_views(tree, number, tree.players[number].view)

    def encode(self, infosets: function_policies.InformationSets) -> Floats:
        """float32[N, F] of the information sets that a policy function is asked for, of a tree or of matches."""
        moves, count = self.env.num_actions, len(infosets)
        window = np.zeros((count, self.steps, moves + self.env.num_percepts), np.float32)
        made, seen = infosets.made, infosets.seen
        for back in range(self.steps):
            time = infosets.steps - self.steps + back
            rows = np.flatnonzero(time >= 0)
            window[rows, back, made[rows, time[rows]]] = 1
            window[rows, back, moves : moves + seen.shape[2]] = seen[rows, time[rows]]
        legal = np.zeros((count, moves), np.float32)
        legal[:, : infosets.legal.shape[1]] = infosets.legal
        player = np.zeros((count, self.env.num_players), np.float32)
        player[:, infosets.player] = 1
        progress = infosets.steps[:, None].astype(np.float32) / np.float32(self.steps)
        features = np.concatenate([window.reshape(count, -1), legal, player, progress], axis=1)
        return features if self.feature_indices is None else features[:, list(self.feature_indices)]

    def encode_views(self, tree: game_tree.GameTree, number: int, views: game_tree.Ints) -> Floats:
        """float32[V, F] of any rows of a player's tree of information sets, forced ones included."""
        trail = tree.players[number].views
        if not isinstance(trail, game_tree.InfosetTree):
            raise EncoderError(f"{tree.name} was not unrolled from rules: its information sets cannot be encoded")
        moves = self.env.num_actions
        window = np.zeros((len(views), self.steps, moves + self.env.num_percepts), np.float32)
        at = views.copy()
        for back in range(self.steps - 1, -1, -1):
            has_parent = np.flatnonzero(trail.parent[at] >= 0)
            window[has_parent, back, trail.move[at[has_parent]]] = 1
            seen = trail.percepts[trail.percept[at[has_parent]]]
            window[has_parent, back, moves : moves + seen.shape[1]] = seen
            at = np.where(trail.parent[at] >= 0, trail.parent[at], at)
        legal = _legal_moves(tree.players[number], trail, moves)[views]
        player = np.zeros((len(views), self.env.num_players), np.float32)
        player[:, number] = 1
        progress = _steps_before(trail, views)[:, None].astype(np.float32) / np.float32(self.steps)
        features = np.concatenate([window.reshape(len(views), -1), legal, player, progress], axis=1)
        return features if self.feature_indices is None else features[:, list(self.feature_indices)]

    @property
    def _full_width(self) -> int:
        return observation_window.tensor_size(self.env, steps=self.steps) + self.env.num_players + 1

    def _progress(self, step: jax.Array) -> jax.Array:
        return step.astype(jnp.float32)[None] / self.steps


def drop_unused_features(encoder: Encoder, tree: game_tree.GameTree) -> Encoder:
    """An encoder without the features that are 0 at all information sets of the unrolled game.

    Most of them are: a window has a feature for every action and percept of the game at each of its steps.
    """
    full_encoder = dataclasses.replace(encoder, feature_indices=None)
    is_used = np.zeros(full_encoder.width, np.bool_)
    for number in range(len(tree.players)):
        is_used |= (full_encoder.encode_infosets(tree, number) != 0).any(axis=0)
    return dataclasses.replace(encoder, feature_indices=tuple(np.flatnonzero(is_used).tolist()))


def _legal_moves(player: game_tree.Player, trail: game_tree.InfosetTree, moves: int) -> Floats:
    """[V, moves] of every information set."""
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
