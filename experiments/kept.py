"""Rows of a study that are kept as they are measured: started again, a study measures only what is missing."""

import json
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

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
