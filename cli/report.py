"""The command `report`: an HTML page about many runs."""

import pathlib
from typing import Annotated

import typer

from gdlx.cli import console, shared_options
from gdlx.propnet.common.text import plurals


def report(
    context: typer.Context,
    results: Annotated[
        list[pathlib.Path], typer.Argument(metavar="RESULT", help="Result folders, or folders that contain them.")
    ],
    output: Annotated[pathlib.Path, typer.Option("-o", "--output", help="The .html file to write.")] = pathlib.Path(
        "report.html"
    ),
) -> None:
    """Write a self-contained HTML page about many results: convergence, policies, rules, matches and trainings.

    Folders are searched recursively. Runs that cannot be read are skipped, with a remark.
    """
    options = console.options(context)
    shared_options.require_writable(output, (".html", ".htm"))

    from gdlx.experiments.reports import report as reporting

    with console.progress(options, "writing the report"):
        written = reporting.write(results, output)
    for run in written.skipped:
        console.remark(options, f"skipped: {run.reason}")
    if options.json:
        console.emit(
            {
                "report": str(output),
                "runs": written.runs,
                "contests": written.contests,
                "trainings": written.trainings,
                "games": list(written.games),
                "left_out": [{"folder": str(run.folder), "why": run.reason} for run in written.skipped],
                "bytes": written.size,
            }
        )
    else:
        counts = {"run": written.runs, "contest": written.contests, "training": written.trainings}
        contents = ", ".join(plurals.count(count, what) for what, count in counts.items() if count)
        games = plurals.count(len(written.games), "game")
        console.say(f"{contents} of {games} in {output}, {written.size / 1e6:.2f} MB")
