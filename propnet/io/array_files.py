"""Reads .npz files with bounded memory: sizes, types and shapes are checked before anything is allocated."""

import math
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Collection
from typing import Any, BinaryIO

import numpy as np

from gdlx.propnet.common import bounded_files
from gdlx.propnet.common.text import printable

MAX_BYTES = 2**34  # of a file of arrays
_MAX_MEMBERS = 10_000
_LONGEST_EXTRA = 32  # bytes: the sizes of a large member are there
HINT = "restore it from a copy, or write it again"
_DTYPES = ("|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8")
_MAGIC = b"\x93NUMPY\x01\x00"
_NPY_HEADER = re.compile(
    rb"\{'descr': '([^']{2,4})', 'fortran_order': (True|False), 'shape': \(((?:\d{1,18}, ?)*\d{0,18})\),? ?\} *\n"
)
_BROKEN_ZIP = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    ValueError,
    KeyError,
    IndexError,
    OverflowError,
    RuntimeError,  # an encrypted member; NotImplementedError is one too
)


def read_arrays(path: bounded_files.Path, *, max_bytes: int = MAX_BYTES) -> dict[str, Any]:
    """Reads all arrays of an .npz file, by name; raises FileError if it is damaged or too large."""
    with bounded_files.open_regular(path) as file:
        try:
            members = read_members(file, max_bytes)
            return {name: parse_array(data, name) for name, data in members.items()}
        except bounded_files.FileError as error:
            raise bounded_files.FileError(error.problem, error.hint, os.fspath(path)) from None
        except MemoryError:
            problem = f"there is not enough memory for its {os.fstat(file.fileno()).st_size:,} bytes"
            raise bounded_files.FileError(problem, "free some, or use a larger machine", os.fspath(path)) from None


def is_intact(path: bounded_files.Path) -> bool:
    """Whether a file is an .npz file whose checksums are right."""
    try:
        read_arrays(path)
    except (OSError, bounded_files.FileError):
        return False
    return True


def read_members(file: BinaryIO, max_bytes: int, names: Collection[str] | None = None) -> dict[str, bytearray]:
    """Reads the members of an .npz file, of exactly these names if given; their checksums are right."""
    try:
        file.seek(0, os.SEEK_END)
        size = file.tell()
        if size > max_bytes:
            raise bounded_files.too_large(max_bytes)
        with zipfile.ZipFile(file) as archive:
            entries = archive.infolist()
            _check_entries(entries, size, max_bytes, names)
            return {entry.filename.removesuffix(".npy"): _read_member(archive, entry) for entry in entries}
    except bounded_files.FileError:
        raise
    except _BROKEN_ZIP as error:
        problem = f"it is not a complete .npz file ({printable.printable(str(error))[:100]})"
        raise bounded_files.FileError(problem, HINT) from None


def _read_member(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytearray:
    """Reads a member; never beyond its declared size, so the sizes that were checked are the real ones."""
    data = bytearray(entry.file_size)
    done = 0
    with archive.open(entry) as member:
        while part := member.read(2**24):
            data[done : done + len(part)] = part
            done += len(part)
    if done != entry.file_size:
        raise EOFError("a member is cut off")
    return data


def _check_entries(entries: list[zipfile.ZipInfo], size: int, max_bytes: int, names: Collection[str] | None) -> None:
    filenames = sorted(entry.filename for entry in entries)
    if len(filenames) > _MAX_MEMBERS or len(set(filenames)) < len(filenames):
        raise bounded_files.FileError("it has too many arrays, or two of the same name", HINT)
    if names is not None and filenames != sorted(f"{name}.npy" for name in names):
        raise bounded_files.FileError("it does not have the arrays of a propnet, or has others too", HINT)
    for entry in entries:
        if entry.flag_bits & 1 or entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise bounded_files.FileError("it is encrypted, or compressed in another way than by deflate", HINT)
        if entry.comment or len(entry.extra) > _LONGEST_EXTRA:  # a wrong length hides the entries that follow
            raise bounded_files.FileError("its directory is damaged", HINT)
        if entry.compress_type == zipfile.ZIP_STORED and entry.compress_size != entry.file_size:
            raise bounded_files.FileError("a member does not have the size that it declares", HINT)
    if sum(entry.compress_size for entry in entries) > size:
        raise bounded_files.FileError("its members are larger than the file", HINT)
    # What is stored is as large as the file, which was checked; what is compressed may unpack to a thousand times that.
    limit = min(max_bytes, bounded_files.MAX_BYTES)
    if sum(entry.file_size for entry in entries if entry.compress_type != zipfile.ZIP_STORED) > limit:
        raise bounded_files.too_large(limit)


def parse_array(data: bytearray | memoryview, name: str) -> Any:
    """Parses an array without numpy.load, which allocates any size that a header declares."""
    shown = printable.printable(name)[:40]
    start = 10 + int.from_bytes(data[8:10], "little")
    header = _NPY_HEADER.fullmatch(bytes(data[10:start]))
    if bytes(data[:8]) != _MAGIC or header is None:
        raise bounded_files.FileError(f"array {shown!r} is not a plain array (.npy version 1.0)", HINT)
    descr = header[1].decode("latin-1")
    if descr not in _DTYPES:
        raise bounded_files.FileError(f"array {shown!r} has elements {printable.printable(descr)!r}", HINT)
    dtype, shape = np.dtype(descr), tuple(int(length) for length in header[3].split(b",") if length.strip())
    # numpy counts the elements of an empty array without its zero, too
    if len(shape) > 32 or math.prod(map(max, shape, [1] * len(shape))) >= 2**62:
        raise bounded_files.FileError(f"array {shown!r} has an impossible shape", HINT)
    if len(data) - start != math.prod(shape) * dtype.itemsize:
        raise bounded_files.FileError(f"array {shown!r} does not have the size that it declares", HINT)
    raw = memoryview(data)[start:]
    if dtype == np.bool_ and np.frombuffer(raw, np.uint8).max(initial=0) > 1:
        raise bounded_files.FileError(f"array {shown!r} has a value that is neither true nor false", HINT)
    flat = np.frombuffer(raw, dtype)
    return flat.reshape(shape, order="F" if header[2] == b"True" else "C").astype(dtype.newbyteorder("="), copy=False)
