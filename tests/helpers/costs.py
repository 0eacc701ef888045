"""What the tests cost: the minutes of processor time of a whole run, and with GDLX_TEST_COSTS=FILE.csv a row per test.

Processor time does not depend on what else the machine does, unlike the durations that pytest prints. A fixture counts
for the test that asks for it first. Programs are what jax was asked to compile, hits those found in its cache on disk.
"""

import collections
import csv
import os
import pathlib
from collections.abc import Iterator
from typing import Any

import jax.monitoring
import pytest

_HEADER = ("file", "test", "seconds", "compile_seconds", "programs", "hits")
_COMPILED = "/jax/core/compile/backend_compile_duration"
_HIT = "/jax/compilation_cache/cache_hits"

_counts: collections.Counter[str] = collections.Counter()  # of jax's events
_compile_seconds = [0.0]
_processor_seconds: dict[str, float] = {}  # of every process that ran tests, with those it has started


def _on_event(event: str, **kwargs: str | int) -> None:
    del kwargs
    _counts[event] += 1


def _on_duration(event: str, duration_secs: float, **kwargs: str | int) -> None:
    del kwargs
    if event == _COMPILED:
        _counts[event] += 1
        _compile_seconds[0] += duration_secs


jax.monitoring.register_event_listener(_on_event)
jax.monitoring.register_event_duration_secs_listener(_on_duration)


def _used() -> tuple[float, float, int, int]:
    return sum(os.times()[:4]), _compile_seconds[0], _counts[_COMPILED], _counts[_HIT]


def _append(row: tuple[object, ...], mode: str = "a") -> None:
    """Adds a row to the file, if one is asked for; every worker of xdist adds its own."""
    if path := os.environ.get("GDLX_TEST_COSTS"):
        with pathlib.Path(path).open(mode, newline="") as file:
            csv.writer(file).writerow(row)


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        _append(_HEADER, "w")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    before = _used()
    result = yield
    seconds, compiling, programs, hits = (now - then for now, then in zip(_used(), before, strict=True))
    file, _, test = item.nodeid.partition("::")
    _append((file, test, f"{seconds:.2f}", f"{compiling:.2f}", programs, hits))
    return result


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker of xdist reports what it has used to the process that collects results."""
    output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    used = sum(os.times()[: 2 if output is None else 4])  # what workers have used they report themselves
    if output is None:
        _processor_seconds["main"] = used
    else:
        output["processor_seconds"] = used


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    output = getattr(node, "workeroutput", {})  # a worker that was killed has none
    _processor_seconds[node.gateway.id] = output.get("processor_seconds", 0.0)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    alone = sum(os.times()[:4])
    minutes = (sum(_processor_seconds.values()) if len(_processor_seconds) > 1 else alone) / 60
    terminalreporter.write_line(f"processor time: {minutes:.1f} minutes")
