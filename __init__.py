"""gdlx compiles the rules of any GDL-II game to a propositional network (propnet), and runs and solves it with JAX.

`gdlx.make(game)` returns an environment, `gdlx.solve(game)` a solution. More is in the packages, one for each stage of
the flow: `gdlx.propnet`, `gdlx.envs`, `gdlx.solvers`, `gdlx.nets`, `gdlx.players`, `gdlx.experiments`. Importing gdlx
does not load JAX.
"""

from typing import TYPE_CHECKING

from gdlx.propnet.common import lazy

if TYPE_CHECKING:
    from gdlx import envs as envs
    from gdlx import experiments as experiments
    from gdlx import nets as nets
    from gdlx import players as players
    from gdlx import propnet as propnet
    from gdlx import solvers as solvers
    from gdlx.envs.env import Env as Env
    from gdlx.envs.env import State as State
    from gdlx.envs.game_spec import GameSpec as GameSpec
    from gdlx.envs.game_spec import unroll_game as unroll
    from gdlx.envs.make_env import make as make
    from gdlx.envs.packed.action_words import random_actions as random_actions
    from gdlx.envs.trees.game_tree import GameTree as GameTree
    from gdlx.nets.judge import evaluate as evaluate
    from gdlx.players.agents.agent import Agent as Agent
    from gdlx.players.matches.contest import compete as compete
    from gdlx.propnet.circuits.propnet import PropNet as PropNet
    from gdlx.propnet.common.errors import UserError as UserError
    from gdlx.propnet.common.version import __version__ as __version__
    from gdlx.propnet.games import check_game as check
    from gdlx.propnet.games import compile_game as compile  # noqa: A004 - as in jax
    from gdlx.propnet.library import names as games
    from gdlx.propnet.syntax.diagnostics import GdlError as GdlError
    from gdlx.propnet.syntax.rulesheet import Rulesheet as Rulesheet
    from gdlx.solvers.evaluate_requests import load_solution as load_solution
    from gdlx.solvers.solution import Solution as Solution
    from gdlx.solvers.solve_requests import solve as solve

_MODULES = {
    "__version__": "gdlx.propnet.common.version",
    "propnet": "gdlx.propnet:",
    "envs": "gdlx.envs:",
    "solvers": "gdlx.solvers:",
    "nets": "gdlx.nets:",
    "players": "gdlx.players:",
    "experiments": "gdlx.experiments:",
    "Agent": "gdlx.players.agents.agent",
    "Env": "gdlx.envs.env",
    "GameSpec": "gdlx.envs.game_spec",
    "GameTree": "gdlx.envs.trees.game_tree",
    "GdlError": "gdlx.propnet.syntax.diagnostics",
    "PropNet": "gdlx.propnet.circuits.propnet",
    "Rulesheet": "gdlx.propnet.syntax.rulesheet",
    "Solution": "gdlx.solvers.solution",
    "State": "gdlx.envs.env",
    "UserError": "gdlx.propnet.common.errors",
    "check": "gdlx.propnet.games:check_game",
    "compete": "gdlx.players.matches.contest",
    "compile": "gdlx.propnet.games:compile_game",
    "evaluate": "gdlx.nets.judge",
    "games": "gdlx.propnet.library:names",
    "load_solution": "gdlx.solvers.evaluate_requests",
    "make": "gdlx.envs.make_env",
    "random_actions": "gdlx.envs.packed.action_words",
    "solve": "gdlx.solvers.solve_requests",
    "unroll": "gdlx.envs.game_spec:unroll_game",
}
__all__ = [
    "Agent",
    "Env",
    "GameSpec",
    "GameTree",
    "GdlError",
    "PropNet",
    "Rulesheet",
    "Solution",
    "State",
    "UserError",
    "check",
    "compete",
    "compile",
    "envs",
    "evaluate",
    "experiments",
    "games",
    "load_solution",
    "make",
    "nets",
    "players",
    "propnet",
    "random_actions",
    "solve",
    "solvers",
    "unroll",
]
__getattr__, __dir__ = lazy.attach(__name__, _MODULES)
