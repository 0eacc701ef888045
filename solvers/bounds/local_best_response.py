"""Local best response (Lisy & Bowling 2017): a player who looks one action ahead, in any game and without a tree.

In every match the responder has a belief: a group of games that are consistent with its observations while the others
played their frozen policies (`search.particle_filter`). Before each decision it tries all its actions in these games,
each in an equal part of them, followed by rollouts of the frozen policies, its own included. It takes the action with
the highest mean payoff v(a) if that improves on its frozen policy by more than the standard error e(a) of the mean,

    v(a) - sum_b p(b) v(b) > e(a),

with p its own frozen policy, which it follows otherwise, and also where no game is consistent with its observations.
The responder plays some policy, so that a best response gets at least as much. Few games in a group lead to poor
decisions, which lower the bound but never invalidate it.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from gdlx.envs.lowering import rng
from gdlx.envs.packed import packed_env
from gdlx.solvers.bounds import approximate_response
from gdlx.solvers.mccfr import table_policy, table_rows
from gdlx.solvers.search import particle_filter


class ResponderConfig(NamedTuple):
    """Static settings. `steps` is the capacity for joint actions; each of `matches` beliefs has `size` games."""

    steps: int
    matches: int = 32
    size: int = 512


class _Playing(NamedTuple):
    """The state of matches. Axes: M matches, N games in a belief."""

    step: jax.Array  # [] int32
    games: packed_env.PackedState  # M
    beliefs: particle_filter.Particles  # M groups of N
    key: jax.Array


@functools.partial(jax.jit, static_argnames=("game", "config"))
def play(
    game: packed_env.PackedEnv,
    policies: table_policy.TablePolicies,
    key: jax.Array,
    player: jax.Array | int,
    *,
    config: ResponderConfig,
) -> jax.Array:
    """Play matches of a responder against frozen policies, and return its payoffs float32[M]."""

    def move(now: _Playing) -> _Playing:
        action_key, rollout_key, belief_key, key = jax.random.split(now.key, 4)
        _, words = rng.draw_rows(rng.make_streams(action_key, 0, config.matches), game.env.num_players + 1)
        draws = table_rows.uniform_from_bits(words)
        response = _respond(game, policies, now, rollout_key, player, config)
        actions = approximate_response.sample_joint_action(
            policies, now.games, player, response, response.sum(axis=0) > 0, draws
        )
        games = game.step(now.games, actions, draws[-1])
        high, low = games.keys
        beliefs, _ = particle_filter.step(
            game,
            now.beliefs,
            policies,
            belief_key,
            player=player,
            actions=actions[player],
            keys=(high[player], low[player]),
        )
        return _Playing(now.step + 1, games, beliefs, key)

    start = _Playing(
        jnp.zeros((), jnp.int32),
        game.start(config.matches),
        particle_filter.start(game, config.matches, config.size),
        key,
    )
    done = jax.lax.while_loop(lambda now: (now.step < config.steps) & ~now.games.terminated.all(), move, start)
    return approximate_response.player_payoff(game, done.games, player)


def _respond(
    game: packed_env.PackedEnv,
    policies: table_policy.TablePolicies,
    now: _Playing,
    key: jax.Array,
    player: jax.Array | int,
    config: ResponderConfig,
) -> jax.Array:
    """Returns float32[A, M]: 1 for the action to take, all 0 where the responder follows its frozen policy."""
    legal = now.games.legal[player]
    is_able = (jnp.sum(legal, axis=0) > 1) & jnp.isfinite(now.beliefs.log_likelihood)
    frozen = table_policy.all_player_policies(policies, now.games)[player]

    def better() -> jax.Array:
        tried = assign_actions_evenly(legal, config.size)
        payoff = _roll_out(game, policies, now, tried, key, player, config)
        mean, error = mean_payoff_by_action(tried, payoff, legal.shape[0])
        best = jnp.argmax(jnp.where(legal, mean, -jnp.inf), axis=0)
        frozen_value = jnp.sum(jnp.where(legal, frozen * mean, 0), axis=0)
        is_better = table_rows.select_actions(mean, best) - frozen_value > table_rows.select_actions(error, best)
        return jnp.where((np.arange(legal.shape[0])[:, None] == best) & is_able & is_better, 1.0, 0.0)

    response: jax.Array = jax.lax.cond(is_able.any(), better, lambda: jnp.zeros(legal.shape, jnp.float32))
    return response


def assign_actions_evenly(legal: jax.Array, size: int) -> jax.Array:
    """Assigns an action to every game: bool[A, M] -> int32[M, N], with counts of legal actions differing by at most 1.

    Neighbours get different actions, because copies of one game are neighbours.
    """
    rank = np.arange(size)[:, None, None] % jnp.maximum(jnp.sum(legal, axis=0), 1)[:, None]  # [N, M, 1]
    before = jnp.cumsum(legal, axis=0).T  # [M, A] legal actions up to each
    return jnp.sum(before <= rank, axis=2, dtype=jnp.int32).T


def mean_payoff_by_action(tried: jax.Array, payoff: jax.Array, moves: int) -> tuple[jax.Array, jax.Array]:
    """Returns the mean payoff [A, M] of each action and its standard error, from actions and payoffs [M, N].

    Actions that were never tried have -inf and 0.
    """
    is_tried = tried == np.arange(moves)[:, None, None]
    count = jnp.sum(is_tried, axis=2)
    each = jnp.maximum(count, 1)
    mean = jnp.sum(jnp.where(is_tried, payoff, 0), axis=2) / each
    square = jnp.sum(jnp.where(is_tried, (payoff - mean[..., None]) ** 2, 0), axis=2) / each
    return jnp.where(count > 0, mean, -jnp.inf), jnp.sqrt(square / each)


def _roll_out(
    game: packed_env.PackedEnv,
    policies: table_policy.TablePolicies,
    now: _Playing,
    tried: jax.Array,
    key: jax.Array,
    player: jax.Array | int,
    config: ResponderConfig,
) -> jax.Array:
    """Returns payoffs float32[M, N] of the player after an action in every game of its belief and frozen rollouts."""
    lanes = config.matches * config.size

    def move(
        carry: tuple[jax.Array, packed_env.PackedState, rng.Streams],
    ) -> tuple[jax.Array, packed_env.PackedState, rng.Streams]:
        step, games, streams = carry
        streams, words = rng.draw_rows(streams, game.env.num_players + 1)
        draws = table_rows.uniform_from_bits(words)
        first = (np.arange(game.env.num_actions)[:, None] == tried.reshape(-1)).astype(jnp.float32)
        is_first = jnp.broadcast_to(step == now.step, (lanes,))
        actions = approximate_response.sample_joint_action(policies, games, player, first, is_first, draws)
        return step + 1, game.step(games, actions, draws[-1]), streams

    start = (now.step, now.beliefs.games, rng.make_streams(key, 0, lanes))
    _, games, _ = jax.lax.while_loop(lambda c: (c[0] < config.steps) & ~c[1].terminated.all(), move, start)
    return approximate_response.player_payoff(game, games, player).reshape(tried.shape)
