"""Signals that stop a command: Ctrl-C (SIGINT), SIGTERM and SIGHUP all mean "write what there is, and stop".

`handle` turns the first of them into a KeyboardInterrupt, whatever the signal, so that one `except KeyboardInterrupt`
serves all three; `exit_code` then tells them apart. Further signals within a second are repetitions and are ignored; a
later one ends the process at once, for a user who does not want to wait until everything is written.

Python drops a KeyboardInterrupt that it raises where nothing can catch it, as in `__del__`; and one that is raised
while an extension module is imported can leave it half initialised, which ends in a crash. So the exception waits until
the import is over, and one that was dropped is raised again.
"""

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType

_REPETITION_SECONDS = 1.0
_RETRY_SECONDS = 0.02
_IMPORT = "<frozen importlib._bootstrap>"
_NUMBERS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


class _Received:
    """The first signal, and when it came."""

    number: int | None = None
    time: float = 0.0


_received = _Received()


def handle() -> None:
    """Handle the signals from now on; one that is ignored, as under nohup, stays ignored."""
    for number in _NUMBERS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)
    if hasattr(signal, "SIGALRM"):
        signal.signal(signal.SIGALRM, _raise_outside_imports)
        sys.unraisablehook = _raise_again


def exit_at_once() -> None:
    """End the process without a word at further signals: the command is done, and Python is shutting down."""
    if hasattr(signal, "SIGALRM"):
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
    for number in _NUMBERS:
        if signal.getsignal(number) is _interrupt:
            signal.signal(number, _exit)


def is_interrupted() -> bool:
    """Whether a signal has come since `handle` was called."""
    return _received.number is not None


def exit_code() -> int:
    """Returns 128 + the first signal, as shells do: 130 after Ctrl-C, 143 after SIGTERM, 129 after SIGHUP."""
    return 128 + (signal.SIGINT if _received.number is None else _received.number)


@contextlib.contextmanager
def defer() -> Iterator[list[int]]:
    """Collect signals in a list instead of raising KeyboardInterrupt; outside the main thread there are none."""
    signals: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield signals
        return

    def collect(number: int, _: FrameType | None) -> None:
        _note(number)
        signals.append(number)

    # Handlers of Python code raise; the default action of SIGTERM and SIGHUP is left as it is.
    before = {number: signal.getsignal(number) for number in _NUMBERS if callable(signal.getsignal(number))}
    for number in before:
        signal.signal(number, collect)
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def is_cause_of(error: BaseException) -> bool:
    """Whether an error was raised while a KeyboardInterrupt was handled: a library was stopped amid its locks."""
    context: BaseException | None = error
    while context is not None:
        if isinstance(context, KeyboardInterrupt):
            return True
        context = context.__cause__ or context.__context__
    return False


def _interrupt(number: int, frame: FrameType | None) -> None:
    if _note(number):
        _raise_outside_imports(number, frame)


def _raise_outside_imports(number: int, frame: FrameType | None) -> None:
    """Raises KeyboardInterrupt, now or, during an import, a little later."""
    del number
    while frame is not None and hasattr(signal, "SIGALRM"):
        if frame.f_code.co_filename == _IMPORT:
            signal.setitimer(signal.ITIMER_REAL, _RETRY_SECONDS)
            return
        frame = frame.f_back
    raise KeyboardInterrupt


def _raise_again(dropped: "sys.UnraisableHookArgs") -> None:
    """Raises a KeyboardInterrupt again that Python would drop with a message."""
    if issubclass(dropped.exc_type, KeyboardInterrupt):
        signal.setitimer(signal.ITIMER_REAL, _RETRY_SECONDS)
    else:
        sys.__unraisablehook__(dropped)


def _note(number: int) -> bool:
    """Returns whether this is the first signal; ends the process if it is a second request, not a repetition."""
    if _received.number is None:
        _received.number, _received.time = number, time.monotonic()
        return True
    if time.monotonic() - _received.time > _REPETITION_SECONDS:
        _exit(number, None)
    return False


def _exit(number: int, _: FrameType | None) -> None:
    del number
    with contextlib.suppress(OSError, ValueError, RuntimeError):
        sys.stderr.flush()
    os._exit(exit_code())
