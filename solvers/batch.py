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

from gdlx.envs import devices, sequence_form
from gdlx.propnet import errors
from gdlx.solvers import cfr, evaluation, presets, processes, regret

_CACHE_BYTES = 2**20  # of one core, about
_LANES = 16  # a chunk is a multiple: what vector units work on at once


class BatchError(errors.UserError, ValueError):
    """Axes that do not fit together, or too little memory."""


class BatchResult(NamedTuple):
    """Axes: P players, B runs."""

    value: npt.NDArray[np.float64]  # [P, B] of the average policies
    gain: npt.NDArray[np.float64]  # [P, B]
    weight: tuple[npt.NDArray[np.float64], ...]  # P x [size, B] sums of plans: average policies up to scale

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
