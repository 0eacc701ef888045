"""The command `experiment`."""

import json
import pathlib
from typing import Annotated

import typer

from gdlx.cli import console
from gdlx.experiments.studies import study_registry


def experiment(
    context: typer.Context,
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="A study; without one they are listed.")] = None,
    minutes: Annotated[
        float | None, typer.Option(help="How long all of it may take, about; each study has its own default.")
    ] = None,
    full: Annotated[
        bool,
        typer.Option(
            "--full",
            help="Larger games, more iterations or more seeds, as the README of the study says: hours.",
        ),
    ] = False,
    games: Annotated[int, typer.Option(min=2, help="Games of every pairing.")] = 1_000,
    results: Annotated[
        pathlib.Path, typer.Option(help="Where its results are kept; go on with them by the same command.")
    ] = pathlib.Path("results/experiments"),
) -> None:
    """Do a published study again, ours beside theirs. Stopped and started again, it goes on where it was."""
    given = console.options(context)
    if name is None:
        if given.json:
            console.emit({"experiments": study_registry.STUDIES})
        else:
            console.say(*(f"{study:18}{about}" for study, about in study_registry.STUDIES.items()))
        return
    study = study_registry.load_study(name)
    if minutes is not None and not 0 < minutes < float("inf"):
        raise typer.BadParameter(f"--minutes is a time above 0, not {minutes:g}")

    from gdlx.propnet.io import checked_fields

    folder = results / name
    folder.mkdir(parents=True, exist_ok=True)
    tables = []
    try:
        with console.progress(given, name) as advance:
            usual = study.FULL_MINUTES if full else study.MINUTES
            time = usual if minutes is None else minutes
            setting = study_registry.StudyConfig(folder, time, given.seed, games, advance, full)
            for table in study.run(setting):
                tables.append(table)
                if not given.json:
                    _show(table)
    except KeyboardInterrupt:
        console.remark(given, f"interrupted; the same command goes on from {folder}")
        raise
    found = {"experiment": name, "minutes": setting.minutes, "tables": [table._asdict() for table in tables]}
    checked_fields.write_atomically(folder / "tables.json", json.dumps(found, indent=1).encode())
    if given.json:
        console.emit(found | {"result": str(folder)})
    else:
        console.say(f"result in {folder}")


def _show(table: study_registry.StudyTable) -> None:
    import rich.table

    console.say(table.title)
    shown = rich.table.Table(*table.header, box=None, pad_edge=False)
    for row in table.rows:
        shown.add_row(*row)
    console.show(shown)
    console.say("")
