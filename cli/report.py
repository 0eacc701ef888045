"""The command `report`."""

import pathlib
from typing import Annotated

import typer

from gdlx.cli import console, shared_options


def report(
    context: typer.Context,
    results: Annotated[
        list[pathlib.Path], typer.Argument(metavar="RESULT", help="Folders of results, or folders above them.")
    ],
    output: Annotated[pathlib.Path, typer.Option("-o", "--output", help="The file to write, .html.")] = pathlib.Path(
        "report.html"
    ),
) -> None:
    """One HTML file about many runs: convergence, policies, games and settings. It needs no network.

    Runs are found beneath the folders; those that cannot be read are left out, and named.
    """
    given = console.options(context)
    shared_options.require_writable(output, (".html", ".htm"))

    from gdlx.experiments.reports import report as reporting

    with console.progress(given, "reporting"):
        written = reporting.write(results, output)
    for one in written.skipped:
        console.remark(given, f"left out: {one.reason}")
    if given.json:
        console.emit(
            {
                "report": str(output),
                "runs": written.runs,
                "games": list(written.games),
                "left_out": [{"folder": str(one.folder), "why": one.reason} for one in written.skipped],
                "bytes": written.size,
            }
        )
    else:
        games = "game" if len(written.games) == 1 else "games"
        runs = "run" if written.runs == 1 else "runs"
        console.say(f"{written.runs} {runs} of {len(written.games)} {games} in {output}, {written.size / 1e6:.2f} MB")
