"""The command `sweep`."""

import functools
import pathlib
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gdlx.cli import console, shared_options

if TYPE_CHECKING:
    from gdlx.experiments.sweeps import config as configs
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
    if shared_options.is_given(context, "seed"):
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
    console.say(
        f"the best: gdlx results.results {done.folder} --limit 10; a page with curves: gdlx report {done.folder}"
    )


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
