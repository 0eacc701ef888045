"""The command `bench`: measure gdlx next to the installed peers, and compare with the targets."""

import dataclasses
import pathlib
from typing import Annotated

import typer

from gdlx.cli import console, shared_options
from gdlx.experiments.bench import harness
from gdlx.experiments.bench.measuring import figures_file
from gdlx.propnet.common import interrupts
from gdlx.propnet.common.text import plurals

_PICTURES = (".png", ".svg", ".pdf")
_TABLES = (".json", ".md")


def bench(
    context: typer.Context,
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME", help="Names of benchmarks, or all.")] = None,
    output: Annotated[
        pathlib.Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write the figures to a .json or .md file, each as soon as it is measured.",
        ),
    ] = None,
    plot: Annotated[
        pathlib.Path | None,
        typer.Option(metavar="FILE", help="Plot the ratios and targets to a .png, .svg or .pdf file."),
    ] = None,
    measured: Annotated[
        pathlib.Path | None,
        typer.Option("--from", metavar="FILE", help="Do not measure: show, write or plot the figures of a .json file."),
    ] = None,
    speeds: Annotated[
        pathlib.Path | None,
        typer.Option(metavar="FILE", help="Only with playout: plot its speed over batch sizes and propnets instead."),
    ] = None,
) -> None:
    """Run benchmarks, or list their names. A missed target is reported, but is not an error."""
    options = console.options(context)
    if output is not None:
        shared_options.require_writable(output, _TABLES)
    for picture in (plot, speeds):
        if picture is not None:
            shared_options.require_writable(picture, _PICTURES)
    if measured is not None:
        if names or speeds:
            raise typer.BadParameter("--from shows earlier measurements: leave out names and --speeds")
        report = figures_file.read(measured)
        if output is not None:
            figures_file.write(output, report)
        _show(options, report, plot)
    elif speeds is not None:
        _draw_speeds(options, names or [], speeds)
    elif names:
        _measure(options, context, names, output, plot)
    elif output or plot:
        raise typer.BadParameter("name the benchmarks to run, or all")
    else:
        _list(options)


def _measure(
    options: console.Options,
    context: typer.Context,
    names: list[str],
    output: pathlib.Path | None,
    plot: pathlib.Path | None,
) -> None:
    """Run benchmarks; after Ctrl-C, write, show and plot the figures measured so far."""
    chosen = list(harness.BENCHMARKS) if "all" in names else names
    for name in chosen:
        if name not in harness.BENCHMARKS:
            known = ", ".join([*harness.BENCHMARKS, "all"])
            raise typer.BadParameter(f"no benchmark {name!r}, only {known}", context)
    report, is_interrupted = figures_file.new_report(), False
    try:
        with console.progress(options, "measuring") as advance:
            for figure in harness.run(chosen):
                report = dataclasses.replace(report, figures=(*report.figures, figure))
                if output is not None:
                    figures_file.write(output, report)
                advance(" ".join(figure.cells()[:2]))
        report = dataclasses.replace(report, complete=not any(map(harness.is_failure, report.figures)))
    except KeyboardInterrupt:
        is_interrupted = True
        if not options.quiet:
            console.stderr().print(f"interrupted after {plurals.count(len(report.figures), 'figure')}")
    if output is not None:
        figures_file.write(output, report)
    _show(options, report, plot)
    if not report.complete:
        raise typer.Exit(interrupts.exit_code() if is_interrupted else 1)


def _show(options: console.Options, report: figures_file.BenchReport, plot: pathlib.Path | None) -> None:
    if plot is not None:
        from gdlx.experiments.bench.measuring import ratio_plot

        ratio_plot.draw(plot, report.figures)
    if options.json:
        console.emit(report.to_json())
    else:
        console.show(harness.table(report.figures))
        console.say("", figures_file.about(report))


def _draw_speeds(options: console.Options, names: list[str], path: pathlib.Path) -> None:
    if names != ["playout"]:
        raise typer.BadParameter(
            "only the benchmark playout has speeds to plot; --plot shows the figures of any benchmark"
        )
    from gdlx.experiments.bench.playouts import playout_plot

    with console.progress(options, "measuring") as advance:
        speeds = playout_plot.draw(path, advance)
    if options.json:
        console.emit(speeds)
    else:
        console.say(f"written to {path}")


def _list(options: console.Options) -> None:
    if options.json:
        console.emit({"benchmarks": harness.BENCHMARKS})
        return
    console.say(*(f"{name:12}{summary}" for name, summary in harness.BENCHMARKS.items()))
