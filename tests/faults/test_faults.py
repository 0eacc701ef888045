"""A few trials of `make test-faults`, in a process of its own, as jax must not have started before it forks."""

import json
import pathlib
import subprocess
import sys

import pytest

from gdlx.tests.faults import kills, processes, scenarios
from gdlx.tests.helpers import trials


def test_killed_compilations(tmp_path: pathlib.Path) -> None:
    counts = tmp_path / "counts.json"
    command = [sys.executable, "-m", "gdlx.tests.faults", "--trials", "3", "--only", "stopped: compile"]
    ran = subprocess.run([*command, "--counts", str(counts)], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
    outcomes = json.loads(counts.read_text())["outcomes"]["stopped: compile"]
    assert sum(number for name, number in outcomes.items() if name.startswith("SIG")) > 0


def _scenario(code: str) -> scenarios.Scenario:
    """A command that is no gdlx: it writes wrong results, or loses what it has written."""
    return scenarios.Scenario("wrong", ("-c", code), ("-c", code), lambda folder: True, _outcome, fresh=True)


def _outcome(folder: pathlib.Path) -> scenarios.Outcome:
    return {"text": (folder / "out").read_text()}


def test_results_that_depend_on_stops_are_found(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "GDLX", (sys.executable,))
    code = "import time; file = open('out', 'a', buffering=1); file.write('a'); time.sleep(0.3)"
    trial = kills.make_trial(_scenario(code), tmp_path)
    failures = [trials.attempt(trial, seed).failure for seed in range(3)]
    assert any(failure is not None and "text differ from those" in failure for failure in failures)


def test_processes_left_behind_are_found(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "GDLX", (sys.executable,))
    monkeypatch.setattr(processes, "_PATIENCE", 0.2)
    code = "import subprocess; subprocess.Popen(['sleep', '600'])"
    with pytest.raises(processes.Hang, match="left a process behind"):
        processes.run(("-c", code), tmp_path, processes.environment(tmp_path))
