"""Solutions as `solve` and `evaluate` show them, and the progress of both."""

import functools
import pathlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gdlx.cli import console

if TYPE_CHECKING:
    from gdlx.solvers import requests, solution, tasks


def callbacks(given: console.Options) -> "requests.Callbacks":
    """Progress bars and remarks of whatever a request does."""
    from gdlx.solvers import requests

    return requests.Callbacks(
        stage=functools.partial(console.progress, given), warn=functools.partial(console.remark, given)
    )


def as_json(task: "tasks.Task", found: "solution.Solution", folder: pathlib.Path) -> dict[str, Any]:
    """What `solve.solve` and `evaluate` print under --json."""
    last = found.metrics[-1]
    result = {
        "game": task.game.spec,
        "algorithm": found.algorithm,
        "iterations": found.iterations,
        "seconds": found.seconds,
        "goals": dict(zip(task.players, found.goals, strict=True)),
        "value": dict(zip(task.players, found.value, strict=True)),
        "exploitability": found.exploitability,
        "nash_conv": found.nash_conv,
        "improvements": dict(zip(task.players, found.improvements, strict=True)) if found.improvements else None,
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
    return result | task.facts(found.policies)


def show(
    given: console.Options,
    task: "tasks.Task",
    found: "solution.Solution",
    folder: pathlib.Path,
    more: Mapping[str, Any],
) -> None:
    result = as_json(task, found, folder) | dict(more)
    if given.json:
        console.emit(result)
        return
    import rich.table

    last = found.metrics[-1]
    has_table = last.load is not None
    table = rich.table.Table(title=None, box=None, pad_edge=False)
    for column in ("player", *([] if has_table else ["information sets"]), "payoff", "goal", "improvement"):
        table.add_column(column, justify="left" if column == "player" else "right")
    for number, player in enumerate(task.tree.players):
        error = f" ± {last.value_error[number]:.2g}" if last.value_error else ""
        table.add_row(
            player.name,
            *([] if has_table else [f"{player.sets:,}"]),
            f"{found.value[number]:.6f}{error}",
            f"{found.goals[number]:.4f}",
            f"{found.improvements[number]:.3g}" if found.improvements else "not known",
        )
    console.show(table)
    low, high = task.payoff_range
    if found.exploitability is not None:
        part = f" ({100 * found.exploitability / (high - low):.3g}% of the payoffs' range)" if high > low else ""
        where = " in the restricted game" if "restricted" in result else ""
        console.say(f"exploitability{where} {found.exploitability:.6g}{part}")
    if last.value_error:
        console.say("payoffs are means of matches of these policies, with standard errors; the game is not unrolled")
    rate = f", {last.samples / last.seconds:,.0f} trajectories/s" if last.samples and last.seconds else ""
    full = f", table {last.load:.1%} full" if last.load is not None else ""
    console.say(
        f"{found.algorithm}: {found.iterations:,} iterations in {found.seconds:.3g} s{rate}{full}"
        if found.iterations
        else f"{found.algorithm}: {found.seconds:.3g} s"
    )
    if "restricted" in result:
        _show_restricted(result["restricted"])


def _show_restricted(found: Mapping[str, Any]) -> None:
    """What the response to a modelled opponent gets."""
    loss = "" if found["exploitability"] is None else f", {found['exploitability']:.6g} below the value of the game"
    console.say(
        f"{found['model']} plays the model with probability {found['p']:g}; {found['responder']} gets",
        f"  {found['exploitation']:.6f} (goal {found['exploitation_goal']:.4f}) against the model",
        f"  {found['worst']:.6f} (goal {found['worst_goal']:.4f}) against a best response{loss}",
    )
