"""`gdlx bench`: measure, beside the installed peers, and say which targets hold."""

import pathlib
from typing import Annotated

import typer

from gdlx.cli import console
from gdlx.experiments import bench as harness

_PICTURES = (".png", ".svg", ".pdf")


def bench(
    context: typer.Context,
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME", help="Benchmarks, or all.")] = None,
    plot: Annotated[
        pathlib.Path | None,
        typer.Option(metavar="FILE", help="With playout alone: draw its speed over batches and networks instead."),
    ] = None,
) -> None:
    """Run benchmarks by name, or list the names. A missed target is shown, and is no error."""
    options = console.options(context)
    if not names:
        _list(options)
        return
    if plot is not None:
        _plot(options, names, plot)
        return
    chosen = list(harness.BENCHMARKS) if "all" in names else names
    for name in chosen:
        if name not in harness.BENCHMARKS:
            known = ", ".join([*harness.BENCHMARKS, "all"])
            raise typer.BadParameter(f"no benchmark {name!r}, only {known}", context)
    figures = []
    with console.progress(options, "measuring") as advance:
        for figure in harness.run(chosen):
            figures.append(figure)
            advance(f"{figure.name}, {figure.value:.3g} {figure.unit}")
    if options.json:
        console.emit(harness.as_json(figures))
    else:
        console.show(harness.table(figures))


def _plot(options: console.Options, names: list[str], path: pathlib.Path) -> None:
    if names != ["playout"]:
        raise typer.BadParameter("only the benchmark playout has a plot")
    if path.suffix not in _PICTURES or not path.resolve().parent.is_dir():
        raise typer.BadParameter(f"{path} must be in a folder that is there, and end in {' or '.join(_PICTURES)}")
    from gdlx.experiments import playout_plot

    with console.progress(options, "measuring") as advance:
        found = playout_plot.draw(path, advance)
    if options.json:
        console.emit(found)
    else:
        console.say(f"drawn to {path}")


def _list(options: console.Options) -> None:
    if options.json:
        console.emit({"benchmarks": harness.BENCHMARKS})
        return
    console.say(*(f"{name:12}{summary}" for name, summary in harness.BENCHMARKS.items()))
