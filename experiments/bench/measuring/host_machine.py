"""Describes the machine, without names of host and user, and measures the time and memory of functions."""

import dataclasses
import gc
import os
import pathlib
import platform
import subprocess
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

from gdlx.envs import devices
from gdlx.experiments.bench.measuring import children

T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class HostInfo:
    cpu: str
    cores: int  # available to this process
    memory_gb: float | None
    python: str
    platform: str


def describe() -> HostInfo:
    return HostInfo(
        cpu=_cpu_model(),
        cores=devices.available_cores(),
        memory_gb=_memory_gb(),
        python=platform.python_version(),
        platform=f"{platform.system()} {platform.machine()}",
    )


def _cpu_model() -> str:
    cpuinfo = pathlib.Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    if platform.system() == "Darwin":
        ran = subprocess.run(["sysctl", "-n", "machdep.cpu.brand_string"], capture_output=True, text=True)
        return ran.stdout.strip()
    return platform.processor() or platform.machine()


def _memory_gb() -> float | None:
    memory = devices.machine_memory_bytes()
    return None if memory is None else round(memory / 1e9, 1)


def best_seconds(function: Callable[[], object], repeats: int = 3) -> float:
    """Wall time of the fastest of `repeats` calls: on a shared machine the minimum is what the code costs."""
    times = []
    for _ in range(repeats):
        gc.collect()
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def peak_mb(function: Callable[..., object], *arguments: object) -> float:
    """Peak resident memory of a fresh Python process that calls a function (which must be importable)."""
    return run_in_subprocess(_call_and_measure_peak, function, *arguments)


def run_in_subprocess(
    function: Callable[..., T], *arguments: object, environment: Mapping[str, str] | None = None
) -> T:
    """Calls an importable function in a fresh Python process, with these environment variables."""
    changes = environment or {}
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)  # the child inherits them when it starts
    try:
        return children.call(function, *arguments)
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _call_and_measure_peak(function: Callable[..., object], *arguments: object) -> float:
    function(*arguments)
    return process_peak_mb()


def process_peak_mb() -> float:
    """Peak resident memory of this process so far."""
    status = pathlib.Path("/proc/self/status")
    if status.exists():  # Linux counts the parent's memory at the fork in ru_maxrss, but not in VmHWM
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / 1e6
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if platform.system() == "Darwin" else peak * 1024 / 1e6
