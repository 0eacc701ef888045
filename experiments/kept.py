"""Rows of a study that are kept as they are measured: started again, a study measures only what is missing."""

import json
import pathlib
import zipfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gdlx.propnet import untrusted

Row = dict[str, Any]


def row(path: pathlib.Path, settings: Mapping[str, Any], measure: Callable[[], Row]) -> Row:
    """The row in a file if it was measured with the same settings; else it is measured and written there."""
    found = find(path, settings)
    if found is None:
        found = measure()
        untrusted.write_whole(path, json.dumps({"settings": settings, "row": found}, indent=1).encode())
    return found


def find(path: pathlib.Path, settings: Mapping[str, Any]) -> Row | None:
    """The row in a file, or None: if there is none, or it cannot be read, or was measured with other settings."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(kept, dict) or kept.get("settings") != json.loads(json.dumps(settings)):
        return None
    found = kept.get("row")
    return found if isinstance(found, dict) else None


def arrays(path: pathlib.Path, names: Sequence[str]) -> list[Any] | None:
    """The arrays of these names in a file, or None if it is not there or cannot be read: then they are made again."""
    try:
        with np.load(path, allow_pickle=False) as kept:
            return [kept[name] for name in names]
    except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile):
        return None


def write_arrays(path: pathlib.Path, named: Mapping[str, Any]) -> None:
    with untrusted.whole_file(path) as file:
        np.savez(file, **named)
