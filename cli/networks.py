"""Commands on networks: `compile` and `info`."""

import pathlib
import time
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from gdlx.cli import arguments, console
from gdlx.propnet import limits, load

if TYPE_CHECKING:
    from gdlx.propnet import network


def network_of(
    given: console.Options, game: str, gdl: int | None, fold_case: bool, within: limits.Limits
) -> "network.PropNet":
    """The network of a game, or the one in a network file."""
    from gdlx.propnet import cache, files

    if game.lower().endswith(load.NETWORK_SUFFIXES):
        return files.load(game)
    sheet = load.load(game, fold_case=fold_case, gdl=gdl)
    with console.progress(given, f"compiling {game}") as advance:
        return cache.compiled(sheet, within, lambda done: advance(done.name))


def info(
    context: typer.Context,
    game: arguments.Game,
    gdl: arguments.Gdl = None,
    fold_case: arguments.FoldCase = False,
    max_seconds: arguments.MaxSeconds = arguments.DEFAULT_LIMITS.seconds,
    max_memory: arguments.MaxMemory = arguments.DEFAULT_LIMITS.memory_mb,
    max_rules: arguments.MaxRules = arguments.DEFAULT_LIMITS.rules,
) -> None:
    """Roles, moves and percepts of a game, and the size of its network."""
    from gdlx.propnet import measure

    given = console.options(context)
    net = network_of(given, game, gdl, fold_case, arguments.limits(max_seconds, max_memory, max_rules))
    result = measure.sizes(net) | {"game": game}
    if given.json:
        console.emit(result)
        return
    console.say(f"game        {game}")
    for role in net.roles:
        seen = "" if role.is_random else f", {len(role.percepts)} percepts, goals {_range(role.goal_values)}"
        console.say(f"role        {role.name}: {len(role.moves)} moves{seen}")
    for name in ("registers", "gates", "operations", "depth", "feedbacks"):
        console.say(f"{name:<11} {result[name]}")


def _range(values: tuple[int, ...]) -> str:
    return " ".join(map(str, values)) if len(values) <= 6 else f"{values[0]}..{values[-1]}"


def compile(  # noqa: A001 - the name of the command
    context: typer.Context,
    game: arguments.Game,
    output: Annotated[
        pathlib.Path | None,
        typer.Option("--output", "-o", metavar="NET", help="Write the network here: .npz or .json."),
    ] = None,
    layout: Annotated[
        Literal["gdlx", "ggp"],
        typer.Option(help="Layout of a .json file: gdlx's own, or one other programs read."),
    ] = "gdlx",
    passes: Annotated[bool, typer.Option("--passes", help="Tell what each pass made of the network.")] = False,
    gdl: arguments.Gdl = None,
    fold_case: arguments.FoldCase = False,
    max_seconds: arguments.MaxSeconds = arguments.DEFAULT_LIMITS.seconds,
    max_memory: arguments.MaxMemory = arguments.DEFAULT_LIMITS.memory_mb,
    max_rules: arguments.MaxRules = arguments.DEFAULT_LIMITS.rules,
) -> None:
    """Compile a game to its boolean network, without looking into the cache."""
    from gdlx.propnet import compiler, files, foreign, measure

    given = console.options(context)
    write = foreign.save_foreign if layout == "ggp" else files.save
    if output is not None:
        arguments.require_writable(output, (".json",) if layout == "ggp" else load.NETWORK_SUFFIXES)
    sheet = load.load(game, fold_case=fold_case, gdl=gdl)
    statistics: list[compiler.PassStatistics] = []
    started = time.perf_counter()
    with console.progress(given, f"compiling {game}") as advance:

        def note(done: compiler.PassStatistics) -> None:
            statistics.append(done)
            advance(done.name)

        net = compiler.compile_sheet(sheet, arguments.limits(max_seconds, max_memory, max_rules), note)
    seconds = time.perf_counter() - started
    if output is not None:
        write(net, output)
    result = measure.sizes(net) | {"game": game, "seconds": seconds, "peak_mb": measure.peak_mb()}
    result["passes"] = [vars(done) for done in statistics]
    if output is not None:
        result["output"] = str(output)
    if given.json:
        console.emit(result)
        return
    if passes:
        for done in statistics:
            console.say(
                f"  {done.name:<16} {done.gates:>8} gates {done.edges:>9} edges {done.registers:>6} registers"
                f" {done.seconds:8.3f} s"
            )
    sizes = ", ".join(f"{result[name]} {name}" for name in ("registers", "gates", "operations"))
    console.say(f"{game}: {sizes}, depth {result['depth']}; {seconds:.2f} s, {result['peak_mb']:.0f} MB")
    if output is not None:
        console.say(f"written to {output}")
