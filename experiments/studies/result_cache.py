"""A cache of the measurements of a study, so that an interrupted study measures only what is missing.

The name of a file has a digest of the version of gdlx and of the settings, or the precision. So measurements with other
settings are neither used nor overwritten.
"""

import hashlib
import json
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

import gdlx
from gdlx.propnet.common import atomic_files, bounded_files
from gdlx.propnet.io import array_files

Row = dict[str, Any]


def cache_path(path: pathlib.Path, settings: Mapping[str, Any]) -> pathlib.Path:
    """The path of the file for measurements with these settings."""
    key = json.dumps([gdlx.__version__, settings], sort_keys=True)
    return path.with_name(f"{path.stem}-{hashlib.sha256(key.encode()).hexdigest()[:8]}{path.suffix}")


def precision_settings() -> dict[str, str]:
    """The precision of floats, as a setting."""
    return {"precision": str(jnp.result_type(float))}


def load_or_measure(path: pathlib.Path, settings: Mapping[str, Any], measure: Callable[[], Row]) -> Row:
    """Returns the cached row for these settings; if there is none, calls `measure` and caches its row."""
    row = load_row(path, settings)
    if row is None:
        row = measure()
        text = json.dumps({"settings": settings, "row": row}, indent=1)
        atomic_files.write_atomically(cache_path(path, settings), text.encode())
    return row


def load_row(path: pathlib.Path, settings: Mapping[str, Any]) -> Row | None:
    """Returns the cached row, or None if it is missing, cannot be read, or was measured with other settings."""
    try:
        entry = bounded_files.read_json(cache_path(path, settings))
    except (OSError, ValueError):
        return None
    if not isinstance(entry, dict) or entry.get("settings") != json.loads(json.dumps(settings)):
        return None
    row = entry.get("row")
    return row if isinstance(row, dict) else None


def load_arrays(path: pathlib.Path, names: Sequence[str]) -> list[Any] | None:
    """Returns the cached arrays of these names, or None if the file is missing or cannot be read."""
    try:
        arrays = array_files.read_arrays(cache_path(path, precision_settings()))
        return [arrays[name] for name in names]
    except (OSError, KeyError, bounded_files.FileError):
        return None


def write_arrays(path: pathlib.Path, named: Mapping[str, Any]) -> None:
    with atomic_files.open_atomically(cache_path(path, precision_settings())) as file:
        np.savez(file, **named)


def remove_arrays(path: pathlib.Path) -> None:
    cache_path(path, precision_settings()).unlink(missing_ok=True)
