"""Enumeration of all joint actions of games in lockstep, one lane each, for exact beliefs and depth-limited subtrees.

Games stay on the device. The host reads snapshots of them, and decides which games continue with which actions. Lanes
are padded to one of few sizes, so that few programs are compiled.
"""

import functools
from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from gdlx.envs.packed import packed_env
from gdlx.envs.trees import unique_rows

Ints = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.object_]  # exact Python integers
MAX_LANES = 2**16
_SIZES = (2**12, MAX_LANES)


class ActiveGames(NamedTuple):
    """Games of which some lanes are active, the others padding. Axes: N active lanes, M lanes."""

    games: packed_env.PackedState  # M lanes
    lanes: Ints  # [N]


class Snapshot(NamedTuple):
    """The active lanes, on the host. Axes: N active lanes, P players, A actions, S bits of a state."""

    legal: npt.NDArray[np.bool_]  # [P, A, N]
    outcomes: Ints  # [N], number of outcomes of chance; at least 1
    ended: npt.NDArray[np.bool_]  # [N]
    payoff: npt.NDArray[np.float32]  # [P, N]
    keys: npt.NDArray[np.uint32]  # [2, P, N]
    rows: npt.NDArray[np.bool_]  # [S, N], every bit of the games


class JointActions(NamedTuple):
    """Axes: N joint actions, P players."""

    parent: Ints  # [N], index among the active lanes
    actions: Ints  # [P, N]
    chance: npt.NDArray[np.float32]  # [N], the draw with which `PackedEnv.step` picks the outcome
    share: Floats  # [N], probability of the outcome


def start(game: packed_env.PackedEnv) -> ActiveGames:
    """Returns one game in the initial state."""
    with jax.enable_x64(False):
        return ActiveGames(game.start(_SIZES[0]), np.zeros(1, np.int32))


def take_snapshot(game: packed_env.PackedEnv, active: ActiveGames) -> Snapshot:
    """Copies the active lanes to the host."""
    games, lanes = jax.device_get(active.games), active.lanes
    words = games.rows.shape[1]
    rows = (games.rows[:, lanes % words] >> (lanes // words).astype(np.uint32)) & np.uint32(1)
    players = game.env.num_players
    return Snapshot(
        legal=games.legal[..., lanes],
        outcomes=np.maximum(games.outcomes[lanes], 1),
        ended=games.terminated[lanes],
        payoff=games.payoff[:, lanes],
        keys=np.stack([word[:players, lanes] for word in games.keys]),
        rows=rows != 0,
    )


def select_lanes(seen: Snapshot, chosen: npt.NDArray[np.int64]) -> Snapshot:
    """Selects lanes of a snapshot by index."""
    selected: Snapshot = jax.tree.map(lambda part: part[..., chosen], seen)
    return selected


def allowed_actions(seen: Snapshot, forced: Mapping[int, int]) -> npt.NDArray[np.bool_]:
    """Returns the legal actions [P, A, N]; for players with a forced action only that one."""
    allowed = seen.legal.copy()
    for player, action in forced.items():
        others = np.arange(allowed.shape[1]) != action
        allowed[player, others] = False
    return allowed


def count_joint_actions(seen: Snapshot, forced: Mapping[int, int]) -> npt.NDArray[np.int64]:
    """Returns the number of joint actions [N] of every lane, outcomes of chance included."""
    counts = allowed_actions(seen, forced).sum(axis=1, dtype=np.int64).prod(axis=0) * seen.outcomes
    return np.where(seen.ended, 0, counts)


def enumerate_joint_actions(seen: Snapshot, forced: Mapping[int, int]) -> JointActions:
    """Returns all joint actions of all lanes that are not terminal, in lane order."""
    lanes = np.flatnonzero(~seen.ended)
    actions: list[npt.NDArray[np.int64]] = []
    for allowed in allowed_actions(seen, forced):
        at, action = np.nonzero(allowed[:, lanes].T)
        lanes, actions = lanes[at], [*(before[at] for before in actions), action]
    outcomes = seen.outcomes[lanes]
    rank = np.arange(outcomes.sum()) - np.repeat(np.cumsum(outcomes) - outcomes, outcomes)
    at = np.repeat(np.arange(len(lanes)), outcomes)
    joint = np.array([action[at] for action in actions], np.int32).reshape(len(actions), len(at))
    return JointActions(
        parent=lanes[at].astype(np.int32),
        actions=joint,
        chance=((rank + 0.5) / outcomes[at]).astype(np.float32),
        share=1 / outcomes[at],
    )


def apply_joint_actions(game: packed_env.PackedEnv, active: ActiveGames, moves: JointActions) -> ActiveGames:
    """Returns the games after each of the joint actions."""
    number = len(moves.parent)
    missing = padded_size(number) - number
    lanes = np.pad(active.lanes[moves.parent], (0, missing), mode="edge")
    actions = np.pad(moves.actions, ((0, 0), (0, missing)), mode="edge")
    chance = np.pad(moves.chance, (0, missing), mode="edge")
    with jax.enable_x64(False):
        games = _take_and_step(game, active.games, lanes, actions, chance)
    return ActiveGames(games, np.arange(number, dtype=np.int32))


def take(game: packed_env.PackedEnv, active: ActiveGames, chosen: Ints) -> packed_env.PackedState:
    """Returns the games at these indices among the active lanes."""
    with jax.enable_x64(False):
        games: packed_env.PackedState = _take_lanes(game, active.games, active.lanes[chosen])
    return games


def padded_size(number: int) -> int:
    """Returns the number of lanes for `number` games."""
    return next(lanes for lanes in _SIZES if lanes >= number)


def merge_equal_states(seen: Snapshot) -> unique_rows.Numbering:
    """Number the lanes; lanes in the same state where all players have the same information share a number."""
    words = seen.keys.reshape(-1, seen.keys.shape[2]).astype(np.int64)
    state = unique_rows.number_bit_columns(seen.rows)
    return unique_rows.number_rows([state.number.astype(np.int64), *words], [max(1, state.size), *[2**32] * len(words)])


@functools.partial(jax.jit, static_argnames="game")
def _take_and_step(
    game: packed_env.PackedEnv, games: packed_env.PackedState, lanes: jax.Array, actions: jax.Array, chance: jax.Array
) -> packed_env.PackedState:
    return game.step(game.take(games, lanes), actions, chance)


@functools.partial(jax.jit, static_argnames="game")
def _take_lanes(game: packed_env.PackedEnv, games: packed_env.PackedState, lanes: jax.Array) -> packed_env.PackedState:
    return game.take(games, jnp.asarray(lanes))
