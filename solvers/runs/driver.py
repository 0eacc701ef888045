"""The loop around every algorithm: chunks of iterations on the device, metrics in between, and when to stop."""

import dataclasses
import math
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

import jax

from gdlx.propnet.common import errors
from gdlx.propnet.common.text import reprs

if TYPE_CHECKING:
    from gdlx.solvers.runs import solver as solvers

_GROWTH = 1.1  # factor of iterations between metrics: evenly spaced on a logarithmic axis
_CHUNK_SECONDS = 0.5  # at most between metrics, to show progress and to react to Ctrl-C
_ADVICE = "`jax_enable_x64=True`, or exponents that are less extreme"


class NotFiniteError(errors.UserError, ArithmeticError):
    """Numbers of a solver that overflowed."""


class StopError(errors.UserError, ValueError):
    """A number of iterations, a time or a target that makes no sense."""


def require_finite(iterations: int, is_finite: bool, advice: str = _ADVICE) -> None:
    """Raises NotFiniteError, with advice, unless `is_finite`."""
    if not is_finite:
        raise overflow_error(iterations, advice)


def overflow_error(iterations: int, advice: str = _ADVICE) -> NotFiniteError:
    return NotFiniteError(
        f"numbers overflowed before iteration {iterations}; earlier checkpoints are not affected. Try {advice}"
    )


class Metrics(NamedTuple):
    """Metrics of the average policies after some iterations. Axes: P players.

    >>> Metrics(100, 0.5, value=(-0.05, 0.05), improvements=(0.02, 0.01)).exploitability
    0.015
    """

    iterations: int
    seconds: float  # of solving, without compilation and evaluation
    value: tuple[float, ...]  # [P] expected payoffs; () where they are not known
    improvements: tuple[float, ...]  # [P] best-response improvements; () where they are not known
    samples: int = 0  # trajectories or traversals so far
    load: float | None = None  # load factor of the hash table; None without one
    value_error: tuple[float, ...] = ()  # [P] standard errors of values that matches estimate; () of exact values

    def __repr__(self) -> str:
        return reprs.show_changes(self)

    @property
    def nash_conv(self) -> float | None:
        """Sum of the improvements; None where they are not known."""
        return sum(self.improvements) if self.improvements else None

    @property
    def exploitability(self) -> float | None:
        """NashConv / 2, the mean improvement of the two players; None unless there are two."""
        return sum(self.improvements) / 2 if len(self.improvements) == 2 else None

    @property
    def error(self) -> float:
        """The number to compare with a target: exploitability, or the largest improvement of any player."""
        exploitability = self.exploitability
        return max(self.improvements, default=0.0) if exploitability is None else exploitability


@dataclasses.dataclass(frozen=True)
class StopCondition:
    """When to stop: at whichever comes first; without any condition, after 1,000 iterations.

    Raises StopError if a condition is out of range.

    Attributes:
      iterations: number of iterations; None: no limit.
      seconds: of solving, without compilation; None: no limit.
      target: exploitability, or the largest improvement of any player, in payoff units; None: any.

    >>> StopCondition(iterations=100, seconds=60.0).is_reached(Metrics(100, 0.5, (), ()))
    True
    """

    iterations: int | None = None
    seconds: float | None = None
    target: float | None = None

    def __post_init__(self) -> None:
        if self.iterations is not None and self.iterations < 0:
            raise StopError(f"iterations cannot be negative: {self.iterations}")
        if self.seconds is not None and not self.seconds > 0:
            raise StopError(f"the time must be more than 0 seconds, not {self.seconds}")
        if self.target is not None and not self.target > 0:
            raise StopError(f"the target must be above 0, not {self.target}")

    @property
    def last(self) -> float:
        """The last iteration; infinity if only time or a target stops the run."""
        if self.iterations is not None:
            return self.iterations
        return 1_000 if self.seconds is None and self.target is None else math.inf

    def is_reached(self, now: Metrics) -> bool:
        """Whether a run with these latest metrics is to stop."""
        return (
            now.iterations >= self.last
            or (self.seconds is not None and now.seconds >= self.seconds)
            or (self.target is not None and now.iterations > 0 and now.error <= self.target)
        )


def parse_target(target: float | str | None, payoff_range: float) -> float | None:
    """Returns a target in payoff units; `0.01%` is relative to the payoff range.

    >>> parse_target("0.5%", 10.0)
    0.05
    """
    if target is None or not isinstance(target, str):
        return target
    text = target.strip()
    try:
        number = float(text.removesuffix("%"))
    except ValueError:
        raise StopError(f"the target {target!r} is not a number; write 0.001, or 0.01% of the payoff range") from None
    return number * payoff_range / 100 if text.endswith("%") else number


class RunState(Protocol):
    """The state of any solver: a pytree that counts its iterations."""

    @property
    def t(self) -> jax.Array:
        """[] int32"""


State = TypeVar("State", bound=RunState)


class Snapshot(NamedTuple, Generic[State]):
    """A state and its metrics."""

    state: State
    metrics: Metrics


def iterate(
    solver: "solvers.Solver[State]",
    state: State,
    stop: StopCondition,
    *,
    every: int | None = None,
    seconds: float = 0.0,
    clock: Callable[[], float] = time.perf_counter,
) -> Iterator[Snapshot[State]]:
    """Runs a solver until `stop`, and yields its state and metrics at intervals: first at the start, last at the stop.

    Args:
      solver: the solver.
      state: where to start.
      stop: when to stop.
      every: iterations between metrics; by default a tenth of those done so far, and at most half a second.
      seconds: time spent before, by the run that is resumed.
      clock: returns the time in seconds.

    The states do not depend on how the iterations are divided into chunks.
    """
    if every is not None and every < 1:
        raise StopError(f"metrics can be taken every 1 or more iterations, not every {every}")
    state = solver.advance(state, 0)  # compiles, which is not part of the measured time
    now = solver.measure(state, seconds)
    rate = 0.0  # iterations per second
    yield Snapshot(state, now)
    while not stop.is_reached(now):
        count = _chunk(now, stop, every, rate)
        begun = clock()
        state = solver.advance(state, count)
        spent = clock() - begun
        rate = count / max(spent, 1e-9)
        now = solver.measure(state, now.seconds + spent)
        yield Snapshot(state, now)


def next_scheduled(done: int, every: int | None = None) -> int:
    """Returns the next iteration whose metrics are kept; it does not depend on where a run was stopped and resumed.

    >>> next_scheduled(10), next_scheduled(12), next_scheduled(12, every=10)
    (11, 13, 20)
    """
    if every:
        return done + every - done % every
    point = 0
    while point <= done:
        point = max(point + 1, math.ceil(point * _GROWTH))
    return point


def is_scheduled(iterations: int, every: int | None = None) -> bool:
    """Returns whether metrics of this iteration are kept; others are shown, and kept only at the end of a run."""
    return iterations == 0 or next_scheduled(iterations - 1, every) == iterations


def _chunk(now: Metrics, stop: StopCondition, every: int | None, rate: float) -> int:
    """Iterations until the next metrics."""
    done = now.iterations
    limits = [next_scheduled(done, every) - done, stop.last - done]
    if rate:
        limits.append(rate * _CHUNK_SECONDS)
        if stop.seconds is not None:
            limits.append(rate * (stop.seconds - now.seconds))
    return max(1, math.ceil(min(limits)))
