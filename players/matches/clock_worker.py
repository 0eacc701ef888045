"""The clock of a match: calls with a deadline, in a thread. Python cannot interrupt a call, but abandon a thread.

`referee` calls agents through it; what they see of it is the `Clock` of `players/agents/agent.py`.
"""

import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

GRACE = 0.25  # seconds after the end of a clock: the time that switching threads may take on a busy machine
_CLOSE_SECONDS = 5.0  # that `close` waits for a running call
_ABANDONED: list[threading.Thread] = []  # that were still busy then

T = TypeVar("T")
_Outcome = tuple[Any, BaseException | None]  # what a call returned, or what it raised


class DeadlineError(Exception):
    """No answer in time."""


class WorkerBusyError(DeadlineError):
    """Not called, because the worker is still busy with an earlier call."""


class WorkerCrashError(Exception):
    """The call raised an error of any type, which is the cause."""


def has_running_threads() -> bool:
    """Whether some abandoned thread still runs: then only os._exit ends the process safely."""
    return any(thread.is_alive() for thread in _ABANDONED)


class Worker:
    """Runs one call at a time. A call that takes too long cannot be stopped, and blocks later ones until it is done."""

    def __init__(self, name: str) -> None:
        # Simple queues: a KeyboardInterrupt while waiting for another kind of lock can end in "release unlocked lock".
        self._name = name
        self._questions: queue.SimpleQueue[tuple[Callable[[], Any], queue.SimpleQueue[_Outcome]] | None]
        self._questions = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._is_busy = False

    @property
    def is_busy(self) -> bool:
        return self._is_busy

    def call(self, question: Callable[[], T], seconds: float) -> T:
        """Returns what the function returns.

        Raises:
          DeadlineError: it took longer than `seconds`, with some grace, or the worker is busy.
          WorkerCrashError: it raised an error.
        """
        if self._is_busy:
            raise WorkerBusyError("is still busy with an earlier question")
        if self._thread is None:
            self._thread = threading.Thread(target=self._answer, name=self._name, daemon=True)
            self._thread.start()
        answer: queue.SimpleQueue[_Outcome] = queue.SimpleQueue()
        self._is_busy = True
        self._questions.put((question, answer))
        try:
            value, error = answer.get(timeout=min(seconds + GRACE, threading.TIMEOUT_MAX))
        except queue.Empty:
            raise DeadlineError(f"had not answered after {seconds:g} s") from None
        if error is not None:
            raise WorkerCrashError from error
        result: T = value
        return result

    def close(self) -> None:
        """Waits a while for a running call, since Python crashes if it exits while threads compute."""
        self._questions.put(None)
        if self._thread is not None:
            self._thread.join(_CLOSE_SECONDS)
            if self._thread.is_alive():
                _ABANDONED.append(self._thread)

    def _answer(self) -> None:
        while (item := self._questions.get()) is not None:
            question, answer = item
            outcome: _Outcome
            try:
                outcome = question(), None
            except BaseException as error:  # also sys.exit() of an agent, which must not end the match
                outcome = None, error
            self._is_busy = False
            answer.put(outcome)
