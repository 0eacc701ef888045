"""The solver of the CFR family on a graph of states."""

import jax
import numpy as np

from gdlx.solvers import algorithms, tabular_policies, tasks
from gdlx.solvers.exact import state_cfr
from gdlx.solvers.runs import driver, solver, tree_solvers


class StateSolver(solver.Solver[state_cfr.StateCfrState]):
    """Full iterations on a graph: each visits every state."""

    def __init__(self, task: tasks.StateTask, algorithm: algorithms.Algorithm) -> None:
        self.task, self._alternating = task, algorithm.alternating
        self._settings = tree_solvers.to_default_precision(algorithm.settings)
        self._cfr = state_cfr.StateCfr(task.graph)

    def init(self) -> state_cfr.StateCfrState:
        return self._cfr.init()

    def advance(self, state: state_cfr.StateCfrState, count: int) -> state_cfr.StateCfrState:
        for _ in range(count):
            state = self._cfr.step(state, self._settings, alternating=self._alternating)
        return state

    def measure(self, state: state_cfr.StateCfrState, seconds: float) -> driver.Metrics:
        is_finite = all(np.isfinite(table).all() for table in (*state.regret, *state.cumulative_policy))
        driver.require_finite(int(state.t), is_finite)
        return self.task.metrics(self.policies(state), int(state.t), seconds)

    def policies(self, state: state_cfr.StateCfrState) -> tabular_policies.Policies:
        return self._cfr.average_policies(state)

    def from_checkpoint(self, saved: state_cfr.StateCfrState) -> state_cfr.StateCfrState:
        host: state_cfr.StateCfrState = jax.tree.map(np.asarray, saved)
        return host._replace(t=saved.t)
