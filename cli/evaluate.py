"""The command `evaluate`: measure a saved result and print its policies."""

import json
import math
import pathlib
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gdlx.cli import bounds_table, console, infoset_table, shared_options, solution_table, train
from gdlx.propnet import games
from gdlx.propnet.common import atomic_files, interrupts

if TYPE_CHECKING:
    from gdlx.solvers import evaluate_requests as evaluation
    from gdlx.solvers import solution

_NAMED = 10  # information sets without a policy that --json names, of each player
_OF_GAMES = ("payoff", "gdl", "fold_case", "max_seconds", "max_memory", "max_rules", "symmetries")


def evaluate(
    context: typer.Context,
    result: Annotated[
        str, typer.Argument(metavar="RESULT", help="A result folder; with --policy, the game that it belongs to.")
    ],
    policy: Annotated[
        str | None,
        typer.Option(
            help="Judge this policy of the game: a result folder, a .csv or .json table, which may be partial, a "
            "policy.npz, a folder of networks, or module:name of a function or of a policy of OpenSpiel.",
            metavar="POLICY",
        ),
    ] = None,
    player: Annotated[str | None, typer.Option(help="Print only the policy of this player.")] = None,
    history: Annotated[
        str | None, typer.Option(help="Print only the policy at this history, e.g. '(dealt king); check'.")
    ] = None,
    all_sets: Annotated[
        bool,
        typer.Option(
            "--all",
            help="Print all information sets, not only the first 40 or, with --json, the first 200,000 of a player.",
        ),
    ] = False,
    output: Annotated[
        pathlib.Path | None, typer.Option("-o", "--output", help="Write the policy table as .csv or .json.")
    ] = None,
    bound: Annotated[
        bool, typer.Option("--bound", help="Bound exploitability from below by playing; works for games of any size.")
    ] = False,
    bound_seconds: Annotated[
        float | None, typer.Option(min=0.1, help="Seconds of play to bound exploitability; 30 by default.")
    ] = None,
    payoff: shared_options.Payoff = "auto",
    max_nodes: shared_options.MaxNodes = shared_options.DEFAULT_NODES,
    symmetries: Annotated[
        bool,
        typer.Option(
            "--symmetries",
            help="With --policy: unroll the game without the information sets that symmetries of its rules exchange; "
            "the policy must be the same in all of them, which is checked.",
        ),
    ] = False,
    *,
    compiling: shared_options.Compiling,
) -> None:
    """Measure the value and exploitability of a result and print its policies; for networks, their strength.

    With --policy, judge any policy of a game: exactly, in double precision, if the game can be unrolled in any form,
    else by play, as with --bound.

    For every information set: the probability that play leads there, the player's expected payoff once it has, and for
    every action its probability and, in brackets, the expected payoff if the player takes it there.
    """
    options = console.options(context)
    _check_arguments(output, bound_seconds, bound=bound or policy is not None)

    from gdlx.envs import compilation_cache, game_spec
    from gdlx.nets import judge
    from gdlx.solvers import evaluate_requests as evaluation
    from gdlx.solvers import requests
    from gdlx.solvers.runs import result_folder as folders

    compilation_cache.enable()
    if policy is None and folders.is_training(pathlib.Path(result)):
        names = ("player", "history", "all_sets", "output", "bound", "max_nodes", *_OF_GAMES)
        shared_options.refuse(context, names, f"{result} contains networks")
        train.evaluate(options, pathlib.Path(result))
        return
    if policy is not None:
        shared_options.refuse(context, ("bound",), "a policy is judged exactly, or bounded where that is impossible")
        game = game_spec.GameSpec(result, payoff, "refuse", compiling.gdl, compiling.fold_case)
        request = evaluation.judge_request(
            game,
            judge.find(policy),
            max_nodes=max_nodes,
            bound_seconds=bound_seconds,
            seed=options.seed,
            symmetries=symmetries,
            within=compiling.limits,
        )
    else:
        shared_options.refuse(context, _OF_GAMES, "a result folder knows how its game is read", " without --policy")
        _require_no_game(result)
        request = requests.EvaluateRequest(pathlib.Path(result), bound, bound_seconds, options.seed, max_nodes)
    if history is not None and player is None:
        raise typer.BadParameter("--history needs --player: whose history it is")
    evaluated = evaluation.execute(request, solution_table.callbacks(options))
    rows = infoset_table.rows(evaluated.task, evaluated.solution, player, history, show_all=all_sets)
    if output is not None:
        _write(evaluated.solution, output)
    if history is None and (limit := infoset_table.explain_limit(rows, evaluated.solution)) is not None:
        console.remark(options, limit)
    if options.json:
        more = {} if evaluated.bound_result is None else bounds_table.as_json(evaluated.bound_result)
        if policy is not None:
            more |= _judged_as_json(evaluated)
        more |= {"listed": infoset_table.listed(rows), "policy": rows}
        console.emit(solution_table.as_json(evaluated.task, evaluated.solution, request.folder) | more)
    else:
        _show(options, evaluated, request.folder, rows, is_whole=history is None, show_all=all_sets)
        if policy is not None:
            console.say(_describe_judgement(evaluated))
        if output is not None:
            console.say(f"policy table written to {output}")
    if evaluated.bound_result is not None and evaluated.bound_result.interrupted:
        raise typer.Exit(interrupts.exit_code())


def _describe_judgement(evaluated: "evaluation.EvaluateResult") -> str:
    if not evaluated.is_exact:
        return "bounded: payoffs are estimated by matches, and exploitability may be higher than its lower bound"
    if evaluated.task.tree.is_whole:
        return "exact: best responses were computed on the whole game, in double precision"
    return (
        "exact: symmetries do not change this policy, and best responses were computed without what they exchange, in "
        "double precision"
    )


def _judged_as_json(evaluated: "evaluation.EvaluateResult") -> dict[str, Any]:
    """Return what --policy adds to the output under --json."""
    missing = {}
    for player, sets in zip(evaluated.task.tree.players, evaluated.missing, strict=False):
        first = [player.labels[n] for n in sets[:_NAMED].tolist()]
        missing[player.name] = {"count": len(sets), "first": first}
    return {"exact": evaluated.is_exact, "missing": missing}


def _show(
    options: console.Options,
    evaluated: "evaluation.EvaluateResult",
    folder: pathlib.Path,
    rows: list[infoset_table.Row],
    *,
    is_whole: bool,
    show_all: bool,
) -> None:
    if is_whole:
        solution_table.show(options, evaluated.task, evaluated.solution, folder, {})
    if evaluated.bound_result is not None:
        bounds_table.show(evaluated.bound_result)
    infoset_table.show(rows, evaluated.solution, is_whole=is_whole, show_all=show_all or not is_whole)


def _check_arguments(output: pathlib.Path | None, bound_seconds: float | None, *, bound: bool) -> None:
    if output is not None:
        shared_options.require_writable(output, (".csv", ".json"))
    if bound_seconds is not None and not math.isfinite(bound_seconds):
        raise typer.BadParameter("--bound-seconds must be finite; use a large number, and stop with Ctrl-C")
    if bound_seconds is not None and not bound:
        raise typer.BadParameter("--bound-seconds needs --bound")


def _require_no_game(result: str) -> None:
    """Raise if the argument names a game, not a folder."""
    from gdlx.solvers.runs import policy_files
    from gdlx.solvers.runs import result_folder as folders

    path = pathlib.Path(result)
    names_game = result.startswith(games.OPEN_SPIEL) or games.is_game(result)
    if not path.is_dir() and path.suffix.lower() not in policy_files.SUFFIXES and names_game:
        raise folders.ResultError(
            f"{result} is a game, not a result: solve it with `gdlx solve {result}`, or judge a policy of it with "
            f"`gdlx evaluate {result} --policy POLICY`"
        )


def _write(solved: "solution.Solution", output: pathlib.Path) -> None:
    """Write the policy table in the format of the file's suffix."""
    from gdlx.solvers.runs import policy_tables

    if output.suffix.lower() == ".csv":
        text = policy_tables.to_csv(solved.tree, solved.policies)
    else:
        text = json.dumps(policy_tables.to_json(solved.tree, solved.policies), indent=1)
    atomic_files.write_atomically(output, text.encode())
