"""What `gdlx solve --restrict` adds: the modelled opponent, and what the response to it gets."""

import pathlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

from gdlx.cli import console

if TYPE_CHECKING:
    from gdlx.solvers import presets, profiles, results
    from gdlx.solvers import solve as solving


def require_whole(restrict: pathlib.Path | None, p: float | None, model: str | None) -> None:
    """Before anything is read: options that belong together are given together."""
    if restrict is None and (p is not None or model is not None):
        raise typer.BadParameter(f"{'--p' if p is not None else '--model'} is of --restrict; name an opponent's policy")
    if restrict is not None and p is None:
        raise typer.BadParameter("say with --p how likely the opponent is to play as --restrict says, 0 to 1")


def require_fit(algorithm: "presets.Algorithm", p: float) -> None:
    """Before the long work."""
    from gdlx.solvers import restricted

    restricted.require_probability(p)
    restricted.require_fit(algorithm)


def of_options(task: "solving.Task", path: pathlib.Path, p: float, model: str | None) -> "solving.Task":
    """The game in which a player is bound to a policy with probability p."""
    from gdlx.solvers import opponents, problems, restricted

    assert isinstance(task, problems.Problem)
    restricted.require_two(task.tree)
    player = restricted.player_of(task, model)
    return restricted.problem(task, restricted.Restriction(player, opponents.read(path, task, player), p))


def of_folder(task: "solving.Task", config: "results.Config", folder: pathlib.Path) -> "solving.Task":
    """The game that a result is of: restricted again if it was."""
    from gdlx.solvers import problems, restricted
    from gdlx.solvers import results as folders

    if config.modelled is None or not isinstance(task, problems.Problem):
        return task
    player = restricted.player_of(task, config.modelled.player)
    model = folders.read_model(folder, task.tree.players[player])
    found = restricted.Restriction(player, model, config.modelled.p)
    if found.digest != config.modelled.model:
        raise folders.ResultError(f"{folder / folders.MODEL} is another model than {folders.CONFIG} says; solve anew")
    return restricted.problem(task, found)


def name_of_game(task: "solving.Task") -> str:
    from gdlx.solvers import restricted

    return " in the restricted game" if isinstance(task, restricted.RestrictedProblem) else ""


def result_of(task: "solving.Task", policies: "profiles.Policies") -> dict[str, Any]:
    """What is added to the result under --json: payoffs of the responder in the game as it is, and goals."""
    from gdlx.solvers import restricted

    if not isinstance(task, restricted.RestrictedProblem):
        return {}
    bound, original = task.restriction, task.original
    got = restricted.trade_off(original, bound.player, bound.model, policies[bound.responder])
    value = restricted.value(original, bound.responder)
    exploitation, worst = float(got.exploitation), float(got.worst)
    offset = original.tree.offset
    return {
        "restricted": {
            "model": task.players[bound.player],
            "responder": task.players[bound.responder],
            "p": bound.p,
            "exploitation": exploitation,
            "exploitation_goal": exploitation + offset,
            "worst": worst,
            "worst_goal": worst + offset,
            "game_value": value,
            "exploitability": None if value is None else max(0.0, value - worst),
        }
    }


def show(result: Mapping[str, Any]) -> None:
    found = result.get("restricted")
    if found is None:
        return
    loss = "" if found["exploitability"] is None else f", {found['exploitability']:.6g} below the value of the game"
    console.say(
        f"{found['model']} plays the model with probability {found['p']:g}; {found['responder']} gets",
        f"  {found['exploitation']:.6f} (goal {found['exploitation_goal']:.4f}) against the model",
        f"  {found['worst']:.6f} (goal {found['worst_goal']:.4f}) against a best response{loss}",
    )
