"""The training loop of all learners: iterations on the device, metrics in between, and checkpoints."""

import math
import pathlib
import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from gdlx.envs import devices
from gdlx.nets import checkpoints
from gdlx.nets.learners import learner_registry, protocol
from gdlx.nets.models import replay_buffers, sharding
from gdlx.propnet.common import errors
from gdlx.solvers.runs import driver, result_folder

_SIZES = ("games", "draws", "traversals", "capacity", "batch")  # settings of learners that take memory
_REPORT_SECONDS = 1.0  # at most between two progress points
_FIRST_MEASUREMENT = 10  # iteration; before it, measuring strength would take longer than training
_MEASUREMENT_GROWTH = 1.5  # factor of iterations between measurements of strength
_MEMORY_FRACTION = 0.4  # of a device's memory that a state may take: an iteration holds two of them


class TrainingError(errors.UserError, ValueError):
    """Training that cannot start or continue."""


class ProgressPoint(NamedTuple):
    iteration: int
    seconds: float  # of training
    metrics: Mapping[str, float]  # of the last iteration


class TrainingRun:
    """Training in progress. Iterate over `points()`, stop at any time, then call `finish()`.

    Attributes:
      learner: what is trained.
      folder: where checkpoints and metrics are written; None: nowhere.
      interval: seconds between two checkpoints.
      state: the learner's state after the last iteration.
      iteration: iterations so far.
      seconds: of training so far, those before a resume included.
      rows: metrics by iteration, as in metrics.csv.

    >>> from gdlx.envs import game_facts, game_spec
    >>> import gdlx
    >>> propnet = gdlx.compile("kuhn_poker")
    >>> settings = learner_registry.make_settings("self-play", {"games": "8"})
    >>> config = learner_registry.TrainConfig(game_spec.GameSpec("kuhn_poker"), "self-play", 4, settings)
    >>> learner = learner_registry.make_learner(config, propnet, None)
    >>> run = TrainingRun(config, learner, game_facts.probe(propnet).digest)
    >>> [point.iteration for point in run.points(driver.StopCondition(iterations=2))]
    [1, 2]
    >>> run.finish()
    """

    def __init__(
        self,
        config: learner_registry.TrainConfig,
        learner: protocol.Learner,
        digest: str,
        folder: pathlib.Path | None = None,
        *,
        seed: int = 0,
        resume: bool = False,
        interval: float = 60.0,
    ) -> None:
        self.learner, self.folder, self.interval = learner, folder, interval
        require_memory(learner)
        self._lock = result_folder.lock(folder) if folder is not None and folder.is_dir() else None
        self.iteration, self.seconds = 0, 0.0
        self.state: Any = None
        self.rows: list[dict[str, float]] = []
        self._saved_time, self._saved_iteration = time.monotonic(), -1
        try:
            self._start(config, digest, seed, resume=resume)
        except BaseException:
            self._unlock()
            raise

    def __repr__(self) -> str:
        folder = None if self.folder is None else str(self.folder)
        return (
            f"TrainingRun({self.learner!r}, iteration={self.iteration}, seconds={self.seconds:.1f}, folder={folder!r})"
        )

    def _start(self, config: learner_registry.TrainConfig, digest: str, seed: int, *, resume: bool) -> None:
        if resume and self.folder is not None:
            state, self.iteration, self.seconds = checkpoints.read_learner_state(self.folder, self.learner, seed)
            self.state = sharding.replicate(state)
            self.rows = [row for row in checkpoints.read_metrics(self.folder) if row["iteration"] <= self.iteration]
            self._saved_iteration = self.iteration
            return
        self.state = self.learner.init(jax.random.key(seed))
        if self.folder is not None:
            checkpoints.write_config(self.folder, config, digest, seed)

    def _unlock(self) -> None:
        if self._lock is not None:
            self._lock.close()

    def points(self, stop: driver.StopCondition) -> Iterator[ProgressPoint]:
        """Trains until `stop`, and yields at least about once a second. `self.state` is that of the last point.

        Rows of `self.rows` are those of scheduled iterations (`driver.is_scheduled`) and of the last one, wherever a
        run was stopped and resumed.
        """
        count = 1
        start = time.monotonic() - self.seconds
        while not self._is_over(stop):
            last = math.inf if stop.iterations is None else stop.iterations
            next_iteration = min(self.iteration + count, last, driver.next_scheduled(self.iteration))
            chunk = int(next_iteration) - self.iteration
            chunk_start = time.monotonic()
            state, metrics = self._iterate(chunk)
            self._require_finite(metrics, state, self.iteration + chunk)
            elapsed = time.monotonic() - chunk_start
            has_compiled = self.iteration == 0
            self.state, self.iteration, self.seconds = state, self.iteration + chunk, time.monotonic() - start
            self._settle_last_row(metrics)
            self.log_metrics(metrics)
            yield ProgressPoint(self.iteration, self.seconds, metrics)
            if not has_compiled:
                count = max(1, min(1_000, round(chunk * _REPORT_SECONDS / max(elapsed, 1e-3))))
            if time.monotonic() - self._saved_time >= self.interval:
                self.save()

    def _iterate(self, count: int) -> tuple[Any, dict[str, float]]:
        """The state after `count` more iterations, and the metrics of the last one."""
        state = self.state
        metrics: Mapping[str, jax.Array] = {}
        try:
            for _ in range(count):
                state, metrics = self.learner.iterate(state)
            return state, {name: float(number) for name, number in metrics.items()}
        except jax.errors.JaxRuntimeError as error:
            if "RESOURCE_EXHAUSTED" not in str(error):
                raise
            self.finish()
            sizes = " or ".join(name for name in _SIZES if hasattr(self.learner.settings, name))
            raise TrainingError(f"there is not enough memory for an iteration; set {sizes} smaller") from None

    def log_metrics(self, numbers: Mapping[str, float]) -> None:
        """Adds numbers to the metrics of the current iteration."""
        if not self.rows or self.rows[-1]["iteration"] != self.iteration:
            self.rows.append({"iteration": self.iteration, "seconds": round(self.seconds, 3)})
        self.rows[-1] |= numbers

    def _settle_last_row(self, metrics: Mapping[str, float]) -> None:
        """Keeps of a row that is not the last any more only what does not depend on where a run was stopped."""
        if not self.rows:
            return
        row = self.rows[-1]
        if not driver.is_scheduled(int(row["iteration"])):
            self.rows.pop()
        elif not is_measured(int(row["iteration"])):
            self.rows[-1] = {name: row[name] for name in ("iteration", "seconds", *metrics) if name in row}

    def save(self) -> None:
        """Writes the metrics and a checkpoint, if there is a folder."""
        if self.folder is not None:  # metrics first: those of iterations after the checkpoint are dropped by a resume
            checkpoints.write_metrics(self.folder, self.rows)
        if self.folder is not None and self._saved_iteration != self.iteration:
            checkpoints.write_state(self.folder, self.iteration, self.seconds, self.state)
            self._saved_iteration = self.iteration
        self._saved_time = time.monotonic()

    def finish(self) -> None:
        """Saves the last state and unlocks the folder."""
        if self.iteration:
            self.save()
        self._unlock()

    def _is_over(self, stop: driver.StopCondition) -> bool:
        enough = stop.iterations is not None and self.iteration >= stop.iterations
        return enough or (stop.seconds is not None and self.seconds >= stop.seconds)

    def _require_finite(self, metrics: Mapping[str, float], state: Any, iteration: int) -> None:
        wrong = [name.replace("_", " ") for name, number in metrics.items() if not math.isfinite(number)]
        if wrong or not _is_finite(state):
            self.finish()  # with the previous state, which is finite
            saved = f"; those of iteration {self.iteration:,} are saved" if self.folder and self.iteration else ""
            raise TrainingError(
                f"after iteration {iteration:,} the {wrong[0] if wrong else 'network'} is not a finite number: the "
                f"networks have diverged{saved}. Train with a smaller learning rate"
            )


def is_measured(iteration: int) -> bool:
    """Whether strength is measured at this iteration; these are some of those whose metrics are kept.

    >>> [iteration for iteration in range(60) if is_measured(iteration)]
    [10, 15, 24, 37, 57]
    """
    point = _FIRST_MEASUREMENT
    while point < iteration:
        point = driver.next_scheduled(math.ceil(point * _MEASUREMENT_GROWTH) - 1)
    return point == iteration


def require_memory(learner: protocol.Learner) -> None:
    """Raises TrainingError if the state does not fit on a device, before anything is allocated."""
    state = jax.eval_shape(learner.init, jax.random.key(0))
    available, needed = devices.memory_bytes_per_device(), num_bytes(state)
    if available and needed > _MEMORY_FRACTION * available:
        is_mostly_buffers = num_bytes(_replay_buffers(state)) > needed / 2
        advice = "the capacity smaller, or the window" if is_mostly_buffers else "widths smaller"
        raise TrainingError(
            f"networks and replay buffers need {needed / 2**30:,.1f} GiB, twice, and a device has "
            f"{available / 2**30:,.1f} GiB here; make {advice}"
        )


@jax.jit
def _is_finite(state: Any) -> jax.Array:
    """Whether all parameters are finite. Replay buffers are skipped: they are large, and nothing is learnt in them."""
    floats = [x for x in _parts(state) if not _is_replay_buffer(x) and jnp.issubdtype(x.dtype, jnp.floating)]
    return jnp.stack([jnp.isfinite(x).all() for x in floats]).all()


def _replay_buffers(state: Any) -> list[Any]:
    return list(filter(_is_replay_buffer, _parts(state)))


def _parts(state: Any) -> list[Any]:
    """The arrays of a state, with replay buffers as single parts."""
    return jax.tree.leaves(state, is_leaf=_is_replay_buffer)


def _is_replay_buffer(part: Any) -> bool:
    return isinstance(part, replay_buffers.ReplayBuffer)


def num_bytes(state: Any) -> int:
    """The size of all arrays of a state in bytes."""
    return sum(
        math.prod(leaf.shape) * (8 if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf.dtype.itemsize)
        for leaf in jax.tree.leaves(state)
    )
