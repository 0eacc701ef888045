"""Agents that play trained networks (`network`), vectorised on the device or match by match."""

import dataclasses
import functools
import pathlib
import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from gdlx.envs.views import history, observation_window
from gdlx.nets import checkpoints, vectorised_play
from gdlx.nets.learners import self_play
from gdlx.nets.models import encoders, networks
from gdlx.players.agents import agent
from gdlx.solvers.mccfr import table_policy
from gdlx.solvers.search import subtree_cfr


class NetworkPolicy(NamedTuple):
    """A policy network and its parameters, as vectorised matches need them."""

    encoder: encoders.Encoder
    network: networks.Network
    parameters: Any


@dataclasses.dataclass(frozen=True)
class NetworkAgent:
    """Samples moves from a policy network, without search.

    Options:
      folder: written by `gdlx train`; may be written without its name: `network:FOLDER`.
    """

    name: str
    folder: str
    _policies: weakref.WeakKeyDictionary[agent.Arena, NetworkPolicy] = dataclasses.field(
        default_factory=weakref.WeakKeyDictionary, init=False, repr=False, compare=False
    )

    def prepare(self, arena: agent.Arena) -> None:
        if arena not in self._policies:
            policy = load_policy(pathlib.Path(self.folder), arena)
            self._policies[arena] = policy
            view = history.ActionObservationHistory(arena.env, 0, ())
            _probabilities(policy, 0, *_rows(policy.encoder, view))  # compiles

    def sources(self) -> list[pathlib.Path]:
        return checkpoints.last_files(pathlib.Path(self.folder))

    def policy(self, arena: agent.Arena) -> NetworkPolicy:
        self.prepare(arena)
        return self._policies[arena]

    def start_match(self, context: agent.PlayerContext, clock: agent.Clock) -> "NetworkPlayer":
        del clock
        return NetworkPlayer(self.policy(context.arena), context.random)


@dataclasses.dataclass(frozen=True)
class NetworkPlayer:
    """Samples moves from a policy network."""

    policy: NetworkPolicy
    random: np.random.Generator

    def choose(self, view: history.ActionObservationHistory, clock: agent.Clock) -> int:
        del clock
        return int(self.random.choice(view.legal, p=legal_action_probabilities(self.policy, view)))


def load_policy(folder: pathlib.Path, arena: agent.Arena) -> NetworkPolicy:
    """The policy network in a folder, which must have been trained for this game."""
    restored = _restore(folder, arena)
    learner = restored.learner
    return NetworkPolicy(learner.encoder, learner.network, learner.policy_params(restored.state))


def _restore(folder: pathlib.Path, arena: agent.Arena) -> checkpoints.RestoredTraining:
    return checkpoints.restore_training(folder, arena.env.propnet, payoff=arena.game.payoff)


def load_value_function(folder: str, arena: agent.Arena) -> subtree_cfr.ValueFn:
    """The values that the state network in a folder predicts."""
    by_folder = _VALUES.setdefault(arena, {})
    if folder not in by_folder:
        by_folder[folder] = _state_values(pathlib.Path(folder), arena)
    return by_folder[folder]


_VALUES: weakref.WeakKeyDictionary[agent.Arena, dict[str, subtree_cfr.ValueFn]] = weakref.WeakKeyDictionary()


def _state_values(folder: pathlib.Path, arena: agent.Arena) -> subtree_cfr.ValueFn:
    restored = _restore(folder, arena)
    learner = restored.learner
    if not isinstance(learner, self_play.SelfPlay):
        raise agent.AgentError(f"{folder} has no state network; train one with the learner self-play")
    predict = jax.jit(functools.partial(learner.values, restored.state))

    def values(registers: npt.NDArray[np.bool_], steps: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]:
        features = learner.encoder.encode_registers(registers, steps)
        size = 1 << (len(features) - 1).bit_length()  # powers of two, so that few programs are compiled
        padded = np.concatenate([features, np.zeros((size - len(features), features.shape[1]), np.float32)])
        return np.asarray(predict(padded), np.float64)[: len(features)].T

    return values


def legal_action_probabilities(
    policy: NetworkPolicy, view: history.ActionObservationHistory
) -> npt.NDArray[np.float64]:
    """Probabilities of the legal moves."""
    window, key = _rows(policy.encoder, view)
    probabilities = np.asarray(_probabilities(policy, view.player, window, key), np.float64)[list(view.legal)]
    return np.asarray(probabilities / probabilities.sum())


def _rows(
    encoder: encoders.Encoder, view: history.ActionObservationHistory
) -> tuple[observation_window.Window, npt.NDArray[np.uint32]]:
    """A player's history as an observation window, which is empty for the others."""
    env, steps = encoder.env, encoder.steps
    moves = np.zeros((env.num_players, steps, env.num_actions), np.bool_)
    percepts = np.zeros((env.num_players, steps, env.num_percepts), np.bool_)
    recent = view.events[-steps:]
    for at, event in enumerate(recent, start=steps - len(recent)):
        moves[view.player, at, event.move] = True
        percepts[view.player, at, list(event.percepts)] = True
    legal = np.zeros((env.num_players, env.num_actions), np.bool_)
    legal[view.player, list(view.legal)] = True
    return observation_window.Window(*map(jnp.asarray, (moves, percepts, legal, np.int32(view.step)))), view.keys[-1]


def _probabilities(
    policy: NetworkPolicy, player: int, window: observation_window.Window, key: npt.NDArray[np.uint32]
) -> jax.Array:
    probabilities: jax.Array = _apply_policy(
        policy.encoder, policy.network, policy.parameters, window, jnp.asarray(key), player=player
    )
    return probabilities


@functools.partial(jax.jit, static_argnames=("encoder", "network", "player"))
def _apply_policy(
    encoder: encoders.Encoder,
    network: networks.Network,
    parameters: Any,
    window: observation_window.Window,
    key: jax.Array,
    *,
    player: int,
) -> jax.Array:
    one = jax.tree.map(lambda x: x[None], window)
    seen = vectorised_play.Observation(one, key[None], window.legal[player][None], player)
    return vectorised_play.network_policy(encoder, network)(parameters, seen)[0]


def play_matches(
    arena: agent.Arena,
    policies: Sequence[table_policy.TablePolicy | NetworkPolicy],
    key: jax.Array,
    *,
    matches: int,
    first: int,
) -> table_policy.MatchOutcomes:
    """Vectorised matches in which some players are networks."""
    kinds = tuple(
        vectorised_play.network_policy(policy.encoder, policy.network)
        if isinstance(policy, NetworkPolicy)
        else vectorised_play.hash_table_policy
        for policy in policies
    )
    parameters = tuple(policy.parameters if isinstance(policy, NetworkPolicy) else policy for policy in policies)
    window = max((policy.encoder.steps for policy in policies if isinstance(policy, NetworkPolicy)), default=1)
    return vectorised_play.play(
        arena.env, kinds, parameters, key, matches=matches, steps=arena.steps, window=window, first=first
    )
