"""Tables, JSON and progress bars of `solve` and `evaluate`."""

import functools
import pathlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gdlx.cli import console
from gdlx.propnet.common.text import plurals

if TYPE_CHECKING:
    from gdlx.solvers import requests, solution, tasks


def callbacks(options: console.Options) -> "requests.Callbacks":
    """Return callbacks that show progress bars and remarks."""
    from gdlx.solvers import requests

    def warn(text: str) -> None:
        console.remark(options, console.in_options(text))

    return requests.Callbacks(stage=functools.partial(console.progress, options), warn=warn)


def as_json(task: "tasks.Task", solved: "solution.Solution", folder: pathlib.Path) -> dict[str, Any]:
    """Return the output of `solve` and `evaluate` under --json."""
    last = solved.metrics[-1]
    result = {
        "game": task.game.spec,
        "algorithm": solved.algorithm,
        "iterations": solved.iterations,
        "seconds": solved.seconds,
        "goals": dict(zip(task.players, solved.goals, strict=True)),
        "value": dict(zip(task.players, solved.value, strict=True)),
        "exploitability": solved.exploitability,
        "nash_conv": solved.nash_conv,
        "improvements": dict(zip(task.players, solved.improvements, strict=True)) if solved.improvements else None,
        "payoff_range": list(task.payoff_range),
        "zero_sum": task.is_zero_sum,
        "result": str(folder),
    }
    if last.samples:
        result |= {"trajectories": last.samples, "trajectories_per_second": last.samples / max(last.seconds, 1e-9)}
    if last.load is not None:
        result["table_load"] = last.load
        if last.value_error:
            result["value_error"] = dict(zip(task.players, last.value_error, strict=True))
    else:
        result["information_sets"] = task.tree.information_sets
    return result | task.facts(solved.policies)


def show(
    options: console.Options,
    task: "tasks.Task",
    solved: "solution.Solution",
    folder: pathlib.Path,
    more: Mapping[str, Any],
) -> None:
    """Print a solution; `more` is added to the JSON output."""
    result = as_json(task, solved, folder) | dict(more)
    if options.json:
        console.emit(result)
        return
    last = solved.metrics[-1]
    has_table = last.load is not None
    numbers = (*(() if has_table else ("information sets",)), "payoff", "goal", "improvement")
    rows = []
    for number, player in enumerate(task.tree.players):
        error = f" ± {last.value_error[number]:.2g}" if last.value_error else ""
        rows.append(
            (
                player.name,
                *([] if has_table else [f"{player.sets:,}"]),
                f"{solved.value[number]:.6f}{error}",
                f"{solved.goals[number]:.4f}",
                f"{solved.improvements[number]:.3g}" if solved.improvements else "unknown",
            )
        )
    console.show_table(("player", *numbers), rows, numbers)
    low, high = task.payoff_range
    if solved.exploitability is not None:
        relative = f" ({100 * solved.exploitability / (high - low):.3g}% of the payoff range)" if high > low else ""
        where = " in the restricted game" if "restricted" in result else ""
        console.say(f"exploitability{where} {solved.exploitability:.6g}{relative}")
    if last.value_error:
        console.say("payoffs are means over sampled matches, with standard errors; the game was not unrolled")
    rate = f", {last.samples / last.seconds:,.0f} trajectories/s" if last.samples and last.seconds else ""
    full = f", table {last.load:.1%} full" if last.load is not None else ""
    if not (solved.iterations or solved.seconds):
        console.say(f"policy {solved.algorithm}")  # from a file
        return
    console.say(
        f"{solved.algorithm}: {solved.iterations:,} iterations in {solved.seconds:.3g} s{rate}{full}"
        if solved.iterations
        else f"{solved.algorithm}: {solved.seconds:.3g} s"
    )
    if "states" in result:
        nouns = {"states": "state", "joint_actions": "joint action", "steps": "step"}
        states, actions, steps = (plurals.count(result[key], noun) for key, noun in nouns.items())
        console.say(f"{states} with {actions}, {steps}")
    if result.get("matrix_games"):
        games, mixed = plurals.count(result["matrix_games"], "matrix game"), result["matrix_games_mixed"]
        console.say(
            f"{games}, {mixed:,} of them without a pure equilibrium, "
            f"solved to {result['tolerance']:.2g}: the policies lose at most {result['error_bound']:.2g}"
        )
    if "restricted" in result:
        _show_restricted(result["restricted"])


def _show_restricted(facts: Mapping[str, Any]) -> None:
    """Print the payoffs of the response to a modelled opponent."""
    loss = "" if facts["exploitability"] is None else f", {facts['exploitability']:.6g} below the value of the game"
    console.say(
        f"{facts['model']} plays the model with probability {facts['p']:g}; the payoff of {facts['responder']} is",
        f"  {facts['exploitation']:.6f} (goal {facts['exploitation_goal']:.4f}) against the model",
        f"  {facts['worst']:.6f} (goal {facts['worst_goal']:.4f}) against a best response{loss}",
    )
