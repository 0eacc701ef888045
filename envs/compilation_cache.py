"""Compiled XLA programs cached on disk beside the propnets, so that the second call of any command starts at once.

The command line enables this. Users of the library own jax's settings, and call `enable` to opt in. A file that cannot
be read or written is not an error: the program is then compiled. jax trusts what it finds in its cache; here each file
holds a digest of its key and content, so that a file that was damaged, or copied from another, is not run.
"""

import contextlib
import hashlib
import importlib
import os
import pathlib
import platform
import warnings
from typing import Any

from gdlx.envs import devices
from gdlx.propnet.common import bounded_files
from gdlx.propnet.io import cache

_PROGRAMS = "programs"
_MAX_PROGRAM_BYTES = 2**31


def enable() -> pathlib.Path | None:
    """Makes jax store compiled programs in gdlx's cache; returns their folder, or None if nothing is stored.

    A folder already configured for jax's cache is not changed.

    Raises:
      AddressSpaceError: there is too little memory for jax.
    """
    devices.require_address_space()
    import jax

    config: Any = jax.config
    if config.jax_compilation_cache_dir or not cache.limit_bytes():
        return None
    folder = cache.private_folder(_PROGRAMS, _cpu_fingerprint())
    if folder is None or not os.access(folder, os.W_OK) or not _install(folder):
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


class CheckedPrograms:
    """Compiled programs in a folder, with the interface of jax's caches."""

    def __init__(self, folder: pathlib.Path) -> None:
        self._path = folder

    def get(self, key: str) -> bytes | None:
        """Returns the program of a key; None if there is none, or its file is damaged or belongs to another key."""
        try:
            return cache.read_checked(self._file(key), key, _MAX_PROGRAM_BYTES)
        except (OSError, bounded_files.FileError):
            return None

    def put(self, key: str, value: bytes) -> None:
        with contextlib.suppress(OSError):
            cache.write_checked(self._file(key), key, [value])

    def _file(self, key: str) -> pathlib.Path:
        return self._path / f"{key}-cache"


def _install(folder: pathlib.Path) -> bool:
    """Makes jax use `CheckedPrograms` for a folder; False if this version of jax has no place for it."""
    try:
        internals: Any = importlib.import_module("jax._src.compilation_cache")
        jax_file_cache = internals.get_file_cache
    except (ImportError, AttributeError):
        return False

    def get_file_cache(path: str) -> Any:
        return (CheckedPrograms(folder), path) if path == str(folder) else jax_file_cache(path)

    internals.get_file_cache = get_file_cache
    return True


def _cpu_fingerprint() -> str:
    """Identifies the type of processor: code compiled for one may not run on another that shares the folder."""
    kind = [platform.machine(), platform.processor()]
    with contextlib.suppress(OSError):
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
        kind += sorted({line for line in lines if line.startswith(("flags", "Features", "model name"))})
    return hashlib.sha256("\n".join(kind).encode()).hexdigest()[:16]


def entries() -> list[tuple[pathlib.Path, int]]:
    """Files of programs with their sizes, the least recently used first."""
    return cache.entries_of(_PROGRAMS)


def clear() -> int:
    """Removes all programs; returns the number of bytes freed."""
    return cache.remove(entries())
