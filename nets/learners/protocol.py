"""What learns: pure functions of one state, so that one loop trains, keeps and resumes all of them (`training`)."""

from collections.abc import Mapping
from typing import Any, Protocol

import jax

from gdlx.nets.models import encoders, networks


class Learner(Protocol):
    """Of one game, with everything static. States are pytrees of arrays, keys of random numbers included."""

    @property
    def encoder(self) -> encoders.Encoder: ...

    @property
    def settings(self) -> Any:
        """A dataclass of its own."""

    @property
    def network(self) -> networks.Network:
        """Of information states: the policies that are played, once it has learnt."""

    def init(self, key: jax.Array) -> Any:
        """The state before the first iteration."""

    def iterate(self, state: Any) -> tuple[Any, Mapping[str, jax.Array]]:
        """One iteration, wholly on the device: the state afterwards, and numbers [] to show, `loss` among them."""

    def policy_params(self, state: Any) -> Any:
        """Parameters of `network`."""
