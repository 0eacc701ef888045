"""Random play from given games on, in lockstep: to the end, and what it is worth."""

import functools

import jax
import jax.numpy as jnp

from gdlx.envs.lowering import rng
from gdlx.envs.packed import packed_env
from gdlx.solvers.mccfr import table_rows

Carry = tuple[jax.Array, packed_env.PackedState, rng.Streams]


def play_to_end(game: packed_env.PackedEnv, start: Carry, steps: int) -> tuple[packed_env.PackedState, rng.Streams]:
    """Everybody takes any legal move, until all games have ended or so many steps are made; `start` has made some."""
    players = game.env.num_players

    def move(carry: Carry) -> Carry:
        step, games, streams = carry
        streams, words = rng.draw_rows(streams, players + 1)
        draws = table_rows.uniform_from_bits(words)
        joint = [
            table_rows.sample_actions(table_rows.uniform_policy(own), draws[player])
            for player, own in enumerate(games.legal)
        ]
        return step + 1, game.step(games, jnp.stack(joint), draws[players]), streams

    def goes_on(carry: Carry) -> jax.Array:
        return (carry[0] < steps) & ~carry[1].terminated.all()

    _, games, streams = jax.lax.while_loop(goes_on, move, start)
    return games, streams


@functools.partial(jax.jit, static_argnames=("game", "steps"))
def mean_payoffs(
    game: packed_env.PackedEnv, games: packed_env.PackedState, key: jax.Array, rounds: jax.Array, *, steps: int
) -> jax.Array:
    """float32[P, B] mean payoffs of so many random matches from each game on; 0 for those that did not end."""
    zero = jnp.zeros((), jnp.int32)

    def play(_: jax.Array, carry: tuple[jax.Array, rng.Streams]) -> tuple[jax.Array, rng.Streams]:
        total, streams = carry
        ends, streams = play_to_end(game, (zero, games, streams), steps)
        return total + jnp.where(ends.terminated, ends.payoff, 0), streams

    start = (jnp.zeros((game.env.num_players, games.batch), jnp.float32), rng.make_streams(key, 0, games.batch))
    found: tuple[jax.Array, rng.Streams] = jax.lax.fori_loop(0, rounds, play, start)
    return found[0] / rounds


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
    """int32[A, B] and float32[A, B]: how often each move came first, and the payoffs of the player then.

    Round n of game b begins with the move of rank n + b, so that all come equally often.
    """
    players, size = game.env.num_players, games.batch
    legal = games.legal[player]
    moves, ranks = jnp.maximum(jnp.sum(legal, axis=0), 1), jnp.cumsum(legal, axis=0) - 1
    options = jnp.arange(legal.shape[0])[:, None]
    zero = jnp.zeros((), jnp.int32)
    Sums = tuple[jax.Array, jax.Array, rng.Streams]

    def play(number: jax.Array, carry: Sums) -> Sums:
        counts, totals, streams = carry
        streams, words = rng.draw_rows(streams, players + 1)
        draws = table_rows.uniform_from_bits(words)
        own = jnp.argmax(legal & (ranks == (number + jnp.arange(size)) % moves), axis=0).astype(jnp.int32)
        joint = [
            table_rows.sample_actions(table_rows.uniform_policy(theirs), draws[other])
            for other, theirs in enumerate(games.legal)
        ]
        joint[player] = own
        after = game.step(games, jnp.stack(joint), draws[players])
        ends, streams = play_to_end(game, (zero + 1, after, streams), steps)
        is_own = options == own
        payoff = jnp.where(ends.terminated, ends.payoff[player], 0)
        return counts + is_own, totals + jnp.where(is_own, payoff, 0), streams

    blank = jnp.zeros(legal.shape, jnp.int32), jnp.zeros(legal.shape, jnp.float32)
    found: Sums = jax.lax.fori_loop(0, rounds, play, (*blank, rng.make_streams(key, 0, size)))
    return found[0], found[1]
