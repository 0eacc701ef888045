"""Runs found beneath folders. What cannot be read is left out, with the reason."""

import csv
import io
import itertools
import json
import math
import pathlib
import typing
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from gdlx.envs import payoffs
from gdlx.envs.trees import unroll
from gdlx.experiments.sweeps import store
from gdlx.propnet.common import errors
from gdlx.solvers.runs import driver, result_folder

_KINDS = 3  # columns of metrics.csv for each player


class RunRecord(NamedTuple):
    """What a result folder holds, but for its policies. Axes: P players."""

    folder: pathlib.Path
    config: result_folder.Config
    raw_config: dict[str, Any]  # config.json as it stands
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
        """Exploitability, or the largest improvement of any player; None where it is not known."""
        return error_of(self.last)


class SkippedFolder(NamedTuple):
    folder: pathlib.Path
    reason: str  # a sentence that names it


class GatheredRuns(NamedTuple):
    runs: tuple[RunRecord, ...]
    skipped: tuple[SkippedFolder, ...]


def error_of(metrics: driver.Metrics) -> float | None:
    return metrics.error if metrics.improvements else None


def gather_runs(folders: Iterable[pathlib.Path]) -> GatheredRuns:
    """All runs in or beneath the folders, each once, sorted."""
    runs: list[RunRecord] = []
    left_out: list[SkippedFolder] = []
    seen: set[pathlib.Path] = set()
    for given in folders:
        beneath = list(_result_folders(given))
        if not beneath:
            what = "holds no result, nor does a folder beneath it" if given.is_dir() else "is no folder"
            left_out.append(SkippedFolder(given, f"{given} {what}"))
        for folder in beneath:
            if (place := folder.resolve()) in seen:
                continue
            seen.add(place)
            if (why := _skip_reason(folder, given)) is not None:
                left_out.append(SkippedFolder(folder, why))
                continue
            try:
                runs.append(_read(folder))
            except errors.UserError as error:
                left_out.append(SkippedFolder(folder, str(error)))
            except (OSError, OverflowError, RecursionError) as error:
                left_out.append(SkippedFolder(folder, f"{folder} cannot be read: {error}"))
    return GatheredRuns(tuple(runs), tuple(left_out))


def _result_folders(given: pathlib.Path) -> Iterator[pathlib.Path]:
    marked = {*given.rglob(result_folder.CONFIG), *given.rglob(store.FAILED)}
    return iter(sorted({path.parent for path in marked if not store.is_partial(path.parent)}))


def _skip_reason(folder: pathlib.Path, given: pathlib.Path) -> str | None:
    """Cells of sweeps that are no results."""
    failed = folder / store.FAILED
    if failed.exists():
        return f"{folder} failed: {failed.read_text(encoding='utf-8', errors='replace').strip()}"
    within = folder.relative_to(given).parts
    for part, why in ((store.UNFINISHED, "has not finished"), (store.DAMAGED, "was damaged, and has run again")):
        if part in within:
            return f"{folder} {why}"
    return None


def _read(folder: pathlib.Path) -> RunRecord:
    config = result_folder.read_config(folder)
    _require_kinds(folder, config)
    given = json.loads((folder / result_folder.CONFIG).read_text(encoding="utf-8"))
    players = _players(folder)
    metrics = tuple(result_folder.read_metrics(folder, len(players)))
    if not metrics:
        raise result_folder.ResultError(f"{folder} has no metrics yet: the run was stopped before it wrote any")
    for row in metrics:
        _require_possible(folder, row, len(players))
    return RunRecord(folder, config, given, players, metrics, _has_policy(folder))


def _require_kinds(folder: pathlib.Path, config: result_folder.Config) -> None:
    """What is compared and looked up must be of its kind; what is only shown may be anything."""
    game = config.game
    right = (
        isinstance(game.spec, str) and "\0" not in game.spec and game.payoff in typing.get_args(payoffs.PayoffMode),
        game.goal_conflict in typing.get_args(unroll.GoalConflictMode) and game.gdl in (None, 1, 2),
        isinstance(game.fold_case, bool) and isinstance(config.algorithm.seed, int | None),
    )
    if not all(right):
        raise result_folder.ResultError(
            f"{folder / result_folder.CONFIG} cannot be read: its game or its seed is of no known kind"
        )


def _players(folder: pathlib.Path) -> tuple[str, ...]:
    """Their names, from the head of the metrics: the game itself may be gone."""
    path = folder / result_folder.METRICS
    try:
        text = path.read_text(encoding="utf-8")
        head, *rows = csv.reader(io.StringIO(text, newline="")) if text else [[]]
    except FileNotFoundError:
        raise result_folder.ResultError(
            f"{folder} has no {path.name}: the run was stopped before it wrote one"
        ) from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise result_folder.ResultError(f"{path} cannot be read: {error}") from None
    first = result_folder.first_player_column(head)
    count, rest = divmod(len(head) - first, _KINDS)
    if rest or count < 1:
        raise result_folder.ResultError(f"{path} cannot be read: its columns are {', '.join(head)[:200]}")
    if not text.endswith("\n") or any(len(row) != len(head) for row in rows):
        raise result_folder.ResultError(f"{path} cannot be read: a row is only a part of one")
    return tuple(name.removeprefix("value_") for name in head[first : first + count])


def _require_possible(folder: pathlib.Path, row: driver.Metrics, players: int) -> None:
    parts = (row.value, row.improvements, row.value_error)
    numbers = (float(row.iterations), row.seconds, *itertools.chain(*parts))
    is_whole = all(len(part) in (0, players) for part in parts)
    if not (is_whole and all(map(math.isfinite, numbers)) and row.iterations >= 0 and row.seconds >= 0):
        raise result_folder.ResultError(f"{folder / result_folder.METRICS} cannot be read: it holds {numbers}")


def _has_policy(folder: pathlib.Path) -> bool:
    """None is there while a run goes on."""
    path = folder / result_folder.POLICY
    if path.exists() and not store.is_intact_npz(path):
        raise result_folder.ResultError(f"{path} cannot be read: it is no .npz file, or a damaged one")
    return path.exists()
