"""Reports: what many runs have found, as one HTML file to read, print and pass on."""

import datetime
import pathlib
from collections.abc import Iterable
from typing import NamedTuple

from gdlx.experiments.reports import configurations, gather, page
from gdlx.propnet.common import errors
from gdlx.propnet.io import checked_fields


class NothingToReport(errors.UserError, ValueError):
    """Folders without a single run that can be read."""


class Report(NamedTuple):
    path: pathlib.Path
    runs: int
    games: tuple[str, ...]
    left_out: tuple[gather.LeftOut, ...]
    size: int  # bytes


def write(folders: Iterable[pathlib.Path], output: pathlib.Path) -> Report:
    """A report on all runs in or beneath the folders; what cannot be read is left out, and named."""
    given = list(folders)
    found = gather.gather(given)
    if not found.runs:
        whys = "; ".join(one.why for one in found.left_out[:3])
        more = f"; and {len(found.left_out) - 3} more" if len(found.left_out) > 3 else ""
        raise NothingToReport(
            f"there is no run to report on ({whys}{more}); name folders that `gdlx solve` wrote, or one above them"
        )
    # Names of folders may hold bytes that are no text.
    data = page.page(found, datetime.datetime.now(datetime.UTC)).encode("utf-8", "replace")
    checked_fields.write_whole(output, data)
    games = dict.fromkeys(topic.game.spec for topic in configurations.by_topic(found.runs))
    return Report(output, len(found.runs), tuple(games), found.left_out, len(data))
