"""Commands on networks: `compile` and `info`."""

import pathlib
import time
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from gdlx.cli import arguments, console
from gdlx.propnet import games
from gdlx.propnet.common import limits

if TYPE_CHECKING:
    from gdlx.propnet.circuits import propnet


def network_of(
    given: console.Options, game: str, gdl: int | None, fold_case: bool, within: limits.Limits
) -> "propnet.PropNet":
    """The network of a game, or the one in a network file."""
    if games.is_propnet_file(game):
        return games.compile_game(game, saved=True)
    sheet = games.load_rulesheet(game, fold_case=fold_case, gdl=gdl)
    with console.progress(given, f"compiling {game}") as advance:
        return games.compile_game(sheet, within=within, report=lambda done: advance(done.name))


def info(
    context: typer.Context,
    game: arguments.Game,
    tree: Annotated[bool, typer.Option("--tree", help="Unroll the game: its nodes and information sets.")] = False,
    depth: Annotated[int | None, typer.Option(min=1, help="With --tree: only so many joint moves.")] = None,
    max_nodes: arguments.MaxNodes = arguments.DEFAULT_NODES,
    *,
    compiling: arguments.Compiling,
) -> None:
    """Roles, moves and percepts of a game, and the size of its network; with --tree of the whole game."""
    from gdlx.propnet.circuits import measure

    given = console.options(context)
    net = network_of(given, game, compiling.gdl, compiling.fold_case, compiling.limits)
    result = measure.sizes(net) | {"game": game}
    if given.json:
        console.emit(result | (_tree(given, game, net, depth, max_nodes) if tree else {}))
        return
    console.say(f"game        {game}")
    for role in net.roles:
        seen = "" if role.is_random else f", {len(role.percepts)} percepts, goals {_range(role.goal_values)}"
        console.say(f"role        {role.name}: {len(role.moves)} moves{seen}")
    for name in ("registers", "gates", "operations", "depth", "feedbacks"):
        console.say(f"{name:<11} {result[name]}")
    if tree:
        _show_tree(_tree(given, game, net, depth, max_nodes))


def _tree(
    given: console.Options, game: str, net: "propnet.PropNet", depth: int | None, max_nodes: int
) -> dict[str, Any]:
    """Sizes of the unrolled game; what it may need is told before."""
    from gdlx.envs import game_facts
    from gdlx.envs.trees import game_tree, unroll

    guess = game_facts.probe(net, given.seed).histories(depth=depth)
    if not (given.quiet or given.json):
        more = "more than " if guess.is_truncated else ""
        console.stderr().print(
            f"before unrolling: about {guess.total:.3g} histories in {more}{len(guess.histories) - 1} steps, "
            f"{guess.bytes / 2**20:,.0f} MB if none can be merged"
        )
    started = time.perf_counter()
    try:
        with console.progress(given, f"unrolling {game}") as advance:
            found = unroll.unroll(
                net,
                depth=depth,
                max_nodes=max_nodes,
                goal_conflict="max",
                report=lambda step, nodes: advance(f"step {step}, {nodes:,} nodes"),
            )
    except game_tree.TooLargeError as error:
        fitting = max(1, guess.max_depth_within(max_nodes))
        raise game_tree.TooLargeError(f"{error}; its first steps: gdlx info {game} --tree --depth {fitting}") from None
    names = [player.name for player in found.players]
    steps = [
        {"nodes": nodes, "histories": int(histories), "information_sets": dict(zip(names, sets, strict=True))}
        for nodes, histories, sets in zip(
            found.counts.nodes, found.counts.histories, found.counts.information_sets, strict=True
        )
    ]
    guessed = {"estimated_histories": guess.total, "estimated_mb": guess.bytes / 2**20}
    return found.summary() | guessed | {"steps": steps, "unroll_seconds": time.perf_counter() - started}


def _show_tree(sizes: dict[str, Any]) -> None:
    import rich.table

    console.say(f"unrolled    {sizes['nodes']:,} nodes for {sizes['histories']:,.0f} histories")
    console.say(f"terminals   {sizes['terminals']:,.0f}, {sizes['terminals_merged']:,} merged")
    for role, count in sizes["information_sets"].items():
        console.say(f"decisions   {role}: {count:,} information sets with a choice")
    table = rich.table.Table(box=None, pad_edge=False)
    for name in ("step", "nodes", "histories", *(f"sets of {role}" for role in sizes["information_sets"])):
        table.add_column(name, justify="right")
    for number, step in enumerate(sizes["steps"]):
        sets = (f"{count:,}" for count in step["information_sets"].values())
        table.add_row(str(number), f"{step['nodes']:,}", f"{step['histories']:,.0f}", *sets)
    console.show(table)


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
    *,
    compiling: arguments.Compiling,
) -> None:
    """Compile a game to its boolean network, or take it from the cache; --passes compiles in any case."""
    from gdlx.propnet.circuits import compiler, measure
    from gdlx.propnet.io import files, ggp_json

    given = console.options(context)
    write = ggp_json.save_ggp_json if layout == "ggp" else files.save_propnet
    if output is not None:
        arguments.require_writable(output, (".json",) if layout == "ggp" else games.PROPNET_SUFFIXES)
    sheet = games.load_rulesheet(game, fold_case=compiling.fold_case, gdl=compiling.gdl)
    statistics: list[compiler.PassStatistics] = []
    started = time.perf_counter()
    with console.progress(given, f"compiling {game}") as advance:

        def note(done: compiler.PassStatistics) -> None:
            statistics.append(done)
            advance(done.name)

        net = games.compile_game(sheet, within=compiling.limits, report=note, recompile=passes)
    seconds = time.perf_counter() - started
    if output is not None:
        write(net, output)
    result = measure.sizes(net) | {"game": game, "seconds": seconds, "peak_mb": measure.peak_mb()}
    result["passes"] = [vars(done) for done in statistics]
    cached = not statistics
    result["cached"] = cached
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
    console.say(
        f"{game}: {sizes}, depth {result['depth']}; {seconds:.2f} s{' from the cache' * cached}, "
        f"{result['peak_mb']:.0f} MB"
    )
    if output is not None:
        console.say(f"written to {output}")
