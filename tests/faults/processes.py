"""Starting commands in real processes, stopping them, and finding what they leave behind."""

import contextlib
import os
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

GDLX = (sys.executable, "-m", "gdlx.cli")
_HANG = 300.0  # seconds after which a command is considered to hang; machines may be busy


class Ended(NamedTuple):
    code: int  # negative: the number of the signal that ended it
    stderr: str
    seconds: float


class Hang(Exception):
    """A command that did not end."""


def environment(cache: pathlib.Path) -> dict[str, str]:
    """What users have: their own cache folder, and XLA's optimisations."""
    kept = {name: text for name, text in os.environ.items() if name != "JAX_DISABLE_MOST_OPTIMIZATIONS"}
    return {**kept, "GDLX_CACHE": str(cache)}


def run(
    arguments: Sequence[str],
    folder: pathlib.Path,
    env: Mapping[str, str],
    *,
    stop: tuple[float, signal.Signals] | None = None,
    limit: tuple[int, int] | None = None,
) -> Ended:
    """Runs a command in a folder.

    Args:
      arguments: of `gdlx`.
      folder: where it runs.
      env: its environment.
      stop: seconds until a signal is sent to the command, and the signal. It is sent to that process alone.
      limit: a resource of `setrlimit` and its limit.

    Raises:
      Hang: the command did not end, or left a process behind.
    """
    began = time.monotonic()
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [*GDLX, *arguments],
            cwd=folder,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
            preexec_fn=_limiter(limit),
        )
        try:
            if stop is not None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(stop[0])
                if process.poll() is None:
                    process.send_signal(stop[1])
            process.wait(_HANG)
            _require_no_children(process.pid, arguments)
        except subprocess.TimeoutExpired:
            raise Hang(f"{' '.join(arguments)} did not end within {_HANG:g} s") from None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        errors.seek(0)
        return Ended(process.returncode, errors.read().decode(errors="replace"), time.monotonic() - began)


def _limiter(limit: tuple[int, int] | None) -> Callable[[], None] | None:
    if limit is None:
        return None
    kind, bound = limit
    return lambda: resource.setrlimit(kind, (bound, bound))


def _require_no_children(group: int, arguments: Sequence[str]) -> None:
    """Processes that a command has started must end soon after it."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.02)
    raise Hang(f"{' '.join(arguments)} left a process behind")
