"""An agent that runs MCCFR before its matches, and then plays the average policy."""

import dataclasses
from typing import Literal

from gdlx.envs.trees import unroll
from gdlx.players.agents import agent, table_agent, time_control
from gdlx.propnet.common.text import reprs
from gdlx.solvers import algorithms, tasks
from gdlx.solvers.mccfr import hash_table, table_policy, table_state
from gdlx.solvers.runs import driver, table_solver

_MAX_TABLE_BYTES = 2**30


@dataclasses.dataclass(frozen=True)
class MccfrAgent(table_agent.TableAgent):
    """Samples once for all matches of a game, then plays the average policy.

    With `iterations` it is the same agent in every run with the same seed; with `seconds` it is not.

    Options:
      seconds: of sampling; if neither this nor `iterations` is set, as long as the start clock.
      iterations: of sampling.
      algorithm: os-mccfr (outcome sampling) or vr-mccfr (with baselines, which reduce variance).
      table: binary logarithm of the capacity of the hash table in information sets; reduced in games with many moves.
      batch: trajectories of an iteration.
      exploration: probability of a uniform action of the updated player, when trajectories are sampled.
      seed: of the sampling.
    """

    seconds: float | None = None
    iterations: int | None = None
    algorithm: Literal["os-mccfr", "vr-mccfr"] = "vr-mccfr"
    table: int = 20
    batch: int = 4_096
    exploration: float = 0.6
    seed: int = 0

    __repr__ = reprs.show_changes

    def __post_init__(self) -> None:
        time_control.require_time_control(self.name, self.seconds, self.iterations)
        time_control.require_seed(self.name, self.seed)
        try:
            self._algorithm(0, self.table)
        except ValueError as error:
            raise agent.AgentError(f"{self.name}: {error}") from None

    @property
    def depends_on_wall_clock(self) -> bool:
        return self.iterations is None

    def learn(self, arena: agent.Arena) -> table_policy.TablePolicy:
        # The policy is never evaluated on the tree, so its root suffices.
        start = unroll.unroll(arena.env.propnet, "goal", depth=0, goal_conflict="max", unplayable="end")
        task = tasks.TableTask(arena.game, arena.env, start, None, arena.packed)
        timed = self.iterations is None and self.seconds is None
        stop = driver.StopCondition(self.iterations, arena.start_seconds if timed else self.seconds)
        try:
            solver = table_solver.TableSolver(task, self._algorithm(arena.steps, self._table_bits(arena)))
        except table_solver.TableError as error:
            raise agent.AgentError(f"{self.name}: {error}") from None
        state = solver.init()
        for point in driver.iterate(solver, state, stop):
            state = point.state
        return solver.policy(state)

    def _table_bits(self, arena: agent.Arena) -> int:
        """Binary logarithm of a table that fits into a share of memory; it does not depend on the machine."""
        config = table_state.SamplerConfig(self.batch, arena.steps, baselines=self.algorithm == "vr-mccfr")
        row = table_state.updated_row_bytes(arena.env.num_players, arena.env.num_actions, config)
        in_range = hash_table.LEAST_BITS <= self.table <= hash_table.MOST_BITS  # the solver refuses others
        return min(self.table, hash_table.largest_bits(row, _MAX_TABLE_BYTES)) if in_range else self.table

    def _algorithm(self, steps: int, table: int) -> algorithms.Algorithm:
        changes = {"table": table, "batch": self.batch, "exploration": self.exploration, "seed": self.seed}
        return algorithms.configure(algorithms.find(self.algorithm), None, changes | {"max_steps": steps})
