"""The command `compile`: compile a game to its propnet."""

import pathlib
import time
from typing import Annotated, Literal

import typer

from gdlx.cli import console, shared_options
from gdlx.propnet import games


def compile(  # noqa: A001 - the name of the command
    context: typer.Context,
    game: shared_options.Game,
    output: Annotated[
        pathlib.Path | None,
        typer.Option("--output", "-o", metavar="PROPNET", help="Write the propnet to this .npz or .json file."),
    ] = None,
    layout: Annotated[
        Literal["gdlx", "ggp"],
        typer.Option(help="Layout of a .json file: that of gdlx, or that of other GGP programs."),
    ] = "gdlx",
    passes: Annotated[bool, typer.Option("--passes", help="Recompile, and show the size after each pass.")] = False,
    *,
    compiling: shared_options.Compiling,
) -> None:
    """Compile a game to a propnet, or load it from the cache."""
    from gdlx.propnet.circuits import compiler, measure
    from gdlx.propnet.io import files, ggp_json

    options = console.options(context)
    write = ggp_json.save_ggp_json if layout == "ggp" else files.save_propnet
    if output is not None:
        shared_options.require_writable(output, (".json",) if layout == "ggp" else games.PROPNET_SUFFIXES)
    started = time.perf_counter()
    sheet = games.load_rulesheet(game, fold_case=compiling.fold_case, gdl=compiling.gdl)
    statistics: list[compiler.PassStatistics] = []
    with console.progress(options, f"compiling {game}") as advance:

        def note(done: compiler.PassStatistics) -> None:
            statistics.append(done)
            advance(done.name)

        propnet = games.compile_game(sheet, within=compiling.limits, report=note, recompile=passes)
    sizes = measure.sizes(propnet)
    if output is not None:
        write(propnet, output)
    seconds = time.perf_counter() - started
    result = sizes | {"game": game, "seconds": seconds, "peak_mb": measure.peak_mb()}
    result["passes"] = [vars(done) for done in statistics]
    cached = not statistics
    result["cached"] = cached
    if output is not None:
        result["output"] = str(output)
    if options.json:
        console.emit(result)
        return
    if passes:
        for done in statistics:
            console.say(
                f"  {done.name:<16} {done.gates:>8} gates {done.edges:>9} edges {done.registers:>6} registers"
                f" {done.seconds:8.3f} s"
            )
    names = [name for name in ("registers", "gates", "operations") if result[name] is not None]
    counts = ", ".join(f"{result[name]} {name}" for name in names)
    console.say(
        f"{game}: {counts}, depth {result['depth']}; {seconds:.2f} s{' from the cache' * cached}, "
        f"{result['peak_mb']:.0f} MB"
    )
    if output is not None:
        console.say(f"written to {output}")
