"""The interface of learners: pure functions of one state, so that `training` runs, saves and resumes all of them."""

from collections.abc import Mapping
from typing import Any, Protocol

import jax

from gdlx.nets.models import encoders, networks


class Learner(Protocol):
    """Trains a policy network for one game; everything in the object itself is static.

    States are pytrees of arrays, random keys included.

    >>> from gdlx.envs import game_spec
    >>> from gdlx.nets.learners import learner_registry
    >>> import gdlx
    >>> settings = learner_registry.make_settings("self-play", {"games": "8"})
    >>> config = learner_registry.TrainConfig(game_spec.GameSpec("kuhn_poker"), "self-play", 4, settings)
    >>> learner = learner_registry.make_learner(config, gdlx.compile("kuhn_poker"), None)
    >>> state, metrics = learner.iterate(learner.init(jax.random.key(0)))
    >>> "loss" in metrics
    True
    """

    @property
    def encoder(self) -> encoders.Encoder:
        """What the networks see of the game."""

    @property
    def settings(self) -> Any:
        """Hyper-parameters: a frozen dataclass of the learner's module."""

    @property
    def network(self) -> networks.Network:
        """The policy network, a function of information states."""

    def init(self, key: jax.Array) -> Any:
        """Returns the state before the first iteration."""

    def iterate(self, state: Any) -> tuple[Any, Mapping[str, jax.Array]]:
        """Runs one iteration on the device. Returns the new state and scalar metrics, `loss` among them."""

    def policy_params(self, state: Any) -> Any:
        """Returns the parameters of `network` that are to be played."""
