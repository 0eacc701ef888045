"""Learners by name, with their settings as texts: what a checkpoint notes, and what `gdlx train` is given."""

import dataclasses
import importlib
import math
import pathlib
import typing
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import jax

from gdlx.envs import env, payoffs, trees
from gdlx.nets import encoders, learners
from gdlx.propnet import errors, network
from gdlx.solvers import problems, table_process

if TYPE_CHECKING:
    from gdlx.nets import supervised


class WrongRecipe(errors.UserError, ValueError):
    """A learner or a setting that there is not."""


class Entry(NamedTuple):
    """`make` of the module takes an Encoder, Settings, and the game unrolled where `needs_tree`."""

    module: str  # of gdlx.nets
    needs_tree: bool
    about: str


ENTRIES: Mapping[str, Entry] = {
    "self-play": Entry("self_play", False, "games in lockstep, with a search in each of their states"),
    "deep-cfr": Entry("deep_cfr", True, "Deep CFR (Brown et al. 2019), of games that can be unrolled"),
    "supervised": Entry("supervised", True, "exact values and policies of solved games: the yardstick"),
}


@dataclasses.dataclass(frozen=True)
class Recipe:
    """What is trained, on what: enough to do it again. `settings` is the learner's own dataclass."""

    game: trees.Game
    learner: str
    window: int  # steps that information states look back
    settings: Any

    def to_json(self) -> dict[str, Any]:
        settings = dataclasses.asdict(self.settings)
        return {
            "game": self.game._asdict(),
            "learner": self.learner,
            "window": self.window,
            "settings": {name: list(v) if isinstance(v, tuple) else v for name, v in settings.items()},
        }


def from_json(found: Mapping[str, Any]) -> Recipe:
    settings = {name: tuple(v) if isinstance(v, list) else v for name, v in found["settings"].items()}
    kind = _module(found["learner"]).Settings
    return Recipe(trees.Game(**found["game"]), str(found["learner"]), int(found["window"]), kind(**settings))


def configured(name: str, changes: Mapping[str, str]) -> Any:
    """Settings of a learner, some of them given as texts.

    >>> configured("self-play", {"games": "64", "widths": "32,32"}).widths
    (32, 32)
    """
    kind = _module(name).Settings
    hints = typing.get_type_hints(kind)
    values: dict[str, Any] = {}
    for key, text in changes.items():
        if key not in hints:
            raise WrongRecipe(f"{name} has no setting {key!r}; there are {', '.join(hints)}")
        try:
            values[key] = _value(text, hints[key])
        except ValueError:
            raise WrongRecipe(f"{key} of {name} is {_TAKES[_kind_of(hints[key])]}, not {text!r}") from None
    return kind(**values)


def defaults(name: str) -> dict[str, Any]:
    return dataclasses.asdict(_module(name).Settings())


def made(recipe: Recipe, net: network.PropNet, task: problems.Problem | None) -> learners.Learner:
    """`task` is the game unrolled; None if that was not tried, or it is too large."""
    entry = ENTRIES[recipe.learner]
    playing = env.Env(net, payoffs.of(net, recipe.game.payoff), max_steps=room(net))
    encoder = encoders.Encoder(playing, recipe.window)
    module = _module(recipe.learner)
    if not entry.needs_tree:
        found: learners.Learner = module.make(encoder, recipe.settings)
        return found
    if task is None:
        raise WrongRecipe(f"{recipe.learner} needs a game that can be unrolled, which {net.name} cannot; use self-play")
    of_tree: learners.Learner = module.make(encoder, recipe.settings, task)
    return of_tree


def supervised_of(folder: pathlib.Path, task: problems.Problem) -> tuple["supervised.Supervised", Any]:
    """Networks of values for this very game, as they were left."""
    from gdlx.nets import checkpoints, supervised

    recipe, _, seed = checkpoints.read_recipe(folder)
    if recipe.learner != "supervised":
        raise WrongRecipe(
            f"{folder} was trained by {recipe.learner}, whose networks tell no values of ranges; train one with "
            "--learner supervised"
        )
    if recipe.game != task.game._replace(goal_conflict=recipe.game.goal_conflict):
        raise WrongRecipe(f"{folder} was trained for {recipe.game.spec}, not for {task.game.spec} as it is read here")
    learner = supervised.make(None, recipe.settings, task)
    state, _, _ = checkpoints.read_state(folder, jax.eval_shape(learner.init, jax.random.key(seed)))
    return learner, state


def room(net: network.PropNet) -> int:
    """For joint moves of a match."""
    return table_process.room_for_steps(net, seed=0)


def usual_window(net: network.PropNet, task: problems.Problem | None) -> int:
    """The whole of every match, or as long as random ones last at most where that is all there is to see."""
    if task is not None:
        return max(1, len(task.tree.counts.nodes) - 1)
    return max(1, -(-room(net) // table_process.SPARE))


def _module(name: str) -> Any:
    if name not in ENTRIES:
        raise WrongRecipe(f"there is no learner {name!r}; there are {', '.join(ENTRIES)}")
    return importlib.import_module(f"gdlx.nets.{ENTRIES[name].module}")


_TAKES = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    tuple: "sizes of layers, as 128,128",
    str: "a name",
}


def _kind_of(hint: Any) -> type:
    origin = typing.get_origin(hint)
    if origin is typing.Literal:
        return str
    found: type = origin or hint
    return found


def _value(text: str, hint: Any) -> Any:
    kind = _kind_of(hint)
    if kind is tuple:
        return tuple(int(part) for part in text.replace("x", ",").split(","))
    if kind is bool:
        if text not in ("true", "false"):
            raise ValueError(text)
        return text == "true"
    if typing.get_origin(hint) is typing.Literal and text not in typing.get_args(hint):
        raise ValueError(text)
    value = kind(text)
    if kind is float and not math.isfinite(value):
        raise ValueError(text)
    return value
