"""Reads files that may be damaged, hostile or no files at all: regular files only, within limits on size and nesting.

Everything that gdlx reads comes through here: rulesheets, configurations, tables, and the arrays of
`gdlx.propnet.io.array_files`. A missing file is a FileNotFoundError; every other problem is a FileError.
"""

import csv
import errno
import io
import json
import os
import stat
from typing import Any, NoReturn

from gdlx.propnet.common import errors
from gdlx.propnet.common.text import printable

Path = str | os.PathLike[str]

MAX_BYTES = 2**28  # of a file, and of what a compressed one unpacks to
MAX_DEPTH = 50  # of nested lists and objects in JSON


class FileError(errors.UserError, ValueError):
    """A file that cannot be used; the message names the file, the problem and the fix.

    >>> str(FileError("it is empty", "write it again", "game.json"))
    'game.json: it is empty; write it again'
    """

    def __init__(self, problem: str, hint: str, file: str | None = None) -> None:
        self.problem, self.hint, self.file = problem, hint, file
        super().__init__(f"{file + ': ' if file else ''}{problem}; {hint}")


def open_regular(path: Path) -> io.BufferedReader:
    """Opens a regular file for reading. A pipe or a device, which may never end, is refused, also behind a link."""
    # Without O_NONBLOCK, opening a pipe waits until somebody writes to it.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(path, flags)
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.ENODEV, errno.EOPNOTSUPP):  # a socket, or a device that is not there
            raise _not_regular(path) from None
        raise
    except ValueError as error:  # a path with a NUL
        raise FileError(f"it is not a path ({error})", "name a file", printable.printable(os.fsdecode(path))) from None
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
        raise _not_regular(path)
    return os.fdopen(descriptor, "rb")


def _not_regular(path: Path) -> FileError:
    return FileError("it is a pipe, a socket or a device", "copy it to a regular file first", os.fspath(path))


def read_bytes(path: Path, max_bytes: int = MAX_BYTES) -> bytes:
    """Reads a regular file of at most `max_bytes` bytes."""
    with open_regular(path) as file:
        data = file.read(max_bytes + 1) if os.fstat(file.fileno()).st_size <= max_bytes else None
    if data is None or len(data) > max_bytes:
        raise too_large(max_bytes, path)
    return data


def too_large(max_bytes: int, path: Path | None = None) -> FileError:
    name = None if path is None else os.fspath(path)
    return FileError(f"it holds more than {max_bytes:,} bytes", "raise max_bytes if you trust it", name)


def read_text(path: Path, max_bytes: int = MAX_BYTES, encoding: str = "utf-8") -> str:
    """Reads a regular file of at most `max_bytes` bytes as text."""
    try:
        return read_bytes(path, max_bytes).decode(encoding)
    except UnicodeDecodeError as error:
        problem = f"it is not UTF-8 text ({error.reason} at byte {error.start})"
        raise FileError(problem, "save it as UTF-8", os.fspath(path)) from None


def parse_json(text: str | bytes) -> Any:
    """Parses JSON; raises ValueError if it is malformed, nested too deeply, or has a number that is not finite.

    >>> parse_json("[" * 99 + "]" * 99)
    Traceback (most recent call last):
    ValueError: it is nested more than 50 deep
    """
    too_deep = ValueError(f"it is nested more than {MAX_DEPTH} deep")
    try:
        parsed = json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise too_deep from None
    level = [parsed]
    for _ in range(MAX_DEPTH):
        level = [item for value in level for item in _items(value)]
        if not level:
            return parsed
    raise too_deep


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number in JSON")


def _items(value: object) -> list[object]:
    """Returns the parts of a value that may have parts themselves."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [part for part in parts if isinstance(part, (dict, list))]


def read_json(path: Path, max_bytes: int = MAX_BYTES) -> Any:
    """Reads a JSON file."""
    text = read_text(path, max_bytes)
    try:
        return parse_json(text)
    except ValueError as error:
        problem = f"it is not JSON ({printable.printable(str(error))})"
        raise FileError(problem, "restore it from a copy, or write it again", os.fspath(path)) from None


def read_csv(path: Path, max_bytes: int = MAX_BYTES) -> list[list[str]]:
    """Reads the rows of a CSV file, the header included."""
    return parse_csv(read_text(path, max_bytes), path)


def parse_csv(text: str, path: Path) -> list[list[str]]:
    """Parses the text of a CSV file; errors name the path."""
    try:
        return list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error as error:
        problem = f"it is not CSV ({error})"
        raise FileError(problem, "restore it from a copy, or write it again", os.fspath(path)) from None
