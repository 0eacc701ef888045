"""Finds results in folders and their subfolders; those that cannot be read are skipped, with the reason."""

import itertools
import math
import pathlib
import typing
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from gdlx.envs import payoffs
from gdlx.experiments.reports import contest_records
from gdlx.experiments.sweeps import store
from gdlx.propnet.common import bounded_files, errors
from gdlx.propnet.io import array_files
from gdlx.solvers.runs import driver, result_folder

_KINDS = 3  # columns of metrics.csv for each player


class RunRecord(NamedTuple):
    """The contents of a result folder, without its policies. Axes: P players."""

    folder: pathlib.Path
    config: result_folder.Config
    raw_config: dict[str, Any]  # the contents of config.json
    players: tuple[str, ...]  # [P]
    metrics: tuple[driver.Metrics, ...]
    has_policy: bool

    @property
    def last(self) -> driver.Metrics:
        return self.metrics[-1]

    @property
    def seed(self) -> int | None:
        return self.config.algorithm.seed

    @property
    def error(self) -> float | None:
        """Exploitability, or the largest improvement of any player; None if it was not measured."""
        return error_of(self.last)


class SkippedFolder(NamedTuple):
    folder: pathlib.Path
    reason: str  # a sentence that names it


class GatheredRuns(NamedTuple):
    """What was found. Matches of a tournament are not listed beside it."""

    runs: tuple[RunRecord, ...]
    skipped: tuple[SkippedFolder, ...]
    contests: tuple[contest_records.ContestRecord, ...] = ()  # matches and tournaments
    trainings: tuple[contest_records.TrainingRecord, ...] = ()

    @property
    def others(self) -> list[contest_records.ContestRecord | contest_records.TrainingRecord]:
        """What is not a solution."""
        return [*self.contests, *self.trainings]

    @property
    def total(self) -> int:
        """Results of all kinds."""
        return len(self.runs) + len(self.others)


def error_of(metrics: driver.Metrics) -> float | None:
    return metrics.error if metrics.improvements else None


def gather_runs(folders: Iterable[pathlib.Path]) -> GatheredRuns:
    """Returns all runs, matches, tournaments and trainings in the folders and their subfolders, each once, sorted."""
    runs: list[RunRecord] = []
    played: list[contest_records.ContestRecord] = []
    trained: list[contest_records.TrainingRecord] = []
    skipped: list[SkippedFolder] = []
    seen: set[pathlib.Path] = set()
    for root in folders:
        result_folders = list(_result_folders(root))
        if not result_folders:
            what = "holds no result, nor do its subfolders" if root.is_dir() else "is not a folder"
            skipped.append(SkippedFolder(root, f"{root} {what}"))
        for folder in result_folders:
            if (place := folder.resolve()) in seen:
                continue
            seen.add(place)
            if (reason := _skip_reason(folder, root)) is not None:
                skipped.append(SkippedFolder(folder, reason))
                continue
            try:
                match contest_records.kind_of(folder):
                    case "training":
                        trained.append(contest_records.read_training(folder))
                    case "solution":
                        runs.append(_read(folder))
                    case _:
                        played.append(contest_records.read_contest(folder))
            except errors.UserError as error:
                skipped.append(SkippedFolder(folder, str(error)))
            except (OSError, OverflowError, RecursionError) as error:
                skipped.append(SkippedFolder(folder, f"{folder} cannot be read: {error}"))
    tournaments = {one.folder for one in played if one.kind == "tournament"}
    alone = tuple(one for one in played if one.folder.parent not in tournaments)
    return GatheredRuns(tuple(runs), tuple(skipped), alone, tuple(trained))


def _result_folders(root: pathlib.Path) -> Iterator[pathlib.Path]:
    marked = {*root.rglob(result_folder.CONFIG), *root.rglob(store.FAILED)}
    return iter(sorted({path.parent for path in marked if not store.is_partial(path.parent)}))


def _skip_reason(folder: pathlib.Path, root: pathlib.Path) -> str | None:
    """Why a cell of a sweep is not a result, or None if it is."""
    failed = folder / store.FAILED
    if failed.exists():
        return f"{folder} failed: {store.read_reason(failed)}"
    within = folder.relative_to(root).parts
    for part, reason in ((store.UNFINISHED, "has not finished"), (store.DAMAGED, "was damaged, and has run again")):
        if part in within:
            return f"{folder} {reason}"
    return None


def _read(folder: pathlib.Path) -> RunRecord:
    config = result_folder.read_config(folder)
    _require_kinds(folder, config)
    raw_config = result_folder.read_config_json(folder)
    players = _players(folder)
    metrics = tuple(result_folder.read_metrics(folder, len(players)))
    if not metrics:
        raise result_folder.ResultError(f"{folder} has no metrics yet: the run was stopped before it wrote any")
    for row in metrics:
        _require_possible(folder, row, len(players))
    return RunRecord(folder, config, raw_config, players, metrics, _has_policy(folder))


def _require_kinds(folder: pathlib.Path, config: result_folder.Config) -> None:
    """Checks the types of the fields that are compared and looked up; those that are only shown may be anything."""
    is_valid = config.game.payoff in typing.get_args(payoffs.PayoffMode)
    if not (is_valid and isinstance(config.algorithm.seed, int | None)):
        raise result_folder.ResultError(
            f"{folder / result_folder.CONFIG} cannot be read: its game or its seed is not valid"
        )


def _players(folder: pathlib.Path) -> tuple[str, ...]:
    """Names of players, from the header of the metrics: the game itself may no longer exist."""
    path = folder / result_folder.METRICS
    try:
        with result_folder.explain_damage(path):
            text = bounded_files.read_text(path)
            head, *rows = bounded_files.parse_csv(text, path) or [[]]
    except FileNotFoundError:
        raise result_folder.ResultError(
            f"{folder} has no {path.name}: the run was stopped before it wrote one"
        ) from None
    first = result_folder.first_player_column(head)
    count, rest = divmod(len(head) - first, _KINDS)
    if rest or count < 1:
        raise result_folder.ResultError(f"{path} cannot be read: its columns are {', '.join(head)[:200]}")
    if not text.endswith("\n") or any(len(row) != len(head) for row in rows):
        raise result_folder.ResultError(f"{path} cannot be read: a row is incomplete")
    return tuple(name.removeprefix("value_") for name in head[first : first + count])


def _require_possible(folder: pathlib.Path, row: driver.Metrics, players: int) -> None:
    parts = (row.value, row.improvements, row.value_error)
    numbers = (float(row.iterations), row.seconds, *itertools.chain(*parts))
    is_complete = all(len(part) in (0, players) for part in parts)
    if not (is_complete and all(map(math.isfinite, numbers)) and row.iterations >= 0 and row.seconds >= 0):
        raise result_folder.ResultError(f"{folder / result_folder.METRICS} cannot be read: it holds {numbers}")


def _has_policy(folder: pathlib.Path) -> bool:
    """Whether there is a policy; a run writes it at its end."""
    path = folder / result_folder.POLICY
    if path.exists() and not array_files.is_intact(path):
        raise result_folder.ResultError(f"{path} cannot be read: it is not an .npz file, or it is damaged")
    return path.exists()
