"""Thousands of runs on one game at once: other settings, other first regrets, or other payoffs in each.

The batch is the last axis of every array, so that each operation of one run becomes the same operation on a contiguous
row: many times the throughput of one run after the other, where a plain vmap gives little. It is cut into chunks that
fit into the cache of a core, which run side by side on all cores or devices.
"""

import concurrent.futures
import functools
from typing import Any, NamedTuple

import jax
import numpy as np
import numpy.typing as npt

from gdlx.envs import devices, sampling_form, sequence_form
from gdlx.propnet import errors
from gdlx.solvers import cfr, evaluation, presets, problems, processes, profiles, regret, sampled

_CACHE_BYTES = 2**20  # of one core, about
_LANES = 16  # a chunk is a multiple: what vector units work on at once


class BatchError(errors.UserError, ValueError):
    """Axes that do not fit together, or too little memory."""


class BatchResult(NamedTuple):
    """Axes: P players, B runs."""

    value: npt.NDArray[np.float64]  # [P, B] of the average policies
    gain: npt.NDArray[np.float64]  # [P, B]
    weight: tuple[npt.NDArray[np.float64], ...]  # P x [size, B] sums of plans (sampled: policies), up to scale

    @property
    def exploitability(self) -> npt.NDArray[np.float64]:
        """[B] NashConv / 2, for two players."""
        total: npt.NDArray[np.float64] = self.gain.sum(axis=0)
        return total / 2


def bytes_per_run(game: sequence_form.SequenceForm) -> int:
    """Of the state of one run and of what an iteration computes from it."""
    width = np.dtype(jax.numpy.result_type(float)).itemsize
    return 6 * width * sum(_size(player) for player in game.players)


def _size(player: sequence_form.PlayerForm) -> int:
    return 1 + sum(level.size for level in player.uniform)


def chunk_size(game: sequence_form.SequenceForm, runs: int) -> int:
    """Runs that share a core's cache; at least one lane for every core."""
    fitting = _CACHE_BYTES // bytes_per_run(game) // _LANES * _LANES
    return int(max(1, min(runs, max(_LANES, fitting))))


def solve(
    game: sequence_form.SequenceForm,
    algorithm: presets.Algorithm,
    settings: regret.Settings,
    iterations: int,
    *,
    regrets: tuple[cfr.Levels, ...] | None = None,
    chunk: int | None = None,
    max_bytes: int = 8 * 2**30,
) -> BatchResult:
    """Run `iterations` of an algorithm for every member of a batch.

    Its size B is that of the arrays [B] in `settings`, of `regrets` (as in CfrState, with a last axis B), or of the
    variants of payoffs that `game` was made with; all that have this axis must agree.
    """
    if algorithm.step is None:
        raise BatchError(f"{algorithm.name} has no full iterations; batches of sampled ones are `sample`'s")
    runs = _runs(game, settings, regrets)
    size = chunk_size(game, runs) if chunk is None else chunk
    there = jax.local_devices()
    workers = max(len(there), devices.cores() if there[0].platform == "cpu" else 1)
    needed = bytes_per_run(game) * size * workers + sum(8 * runs * _size(player) for player in game.players)
    if needed > max_bytes:
        raise BatchError(
            f"{runs:,} runs need about {needed / 2**30:.1f} GiB, more than the {max_bytes / 2**30:.1f} GiB allowed; "
            "run fewer at once, or allow more with max_bytes"
        )

    def work(number: int) -> tuple[evaluation.Evaluation, tuple[jax.Array, ...]]:
        part = slice(number * size, min(runs, (number + 1) * size))
        inputs = (_cut_game(game, part), _cut_settings(settings, part), _cut_regrets(regrets, part))
        placed = jax.device_put(inputs, there[number % len(there)])
        done: tuple[evaluation.Evaluation, tuple[jax.Array, ...]] = jax.device_get(
            _run(algorithm.step, *placed, iterations, runs=part.stop - part.start, alternating=algorithm.alternating)
        )
        return done

    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        parts = list(pool.map(work, range(-(-runs // size))))
    return BatchResult(
        np.concatenate([found.value for found, _ in parts], axis=1, dtype=np.float64),
        np.concatenate([found.gain for found, _ in parts], axis=1, dtype=np.float64),
        tuple(np.concatenate(own, axis=1, dtype=np.float64) for own in zip(*(w for _, w in parts), strict=True)),
    )


def sample(
    task: problems.Problem,
    scheme: sampled.Scheme,
    settings: sampled.SampleSettings,
    seeds: npt.ArrayLike,
    iterations: int,
    *,
    batch: int = 64,
    max_bytes: int = 8 * 2**30,
) -> BatchResult:
    """Run sampled iterations for every seed [B], in one program; any of the settings may be arrays [B] too.

    The tree must have its edges (`keep_edges`). Divide a large batch yourself: all runs are in memory at once.
    """
    form = sampling_form.sampling_form(task.tree)
    drawn = processes.in_precision(settings)
    numbers = np.asarray(seeds)
    sizes = {len(numbers), *(len(x) for x in jax.tree.leaves(drawn) if x.ndim)}
    if len(sizes) != 1:
        raise BatchError(f"the arrays of a batch must have one size; these have {', '.join(map(str, sorted(sizes)))}")
    needed = (
        len(numbers) * drawn.minimiser.gamma.itemsize * (5 * form.shape[0] * form.shape[1] + 10 * batch * form.slots)
    )
    if needed > max_bytes:
        raise BatchError(
            f"{len(numbers):,} runs need about {needed / 2**30:.1f} GiB, more than the {max_bytes / 2**30:.1f} GiB "
            "allowed; run fewer at once, take a smaller batch, or allow more with max_bytes"
        )
    keys = jax.vmap(jax.random.key)(numbers)
    weights = _sample(form, drawn, keys, iterations, scheme=scheme, batch=batch)
    policies = tuple(
        profiles.of_table(player, np.moveaxis(np.asarray(table, np.float64), 0, -1))
        for player, table in zip(task.tree.players, weights, strict=True)
    )
    found = jax.device_get(problems.evaluate(task.form, profiles.to_levels(task.tree, task.layouts, policies)))
    return BatchResult(found.value, found.gain, policies)


@functools.partial(jax.jit, static_argnames=("scheme", "batch"))
def _sample(
    form: sampling_form.SamplingForm,
    settings: sampled.SampleSettings,
    keys: jax.Array,
    iterations: int,
    *,
    scheme: sampled.Scheme,
    batch: int,
) -> sampled.Tables:
    """P x [B, A, I] sums for the average policies."""
    axes = jax.tree.map(lambda x: 0 if x.ndim else None, settings)

    def run(own: sampled.SampleSettings, key: jax.Array) -> sampled.Tables:
        state = sampled.init(form, baselines=own.decay is not None)
        done: sampled.SampleState = jax.lax.fori_loop(
            0, iterations, lambda _, s: sampled.step(form, s, own, key, scheme=scheme, batch=batch), state
        )
        return done.weight

    weights: sampled.Tables = jax.vmap(run, in_axes=(axes, 0))(settings, keys)
    return weights


@functools.partial(jax.jit, static_argnames=("step", "runs", "alternating"))
def _run(
    step: presets.Step,
    game: sequence_form.SequenceForm,
    settings: regret.Settings,
    regrets: tuple[cfr.Levels, ...] | None,
    iterations: int,
    *,
    runs: int,
    alternating: bool,
) -> tuple[evaluation.Evaluation, tuple[jax.Array, ...]]:
    if regrets is None:
        regrets = tuple(
            tuple(jax.numpy.zeros((*level.shape, runs), level.dtype) for level in player.uniform)
            for player in game.players
        )
    state = cfr.restart(game, regrets)
    state = processes.advance(step, game, state, settings, iterations, alternating=alternating)
    return evaluation.average_evaluation(game, state), cfr.sums(state)


def _runs(game: sequence_form.SequenceForm, settings: regret.Settings, regrets: tuple[cfr.Levels, ...] | None) -> int:
    sizes = {len(value) for value in _arrays(settings) if value is not None and value.ndim}
    sizes |= {level.shape[2] for levels in regrets or () for level in levels}
    for player in game.players:
        sizes |= {block.payoff.shape[3] for block in player.blocks if block.payoff.ndim == 4}
        sizes |= {player.entries.payoff.shape[1]} if player.entries.payoff.ndim == 2 else set()
    if len(sizes) != 1:
        raise BatchError(
            f"the arrays of a batch must have one size; these have {', '.join(map(str, sorted(sizes)))}"
            if sizes
            else "nothing here is a batch: give some setting as an array with a number for every run"
        )
    return int(sizes.pop())


def _arrays(settings: regret.Settings) -> list[Any]:
    dtype = jax.numpy.result_type(float)
    return [None if value is None else np.asarray(value, dtype) for value in settings]


def _cut_settings(settings: regret.Settings, part: slice) -> regret.Settings:
    whole = _arrays(settings)
    return regret.Settings(*(value[part] if value is not None and value.ndim else value for value in whole))


def _cut_regrets(regrets: tuple[cfr.Levels, ...] | None, part: slice) -> tuple[cfr.Levels, ...] | None:
    return None if regrets is None else jax.tree.map(lambda level: level[..., part], regrets)


def _cut_game(game: sequence_form.SequenceForm, part: slice) -> sequence_form.SequenceForm:
    """Variants of payoffs have one more axis than payoffs."""
    players = []
    for player in game.players:
        blocks = tuple(
            block._replace(payoff=block.payoff[..., part]) if block.payoff.ndim == 4 else block
            for block in player.blocks
        )
        entries = player.entries
        if entries.payoff.ndim == 2:
            entries = entries._replace(payoff=entries.payoff[:, part])
        players.append(player._replace(blocks=blocks, entries=entries))
    return sequence_form.SequenceForm(tuple(players))
