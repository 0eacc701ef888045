"""Stops commands at random times and resumes them: they must end with what an undisturbed run writes."""

import collections
import pathlib
import random
import shutil
import signal
from collections.abc import Mapping
from typing import NamedTuple

from gdlx.tests.faults import processes, scenarios
from gdlx.tests.helpers import trials

_SIGNALS = (*(signal.SIGKILL,) * 9, signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_MIN_STOPS, _MAX_STOPS = (
    4,
    12,
)  # in one trial: completing and comparing takes longer than most stops
_COLD = 0.03  # part of the trials that start without a cache
_FRESH = 0.1  # part of the runs that start a new Python
_CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}


class Reference(NamedTuple):
    """A run that was never stopped."""

    seconds: Mapping[bool, float]  # by whether a new Python was started
    outcome: scenarios.Outcome


def reference(scenario: scenarios.Scenario, folder: pathlib.Path, cache: pathlib.Path) -> Reference:
    """Runs a scenario several times, first to fill the cache, and compares the runs with each other."""
    seconds: dict[bool, float] = {}
    outcomes = []
    for number, fresh in enumerate((True, True, scenario.fresh)):
        place = folder / str(number)
        place.mkdir()
        scenario.prepare(place)
        ended = processes.run(scenario.start, place, processes.environment(cache), fresh=fresh)
        if ended.code not in scenario.codes:
            raise trials.Failure(f"{scenario.name} failed undisturbed: {ended.stderr}")
        seconds[fresh] = ended.seconds
        outcomes.append(scenario.outcome(place))
        _require_equal(outcomes[-1], outcomes[0])
    return Reference(seconds, outcomes[0])


def make_trial(scenario: scenarios.Scenario, folder: pathlib.Path) -> trials.Trial:
    """A trial stops a scenario several times at random moments, lets it finish, and compares what it has written."""
    cache, cold, work = (folder / name for name in ("cache", "cold", "work"))
    expected = reference(scenario, folder, cache)

    def trial(seed: int) -> Mapping[str, int]:
        chance = random.Random(f"{scenario.name} {seed}")
        for place in (cold, work):
            shutil.rmtree(place, ignore_errors=True)
        work.mkdir()
        scenario.prepare(work)
        run = _Stopping(scenario, work, processes.environment(cold if chance.random() < _COLD else cache))
        for _ in range(chance.randint(_MIN_STOPS, _MAX_STOPS)):
            fresh = scenario.fresh or chance.random() < _FRESH
            # Rather early: what is resumed has less left to do.
            seconds = 1.1 * expected.seconds[fresh] * chance.random() ** 2
            run.stop(seconds, chance.choice(_SIGNALS), fresh=fresh)
        try:
            run.finish()
            _require_equal(scenario.outcome(work), expected.outcome)
        except scenarios.Damaged as error:
            raise trials.Failure(str(error)) from error
        return run.counts

    return trial


class _Stopping:
    """A scenario that is stopped again and again."""

    def __init__(self, scenario: scenarios.Scenario, folder: pathlib.Path, env: Mapping[str, str]) -> None:
        self._scenario, self._folder, self._env = scenario, folder, env
        self._kept: set[str] = set()
        self.counts: collections.Counter[str] = collections.Counter()

    def stop(self, seconds: float, number: signal.Signals, *, fresh: bool) -> None:
        scenario, folder = self._scenario, self._folder
        was_resumable = scenario.is_resumable(folder)
        ended = processes.run(self._arguments(), folder, self._env, stop=(seconds, number), fresh=fresh)
        if ended.code in scenario.codes:
            self.counts["ended before"] += 1
            return
        self.counts[number.name] += 1
        # A signal that arrives before Python runs our code ends the process as the system does.
        if ended.code not in (-number, _CODES.get(number)) and not (fresh and _before_our_code(ended)):
            raise trials.Failure(f"exit {ended.code} after {number.name} at {seconds:.3f} s: {ended.stderr}")
        if any(word in ended.stderr for word in ("Traceback", "bug in gdlx")) and not _before_our_code(ended):
            raise trials.Failure(f"{number.name} at {seconds:.3f} s: {ended.stderr}")
        if was_resumable and not scenario.is_resumable(folder):
            raise trials.Failure(f"{number.name} at {seconds:.3f} s: what could be resumed is lost")
        self._require_kept(f"{number.name} at {seconds:.3f} s")

    def finish(self) -> None:
        ended = processes.run(self._arguments(), self._folder, self._env, fresh=self._scenario.fresh)
        if ended.code not in self._scenario.codes:
            raise trials.Failure(f"exit {ended.code} after the last stop: {ended.stderr}")
        self._require_kept("the end")

    def _require_kept(self, when: str) -> None:
        now = set(self._scenario.kept(self._folder))
        if lost := self._kept - now:
            raise trials.Failure(f"{when}: {len(lost)} of {len(self._kept)} are lost, such as {min(lost)[:200]}")
        self._kept = now

    def _arguments(self) -> tuple[str, ...]:
        if self._scenario.is_resumable(self._folder):
            return self._scenario.resume
        shutil.rmtree(self._folder / "results", ignore_errors=True)  # nothing was written that could be resumed
        return self._scenario.start


def _before_our_code(ended: processes.Ended) -> bool:
    """Whether Python itself was interrupted while it started."""
    return (
        "Traceback" in ended.stderr
        and "gdlx/cli/__init__.py" not in ended.stderr
        and "KeyboardInterrupt" in ended.stderr
    )


def _require_equal(outcome: scenarios.Outcome, expected: scenarios.Outcome) -> None:
    different = [name for name in expected if outcome.get(name) != expected[name]]
    if different:
        raise trials.Failure(f"{', '.join(different)} differ from those of a run that was never stopped")
