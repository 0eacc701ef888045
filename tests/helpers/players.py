"""Agents and arenas shared by tests of matches."""

import dataclasses
import functools
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from gdlx.envs.views import history
from gdlx.players.agents import agent, table_agent
from gdlx.players.matches import arenas
from gdlx.solvers import tabular_policies
from gdlx.solvers.mccfr import table_policy
from gdlx.tests.helpers import samples


@functools.cache
def load_arena(game: str) -> agent.Arena:
    """Cached, so that tests share its compiled programs."""
    return arenas.make_arena(game)


def random_policies(game: str, seed: int) -> tabular_policies.Policies:
    rng = np.random.default_rng(seed)
    players = samples.load_tree(game).players
    return tuple(tabular_policies.normalise(player, rng.uniform(0, 1, player.sequences) ** 2) for player in players)


@dataclasses.dataclass(frozen=True)
class TreePolicyAgent(table_agent.TableAgent):
    """Plays tabular policies of a tree, vectorised."""

    game: str
    policies: tabular_policies.Policies

    def learn(self, arena: agent.Arena) -> table_policy.TablePolicy:
        return table_policy.from_tabular(self.policies, arena.env, samples.load_tree(self.game))


@dataclasses.dataclass(frozen=True)
class UnbatchedAgent:
    """Wraps an agent without exposing its policy, so that it chooses move by move."""

    inner: agent.Agent

    @property
    def name(self) -> str:
        return self.inner.name

    def start_match(self, context: agent.PlayerContext, clock: agent.Clock) -> agent.Player:
        return self.inner.start_match(context, clock)


@dataclasses.dataclass(frozen=True)
class FunctionAgent:
    """Chooses by a function of the history and the clock; `views` are the histories it has been called with."""

    answer: Callable[[history.ActionObservationHistory, agent.Clock], Any]
    name: str = "does"
    views: list[history.ActionObservationHistory] = dataclasses.field(default_factory=list)

    def start_match(self, context: agent.PlayerContext, clock: agent.Clock) -> "FunctionAgent":
        del context, clock
        return self

    def choose(self, view: history.ActionObservationHistory, clock: agent.Clock) -> Any:
        self.views.append(view)
        return self.answer(view, clock)


def choose_first(view: history.ActionObservationHistory, clock: agent.Clock) -> int:
    del clock
    return view.legal[0]


@dataclasses.dataclass(frozen=True)
class HangingAgent:
    """Blocks in `start_match` or in `choose` until it is released."""

    where: str
    release: threading.Event = dataclasses.field(default_factory=threading.Event)
    name: str = "hangs"

    def start_match(self, context: agent.PlayerContext, clock: agent.Clock) -> "HangingAgent":
        if self.where == "sit":
            self.release.wait()
        return self

    def choose(self, view: history.ActionObservationHistory, clock: agent.Clock) -> int:
        if self.where == "choose":
            self.release.wait()
        return view.legal[0]
