"""One match on the host, as the bridges to Gymnasium and PettingZoo play it: decisions, chance, observations, masks."""

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from gdlx.envs import env as envs
from gdlx.envs import game_spec, host, make_env, payoffs
from gdlx.envs.views import observation_window

MAX_STEPS = 1_000
_MOST_DEALS = 1_000
RenderMode = Literal["ansi"]
Bits = npt.NDArray[np.int8]


class HostMatch:
    """A match that stops where a player has a choice; chance is drawn on the way.

    Attributes:
      env: the game.
      node: where the match is.

    >>> match = HostMatch("kuhn_poker")
    >>> match.reset(np.random.default_rng(0))
    >>> match.node.deciders, match.mask(0).tolist(), match.observe(0).shape
    ((0,), [1, 0, 1, 0, 0], (65,))
    """

    def __init__(
        self,
        game: game_spec.GameLike | None = None,
        *,
        rules: str | None = None,
        observation: str = "infostate",
        payoff: payoffs.PayoffMode = "auto",
        max_steps: int = MAX_STEPS,
        render_mode: RenderMode | None = None,
    ) -> None:
        if max_steps < 1:
            raise envs.EnvError(f"`max_steps=` must be 1 or more joint actions; got {max_steps}")
        if render_mode not in (None, "ansi"):
            raise envs.EnvError(f"`render_mode=` must be 'ansi' or None; got {render_mode!r}")
        self.env = make_env.make(game, rules=rules, payoff=payoff)
        self.nodes = host.HostEnv(self.env.propnet, self.env.payoffs, max_steps)
        self.node = self.nodes.start
        self._encoder = observation
        self._steps = 0 if observation == "state" else observation_window.encoder_steps(self.env, observation)

    @property
    def observation_size(self) -> int:
        """The length of an observation."""
        if self._encoder == "state":
            return len(self.env.propnet.initial)
        return observation_window.tensor_size(self.env, steps=self._steps)

    def reset(self, rng: np.random.Generator) -> None:
        """Starts a match, with the random numbers of its chance actions.

        A match that chance ends before anybody decides starts again, since these libraries have no place for it.
        """
        self._rng = rng
        for _ in range(_MOST_DEALS):
            self.node = self.nodes.start
            self._settle()
            if not self.node.is_over or self.nodes.start.is_over:
                break

    def step(self, actions: host.Numbers) -> None:
        """Applies a joint action; that of players without a choice is ignored.

        Raises:
          EnvError: if an action is illegal; the match then stays as it is.
        """
        for player in self.node.deciders:
            options = self.node.position.legal[player]
            if actions[player] not in options:
                raise envs.EnvError(
                    f"action {actions[player]} of {self.env.players[player]} is illegal in {self.env.name}; legal are "
                    f"{', '.join(map(str, options))}: see its action mask"
                )
        self.node = self.nodes.apply_actions(self.node, actions)
        self._settle()

    @property
    def terminated(self) -> bool:
        """Whether the rules ended the match."""
        return self.node.position.terminal

    @property
    def truncated(self) -> bool:
        """Whether the match was stopped by `max_steps`, or in a state where some role has no legal move."""
        return self.node.is_over and not self.node.position.terminal

    def returns(self) -> list[float]:
        """Payoffs, 0 until the match has ended."""
        return self.nodes.returns(self.node)

    def observe(self, player: int) -> Bits:
        """int8[observation_size] of zeros and ones."""
        if self._encoder == "state":
            return np.frombuffer(self.node.position.registers, np.int8).copy()
        return observation_window.of_node(self.env, self.node, player, steps=self._steps).astype(np.int8)

    def mask(self, player: int) -> Bits:
        """int8[A] of the player's own actions, 1 where legal; of zeros once the match is over."""
        mask = np.zeros(len(self.env.propnet.players[player].moves), np.int8)
        if not self.node.is_over:
            mask[list(self.node.position.legal[player])] = 1
        return mask

    def text(self) -> str:
        """The step and the true fluents."""
        return "\n".join(
            [f"{self.env.name}, step {self.node.step}", *map("  {}".format, self.nodes.fluents(self.node))]
        )

    def _settle(self) -> None:
        while self.node.is_chance:
            options: Any = self.node.position.chance
            self.node = self.nodes.apply_chance(self.node, int(self._rng.choice(options)))
