"""Agents that compute their policy once for a game and then play it: vectorised on the device, or match by match."""

import abc
import dataclasses
import weakref
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gdlx.envs.states import known_state
from gdlx.envs.views import history, info_key
from gdlx.players.agents import agent
from gdlx.solvers.mccfr import table_policy, table_rows


class HostPolicy(NamedTuple):
    """A policy on the host, which needs no compiled programs. Axes: N information sets, A moves, R registers."""

    keys: npt.NDArray[np.uint64]  # [N] sorted
    probability: npt.NDArray[np.float64]  # [N, A]
    state_constants: info_key.HashConstants | None = None  # [R, 2] as in TablePolicy

    def at(self, view: history.ActionObservationHistory) -> npt.NDArray[np.float64]:
        """Probabilities of the legal moves; uniform if the information set is not in the table."""
        if self.state_constants is None:
            high, low = view.keys[-1].tolist()
        else:
            high, low = table_policy.state_key(known_state.known_state(view), self.state_constants)
        key = _pack_keys(high ^ table_rows.player_salt(view.player), low)
        row = int(np.searchsorted(self.keys, key))
        legal = list(view.legal)
        if row < len(self.keys) and self.keys[row] == key:
            weights = self.probability[row, legal]
            if (total := weights.sum()) > 0:
                return np.asarray(weights / total)
        return np.full(len(legal), 1 / len(legal))


def to_host_policy(policy: table_policy.TablePolicy) -> HostPolicy:
    """Copies a policy from the device."""
    (high, low), probability = table_policy.to_arrays(policy)
    keys = _pack_keys(high, low)
    order = np.argsort(keys)
    constants = None if policy.state_constants is None else np.asarray(policy.state_constants)
    return HostPolicy(keys[order], np.asarray(probability[order], np.float64), constants)


def _pack_keys(high: Any, low: Any) -> Any:
    return np.asarray(high, np.uint64) << np.uint64(32) | np.asarray(low, np.uint64)


@dataclasses.dataclass(frozen=True)
class TablePlayer:
    """Samples its moves from a policy."""

    policy: HostPolicy
    random: np.random.Generator

    def choose(self, view: history.ActionObservationHistory, clock: agent.Clock) -> int:
        del clock
        return int(self.random.choice(view.legal, p=self.policy.at(view)))


class _PreparedPolicy(NamedTuple):
    policy: table_policy.TablePolicy
    lookup: HostPolicy


@dataclasses.dataclass(frozen=True)
class TableAgent(abc.ABC):
    """An agent that plays a table policy. `learn` is called once for a game, before any clock runs."""

    name: str
    _prepared: weakref.WeakKeyDictionary[agent.Arena, _PreparedPolicy] = dataclasses.field(
        default_factory=weakref.WeakKeyDictionary, init=False, repr=False, compare=False
    )

    @abc.abstractmethod
    def learn(self, arena: agent.Arena) -> table_policy.TablePolicy:
        """Returns the policy for a game."""

    def prepare(self, arena: agent.Arena) -> None:
        if arena not in self._prepared:
            policy = self.learn(arena)
            self._prepared[arena] = _PreparedPolicy(policy, to_host_policy(policy))

    def policy(self, arena: agent.Arena) -> table_policy.TablePolicy:
        self.prepare(arena)
        return self._prepared[arena].policy

    def start_match(self, context: agent.PlayerContext, clock: agent.Clock) -> TablePlayer:
        del clock
        self.prepare(context.arena)
        return TablePlayer(self._prepared[context.arena].lookup, context.random)
