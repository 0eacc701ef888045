"""Matches in lockstep on the device, each player by a policy of its own: a network, a table, or anything that tells
probabilities of what a player knows.

    play(env, policies, parameters, key, matches, steps, window)

Policies are functions (their parameters, Seen) -> probabilities; parameters are arrays, so that new ones need no new
program.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from gdlx.envs import env as envs
from gdlx.envs.views import observation_window
from gdlx.nets.models import encoders, networks
from gdlx.solvers.mccfr import hash_table, table_policy, table_rows


class Observation(NamedTuple):
    """What one player knows, in every match. Axes: B matches, A moves."""

    window: observation_window.Window  # [B, ..] of all players
    key: jax.Array  # [B, 2] uint32
    legal: jax.Array  # [B, A] bool
    player: int


PolicyFn = Callable[[Any, Observation], jax.Array]  # -> [B, A]; 0 where nothing is legal


def uniform_policy(parameters: None, seen: Observation) -> jax.Array:
    del parameters
    return networks.uniform_policy(seen.legal)


def network_policy(encoder: encoders.Encoder, network: networks.Network) -> PolicyFn:
    """Parameters are the network's."""
    return functools.partial(_of_network, encoder, network)


def _of_network(encoder: encoders.Encoder, network: networks.Network, parameters: Any, seen: Observation) -> jax.Array:
    recent = seen.window._replace(
        moves=seen.window.moves[:, :, -encoder.steps :], percepts=seen.window.percepts[:, :, -encoder.steps :]
    )
    information = jax.vmap(encoder.information_state)(recent)[:, seen.player]
    told = networks.apply_network(network, parameters, information)
    return networks.masked_softmax(told.logits[:, seen.player], seen.legal)


def hash_table_policy(policy: table_policy.TablePolicy, seen: Observation) -> jax.Array:
    high, low = seen.key.T
    row = hash_table.lookup(policy.table, table_rows.player_keys(high, low, seen.player))
    return table_rows.proportional_policy(policy.cumulative_policy, row, seen.legal.T).T


class _RolloutState(NamedTuple):
    states: envs.State
    window: observation_window.Window
    reward: jax.Array  # [B, P]
    step: jax.Array  # []


def play(
    env: envs.Env,
    policies: tuple[PolicyFn, ...],
    parameters: tuple[Any, ...],
    key: jax.Array,
    *,
    matches: int,
    steps: int,
    window: int,
    first: int = 0,
) -> table_policy.MatchOutcomes:
    """Matches number first, first + 1, ..: what happens in one does not depend on how many are played at once.

    `window` is how far the network that looks back furthest does.
    """
    with jax.enable_x64(False):
        found: table_policy.MatchOutcomes = _play(
            env, policies, parameters, key, first, matches=matches, steps=steps, window=window
        )
    return found


@functools.partial(jax.jit, static_argnames=("env", "policies", "matches", "steps", "window"))
def _play(
    env: envs.Env,
    policies: tuple[PolicyFn, ...],
    parameters: tuple[Any, ...],
    key: jax.Array,
    first: jax.Array | int,
    *,
    matches: int,
    steps: int,
    window: int,
) -> table_policy.MatchOutcomes:
    keys = jax.vmap(functools.partial(jax.random.fold_in, key))(first + jnp.arange(matches))

    def move(now: _RolloutState) -> _RolloutState:
        of_step = jax.vmap(lambda own: jax.random.split(jax.random.fold_in(own, now.step), env.num_players + 1))(keys)
        actions = []
        for number, (policy, own) in enumerate(zip(policies, parameters, strict=True)):
            seen = Observation(now.window, now.states.info_key[:, number], now.states.legal_mask[:, number], number)
            actions.append(jax.vmap(sample_actions)(of_step[:, number], policy(own, seen)))
        states = jax.vmap(env.step)(now.states, jnp.stack(actions, axis=1), of_step[:, -1])
        return _RolloutState(
            states, jax.vmap(observation_window.update)(now.window, states), now.reward + states.rewards, now.step + 1
        )

    def goes_on(now: _RolloutState) -> jax.Array:
        return (now.step < steps) & ~now.states.terminated.all()

    start = env.init()
    one = _RolloutState(start, observation_window.init(env, start, steps=window), start.rewards, start.step)
    every = jax.tree.map(lambda x: jnp.broadcast_to(x, (matches, *x.shape)), one)
    done = jax.lax.while_loop(goes_on, move, every._replace(step=start.step))
    last = done.states
    return table_policy.MatchOutcomes(done.reward.T, last.step, last.terminated, last.unplayable, last.goal_conflict)


def sample_actions(key: jax.Array, probability: jax.Array) -> jax.Array:
    """int32[..] of [.., A]; 0 where nothing can be drawn."""
    logits = jnp.where(probability > 0, jnp.log(jnp.maximum(probability, 1e-30)), -jnp.inf)
    possible = (probability > 0).any(axis=-1, keepdims=True)
    return jax.random.categorical(key, jnp.where(possible, logits, 0.0), axis=-1).astype(jnp.int32)
