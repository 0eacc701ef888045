"""Solver: the interface that the driver, result folders and commands use for every kind of algorithm."""

import abc
import pathlib
from typing import Any, Generic, TypeVar

from gdlx.solvers import tabular_policies
from gdlx.solvers.mccfr import table_policy
from gdlx.solvers.runs import driver, result_folder

State = TypeVar("State", bound=driver.RunState)


class Solver(abc.ABC, Generic[State]):
    """An algorithm on a game, as functions of an opaque state: pass a solver only states that it returned itself.

    Methods that are not abstract have the defaults of solvers whose checkpoints are whole states and whose values are
    exact.

    >>> from gdlx.solvers import algorithms, tasks
    >>> from gdlx.solvers.runs import solver_run
    >>> solver = solver_run.make_solver(tasks.make_tree_task("kuhn_poker"), algorithms.find("cfr+"))
    >>> metrics = solver.measure(solver.advance(solver.init(), 100), seconds=0.0)
    >>> metrics.iterations, metrics.error < 0.01
    (100, True)
    """

    @abc.abstractmethod
    def init(self) -> State:
        """Returns the state before the first iteration."""

    @abc.abstractmethod
    def advance(self, state: State, count: int) -> State:
        """Runs `count` iterations and waits for them. May donate the buffers of `state`."""

    @abc.abstractmethod
    def measure(self, state: State, seconds: float) -> driver.Metrics:
        """Returns the metrics of the average policies after `seconds` of solving."""

    @abc.abstractmethod
    def policies(self, state: State) -> tabular_policies.Policies:
        """Returns the average policies at the information sets of the task's tree."""

    @property
    def arrays(self) -> Any:
        """A pytree of the arrays of the game that every iteration reads."""
        return ()

    def latest(self, state: State) -> State:
        """Returns the last valid state: `state`, unless its buffers were donated to a call that was interrupted."""
        return state

    def to_checkpoint(self, state: State) -> State:
        """Returns the part of a state that checkpoints store."""
        return state

    def from_checkpoint(self, saved: State) -> State:
        """Restores a state from what `to_checkpoint` returned."""
        return saved

    def with_value(self, state: State, metrics: driver.Metrics) -> driver.Metrics:
        """Adds the value of the policies to metrics that lack it."""
        del state
        return metrics

    def table(self, state: State) -> table_policy.TablePolicy | None:
        """Returns the average policies as a hash table; None for solvers that have none."""
        del state
        return None

    def write_policy(self, folder: pathlib.Path, state: State) -> None:
        """Writes the average policies to a result folder."""
        result_folder.write_policy(folder, self.policies(state))

    def dropped_visits(self, state: State) -> int:
        """Returns the visits of the last iteration that were dropped, because a hash table was full."""
        del state
        return 0

    def unplayable(self, state: State) -> int:
        """Returns the trajectories so far that ended because some role had no legal move."""
        del state
        return 0
