"""The loop that trains every learner: iterations on the device, now and then a look at how they go, and checkpoints."""

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
_LOOK = 1.0  # seconds between two looks at what the device does
_PART = 0.4  # of a device's memory that a state may take: while it learns there are two of them


class TrainingError(errors.UserError, ValueError):
    """A training that cannot go on."""


class ProgressPoint(NamedTuple):
    iteration: int
    seconds: float
    metrics: Mapping[str, float]


class TrainingRun:
    """Iterate over `points()`; stop whenever you like; then `finish()`."""

    def __init__(
        self,
        recipe: learner_registry.TrainConfig,
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
        self._saved, self._saved_at = time.monotonic(), -1
        try:
            self._begin(recipe, digest, seed, resume=resume)
        except BaseException:
            self._unlock()
            raise

    def _begin(self, recipe: learner_registry.TrainConfig, digest: str, seed: int, *, resume: bool) -> None:
        if resume and self.folder is not None:
            like = jax.eval_shape(self.learner.init, jax.random.key(seed))
            state, self.iteration, self.seconds = checkpoints.read_state(self.folder, like)
            self.state = sharding.replicate(state)
            self.rows = [row for row in checkpoints.read_metrics(self.folder) if row["iteration"] <= self.iteration]
            self._saved_at = self.iteration
            return
        self.state = self.learner.init(jax.random.key(seed))
        if self.folder is not None:
            checkpoints.write_config(self.folder, recipe, digest, seed)

    def _unlock(self) -> None:
        if self._lock is not None:
            self._lock.close()

    def points(self, stop: driver.StopCondition) -> Iterator[ProgressPoint]:
        """About one a second; the state is that of the last one."""
        portion = 1
        begun = time.monotonic() - self.seconds
        while not self._is_over(stop):
            if stop.iterations is not None:
                portion = min(portion, stop.iterations - self.iteration)
            since = time.monotonic()
            state, numbers = self._iterated(portion)
            self._require_finite(numbers, state, self.iteration + portion)
            took = time.monotonic() - since
            first = self.iteration == 0  # which compiled
            self.state, self.iteration, self.seconds = state, self.iteration + portion, time.monotonic() - begun
            self.log_metrics(numbers)
            yield ProgressPoint(self.iteration, self.seconds, numbers)
            if not first:
                portion = max(1, min(1_000, round(portion * _LOOK / max(took, 1e-3))))
            if time.monotonic() - self._saved >= self.interval:
                self.save()

    def _iterated(self, portion: int) -> tuple[Any, dict[str, float]]:
        """What so many iterations make of the state, and what the last one tells."""
        state = self.state
        told: Mapping[str, jax.Array] = {}
        try:
            for _ in range(portion):
                state, told = self.learner.iterate(state)
            return state, {name: float(number) for name, number in told.items()}
        except jax.errors.JaxRuntimeError as error:
            if "RESOURCE_EXHAUSTED" not in str(error):
                raise
            self.finish()
            what = " or ".join(name for name in _SIZES if hasattr(self.learner.settings, name))
            raise TrainingError(f"there is not enough memory for an iteration; set {what} smaller") from None

    def log_metrics(self, numbers: Mapping[str, float]) -> None:
        """In the metrics of now."""
        if not self.rows or self.rows[-1]["iteration"] != self.iteration:
            self.rows.append({"iteration": self.iteration, "seconds": round(self.seconds, 3)})
        self.rows[-1] |= numbers

    def save(self) -> None:
        if self.folder is not None and self._saved_at != self.iteration:
            checkpoints.write_state(self.folder, self.iteration, self.seconds, self.state)
            self._saved_at = self.iteration
        if self.folder is not None:
            checkpoints.write_metrics(self.folder, self.rows)
        self._saved = time.monotonic()

    def finish(self) -> None:
        if self.iteration:
            self.save()
        self._unlock()

    def _is_over(self, stop: driver.StopCondition) -> bool:
        enough = stop.iterations is not None and self.iteration >= stop.iterations
        return enough or (stop.seconds is not None and self.seconds >= stop.seconds)

    def _require_finite(self, numbers: Mapping[str, float], state: Any, iteration: int) -> None:
        wrong = [name.replace("_", " ") for name, number in numbers.items() if not math.isfinite(number)]
        if wrong or not _is_finite(state):
            self.finish()  # with the state before, which is good
            kept = f"; those of iteration {self.iteration:,} are kept" if self.folder and self.iteration else ""
            raise TrainingError(
                f"after iteration {iteration:,} the {wrong[0] if wrong else 'network'} is no number: networks have run "
                f"away{kept}. Train with a smaller learning rate"
            )


def require_memory(learner: protocol.Learner) -> None:
    """Before anything is allocated."""
    state = jax.eval_shape(learner.init, jax.random.key(0))
    there, needed, remembered = devices.memory_bytes_per_device(), num_bytes(state), num_bytes(_replay_buffers(state))
    if there and needed > _PART * there:
        advice = "the capacity smaller, or the window" if remembered > needed / 2 else "widths smaller"
        raise TrainingError(
            f"networks and memories need {needed / 2**30:,.1f} GiB, twice, and a device has {there / 2**30:,.1f} here; "
            f"make {advice}"
        )


@jax.jit
def _is_finite(state: Any) -> jax.Array:
    """Whether all that is learnt is numbers; memories are left out, as they are large and only say what was."""
    learnt = [x for x in _parts(state) if not _is_replay_buffer(x) and jnp.issubdtype(x.dtype, jnp.floating)]
    return jnp.stack([jnp.isfinite(x).all() for x in learnt]).all()


def _replay_buffers(state: Any) -> list[Any]:
    return list(filter(_is_replay_buffer, _parts(state)))


def _parts(state: Any) -> list[Any]:
    """Arrays, and memories as a whole."""
    return jax.tree.leaves(state, is_leaf=_is_replay_buffer)


def _is_replay_buffer(part: Any) -> bool:
    return isinstance(part, replay_buffers.ReplayBuffer)


def num_bytes(state: Any) -> int:
    """Bytes."""
    return sum(
        math.prod(leaf.shape) * (8 if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf.dtype.itemsize)
        for leaf in jax.tree.leaves(state)
    )
