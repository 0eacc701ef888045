"""Reads untrusted files with bounded size and checked fields."""

import contextlib
import json
import os
from collections.abc import Iterator, Sequence
from typing import TypeVar

import numpy as np

from gdlx.propnet.circuits import propnet
from gdlx.propnet.common import bounded_files
from gdlx.propnet.syntax import diagnostics

Path = bounded_files.Path
T = TypeVar("T")

REWRITE_HINT = "write it again, e.g. with `gdlx compile GAME -o FILE`"
MAX_BYTES = bounded_files.MAX_BYTES


class PropNetFileError(bounded_files.FileError):
    """Raised for a file that is not a valid propnet; the message names the file, the problem and the fix."""

    def __init__(self, problem: str, hint: str = REWRITE_HINT, file: str | None = None) -> None:
        super().__init__(problem, hint, file)


@contextlib.contextmanager
def name_file_in_errors(path: Path) -> Iterator[None]:
    """Adds the name of the file to errors raised inside."""
    try:
        yield
    except bounded_files.FileError as error:
        raise PropNetFileError(error.problem, error.hint, os.fspath(path)) from None


def parse_json(data: bytes) -> object:
    try:
        return bounded_files.parse_json(data.decode("utf-8"))
    except ValueError as error:
        problem = f"it is not JSON in UTF-8 ({diagnostics.shorten(error)})"
        raise PropNetFileError(problem, f"if it is a .npz file, name it so; otherwise {REWRITE_HINT}") from None


class Fields:
    """The fields of a JSON object, each checked when it is read.

    >>> Fields({"size": 3}, "the box").value("size", int)
    3
    """

    def __init__(self, data: object, where: str) -> None:
        if not isinstance(data, dict):
            raise PropNetFileError(f"{where} is not a JSON object")
        self._data, self.where = data, where

    def __contains__(self, key: str) -> bool:
        return key in self._data

    def value(self, key: str, kind: type[T]) -> T:
        if key not in self._data:
            raise PropNetFileError(f"{self.where} has no field {key!r}")
        return require_type(self._data[key], kind, f"{key!r} of {self.where}")

    def values(self, key: str, kind: type[T]) -> list[T]:
        what = f"an item of {key!r} of {self.where}"
        return [require_type(item, kind, what) for item in self.value(key, list)]

    def literals(self, key: str) -> propnet.Ints:
        return int32(self.values(key, int), f"{key!r} of {self.where}")

    def objects(self, key: str) -> list["Fields"]:
        return [Fields(item, f"item {n} of {key!r}") for n, item in enumerate(self.value(key, list))]


_KINDS = {int: "an integer", str: "a string", bool: "true or false", list: "a list"}


def require_type(value: object, kind: type[T], what: str) -> T:
    if type(value) is not kind:  # isinstance would take true for an integer
        raise PropNetFileError(f"{what} is {_shown(value)}, not {_KINDS[kind]}")
    return value


def _shown(value: object) -> str:
    """Formats the start of a value, which may be huge or deeply nested, or a number with too many digits to print."""
    if isinstance(value, (list, dict)):
        return "a list" if isinstance(value, list) else "an object"
    if isinstance(value, int) and not -(2**63) < value < 2**63:
        return "a huge number"
    return diagnostics.shorten(json.dumps(value), 30)


def int32(numbers: Sequence[int], what: str) -> propnet.Ints:
    try:
        return np.array(numbers, np.int32)
    except OverflowError:
        raise PropNetFileError(f"{what} has a number outside of 32 bits") from None
