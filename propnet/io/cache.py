"""A cache of propnets on disk, so that the next run with the same game starts at once.

The key of a propnet is a digest of its rules and of the code of `gdlx.propnet`; it is also inside the file, so that a
file under another name is not used. Files that cannot be read or written are not an error: the propnet is then compiled
again. Folders are readable by their owner only, and what others own or may write to is ignored: what is cached decides
results, and compiled programs are machine code.
"""

import contextlib
import errno
import functools
import hashlib
import importlib.resources
import mmap
import os
import pathlib
import sys
import warnings
from collections.abc import Iterable, Iterator
from importlib.resources import abc

from gdlx.propnet.circuits import compiler, propnet
from gdlx.propnet.common import atomic_files, bounded_files, errors, limits
from gdlx.propnet.io import files
from gdlx.propnet.syntax import rulesheet

_DEFAULT_MB = 2_000
_NETWORKS = "networks"
_DIGEST_BYTES = 64  # of BLAKE2b: what follows it is aligned as arrays are in memory
Part = bytes | memoryview  # of a file


def cache_dir() -> pathlib.Path:
    """Returns the cache folder: GDLX_CACHE, or `gdlx` in the user's cache folder."""
    if chosen := os.environ.get("GDLX_CACHE"):
        return pathlib.Path(chosen)
    if sys.platform == "win32":
        return pathlib.Path(os.environ.get("LOCALAPPDATA", pathlib.Path.home())) / "gdlx" / "cache"
    if sys.platform == "darwin":
        return pathlib.Path.home() / "Library" / "Caches" / "gdlx"
    chosen = os.environ.get("XDG_CACHE_HOME", "")  # its specification says to ignore relative paths
    return pathlib.Path(chosen if os.path.isabs(chosen) else pathlib.Path.home() / ".cache") / "gdlx"


def limit_bytes() -> int:
    """Returns the size limit of the cache, set by GDLX_CACHE_MB; 0 disables the cache."""
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
    """Loads the propnet of a sheet from the cache, or compiles and caches it; `recompile` skips the lookup."""
    key, folder = _key(sheet), private_folder(_NETWORKS)
    path = None if folder is None else folder / f"{key}.npz"
    if path is not None and not recompile:
        with contextlib.suppress(OSError, bounded_files.FileError):
            propnet = files.parse_cached(read_entry(path), key)
            os.utime(path)  # the least recently used files are removed first
            return propnet
    propnet = compiler.compile_rulesheet(sheet, within, *([report] if report else []))
    if path is not None and limit_bytes():
        # The name of a sheet may not be valid in a propnet file.
        with contextlib.suppress(OSError, files.PropNetFileError):
            files.save_cached(propnet, path, key)
            _shrink()
    return propnet


def private_folder(*names: str) -> pathlib.Path | None:
    """Returns a folder of the cache, made for its owner alone; None if it cannot be used, with a remark if unsafe."""
    folder = cache_dir()
    try:
        for name in ("", *names):
            folder /= name
            if limit_bytes():
                folder.mkdir(mode=0o700, parents=not name, exist_ok=True)
            if not _is_safe(folder.stat(), folder):
                return None
    except OSError:
        return None
    return folder


def read_entry(path: pathlib.Path, max_bytes: int = bounded_files.MAX_BYTES) -> bytes:
    """Reads a file of the cache; raises OSError or FileError if it cannot be used, with a remark if unsafe."""
    with bounded_files.open_regular(path) as file:
        status = os.fstat(file.fileno())
        _require_safe(status, path)
        if status.st_size > max_bytes:
            raise bounded_files.too_large(max_bytes, path)
        return file.read(max_bytes)


def write_checked(path: pathlib.Path, key: str, parts: Iterable[Part]) -> None:
    """Writes a file that `read_checked` and `map_checked` return only under the same key, and only if it is intact."""
    digest = _digest_of_key(key)
    with atomic_files.open_atomically(path) as file:
        file.write(bytes(_DIGEST_BYTES))
        for part in parts:
            file.write(part)
            digest.update(part)
        file.seek(0)
        file.write(digest.digest())


def read_checked(path: pathlib.Path, key: str, max_bytes: int = bounded_files.MAX_BYTES) -> bytes | None:
    """Reads a file of `write_checked`; None if it is damaged, or was written under another key."""
    entry = read_entry(path, max_bytes)
    digest = _digest_of_key(key)
    digest.update(memoryview(entry)[_DIGEST_BYTES:])
    return entry[_DIGEST_BYTES:] if entry[:_DIGEST_BYTES] == digest.digest() else None


def map_checked(path: pathlib.Path, key: str) -> memoryview | None:
    """The same for a large file, whose bytes are mapped into memory and not copied; it is as large as it may be."""
    with bounded_files.open_regular(path) as file:
        _require_safe(os.fstat(file.fileno()), path)
        if os.fstat(file.fileno()).st_size <= _DIGEST_BYTES:
            return None
        mapped = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    digest = _digest_of_key(key)
    digest.update(mapped[_DIGEST_BYTES:])
    return mapped[_DIGEST_BYTES:] if mapped[:_DIGEST_BYTES] == digest.digest() else None


def _digest_of_key(key: str) -> "hashlib.blake2b":
    return hashlib.blake2b(b"%s\0" % key.encode())


def _require_safe(status: os.stat_result, path: pathlib.Path) -> None:
    if not _is_safe(status, path):
        raise PermissionError(errno.EPERM, "not safe to use", str(path))


def _is_safe(status: os.stat_result, path: pathlib.Path) -> bool:
    """Whether only the user can have written a file or folder of the cache; otherwise warns that it is ignored."""
    if not hasattr(os, "geteuid"):
        return True
    if status.st_uid != os.geteuid():
        problem = "it belongs to another user; remove it, or set GDLX_CACHE to a folder of your own"
    elif status.st_mode & 0o022:
        problem = f"other users may write to it; run chmod go-w '{path}' if you trust its contents"
    else:
        return True
    warnings.warn(f"the cache {path} is ignored: {problem}", errors.Remark, stacklevel=2)
    return False


def _key(sheet: rulesheet.Rulesheet) -> str:
    digest = hashlib.sha256(_code_digest())
    digest.update(sheet.name.encode(errors="replace"))
    digest.update(b"\0%d\0" % sheet.language)
    digest.update(sheet.text().encode(errors="surrogatepass"))
    return digest.hexdigest()[:40]


@functools.cache
def _code_digest() -> bytes:
    """Digest of the code that compiles propnets: another version may compile to a different propnet."""
    return digest_of_code(importlib.resources.files("gdlx.propnet"))


def digest_of_code(folder: abc.Traversable) -> bytes:
    """Digest of the relative paths and contents of all Python files in a folder and its subfolders."""
    digest = hashlib.sha256()
    for path, file in sorted(_python_files(folder), key=lambda entry: entry[0]):
        content = file.read_bytes()
        digest.update(b"%s\0%d\0" % (path.encode(), len(content)))
        digest.update(content)
    return digest.digest()


def _python_files(folder: abc.Traversable, prefix: str = "") -> Iterator[tuple[str, abc.Traversable]]:
    """Yields Python files with their relative paths, with `/` on every platform."""
    for entry in folder.iterdir():
        path = prefix + entry.name
        if entry.is_dir():
            yield from _python_files(entry, f"{path}/")
        elif entry.name.endswith(".py"):
            yield path, entry


def list_entries() -> list[tuple[pathlib.Path, int]]:
    """Returns the files of propnets with their sizes, least recently used first."""
    return entries_of(_NETWORKS)


def entries_of(folder: str) -> list[tuple[pathlib.Path, int]]:
    """Returns the files in a folder of the cache with their sizes, least recently used first.

    Only what gdlx writes: the folder of GDLX_CACHE may have other files too.
    """
    entries = []
    for path in (cache_dir() / folder).rglob("*"):
        with contextlib.suppress(OSError):
            status = path.stat()
            if path.is_file():
                # jax does not record reads of its programs, but most file systems do.
                entries.append((max(status.st_atime, status.st_mtime), path, status.st_size))
    return [(path, size) for _, path, size in sorted(entries)]


def _shrink() -> None:
    remove_oldest(list_entries())


def clear() -> int:
    """Removes all files of the cache; returns the number of bytes freed."""
    return remove(list_entries())


def remove_oldest(kept: list[tuple[pathlib.Path, int]]) -> None:
    """Removes files, the first ones of the list, until the rest is within the size limit."""
    excess = sum(size for _, size in kept) - limit_bytes()
    for entry in kept:
        if excess <= 0:
            break
        remove([entry])
        excess -= entry[1]


def remove(files_and_sizes: list[tuple[pathlib.Path, int]]) -> int:
    """Removes files as far as possible; returns the number of bytes freed."""
    freed = 0
    for path, size in files_and_sizes:
        with contextlib.suppress(OSError):
            path.unlink()
            freed += size
    return freed
