"""Solvers on `SequenceForm`, `SamplingForm` and `Env`: the CFR and MCCFR families, best response, linear programs.

Algorithms work on arrays and environments. Only the entry points (`requests`, `tasks`, `runs.result_folder`) take the
name of a game, or compare the digest of its propnet with a saved one. May import `gdlx.envs` and the layers below it.
"""

from typing import TYPE_CHECKING

from gdlx.propnet.common import lazy

if TYPE_CHECKING:
    from gdlx.solvers.algorithms import Algorithm as Algorithm
    from gdlx.solvers.evaluate_requests import EvaluateResult as EvaluateResult
    from gdlx.solvers.evaluate_requests import load_solution as load_solution
    from gdlx.solvers.exact.best_response import average_regret_bound as average_regret_bound
    from gdlx.solvers.exact.best_response import counterfactual_values as counterfactual_values
    from gdlx.solvers.policy_sources.function_policies import InformationSets as InformationSets
    from gdlx.solvers.requests import Callbacks as Callbacks
    from gdlx.solvers.requests import EvaluateRequest as EvaluateRequest
    from gdlx.solvers.requests import OpponentModel as OpponentModel
    from gdlx.solvers.requests import SolveRequest as SolveRequest
    from gdlx.solvers.runs.driver import Metrics as Metrics
    from gdlx.solvers.runs.driver import StopCondition as StopCondition
    from gdlx.solvers.runs.policy_files import load_policies as load_policies
    from gdlx.solvers.runs.policy_files import load_table_policy as load_table_policy
    from gdlx.solvers.runs.solver import Solver as Solver
    from gdlx.solvers.solution import Solution as Solution
    from gdlx.solvers.solve_requests import SolveResult as SolveResult
    from gdlx.solvers.solve_requests import solve as solve
    from gdlx.solvers.tasks import TableTask as TableTask
    from gdlx.solvers.tasks import TreeTask as TreeTask
    from gdlx.solvers.tasks import make_table_task as make_table_task
    from gdlx.solvers.tasks import make_tree_task as make_tree_task

_MODULES = {
    "Algorithm": "gdlx.solvers.algorithms",
    "Callbacks": "gdlx.solvers.requests",
    "EvaluateRequest": "gdlx.solvers.requests",
    "EvaluateResult": "gdlx.solvers.evaluate_requests",
    "InformationSets": "gdlx.solvers.policy_sources.function_policies",
    "Metrics": "gdlx.solvers.runs.driver",
    "OpponentModel": "gdlx.solvers.requests",
    "Solution": "gdlx.solvers.solution",
    "SolveRequest": "gdlx.solvers.requests",
    "SolveResult": "gdlx.solvers.solve_requests",
    "Solver": "gdlx.solvers.runs.solver",
    "StopCondition": "gdlx.solvers.runs.driver",
    "TableTask": "gdlx.solvers.tasks",
    "TreeTask": "gdlx.solvers.tasks",
    "average_regret_bound": "gdlx.solvers.exact.best_response",
    "counterfactual_values": "gdlx.solvers.exact.best_response",
    "load_policies": "gdlx.solvers.runs.policy_files",
    "load_solution": "gdlx.solvers.evaluate_requests",
    "load_table_policy": "gdlx.solvers.runs.policy_files",
    "make_table_task": "gdlx.solvers.tasks",
    "make_tree_task": "gdlx.solvers.tasks",
    "solve": "gdlx.solvers.solve_requests",
}
__all__ = [
    "Algorithm",
    "Callbacks",
    "EvaluateRequest",
    "EvaluateResult",
    "InformationSets",
    "Metrics",
    "OpponentModel",
    "Solution",
    "SolveRequest",
    "SolveResult",
    "Solver",
    "StopCondition",
    "TableTask",
    "TreeTask",
    "average_regret_bound",
    "counterfactual_values",
    "load_policies",
    "load_solution",
    "load_table_policy",
    "make_table_task",
    "make_tree_task",
    "solve",
]
__getattr__, __dir__ = lazy.attach(__name__, _MODULES)
