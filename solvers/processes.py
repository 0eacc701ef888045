"""Algorithms on games, as the driver runs them: full iterations on the sequence form, or sampled trajectories."""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gdlx.envs import game_tree, sampling_form, sequence_form
from gdlx.propnet import errors
from gdlx.solvers import cfr, driver, evaluation, outcome, presets, profiles, regret


class NotFinite(errors.UserError, ArithmeticError):
    """Numbers that overflowed."""


class WrongBatch(errors.UserError, ValueError):
    """A batch that cannot be divided, or is too large."""


@functools.partial(jax.jit, static_argnames=("step", "alternating"))
def advance(
    step: presets.Step,
    game: sequence_form.SequenceForm,
    state: cfr.CfrState,
    settings: regret.Settings,
    count: jax.Array | int,
    *,
    alternating: bool = True,
) -> cfr.CfrState:
    """`count` iterations; another count is no other program."""
    end = state.t + count

    def block(before: cfr.CfrState) -> cfr.CfrState:
        # Folds come at multiples of FOLD, so that it does not matter where a run was stopped in between.
        stop = jnp.minimum(end, (before.t // cfr.FOLD + 1) * cfr.FOLD)
        after: cfr.CfrState = jax.lax.fori_loop(
            before.t, stop, lambda _, s: step(game, s, settings, alternating=alternating), before
        )
        folded: cfr.CfrState = jax.lax.cond(stop % cfr.FOLD == 0, cfr.fold, lambda s: s, after)
        return folded

    done: cfr.CfrState = jax.lax.while_loop(lambda s: s.t < end, block, state)
    return done


# In programs of their own: operation by operation, each would be compiled for every shape.
evaluate = jax.jit(evaluation.evaluate)


@jax.jit
def _evaluate_average(game: sequence_form.SequenceForm, state: cfr.CfrState) -> tuple[evaluation.Evaluation, jax.Array]:
    """And whether all numbers of the state are finite: regret matching would hide those that are not."""
    return evaluation.average_evaluation(game, state), _is_finite(
        (state.regret, state.weight, state.recent, state.plan)
    )


def _is_finite(arrays: Any) -> jax.Array:
    return jnp.stack([jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(arrays)]).all()


def metrics(found: evaluation.Evaluation, iterations: int, seconds: float, is_finite: bool = True) -> driver.Metrics:
    value, gain = (tuple(np.asarray(x, float).tolist()) for x in (found.value, found.gain))
    if not (is_finite and all(map(math.isfinite, (*value, *gain)))):
        raise NotFinite(
            f"numbers overflowed before iteration {iterations}; what was saved before is good. "
            "Try --x64, or exponents that are less extreme"
        )
    return driver.Metrics(iterations, seconds, value, gain)


class FullProcess:
    """Every information set in every iteration."""

    def __init__(
        self,
        tree: game_tree.GameTree,
        form: sequence_form.SequenceForm,
        layouts: tuple[sequence_form.Layout, ...],
        algorithm: presets.Algorithm,
    ) -> None:
        self.tree, self.form, self.layouts, self.algorithm = tree, form, layouts, algorithm
        dtype = jnp.result_type(float)
        self._settings = jax.tree.map(lambda x: np.asarray(x, dtype), algorithm.settings)

    def init(self) -> cfr.CfrState:
        return cfr.init(self.form)

    def advance(self, state: cfr.CfrState, count: int) -> cfr.CfrState:
        chosen = self.algorithm
        after: cfr.CfrState = advance(
            chosen.step, self.form, state, self._settings, count, alternating=chosen.alternating
        )
        int(after.t)  # waits for it
        return after

    def measure(self, state: cfr.CfrState, seconds: float) -> driver.Metrics:
        found, is_finite = jax.device_get(_evaluate_average(self.form, state))
        return metrics(found, int(state.t), seconds, bool(is_finite))

    def policies(self, state: cfr.CfrState) -> profiles.Policies:
        return tuple(
            profiles.from_plan(player, weight[own.place])
            for player, own, weight in zip(
                self.tree.players, self.layouts, cfr.sums(jax.device_get(state)), strict=True
            )
        )


class SampledProcess:
    """Batches of trajectories, divided among the devices there are."""

    def __init__(
        self,
        tree: game_tree.GameTree,
        form: sequence_form.SequenceForm,
        layouts: tuple[sequence_form.Layout, ...],
        algorithm: presets.Algorithm,
        sampling: presets.Sampling,
    ) -> None:
        self.tree, self.form, self.layouts = tree, form, layouts
        self.batch = sampling.batch
        if self.batch < outcome.LANES or self.batch % outcome.LANES:
            raise WrongBatch(f"a batch is a multiple of {outcome.LANES} trajectories, not {self.batch}")
        self.sampling = sampling_form.sampling_form(tree)
        needed = 40 * self.batch * self.sampling.slots
        if needed > _MAX_BYTES:
            raise WrongBatch(
                f"{self.batch:,} trajectories of {tree.name} need about {needed / 2**30:.1f} GiB at once, more than "
                f"{_MAX_BYTES / 2**30:.0f} GiB; take a smaller --batch"
            )
        dtype = jnp.result_type(float)
        minimiser = jax.tree.map(lambda x: np.asarray(x, dtype), algorithm.settings)
        decay = None if sampling.decay is None else np.asarray(sampling.decay, dtype)
        self._runner = outcome.on_devices(tuple(jax.local_devices()), self.batch)
        settings = outcome.SampleSettings(minimiser, np.asarray(sampling.exploration, dtype), decay)
        self._has_baselines = decay is not None
        self._arguments = self._runner.place((settings, jax.random.key(sampling.seed)))
        self._form = self._runner.place(self.sampling)

    def init(self) -> outcome.SampleState:
        return outcome.init(self.sampling, baselines=self._has_baselines)

    def advance(self, state: outcome.SampleState, count: int) -> outcome.SampleState:
        after = self._runner.advance(self._form, self._runner.place(state), *self._arguments, count)
        int(after.t)  # waits for it
        return after

    def measure(self, state: outcome.SampleState, seconds: float) -> driver.Metrics:
        found = evaluate(self.form, profiles.to_levels(self.tree, self.layouts, self.policies(state)))
        is_finite = all(np.isfinite(x).all() for x in (np.asarray(state.regret), np.asarray(state.weight)))
        return metrics(jax.device_get(found), int(state.t), seconds, is_finite)

    def policies(self, state: outcome.SampleState) -> profiles.Policies:
        weight = np.asarray(state.weight, np.float64)
        found = []
        start = 0
        for player in self.tree.players:
            widths = np.diff(player.first)
            column = start + np.repeat(np.arange(player.sets), widths)
            option = np.arange(player.sequences - 1) - np.repeat(player.first[:-1] - 1, widths)
            found.append(profiles.normalised(player, np.concatenate([[1.0], weight[option, column]])))
            start += player.sets
        return tuple(found)


_MAX_BYTES = 8 * 2**30
