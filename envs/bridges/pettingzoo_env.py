"""Games as environments of PettingZoo: turn by turn (AEC) or all agents at once (parallel)."""

from typing import Any

import numpy as np

from gdlx.envs import env as envs
from gdlx.envs import game_facts, game_spec, payoffs
from gdlx.envs.bridges import host_match
from gdlx.propnet.common import errors

try:
    import gymnasium
    import pettingzoo
except ImportError:  # reported by `_Agents`
    gymnasium = pettingzoo = None  # type: ignore[assignment]

_AECEnv: Any = pettingzoo.AECEnv if pettingzoo else object
_ParallelEnv: Any = pettingzoo.ParallelEnv if pettingzoo else object


class _Agents:
    """What both kinds of environments have: a match, and the spaces of its agents, which are the players."""

    metadata: dict[str, Any]
    possible_agents: list[str]
    agents: list[str]

    def _prepare(self, kind: str, match: host_match.HostMatch, render_mode: host_match.RenderMode | None) -> None:
        self._match = match
        self.metadata = {"render_modes": ["ansi"], "name": f"{match.env.name}_{kind}", "is_parallelizable": True}
        self.render_mode = render_mode
        self.possible_agents = list(match.env.players)
        self.agents = []
        self._number = {agent: number for number, agent in enumerate(self.possible_agents)}
        self._rng = np.random.default_rng()
        bits = {"observation": match.observation_size}
        sizes = [bits | {"action_mask": len(role.moves)} for role in match.env.propnet.players]
        box, named = gymnasium.spaces.Box, gymnasium.spaces.Dict
        self._observation_spaces = [named({name: box(0, 1, (n,), np.int8) for name, n in own.items()}) for own in sizes]
        self._action_spaces = [gymnasium.spaces.Discrete(own["action_mask"]) for own in sizes]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._match.env.name})"

    def observation_space(self, agent: str) -> Any:
        """The space of an agent's observations."""
        return self._observation_spaces[self._number[agent]]

    def action_space(self, agent: str) -> Any:
        """The space of an agent's actions."""
        return self._action_spaces[self._number[agent]]

    def observe(self, agent: str) -> dict[str, Any]:
        """An agent's observation and its legal actions."""
        player = self._number[agent]
        return {"observation": self._match.observe(player), "action_mask": self._match.mask(player)}

    def state(self) -> Any:
        """int8[R], the registers of the game, also those that are hidden from players."""
        return np.frombuffer(self._match.node.position.registers, np.int8).copy()

    def render(self) -> str | None:
        """The true fluents, if `render_mode` is `"ansi"`."""
        return self._match.text() if self.render_mode == "ansi" else None

    def close(self) -> None:
        """Nothing is held open."""

    def _restart(self, seed: int | None) -> None:
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        self._match.reset(self._rng)
        self.agents = list(self.possible_agents)

    def _rewards(self) -> dict[str, float]:
        return dict(zip(self.possible_agents, self._match.returns(), strict=True))


def _matched(
    game: game_spec.GameLike | None,
    rules: str | None,
    observation: str,
    payoff: payoffs.PayoffMode,
    max_steps: int,
    render_mode: host_match.RenderMode | None,
) -> host_match.HostMatch:
    if pettingzoo is None:
        raise errors.MissingPackageError("this needs PettingZoo, which is not installed: pip install 'gdlx[gym]'")
    return host_match.HostMatch(
        game, rules=rules, observation=observation, payoff=payoff, max_steps=max_steps, render_mode=render_mode
    )


class AECEnv(_Agents, _AECEnv):  # type: ignore[misc]
    """A turn-taking game as a `pettingzoo.AECEnv`. Every step is a decision; chance is drawn on the way.

    Observations have the keys `observation`, an int8 array of zeros and ones, and `action_mask`. An illegal action is
    an error; `pettingzoo.utils.wrappers.TerminateIllegalWrapper` makes it a loss.

    Args:
      game: whatever names it, as in `gdlx.make`.
      rules: the text of its rulesheet, instead of `game`.
      observation: `"infostate"`, `"window:T"` or `"state"`, as in `BatchedEnv.observe`.
      payoff: how goal values become payoffs, as in `gdlx.make`.
      max_steps: joint actions after which a match is truncated.
      render_mode: `"ansi"` for the true fluents as text.

    Raises:
      EnvError: if several players decide at once, or an argument is invalid.
      MissingPackageError: if PettingZoo is not installed.

    >>> env = AECEnv("kuhn_poker")
    >>> env.reset(seed=0)
    >>> env.agent_selection, env.observe("player1")["action_mask"].tolist()
    ('player1', [1, 0, 1, 0, 0])
    >>> env.step(0)
    >>> env.agent_selection
    'player2'
    """

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
        match = _matched(game, rules, observation, payoff, max_steps, render_mode)
        if not game_facts.probe(match.env.propnet).dynamics.turn_taking:
            raise envs.EnvError(
                f"{match.env.name} is not turn-taking: several players decide at once; use "
                "gdlx.envs.bridges.pettingzoo_env.ParallelEnv"
            )
        self._prepare("aec", match, render_mode)

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Starts a match."""
        self._restart(seed)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in self.agents}
        self.agent_selection = self.possible_agents[0]
        self._report()

    def step(self, action: Any) -> None:
        """Applies the action of the selected agent; None once the match has ended."""
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        joint = [0] * len(self.possible_agents)
        joint[self._number[agent]] = int(action)
        self._match.step(tuple(joint))
        self._cumulative_rewards[agent] = 0.0
        self._report()
        self._accumulate_rewards()
        if self.terminations[agent] or self.truncations[agent]:
            self._deads_step_first()

    def _report(self) -> None:
        """Sets whose turn it is, rewards, terminations and truncations."""
        deciders = self._match.node.deciders
        if len(deciders) > 1:
            names = ", ".join(self.possible_agents[player] for player in deciders)
            raise envs.EnvError(
                f"{self._match.env.name} was turn-taking in random play, but {names} have a choice at the same time; "
                "use gdlx.envs.bridges.pettingzoo_env.ParallelEnv"
            )
        if deciders:
            self.agent_selection = self.possible_agents[deciders[0]]
        self.rewards = self._rewards()
        self.terminations = dict.fromkeys(self.agents, self._match.terminated)
        self.truncations = dict.fromkeys(self.agents, self._match.truncated)


class ParallelEnv(_Agents, _ParallelEnv):  # type: ignore[misc]
    """Any game as a `pettingzoo.ParallelEnv`: all agents act in every step, and those without a choice are ignored.

    Arguments, observations and errors are as those of `AECEnv`.

    >>> env = ParallelEnv("rps")
    >>> _ = env.reset(seed=0)
    >>> env.step({"player1": 0, "player2": 1})[1]
    {'player1': 50.0, 'player2': -50.0}
    """

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
        self._prepare("parallel", _matched(game, rules, observation, payoff, max_steps, render_mode), render_mode)

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Starts a match. Returns observations and infos of the agents."""
        self._restart(seed)
        return {agent: self.observe(agent) for agent in self.agents}, {agent: {} for agent in self.agents}

    def step(
        self, actions: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], dict[str, Any]]:
        """Applies a joint action. Returns observations, rewards, terminations, truncations and infos."""
        match = self._match
        if match.node.is_over:
            raise envs.EnvError(f"the match of {match.env.name} is over: call reset")
        missing = [self.possible_agents[n] for n in match.node.deciders if self.possible_agents[n] not in actions]
        if missing:
            raise envs.EnvError(f"actions of {match.env.name} lack {', '.join(missing)}, who have a choice")
        match.step(tuple(int(actions.get(agent, 0)) for agent in self.possible_agents))
        agents = self.agents
        if match.node.is_over:
            self.agents = []
        return (
            {agent: self.observe(agent) for agent in agents},
            self._rewards(),
            dict.fromkeys(agents, match.terminated),
            dict.fromkeys(agents, match.truncated),
            {agent: {} for agent in agents},
        )
