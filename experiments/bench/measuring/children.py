"""Child processes that end with the process that started them, even if that one is killed.

A guard process reads from a pipe which children run. The pipe closes when this process ends, however it does; the guard
then kills those that are left. Nothing has to be changed in the children, and their times are not affected.
"""

import atexit
import concurrent.futures
import contextlib
import functools
import multiprocessing
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, Any, TypeVar

T = TypeVar("T")

_GUARD = """
import os, signal, sys
running = set()
for line in sys.stdin.buffer:
    (running.add if line[:1] == b"+" else running.discard)(int(line[1:]))
for child in running:
    try:
        os.kill(child, signal.SIGKILL)
    except ProcessLookupError:
        pass
"""


@functools.cache
def _guard() -> IO[bytes]:
    """Starts the guard, in a session of its own: Ctrl-C at the terminal does not reach it."""
    guard = subprocess.Popen([sys.executable, "-I", "-S", "-c", _GUARD], stdin=subprocess.PIPE, start_new_session=True)
    assert guard.stdin is not None
    atexit.register(guard.stdin.close)
    return guard.stdin


def _tell(sign: bytes, pid: int) -> None:
    with contextlib.suppress(OSError):  # somebody has killed the guard
        _guard().write(b"%s%d\n" % (sign, pid))
        _guard().flush()


@contextlib.contextmanager
def guarded(pid: int) -> Iterator[None]:
    """Kills a process if this one ends within the context."""
    _tell(b"+", pid)
    try:
        yield
    finally:
        _tell(b"-", pid)


def run(
    command: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    stdout: int = subprocess.PIPE,
) -> "subprocess.CompletedProcess[str]":
    """Runs a command to its end; like `subprocess.run` with `check`, but the command never outlives this process.

    >>> run([sys.executable, "-c", "print(1 + 1)"]).stdout
    '2\\n'
    """
    _guard()  # before the command, so that its own start is not measured
    with (
        subprocess.Popen(command, env=env, cwd=cwd, stdout=stdout, stderr=subprocess.PIPE, text=True) as child,
        guarded(child.pid),
    ):
        try:
            out, err = child.communicate()
        except BaseException:
            child.kill()
            raise
    if child.returncode:
        raise subprocess.CalledProcessError(child.returncode, command, out, err)
    return subprocess.CompletedProcess(command, child.returncode, out, err)


def call(function: Callable[..., T], *arguments: Any) -> T:
    """Calls an importable function in a fresh Python process."""
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, context, initializer=_exit_with_parent) as child:
        return child.submit(function, *arguments).result()


def _exit_with_parent() -> None:
    """Watches the parent in a thread: a pool does not say which processes it starts."""
    import os
    import threading
    from multiprocessing import connection

    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
