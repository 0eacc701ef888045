"""Networks kept on disk, so that the second call of any command starts at once.

A network is found by what it was made of: the rules, and gdlx's own code. Files that cannot be read or written are
no error: the network is then made anew.
"""

import contextlib
import functools
import hashlib
import importlib.resources
import os
import pathlib
import sys
from collections.abc import Iterator
from importlib.resources import abc

from gdlx.propnet.circuits import compiler, propnet
from gdlx.propnet.common import limits
from gdlx.propnet.io import files
from gdlx.propnet.syntax import rulesheet

_DEFAULT_MB = 2_000
_NETWORKS = "networks"


def cache_dir() -> pathlib.Path:
    """Where networks are kept: GDLX_CACHE, or the user's cache folder."""
    if chosen := os.environ.get("GDLX_CACHE"):
        return pathlib.Path(chosen)
    if sys.platform == "win32":
        return pathlib.Path(os.environ.get("LOCALAPPDATA", pathlib.Path.home())) / "gdlx" / "cache"
    if sys.platform == "darwin":
        return pathlib.Path.home() / "Library" / "Caches" / "gdlx"
    chosen = os.environ.get("XDG_CACHE_HOME", "")  # which is to be ignored where it is relative, says its specification
    return pathlib.Path(chosen if os.path.isabs(chosen) else pathlib.Path.home() / ".cache") / "gdlx"


def limit_bytes() -> int:
    """GDLX_CACHE_MB, 0 to keep nothing."""
    try:
        return int(os.environ.get("GDLX_CACHE_MB", _DEFAULT_MB)) * 2**20
    except ValueError:
        return _DEFAULT_MB * 2**20


def load_or_compile(
    sheet: rulesheet.Rulesheet,
    within: limits.Limits = limits.Limits(),
    report: compiler.PassCallback | None = None,
    *,
    recompile: bool = False,
) -> propnet.PropNet:
    """The network of a sheet, from the cache or compiled and put there; with `recompile`, compiled in any case."""
    path = cache_dir() / _NETWORKS / f"{_key(sheet)}.npz"
    if not recompile:
        with contextlib.suppress(OSError, files.PropNetFileError):
            net = files.load_propnet(path)
            os.utime(path)  # what was used last is removed last
            return net
    net = compiler.compile_rulesheet(sheet, within, *([report] if report else []))
    with contextlib.suppress(OSError, files.PropNetFileError):  # a path may be no name that a file can hold
        if limit_bytes():
            path.parent.mkdir(parents=True, exist_ok=True)
            files.save_propnet(net, path)
            _shrink()
    return net


def _key(sheet: rulesheet.Rulesheet) -> str:
    digest = hashlib.sha256(_code_digest())
    digest.update(sheet.name.encode(errors="replace"))
    digest.update(b"\0%d\0" % sheet.language)
    digest.update(sheet.text().encode(errors="surrogatepass"))
    return digest.hexdigest()[:40]


@functools.cache
def _code_digest() -> bytes:
    """Of the code that makes networks: another version of it may make other ones."""
    return _digest_of(importlib.resources.files("gdlx.propnet"))


def _digest_of(folder: abc.Traversable) -> bytes:
    """Of all Python files below a folder: their relative paths, and what they hold."""
    digest = hashlib.sha256()
    for path, file in sorted(_python_files(folder), key=lambda entry: entry[0]):
        content = file.read_bytes()
        digest.update(b"%s\0%d\0" % (path.encode(), len(content)))
        digest.update(content)
    return digest.digest()


def _python_files(folder: abc.Traversable, prefix: str = "") -> Iterator[tuple[str, abc.Traversable]]:
    """Relative paths with `/` on every platform."""
    for entry in folder.iterdir():
        path = prefix + entry.name
        if entry.is_dir():
            yield from _python_files(entry, f"{path}/")
        elif entry.name.endswith(".py"):
            yield path, entry


def list_entries() -> list[tuple[pathlib.Path, int]]:
    """Files of the cache with their sizes, the longest unused first.

    Only what this module writes: GDLX_CACHE may name a folder that holds other things too.
    """
    found = []
    for path in (cache_dir() / _NETWORKS).glob("*"):
        with contextlib.suppress(OSError):
            status = path.stat()
            found.append((status.st_mtime, path, status.st_size))
    return [(path, size) for _, path, size in sorted(found)]


def _shrink() -> None:
    remove_oldest(list_entries())


def clear() -> int:
    """Remove everything; returns the bytes that were freed."""
    return remove(list_entries())


def remove_oldest(kept: list[tuple[pathlib.Path, int]]) -> None:
    """Of files with their sizes, the first ones, until the rest is within the limit."""
    excess = sum(size for _, size in kept) - limit_bytes()
    for entry in kept:
        if excess <= 0:
            break
        remove([entry])
        excess -= entry[1]


def remove(files_and_sizes: list[tuple[pathlib.Path, int]]) -> int:
    """Returns the bytes that were freed; files that cannot be removed stay."""
    freed = 0
    for path, size in files_and_sizes:
        with contextlib.suppress(OSError):
            path.unlink()
            freed += size
    return freed
