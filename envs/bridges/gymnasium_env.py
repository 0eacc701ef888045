"""One-player games as environments of Gymnasium."""

from typing import Any

import numpy as np

from gdlx.envs import env as envs
from gdlx.envs import game_spec, payoffs
from gdlx.envs.bridges import host_match
from gdlx.propnet.common import errors

try:
    import gymnasium
except ImportError:  # reported by `GymnasiumEnv`
    gymnasium = None  # type: ignore[assignment]

_Env: Any = gymnasium.Env if gymnasium else object


class GymnasiumEnv(_Env):  # type: ignore[misc]
    """A game of one player, and perhaps of chance, as a `gymnasium.Env`. Every step is a decision.

    Observations are int8 arrays of zeros and ones; `info["action_mask"]` has the legal actions. An illegal action
    changes nothing, and sets `info["illegal"]`.

    Args:
      game: whatever names it, as in `gdlx.make`.
      rules: the text of its rulesheet, instead of `game`.
      observation: `"infostate"`, `"window:T"` or `"state"`, as in `BatchedEnv.observe`.
      payoff: how goal values become payoffs, as in `gdlx.make`.
      max_steps: joint actions after which a match is truncated.
      render_mode: `"ansi"` for the true fluents as text.

    Raises:
      EnvError: if the game has several players, or an argument is invalid.
      MissingPackageError: if Gymnasium is not installed.

    >>> env = GymnasiumEnv("monty_hall")
    >>> observation, info = env.reset(seed=0)
    >>> env.action_space, int(info["action_mask"].sum())
    (Discrete(6), 3)
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012  an attribute of gymnasium.Env

    def __init__(
        self,
        game: game_spec.GameLike | None = None,
        *,
        rules: str | None = None,
        observation: str = "infostate",
        payoff: payoffs.PayoffMode = "auto",
        max_steps: int = host_match.MAX_STEPS,
        render_mode: host_match.RenderMode | None = None,
    ) -> None:
        if gymnasium is None:
            raise errors.MissingPackageError("this needs Gymnasium, which is not installed: pip install 'gdlx[gym]'")
        self._match = host_match.HostMatch(
            game, rules=rules, observation=observation, payoff=payoff, max_steps=max_steps, render_mode=render_mode
        )
        own = self._match.env
        if own.num_players != 1:
            raise envs.EnvError(
                f"{own.name} has {own.num_players} players, and Gymnasium is for one: use "
                "gdlx.envs.bridges.pettingzoo_env"
            )
        self.render_mode = render_mode
        self.observation_space = gymnasium.spaces.Box(0, 1, (self._match.observation_size,), np.int8)
        self.action_space = gymnasium.spaces.Discrete(own.num_actions)

    def __repr__(self) -> str:
        return f"GymnasiumEnv({self._match.env.name})"

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Starts a match. Returns its first observation and info."""
        super().reset(seed=seed)
        self._match.reset(self.np_random)
        return self._match.observe(0), self._info()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """The observation, reward, whether the match has terminated or was truncated, and info, after an action."""
        match = self._match
        if not 0 <= int(action) < match.env.num_actions or not match.mask(0)[int(action)]:
            return match.observe(0), 0.0, match.terminated, match.truncated, self._info() | {"illegal": True}
        match.step((int(action),))
        return match.observe(0), match.returns()[0], match.terminated, match.truncated, self._info()

    def render(self) -> str | None:
        """The true fluents, if `render_mode` is `"ansi"`."""
        return self._match.text() if self.render_mode == "ansi" else None

    def _info(self) -> dict[str, Any]:
        return {"action_mask": self._match.mask(0), "illegal": False}
