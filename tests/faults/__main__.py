"""Runs faults for some minutes and prints counts, which add up over calls:

python -m gdlx.tests.faults --minutes 10 --counts faults.json
"""

import argparse
import functools
import json
import pathlib
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

from gdlx.propnet.common import atomic_files
from gdlx.tests.faults import kills, processes, resources, scenarios

_KILOBYTES = (0, 1, 4, 16, 64)  # of files and disks
_MEGABYTES = (300, 800, 1500, 3000)  # of memory
_RESOURCE_EVERY = 10  # trials with stops between two with little disk or memory


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m gdlx.tests.faults", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0, help="of the first trial")
    parser.add_argument("--counts", type=pathlib.Path, help="a .json file to which counts are added")
    parser.add_argument("--only", choices=sorted(scenarios.BY_NAME), action="append", help="these scenarios alone")
    options = parser.parse_args()
    counts = _read(options.counts, options.seed)
    deadline = time.monotonic() + 60 * options.minutes
    chosen = [one for one in scenarios.SCENARIOS if options.only is None or one.name in options.only]
    with tempfile.TemporaryDirectory() as temporary:
        run(chosen, counts, pathlib.Path(temporary), deadline, lambda: _write(options.counts, counts))
    print(_summary(counts))
    return 1 if counts["failures"] else 0


def run(
    chosen: list[scenarios.Scenario],
    counts: dict[str, Any],
    cache: pathlib.Path,
    deadline: float,
    save: Callable[[], None],
) -> None:
    """Runs trials until the deadline; every trial is counted and saved as soon as it ends."""
    reference = kills.cached_references(cache)
    faults = _resource_faults(chosen, cache)
    while time.monotonic() < deadline:
        seed = counts["next_seed"]
        scenario = chosen[seed % len(chosen)]
        trial = kills.trial(scenario, reference(scenario), cache, seed)
        counts["next_seed"] += 1
        counts["trials"][scenario.name] = counts["trials"].get(scenario.name, 0) + 1
        for name, number in trial.stops.items():
            counts["stops"][name] = counts["stops"].get(name, 0) + number
        if trial.failure is not None:
            _fail(counts, f"{trial.scenario}: {trial.failure}")
        if counts["next_seed"] % _RESOURCE_EVERY == 0 and time.monotonic() < deadline:
            _count_resource(counts, *next(faults))
        save()


def _resource_faults(
    chosen: list[scenarios.Scenario], cache: pathlib.Path
) -> Iterator[tuple[str, Callable[[], bool | None]]]:
    while True:
        for scenario in chosen:
            for size in _KILOBYTES:
                yield "file size", functools.partial(resources.file_size_limit, scenario, cache, size)
                yield "full disk", functools.partial(resources.full_disk, scenario, cache, max(4, size))
            yield "read-only", functools.partial(resources.read_only, scenario, cache)
            for size in _MEGABYTES:
                yield "memory", functools.partial(resources.low_memory, scenario, cache, size)


def _count_resource(counts: dict[str, Any], kind: str, fault: Callable[[], bool | None]) -> None:
    try:
        stopped = fault()
    except (resources.Failure, processes.Hang) as error:
        _fail(counts, f"{kind}: {error}")
        return
    name = f"{kind}: " + {None: "not possible here", True: "refused", False: "completed"}[stopped]
    counts["resources"][name] = counts["resources"].get(name, 0) + 1


def _fail(counts: dict[str, Any], text: str) -> None:
    counts["failures"].append(text)
    print(f"FAILED {text}", file=sys.stderr, flush=True)


def _read(path: pathlib.Path | None, seed: int) -> dict[str, Any]:
    if path is not None and path.exists():
        counts: dict[str, Any] = json.loads(path.read_text())
        return counts
    return {"next_seed": seed, "trials": {}, "stops": {}, "resources": {}, "failures": []}


def _write(path: pathlib.Path | None, counts: dict[str, Any]) -> None:
    if path is not None:
        atomic_files.write_atomically(path, json.dumps(counts, indent=2).encode())


def _summary(counts: dict[str, Any]) -> str:
    def show(numbers: dict[str, int]) -> str:
        return ", ".join(f"{name} {number:,}" for name, number in sorted(numbers.items())) or "none"

    trials, failures = sum(counts["trials"].values()), len(counts["failures"])
    return (
        f"trials: {show(counts['trials'])}\nstops: {show(counts['stops'])}\nresources: {show(counts['resources'])}\n"
        f"{trials - failures} passed, {failures} failed"
    )


if __name__ == "__main__":
    sys.exit(main())
