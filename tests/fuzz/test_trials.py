"""Trials: counts add up over calls, and failures, hangs and crashes are counted."""

import os
import pathlib
import subprocess
import sys
from collections.abc import Mapping

from gdlx.tests.helpers import trials


def _fine(seed: int) -> Mapping[str, int]:
    return {"even" if seed % 2 == 0 else "odd": 1}


def _bad(seed: int) -> Mapping[str, int]:
    match seed % 4:
        case 0:
            raise trials.Failure("wrong")
        case 1:
            return {"fine": 1 // 0}
        case 2:
            while True:
                try:
                    seed += 1
                except Exception:
                    continue
        case _:
            os._exit(3)


PARTS = (
    trials.Part("fine", 20, lambda folder: _fine),
    trials.Part("bad", 10, lambda folder: _bad, seconds=0.2),
)


SCRIPT = """
import sys
from gdlx.tests.fuzz import test_trials
from gdlx.tests.helpers import trials
sys.exit(trials.main("", test_trials.PARTS, arguments=sys.argv[1:]))
"""


def _run(counts: pathlib.Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """In a process of its own, because it forks, which a process with threads of jax should not do."""
    command = [sys.executable, "-c", SCRIPT, "--counts", str(counts), *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def test_counts_add_up(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "counts.json"
    arguments = ["--only", "fine", "--trials", "7"]
    assert _run(path, *arguments).returncode == 0
    assert "fine: 14 of 20 (even 7, odd 7)" in _run(path, *arguments).stdout
    assert trials.Counts.read(path).next_seed == {"fine": 14}


def test_failures_are_counted(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "counts.json"
    ran = _run(path, "--trials", "12")
    counts = trials.Counts.read(path)
    assert counts.trials == {"fine": 8, "bad": 4}
    assert [failure["seed"] for failure in counts.failures] == [0, 1, 2, 3]
    said = [failure["failure"] for failure in counts.failures]
    assert said[0] == "wrong"
    assert said[1].startswith("ZeroDivisionError")
    assert said[2].startswith("still busy after 0.2 s")
    assert "ended with code 3" in said[3]
    assert "FAILED bad, seed 2" in ran.stderr
    assert ran.returncode == 1


def test_processor_time_of_another_process_is_read() -> None:
    code = "import time\nwhile time.process_time() < 0.5: pass\nprint(flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert 0.4 < trials._cpu_seconds(child.pid) < 5
        child.kill()


def test_one_trial_may_not_take_much_memory() -> None:
    # In a process of its own: this one may have used more before, and given it back.
    code = (
        "from gdlx.tests.helpers import trials\n"
        "limit = trials._peak_bytes() + 2**28\n"
        "print(trials.attempt(lambda seed: {'bytes': len(bytearray(seed))}, 2**29, peak_bytes=limit).failure)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("it took")
