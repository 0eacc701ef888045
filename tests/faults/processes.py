"""Starting commands in real processes, stopping them, and finding what they leave behind."""

import contextlib
import importlib
import os
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import IO, NamedTuple, NoReturn

GDLX = (sys.executable, "-m", "gdlx.cli")
_HANG = 300.0  # seconds after which a command is considered to hang; machines may be busy
_PATIENCE = 10.0  # seconds in which what a command has started must end after it
_POLL = 0.002
# What commands import, and takes longer than most of what is stopped. None of it starts jax, which could not be forked.
_IMPORTED = (
    *("gdlx.cli.application", "gdlx.cli.solution_table", "gdlx.solvers.solve_requests", "gdlx.solvers.runs.plot"),
    *(
        "gdlx.experiments.sweeps.run",
        "gdlx.nets.training",
        "gdlx.players.matches.contest",
        "gdlx.envs.compilation_cache",
    ),
    *("matplotlib.pyplot", "orbax.checkpoint", "gdlx.nets.learners.deep_cfr"),
)


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
    fresh: bool = True,
) -> Ended:
    """Runs a command in a folder.

    Args:
      arguments: of `gdlx`.
      folder: where it runs.
      env: its environment.
      stop: seconds until a signal is sent to the command, and the signal. It is sent to that process alone.
      limit: a resource of `setrlimit` and its limit.
      fresh: start a new Python, as users do. Otherwise this process is forked after it has imported what commands do.

    Raises:
      Hang: the command did not end, or left a process behind.
    """
    began = time.monotonic()
    with tempfile.TemporaryFile() as errors:
        start = _start if fresh else _fork
        pid = start(arguments, folder, env, limit, errors)
        code: int | None = None
        try:
            if stop is not None:
                code = _wait(pid, stop[0])
                if code is None:
                    os.kill(pid, stop[1])
            if code is None:
                code = _wait(pid, _HANG)
            if code is None:
                raise Hang(f"{' '.join(arguments)} did not end within {_HANG:g} s")
            _require_no_children(pid, arguments)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
            if code is None:
                os.waitpid(pid, 0)
        errors.seek(0)
        return Ended(code, errors.read().decode(errors="replace"), time.monotonic() - began)


def _wait(pid: int, seconds: float) -> int | None:
    """Waits for a child; returns its exit code, or None if it still runs."""
    deadline = time.monotonic() + seconds
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() >= deadline:
            return None
        time.sleep(_POLL)


def _start(
    arguments: Sequence[str],
    folder: pathlib.Path,
    env: Mapping[str, str],
    limit: tuple[int, int] | None,
    errors: IO[bytes],
) -> int:
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
    process.returncode = 0  # whoever called waits for the process itself
    return process.pid


def _fork(
    arguments: Sequence[str],
    folder: pathlib.Path,
    env: Mapping[str, str],
    limit: tuple[int, int] | None,
    errors: IO[bytes],
) -> int:
    for name in _IMPORTED:
        importlib.import_module(name)
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        _command(arguments, folder, env, limit, errors)
    # Both do it, so that it is done before either of them goes on.
    with contextlib.suppress(OSError):
        os.setpgid(pid, pid)
    return pid


def _command(
    arguments: Sequence[str],
    folder: pathlib.Path,
    env: Mapping[str, str],
    limit: tuple[int, int] | None,
    errors: IO[bytes],
) -> NoReturn:
    """What a forked process does: it becomes the command, and never returns."""
    code = 70
    try:
        os.setpgid(0, 0)
        nothing = os.open(os.devnull, os.O_RDWR)
        for number, descriptor in enumerate((nothing, nothing, errors.fileno())):
            os.dup2(descriptor, number)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(env)
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGPROF):
            signal.signal(number, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if (limiter := _limiter(limit)) is not None:
            limiter()
        sys.argv = ["gdlx", *arguments]
        from gdlx import cli

        code = cli.main()
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stderr.flush()
        os._exit(code)


def _limiter(limit: tuple[int, int] | None) -> Callable[[], None] | None:
    if limit is None:
        return None
    kind, bound = limit
    return lambda: resource.setrlimit(kind, (bound, bound))


def _require_no_children(group: int, arguments: Sequence[str]) -> None:
    """Processes that a command has started must end soon after it."""
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.02)
    raise Hang(f"{' '.join(arguments)} left a process behind")
