"""Time control of agents: iterations run in chunks, until a deadline or a number of iterations."""

import math
import time
from collections.abc import Iterator

from gdlx.players.agents import agent

_RESERVE = 0.1  # fraction of a clock that is left for everything else
_FIXED_CHUNK = 16  # iterations of a chunk if their number is specified: independent of time
_CHUNK_FRACTION = 0.25  # of the remaining time, which a chunk should take


def deadline(clock: agent.Clock, seconds: float | None) -> float:
    """The value of time.monotonic() at which thinking must end."""
    allowed = (1 - _RESERVE) * clock.remaining
    return time.monotonic() + (allowed if seconds is None else min(allowed, seconds))


def iteration_chunks(end: float, iterations: int | None) -> Iterator[int]:
    """Yields numbers of iterations to run one after the other until `end`; at least one, even if it is past.

    With `iterations` the chunks are the same in every run: only how many of them run depends on time.
    """
    size, done = 1 if iterations is None else _FIXED_CHUNK, 0
    while iterations is None or done < iterations:
        chunk = size if iterations is None else min(size, iterations - done)
        start = time.monotonic()
        yield chunk
        now = time.monotonic()
        done += chunk
        seconds_each = max((now - start) / chunk, 1e-9)
        if iterations is None:
            size = max(1, min(2 * chunk, math.floor(_CHUNK_FRACTION * (end - now) / seconds_each)))
        if now + seconds_each * size >= end:  # the next chunk must be done in time as well
            return


def require_time_control(name: str, seconds: float | None, iterations: int | None) -> None:
    """Raises AgentError if the options of an agent are out of range."""
    if seconds is not None and not 0 < seconds < math.inf:
        raise agent.AgentError(f"{name}: it thinks for more than 0 seconds, not {seconds:g}")
    require_positive(name, iterations=1 if iterations is None else iterations)


def require_seed(name: str, seed: int) -> None:
    if not -(2**63) <= seed < 2**63:
        raise agent.AgentError(f"{name}: seed is a 64-bit integer, from -2^63 to 2^63 - 1; not {seed}")


def require_positive(name: str, **options: int) -> None:
    for option, value in options.items():
        if value < 1:
            raise agent.AgentError(f"{name}: {option} is at least 1, not {value}")
