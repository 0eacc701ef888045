"""Reads matches, tournaments and trainings from their folders, for reports and for the list of results."""

import math
import pathlib
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from gdlx.envs import game_spec
from gdlx.propnet.common import bounded_files
from gdlx.solvers.runs import result_folder

Kind = Literal["solution", "match", "tournament", "training"]


class Mean(NamedTuple):
    """A mean with half of its 95 % interval, if that is known."""

    mean: float
    half_width: float | None

    def __str__(self) -> str:
        return f"{self.mean:.4g}" if self.half_width is None else f"{self.mean:.4g} ± {self.half_width:.2g}"


class Standing(NamedTuple):
    """The score of an agent over all roles."""

    agent: str
    games: int
    payoff: Mean
    goal: Mean
    incidents: int


class ContestRecord(NamedTuple):
    """A match or a tournament."""

    folder: pathlib.Path
    kind: Literal["match", "tournament"]
    game: game_spec.GameSpec
    digest: str  # of the rules
    agents: tuple[str, ...]  # in the order of the arguments
    games: int  # that have ended
    seed: int
    standings: tuple[Standing, ...]  # the best first
    table: Mapping[str, Mapping[str, Mean | None]]  # payoff of an agent against another; empty for a match


class TrainingRecord(NamedTuple):
    """Networks of `gdlx train`."""

    folder: pathlib.Path
    game: game_spec.GameSpec
    digest: str  # of the rules
    learner: str
    seed: int
    iterations: int
    seconds: float
    measured: Mapping[str, float]  # the last strength that was measured: columns of metrics.csv
    exploitability: tuple[tuple[int, float], ...]  # by iteration, where it was measured


def kind_of(folder: pathlib.Path) -> Kind:
    """What a folder with a config.json holds; if it does not say, a solution, whose reader says what is wrong."""
    try:
        kind = result_folder.read_config_json(folder).get("kind")
    except (OSError, bounded_files.FileError):
        return "solution"
    return kind if kind in ("match", "tournament", "training") else "solution"


def read_contest(folder: pathlib.Path) -> ContestRecord:
    """Reads a match or a tournament.

    Raises:
      ResultError: a file is damaged, or no game has been played.
    """
    from gdlx.players.matches import records

    config = records.read_config(folder)
    path = folder / records.RESULT
    try:
        with result_folder.explain_damage(path):
            result = bounded_files.read_json(path)
            listed = result["agents" if config.kind == "match" else "standings"]
            standings = tuple(sorted(map(_standing, listed), key=lambda one: -one.payoff.mean))
            table = {
                str(row): {str(column): None if cell is None else _mean(cell) for column, cell in cells.items()}
                for row, cells in (result.get("table") or {}).items()
            }
            games = sum(int(one["games"]) for one in (result["matches"] if config.kind == "tournament" else [result]))
    except FileNotFoundError:
        raise result_folder.ResultError(f"{folder} has no {path.name}: no game has ended") from None
    if not standings:
        raise result_folder.ResultError(f"{folder} has no scores: no game has ended")
    return ContestRecord(
        folder, config.kind, config.game, config.digest, config.agents, games, config.settings.seed, standings, table
    )


def _standing(given: Mapping[str, Any]) -> Standing:
    incidents, games = int(given["incidents"]), int(given["games"])
    if games < 0 or incidents < 0:
        raise ValueError("a count is negative")
    return Standing(str(given["agent"]), games, _mean(given["payoff"]), _mean(given["goal"]), incidents)


def _mean(given: Mapping[str, Any]) -> Mean:
    mean, interval = float(given["mean"]), given["interval"]
    half = None if interval is None else (float(interval[1]) - float(interval[0])) / 2
    if not math.isfinite(mean) or (half is not None and not 0 <= half < math.inf):
        raise ValueError("a mean is not a number")
    return Mean(mean, half)


def read_training(folder: pathlib.Path) -> TrainingRecord:
    """Reads a training.

    Raises:
      ResultError: a file is damaged, or nothing has been trained.
    """
    from gdlx.nets import checkpoints

    config, digest, seed = checkpoints.read_train_config(folder)
    rows = checkpoints.read_metrics(folder)
    if not rows:
        raise result_folder.ResultError(f"{folder} has no metrics yet: the training was stopped before it wrote any")
    if not all(math.isfinite(number) for row in rows for number in row.values()):
        raise result_folder.ResultError(f"{folder / result_folder.METRICS} cannot be read: a number is not finite")
    last = rows[-1]
    strength = {
        name: value
        for row in rows
        for name, value in row.items()
        if name == "exploitability" or name.startswith(("goal_", "improvement_"))
    }
    errors = tuple((int(row["iteration"]), row["exploitability"]) for row in rows if "exploitability" in row)
    return TrainingRecord(
        folder,
        config.game,
        digest,
        config.learner,
        seed,
        int(last["iteration"]),
        float(last.get("seconds", 0.0)),
        strength,
        errors,
    )
