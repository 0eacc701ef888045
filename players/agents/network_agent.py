"""Agents that play by networks: of `gdlx train` (`net`), in lockstep on the device or one match by one."""

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
    """What is played in lockstep."""

    encoder: encoders.Encoder
    network: networks.Network
    parameters: Any


@dataclasses.dataclass(frozen=True)
class NetworkAgent:
    """Plays the policies of trained networks, without search."""

    name: str
    folder: str
    _kept: weakref.WeakKeyDictionary[agent.Arena, NetworkPolicy] = dataclasses.field(
        default_factory=weakref.WeakKeyDictionary, init=False, repr=False, compare=False
    )

    def prepare(self, arena: agent.Arena) -> None:
        if arena not in self._kept:
            self._kept[arena] = load_policy(pathlib.Path(self.folder), arena)
            _probabilities(
                self._kept[arena],
                0,
                *_rows(self._kept[arena].encoder, history.ActionObservationHistory(arena.env, 0, ())),
            )

    def sources(self) -> list[pathlib.Path]:
        return checkpoints.last_files(pathlib.Path(self.folder))

    def policy(self, arena: agent.Arena) -> NetworkPolicy:
        self.prepare(arena)
        return self._kept[arena]

    def start_match(self, seat: agent.PlayerContext, clock: agent.Clock) -> "NetworkPlayer":
        del clock
        return NetworkPlayer(self.policy(seat.arena), seat.random)


@dataclasses.dataclass(frozen=True)
class NetworkPlayer:
    policy: NetworkPolicy
    random: np.random.Generator

    def choose(self, view: history.ActionObservationHistory, clock: agent.Clock) -> int:
        del clock
        return int(self.random.choice(view.legal, p=legal_action_probabilities(self.policy, view)))


def load_policy(folder: pathlib.Path, arena: agent.Arena) -> NetworkPolicy:
    """Networks of this very game."""
    found = _restore(folder, arena)
    return NetworkPolicy(found.learner.encoder, found.learner.network, found.learner.policy_params(found.state))


def _restore(folder: pathlib.Path, arena: agent.Arena) -> checkpoints.RestoredTraining:
    return checkpoints.restore_training(folder, arena.env.net, payoff=arena.game.payoff)


def load_value_function(folder: str, arena: agent.Arena) -> subtree_cfr.ValueFn:
    """What the network of whole states says that they are worth."""
    of_arena = _VALUES.setdefault(arena, {})
    if folder not in of_arena:
        of_arena[folder] = _state_values(pathlib.Path(folder), arena)
    return of_arena[folder]


_VALUES: weakref.WeakKeyDictionary[agent.Arena, dict[str, subtree_cfr.ValueFn]] = weakref.WeakKeyDictionary()


def _state_values(folder: pathlib.Path, arena: agent.Arena) -> subtree_cfr.ValueFn:
    found = _restore(folder, arena)
    learner = found.learner
    if not isinstance(learner, self_play.SelfPlay):
        raise agent.AgentError(f"{folder} has no network of whole states; train one with the learner self-play")
    told = jax.jit(functools.partial(learner.values, found.state))

    def values(registers: npt.NDArray[np.bool_], steps: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]:
        seen = learner.encoder.encode_registers(registers, steps)
        room = 1 << (len(seen) - 1).bit_length()  # few sizes, so few programs
        padded = np.concatenate([seen, np.zeros((room - len(seen), seen.shape[1]), np.float32)])
        return np.asarray(told(padded), np.float64)[: len(seen)].T

    return values


def legal_action_probabilities(
    policy: NetworkPolicy, view: history.ActionObservationHistory
) -> npt.NDArray[np.float64]:
    """Of the legal moves."""
    window, key = _rows(policy.encoder, view)
    found = np.asarray(_probabilities(policy, view.player, window, key), np.float64)[list(view.legal)]
    return np.asarray(found / found.sum())


def _rows(
    encoder: encoders.Encoder, view: history.ActionObservationHistory
) -> tuple[observation_window.Window, npt.NDArray[np.uint32]]:
    """What a player has seen, as the window of all players: the others have done and seen nothing in it."""
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
    found: jax.Array = _apply_policy(
        policy.encoder, policy.network, policy.parameters, window, jnp.asarray(key), player=player
    )
    return found


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
    """Matches in lockstep in which some players are networks."""
    kinds = tuple(
        vectorised_play.network_policy(own.encoder, own.network)
        if isinstance(own, NetworkPolicy)
        else vectorised_play.hash_table_policy
        for own in policies
    )
    parameters = tuple(own.parameters if isinstance(own, NetworkPolicy) else own for own in policies)
    window = max((own.encoder.steps for own in policies if isinstance(own, NetworkPolicy)), default=1)
    return vectorised_play.play(
        arena.env, kinds, parameters, key, matches=matches, steps=arena.steps, window=window, first=first
    )
