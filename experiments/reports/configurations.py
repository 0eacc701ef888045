"""Groups runs that differ only in their seed into configurations, named by the settings that are not the default."""

import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from gdlx.envs import game_spec
from gdlx.experiments.reports import gather
from gdlx.solvers import algorithms
from gdlx.solvers.exact import regret_matching
from gdlx.solvers.runs import result_folder

_EXCLUDED_KEYS = {"format", "game", "digest", "versions", "algorithm", "together"}  # shown elsewhere, or without effect
_SCHEDULES = ("alpha_change", "beta_change", "gamma_change")
_IN_WORDS = {
    ("alternating", False): "simultaneous",
    ("states", True): "on states",
    ("x64", True): "double precision",
}


class Configuration(NamedTuple):
    algorithm: str
    changes: tuple[str, ...]  # settings that are not the defaults of the algorithm
    runs: tuple[gather.RunRecord, ...]  # the longest of each seed; the best first
    repeats: tuple[gather.RunRecord, ...]  # shorter runs of the same seeds

    @property
    def name(self) -> str:
        return f"{self.algorithm} ({', '.join(self.changes)})" if self.changes else self.algorithm

    @property
    def error(self) -> float | None:
        """The median of the runs."""
        errors = [run.error for run in self.runs if run.error is not None]
        return statistics.median(errors) if errors else None

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(sorted(run.seed for run in self.runs if run.seed is not None))


class ComparisonKey(NamedTuple):
    """What runs must have in common to be comparable."""

    game: game_spec.GameSpec
    players: tuple[str, ...]  # a rulesheet of the same name may have changed
    is_restricted: bool  # whether an opponent follows a model, which makes it another game


def group_comparable(runs: Iterable[gather.RunRecord]) -> dict[ComparisonKey, list[gather.RunRecord]]:
    groups: dict[ComparisonKey, list[gather.RunRecord]] = {}
    for run in runs:
        key = ComparisonKey(run.config.game, run.players, run.config.opponent_model is not None)
        groups.setdefault(key, []).append(run)
    return groups


def group_by_configuration(runs: Iterable[gather.RunRecord]) -> list[Configuration]:
    """The configurations of the runs of a game: the least exploitable first, those without measurements last."""
    groups: dict[str, list[gather.RunRecord]] = {}
    for run in runs:
        groups.setdefault(_key(run), []).append(run)
    return sorted(map(_configuration, groups.values()), key=_rank)


def _configuration(same: Sequence[gather.RunRecord]) -> Configuration:
    longest: dict[int | None, gather.RunRecord] = {}
    for run in sorted(same, key=lambda run: -run.last.iterations):
        longest.setdefault(run.seed, run)
    repeats = tuple(run for run in same if run is not longest[run.seed])
    config = same[0].config
    return Configuration(
        config.algorithm.name, changed_settings(config), tuple(sorted(longest.values(), key=_rank)), repeats
    )


def best_run_per_algorithm(configurations: Sequence[Configuration]) -> list[gather.RunRecord]:
    """The best run of each algorithm that has policies."""
    runs = [run for configuration in configurations for run in configuration.runs if run.has_policy]
    best: dict[str, gather.RunRecord] = {}
    for run in sorted(runs, key=_rank):
        best.setdefault(run.config.algorithm.name, run)
    return list(best.values())


def _rank(of: Configuration | gather.RunRecord) -> float:
    return float("inf") if of.error is None else of.error


def _key(run: gather.RunRecord) -> str:
    return json.dumps([run.config.algorithm.name, _effective_settings(run.config)], sort_keys=True)


def changed_settings(config: result_folder.Config) -> tuple[str, ...]:
    """The settings that are not the defaults of the algorithm, in words.

    >>> from gdlx.solvers import algorithms
    >>> config = result_folder.Config(game_spec.GameSpec("g"), "", algorithms.find("dcfr"), x64=True)
    >>> changed_settings(config)
    ('double precision',)
    >>> on_states = algorithms.on_states(algorithms.find("dcfr"))
    >>> changed_settings(result_folder.Config(game_spec.GameSpec("g"), "", on_states, x64=False))
    ('on states',)
    """
    usual = _effective_settings(
        result_folder.Config(config.game, config.digest, algorithms.find(config.algorithm.name), x64=False)
    )
    now = _effective_settings(config)
    return tuple(_shown(name, value) for name, value in now.items() if value != usual.get(name))


def _shown(name: str, value: Any) -> str:
    if isinstance(value, bool) and (name, value) in _IN_WORDS:
        return _IN_WORDS[name, value]
    return f"{name.replace('_', ' ')} {f'{value:g}' if isinstance(value, float) else value}"


def _effective_settings(config: result_folder.Config) -> dict[str, Any]:
    """All settings that have an effect, except the seed, by name."""
    settings = _flatten({name: value for name, value in config.to_json().items() if name not in _EXCLUDED_KEYS})
    if not any(settings.get(name) for name in _SCHEDULES):
        settings.pop("horizon", None)
    settings.pop("seed", None)
    return settings


def _flatten(given: Mapping[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in given.items():
        if isinstance(value, Mapping):
            # Names that are ambiguous without that of their group: both kinds of settings have beta and exploration.
            ambiguous = {"sampling": regret_matching.Settings._fields, "modelled": ("player",)}.get(name, ())
            flat |= {f"{name} {key}" if key in ambiguous else key: part for key, part in _flatten(value).items()}
        else:
            flat[name] = value
    return flat
