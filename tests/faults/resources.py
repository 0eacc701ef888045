"""Commands on full disks, in read-only folders and with little memory: one message, and nothing lost."""

import pathlib
import random
import resource
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from gdlx.tests.faults import processes, scenarios
from gdlx.tests.helpers import trials

_MB = 2**20
_KILOBYTES = (0, 1, 4, 16, 64)  # of files and disks
_MEGABYTES = (150, 300, 600, 1_000, 1_500, 2_000, 3_000)  # of memory

# numpy itself prints a traceback and advice if its libraries do not fit into memory.
_END_OF_NUMPYS_REPORT = "Original error was: "

Fault = Callable[[scenarios.Scenario, pathlib.Path, pathlib.Path, random.Random], str]


def make_trial(kind: str, chosen: Sequence[scenarios.Scenario], folder: pathlib.Path) -> trials.Trial:
    """A trial starts one of the scenarios with a fault of one kind."""
    fault = _FAULTS[kind]
    cache, work = folder / "cache", folder / "work"

    def trial(seed: int) -> Mapping[str, int]:
        chance = random.Random(f"{kind} {seed}")
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        return {fault(chance.choice(chosen), work, cache, chance): 1}

    return trial


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


def require_paragraph(ended: processes.Ended, scenario: scenarios.Scenario, what: str) -> str:
    """A command either succeeds, or says in one paragraph what stopped it; returns which."""
    if ended.code in scenario.codes and ended.code != 1:
        return "completed"
    ours = ended.stderr.rpartition(_END_OF_NUMPYS_REPORT)[2]
    if ended.code < 0 or ended.code == 70 or "Traceback" in ours or "bug in gdlx" in ours:
        raise trials.Failure(f"{scenario.name} {what}: exit {ended.code}: {ended.stderr[-2_000:]}")
    if ended.code not in scenario.codes and not ended.stderr.strip():
        raise trials.Failure(f"{scenario.name} {what}: exit {ended.code} without a message")
    return "refused"


def _small_files(scenario: scenarios.Scenario, folder: pathlib.Path, cache: pathlib.Path, chance: random.Random) -> str:
    """Files cannot grow beyond a size, as on a disk that is nearly full; afterwards the command completes."""
    scenario.prepare(folder)
    env = processes.environment(cache)
    kilobytes = max(1, chance.choice(_KILOBYTES))  # standard error is a file here, too, and needs room for a message
    limit = (resource.RLIMIT_FSIZE, kilobytes * 1024)
    ended = processes.run(scenario.start, folder, env, limit=limit)
    reported = require_paragraph(ended, scenario, f"with files of at most {kilobytes} kB")
    _complete(scenario, folder, env)
    return reported


def _full_disk(scenario: scenarios.Scenario, folder: pathlib.Path, cache: pathlib.Path, chance: random.Random) -> str:
    """The file system is full."""
    kilobytes = max(4, chance.choice(_KILOBYTES))
    with mounted(folder, f"size={kilobytes}k") as done:
        if not done:
            return "not possible here"
        scenario.prepare(folder)
        ended = processes.run(scenario.start, folder, processes.environment(cache))
        return require_paragraph(ended, scenario, f"on a disk of {kilobytes} kB")


def _read_only(scenario: scenarios.Scenario, folder: pathlib.Path, cache: pathlib.Path, chance: random.Random) -> str:
    """The folder cannot be written."""
    del chance
    with mounted(folder, "size=1m") as done:
        if not done:
            return "not possible here"
        scenario.prepare(folder)
        subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True, capture_output=True)
        ended = processes.run(scenario.start, folder, processes.environment(cache))
        return require_paragraph(ended, scenario, "in a folder that cannot be written")


def _low_memory(scenario: scenarios.Scenario, folder: pathlib.Path, cache: pathlib.Path, chance: random.Random) -> str:
    """Little address space is left; afterwards the command completes."""
    scenario.prepare(folder)
    env = processes.environment(cache)
    megabytes = chance.choice(_MEGABYTES)
    ended = processes.run(scenario.start, folder, env, limit=(resource.RLIMIT_AS, megabytes * _MB))
    if ended.code in (-signal.SIGABRT, -signal.SIGSEGV) and "Traceback" not in ended.stderr:
        reported = "ended by a library"  # which cannot start a thread, or a C++ exception that nobody catches
    else:
        reported = require_paragraph(ended, scenario, f"with {megabytes} MB")
    _complete(scenario, folder, env)
    return reported


_FAULTS: Mapping[str, Fault] = {
    "small files": _small_files,
    "full disk": _full_disk,
    "read-only": _read_only,
    "low memory": _low_memory,
}
KINDS = tuple(_FAULTS)


def _complete(scenario: scenarios.Scenario, folder: pathlib.Path, env: dict[str, str]) -> None:
    resumable = scenario.is_resumable(folder)
    if not resumable:
        shutil.rmtree(folder / "results", ignore_errors=True)
    arguments = scenario.resume if resumable else scenario.start
    ended = processes.run(arguments, folder, env, fresh=scenario.fresh)
    if ended.code not in scenario.codes:
        raise trials.Failure(f"{scenario.name} does not complete afterwards: {ended.stderr[-2_000:]}")
