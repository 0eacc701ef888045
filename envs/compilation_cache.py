"""Compiled XLA programs kept on disk beside the networks, so that the second call of any command starts at once.

The command line switches this on. Who uses gdlx as a library owns jax's settings, and calls `enable` to have it too.
Files that cannot be read or written are no error: the program is then compiled.
"""

import contextlib
import hashlib
import os
import pathlib
import platform
import warnings
from typing import Any

from gdlx.propnet.io import cache

_PROGRAMS = "programs"


def enable() -> pathlib.Path | None:
    """Let jax keep programs in gdlx's cache from now on; returns their folder, or None where nothing is kept.

    Whoever has chosen a folder for jax's own cache keeps that one.
    """
    import jax

    config: Any = jax.config
    folder = cache.cache_dir() / _PROGRAMS / _cpu_fingerprint()
    if config.jax_compilation_cache_dir or not cache.limit_bytes():
        return None
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    if not os.access(folder, os.W_OK):
        return None
    cache.remove_oldest(entries())
    # jax tells of every file that it cannot read or write, and then compiles: nothing a user has to know.
    warnings.filterwarnings("ignore", message=".*persistent compilation cache")
    settings = {
        "jax_compilation_cache_dir": str(folder),
        "jax_persistent_cache_min_compile_time_secs": 0.0,
        "jax_persistent_cache_min_entry_size_bytes": -1,
    }
    for name, value in settings.items():
        config.update(name, value)
    return folder


def _cpu_fingerprint() -> str:
    """The kind of processor: code made for one may not run on another that shares the folder."""
    kind = [platform.machine(), platform.processor()]
    with contextlib.suppress(OSError):
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
        kind += sorted({line for line in lines if line.startswith(("flags", "Features", "model name"))})
    return hashlib.sha256("\n".join(kind).encode()).hexdigest()[:16]


def entries() -> list[tuple[pathlib.Path, int]]:
    """Files of programs with their sizes, the longest unused first."""
    found = []
    for path in (cache.cache_dir() / _PROGRAMS).rglob("*"):
        with contextlib.suppress(OSError):
            status = path.stat()
            if path.is_file():
                # jax does not mark what it reads, but most file systems do.
                found.append((max(status.st_atime, status.st_mtime), path, status.st_size))
    return [(path, size) for _, path, size in sorted(found)]


def clear() -> int:
    """Remove all programs; returns the bytes that were freed."""
    return cache.remove(entries())
