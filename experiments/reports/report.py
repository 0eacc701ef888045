"""Reports: the results of many runs, matches and trainings as one self-contained HTML file."""

import datetime
import pathlib
from collections.abc import Iterable
from typing import NamedTuple

from gdlx.experiments.reports import gather, page
from gdlx.propnet.common import atomic_files, errors


class EmptyReportError(errors.UserError, ValueError):
    """The folders have no run that can be read."""


class ReportSummary(NamedTuple):
    """What `write` wrote."""

    path: pathlib.Path
    runs: int
    contests: int  # matches and tournaments
    trainings: int
    games: tuple[str, ...]
    skipped: tuple[gather.SkippedFolder, ...]  # folders that cannot be read, with the reasons
    size: int  # bytes


def write(folders: Iterable[pathlib.Path], output: pathlib.Path) -> ReportSummary:
    """Writes an HTML report on all runs in the folders and their subfolders.

    Args:
      folders: Folders of solutions, sweeps, trainings, matches and tournaments, or folders above them.
      output: The path of the HTML file.

    Returns:
      The numbers of results and bytes, the games, and the folders that were skipped because they cannot be read.

    Raises:
      EmptyReportError: The folders have no run that can be read.

    >>> import tempfile
    >>> from gdlx import experiments
    >>> from gdlx.experiments.sweeps import config
    >>> cells = config.expand_cells({"games": ["rps"], "iterations": 3, "algorithms": [{"name": "cfr+"}]})
    >>> with tempfile.TemporaryDirectory() as name:
    ...     folder = pathlib.Path(name)
    ...     _ = experiments.run_sweep(experiments.Sweep("small", cells), folder)
    ...     summary = experiments.write_report([folder], folder / "report.html")
    >>> summary.runs, summary.games
    (1, ('rps',))
    """
    gathered = gather.gather_runs(list(folders))
    if not gathered.total:
        reasons = "; ".join(skipped.reason for skipped in gathered.skipped[:3])
        more = f"; and {len(gathered.skipped) - 3} more" if len(gathered.skipped) > 3 else ""
        raise EmptyReportError(
            f"there is nothing to report on ({reasons}{more}); pass folders that `gdlx solve` wrote, or one above them"
        )
    # Names of folders may hold bytes that are not valid text.
    data = page.page(gathered, datetime.datetime.now(datetime.UTC)).encode("utf-8", "replace")
    atomic_files.write_atomically(output, data)
    games = dict.fromkeys(run.config.game.spec for run in gathered.runs)
    games |= dict.fromkeys(record.game.spec for record in gathered.others)
    return ReportSummary(
        output,
        len(gathered.runs),
        len(gathered.contests),
        len(gathered.trainings),
        tuple(games),
        gathered.skipped,
        len(data),
    )
