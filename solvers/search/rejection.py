"""Rejection sampling of games that one player cannot distinguish from its match.

Games start at the initial state, and the player repeats its actions of the match. Accepted are those in which its
observations are the same.
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

BATCH = 2**12  # games per batch
_MIN_STEPS = 16  # smallest capacity for steps of a compiled program


class AcceptedGames(NamedTuple):
    """Axes: N requested games."""

    games: packed_env.PackedState  # N games; the first ones are accepted, as many as in all batches so far
    num_accepted: int  # in this batch


def sample_batches(
    game: packed_env.PackedEnv,
    view: history.ActionObservationHistory,
    policies: table_policy.TablePolicies | None,
    size: int,
    seed: int,
) -> Iterator[AcceptedGames]:
    """Yields the accepted games after each batch, without end; `size` is the number of requested games."""
    capacity = max(_MIN_STEPS, 2 ** view.step.bit_length())
    actions = np.zeros(capacity, np.int32)
    actions[: view.step] = [event.move for event in view.events]
    keys = np.zeros((capacity + 1, 2), np.uint32)
    keys[: view.step + 1] = view.keys
    with jax.enable_x64(False):
        pool = _Pool(
            game.start(-(-size // packed_env.GAMES_PER_WORD) * packed_env.GAMES_PER_WORD),
            jnp.zeros((), jnp.int32),
        )
        key = jax.random.key(seed)
    while True:
        with jax.enable_x64(False):
            key, batch_key = jax.random.split(key)
            pool, num_accepted = _play_batch(
                game, policies, batch_key, pool, actions, keys, view.step, player=view.player
            )
        yield AcceptedGames(pool.games, int(num_accepted))


class _Pool(NamedTuple):
    """Axes: N requested games."""

    games: packed_env.PackedState
    filled: jax.Array  # [] int32, number of accepted games, which come first


@functools.partial(jax.jit, static_argnames=("game", "player"))
def _play_batch(
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
    """Plays a batch; returns the pool with its accepted games, and their number."""
    players = game.env.num_players
    Carry = tuple[jax.Array, packed_env.PackedState, rng.Streams, jax.Array]

    def is_consistent(games: packed_env.PackedState, step: jax.Array) -> jax.Array:
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
                # In rejected games the action may be illegal; any legal one will do.
                action = jnp.broadcast_to(actions[step], alive.shape)
                joint.append(
                    jnp.where(
                        table_rows.select_actions(legal, action) > 0,
                        action,
                        jnp.argmax(legal, axis=0).astype(jnp.int32),
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
        return step + 1, after, streams, alive & is_consistent(after, step + 1)

    def in_progress(carry: Carry) -> jax.Array:
        return (carry[0] < steps) & carry[3].any()

    first = game.start(BATCH)
    zero = jnp.zeros((), jnp.int32)
    begin = (zero, first, rng.make_streams(key, 0, BATCH), is_consistent(first, zero))
    _, games, _, alive = jax.lax.while_loop(in_progress, move, begin)
    return _fill_pool(game, pool, games, alive), jnp.sum(alive, dtype=jnp.int32)


def _fill_pool(game: packed_env.PackedEnv, pool: _Pool, games: packed_env.PackedState, alive: jax.Array) -> _Pool:
    size, batch = pool.games.batch, alive.shape[0]
    (accepted,) = jnp.nonzero(alive, size=size, fill_value=0)
    place = jnp.arange(size, dtype=jnp.int32)
    source = jnp.where(place < pool.filled, place, size + accepted[jnp.maximum(place - pool.filled, 0)])
    number = game.join_lanes(place, size + jnp.arange(batch, dtype=jnp.int32))
    lane = jnp.zeros(size + batch, jnp.int32).at[number].set(jnp.arange(size + batch, dtype=jnp.int32))
    together = game.take(game.join(pool.games, games), lane[source])
    return _Pool(together, jnp.minimum(pool.filled + jnp.sum(alive, dtype=jnp.int32), size))
