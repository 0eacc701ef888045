"""The command `sweep`: run many settings."""

import functools
import pathlib
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gdlx.cli import console, shared_options
from gdlx.propnet.common.text import plurals

if TYPE_CHECKING:
    from gdlx.experiments.sweeps import config as configs
    from gdlx.experiments.sweeps import run as running


_SHOWN_FAILURES = 5


def sweep(
    context: typer.Context,
    config: Annotated[pathlib.Path, typer.Argument(metavar="CONFIG", help="A .toml file that describes the sweep.")],
    results: Annotated[
        pathlib.Path, typer.Option(help="Where the result folder is, named like the file; an existing one is resumed.")
    ] = pathlib.Path("results/sweeps"),
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show which cells would run together.")] = False,
) -> None:
    """Run games x algorithms x settings x seeds. Cells that differ only in numbers run in one compiled program.

    If interrupted, the same command resumes the sweep without repeating finished cells.
    """
    options = console.options(context)
    if shared_options.is_given(context, "seed"):
        raise typer.BadParameter(
            "the seeds of a sweep are set in its file, as seeds = 20 or seeds = [3, 4]; leave out --seed"
        )

    from gdlx.experiments.sweeps import config as configs

    requested = configs.read(config)

    from gdlx.envs import compilation_cache
    from gdlx.experiments.sweeps import run as running

    compilation_cache.enable()
    if dry_run:
        _show_plan(options, requested)
        return
    folder = results / requested.name
    try:
        with console.progress_of_many(options, f"sweep {requested.name}", len(requested.cells)) as report:
            warn = functools.partial(console.remark, options)
            done = running.run_sweep(requested, folder, configs.read_source(config), report=report, warn=warn)
    except KeyboardInterrupt:
        console.remark(options, f"interrupted; the same command resumes from {folder}")
        raise
    _show(options, done)
    if done.failed:
        raise typer.Exit(1)


def _show(options: console.Options, done: "running.SweepResult") -> None:
    if options.json:
        failed = [{"cell": cell, "failure": why} for cell, why in done.failed]
        shown: dict[str, Any] = {"cells": done.cells, "earlier": done.already_finished, "failed": failed}
        console.emit(shown | {"table": str(done.table), "result": str(done.folder)})
        return
    before = f", {done.already_finished:,} of them earlier" if done.already_finished else ""
    console.say(f"{done.cells - len(done.failed):,} of {done.cells:,} cells finished{before}; all in {done.table}")
    for cell, why in done.failed[:_SHOWN_FAILURES]:
        console.remark(options, f"{cell} failed: {why}")
    if len(done.failed) > _SHOWN_FAILURES:
        console.remark(options, f"and {len(done.failed) - _SHOWN_FAILURES:,} more; see the column failure of the table")
    if done.failed:
        console.remark(options, f"to retry a cell, delete its folder in {done.folder / 'cells'}")
    if len(done.failed) < done.cells:
        console.say(
            f"show the best with: gdlx results {done.folder} --limit 10; plot all with: gdlx report {done.folder}"
        )


def _show_plan(options: console.Options, requested: "configs.Sweep") -> None:
    from gdlx.experiments.sweeps import plan

    rows = [plan.describe_group(group) for group in plan.group_cells(requested.cells)]
    if options.json:
        console.emit({"cells": len(requested.cells), "groups": rows})
        return
    cells = []
    for row in rows:
        memory = "" if row["bytes"] is None else f"{row['bytes'] / 2**20:,.0f} MiB"
        texts = (row["game"], row["algorithm"], row["cells"], row["at_once"] or "", memory, row["alone"] or "")
        cells.append([str(text) for text in texts])
    numbers = ("cells", "in parallel", "memory")
    console.show_table(("game", "algorithm", *numbers, "runs alone because it"), cells, numbers)
    groups = plurals.count(sum(row["alone"] is None for row in rows), "group")
    console.say(f"{plurals.count(len(requested.cells), 'cell')}, {groups} of cells that run as one program")
