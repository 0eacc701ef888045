"""A deadline and a limit on memory over a whole computation, in whatever module the time is spent.

Loops that may be long iterate over `watched(..)`, which raises LimitReachedError at a limit of the innermost `enforce`.
Outside of `enforce` nothing is limited. Limits stop a computation; they never change its result.
"""

import contextlib
import contextvars
import dataclasses
import math
import os
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from gdlx.propnet.common import limits

T = TypeVar("T")
_EVERY = 256  # items between two looks at the clock
_MEMORY_SECONDS = 0.1  # between two measurements of memory, which cost as much as many items


class LimitReachedError(Exception):
    """Raised in a computation at a limit; `limit` names it, as a field of `Limits`."""

    def __init__(self, limit: str) -> None:
        super().__init__(limit)
        self.limit = limit


@dataclasses.dataclass
class _Deadline:
    """The limits of one computation, counted from its start."""

    end: float  # of time.monotonic()
    max_bytes: float  # of this process
    next_measurement: float = 0.0

    def check(self) -> None:
        """Raises LimitReachedError at a limit."""
        now = time.monotonic()
        if now > self.end:
            raise LimitReachedError("seconds")
        if now > self.next_measurement:
            self.next_measurement = now + _MEMORY_SECONDS
            if _resident_bytes() > self.max_bytes:
                raise LimitReachedError("memory_mb")


_current: contextvars.ContextVar[_Deadline | None] = contextvars.ContextVar("deadline", default=None)


@contextlib.contextmanager
def enforce(within: limits.Limits) -> Iterator[None]:
    """Limits the time of a block, and the memory that this process takes in addition."""
    deadline = _Deadline(time.monotonic() + within.seconds, _resident_bytes() + within.memory_mb * 2**20)
    token = _current.set(deadline)
    try:
        yield
    finally:
        _current.reset(token)


def check() -> None:
    """Raises LimitReachedError if the computation that this is part of has reached a limit."""
    deadline = _current.get()
    if deadline is not None:
        deadline.check()


def seconds_left() -> float:
    """Returns the seconds until the deadline of the computation that this is part of, infinity without one."""
    deadline = _current.get()
    return math.inf if deadline is None else max(0.0, deadline.end - time.monotonic())


def watched(items: Iterable[T]) -> Iterator[T]:
    """Yields the items, and checks the limits before the first and every few items.

    >>> list(watched("ab"))
    ['a', 'b']
    """
    deadline = _current.get()
    if deadline is None:
        yield from items
        return
    for number, item in enumerate(items):
        if not number % _EVERY:
            deadline.check()
        yield item


def _resident_bytes() -> int:
    """Memory of this process; 0 where the system does not report it."""
    try:
        with open("/proc/self/statm", "rb") as status:
            return int(status.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
