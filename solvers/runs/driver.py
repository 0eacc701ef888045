"""The one loop around every algorithm: chunks of iterations on the device, metrics between them, and when to stop."""

import dataclasses
import math
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

import jax

from gdlx.propnet.common import errors

if TYPE_CHECKING:
    from gdlx.solvers.runs import solver as solvers

_GROWTH = 1.1  # metrics after so many times the iterations: even on a logarithmic axis
_CHUNK_SECONDS = 0.5  # and at least this often, so that progress is seen and Ctrl-C is heard


_ADVICE = "`jax_enable_x64=True`, or exponents that are less extreme"


class NotFiniteError(errors.UserError, ArithmeticError):
    """Numbers that overflowed."""


class StopError(errors.UserError, ValueError):
    """A number of iterations, a time or a target that makes no sense."""


def require_finite(iterations: int, is_finite: bool, advice: str = _ADVICE) -> None:
    if not is_finite:
        raise overflow_error(iterations, advice)


def overflow_error(iterations: int, advice: str = _ADVICE) -> NotFiniteError:
    return NotFiniteError(
        f"numbers overflowed before iteration {iterations}; what was saved before is good. Try {advice}"
    )


class Metrics(NamedTuple):
    """Of the average policies after some iterations. Axes: P players."""

    iterations: int
    seconds: float  # of solving, compilation and evaluation left out
    value: tuple[float, ...]  # [P]; () where it is not known
    improvements: tuple[float, ...]  # [P] of best responses, one per player; () where they are not known
    samples: int = 0  # trajectories or traversals so far
    load: float | None = None  # part of a hash table that is used
    value_error: tuple[float, ...] = ()  # [P] standard errors of values that were told by matches

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
        """What a target is compared with: exploitability, or the largest improvement of any player."""
        found = self.exploitability
        return max(self.improvements, default=0.0) if found is None else found


@dataclasses.dataclass(frozen=True)
class StopCondition:
    """Whichever comes first; without any, after 1 000 iterations."""

    iterations: int | None = None
    seconds: float | None = None
    target: float | None = None  # in payoff units

    def __post_init__(self) -> None:
        if self.iterations is not None and self.iterations < 0:
            raise StopError(f"iterations cannot be negative: {self.iterations}")
        if self.seconds is not None and not self.seconds > 0:
            raise StopError(f"the time must be more than 0 seconds, not {self.seconds}")
        if self.target is not None and not self.target > 0:
            raise StopError(f"the target must be above 0, not {self.target}")

    @property
    def last(self) -> float:
        """The last iteration."""
        if self.iterations is not None:
            return self.iterations
        return 1_000 if self.seconds is None and self.target is None else math.inf

    def is_reached(self, now: Metrics) -> bool:
        return (
            now.iterations >= self.last
            or (self.seconds is not None and now.seconds >= self.seconds)
            or (self.target is not None and now.iterations > 0 and now.error <= self.target)
        )


def parse_target(target: float | str | None, payoff_range: float) -> float | None:
    """A target in payoff units; `0.01%` is a part of the payoff range.

    >>> parse_target("0.5%", 10.0)
    0.05
    """
    if target is None or not isinstance(target, str):
        return target
    text = target.strip()
    try:
        number = float(text.removesuffix("%"))
    except ValueError:
        raise StopError(f"the target {target!r} is no number; write 0.001, or 0.01% of the payoff range") from None
    return number * payoff_range / 100 if text.endswith("%") else number


class RunState(Protocol):
    """What is known of the state of any solver: a pytree that counts its iterations."""

    @property
    def t(self) -> jax.Array:
        """[] int32"""


State = TypeVar("State", bound=RunState)


class Snapshot(NamedTuple, Generic[State]):
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
    """Yield the state and its metrics now and then, at last where it stopped. `seconds` were spent before.

    `every` fixes the iterations after which metrics are taken; else they grow by a tenth, or come twice a second.
    What happens between two points does not depend on where they are.
    """
    if every is not None and every < 1:
        raise StopError(f"metrics can be taken every 1 or more iterations, not every {every}")
    state = solver.advance(state, 0)  # compiled outside of the time that is measured
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


def _chunk(now: Metrics, stop: StopCondition, every: int | None, rate: float) -> int:
    """Iterations until the next metrics."""
    done = now.iterations
    ahead = every - done % every if every else max(1, math.ceil(done * _GROWTH) - done)
    limits = [ahead, stop.last - done]
    if rate:
        limits.append(rate * _CHUNK_SECONDS)
        if stop.seconds is not None:
            limits.append(rate * (stop.seconds - now.seconds))
    return max(1, math.ceil(min(limits)))
