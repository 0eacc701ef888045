"""Thousands of runs on one game at once, which differ in settings, seeds, initial regrets or payoffs.

In full iterations the batch is the last axis of every array, so that each operation of one run becomes the same
operation on a contiguous row: many times the throughput of one run after the other, where a plain vmap gains little.
The batch is split into chunks that fit into the cache of a core, which run in parallel on all cores or devices. Sampled
runs are vmapped, in chunks as well.
"""

import concurrent.futures
import functools
import itertools
import threading
import time
from collections.abc import Generator, Sequence
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from gdlx.envs import devices
from gdlx.envs.trees import sampling_form, sequence_form
from gdlx.propnet.common import errors
from gdlx.solvers import algorithms, tabular_policies, tasks
from gdlx.solvers.exact import best_response, cfr, regret_matching
from gdlx.solvers.mccfr import mccfr
from gdlx.solvers.runs import tree_solvers

_CACHE_BYTES = 2**20  # of one core, roughly
_LANES = 16  # the size of a chunk is a multiple, for vector units
_SAMPLED_LANES = 2**15  # trajectories in lockstep, over all runs of a chunk: more are not faster
MAX_BYTES = 8 * 2**30


class BatchError(errors.UserError, ValueError):
    """Arrays of different batch sizes, or too little memory."""


class BatchResult(NamedTuple):
    """Metrics and policies of all runs. Axes: P players, B runs."""

    value: npt.NDArray[np.float64]  # [P, B] of the average policies
    improvements: npt.NDArray[np.float64]  # [P, B]
    # P x [size, B] cumulative realization plans (sampled: policies), up to scale
    cumulative_policy: tuple[npt.NDArray[np.float64], ...]

    @property
    def exploitability(self) -> npt.NDArray[np.float64]:
        """[B] NashConv / 2, for two players."""
        total: npt.NDArray[np.float64] = self.improvements.sum(axis=0)
        return total / 2


class ChunkResult(NamedTuple):
    """Finished runs of a chunk. Axes: N measurements, P players, B runs of the chunk."""

    part: slice  # the runs of the batch
    iterations: tuple[int, ...]  # [N]
    seconds: tuple[float, ...]  # [N] of the whole chunk until then, without compilation and measurements
    value: npt.NDArray[np.float64]  # [N, P, B] of the average policies
    improvements: npt.NDArray[np.float64]  # [N, P, B]
    is_finite: npt.NDArray[np.bool_]  # [N, B]
    cumulative_policy: tuple[npt.NDArray[np.float64], ...]  # P x [size, B], as in BatchResult


class _Measurement(NamedTuple):
    """Axes: P players, B runs."""

    value: Any  # [P, B]
    improvements: Any  # [P, B]
    is_finite: Any  # [B]


class BatchSolver(Protocol):
    """Many runs of an algorithm on a game, which are started and advanced one chunk at a time."""

    count: int
    chunk: int  # runs of a chunk
    bytes_per_run: int  # while it runs
    result_bytes_per_run: int  # of its result

    def start(self, part: slice, device: jax.Device) -> Any:
        """Returns the inputs and the state of some runs, for the other methods."""

    def advance(self, started: Any, iterations: int) -> Any:
        """Run so many iterations and wait for them."""

    def measure(self, started: Any) -> _Measurement: ...

    def cumulative_policy(self, started: Any) -> tuple[npt.NDArray[np.float64], ...]: ...


def bytes_per_run(game: sequence_form.SequenceForm) -> int:
    """Returns the bytes of the state of one run and of the temporaries of an iteration."""
    width = np.dtype(jnp.result_type(float)).itemsize
    return 6 * width * sum(_size(player) for player in game.players)


def _size(player: sequence_form.PlayerForm) -> int:
    return 1 + sum(level.size for level in player.uniform)


def num_workers() -> int:
    """Returns the number of chunks that run in parallel."""
    local = jax.local_devices()
    return max(len(local), devices.available_cores() if local[0].platform == "cpu" else 1)


def chunk_size(game: sequence_form.SequenceForm, runs: int) -> int:
    """Returns the runs of a chunk: as fit into a core's cache, and few enough to occupy every core."""
    fitting = _CACHE_BYTES // bytes_per_run(game) // _LANES * _LANES
    shared = -(-runs // num_workers() // _LANES) * _LANES
    return int(max(1, min(runs, max(_LANES, min(fitting, shared)))))


class FullBatchSolver:
    """Full iterations. The batch size B is that of the arrays [B] in `settings`, of `regrets` (as in CfrState, with a
    last axis B), or of the variants of payoffs that `game` was built with; all that have this axis must agree."""

    def __init__(
        self,
        game: sequence_form.SequenceForm,
        algorithm: algorithms.Algorithm,
        settings: regret_matching.Settings,
        regrets: tuple[cfr.Levels, ...] | None = None,
        chunk: int | None = None,
    ) -> None:
        if algorithm.step is None:
            raise BatchError(f"{algorithm.name} has no full iterations; use `solve_sampled` for sampled ones")
        self._game, self._algorithm, self._settings, self._regrets = game, algorithm, settings, regrets
        self.count = _batch_size(game, settings, regrets)
        self.chunk = chunk_size(game, self.count) if chunk is None else chunk
        self.bytes_per_run = bytes_per_run(game)
        self.result_bytes_per_run = 8 * sum(_size(player) for player in game.players)

    def start(self, part: slice, device: jax.Device) -> Any:
        inputs = (_cut_game(self._game, part), _cut_settings(self._settings, part), _cut_regrets(self._regrets, part))
        game, settings, regrets = jax.device_put(inputs, device)
        return game, settings, _start(game, regrets, runs=part.stop - part.start)

    def advance(self, started: Any, iterations: int) -> Any:
        game, settings, state = started
        after = tree_solvers.advance(
            self._algorithm.step, game, state, settings, iterations, alternating=self._algorithm.alternating
        )
        int(after.t)  # waits for it
        return game, settings, after

    def measure(self, started: Any) -> _Measurement:
        game, _, state = started
        evaluation, is_finite = jax.device_get(_measure(game, state))
        return _Measurement(evaluation.value, evaluation.improvements, is_finite)

    def cumulative_policy(self, started: Any) -> tuple[npt.NDArray[np.float64], ...]:
        return tuple(np.asarray(plan, np.float64) for plan in jax.device_get(_sums(started[2])))


class SampledBatchSolver:
    """Sampled iterations for every seed [B]; any of the settings may be arrays [B] too.

    The tree must have its edges (`keep_edges`).
    """

    def __init__(
        self,
        task: tasks.TreeTask,
        sampler: mccfr.Sampler,
        settings: mccfr.MccfrSettings,
        seeds: npt.ArrayLike,
        batch: int,
        chunk: int | None = None,
    ) -> None:
        self._task, self._sampler, self._batch = task, sampler, batch
        self._form = sampling_form.sampling_form(task.tree)
        self._settings = tree_solvers.to_default_precision(settings)
        self._seeds = np.asarray(seeds)
        self.count = len(self._seeds)
        sizes = {self.count, *(len(x) for x in jax.tree.leaves(self._settings) if x.ndim)}
        if len(sizes) != 1:
            shown = ", ".join(map(str, sorted(sizes)))
            raise BatchError(f"the arrays of a batch must have one size; these have {shown}")
        shared = -(-self.count // num_workers())
        self.chunk = max(1, min(shared, _SAMPLED_LANES // batch)) if chunk is None else chunk
        width = self._settings.minimiser.gamma.itemsize
        table = self._form.shape[0] * self._form.shape[1]
        self.bytes_per_run = width * (5 * table + 10 * batch * self._form.slots)
        self.result_bytes_per_run = 8 * table

    def start(self, part: slice, device: jax.Device) -> Any:
        settings = jax.tree.map(lambda x: x[part] if x.ndim else x, self._settings)
        inputs = (self._form, settings, jax.vmap(jax.random.key)(self._seeds[part]))
        form, settings, keys = jax.device_put(inputs, device)
        one = mccfr.init(form, baselines=settings.decay is not None)
        size = part.stop - part.start
        many = jax.tree.map(lambda x: jnp.broadcast_to(x, (size, *x.shape)), one)
        return form, settings, keys, jax.device_put(many, device)

    def advance(self, started: Any, iterations: int) -> Any:
        form, settings, keys, state = started
        after = _sample(form, settings, keys, state, iterations, sampler=self._sampler, batch=self._batch)
        np.asarray(after.t)  # waits for it
        return form, settings, keys, after

    def measure(self, started: Any) -> _Measurement:
        state = jax.device_get(started[3])
        levels = tabular_policies.to_levels(self._task.tree, self._task.layouts, self.cumulative_policy(started))
        evaluation = jax.device_get(tasks.evaluate(self._task.form, levels))
        tables = (*state.regret, *state.cumulative_policy)
        is_finite = np.array([np.isfinite(x).all(axis=(1, 2)) for x in tables]).all(axis=0)
        return _Measurement(evaluation.value, evaluation.improvements, is_finite)

    def cumulative_policy(self, started: Any) -> tuple[npt.NDArray[np.float64], ...]:
        return tuple(
            tabular_policies.from_table(player, np.moveaxis(np.asarray(table, np.float64), 0, -1))
            for player, table in zip(self._task.tree.players, started[3].cumulative_policy, strict=True)
        )


def needed_bytes(runs: BatchSolver) -> int:
    """Returns the peak memory: of the chunks that run in parallel, and of all results."""
    return runs.bytes_per_run * min(runs.count, runs.chunk * num_workers()) + runs.result_bytes_per_run * runs.count


def run_chunks(
    runs: BatchSolver, points: Sequence[int], *, max_bytes: int = MAX_BYTES
) -> Generator[ChunkResult, None, None]:
    """Advances all runs, measures them after each number of iterations in `points`, and yields chunks as they finish.

    Raises:
      BatchError: the runs need more than `max_bytes`.
    """
    needed = needed_bytes(runs)
    if needed > max_bytes:
        raise BatchError(
            f"{runs.count:,} runs need about {needed / 2**30:.1f} GiB, more than the {max_bytes / 2**30:.1f} GiB "
            "allowed; run fewer at once, use a smaller batch, or allow more with `max_bytes=`"
        )
    local = jax.local_devices()
    parts = [slice(n, min(runs.count, n + runs.chunk)) for n in range(0, runs.count, runs.chunk)]
    stopped = threading.Event()

    def work(part: slice, device: jax.Device) -> ChunkResult:
        started = runs.advance(runs.start(part, device), 0)  # compiles, which is not part of the measured time
        seconds, times, measurements = 0.0, [], []
        for before, now in itertools.pairwise((0, *points)):
            if stopped.is_set():
                raise concurrent.futures.CancelledError
            begun = time.perf_counter()
            started = runs.advance(started, now - before)
            seconds += time.perf_counter() - begun
            times.append(seconds)
            measurements.append(runs.measure(started))
        value, improvements, is_finite = (np.stack(column) for column in zip(*measurements, strict=True))
        return ChunkResult(
            part,
            tuple(points),
            tuple(times),
            np.asarray(value, np.float64),
            np.asarray(improvements, np.float64),
            is_finite,
            runs.cumulative_policy(started),
        )

    with concurrent.futures.ThreadPoolExecutor(num_workers()) as pool:
        waiting = [pool.submit(work, part, local[n % len(local)]) for n, part in enumerate(parts)]
        try:
            for done in concurrent.futures.as_completed(waiting):
                yield done.result()
        finally:  # interrupted, or the caller stopped iterating
            stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)


def solve(
    game: sequence_form.SequenceForm,
    algorithm: algorithms.Algorithm,
    settings: regret_matching.Settings,
    iterations: int,
    *,
    regrets: tuple[cfr.Levels, ...] | None = None,
    chunk: int | None = None,
    max_bytes: int = MAX_BYTES,
) -> BatchResult:
    """Run `iterations` of an algorithm for every member of a batch, whose size is defined in FullBatchSolver."""
    return _run_all(FullBatchSolver(game, algorithm, settings, regrets, chunk), iterations, max_bytes)


def solve_sampled(
    task: tasks.TreeTask,
    sampler: mccfr.Sampler,
    settings: mccfr.MccfrSettings,
    seeds: npt.ArrayLike,
    iterations: int,
    *,
    batch: int = 64,
    max_bytes: int = MAX_BYTES,
) -> BatchResult:
    """Run sampled iterations for every seed [B]; any of the settings may be arrays [B] too."""
    return _run_all(SampledBatchSolver(task, sampler, settings, seeds, batch), iterations, max_bytes)


def _run_all(runs: BatchSolver, iterations: int, max_bytes: int) -> BatchResult:
    parts = sorted(run_chunks(runs, (iterations,), max_bytes=max_bytes), key=lambda chunk: chunk.part.start)
    return BatchResult(
        np.concatenate([part.value[-1] for part in parts], axis=1),
        np.concatenate([part.improvements[-1] for part in parts], axis=1),
        tuple(
            np.concatenate(player, axis=1) for player in zip(*(part.cumulative_policy for part in parts), strict=True)
        ),
    )


@functools.partial(jax.jit, static_argnames=("sampler", "batch"))
def _sample(
    form: sampling_form.SamplingForm,
    settings: mccfr.MccfrSettings,
    keys: jax.Array,
    state: mccfr.MccfrState,
    iterations: int,
    *,
    sampler: mccfr.Sampler,
    batch: int,
) -> mccfr.MccfrState:
    """Advances states [B, ..] by so many iterations."""
    axes = jax.tree.map(lambda x: 0 if x.ndim else None, settings)

    def run(single: mccfr.MccfrSettings, key: jax.Array, before: mccfr.MccfrState) -> mccfr.MccfrState:
        after: mccfr.MccfrState = jax.lax.fori_loop(
            0, iterations, lambda _, s: mccfr.step(form, s, single, key, sampler=sampler, batch=batch), before
        )
        return after

    after: mccfr.MccfrState = jax.vmap(run, in_axes=(axes, 0, 0))(settings, keys, state)
    return after


@functools.partial(jax.jit, static_argnames="runs")
def _start(game: sequence_form.SequenceForm, regrets: tuple[cfr.Levels, ...] | None, *, runs: int) -> cfr.CfrState:
    if regrets is None:
        regrets = tuple(
            tuple(jnp.zeros((*level.shape, runs), level.dtype) for level in player.uniform) for player in game.players
        )
    return cfr.init_from_regrets(game, regrets)


@jax.jit
def _measure(game: sequence_form.SequenceForm, state: cfr.CfrState) -> tuple[best_response.Evaluation, jax.Array]:
    """Evaluates the averages, and checks that all numbers of each run are finite."""
    numbers = jax.tree.leaves((state.regret, state.cumulative_plan, state.recent_sum, state.realization_plan))
    is_finite = [jnp.isfinite(x).all(axis=tuple(range(x.ndim - 1))) for x in numbers]
    return best_response.evaluate_average(game, state), jnp.stack(is_finite).all(axis=0)


_sums = jax.jit(cfr.cumulative_plans)


def _batch_size(
    game: sequence_form.SequenceForm, settings: regret_matching.Settings, regrets: tuple[cfr.Levels, ...] | None
) -> int:
    sizes = {len(value) for value in _arrays(settings) if value is not None and value.ndim}
    sizes |= {level.shape[2] for levels in regrets or () for level in levels}
    for player in game.players:
        sizes |= {block.payoff.shape[3] for block in player.blocks if block.payoff.ndim == 4}
        sizes |= {player.entries.payoff.shape[1]} if player.entries.payoff.ndim == 2 else set()
    if len(sizes) != 1:
        raise BatchError(
            f"the arrays of a batch must have one size; these have {', '.join(map(str, sorted(sizes)))}"
            if sizes
            else "nothing here is a batch: pass some setting as an array with a number for every run"
        )
    return int(sizes.pop())


def _arrays(settings: regret_matching.Settings) -> list[Any]:
    dtype = jnp.result_type(float)
    return [None if value is None else np.asarray(value, dtype) for value in settings]


def _cut_settings(settings: regret_matching.Settings, part: slice) -> regret_matching.Settings:
    arrays = _arrays(settings)
    return regret_matching.Settings(*(value[part] if value is not None and value.ndim else value for value in arrays))


def _cut_regrets(regrets: tuple[cfr.Levels, ...] | None, part: slice) -> tuple[cfr.Levels, ...] | None:
    return None if regrets is None else jax.tree.map(lambda level: level[..., part], regrets)


def _cut_game(game: sequence_form.SequenceForm, part: slice) -> sequence_form.SequenceForm:
    """Selects variants of payoffs, which are the last axis."""
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
