"""The command `info`: roles, moves and percepts of a game, and the sizes of its propnet and game tree."""

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gdlx.cli import console, loading, shared_options
from gdlx.propnet import games
from gdlx.propnet.common import errors

if TYPE_CHECKING:
    from gdlx.envs.trees import game_tree, size_estimate
    from gdlx.propnet.circuits import propnet


def info(
    context: typer.Context,
    game: shared_options.Game,
    tree: Annotated[
        bool, typer.Option("--tree", help="Also unroll the game and count its nodes and information sets.")
    ] = False,
    depth: Annotated[int | None, typer.Option(min=1, help="With --tree: unroll only this many steps.")] = None,
    max_nodes: shared_options.MaxNodes = shared_options.DEFAULT_NODES,
    *,
    compiling: shared_options.Compiling,
) -> None:
    """Show the roles, moves and percepts of a game, and the sizes of its propnet and, with --tree, of its tree."""
    from gdlx.propnet.checks import unplayable
    from gdlx.propnet.circuits import measure

    options = console.options(context)
    if game.startswith(games.OPEN_SPIEL):
        _show_open_spiel(options, game, has_tree=tree, depth=depth, max_nodes=max_nodes)
        return
    propnet = loading.load_propnet(options, game, compiling.gdl, compiling.fold_case, compiling.limits)
    result = measure.sizes(propnet) | {"game": game}
    if options.json:
        unplayable.require_playable(propnet, options.seed)
        console.emit(result | (_tree(options, game, propnet, depth, max_nodes) if tree else {}))
        return
    console.say(f"game        {game}")
    for role in propnet.roles:
        percepts = _count(len(role.percepts), "percept")
        seen = "" if role.is_random else f", {percepts}, goals {_range(role.goal_values)}"
        console.say(f"role        {role.name}: {_count(len(role.moves), 'move')}{seen}")
    for name in ("registers", "gates", "operations", "depth", "feedbacks"):
        console.say(f"{name:<11} {'not counted (large propnet)' if result[name] is None else result[name]}")
    unplayable.require_playable(propnet, options.seed)  # after what can be shown of any game
    if tree:
        _show_tree(_tree(options, game, propnet, depth, max_nodes))


def _show_open_spiel(options: console.Options, game: str, *, has_tree: bool, depth: int | None, max_nodes: int) -> None:
    """Show the tree of a game of OpenSpiel, which has nothing else to show."""
    if not has_tree:
        raise errors.UserError(
            f"{game} is a game of OpenSpiel, which has no propnet; its tree: gdlx info {game} --tree"
        )
    from gdlx.envs import game_spec

    started = time.perf_counter()
    with console.progress(options, f"unrolling {game}"):
        unrolled = game_spec.unroll_game(game, depth=depth, max_nodes=max_nodes)
    sizes = _sizes(unrolled, time.perf_counter() - started)
    if options.json:
        console.emit({"game": game} | sizes)
        return
    console.say(f"game        {game}")
    _show_tree(sizes)


def _tree(
    options: console.Options, game: str, propnet: "propnet.PropNet", depth: int | None, max_nodes: int
) -> dict[str, Any]:
    """Unroll the game and return its sizes; an estimate is printed first."""
    from gdlx.envs import game_facts
    from gdlx.envs.trees import game_tree, unroll

    estimate = game_facts.probe(propnet, options.seed).histories(depth=depth)
    if not (options.quiet or options.json):
        more = "more than " if estimate.is_truncated else ""
        console.stderr().print(
            f"estimated size: {_approximate(estimate.total)} histories in {more}{len(estimate.histories) - 1} steps, "
            f"{_approximate(estimate.bytes / 2**20)} MB if no nodes can be merged"
        )
    started = time.perf_counter()
    try:
        with console.progress(options, f"unrolling {game}") as advance:
            tree = unroll.unroll(
                propnet,
                depth=depth,
                max_nodes=max_nodes,
                goal_conflict="max",
                report=lambda step, nodes: advance(f"step {step}, {nodes:,} nodes"),
            )
    except game_tree.TooLargeError as error:
        raise game_tree.TooLargeError(error.reason, _suggest_depth(game, propnet, estimate, max_nodes)) from None
    estimated = {"estimated_histories": estimate.total, "estimated_mb": estimate.bytes / 2**20}
    return estimated | _sizes(tree, time.perf_counter() - started)


def _sizes(tree: "game_tree.GameTree", seconds: float) -> dict[str, Any]:
    names = [player.name for player in tree.players]
    steps = [
        {"nodes": nodes, "histories": int(histories), "information_sets": dict(zip(names, sets, strict=True))}
        for nodes, histories, sets in zip(
            tree.counts.nodes, tree.counts.histories, tree.counts.information_sets, strict=True
        )
    ]
    return tree.summary() | {"steps": steps, "unroll_seconds": seconds}


def _suggest_depth(
    game: str, propnet: "propnet.PropNet", estimate: "size_estimate.SizeEstimate", max_nodes: int
) -> str:
    """Return the command that unrolls as many steps as fit, if any do; and why the tree is infinite, if it is."""
    from gdlx.envs import game_facts
    from gdlx.propnet.checks import repetition

    repeated = game_facts.probe(propnet).repetition
    why = ""
    if repeated is not None:
        why = f"Its tree is infinite: {repeated.in_words()}. Add a step counter, e.g. {repetition.STEP_COUNTER}. "
    fitting = estimate.max_depth_within(max_nodes)
    if fitting < 1:
        return f"{why}Allow more nodes with `max_nodes=`, or make the game smaller"
    limit = f" --max-nodes {max_nodes}" if max_nodes > shared_options.DEFAULT_NODES else ""
    return f"{why}Unroll fewer steps: gdlx info {game} --tree --depth {fitting}{limit}"


def _show_tree(sizes: dict[str, Any]) -> None:
    import rich.table

    console.say(f"unrolled    {sizes['nodes']:,} nodes for {sizes['histories']:,.0f} histories")
    console.say(f"terminals   {sizes['terminals']:,.0f}, {sizes['terminals_merged']:,} after merging")
    for role, count in sizes["information_sets"].items():
        console.say(f"decisions   {role}: {count:,} information sets with a choice")
    table = rich.table.Table(box=None, pad_edge=False)
    for name in ("step", "nodes", "histories", *(f"information sets of {role}" for role in sizes["information_sets"])):
        table.add_column(name, justify="right")
    for number, step in enumerate(sizes["steps"]):
        sets = (f"{count:,}" for count in step["information_sets"].values())
        table.add_row(str(number), f"{step['nodes']:,}", f"{step['histories']:,.0f}", *sets)
    console.show(table)


def _approximate(number: float) -> str:
    """An estimate in words: it has no more than three digits that count.

    >>> _approximate(96.2), _approximate(23_456), _approximate(3e30)
    ('about 96', 'about 23,500', 'about 3e+30')
    """
    if number < 1:
        return "less than 1"
    if number >= 1e15:
        return f"about {number:.3g}"
    return f"about {float(f'{number:.3g}'):,.0f}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"


def _range(values: tuple[int, ...]) -> str:
    return " ".join(map(str, values)) if len(values) <= 6 else f"{values[0]}..{values[-1]}"
