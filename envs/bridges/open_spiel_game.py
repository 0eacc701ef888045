"""Any game as a Python game of OpenSpiel, so that its algorithms run on it.

A step of the rules becomes up to two nodes: a decision node (a simultaneous node if several players have a choice),
then a chance node if `random` has a choice. Forced moves are made automatically. Actions are the numbers of moves, as
in `Env`; returns are payoffs.

The information state of a player is all its actions, percepts and legal actions so far, forced ones included, as
everywhere in gdlx. OpenSpiel's own games may count more information states: here one with a single legal action is not
a decision.
"""

import functools
import re
from typing import Any

import numpy as np

from gdlx.envs import env as envs
from gdlx.envs import game_facts, host, payoffs
from gdlx.envs.views import observation_window
from gdlx.propnet import games
from gdlx.propnet.common import errors, limits
from gdlx.propnet.syntax import rulesheet

try:
    import pyspiel
except ImportError:  # reported by `register`
    pyspiel = None

_Game: Any = pyspiel.Game if pyspiel else object
_State: Any = pyspiel.State if pyspiel else object


class NotTurnTakingError(errors.UserError, RuntimeError):
    """A game that was turn-taking in random play, but is not."""


def load_game(
    game: games.GameName | games.Specification | rulesheet.Rulesheet | None = None,
    *,
    rules: str | None = None,
    payoff: payoffs.PayoffMode = "auto",
    max_steps: int = 1_000,
    gdl: int | None = None,
    fold_case: bool = False,
    within: limits.Limits = limits.Limits(),
) -> Any:
    """Loads a game as a pyspiel.Game.

    Args:
      game: a library name (`goofspiel:cards=4`), the path of a rulesheet, a `GameSpec` or a `Rulesheet`.
      rules: the text of the rulesheet, instead of `game`.
      payoff: how goal values become payoffs; this and the following arguments are as in `gdlx.make`.
      max_steps: joint actions after which a match ends with returns 0.
      gdl: the language of the rulesheet.
      fold_case: whether names that differ only by case are the same.
      within: limits of compiling.

    Returns:
      The pyspiel.Game.

    Raises:
      MissingPackageError: if OpenSpiel is not installed.
    """
    name = register(game, rules=rules, payoff=payoff, max_steps=max_steps, gdl=gdl, fold_case=fold_case, within=within)
    return pyspiel.load_game(name)


def register(
    game: games.GameName | games.Specification | rulesheet.Rulesheet | None = None,
    *,
    rules: str | None = None,
    payoff: payoffs.PayoffMode = "auto",
    max_steps: int = 1_000,
    gdl: int | None = None,
    fold_case: bool = False,
    within: limits.Limits = limits.Limits(),
) -> str:
    """Registers a game with OpenSpiel, in this process; returns its name for pyspiel.load_game: `gdlx_kuhn_poker`."""
    if pyspiel is None:
        raise errors.MissingPackageError("this needs OpenSpiel, which is not installed: pip install 'gdlx[peers]'")
    sheet = games.load_rulesheet(game, rules=rules, gdl=gdl, fold_case=fold_case)
    if max_steps < 1:
        raise ValueError(f"`max_steps=` must be 1 or more joint actions; got {max_steps}")
    return _register(_RulesheetKey(sheet), payoff, max_steps, within)


class _RulesheetKey:
    """Compares rulesheets by name, language and text."""

    def __init__(self, sheet: rulesheet.Rulesheet) -> None:
        self.sheet = sheet
        self._key = (sheet.name, sheet.language, sheet.text())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _RulesheetKey) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


@functools.cache
def _register(key: _RulesheetKey, payoff: payoffs.PayoffMode, max_steps: int, within: limits.Limits) -> str:
    propnet = games.compile_game(key.sheet, within=within)
    nodes = host.HostEnv(propnet, game_facts.probe(propnet).payoffs(payoff), max_steps)
    name = base = "gdlx_" + re.sub("[^a-z0-9]+", "_", key.sheet.name.lower()).strip("_")
    number = 1
    while name in pyspiel.registered_names():
        number += 1
        name = f"{base}_{number}"
    kind = _game_type(name, key.sheet, nodes)
    state = type("State", (SpielState,), {"host": nodes, "turn_taking": kind.dynamics == _DYNAMICS.SEQUENTIAL})
    # OpenSpiel holds the factory until after Python shuts down, which a class survives and a function does not.
    pyspiel.register_game(kind, type("Game", (SpielGame,), {"host": nodes, "kind": kind, "state": state}))
    return name


_DYNAMICS: Any = pyspiel.GameType.Dynamics if pyspiel else None


def _game_type(name: str, sheet: rulesheet.Rulesheet, nodes: host.HostEnv) -> Any:
    kind = pyspiel.GameType
    turn_taking = game_facts.probe(nodes.propnet).dynamics.turn_taking
    is_random = any(len(role.moves) > 1 for role in nodes.propnet.roles if role.is_random)
    perfect = sheet.language == 1
    players = len(nodes.propnet.players)
    return kind(
        short_name=name,
        long_name=f"{sheet.name} (GDL)",
        dynamics=_DYNAMICS.SEQUENTIAL if turn_taking else _DYNAMICS.SIMULTANEOUS,
        chance_mode=kind.ChanceMode.EXPLICIT_STOCHASTIC if is_random else kind.ChanceMode.DETERMINISTIC,
        information=kind.Information.PERFECT_INFORMATION if perfect else kind.Information.IMPERFECT_INFORMATION,
        utility=kind.Utility.ZERO_SUM if nodes.payoffs.zero_sum else kind.Utility.GENERAL_SUM,
        reward_model=kind.RewardModel.TERMINAL,
        max_num_players=players,
        min_num_players=players,
        provides_information_state_string=True,
        provides_information_state_tensor=True,
        provides_observation_string=True,
        provides_observation_tensor=True,
    )


def _game_info(nodes: host.HostEnv) -> Any:
    roles = nodes.propnet.players
    utilities = [0.0, *(value - nodes.payoffs.offset for role in roles for value in role.goal_values)]
    return pyspiel.GameInfo(
        num_distinct_actions=max(len(role.moves) for role in roles),
        max_chance_outcomes=sum(len(role.moves) for role in nodes.propnet.roles if role.is_random),
        num_players=len(roles),
        min_utility=min(utilities),
        max_utility=max(utilities),
        utility_sum=0.0 if nodes.payoffs.zero_sum else None,
        max_game_length=nodes.max_steps,
    )


class SpielGame(_Game):  # type: ignore[misc]
    """One game. `host` exposes its nodes to programs that need more than OpenSpiel's interface."""

    host: host.HostEnv
    kind: Any
    state: "type[SpielState]"

    def __init__(self, params: dict[str, Any] | None = None) -> None:
        super().__init__(self.kind, _game_info(self.host), params or {})

    def new_initial_state(self) -> "SpielState":
        return self.state(self)

    def max_chance_nodes_in_history(self) -> int:
        return self.host.max_steps

    def make_py_observer(self, iig_obs_type: Any = None, params: Any = None) -> "Observer":
        return Observer(
            envs.Env(self.host.propnet, self.host.payoffs),
            iig_obs_type or pyspiel.IIGObservationType(perfect_recall=False),
            params,
        )


class SpielState(_State):  # type: ignore[misc]
    """A node of a match. OpenSpiel copies and pickles the attributes of instances, so the game belongs to the class."""

    host: host.HostEnv
    turn_taking: bool

    def __init__(self, own_game: SpielGame) -> None:
        super().__init__(own_game)
        self.node = self.host.start

    def current_player(self) -> int:
        node = self.node
        if node.is_over:
            return int(pyspiel.PlayerId.TERMINAL)
        deciders = node.deciders
        if not deciders:
            return int(pyspiel.PlayerId.CHANCE)
        if len(deciders) == 1:
            return deciders[0]
        if self.turn_taking:
            fluents = " ".join(self.host.fluents(node))
            raise NotTurnTakingError(
                f"{self.host.propnet.name} was turn-taking in random play, but two players have a choice in: {fluents}"
            )
        return int(pyspiel.PlayerId.SIMULTANEOUS)

    def _legal_actions(self, player: int) -> list[int]:
        return list(self.node.position.legal[player])

    def chance_outcomes(self) -> list[tuple[int, float]]:
        options = self.node.position.chance
        return [(action, 1.0 / len(options)) for action in options]

    def _apply_action(self, action: int) -> None:
        if self.node.deciders:
            # Players without a choice make their only move, so one number specifies the joint action.
            self.node = self.host.apply_actions(self.node, (action,) * len(self.node.position.legal))
        else:
            self.node = self.host.apply_chance(self.node, action)

    def _apply_actions(self, actions: list[int]) -> None:
        self.node = self.host.apply_actions(self.node, tuple(actions))

    def _action_to_string(self, player: int, action: int) -> str:
        if player == pyspiel.PlayerId.CHANCE:
            return next(role for role in self.host.propnet.roles if role.is_random).moves[action]
        return self.host.propnet.players[player].moves[action]

    def is_terminal(self) -> bool:
        return self.node.is_over

    def returns(self) -> list[float]:
        return self.host.returns(self.node)

    def __str__(self) -> str:
        chosen = "" if self.node.pending_actions is None else f" chosen {self.node.pending_actions}"
        return f"step {self.node.step}: {' '.join(self.host.fluents(self.node))}{chosen}"


class Observer:
    """A player's observations, as a string and as a tensor: with perfect recall all of them, without, the last step.

    The tensor with perfect recall has the player, then `observation_window.to_tensor`: the last steps, as many as the
    longest of a thousand random matches, and the legal actions.
    """

    def __init__(self, env: envs.Env, kind: Any, params: Any) -> None:
        if params:
            raise ValueError(f"gdlx's observers take no parameters; got {params}")
        if not kind.public_info or kind.private_info != pyspiel.PrivateInfoType.SINGLE_PLAYER:
            raise ValueError("gdlx does not separate public and private percepts: request both, for a single player")
        self._env = env
        self._perfect_recall = kind.perfect_recall
        self._steps = observation_window.encoder_steps(env, "infostate") if kind.perfect_recall else 1
        event = env.num_actions + env.num_percepts
        self.tensor = np.zeros(env.num_players + self._steps * event + env.num_actions, np.float32)
        who, steps, legal = np.split(self.tensor, [env.num_players, self.tensor.size - env.num_actions])
        events = steps.reshape(self._steps, event)
        self.dict: dict[str, Any] = {"player": who, "legal": legal}
        if kind.perfect_recall:
            self.dict["events"] = events
        else:
            self.dict["move"] = events[0, : env.num_actions]
            if env.num_percepts:
                self.dict["percepts"] = events[0, env.num_actions :]

    def set_from(self, state: SpielState, player: int) -> None:
        self.dict["player"][:] = np.arange(self._env.num_players) == player
        seen = observation_window.of_node(self._env, state.node, player, steps=self._steps)
        self.tensor[self._env.num_players :] = seen

    def string_from(self, state: SpielState, player: int) -> str:
        view = state.node.views[player]
        # OpenSpiel's tabular policies are indexed by this string alone, so it includes the player.
        return (
            f"{state.host.propnet.players[player].name}\n{view}" if self._perfect_recall else view.rpartition("\n")[2]
        )
