"""Particle filters over histories: games that are consistent with a player's observations, in many groups at once.

A group of N games starts together. In every step the player repeats its action of the match, while all other players
and chance are sampled; games in which the player's information now differs are replaced by copies of the consistent
ones (a bootstrap particle filter, Gordon et al. 1993). So the games of a group approximate the distribution of
histories given the player's information, the better the larger N. With a_t the fraction that is consistent in step t,

    P(the player's observations | its own actions)  ~  a_1 a_2 .. a_t,

which is unbiased for any N. Copies are assigned by systematic resampling: each of k consistent games out of N has N / k
copies on average, and always within 1 of that.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from gdlx.envs.lowering import rng
from gdlx.envs.packed import packed_env
from gdlx.solvers.mccfr import table_policy, table_rows

MAX_PARTICLES = 2**15  # per group, so that products of two such numbers fit int32


class Particles(NamedTuple):
    """Axes: G groups of N games, in group order: lane = group * N + n."""

    games: packed_env.PackedState  # G N games
    log_likelihood: jax.Array  # [G] float32, log probability of the observations; -inf if no game was consistent


def start(game: packed_env.PackedEnv, groups: int, size: int) -> Particles:
    """Returns `groups` groups of `size` games in the initial state.

    Raises:
      ValueError: If `size` is not between 1 and MAX_PARTICLES.
    """
    if not 1 <= size <= MAX_PARTICLES:
        raise ValueError(f"`size=` must be 1 to {MAX_PARTICLES} games per group, not {size}")
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
    """Takes one joint action and resamples.

    Args:
      game: The game.
      particles: The games before the step.
      policies: Policies of the other players.
      key: A PRNG key, different in every step.
      player: The player whose observations are known.
      actions: int32[G], its actions.
      keys: Two words uint32[G] of its information keys after the step.

    Returns:
      The games after the step, and the fraction float32[G] of them that was consistent. If it is 0, the group is not
      resampled, and is no longer a belief.
    """
    groups = particles.log_likelihood.shape[0]
    size = particles.games.batch // groups
    _, words = rng.draw_rows(rng.make_streams(key, 0, groups * size), game.env.num_players + 3)
    *draws, offset, turn = table_rows.uniform_from_bits(words)
    moved = game.step(particles.games, _sample_joint_actions(particles, policies, draws, player, actions), draws[-1])
    high, low = (word[player].reshape(groups, size) for word in moved.keys)
    agrees = (high == keys[0][:, None]) & (low == keys[1][:, None])
    lanes = resample_lanes(agrees, offset[::size], turn[::size])
    games = jax.lax.cond(agrees.all(), lambda: moved, lambda: game.take(moved, lanes.reshape(-1)))
    accepted = jnp.mean(agrees, axis=1, dtype=jnp.float32)
    return Particles(games, particles.log_likelihood + jnp.log(accepted)), accepted


def _sample_joint_actions(
    particles: Particles,
    policies: table_policy.TablePolicies,
    draws: list[jax.Array],
    player: jax.Array | int,
    actions: jax.Array,
) -> jax.Array:
    """Returns the joint actions int32[P, G N]."""
    games = particles.games
    player_actions = jnp.repeat(actions, games.batch // actions.shape[0])
    # In groups without consistent games the action may be illegal; any legal one will do.
    legal = games.legal[player]
    player_actions = jnp.where(
        table_rows.select_actions(legal, player_actions) > 0,
        player_actions,
        jnp.argmax(legal, axis=0).astype(jnp.int32),
    )
    all_policies = table_policy.all_player_policies(policies, games)
    sampled = jnp.stack(
        [table_rows.sample_actions(policy, draw) for policy, draw in zip(all_policies, draws, strict=False)]
    )
    return jnp.where(np.arange(len(all_policies))[:, None] == player, player_actions, sampled)


def resample_lanes(agrees: jax.Array, offset: jax.Array, turn: jax.Array) -> jax.Array:
    """Returns int32[G, N], the lanes replacing each lane: only consistent ones (`agrees`, bool[G, N]), equally often.

    `offset` and `turn` are random float32[G] in [0, 1). A group without consistent lanes is not changed.
    """
    groups, size = agrees.shape
    count = jnp.sum(agrees, axis=1, keepdims=True, dtype=jnp.int32)
    lane = np.arange(groups * size, dtype=np.int32).reshape(groups, size)
    number = np.arange(size, dtype=np.int32)
    rank = jnp.cumsum(agrees, axis=1, dtype=jnp.int32) - 1
    place = jnp.where(agrees, lane - number + rank, groups * size)
    ranked = jnp.zeros(groups * size, jnp.int32).at[place].set(lane, mode="drop").reshape(groups, size)
    # Of the N k numbers n k + v with 0 <= v < k, N map to each rank, so that all are copied equally often on average.
    shift = jnp.minimum((offset[:, None] * count).astype(jnp.int32), count - 1)
    # Copies are contiguous. After a random rotation each lane alone is a fair draw from the consistent ones.
    rotated = (number + (turn[:, None] * size).astype(jnp.int32)) % size
    source_rank = (rotated * count + shift) // size
    return jnp.where(count > 0, jnp.take_along_axis(ranked, jnp.maximum(source_rank, 0), axis=1), lane)
