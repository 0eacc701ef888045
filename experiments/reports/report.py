"""Reports: what many runs have found, as one HTML file to read, print and pass on."""

import datetime
import pathlib
from collections.abc import Iterable
from typing import NamedTuple

from gdlx.experiments.reports import configurations, gather, page
from gdlx.propnet.common import errors
from gdlx.propnet.io import checked_fields


class EmptyReportError(errors.UserError, ValueError):
    """Folders without a single run that can be read."""


class ReportSummary(NamedTuple):
    path: pathlib.Path
    runs: int
    games: tuple[str, ...]
    skipped: tuple[gather.SkippedFolder, ...]
    size: int  # bytes


def write(folders: Iterable[pathlib.Path], output: pathlib.Path) -> ReportSummary:
    """A report on all runs in or beneath the folders; what cannot be read is left out, and named."""
    given = list(folders)
    found = gather.gather_runs(given)
    if not found.runs:
        whys = "; ".join(one.reason for one in found.skipped[:3])
        more = f"; and {len(found.skipped) - 3} more" if len(found.skipped) > 3 else ""
        raise EmptyReportError(
            f"there is no run to report on ({whys}{more}); name folders that `gdlx solve` wrote, or one above them"
        )
    # Names of folders may hold bytes that are no text.
    data = page.page(found, datetime.datetime.now(datetime.UTC)).encode("utf-8", "replace")
    checked_fields.write_atomically(output, data)
    games = dict.fromkeys(topic.game.spec for topic in configurations.group_comparable(found.runs))
    return ReportSummary(output, len(found.runs), tuple(games), found.skipped, len(data))
