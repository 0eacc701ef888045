"""The command `results`: runs on disk, looked up and compared."""

import csv
import io
import pathlib
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gdlx.cli import console, shared_options

if TYPE_CHECKING:
    from gdlx.experiments.sweeps import query


def results(
    context: typer.Context,
    folders: Annotated[
        list[pathlib.Path] | None, typer.Argument(metavar="FOLDER", help="Where to look, also beneath: results.")
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(help="Only those for which this is so: 'game=leduc_poker', 'exploitability<0.001'; repeat it."),
    ] = None,
    sort: Annotated[str, typer.Option(help="By this column.")] = "exploitability",
    descending: Annotated[bool, typer.Option("--descending", help="The largest first.")] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many.")] = None,
    columns: Annotated[str | None, typer.Option(help="These columns, with commas between.")] = None,
    output: Annotated[
        pathlib.Path | None, typer.Option("-o", "--output", help="Write all columns as .csv instead.")
    ] = None,
) -> None:
    """Look results up: all runs of `solve` and `sweep.sweep` beneath a folder, with their last measurements."""
    given = console.options(context)
    if output is not None:
        shared_options.require_writable(output, (".csv",))

    from gdlx.experiments.reports import gather
    from gdlx.experiments.sweeps import query
    from gdlx.propnet.io import checked_fields
    from gdlx.solvers.runs import result_folder as stored

    questions = [query.parse(text) for text in where or ()]
    found = gather.gather_runs(folders or [pathlib.Path("results")])
    if not found.runs:
        raise stored.ResultError(f"nothing to look up: {'; '.join(left.reason for left in found.skipped[:3])}")
    rows = query.filter_rows(query.rows(found.runs), questions)
    chosen = [name.strip() for name in columns.split(",")] if columns else query.columns(rows)
    query.require_names(rows, chosen)
    rows = query.sort_rows(rows, sort, descending=descending)[:limit]
    for left in found.skipped:
        console.remark(given, f"left out: {left.reason}")
    if output is not None:
        checked_fields.write_atomically(output, _csv(rows).encode())
        if not given.json:
            console.say(f"{len(rows):,} rows in {output}")
    if given.json:
        console.emit({"results": [{name: row.get(name) for name in chosen} for row in map(_finite, rows)]})
    elif output is None:
        _show_rows(rows, chosen, len(found.runs))


def _finite(row: "query.Row") -> dict[str, Any]:
    """JSON has no infinities."""
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
    import rich.table

    table = rich.table.Table(*chosen, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*(_text(row.get(name)) for name in chosen))
    if rows:
        console.show(table)
    console.say(f"{len(rows):,} of {total:,} results")


def _text(value: object) -> str:
    import rich.markup

    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else rich.markup.escape(str(value))
