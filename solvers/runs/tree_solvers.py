"""Solvers of unrolled games: full iterations on the sequence form, or sampled trajectories."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gdlx.envs.trees import sampling_form, sequence_form
from gdlx.propnet.common import errors
from gdlx.solvers import algorithms, tabular_policies, tasks
from gdlx.solvers.exact import best_response, cfr, regret_matching
from gdlx.solvers.mccfr import external_sampling, lane_packing, mccfr, outcome_sampling
from gdlx.solvers.runs import driver, solver


class BatchSizeError(errors.UserError, ValueError):
    """A batch that is too large."""


@functools.partial(jax.jit, static_argnames=("step", "alternating"))
def advance(
    step: algorithms.Step,
    game: sequence_form.SequenceForm,
    state: cfr.CfrState,
    settings: regret_matching.Settings,
    count: jax.Array | int,
    *,
    alternating: bool = True,
) -> cfr.CfrState:
    """Run `count` iterations; the count is traced, so that every count is the same program."""
    end = state.t + count

    def block(before: cfr.CfrState) -> cfr.CfrState:
        # Fold at multiples of FOLD_INTERVAL, so that results do not depend on where a run was stopped in between.
        stop = jnp.minimum(end, (before.t // cfr.FOLD_INTERVAL + 1) * cfr.FOLD_INTERVAL)
        after: cfr.CfrState = jax.lax.fori_loop(
            before.t, stop, lambda _, s: step(game, s, settings, alternating=alternating), before
        )
        folded: cfr.CfrState = jax.lax.cond(stop % cfr.FOLD_INTERVAL == 0, cfr.fold, lambda s: s, after)
        return folded

    done: cfr.CfrState = jax.lax.while_loop(lambda s: s.t < end, block, state)
    return done


@jax.jit
def _evaluate_average(
    game: sequence_form.SequenceForm, state: cfr.CfrState
) -> tuple[best_response.Evaluation, jax.Array]:
    """Evaluates the average, and checks that all numbers are finite: regret matching would hide those that are not."""
    return best_response.evaluate_average(game, state), _is_finite(
        (state.regret, state.cumulative_plan, state.recent_sum, state.realization_plan)
    )


def _is_finite(arrays: Any) -> jax.Array:
    return jnp.stack([jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(arrays)]).all()


class FullSolver(solver.Solver[cfr.CfrState]):
    """Full iterations: each visits every information set."""

    def __init__(self, task: tasks.TreeTask, algorithm: algorithms.Algorithm) -> None:
        assert algorithm.step is not None
        self.task, self._step, self._alternating = task, algorithm.step, algorithm.alternating
        self._settings = to_default_precision(algorithm.settings)

    @property
    def arrays(self) -> sequence_form.SequenceForm:
        return self.task.form

    def init(self) -> cfr.CfrState:
        return cfr.init(self.task.form)

    def advance(self, state: cfr.CfrState, count: int) -> cfr.CfrState:
        after: cfr.CfrState = advance(
            self._step, self.task.form, state, self._settings, count, alternating=self._alternating
        )
        int(after.t)  # waits for it
        return after

    def measure(self, state: cfr.CfrState, seconds: float) -> driver.Metrics:
        evaluation, is_finite = jax.device_get(_evaluate_average(self.task.form, state))
        return tasks.make_metrics(evaluation, int(state.t), seconds, bool(is_finite))

    def policies(self, state: cfr.CfrState) -> tabular_policies.Policies:
        return tuple(
            tabular_policies.from_realization_plan(player, plan[layout.place])
            for player, layout, plan in zip(
                self.task.tree.players, self.task.layouts, cfr.cumulative_plans(jax.device_get(state)), strict=True
            )
        )


def to_default_precision(settings: Any) -> Any:
    """Converts numbers to the default precision of jax."""
    dtype = jnp.result_type(float)
    return jax.tree.map(lambda x: np.asarray(x, dtype), settings)


def make_sample_settings(algorithm: algorithms.Algorithm) -> mccfr.MccfrSettings:
    """Builds the traced settings of an algorithm that samples."""
    sampling = algorithm.sampling_config
    average_strategy = None
    if sampling.scheme == "average-strategy":
        average_strategy = external_sampling.AverageStrategy(sampling.epsilon, sampling.tau, sampling.beta)
    settings: mccfr.MccfrSettings = to_default_precision(
        mccfr.MccfrSettings(algorithm.settings, sampling.exploration, sampling.decay, average_strategy)
    )
    return settings


def make_sampler(form: sampling_form.SamplingForm, drawn: algorithms.SamplingConfig, game: str) -> mccfr.Sampler:
    """Builds the sampler of an unrolled game.

    Raises:
      BatchSizeError: the batch is too large.
    """
    if drawn.scheme == "outcome":
        _require_memory(40 * form.slots, drawn.batch, game)
        return outcome_sampling.sample
    sampler = external_sampling.ExternalSampler(external_sampling.compute_capacities(form, width=drawn.width))
    each = max(external_sampling.bytes_per_traversal(capacities) for capacities in sampler.capacities)
    _require_memory(each, drawn.batch, game)
    widest = max(capacity.lanes * capacity.options for capacities in sampler.capacities for capacity in capacities)
    lanes = drawn.batch * widest
    if lanes > lane_packing.MAX_SLOTS:
        raise BatchSizeError(
            f"{drawn.batch:,} traversals of {game} may need {lanes:,.0f} lanes at once, more than "
            f"{lane_packing.MAX_SLOTS:,}; use a smaller `batch=` or `width=`"
        )
    return sampler


def _require_memory(each: float, batch: int, game: str) -> None:
    needed = each * batch
    if needed > _MAX_BYTES:
        raise BatchSizeError(
            f"{batch:,} trajectories of {game} need about {needed / 2**30:.1f} GiB at once, "
            f"more than {_MAX_BYTES / 2**30:.0f} GiB; use a smaller `batch=`"
        )


class SampledSolver(solver.Solver[mccfr.MccfrState]):
    """Batches of trajectories or traversals of an unrolled game, divided among all devices."""

    def __init__(self, task: tasks.TreeTask, algorithm: algorithms.Algorithm) -> None:
        config = algorithm.sampling_config
        self.task, self.batch = task, config.batch
        self.sampling = sampling_form.sampling_form(task.tree)
        self._has_baselines = config.decay is not None
        sampler = make_sampler(self.sampling, config, task.tree.name)
        self._loop = mccfr.make_loop(tuple(jax.local_devices()), sampler, self.batch)
        arguments = (self.sampling, make_sample_settings(algorithm), jax.random.key(config.seed))
        self._form, *self._arguments = self._loop.place(arguments)

    @property
    def arrays(self) -> sampling_form.SamplingForm:
        return self.sampling

    def init(self) -> mccfr.MccfrState:
        return mccfr.init(self.sampling, baselines=self._has_baselines)

    def advance(self, state: mccfr.MccfrState, count: int) -> mccfr.MccfrState:
        after = self._loop.advance(self._form, self._loop.place(state), *self._arguments, count)
        int(after.t)  # waits for it
        return after

    def measure(self, state: mccfr.MccfrState, seconds: float) -> driver.Metrics:
        is_finite = all(np.isfinite(x).all() for x in (*state.regret, *state.cumulative_policy))
        iterations = int(state.t)
        driver.require_finite(iterations, is_finite)
        metrics = self.task.metrics(self.policies(state), iterations, seconds)
        return metrics._replace(samples=iterations * self.batch * len(self.task.tree.players))

    def policies(self, state: mccfr.MccfrState) -> tabular_policies.Policies:
        return tuple(
            tabular_policies.from_table(player, np.asarray(table, np.float64))
            for player, table in zip(self.task.tree.players, state.cumulative_policy, strict=True)
        )


_MAX_BYTES = 8 * 2**30
