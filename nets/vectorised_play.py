"""Vectorised matches on the device, in which each player has its own policy: a network, a table, or any function.

    play(env, policies, parameters, key, matches, steps, window)

Policies are functions (parameters, Observation) -> probabilities. Parameters are arrays, so that new ones need no
recompilation.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from gdlx.envs import env as envs
from gdlx.envs.views import info_key, observation_window
from gdlx.nets.models import encoders, networks
from gdlx.solvers.mccfr import hash_table, table_policy, table_rows


class Observation(NamedTuple):
    """The information of one player in every match. Axes: B matches, A actions."""

    window: observation_window.Window  # [B, ..] of all players
    key: jax.Array  # [B, 2] uint32, of the information set
    legal: jax.Array  # [B, A] bool
    player: int
    registers: jax.Array | None = None  # [B, R] bool, of the state, for policies by state; None where there are none


PolicyFn = Callable[[Any, Observation], jax.Array]  # -> [B, A]; 0 where nothing is legal


def uniform_policy(parameters: None, seen: Observation) -> jax.Array:
    """Uniform over legal actions."""
    del parameters
    return networks.uniform_policy(seen.legal)


def network_policy(encoder: encoders.Encoder, network: networks.Network) -> PolicyFn:
    """A policy network; its parameters are those of the network."""
    return _NetworkPolicy(encoder, network)


@dataclasses.dataclass(frozen=True)
class _NetworkPolicy:
    """Equal if its network is, so that `play` compiles once for all measurements of a training."""

    encoder: encoders.Encoder
    network: networks.Network

    def __call__(self, parameters: Any, seen: Observation) -> jax.Array:
        steps = self.encoder.steps
        recent = seen.window._replace(
            moves=seen.window.moves[:, :, -steps:], percepts=seen.window.percepts[:, :, -steps:]
        )
        information = jax.vmap(self.encoder.information_state)(recent)[:, seen.player]
        output = networks.apply_network(self.network, parameters, information)
        return networks.masked_softmax(output.logits[:, seen.player], seen.legal)


def hash_table_policy(policy: table_policy.TablePolicy, seen: Observation) -> jax.Array:
    """A table policy, which is its own parameters."""
    if policy.state_constants is None:
        high, low = seen.key.T
    else:
        assert seen.registers is not None
        constants = policy.state_constants
        high, low = jax.vmap(lambda bits: info_key.hash_bits(bits, constants))(seen.registers).T
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
    """Plays matches number first, first + 1, ...; a match does not depend on how many are played at once.

    Args:
      env: the game.
      policies: one for every player.
      parameters: of these policies.
      key: random key, consumed.
      matches: number of matches.
      steps: joint actions after which matches are stopped.
      window: steps of the observation window: the longest of all networks.
      first: number of the first match.

    Returns:
      Payoffs and ends of the matches.
    """
    with jax.enable_x64(False):
        outcomes: table_policy.MatchOutcomes = _play(
            env, policies, parameters, key, first, matches=matches, steps=steps, window=window
        )
    return outcomes


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
    env = env.tracking("info_key", "percepts", "actions")
    keys = jax.vmap(functools.partial(jax.random.fold_in, key))(first + jnp.arange(matches))

    def step(now: _RolloutState) -> _RolloutState:
        step_keys = jax.vmap(lambda key: jax.random.split(jax.random.fold_in(key, now.step), env.num_players + 1))(keys)
        actions = []
        for number, (policy, params) in enumerate(zip(policies, parameters, strict=True)):
            seen = Observation(
                now.window,
                now.states.info_key[:, number],
                now.states.legal_mask[:, number],
                number,
                now.states.registers,
            )
            actions.append(jax.vmap(sample_actions)(step_keys[:, number], policy(params, seen)))
        states = jax.vmap(env.step)(now.states, jnp.stack(actions, axis=1), step_keys[:, -1])
        return _RolloutState(
            states, jax.vmap(observation_window.update)(now.window, states), now.reward + states.rewards, now.step + 1
        )

    def is_running(now: _RolloutState) -> jax.Array:
        return (now.step < steps) & ~now.states.terminated.all()

    start = env.init()
    single = _RolloutState(start, observation_window.init(env, start, steps=window), start.rewards, start.step)
    batch = jax.tree.map(lambda x: jnp.broadcast_to(x, (matches, *x.shape)), single)
    final = jax.lax.while_loop(is_running, step, batch._replace(step=start.step))
    last = final.states
    return table_policy.MatchOutcomes(final.reward.T, last.step, last.terminated, last.unplayable, last.goal_conflict)


def sample_actions(key: jax.Array, probability: jax.Array) -> jax.Array:
    """int32[..] of [.., A]; 0 where nothing can be drawn."""
    logits = jnp.where(probability > 0, jnp.log(jnp.maximum(probability, 1e-30)), -jnp.inf)
    possible = (probability > 0).any(axis=-1, keepdims=True)
    return jax.random.categorical(key, jnp.where(possible, logits, 0.0), axis=-1).astype(jnp.int32)
