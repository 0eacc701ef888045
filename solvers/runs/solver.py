"""What every kind of run has in common: the one protocol that drivers, result folders and commands know."""

import abc
import pathlib
from typing import Any, Generic, TypeVar

from gdlx.solvers import tabular_policies
from gdlx.solvers.runs import driver, result_folder

State = TypeVar("State", bound=driver.RunState)


class Solver(abc.ABC, Generic[State]):
    """An algorithm on a game. States are its own: it is only ever given those that it made.

    What is not abstract is as it should be where states are kept whole and values are exact.
    """

    @abc.abstractmethod
    def init(self) -> State:
        """The state before the first iteration."""

    @abc.abstractmethod
    def advance(self, state: State, count: int) -> State:
        """So many iterations; has happened when it returns. May use the state up."""

    @abc.abstractmethod
    def measure(self, state: State, seconds: float) -> driver.Metrics:
        """What the average policies are worth."""

    @abc.abstractmethod
    def policies(self, state: State) -> tabular_policies.Policies:
        """Average policies, at the information sets of the task's tree."""

    @property
    def arrays(self) -> Any:
        """A pytree: what iterations read of the game, if it is the same in each."""
        return ()

    def latest(self, state: State) -> State:
        """The last state there is: `state`, unless it was used up by something that broke off afterwards."""
        return state

    def to_checkpoint(self, state: State) -> State:
        """What is written of a state."""
        return state

    def from_checkpoint(self, saved: State) -> State:
        return saved

    def with_value(self, state: State, metrics: driver.Metrics) -> driver.Metrics:
        """Metrics with the value of the policies."""
        del state
        return metrics

    def write_policy(self, folder: pathlib.Path, state: State) -> None:
        result_folder.write_policy(folder, self.policies(state))

    def dropped_visits(self, state: State) -> int:
        """Visits of the last iteration that nothing was learnt from."""
        del state
        return 0

    def unplayable(self, state: State) -> int:
        """Trajectories so far that ended because some role had no legal move."""
        del state
        return 0
