"""The solver that samples a game into a hash table."""

import math
import pathlib
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gdlx.envs import devices as machine
from gdlx.envs import game_facts, payoffs
from gdlx.envs.trees import game_tree
from gdlx.propnet.checks import repetition
from gdlx.propnet.common import errors, interrupts
from gdlx.solvers import algorithms, tabular_policies, tasks
from gdlx.solvers.mccfr import hash_table, table_loop, table_policy, table_state
from gdlx.solvers.runs import driver, result_folder, solver, tree_solvers

_CHECK_PAUSE = 20  # a check of the whole table is followed by a pause of so many times its duration
_MEMORY_FRACTION = 0.8  # of the machine's memory, for a table and its batch
_DEFAULT_MEMORY_BYTES = 16 * 2**30  # where the memory of the machine is unknown
_MATCHES = 2**16  # to estimate the value of policies


class TableError(errors.UserError, ValueError):
    """A table or trajectories that exceed their capacity or the memory."""


class TableSolver(solver.Solver[table_state.TableState]):
    """Outcome sampling on an environment. `advance` donates the buffers of a state to the next one.

    On CPUs it uses one device: XLA divides the work of a batch among all cores, and several devices would repeat parts
    of it.
    """

    def __init__(
        self,
        task: tasks.TableTask,
        algorithm: algorithms.Algorithm,
        devices: tuple[jax.Device, ...] | None = None,
    ) -> None:
        sampling = algorithm.sampling_config
        assert sampling.table is not None
        self.task, self.algorithm, self.bits = task, algorithm, sampling.table
        devices = default_devices() if devices is None else devices
        settings = tree_solvers.make_sample_settings(algorithm)
        self._game = task.packed
        if not (sampling.max_steps or game_facts.probe(task.env.propnet, sampling.seed).ends):
            raise TableError(
                f"no random match of {task.env.name} ended, and sampling needs a game that ends; add a step counter to "
                f"its rules, e.g. {repetition.STEP_COUNTER}"
            )
        self.config = table_state.SamplerConfig(
            sampling.batch,
            sampling.max_steps or game_facts.probe(task.env.propnet, sampling.seed).step_capacity,
            sampling.grow,
            sampling.decay is not None,
            settings.minimiser.optimism is not None,
        )
        self._require_memory(len(devices))
        self._loop = table_loop.make_loop(devices, self._game, self.config)
        self._settings: Any = jax.tree.map(lambda x: np.asarray(x, np.float32), settings)
        self._key = jax.random.key(sampling.seed)
        self._is_interrupted = False
        self._latest: table_state.TableState | None = None
        self._checked, self._pause = -math.inf, 0.0

    def _require_memory(self, devices: int) -> None:
        least, most = hash_table.LEAST_BITS, hash_table.MOST_BITS
        if not least <= self.bits <= most:
            raise TableError(
                f"`table=` is the base-2 logarithm of a number of information sets, {least} to {most}; not {self.bits}"
            )
        players, actions, allowed = self.task.env.num_players, self.task.env.num_actions, memory_budget()
        largest = table_state.largest_bits(players, actions, self.config, allowed, devices=devices)
        if 2**self.bits * max(1, actions) >= 2**31:
            raise TableError(
                f"a table of 2^{self.bits} information sets with {actions} actions has more entries "
                f"than can be indexed; use a smaller table, `table={largest}` or less"
            )
        table = devices * table_state.updated_row_bytes(players, actions, self.config) * 2**self.bits
        visits = table_state.visit_bytes(players, self.config)
        if table + visits > allowed:
            trajectories = f"{self.config.batch:,} trajectories of up to {self.config.steps} steps"
            infosets = f"2^{self.bits} information sets"
            fitting = f"table, `table={largest}` or less"
            what, argument = (infosets, fitting) if table > visits else (trajectories, "`batch=`")
            raise TableError(
                f"{what} of {self.task.env.name} need about {max(table, visits) / 2**30:.1f} GiB, and table and "
                f"trajectories may take {allowed / 2**30:.1f} GiB; use a smaller {argument}"
            )

    def init(self) -> table_state.TableState:
        with jax.enable_x64(False):
            return self._loop.place(table_state.init(self._game, self.config, self.bits, self._loop.devices))

    def advance(self, state: table_state.TableState, count: int) -> table_state.TableState:
        if self._is_interrupted:
            self._is_interrupted = False
            raise KeyboardInterrupt
        # An interrupt in between would leave neither the old state, which is donated, nor the new one.
        with interrupts.defer() as signals, jax.enable_x64(False):
            after = self._loop.advance(state, self._settings, self._key, count)
            int(after.t)  # waits for it
            self._latest = after
        self._is_interrupted = bool(signals)
        return after

    def latest(self, state: table_state.TableState) -> table_state.TableState:
        """Returns the last valid state: `state` was donated if a later call of `advance` was interrupted."""
        return state if self._latest is None else self._latest

    def measure(self, state: table_state.TableState, seconds: float) -> driver.Metrics:
        iterations = int(state.t)
        self._check_terminations(state.abnormal)
        if time.monotonic() - self._checked >= self._pause:
            self._require_finite(state)
        metrics = driver.Metrics(iterations, seconds, (), ())
        if self.task.tree_task is not None:
            policies, _ = table_policy.to_tabular(self.policy(state), self.task.env, self.task.tree)
            metrics = self.task.tree_task.metrics(policies, iterations, seconds)
        load = int(hash_table.count_used(state.table)) / 2**self.bits
        return metrics._replace(samples=iterations * self.config.batch * len(self.task.players), load=load)

    def _require_finite(self, state: table_state.TableState) -> None:
        """Raises if numbers overflowed. In a large table this takes as long as some iterations, so `measure` skips it
        at times; `to_checkpoint` never does."""
        begun = time.monotonic()
        is_finite = bool(_is_finite(state))
        self._checked = time.monotonic()
        self._pause = _CHECK_PAUSE * (self._checked - begun)
        driver.require_finite(int(state.t), is_finite, "more `exploration=`, or less extreme exponents")

    def _check_terminations(self, abnormal: table_state.AbnormalTerminations) -> None:
        name = self.task.env.name
        if int(abnormal.unfinished):
            raise TableError(
                f"a trajectory of {name} is longer than the capacity of {self.config.steps} joint actions; "
                f"resume from the last checkpoint with `max_steps={2 * self.config.steps}`, or solve again; "
                "if its matches need not end, add a step counter to its rules"
            )
        if int(abnormal.conflicts) and self.task.game.goal_conflict == "refuse":
            raise game_tree.GoalConflictError(
                f"{int(abnormal.conflicts):,} trajectories of {name} ended with several goal values of a player, or "
                "none (`gdlx.propnet.checks.by_playing` finds a state); fix the rules, or use the highest, or 0, with "
                "`goal_conflict='max'`"
            )
        if int(abnormal.unbalanced):
            raise payoffs.PayoffError(
                f"the goals of {name} had a constant sum in random play, but not in {int(abnormal.unbalanced):,} "
                "trajectories; solve again with `payoff='goal'`"
            )

    def dropped_visits(self, state: table_state.TableState) -> int:
        """Returns the visits of the last iteration that were dropped because the table was full."""
        return int(state.dropped_visits)

    def unplayable(self, state: table_state.TableState) -> int:
        return int(state.abnormal.unplayable)

    def with_value(self, state: table_state.TableState, metrics: driver.Metrics) -> driver.Metrics:
        """Estimates the value by matches where it is not known exactly."""
        return (
            metrics if metrics.value else metrics_from_matches(self.task, self.algorithm, self.policy(state), metrics)
        )

    def table(self, state: table_state.TableState) -> table_policy.TablePolicy:
        return self.policy(state)

    def write_policy(self, folder: pathlib.Path, state: table_state.TableState) -> None:
        result_folder.write_table_policy(folder, self.policy(state))

    def policy(self, state: table_state.TableState) -> table_policy.TablePolicy:
        """Returns the average policies as a hash table."""
        return table_policy.average_policy(state, self._settings.minimiser)

    def policies(self, state: table_state.TableState) -> tabular_policies.Policies:
        """Returns the average policies at the information sets of the task's tree."""
        return table_policy.to_tabular(self.policy(state), self.task.env, self.task.tree)[0]

    def to_checkpoint(self, state: table_state.TableState) -> table_state.TableState:
        """Returns the state as on a single device."""
        self._require_finite(state)
        averages = state.averages
        if self._loop.devices > 1:
            cumulative = self.policy(state).cumulative_policy[None]
            stamp = jnp.full((1, cumulative.shape[1]), state.t % table_state.FOLD_INTERVAL, jnp.int32)
            averages = table_state.AveragePolicies(cumulative, stamp)
        return state._replace(averages=averages)

    def from_checkpoint(self, saved: table_state.TableState) -> table_state.TableState:
        more = self._loop.devices - 1
        wider: Any = jax.tree.map(
            lambda x: jnp.concatenate([x, jnp.zeros((more, *x.shape[1:]), x.dtype)]), saved.averages
        )
        return self._loop.place(saved._replace(averages=wider if more else saved.averages))


def default_devices() -> tuple[jax.Device, ...]:
    """Returns the devices that a solver uses: all accelerators, or one CPU."""
    local = jax.local_devices()
    return tuple(local[:1] if local[0].platform == "cpu" else local)


def memory_budget() -> float:
    """Returns the bytes that tables and trajectories may use."""
    return _MEMORY_FRACTION * (machine.machine_memory_bytes() or _DEFAULT_MEMORY_BYTES)


def estimate_value(
    task: tasks.TableTask, policy: table_policy.TablePolicy, seed: int, max_steps: int
) -> table_policy.MatchScores:
    """Estimates the expected payoffs of a policy by matches.

    Raises:
      TableError: a match is longer than the capacity for joint actions.
    """
    steps = max_steps or game_facts.probe(task.env.propnet, seed).step_capacity
    key = jax.random.fold_in(jax.random.key(seed), 1)
    scores = table_policy.score_matches(task.packed, policy, key, matches=_MATCHES, steps=steps)
    if scores.unfinished:
        raise TableError(f"{scores.unfinished:,} matches of {task.env.name} are longer than {steps} joint actions")
    return scores


def metrics_from_matches(
    task: tasks.TableTask,
    algorithm: algorithms.Algorithm,
    policy: table_policy.TablePolicy,
    last: driver.Metrics,
) -> driver.Metrics:
    """Returns metrics with values that are estimated by matches."""
    sampling = algorithm.sampling_config
    scores = estimate_value(task, policy, sampling.seed, sampling.max_steps)
    return last._replace(value=scores.mean, value_error=scores.error)


@jax.jit
def _is_finite(state: table_state.TableState) -> jax.Array:
    return jnp.isfinite(state.entries.regret[:-1]).all() & jnp.isfinite(state.averages.cumulative_policy[:, :-1]).all()
