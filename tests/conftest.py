"""What the tests share: the corpus of sheets by other authors, and how hypothesis runs."""

import ctypes
import gc
import os
import pathlib
import signal
import sys
from collections.abc import Iterator

import hypothesis
import pytest

from gdlx.envs import compilation_cache
from gdlx.tests.helpers import paths, xla_flags

# Tests never touch the user's cache, and share one that a second run finds again.
os.environ["GDLX_CACHE"] = str(paths.ROOT / ".pytest_cache" / "gdlx")

xla_flags.compile_fast()

# A shell starts background jobs with interrupts ignored, and so would be every process that a test interrupts.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

pytest_plugins = ["gdlx.tests.helpers.costs"]

# What one process has compiled another one reads; now, as it takes the cache that was chosen above.
compilation_cache.enable()

# The same examples in every run; GDLX_FUZZ=20 makes that 20 times as many, and new ones.
_TIMES = int(os.environ.get("GDLX_FUZZ", "1"))
hypothesis.settings.register_profile(
    "gdlx",
    deadline=None,
    derandomize=_TIMES == 1,
    max_examples=100 * _TIMES,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("gdlx")


@pytest.fixture(scope="session")
def corpus() -> pathlib.Path:
    """The folder of the corpus, which is no part of the project; own sheets cover the same without it."""
    if not paths.CORPUS.is_dir():
        pytest.skip(f"the corpus of sheets by other authors is not at {paths.CORPUS}")
    return paths.CORPUS


_MAPPED = 25_000  # parts of a process's memory
_RESIDENT = 2 << 30  # bytes


@pytest.fixture(autouse=True, scope="module")
def _few_programs() -> Iterator[None]:
    """Compiled programs are dropped where they add up: each takes memory, and parts of it, of which Linux allows
    65 530 before XLA crashes.
    """
    yield
    process = pathlib.Path("/proc/self")
    if "jax" not in sys.modules or not process.exists():
        return
    mapped = len((process / "maps").read_bytes().splitlines())
    resident = int((process / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    if mapped > _MAPPED or resident > _RESIDENT:
        sys.modules["jax"].clear_caches()
        gc.collect()
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)  # else glibc keeps what was freed


_LONG = ("test_readme", "test_self_play", "test_supervised", "test_contract", "test_training", "test_solve")


def pytest_collection_finish() -> None:
    """Tests make many objects that live long: fewer searches for garbage take a tenth less time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that take long come first: a worker that begins with one last would finish alone."""
    items.sort(key=lambda item: item.path.stem not in _LONG)
