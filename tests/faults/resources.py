"""Commands on full disks, in read-only folders and with little memory: one message, and nothing lost."""

import pathlib
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from gdlx.tests.faults import processes, scenarios

_MB = 2**20


class Failure(Exception):
    """A message that is not one for users, or a damaged file."""


@contextmanager
def mounted(folder: pathlib.Path, *options: str) -> Iterator[bool]:
    """Mounts a file system in memory, where that is allowed; yields whether it is."""
    done = (
        shutil.which("mount") is not None
        and (
            subprocess.run(["mount", "-t", "tmpfs", "-o", ",".join(options), "tmpfs", str(folder)], capture_output=True)
        ).returncode
        == 0
    )
    try:
        yield done
    finally:
        if done:
            subprocess.run(["umount", str(folder)], check=True, capture_output=True)


def require_paragraph(ended: processes.Ended, what: str) -> None:
    """A command either succeeds, or says in one paragraph what stopped it."""
    if ended.code == 0:
        return
    if ended.code < 0 or ended.code == 70 or "Traceback" in ended.stderr or "bug in gdlx" in ended.stderr:
        raise Failure(f"{what}: exit {ended.code}: {ended.stderr[-2000:]}")


def file_size_limit(scenario: scenarios.Scenario, cache: pathlib.Path, kilobytes: int) -> bool:
    """Files cannot grow beyond a size, as on a disk that is nearly full; afterwards the command completes.

    Returns:
      Whether the limit stopped the command.
    """
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        scenario.prepare(folder)
        env = processes.environment(cache)
        limit = (resource.RLIMIT_FSIZE, kilobytes * 1024)
        ended = processes.run(scenario.start, folder, env, limit=limit)
        require_paragraph(ended, f"{scenario.name}, files of at most {kilobytes} kB")
        _complete(scenario, folder, env)
        return ended.code != 0


def full_disk(scenario: scenarios.Scenario, cache: pathlib.Path, kilobytes: int) -> bool | None:
    """The same on a file system of that size; None where none can be mounted."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        with mounted(folder, f"size={kilobytes}k") as done:
            if not done:
                return None
            scenario.prepare(folder)
            ended = processes.run(scenario.start, folder, processes.environment(cache))
            require_paragraph(ended, f"{scenario.name} on a disk of {kilobytes} kB")
            return ended.code != 0


def read_only(scenario: scenarios.Scenario, cache: pathlib.Path) -> bool | None:
    """The folder cannot be written; None where no such folder can be made."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        with mounted(folder, "size=1m") as done:
            if not done:
                return None
            scenario.prepare(folder)
            subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True, capture_output=True)
            ended = processes.run(scenario.start, folder, processes.environment(cache))
            require_paragraph(ended, f"{scenario.name} in a folder that cannot be written")
            return ended.code != 0


def low_memory(scenario: scenarios.Scenario, cache: pathlib.Path, megabytes: int) -> bool:
    """Little address space is left."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        scenario.prepare(folder)
        limit = (resource.RLIMIT_AS, megabytes * _MB)
        ended = processes.run(scenario.start, folder, processes.environment(cache), limit=limit)
        require_paragraph(ended, f"{scenario.name} with {megabytes} MB")
        return ended.code != 0


def _complete(scenario: scenarios.Scenario, folder: pathlib.Path, env: dict[str, str]) -> None:
    resumable = scenario.is_resumable(folder)
    if not resumable:
        shutil.rmtree(folder / "results", ignore_errors=True)
    ended = processes.run(scenario.resume if resumable else scenario.start, folder, env)
    if ended.code not in scenario.codes:
        raise Failure(f"{scenario.name} does not complete afterwards: {ended.stderr[-2000:]}")
