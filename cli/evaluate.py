"""The command `evaluate`: measure a saved result and print its policies."""

import json
import math
import pathlib
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gdlx.cli import bounds_table, console, shared_options, solution_table, train
from gdlx.propnet.common import atomic_files, interrupts

if TYPE_CHECKING:
    from gdlx.solvers import solution

_SHOWN_SETS = 40


def evaluate(
    context: typer.Context,
    result: Annotated[pathlib.Path, typer.Argument(metavar="RESULT", help="A result folder.")],
    player: Annotated[str | None, typer.Option(help="Print only the policy of this player.")] = None,
    history: Annotated[
        str | None, typer.Option(help="Print only the policy at this history, e.g. '(dealt king); check'.")
    ] = None,
    all_sets: Annotated[bool, typer.Option("--all", help="Print all information sets, not only the first 40.")] = False,
    output: Annotated[
        pathlib.Path | None, typer.Option("-o", "--output", help="Write the policy table as .csv or .json.")
    ] = None,
    bound: Annotated[
        bool, typer.Option("--bound", help="Bound exploitability from below by playing; works for games of any size.")
    ] = False,
    bound_seconds: Annotated[
        float | None, typer.Option(min=0.1, help="With --bound: seconds of play; 30 by default.")
    ] = None,
    max_nodes: shared_options.MaxNodes = shared_options.DEFAULT_NODES,
) -> None:
    """Measure the value and exploitability of a result and print its policies; for networks, their strength."""
    options = console.options(context)
    if output is not None:
        shared_options.require_writable(output, (".csv", ".json"))
    if bound_seconds is not None and not math.isfinite(bound_seconds):
        raise typer.BadParameter("--bound-seconds must be finite; use a large number, and stop with Ctrl-C")
    if bound_seconds is not None and not bound:
        raise typer.BadParameter("--bound-seconds needs --bound")

    from gdlx.envs import compilation_cache
    from gdlx.solvers import evaluate_requests as evaluation
    from gdlx.solvers import requests
    from gdlx.solvers.runs import result_folder as folders

    compilation_cache.enable()
    if folders.is_training(result):
        names = ("player", "history", "all_sets", "output", "bound", "max_nodes")
        shared_options.refuse(context, names, f"{result} contains networks")
        train.evaluate(options, result)
        return
    if history is not None and player is None:
        raise typer.BadParameter("--history needs --player: whose history it is")
    request = requests.EvaluateRequest(result, bound, bound_seconds, options.seed, max_nodes)
    evaluated = evaluation.execute(request, solution_table.callbacks(options))
    rows = _rows(evaluated.solution, player, history)
    if output is not None:
        _write(evaluated.solution, output)
    if options.json:
        more = {} if evaluated.bound_result is None else bounds_table.as_json(evaluated.bound_result)
        console.emit(solution_table.as_json(evaluated.task, evaluated.solution, result) | more | {"policy": rows})
    else:
        if history is None:
            solution_table.show(options, evaluated.task, evaluated.solution, result, {})
        if evaluated.bound_result is not None:
            bounds_table.show(evaluated.bound_result)
        _show_rows(rows, all_sets or history is not None)
    if evaluated.bound_result is not None and evaluated.bound_result.interrupted:
        raise typer.Exit(interrupts.exit_code())


def _write(solved: "solution.Solution", output: pathlib.Path) -> None:
    """Write the policy table in the format of the file's suffix."""
    from gdlx.solvers.runs import policy_tables

    if output.suffix.lower() == ".csv":
        text = policy_tables.to_csv(solved.tree, solved.policies)
    else:
        text = json.dumps(policy_tables.to_json(solved.tree, solved.policies), indent=1)
    atomic_files.write_atomically(output, text.encode())


def _rows(solved: "solution.Solution", player: str | None, history: str | None) -> list[dict[str, Any]]:
    numbers = range(len(solved.tree.players)) if player is None else [solved.player(player)]
    rows = []
    for number in numbers:
        infosets = solved.tree.players[number]
        decisions = range(infosets.sets) if history is None else [solved.find_infoset(number, history)]
        for decision in decisions:
            policy = solved.policies[number][infosets.first[decision] : infosets.first[decision + 1]].tolist()
            probabilities = dict(zip(infosets.options(decision), policy, strict=True))
            rows.append({"player": infosets.name, "history": infosets.labels[decision], "policy": probabilities})
    return rows


def _show_rows(rows: list[dict[str, Any]], show_all: bool) -> None:
    import rich.table

    table = rich.table.Table(box=None, pad_edge=False)
    table.add_column("player")
    table.add_column("history")
    table.add_column("policy")
    shown = rows if show_all else rows[:_SHOWN_SETS]
    for row in shown:
        actions = sorted(row["policy"].items(), key=lambda pair: -pair[1])
        table.add_row(row["player"], row["history"], ", ".join(f"{name} {p:.1%}" for name, p in actions if p >= 5e-4))
    console.say("")
    console.show(table)
    if len(shown) < len(rows):
        console.say(f".. and {len(rows) - len(shown):,} more information sets; use --all, --player or -o policy.csv")
