"""Stops commands at random times and resumes them: they must end with what an undisturbed run writes."""

import pathlib
import random
import shutil
import signal
import tempfile
from collections.abc import Callable, Mapping
from typing import NamedTuple

from gdlx.tests.faults import processes, scenarios

SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGKILL, signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_MAX_STOPS = 5  # in one trial
_COLD = 0.1  # part of the trials that start without a cache
_CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}


class Reference(NamedTuple):
    """A run that was never stopped."""

    seconds: float
    outcome: scenarios.Outcome


class Trial(NamedTuple):
    scenario: str
    stops: dict[str, int]  # by the name of the signal
    failure: str | None


class Failure(Exception):
    """What a stopped command must not do."""


def reference(scenario: scenarios.Scenario, cache: pathlib.Path) -> Reference:
    """Runs a scenario twice, the second time with a warm cache, whose time is kept."""
    with tempfile.TemporaryDirectory() as temporary:
        for name in ("cold", "warm"):
            folder = pathlib.Path(temporary) / name
            folder.mkdir()
            scenario.prepare(folder)
            ended = processes.run(scenario.start, folder, processes.environment(cache))
            if ended.code not in scenario.codes:
                raise Failure(f"{scenario.name} failed undisturbed: {ended.stderr}")
        return Reference(ended.seconds, scenario.outcome(folder))


def trial(scenario: scenarios.Scenario, expected: Reference, cache: pathlib.Path, seed: int) -> Trial:
    """Stops a scenario up to five times at random moments, lets it finish, and compares what it has written."""
    chance = random.Random(seed)
    stops: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary) / "work"
        folder.mkdir()
        scenario.prepare(folder)
        env = processes.environment(pathlib.Path(temporary) / "cache" if chance.random() < _COLD else cache)
        try:
            for _ in range(chance.randint(1, _MAX_STOPS)):
                stop = chance.choice(SIGNALS)
                _stopped(scenario, folder, env, (chance.uniform(0, 1.1 * expected.seconds), stop), stops)
            ended = processes.run(_arguments(scenario, folder), folder, env)
            if ended.code not in scenario.codes:
                raise Failure(f"exit {ended.code} after the last stop: {ended.stderr}")
            _require_equal(scenario.outcome(folder), expected.outcome)
        except (Failure, processes.Hang, scenarios.Damaged, OSError, ValueError, KeyError) as error:
            return Trial(scenario.name, stops, f"seed {seed}: {type(error).__name__}: {error}")
    return Trial(scenario.name, stops, None)


def _stopped(
    scenario: scenarios.Scenario,
    folder: pathlib.Path,
    env: Mapping[str, str],
    stop: tuple[float, signal.Signals],
    stops: dict[str, int],
) -> None:
    was_resumable = scenario.is_resumable(folder)
    ended = processes.run(_arguments(scenario, folder), folder, env, stop=stop)
    number = stop[1]
    if ended.code in scenario.codes:
        return  # it finished before
    stops[number.name] = stops.get(number.name, 0) + 1
    # A signal that arrives before Python runs our code ends the process as the system does.
    if ended.code not in (-number, _CODES.get(number)):
        raise Failure(f"exit {ended.code} after {number.name} at {stop[0]:.3f} s: {ended.stderr}")
    if any(word in ended.stderr for word in ("Traceback", "bug in gdlx")):
        raise Failure(f"{number.name} at {stop[0]:.3f} s: {ended.stderr}")
    if was_resumable and not scenario.is_resumable(folder):
        raise Failure(f"{number.name} at {stop[0]:.3f} s: what could be resumed is lost")


def _arguments(scenario: scenarios.Scenario, folder: pathlib.Path) -> tuple[str, ...]:
    if scenario.is_resumable(folder):
        return scenario.resume
    shutil.rmtree(folder / "results", ignore_errors=True)  # nothing was written that could be resumed
    return scenario.start


def _require_equal(outcome: scenarios.Outcome, expected: scenarios.Outcome) -> None:
    different = [name for name in expected if outcome.get(name) != expected[name]]
    if different:
        raise Failure(f"{', '.join(different)} differ from those of a run that was never stopped")


def cached_references(cache: pathlib.Path) -> Callable[[scenarios.Scenario], Reference]:
    """References that are made when they are first needed."""
    references: dict[str, Reference] = {}

    def find(scenario: scenarios.Scenario) -> Reference:
        if scenario.name not in references:
            references[scenario.name] = reference(scenario, cache)
        return references[scenario.name]

    return find
