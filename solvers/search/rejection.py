"""Whole games from the start in which a player makes the moves that it made, and those of them that it could not tell
from its own.
"""

import functools
from collections.abc import Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from gdlx.envs.lowering import rng
from gdlx.envs.packed import packed_env
from gdlx.envs.views import history
from gdlx.solvers.mccfr import table_policy, table_rows

BATCH = 2**12  # games that are played at once
_LEAST_STEPS = 16  # that a program has room for


class AcceptedGames(NamedTuple):
    """Axes: N games that are asked for."""

    games: packed_env.PackedState  # N, of which the first ones agree: as many as agreed in all batches so far
    num_accepted: int  # in this batch


def sample_batches(
    game: packed_env.PackedEnv,
    view: history.ActionObservationHistory,
    policies: table_policy.TablePolicies | None,
    size: int,
    seed: int,
) -> Iterator[AcceptedGames]:
    """Without end; `size` games are asked for."""
    room = max(_LEAST_STEPS, 2 ** view.step.bit_length())
    actions = np.zeros(room, np.int32)
    actions[: view.step] = [event.move for event in view.events]
    keys = np.zeros((room + 1, 2), np.uint32)
    keys[: view.step + 1] = view.keys
    with jax.enable_x64(False):
        pool = _Pool(
            _started(game, -(-size // packed_env.GAMES_PER_WORD) * packed_env.GAMES_PER_WORD), jnp.zeros((), jnp.int32)
        )
        key = jax.random.key(seed)
    while True:
        with jax.enable_x64(False):
            key, now = jax.random.split(key)
            pool, agreed = _played(game, policies, now, pool, actions, keys, view.step, player=view.player)
        yield AcceptedGames(pool.games, int(agreed))


class _Pool(NamedTuple):
    """Axes: N games that are asked for."""

    games: packed_env.PackedState
    filled: jax.Array  # [] int32, of which the first so many agree


@functools.partial(jax.jit, static_argnames=("game", "lanes"))
def _started(game: packed_env.PackedEnv, lanes: int) -> packed_env.PackedState:
    return game.start(lanes)


@functools.partial(jax.jit, static_argnames=("game", "player"))
def _played(
    game: packed_env.PackedEnv,
    policies: table_policy.TablePolicies | None,
    key: jax.Array,
    pool: _Pool,
    actions: jax.Array,
    keys: jax.Array,
    steps: jax.Array,
    *,
    player: int,
) -> tuple[_Pool, jax.Array]:
    """The pool with what agrees of a batch, and how many that are."""
    players = game.env.num_players
    Carry = tuple[jax.Array, packed_env.PackedState, rng.Streams, jax.Array]

    def agrees(games: packed_env.PackedState, step: jax.Array) -> jax.Array:
        high, low = games.keys
        return (high[player] == keys[step, 0]) & (low[player] == keys[step, 1])

    def move(carry: Carry) -> Carry:
        step, games, streams, alive = carry
        streams, words = rng.draw_rows(streams, players + 1)
        draws = table_rows.uniform_from_bits(words)
        joint = []
        for number in range(players):
            legal = games.legal[number]
            if number == player:
                # Where a game no longer agrees the move may not be legal: then any other does.
                own = jnp.broadcast_to(actions[step], alive.shape)
                joint.append(
                    jnp.where(
                        table_rows.select_actions(legal, own) > 0, own, jnp.argmax(legal, axis=0).astype(jnp.int32)
                    )
                )
            else:
                policy = (
                    table_rows.uniform_policy(legal)
                    if policies is None
                    else table_policy.player_policy(policies, games, number)
                )
                joint.append(table_rows.sample_actions(policy, draws[number]))
        after = game.step(games, jnp.stack(joint), draws[players])
        return step + 1, after, streams, alive & agrees(after, step + 1)

    def goes_on(carry: Carry) -> jax.Array:
        return (carry[0] < steps) & carry[3].any()

    first = game.start(BATCH)
    zero = jnp.zeros((), jnp.int32)
    begin = (zero, first, rng.make_streams(key, 0, BATCH), agrees(first, zero))
    _, games, _, alive = jax.lax.while_loop(goes_on, move, begin)
    return _filled(game, pool, games, alive), jnp.sum(alive, dtype=jnp.int32)


def _filled(game: packed_env.PackedEnv, pool: _Pool, games: packed_env.PackedState, alive: jax.Array) -> _Pool:
    size, batch = pool.games.batch, alive.shape[0]
    (found,) = jnp.nonzero(alive, size=size, fill_value=0)
    place = jnp.arange(size, dtype=jnp.int32)
    wanted = jnp.where(place < pool.filled, place, size + found[jnp.maximum(place - pool.filled, 0)])
    number = game.join_lanes(place, size + jnp.arange(batch, dtype=jnp.int32))
    lane = jnp.zeros(size + batch, jnp.int32).at[number].set(jnp.arange(size + batch, dtype=jnp.int32))
    together = game.take(game.join(pool.games, games), lane[wanted])
    return _Pool(together, jnp.minimum(pool.filled + jnp.sum(alive, dtype=jnp.int32), size))
