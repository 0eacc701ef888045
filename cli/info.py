"""The command `info`: roles, moves and percepts of a game, the size of its propnet, and of its tree."""

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gdlx.cli import console, shared_options

if TYPE_CHECKING:
    from gdlx.propnet.circuits import propnet

from gdlx.cli import loading


def info(
    context: typer.Context,
    game: shared_options.Game,
    tree: Annotated[bool, typer.Option("--tree", help="Unroll the game: its nodes and information sets.")] = False,
    depth: Annotated[int | None, typer.Option(min=1, help="With --tree: only so many joint moves.")] = None,
    max_nodes: shared_options.MaxNodes = shared_options.DEFAULT_NODES,
    *,
    compiling: shared_options.Compiling,
) -> None:
    """Roles, moves and percepts of a game, and the size of its network; with --tree of the whole game."""
    from gdlx.propnet.circuits import measure

    given = console.options(context)
    net = loading.load_propnet(given, game, compiling.gdl, compiling.fold_case, compiling.limits)
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
