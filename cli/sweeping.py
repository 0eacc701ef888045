"""The commands `sweep` and `results`."""

import csv
import functools
import io
import pathlib
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gdlx.cli import arguments, console

if TYPE_CHECKING:
    from gdlx.experiments.sweeps import config as configs
    from gdlx.experiments.sweeps import query
    from gdlx.experiments.sweeps import run as running

_SHOWN_FAILURES = 5


def sweep(
    context: typer.Context,
    config: Annotated[pathlib.Path, typer.Argument(metavar="CONFIG", help="The .toml file of a sweep.")],
    results: Annotated[
        pathlib.Path, typer.Option(help="Where its folder is, named as the file; it goes on with what is there.")
    ] = pathlib.Path("results/sweeps"),
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would run together.")] = False,
) -> None:
    """Run games x algorithms x settings x seeds; what differs in numbers alone runs in one program.

    Stopped and started again it goes on, and never repeats a finished cell.
    """
    given = console.options(context)
    if arguments.is_given(context, "seed"):
        raise typer.BadParameter(
            "the seeds of a sweep are in its file, as seeds = 20 or seeds = [3, 4]; leave out --seed"
        )

    from gdlx.experiments.sweeps import config as configs

    wanted = configs.read(config)

    from gdlx.envs import compilation_cache
    from gdlx.experiments.sweeps import run as running

    compilation_cache.enable()
    if dry_run:
        _show_plan(given, wanted)
        return
    folder = results / wanted.name
    try:
        with console.progress_of_many(given, f"sweep {wanted.name}", len(wanted.cells)) as report:
            remark = functools.partial(console.remark, given)
            done = running.run_sweep(wanted, folder, config.read_text("utf-8-sig"), report=report, remark=remark)
    except KeyboardInterrupt:
        console.remark(given, f"interrupted; the same command goes on from {folder}")
        raise
    _show(given, done)
    if done.failed:
        raise typer.Exit(1)


def _show(given: console.Options, done: "running.SweepResult") -> None:
    if given.json:
        failed = [{"cell": cell, "failure": why} for cell, why in done.failed]
        shown: dict[str, Any] = {"cells": done.cells, "earlier": done.already_finished, "failed": failed}
        console.emit(shown | {"table": str(done.table), "result": str(done.folder)})
        return
    before = f", {done.already_finished:,} of them before" if done.already_finished else ""
    console.say(f"{done.cells - len(done.failed):,} of {done.cells:,} cells finished{before}; all in {done.table}")
    for cell, why in done.failed[:_SHOWN_FAILURES]:
        console.remark(given, f"{cell} failed: {why}")
    if len(done.failed) > _SHOWN_FAILURES:
        console.remark(given, f"and {len(done.failed) - _SHOWN_FAILURES:,} more, see its column failure")
    if done.failed:
        console.remark(given, f"to try a cell again, remove its folder in {done.folder / 'cells'}")
    console.say(f"the best: gdlx results {done.folder} --limit 10; a page with curves: gdlx report {done.folder}")


def _show_plan(given: console.Options, wanted: "configs.Sweep") -> None:
    from gdlx.experiments.sweeps import plan

    rows = [plan.describe_group(group) for group in plan.group_cells(wanted.cells)]
    if given.json:
        console.emit({"cells": len(wanted.cells), "groups": rows})
        return
    import rich.table

    table = rich.table.Table("game", "algorithm", "cells", "at once", "memory", "alone because it", box=None)
    for row in rows:
        memory = "" if row["bytes"] is None else f"{row['bytes'] / 2**20:,.0f} MiB"
        texts = (row["game"], row["algorithm"], row["cells"], row["at_once"] or "", memory, row["alone"] or "")
        table.add_row(*map(str, texts))
    console.show(table)
    console.say(
        f"{len(wanted.cells):,} cells, {sum(row['alone'] is None for row in rows):,} groups in one program each"
    )


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
    """Look results up: all runs of `solve` and `sweep` beneath a folder, with their last measurements."""
    given = console.options(context)
    if output is not None:
        arguments.require_writable(output, (".csv",))

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
