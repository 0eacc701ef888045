"""The command `experiment`: reproduce a published study."""

import json
import pathlib
from typing import Annotated

import typer

from gdlx.cli import console
from gdlx.experiments.studies import study_registry
from gdlx.propnet.common import atomic_files


def experiment(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Name of a study; without it the studies are listed.")
    ] = None,
    minutes: Annotated[
        float | None, typer.Option(help="Approximate time for the whole study; each has its own default.")
    ] = None,
    full: Annotated[
        bool,
        typer.Option(
            "--full",
            help="Run the full settings that the README of the study documents; this takes hours.",
        ),
    ] = False,
    games: Annotated[int, typer.Option(min=2, help="Number of games for each pair of agents.")] = 1_000,
    results: Annotated[
        pathlib.Path, typer.Option(help="Folder of the results; the same command resumes from them.")
    ] = pathlib.Path("results/experiments"),
) -> None:
    """Reproduce a published study and compare the results. If interrupted, the same command resumes it."""
    options = console.options(context)
    if name is None:
        if options.json:
            console.emit({"experiments": study_registry.STUDIES})
        else:
            console.say(*(f"{study:18}{about}" for study, about in study_registry.STUDIES.items()))
        return
    study = study_registry.load_study(name)
    if minutes is not None and not 0 < minutes < float("inf"):
        raise typer.BadParameter(f"--minutes must be a positive number, not {minutes:g}")

    folder = results / name
    folder.mkdir(parents=True, exist_ok=True)
    tables = []
    try:
        with console.progress(options, name) as advance:
            default = study.FULL_MINUTES if full else study.MINUTES
            time = default if minutes is None else minutes
            setting = study_registry.StudyConfig(folder, time, options.seed, games, advance, full)
            for table in study.run(setting):
                tables.append(table)
                if not options.json:
                    _show(table)
    except KeyboardInterrupt:
        console.remark(options, f"interrupted; the same command resumes from {folder}")
        raise
    result = {"experiment": name, "minutes": setting.minutes, "tables": [table._asdict() for table in tables]}
    atomic_files.write_atomically(folder / "tables.json", json.dumps(result, indent=1).encode())
    if options.json:
        console.emit(result | {"result": str(folder)})
    else:
        console.say(f"result in {folder}")


def _show(table: study_registry.StudyTable) -> None:
    console.say(table.title)
    console.show_table(table.header, table.rows)
    console.say("")
