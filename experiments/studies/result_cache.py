"""What a study has measured, kept as it comes: started again, a study measures only what is missing.

The name of a file has a digest of what was measured with: the version of gdlx and the settings, or the precision. So
measurements of another kind neither stand in for these nor are lost to them.
"""

import hashlib
import json
import pathlib
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

import gdlx
from gdlx.propnet.io import checked_fields

Row = dict[str, Any]


def cache_path(path: pathlib.Path, settings: Mapping[str, Any]) -> pathlib.Path:
    """Where what was measured with such settings is."""
    made = json.dumps([gdlx.__version__, settings], sort_keys=True)
    return path.with_name(f"{path.stem}-{hashlib.sha256(made.encode()).hexdigest()[:8]}{path.suffix}")


def precision_settings() -> dict[str, str]:
    """As a setting."""
    return {"precision": str(jnp.result_type(float))}


def load_or_measure(path: pathlib.Path, settings: Mapping[str, Any], measure: Callable[[], Row]) -> Row:
    """The row in a file if it was measured with the same settings; else it is measured and written there."""
    found = load_row(path, settings)
    if found is None:
        found = measure()
        kept = json.dumps({"settings": settings, "row": found}, indent=1)
        checked_fields.write_atomically(cache_path(path, settings), kept.encode())
    return found


def load_row(path: pathlib.Path, settings: Mapping[str, Any]) -> Row | None:
    """The row in a file, or None: if there is none, or it cannot be read, or was measured with other settings."""
    try:
        kept = json.loads(cache_path(path, settings).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(kept, dict) or kept.get("settings") != json.loads(json.dumps(settings)):
        return None
    found = kept.get("row")
    return found if isinstance(found, dict) else None


def load_arrays(path: pathlib.Path, names: Sequence[str]) -> list[Any] | None:
    """The arrays of these names in a file, or None if it is not there or cannot be read: then they are made again."""
    try:
        with np.load(cache_path(path, precision_settings()), allow_pickle=False) as kept:
            return [kept[name] for name in names]
    except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile, zlib.error):
        return None


def write_arrays(path: pathlib.Path, named: Mapping[str, Any]) -> None:
    with checked_fields.open_atomically(cache_path(path, precision_settings())) as file:
        np.savez(file, **named)


def remove_arrays(path: pathlib.Path) -> None:
    cache_path(path, precision_settings()).unlink(missing_ok=True)
