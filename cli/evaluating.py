"""The command `evaluate`."""

import json
import math
import pathlib
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gdlx.cli import arguments, bounding, console, restricting, solving, training

if TYPE_CHECKING:
    from gdlx.solvers import solution

_SHOWN_SETS = 40


def evaluate(
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
    max_nodes: arguments.MaxNodes = arguments.DEFAULT_NODES,
) -> None:
    """Value and exploitability of a result, measured anew, and its policies in words; how strong networks are."""
    given = console.options(context)
    if output is not None:
        arguments.require_writable(output, (".csv", ".json"))
    if bound_seconds is not None and not math.isfinite(bound_seconds):
        raise typer.BadParameter("--bound-seconds is a number of seconds; give a large one, and stop with Ctrl-C")
    if bound_seconds is not None and not bound:
        raise typer.BadParameter("--bound-seconds is of --bound; give that too")

    from gdlx.envs import programs
    from gdlx.propnet import limits, untrusted
    from gdlx.solvers import driver, exports, problems, solution, table_policy, table_process
    from gdlx.solvers import results as folders

    programs.keep()
    if folders.is_training(result):
        for name in ("player", "history", "all_sets", "output", "bound", "max_nodes"):
            if arguments.is_given(context, name):
                raise typer.BadParameter(f"{result} holds networks: leave out --{name.replace('_', '-')}")
        training.evaluate(given, result)
        return
    config = folders.read_config(result)
    task = solving.task_of(given, config.game, config.algorithm, max_nodes, limits.Limits(), keep_edges=False)
    if task.digest != config.digest:
        raise folders.ResultError(f"{result} was solved with other rules of {config.game.spec} than there are now")
    original, task = task, restricting.of_folder(task, config, result)
    earlier = folders.read_metrics(result, len(task.players))
    last = earlier[-1] if earlier else driver.Metrics(0, 0.0, (), ())
    kept = None
    if isinstance(task, problems.TableProblem):
        kept = folders.read_table_policy(result, task.env.num_actions)
        policies, _ = table_policy.at_sets(kept, task.env, task.tree)
        metrics = table_process.played_metrics(task, config.algorithm, kept, last)
        if task.whole is not None:
            metrics = task.whole.metrics(policies)
    else:
        policies = folders.read_policy(result, task.tree)
        metrics = task.metrics(policies)
    metrics = metrics._replace(iterations=last.iterations, seconds=last.seconds, samples=last.samples, load=last.load)
    found = solution.Solution(task.tree, config.algorithm.name, policies, (metrics,))
    if history is not None and player is None:
        raise typer.BadParameter("say whose history it is with --player")
    rows = _rows(found, player, history)
    if output is not None:
        is_csv = output.suffix.lower() == ".csv"
        text = (
            exports.to_csv(task.tree, policies)
            if is_csv
            else json.dumps(exports.to_json(task.tree, policies), indent=1)
        )
        untrusted.write_whole(output, text.encode())
    bounded = bounding.of_result(given, original, config, policies, kept, bound_seconds) if bound else None
    if given.json:
        more = {} if bounded is None else bounding.as_json(bounded)
        console.emit(solving.result_of(task, found, result) | more | {"policy": rows})
    else:
        if history is None:
            solving.show(given, task, found, result, {})
        if bounded is not None:
            bounding.show(bounded)
        _show_rows(rows, all_sets or history is not None)
    if bounded is not None and bounded.interrupted:
        raise typer.Exit(130)


def _rows(found: "solution.Solution", player: str | None, history: str | None) -> list[dict[str, Any]]:
    numbers = range(len(found.tree.players)) if player is None else [found.player(player)]
    rows = []
    for number in numbers:
        own = found.tree.players[number]
        decisions = range(own.sets) if history is None else [found.decision(number, history)]
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
