"""The solver that samples a game into a hash table."""

import contextlib
import math
import pathlib
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gdlx.envs import devices as machine
from gdlx.envs import game_facts, payoffs
from gdlx.envs.trees import game_tree
from gdlx.propnet.common import errors
from gdlx.solvers import algorithms, tabular_policies, tasks
from gdlx.solvers.mccfr import hash_table, table_loop, table_policy, table_state
from gdlx.solvers.runs import driver, result_folder, solver, tree_solvers

_RESTS = 20  # times what it takes to look through a whole table, until the next time
_MEMORY_FRACTION = 0.8  # of the machine's memory that a table and its batch may take
_DEFAULT_MEMORY_BYTES = 16 * 2**30  # bytes, where it cannot be told
_MATCHES = 2**16  # played to tell the value of policies


class TableError(errors.UserError, ValueError):
    """A table that does not fit, or trajectories that do not."""


class TableSolver(solver.Solver[table_state.TableState]):
    """Outcome sampling on an environment. Each state is used up by the next one.

    On CPUs it uses one device: XLA divides the work of a batch among all cores, and several devices would do parts of
    it several times.
    """

    def __init__(
        self,
        task: tasks.TableTask,
        algorithm: algorithms.Algorithm,
        devices: tuple[jax.Device, ...] | None = None,
    ) -> None:
        drawn = algorithm.sampling_config
        assert drawn.table is not None
        self.task, self.algorithm, self.bits = task, algorithm, drawn.table
        if devices is None:
            there = jax.local_devices()
            devices = tuple(there[:1] if there[0].platform == "cpu" else there)
        settings = tree_solvers.make_sample_settings(algorithm)
        self._game = task.packed
        self.config = table_state.SamplerConfig(
            drawn.batch,
            drawn.max_steps or game_facts.probe(task.env.net, drawn.seed).step_capacity,
            drawn.grow,
            drawn.decay is not None,
            settings.minimiser.optimism is not None,
        )
        self._require_memory(len(devices))
        self._loop = table_loop.make_loop(devices, self._game, self.config)
        self._settings: Any = jax.tree.map(lambda x: np.asarray(x, np.float32), settings)
        self._key = jax.random.key(drawn.seed)
        self._is_interrupted = False
        self._latest: table_state.TableState | None = None
        self._looked, self._rest = -math.inf, 0.0

    def _require_memory(self, devices: int) -> None:
        if not 4 <= self.bits <= 28:
            raise TableError(f"`table=` is the logarithm of a number of information sets, 4 to 28; not {self.bits}")
        if 2**self.bits * max(1, self.task.env.num_actions) >= 2**31:
            raise TableError(
                f"a table of 2^{self.bits} sets with {self.task.env.num_actions} moves has more entries than can be "
                "numbered; take a smaller `table=`"
            )
        # Twice, because a state and the next one may be there at the same time.
        table = 2 * table_state.row_bytes(self._game, self.config) * 2**self.bits * devices
        visits = table_state.visit_bytes(self._game, self.config)
        allowed = memory_budget()
        if table + visits > allowed:
            trajectories = f"{self.config.batch:,} trajectories of up to {self.config.steps} steps"
            what, option = (f"2^{self.bits} sets", "`table=`") if table > visits else (trajectories, "`batch=`")
            raise TableError(
                f"{what} of {self.task.env.name} need about {max(table, visits) / 2**30:.1f} GiB, and table and "
                f"trajectories may take {allowed / 2**30:.1f} GiB; take a smaller {option}"
            )

    def init(self) -> table_state.TableState:
        with jax.enable_x64(False):
            return self._loop.place(table_state.init(self._game, self.config, self.bits, self._loop.devices))

    def advance(self, state: table_state.TableState, count: int) -> table_state.TableState:
        if self._is_interrupted:
            self._is_interrupted = False
            raise KeyboardInterrupt
        # In the midst there is neither the old state nor the new one.
        with _defer_interrupts() as noted, jax.enable_x64(False):
            after = self._loop.advance(state, self._settings, self._key, count)
            int(after.t)  # waits for it
            self._latest = after
        self._is_interrupted = bool(noted)
        return after

    def latest(self, state: table_state.TableState) -> table_state.TableState:
        """The last state there is: `state` has been used up if something broke off before the next one was taken."""
        return state if self._latest is None else self._latest

    def measure(self, state: table_state.TableState, seconds: float) -> driver.Metrics:
        iterations = int(state.t)
        self._check_terminations(state.abnormal)
        if time.monotonic() - self._looked >= self._rest:
            self._require_finite(state)
        found = driver.Metrics(iterations, seconds, (), ())
        if self.task.tree_task is not None:
            policies, _ = table_policy.to_tabular(self.policy(state), self.task.env, self.task.tree)
            found = self.task.tree_task.metrics(policies, iterations, seconds)
        load = int(hash_table.count_used(state.table)) / 2**self.bits
        return found._replace(samples=iterations * self.config.batch * len(self.task.players), load=load)

    def _require_finite(self, state: table_state.TableState) -> None:
        """Takes as long as some iterations, in a large table: done now and then, and before a state is written."""
        begun = time.monotonic()
        is_finite = bool(_is_finite(state))
        self._looked = time.monotonic()
        self._rest = _RESTS * (self._looked - begun)
        driver.require_finite(int(state.t), is_finite, "more `exploration=`, or less extreme exponents")

    def _check_terminations(self, odd: table_state.AbnormalTerminations) -> None:
        name = self.task.env.name
        if int(odd.unfinished):
            raise TableError(
                f"a trajectory of {name} went on after {self.config.steps} joint moves, for which there is no room; "
                f"resume from the last checkpoint with `max_steps={2 * self.config.steps}`, or solve anew; "
                "if its matches may go on for ever, add a step counter to its rules"
            )
        if int(odd.conflicts) and self.task.game.goal_conflict == "refuse":
            raise game_tree.GoalConflictError(
                f"{int(odd.conflicts):,} trajectories of {name} ended with several goal values of a player, or none "
                "(`gdlx.propnet.checks.by_playing` finds a state); fix the rules, or take the highest, or 0, with "
                "`goal_conflict='max'`"
            )
        if int(odd.unbalanced):
            raise payoffs.PayoffError(
                f"the goals of {name} had a constant sum in random play, but not in {int(odd.unbalanced):,} "
                "trajectories; solve again with `payoff='goal'`"
            )

    def dropped_visits(self, state: table_state.TableState) -> int:
        """Visits of the last iteration for which the table had no place."""
        return int(state.dropped_visits)

    def unplayable(self, state: table_state.TableState) -> int:
        return int(state.abnormal.unplayable)

    def with_value(self, state: table_state.TableState, metrics: driver.Metrics) -> driver.Metrics:
        """By matches, where nothing tells it exactly."""
        return (
            metrics if metrics.value else metrics_from_matches(self.task, self.algorithm, self.policy(state), metrics)
        )

    def write_policy(self, folder: pathlib.Path, state: table_state.TableState) -> None:
        result_folder.write_table_policy(folder, self.policy(state))

    def policy(self, state: table_state.TableState) -> table_policy.TablePolicy:
        return table_policy.average_policy(state, self._settings.minimiser)

    def policies(self, state: table_state.TableState) -> tabular_policies.Policies:
        """At the sets of the task's tree."""
        return table_policy.to_tabular(self.policy(state), self.task.env, self.task.tree)[0]

    def to_checkpoint(self, state: table_state.TableState) -> table_state.TableState:
        """The state as one device would have it."""
        self._require_finite(state)
        averages = state.averages
        if self._loop.devices > 1:
            weight = self.policy(state).cumulative_policy[None]
            stamp = jnp.full((1, weight.shape[1]), state.t % table_state.FOLD_INTERVAL, jnp.int32)
            averages = table_state.AveragePolicies(weight, stamp)
        return state._replace(averages=averages)

    def from_checkpoint(self, saved: table_state.TableState) -> table_state.TableState:
        more = self._loop.devices - 1
        wider: Any = jax.tree.map(
            lambda x: jnp.concatenate([x, jnp.zeros((more, *x.shape[1:]), x.dtype)]), saved.averages
        )
        return self._loop.place(saved._replace(averages=wider if more else saved.averages))


def memory_budget() -> float:
    """That tables and trajectories may take."""
    return _MEMORY_FRACTION * (machine.machine_memory_bytes() or _DEFAULT_MEMORY_BYTES)


def estimate_value(
    task: tasks.TableTask, policy: table_policy.TablePolicy, seed: int, max_steps: int
) -> table_policy.MatchScores:
    """What everybody gets in matches of the average policies."""
    steps = max_steps or game_facts.probe(task.env.net, seed).step_capacity
    key = jax.random.fold_in(jax.random.key(seed), 1)
    found = table_policy.score_matches(task.packed, policy, key, matches=_MATCHES, steps=steps)
    if found.unfinished:
        raise TableError(f"{found.unfinished:,} matches of {task.env.name} went on after {steps} joint moves")
    return found


def metrics_from_matches(
    task: tasks.TableTask,
    algorithm: algorithms.Algorithm,
    policy: table_policy.TablePolicy,
    last: driver.Metrics,
) -> driver.Metrics:
    """Metrics with values told by matches."""
    drawn = algorithm.sampling_config
    found = estimate_value(task, policy, drawn.seed, drawn.max_steps)
    return last._replace(value=found.mean, value_error=found.error)


@jax.jit
def _is_finite(state: table_state.TableState) -> jax.Array:
    return jnp.isfinite(state.entries.regret[:-1]).all() & jnp.isfinite(state.averages.cumulative_policy[:, :-1]).all()


@contextlib.contextmanager
def _defer_interrupts() -> Iterator[list[int]]:
    """Ctrl-C is put on the list instead of breaking off."""
    noted: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield noted
        return
    before = signal.signal(signal.SIGINT, lambda number, _: noted.append(number))
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, before)
