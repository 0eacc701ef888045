"""Trials for some minutes: the one place for seeds, counts, time limits, and the file to which counts are added.

A part is tried again and again with seeds 0, 1, 2, ..; the part that is farthest from its figure is next. Trials run in
a process of their own, so that the counts survive what crashes or never returns.
"""

import argparse
import contextlib
import json
import multiprocessing
import os
import pathlib
import resource
import signal
import sys
import tempfile
import time
import traceback
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing import connection
from typing import Any, NamedTuple, NoReturn

from gdlx.propnet.common import atomic_files

Trial = Callable[[int], Mapping[str, int]]  # from a seed to what happened, counted
_SAVE_EVERY = 5.0  # seconds
_WAIT = 10  # times the limit on processor time: machines are busy, and children compute too
_IDLE = 0.05  # of the time that one waits, which a process that is not stuck computes even on a busy machine
_LONGEST_MESSAGE = 4_000


class Part(NamedTuple):
    """One kind of trial.

    Attributes:
      figure: how many trials one wants.
      make: makes the trial, given an empty folder that is its own.
      seconds: of processor time, for one trial.
    """

    name: str
    figure: int
    make: Callable[[pathlib.Path], Trial]
    seconds: float = 30.0


class Failure(Exception):
    """What must not happen; any other exception of a trial is a failure, too."""


class Hang(BaseException):
    """A trial computes for too long. Code that catches every Exception does not catch it."""


class Limits(NamedTuple):
    """On the process of the trials."""

    peak_bytes: int | None = None  # of resident memory; more is a failure
    data_bytes: int | None = None  # that it may allocate at all


_NO_LIMITS = Limits()


class Result(NamedTuple):
    counts: Mapping[str, int]
    failure: str | None
    peak_bytes: int


def main(
    description: str | None,
    parts: Sequence[Part],
    *,
    limits: Limits = _NO_LIMITS,
    arguments: Sequence[str] | None = None,
) -> int:
    """Parses the command line, runs trials, and prints counts; returns 1 if there are failures."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--trials", type=int, default=sys.maxsize, help="stop after so many")
    parser.add_argument("--seed", type=int, help="of the first trial of each part (default: go on after the last one)")
    parser.add_argument("--counts", type=pathlib.Path, help="a .json file to which counts are added")
    parser.add_argument("--only", metavar="TEXT", action="append", help="parts alone whose name contains this text")
    parser.add_argument("--list", action="store_true", help="list the parts")
    options = parser.parse_args(arguments)
    counts = Counts.read(options.counts)
    chosen = [part for part in parts if not options.only or any(text in part.name for text in options.only)]
    if options.list or not chosen:
        print("\n".join(part.name for part in parts))
        return 0 if options.list else 2
    if options.seed is not None:
        counts.next_seed.update({part.name: options.seed for part in chosen})
    run(chosen, counts, limits, minutes=options.minutes, trials=options.trials)
    print(counts.summary({part.name: part.figure for part in parts}))
    return 1 if counts.failures else 0


class Counts:
    """What was tried so far. Written to a file, it is where the next call goes on."""

    def __init__(self, path: pathlib.Path | None = None) -> None:
        self.path = path
        self.next_seed: dict[str, int] = {}
        self.trials: dict[str, int] = {}
        self.outcomes: dict[str, dict[str, int]] = {}
        self.failures: list[dict[str, Any]] = []
        self.seconds, self.peak_bytes = 0.0, 0

    @classmethod
    def read(cls, path: pathlib.Path | None) -> "Counts":
        counts = cls(path)
        if path is not None and path.exists():
            for name, value in json.loads(path.read_text()).items():
                setattr(counts, name, value)
        return counts

    def write(self) -> None:
        if self.path is not None:
            fields = {name: value for name, value in vars(self).items() if name != "path"}
            atomic_files.write_atomically(self.path, json.dumps(fields, indent=1).encode())

    def add(self, part: str, seed: int, result: Result) -> None:
        self.next_seed[part] = seed + 1
        self.trials[part] = self.trials.get(part, 0) + 1
        self.peak_bytes = max(self.peak_bytes, result.peak_bytes)
        outcomes = self.outcomes.setdefault(part, {})
        for name, number in result.counts.items():
            outcomes[name] = outcomes.get(name, 0) + number
        if result.failure is not None:
            self.failures.append({"part": part, "seed": seed, "failure": result.failure})
            print(f"FAILED {part}, seed {seed}: {result.failure}", file=sys.stderr, flush=True)

    def summary(self, figures: Mapping[str, int]) -> str:
        lines = []
        for name in sorted(self.trials):
            known = ", ".join(f"{what} {number:,}" for what, number in sorted(self.outcomes[name].items()))
            lines.append(f"{name}: {self.trials[name]:,} of {figures.get(name, 0):,} ({known})")
        lines.append(
            f"{sum(self.trials.values()):,} trials in {self.seconds / 60:.1f} minutes, "
            f"at most {self.peak_bytes / 2**20:,.0f} MB, {len(self.failures)} failed"
        )
        return "\n".join(lines)


def run(parts: Sequence[Part], counts: Counts, limits: Limits, *, minutes: float, trials: int = sys.maxsize) -> None:
    """Runs trials until the time is over or so many are done."""
    began, before = time.monotonic(), counts.seconds
    saved = began
    with tempfile.TemporaryDirectory() as temporary, _Worker(parts, pathlib.Path(temporary), limits) as worker:
        while (now := time.monotonic()) < began + 60 * minutes and trials > 0:
            part = min(parts, key=lambda one: counts.trials.get(one.name, 0) / one.figure)
            seed = counts.next_seed.get(part.name, 0)
            result = worker.result(part, seed)
            counts.add(part.name, seed, result)
            if limits.peak_bytes is not None and result.peak_bytes > limits.peak_bytes // 2:
                worker.stop()  # jax keeps what it compiles: a new process starts small
            trials -= 1
            counts.seconds = before + time.monotonic() - began
            if now - saved > _SAVE_EVERY:
                counts.write()
                saved = now
    counts.write()


class _Worker:
    """The process that runs trials; a new one if it has ended or does not answer."""

    def __init__(self, parts: Sequence[Part], folder: pathlib.Path, limits: Limits) -> None:
        self._parts, self._folder, self._limits = parts, folder, limits
        self._process: Any = None
        self._ours: Any = None
        self._number = 0

    def __enter__(self) -> "_Worker":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def result(self, part: Part, seed: int) -> Result:
        if self._process is None:
            self._start()
        self._ours.send((part.name, seed))
        try:
            if self._answers(_WAIT * part.seconds):
                result: Result = self._ours.recv()
                return result
            problem = f"no answer after {_WAIT * part.seconds:g} s"
        except (EOFError, OSError):
            self._process.join(10)
            problem = f"the process has ended with code {self._process.exitcode}"
        self.stop()
        return Result({}, problem, 0)

    def _answers(self, seconds: float) -> bool:
        """Waits for an answer; for longer while little was computed, as other work keeps the machine busy."""
        before = _cpu_seconds(self._process.pid)
        for _ in range(_WAIT):
            if self._ours.poll(seconds):
                return True
            if not _IDLE * seconds < _cpu_seconds(self._process.pid) - before < seconds / 2:
                return False
        return False

    def _start(self) -> None:
        context = multiprocessing.get_context("fork")
        self._ours, theirs = context.Pipe()
        self._number += 1
        folder = self._folder / str(self._number)
        folder.mkdir()
        self._process = context.Process(target=_serve, args=(self._parts, folder, self._limits, theirs))
        self._process.start()
        theirs.close()

    def stop(self) -> None:
        if self._process is not None:
            self._ours.close()
            self._process.kill()
            self._process.join()
            self._process = None


def _serve(parts: Sequence[Part], folder: pathlib.Path, limits: Limits, pipe: connection.Connection) -> None:
    if limits.data_bytes is not None:
        resource.setrlimit(resource.RLIMIT_DATA, (limits.data_bytes, limits.data_bytes))
    made: dict[str, Trial] = {}
    by_name = {part.name: part for part in parts}
    with contextlib.suppress(EOFError):
        while True:
            name, seed = pipe.recv()
            if name not in made:
                place = folder / str(len(made))
                place.mkdir()
                made[name] = by_name[name].make(place)
            pipe.send(attempt(made[name], seed, by_name[name].seconds, limits.peak_bytes))


def attempt(trial: Trial, seed: int, seconds: float = 30.0, peak_bytes: int | None = None) -> Result:
    """Runs one trial within its limits."""
    counts: Mapping[str, int] = {}
    failure = None
    before = _peak_bytes()
    try:
        with time_limit(seconds):
            counts = trial(seed)
    except Failure as error:
        failure = str(error)
    except Hang as error:
        failure = f"{error}\n{_where(error)}"
    except Exception as error:
        failure = f"{type(error).__name__}: {error}\n{_where(error)}"
    peak = _peak_bytes()
    if failure is None and peak_bytes is not None and before <= peak_bytes < peak:
        failure = f"it took {peak / 2**20:,.0f} MB"
    return Result(counts, None if failure is None else failure[:_LONGEST_MESSAGE], peak)


def _where(error: BaseException) -> str:
    return "".join(traceback.format_tb(error.__traceback__)[-6:])


def _cpu_seconds(pid: int) -> float:
    """Processor time of a process and of its children that have ended; 0 where the system does not tell."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _peak_bytes() -> int:
    status = pathlib.Path("/proc/self/status")
    if status.exists():  # getrusage counts what the process that started this one has used
        highest = next((line for line in status.read_text().splitlines() if line.startswith("VmHWM:")), None)
        if highest is not None:
            return int(highest.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raises Hang after so many seconds of processor time, which does not depend on what else a machine does."""

    def stop(number: int, frame: types.FrameType | None) -> NoReturn:
        raise Hang(f"still busy after {seconds:g} s of processor time")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
