"""Compiled XLA programs cached on disk beside the propnets, so that the second call of any command starts at once.

The command line enables this. Users of the library own jax's settings, and call `enable` to opt in. A file that cannot
be read or written is not an error: the program is then compiled.
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
    """Makes jax store compiled programs in gdlx's cache; returns their folder, or None if nothing is stored.

    A folder already configured for jax's cache is not changed.
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
    # jax warns about every file that it cannot read or write, and then compiles: users need not know.
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
    """Identifies the type of processor: code compiled for one may not run on another that shares the folder."""
    kind = [platform.machine(), platform.processor()]
    with contextlib.suppress(OSError):
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
        kind += sorted({line for line in lines if line.startswith(("flags", "Features", "model name"))})
    return hashlib.sha256("\n".join(kind).encode()).hexdigest()[:16]


def entries() -> list[tuple[pathlib.Path, int]]:
    """Files of programs with their sizes, the least recently used first."""
    files = []
    for path in (cache.cache_dir() / _PROGRAMS).rglob("*"):
        with contextlib.suppress(OSError):
            status = path.stat()
            if path.is_file():
                # jax does not record reads, but most file systems do.
                files.append((max(status.st_atime, status.st_mtime), path, status.st_size))
    return [(path, size) for _, path, size in sorted(files)]


def clear() -> int:
    """Removes all programs; returns the number of bytes freed."""
    return cache.remove(entries())
