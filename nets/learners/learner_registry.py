"""Learners by name, with their settings as text: as a checkpoint stores them and `gdlx train` takes them."""

import dataclasses
import importlib
import typing
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

from gdlx.envs import env, game_facts, game_spec
from gdlx.nets.learners import protocol
from gdlx.nets.models import encoders
from gdlx.propnet.circuits import propnet
from gdlx.propnet.common import errors, options
from gdlx.propnet.syntax import diagnostics
from gdlx.solvers import tasks
from gdlx.solvers.runs import result_folder


class TrainConfigError(errors.UserError, ValueError):
    """An unknown learner or setting, or a value that a setting does not take."""


class LearnerEntry(NamedTuple):
    """`make` of the module takes an Encoder, Settings and, if `needs_tree`, the task of the unrolled game."""

    module: str  # of gdlx.nets.learners
    needs_tree: bool
    about: str


ENTRIES: Mapping[str, LearnerEntry] = {
    "self-play": LearnerEntry("self_play", False, "vectorised games, with a search in each of their states"),
    "deep-cfr": LearnerEntry("deep_cfr", True, "Deep CFR (Brown et al. 2019), for games that can be unrolled"),
    "supervised": LearnerEntry("supervised", True, "exact values and policies of solved games: the baseline"),
}


@dataclasses.dataclass(frozen=True)
class TrainConfig:
    """Which learner trains on which game: enough to repeat the training.

    >>> TrainConfig(game_spec.GameSpec("kuhn_poker"), "self-play", 5, make_settings("self-play", {})).learner
    'self-play'
    """

    game: game_spec.GameSpec
    learner: str  # a name in ENTRIES
    window: int  # steps that information states look back
    settings: Any  # the `Settings` of the learner's module

    def to_json(self) -> dict[str, Any]:
        """Returns what `config_from_json` reads."""
        settings = dataclasses.asdict(self.settings)
        return {
            "game": self.game._asdict(),
            "learner": self.learner,
            "window": self.window,
            "settings": {name: list(v) if isinstance(v, tuple) else v for name, v in settings.items()},
        }


def config_from_json(fields: Mapping[str, Any]) -> TrainConfig:
    """Reads what `TrainConfig.to_json` returned, also with former names of settings."""
    learner = str(fields["learner"])
    changes = {name: options.format_value(value) for name, value in fields["settings"].items()}
    settings = make_settings(learner, _current_names(learner, changes))
    return TrainConfig(result_folder.parse_game(fields["game"]), learner, int(fields["window"]), settings)


def make_settings(name: str, changes: Mapping[str, str]) -> Any:
    """Returns the settings of a learner, some of them from text.

    Args:
      name: of the learner, e.g. "self-play".
      changes: values by setting, as text. Former names of settings are accepted, with a FutureWarning.

    Returns:
      The `Settings` of the learner's module, with its defaults for all other settings.

    Raises:
      TrainConfigError: unknown learner or setting, or text that the setting cannot be read from.

    >>> make_settings("self-play", {"games": "64", "widths": "32,32"}).widths
    (32, 32)
    """
    kind = _module(name).Settings
    hints = typing.get_type_hints(kind)
    for old, new in _former_names(name).items():
        if old in changes:
            warnings.warn(f"the setting {old} of {name} is now called {new}", FutureWarning, stacklevel=2)
    values: dict[str, Any] = {}
    for key, text in _current_names(name, changes).items():
        if key not in hints:
            raise TrainConfigError(
                f"{name} has no setting {diagnostics.shorten(repr(key))}; there are {', '.join(hints)}"
            )
        try:
            values[key] = options.parse_value(text, hints[key])
        except ValueError:
            takes, shown = options.describe_type(hints[key]), diagnostics.shorten(repr(text))
            raise TrainConfigError(f"{key} of {name} takes {takes}, not {shown}") from None
    return kind(**values)


def _current_names(learner: str, changes: Mapping[str, str]) -> dict[str, str]:
    """The same changes under the names that settings have now."""
    former = _former_names(learner)
    for old, new in former.items():
        if old in changes and new in changes:
            raise TrainConfigError(f"{old} and {new} of {learner} are the same setting; set only {new}")
    return {former.get(name, name): text for name, text in changes.items()}


def _former_names(learner: str) -> Mapping[str, str]:
    return getattr(_module(learner), "RENAMED_SETTINGS", {})


def make_learner(config: TrainConfig, propnet: propnet.PropNet, task: tasks.TreeTask | None) -> protocol.Learner:
    """Builds the learner that a config describes.

    Args:
      config: the config.
      propnet: the compiled game.
      task: the unrolled game; None if it was not unrolled, or is too large. Only some learners need it.

    Returns:
      The learner, without state: see `Learner.init`.

    Raises:
      TrainConfigError: the learner is unknown, or needs a `task` and there is none.

    >>> import gdlx
    >>> config = TrainConfig(game_spec.GameSpec("kuhn_poker"), "self-play", 5, make_settings("self-play", {}))
    >>> make_learner(config, gdlx.compile("kuhn_poker"), None)
    SelfPlay(game='kuhn_poker', games=512, depth=1, widths=(128, 128), kind='residual')
    """
    game_env = env.Env(propnet, game_facts.probe(propnet).payoffs(config.game.payoff), max_steps=step_capacity(propnet))
    encoder = encoders.Encoder(game_env, config.window)
    module = _module(config.learner)
    learner: protocol.Learner
    if not find_entry(config.learner).needs_tree:
        learner = module.make(encoder, config.settings)
        return learner
    if task is None:
        raise TrainConfigError(
            f"{config.learner} needs a game that can be unrolled, and {propnet.name} cannot be; use self-play"
        )
    learner = module.make(encoder, config.settings, task)
    return learner


def step_capacity(propnet: propnet.PropNet) -> int:
    """The largest number of joint actions of a match."""
    return game_facts.probe(propnet).step_capacity


def default_window(propnet: propnet.PropNet, task: tasks.TreeTask | None) -> int:
    """The length of the longest match: exact for an unrolled game, else that of random play."""
    if task is not None:
        return max(1, len(task.tree.counts.nodes) - 1)
    return game_facts.probe(propnet).longest_match


def find_entry(name: str) -> LearnerEntry:
    """The entry of a learner; TrainConfigError if there is none."""
    if name not in ENTRIES:
        raise TrainConfigError(f"there is no learner {name!r}; there are {', '.join(ENTRIES)}")
    return ENTRIES[name]


def _module(name: str) -> Any:
    return importlib.import_module(f"gdlx.nets.learners.{find_entry(name).module}")
