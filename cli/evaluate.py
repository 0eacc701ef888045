"""The command `evaluate`."""

import json
import math
import pathlib
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gdlx.cli import bounds_table, console, shared_options, solution_table, train

if TYPE_CHECKING:
    from gdlx.solvers import solution

_SHOWN_SETS = 40


def evaluate(  # noqa: C901 - one check for each pair of options that exclude each other
    context: typer.Context,
    result: Annotated[pathlib.Path, typer.Argument(metavar="RESULT", help="The folder of a result.")],
    player: Annotated[str | None, typer.Option(help="Only this player's policy.")] = None,
    history: Annotated[str | None, typer.Option(help="Only after this history, e.g. '(dealt king); check'.")] = None,
    all_sets: Annotated[bool, typer.Option("--all", help="All information sets, not only the first 40.")] = False,
    output: Annotated[
        pathlib.Path | None, typer.Option("-o", "--output", help="Write the policy table as .csv or .json.")
    ] = None,
    bound: Annotated[
        bool, typer.Option("--bound", help="Look for what players could gain at least, by playing; games of any size.")
    ] = False,
    bound_seconds: Annotated[float | None, typer.Option(min=0.1, help="How long, with --bound: 30 s.")] = None,
    max_nodes: shared_options.MaxNodes = shared_options.DEFAULT_NODES,
) -> None:
    """Value and exploitability of a result, measured anew, and its policies in words; how strong networks are."""
    given = console.options(context)
    if output is not None:
        shared_options.require_writable(output, (".csv", ".json"))
    if bound_seconds is not None and not math.isfinite(bound_seconds):
        raise typer.BadParameter("--bound-seconds is a number of seconds; give a large one, and stop with Ctrl-C")
    if bound_seconds is not None and not bound:
        raise typer.BadParameter("--bound-seconds is of --bound; give that too")

    from gdlx.envs import compilation_cache
    from gdlx.solvers import evaluate_requests as evaluation
    from gdlx.solvers import requests
    from gdlx.solvers.runs import result_folder as folders

    compilation_cache.enable()
    if folders.is_training(result):
        for name in ("player", "history", "all_sets", "output", "bound", "max_nodes"):
            if shared_options.is_given(context, name):
                raise typer.BadParameter(f"{result} holds networks: leave out --{name.replace('_', '-')}")
        train.evaluate(given, result)
        return
    if history is not None and player is None:
        raise typer.BadParameter("say whose history it is with --player")
    request = requests.EvaluateRequest(result, bound, bound_seconds, given.seed, max_nodes)
    found = evaluation.execute(request, solution_table.callbacks(given))
    rows = _rows(found.solution, player, history)
    if output is not None:
        _write(found.solution, output)
    if given.json:
        more = {} if found.bound_result is None else bounds_table.as_json(found.bound_result)
        console.emit(solution_table.as_json(found.task, found.solution, result) | more | {"policy": rows})
    else:
        if history is None:
            solution_table.show(given, found.task, found.solution, result, {})
        if found.bound_result is not None:
            bounds_table.show(found.bound_result)
        _show_rows(rows, all_sets or history is not None)
    if found.bound_result is not None and found.bound_result.interrupted:
        raise typer.Exit(130)


def _write(found: "solution.Solution", output: pathlib.Path) -> None:
    """The policy table, in the format that the file's name asks for."""
    from gdlx.propnet.io import checked_fields
    from gdlx.solvers.runs import policy_tables

    if output.suffix.lower() == ".csv":
        text = policy_tables.to_csv(found.tree, found.policies)
    else:
        text = json.dumps(policy_tables.to_json(found.tree, found.policies), indent=1)
    checked_fields.write_atomically(output, text.encode())


def _rows(found: "solution.Solution", player: str | None, history: str | None) -> list[dict[str, Any]]:
    numbers = range(len(found.tree.players)) if player is None else [found.player(player)]
    rows = []
    for number in numbers:
        own = found.tree.players[number]
        decisions = range(own.sets) if history is None else [found.find_infoset(number, history)]
        for decision in decisions:
            chosen = found.policies[number][own.first[decision] : own.first[decision + 1]].tolist()
            options = dict(zip(own.options(decision), chosen, strict=True))
            rows.append({"player": own.name, "history": own.labels[decision], "policy": options})
    return rows


def _show_rows(rows: list[dict[str, Any]], show_all: bool) -> None:
    import rich.table

    table = rich.table.Table(box=None, pad_edge=False)
    table.add_column("player")
    table.add_column("has done and seen")
    table.add_column("then plays")
    shown = rows if show_all else rows[:_SHOWN_SETS]
    for row in shown:
        chosen = sorted(row["policy"].items(), key=lambda pair: -pair[1])
        table.add_row(row["player"], row["history"], ", ".join(f"{name} {p:.1%}" for name, p in chosen if p >= 5e-4))
    console.say("")
    console.show(table)
    if len(shown) < len(rows):
        console.say(f".. and {len(rows) - len(shown):,} more information sets: --all, --player, or -o policy.csv")
