"""Questions with a deadline: asked in a thread, since nothing else in Python can be left behind when time is up."""

import concurrent.futures
import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

GRACE = 0.25  # seconds after the end of a clock: the time that switching threads may take on a busy machine
_FAREWELL = 5.0  # seconds that are waited for an answer which nobody wants any more
_LEFT: list[threading.Thread] = []  # that were still busy then

T = TypeVar("T")


class DeadlineError(Exception):
    """No answer in time."""


class WorkerBusyError(DeadlineError):
    """Was not even asked, because it is still busy with an earlier question."""


class WorkerCrashError(Exception):
    """What was asked raised an error, of whatever kind; it is the cause."""


def has_running_threads() -> bool:
    """Whether some thread still computes what nobody waits for: then end a process with os._exit alone."""
    return any(thread.is_alive() for thread in _LEFT)


class Worker:
    """Answers one question at a time. Who takes too long cannot be stopped, and is asked nothing until it is done."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._questions: queue.SimpleQueue[tuple[Callable[[], Any], concurrent.futures.Future[Any]] | None]
        self._questions = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._last: concurrent.futures.Future[Any] | None = None

    @property
    def is_busy(self) -> bool:
        return self._last is not None and not self._last.done()

    def call(self, question: Callable[[], T], seconds: float) -> T:
        if self.is_busy:
            raise WorkerBusyError("is still busy with an earlier question")
        if self._thread is None:
            self._thread = threading.Thread(target=self._answer, name=self._name, daemon=True)
            self._thread.start()
        answer: concurrent.futures.Future[T] = concurrent.futures.Future()
        self._last = answer
        self._questions.put((question, answer))
        concurrent.futures.wait([answer], min(seconds + GRACE, threading.TIMEOUT_MAX))
        if not answer.done():
            raise DeadlineError(f"had not answered after {seconds:g} s")
        error = answer.exception()
        if error is not None:
            raise WorkerCrashError from error
        return answer.result()

    def close(self) -> None:
        """Python breaks down if it ends while threads compute: so they are waited for, but not for ever."""
        self._questions.put(None)
        if self._thread is not None:
            self._thread.join(_FAREWELL)
            if self._thread.is_alive():
                _LEFT.append(self._thread)

    def _answer(self) -> None:
        while (item := self._questions.get()) is not None:
            question, answer = item
            try:
                answer.set_result(question())
            except BaseException as error:  # also sys.exit() of an agent, which must not end the match
                answer.set_exception(error)
