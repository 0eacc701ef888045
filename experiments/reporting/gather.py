"""Runs found beneath folders. What cannot be read is left out, with the reason."""

import csv
import json
import math
import pathlib
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from gdlx.propnet import errors
from gdlx.solvers import driver, results

_BEFORE, _KINDS = 5, 3  # columns of metrics.csv before those of players, and how many there are of each player


class Run(NamedTuple):
    """What a result folder holds, but for its policies. Axes: P players."""

    folder: pathlib.Path
    config: results.Config
    given: dict[str, Any]  # config.json as it stands
    players: tuple[str, ...]  # [P]
    metrics: tuple[driver.Metrics, ...]
    has_policy: bool

    @property
    def last(self) -> driver.Metrics:
        return self.metrics[-1]

    @property
    def seed(self) -> int | None:
        return None if self.config.algorithm.sampling is None else self.config.algorithm.sampling.seed

    @property
    def error(self) -> float | None:
        """Exploitability, or the largest gain of any player; None where it is not known."""
        return error_of(self.last)


class LeftOut(NamedTuple):
    folder: pathlib.Path
    why: str


class Found(NamedTuple):
    runs: tuple[Run, ...]
    left_out: tuple[LeftOut, ...]


def error_of(metrics: driver.Metrics) -> float | None:
    return metrics.error if metrics.gain else None


def gather(folders: Iterable[pathlib.Path]) -> Found:
    """All runs in or beneath the folders, each once, sorted."""
    runs: list[Run] = []
    left_out: list[LeftOut] = []
    seen: set[pathlib.Path] = set()
    for given in folders:
        beneath = list(_result_folders(given))
        if not beneath:
            what = "there is no result in it or beneath it" if given.is_dir() else "there is no such folder"
            left_out.append(LeftOut(given, what))
        for folder in beneath:
            if (place := folder.resolve()) in seen:
                continue
            seen.add(place)
            try:
                runs.append(_read(folder))
            except (errors.UserError, OSError, OverflowError, RecursionError) as error:
                left_out.append(LeftOut(folder, str(error)))
    return Found(tuple(runs), tuple(left_out))


def _result_folders(given: pathlib.Path) -> Iterator[pathlib.Path]:
    return (config.parent for config in sorted(given.rglob(results.CONFIG)))


def _read(folder: pathlib.Path) -> Run:
    config = results.read_config(folder)
    _require_kinds(folder, config)
    given = json.loads((folder / results.CONFIG).read_text(encoding="utf-8"))
    players = _players(folder)
    metrics = tuple(results.read_metrics(folder, len(players)))
    if not metrics:
        raise results.ResultError(f"{folder} has no metrics yet: the run was stopped before it wrote any")
    for row in metrics:
        _require_finite(folder, row)
    return Run(folder, config, given, players, metrics, _has_policy(folder))


def _require_kinds(folder: pathlib.Path, config: results.Config) -> None:
    """What is compared and looked up must be of its kind; what is only shown may be anything."""
    spec, payoff, goal_conflict, gdl, fold_case = config.game
    right = all(isinstance(text, str) for text in (spec, payoff, goal_conflict)) and isinstance(fold_case, bool)
    sampling = config.algorithm.sampling
    if not (right and (gdl is None or isinstance(gdl, int)) and (sampling is None or isinstance(sampling.seed, int))):
        raise results.ResultError(f"{folder / results.CONFIG} cannot be read: its game or its seed is of no known kind")


def _players(folder: pathlib.Path) -> tuple[str, ...]:
    """Their names, from the head of the metrics: the game itself may be gone."""
    try:
        with open(folder / results.METRICS, encoding="utf-8", newline="") as file:
            head: Sequence[str] = next(csv.reader(file), [])
    except FileNotFoundError:
        raise results.ResultError(
            f"{folder} has no {results.METRICS}: the run was stopped before it wrote one"
        ) from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise results.ResultError(f"{folder / results.METRICS} cannot be read: {error}") from None
    count, rest = divmod(len(head) - _BEFORE, _KINDS)
    if rest or count < 1:
        raise results.ResultError(f"{folder / results.METRICS} cannot be read: its columns are {', '.join(head)[:200]}")
    return tuple(name.removeprefix("value_") for name in head[_BEFORE : _BEFORE + count])


def _require_finite(folder: pathlib.Path, row: driver.Metrics) -> None:
    numbers = (row.iterations, row.seconds, *row.value, *row.gain, *row.value_error)
    known = {len(part) for part in (row.value, row.gain, row.value_error)} - {0}
    if not all(map(math.isfinite, numbers)) or row.iterations < 0 or row.seconds < 0 or len(known) > 1:
        raise results.ResultError(f"{folder / results.METRICS} cannot be read: row {tuple(numbers)} is impossible")


def _has_policy(folder: pathlib.Path) -> bool:
    """None is there while a run goes on. Half a file has no list of contents, which is at the end."""
    path = folder / results.POLICY
    if path.exists() and not zipfile.is_zipfile(path):
        raise results.ResultError(f"{path} cannot be read: it is no .npz file, or only a part of one")
    return path.exists()
