"""The command `results`: find and compare saved runs."""

import csv
import io
import pathlib
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gdlx.cli import console, shared_options
from gdlx.propnet.common import atomic_files

if TYPE_CHECKING:
    from gdlx.experiments.sweeps import query


def results(
    context: typer.Context,
    folders: Annotated[
        list[pathlib.Path] | None,
        typer.Argument(metavar="FOLDER", help="Folders to search recursively; results by default."),
    ] = None,
    named: Annotated[
        list[pathlib.Path] | None, typer.Option("--results", hidden=True, help="The same as FOLDER, as elsewhere.")
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            help="Only runs with this property, e.g. game=leduc_poker or 'exploitability<0.001'; may be repeated."
        ),
    ] = None,
    sort: Annotated[str, typer.Option(help="Sort by this column.")] = "exploitability",
    descending: Annotated[bool, typer.Option("--descending", help="Sort in descending order.")] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="Show at most this many runs.")] = None,
    columns: Annotated[str | None, typer.Option(help="Columns to show, separated by commas.")] = None,
    output: Annotated[
        pathlib.Path | None, typer.Option("-o", "--output", help="Write all columns to a .csv file instead.")
    ] = None,
) -> None:
    """List the runs of `solve`, `sweep` and `train`, the matches and the tournaments in a folder."""
    options = console.options(context)
    if output is not None:
        shared_options.require_writable(output, (".csv",))

    from gdlx.experiments.reports import gather
    from gdlx.experiments.sweeps import query
    from gdlx.solvers.runs import result_folder as stored

    conditions = [query.parse(text) for text in where or ()]
    conditions = [where._replace(name=query.full_name(where.name)) for where in conditions]
    sort = query.full_name(sort)
    gathered = gather.gather_runs([*(folders or ()), *(named or ())] or [pathlib.Path("results")])
    if not gathered.total:
        raise stored.ResultError(f"no runs found: {'; '.join(skipped.reason for skipped in gathered.skipped[:3])}")
    rows = query.filter_rows(query.rows(gathered), conditions)
    chosen = [query.full_name(name.strip()) for name in columns.split(",")] if columns else query.columns(rows)
    query.require_names(rows, chosen)
    rows = query.sort_rows(rows, sort, descending=descending)[:limit]
    for skipped in gathered.skipped:
        console.remark(options, f"skipped: {skipped.reason}")
    if output is not None:
        atomic_files.write_atomically(output, _csv(rows).encode())
        if not options.json:
            console.say(f"{len(rows):,} rows written to {output}")
    if options.json:
        console.emit({"results": [{name: row.get(name) for name in chosen} for row in map(_finite, rows)]})
    elif output is None:
        _show_rows(rows, chosen, gathered.total)


def _finite(row: "query.Row") -> dict[str, Any]:
    """Replace infinities, which JSON lacks, by strings."""
    return {
        name: str(value) if isinstance(value, float) and value in (float("inf"), -float("inf")) else value
        for name, value in row.items()
    }


def _csv(rows: "list[query.Row]") -> str:
    text = io.StringIO()
    names = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(text, names, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _show_rows(rows: "list[query.Row]", chosen: list[str], total: int) -> None:
    numbers = []
    for name in chosen:
        values = [row[name] for row in rows if row.get(name) is not None]
        if values and not any(isinstance(value, str | bool) for value in values):
            numbers.append(name)
    if rows:
        console.show_table(chosen, [[_text(row.get(name)) for name in chosen] for row in rows], numbers)
    console.say(f"{len(rows):,} of {total:,} results")


def _text(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
