"""How long an agent thinks: portion by portion, as many as there is time for, or as many as were asked for."""

import math
import time
from collections.abc import Iterator

from gdlx.players.agents import agent

_KEPT_BACK = 0.1  # part of a clock that is left for everything else
_FIXED = 16  # iterations of a portion if their number is given: the same whatever the time
_AIM = 0.25  # of the time that is left, what a portion should take


def deadline(clock: agent.Clock, seconds: float | None) -> float:
    """When thinking must end, as time.monotonic() tells it."""
    allowed = (1 - _KEPT_BACK) * clock.remaining
    return time.monotonic() + (allowed if seconds is None else min(allowed, seconds))


def iteration_chunks(end: float, iterations: int | None) -> Iterator[int]:
    """Numbers of iterations to do one after the other until `end`; at least one portion, however late it is.

    If there are to be so many iterations, portions are the same in every run: only how far they get depends on time.
    """
    size, done = 1 if iterations is None else _FIXED, 0
    while iterations is None or done < iterations:
        portion = size if iterations is None else min(size, iterations - done)
        begun = time.monotonic()
        yield portion
        now = time.monotonic()
        done += portion
        each = max((now - begun) / portion, 1e-9)
        if iterations is None:
            size = max(1, min(2 * portion, math.floor(_AIM * (end - now) / each)))
        if now + each * size >= end:  # the next one must be done in time as well
            return


def require_time_control(name: str, seconds: float | None, iterations: int | None) -> None:
    """Of the options of an agent."""
    if seconds is not None and not 0 < seconds < math.inf:
        raise agent.AgentError(f"{name}: it thinks for more than 0 seconds, not {seconds:g}")
    require_positive(name, iterations=1 if iterations is None else iterations)


def require_seed(name: str, seed: int) -> None:
    if not -(2**63) <= seed < 2**63:
        raise agent.AgentError(f"{name}: seed is a number of 64 bits, from -2^63 to 2^63 - 1; not {seed}")


def require_positive(name: str, **options: int) -> None:
    for option, value in options.items():
        if value < 1:
            raise agent.AgentError(f"{name}: {option} is at least 1, not {value}")
