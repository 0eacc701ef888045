"""Learners by name, with their settings as texts: what a checkpoint notes, and what `gdlx train` is given."""

import dataclasses
import importlib
import typing
from collections.abc import Mapping
from typing import Any, NamedTuple

from gdlx.envs import env, game_facts, game_spec
from gdlx.nets.learners import protocol
from gdlx.nets.models import encoders
from gdlx.propnet.circuits import propnet
from gdlx.propnet.common import errors, options
from gdlx.solvers import tasks


class TrainConfigError(errors.UserError, ValueError):
    """A learner or a setting that there is not."""


class LearnerEntry(NamedTuple):
    """`make` of the module takes an Encoder, Settings, and the game unrolled where `needs_tree`."""

    module: str  # of gdlx.nets
    needs_tree: bool
    about: str


ENTRIES: Mapping[str, LearnerEntry] = {
    "self-play": LearnerEntry("self_play", False, "games in lockstep, with a search in each of their states"),
    "deep-cfr": LearnerEntry("deep_cfr", True, "Deep CFR (Brown et al. 2019), of games that can be unrolled"),
    "supervised": LearnerEntry("supervised", True, "exact values and policies of solved games: the yardstick"),
}


@dataclasses.dataclass(frozen=True)
class TrainConfig:
    """What is trained, on what: enough to do it again. `settings` is the learner's own dataclass."""

    game: game_spec.GameSpec
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


def config_from_json(found: Mapping[str, Any]) -> TrainConfig:
    learner = str(found["learner"])
    settings = make_settings(learner, {name: options.format_value(value) for name, value in found["settings"].items()})
    return TrainConfig(game_spec.GameSpec(**found["game"]), learner, int(found["window"]), settings)


def make_settings(name: str, changes: Mapping[str, str]) -> Any:
    """Settings of a learner, some of them given as texts.

    >>> make_settings("self-play", {"games": "64", "widths": "32,32"}).widths
    (32, 32)
    """
    kind = _module(name).Settings
    hints = typing.get_type_hints(kind)
    values: dict[str, Any] = {}
    for key, text in changes.items():
        if key not in hints:
            raise TrainConfigError(f"{name} has no setting {key!r}; there are {', '.join(hints)}")
        try:
            values[key] = options.parse_value(text, hints[key])
        except ValueError:
            raise TrainConfigError(f"{key} of {name} takes {options.describe_type(hints[key])}, not {text!r}") from None
    return kind(**values)


def make_learner(recipe: TrainConfig, net: propnet.PropNet, task: tasks.TreeTask | None) -> protocol.Learner:
    """`task` is the game unrolled; None if that was not tried, or it is too large."""
    playing = env.Env(net, game_facts.probe(net).payoffs(recipe.game.payoff), max_steps=step_capacity(net))
    encoder = encoders.Encoder(playing, recipe.window)
    module = _module(recipe.learner)
    if not find_entry(recipe.learner).needs_tree:
        found: protocol.Learner = module.make(encoder, recipe.settings)
        return found
    if task is None:
        raise TrainConfigError(
            f"{recipe.learner} needs a game that can be unrolled, which {net.name} cannot; use self-play"
        )
    of_tree: protocol.Learner = module.make(encoder, recipe.settings, task)
    return of_tree


def step_capacity(net: propnet.PropNet) -> int:
    """For joint moves of a match."""
    return game_facts.probe(net).step_capacity


def default_window(net: propnet.PropNet, task: tasks.TreeTask | None) -> int:
    """The whole of every match, or as long as random ones last at most where that is all there is to see."""
    if task is not None:
        return max(1, len(task.tree.counts.nodes) - 1)
    return game_facts.probe(net).longest_match


def find_entry(name: str) -> LearnerEntry:
    if name not in ENTRIES:
        raise TrainConfigError(f"there is no learner {name!r}; there are {', '.join(ENTRIES)}")
    return ENTRIES[name]


def _module(name: str) -> Any:
    return importlib.import_module(f"gdlx.nets.learners.{find_entry(name).module}")
