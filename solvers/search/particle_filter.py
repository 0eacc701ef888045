"""What a player may believe: games that agree with all it has seen, many for each of several information sets.

A group of N games starts together. In every step the player makes the move that it made, everybody else draws from its
policy and chance draws; games in which the player would now know something else are replaced by copies of those that
agree (a bootstrap particle filter, Gordon et al. 1993). So the games of a group are spread as the histories are,
given what the player knows, the better the more there are. With a_t the part that agrees in step t,

    P(what the player has seen | its own moves)  ~  a_1 a_2 .. a_t,

whose mean is right for any N. Copies are dealt out evenly from a random start (systematic resampling), so that a game
of k in N has N / k copies on average, and never misses that by 1 or more.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from gdlx.envs.lowering import rng
from gdlx.envs.packed import packed_env
from gdlx.solvers.mccfr import table_policy, table_rows

MAX_PARTICLES = 2**15  # games of a group: products of two such numbers are int32


class Particles(NamedTuple):
    """Axes: G groups of N games, lanes in order of groups: lane = group * N + n."""

    games: packed_env.PackedState  # of G N games
    log_likelihood: jax.Array  # [G] float32, log probability of what was seen; -inf where no game agreed


def start(game: packed_env.PackedEnv, groups: int, size: int) -> Particles:
    """Before the first move."""
    if not 1 <= size <= MAX_PARTICLES:
        raise ValueError(f"a group has 1 to {MAX_PARTICLES} games, not {size}")
    return Particles(game.start(groups * size), jnp.zeros(groups, jnp.float32))


def step(
    game: packed_env.PackedEnv,
    particles: Particles,
    policies: table_policy.TablePolicies,
    key: jax.Array,
    *,
    player: jax.Array | int,
    actions: jax.Array,
    keys: tuple[jax.Array, jax.Array],
) -> tuple[Particles, jax.Array]:
    """One joint move: `player` makes int32[G] actions, and then knows what has the info keys uint32[G] twice.

    Also tells the part float32[G] of the games that agreed. Where none does, a group goes on as it is, with nothing to
    believe. Give every step a key of its own.
    """
    groups = particles.log_likelihood.shape[0]
    size = particles.games.batch // groups
    _, words = rng.draw_rows(rng.make_streams(key, 0, groups * size), game.env.num_players + 3)
    *draws, offset, turn = table_rows.uniform_from_bits(words)
    moved = game.step(particles.games, _joint(particles, policies, draws, player, actions), draws[-1])
    high, low = (word[player].reshape(groups, size) for word in moved.keys)
    agrees = (high == keys[0][:, None]) & (low == keys[1][:, None])
    lanes = resample_lanes(agrees, offset[::size], turn[::size])
    games = jax.lax.cond(agrees.all(), lambda: moved, lambda: game.take(moved, lanes.reshape(-1)))
    accepted = jnp.mean(agrees, axis=1, dtype=jnp.float32)
    return Particles(games, particles.log_likelihood + jnp.log(accepted)), accepted


def _joint(
    particles: Particles,
    policies: table_policy.TablePolicies,
    draws: list[jax.Array],
    player: jax.Array | int,
    actions: jax.Array,
) -> jax.Array:
    """int32[P, G N] moves of all players."""
    games = particles.games
    own = jnp.repeat(actions, games.batch // actions.shape[0])
    # In games that agree with nothing the move may be illegal; any other does as well.
    legal = games.legal[player]
    own = jnp.where(table_rows.select_actions(legal, own) > 0, own, jnp.argmax(legal, axis=0).astype(jnp.int32))
    frozen = table_policy.all_player_policies(policies, games)
    drawn = jnp.stack([table_rows.sample_actions(policy, draw) for policy, draw in zip(frozen, draws, strict=False)])
    return jnp.where(np.arange(len(frozen))[:, None] == player, own, drawn)


def resample_lanes(agrees: jax.Array, offset: jax.Array, turn: jax.Array) -> jax.Array:
    """int32[G, N] lanes that are put in the place of each: only ones that agree (bool[G, N]), all equally often.

    Offset and turn are random float32[G] in [0, 1). A group without any that agree stays as it is.
    """
    groups, size = agrees.shape
    count = jnp.sum(agrees, axis=1, keepdims=True, dtype=jnp.int32)
    lane = np.arange(groups * size, dtype=np.int32).reshape(groups, size)
    number = np.arange(size, dtype=np.int32)
    rank = jnp.cumsum(agrees, axis=1, dtype=jnp.int32) - 1
    place = jnp.where(agrees, lane - number + rank, groups * size)
    ranked = jnp.zeros(groups * size, jnp.int32).at[place].set(lane, mode="drop").reshape(groups, size)
    # Of the N k numbers n k + v with 0 <= v < k, each rank has N, so that all are copied equally often on average.
    shift = jnp.minimum((offset[:, None] * count).astype(jnp.int32), count - 1)
    # Copies are side by side. Turned round by chance, each game alone is a fair draw from those that agree.
    turned = (number + (turn[:, None] * size).astype(jnp.int32)) % size
    wanted = (turned * count + shift) // size
    return jnp.where(count > 0, jnp.take_along_axis(ranked, jnp.maximum(wanted, 0), axis=1), lane)
