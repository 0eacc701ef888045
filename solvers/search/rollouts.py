"""Random rollouts in lockstep, and the mean payoffs of states and actions under them."""

import functools

import jax
import jax.numpy as jnp

from gdlx.envs.lowering import rng
from gdlx.envs.packed import packed_env
from gdlx.solvers.mccfr import table_rows

Carry = tuple[jax.Array, packed_env.PackedState, rng.Streams]


def play_to_end(game: packed_env.PackedEnv, start: Carry, steps: int) -> tuple[packed_env.PackedState, rng.Streams]:
    """Play uniformly at random until all games have terminated, or up to step `steps`.

    `start` is the number of steps so far, the games and their random streams.
    """
    players = game.env.num_players

    def move(carry: Carry) -> Carry:
        step, games, streams = carry
        streams, words = rng.draw_rows(streams, players + 1)
        draws = table_rows.uniform_from_bits(words)
        joint = [
            table_rows.sample_actions(table_rows.uniform_policy(legal), draws[player])
            for player, legal in enumerate(games.legal)
        ]
        return step + 1, game.step(games, jnp.stack(joint), draws[players]), streams

    def in_progress(carry: Carry) -> jax.Array:
        return (carry[0] < steps) & ~carry[1].terminated.all()

    _, games, streams = jax.lax.while_loop(in_progress, move, start)
    return games, streams


@functools.partial(jax.jit, static_argnames=("game", "steps"))
def mean_payoffs(
    game: packed_env.PackedEnv, games: packed_env.PackedState, key: jax.Array, rounds: jax.Array, *, steps: int
) -> jax.Array:
    """Returns the mean payoffs float32[P, B] of `rounds` rollouts from each game; unfinished rollouts count as 0."""
    zero = jnp.zeros((), jnp.int32)

    def play(_: jax.Array, carry: tuple[jax.Array, rng.Streams]) -> tuple[jax.Array, rng.Streams]:
        total, streams = carry
        final, streams = play_to_end(game, (zero, games, streams), steps)
        return total + jnp.where(final.terminated, final.payoff, 0), streams

    start = (jnp.zeros((game.env.num_players, games.batch), jnp.float32), rng.make_streams(key, 0, games.batch))
    sums: tuple[jax.Array, rng.Streams] = jax.lax.fori_loop(0, rounds, play, start)
    return sums[0] / rounds


@functools.partial(jax.jit, static_argnames=("game", "player", "steps"))
def payoffs_by_first_action(
    game: packed_env.PackedEnv,
    games: packed_env.PackedState,
    key: jax.Array,
    rounds: jax.Array,
    *,
    player: int,
    steps: int,
) -> tuple[jax.Array, jax.Array]:
    """Returns int32[A, B] and float32[A, B]: how often each action came first, and the sum of its payoffs then.

    Round n of game b begins with the action of rank n + b, so that all come equally often.
    """
    players, size = game.env.num_players, games.batch
    legal = games.legal[player]
    num_actions, ranks = jnp.maximum(jnp.sum(legal, axis=0), 1), jnp.cumsum(legal, axis=0) - 1
    actions = jnp.arange(legal.shape[0])[:, None]
    zero = jnp.zeros((), jnp.int32)
    Sums = tuple[jax.Array, jax.Array, rng.Streams]

    def play(number: jax.Array, carry: Sums) -> Sums:
        counts, totals, streams = carry
        streams, words = rng.draw_rows(streams, players + 1)
        draws = table_rows.uniform_from_bits(words)
        first_action = jnp.argmax(legal & (ranks == (number + jnp.arange(size)) % num_actions), axis=0).astype(
            jnp.int32
        )
        joint = [
            table_rows.sample_actions(table_rows.uniform_policy(other_legal), draws[other])
            for other, other_legal in enumerate(games.legal)
        ]
        joint[player] = first_action
        after = game.step(games, jnp.stack(joint), draws[players])
        final, streams = play_to_end(game, (zero + 1, after, streams), steps)
        is_first = actions == first_action
        payoff = jnp.where(final.terminated, final.payoff[player], 0)
        return counts + is_first, totals + jnp.where(is_first, payoff, 0), streams

    zeros = jnp.zeros(legal.shape, jnp.int32), jnp.zeros(legal.shape, jnp.float32)
    sums: Sums = jax.lax.fori_loop(0, rounds, play, (*zeros, rng.make_streams(key, 0, size)))
    return sums[0], sums[1]
