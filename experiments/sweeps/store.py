"""The folder of a sweep:

    sweep.json       the manifest: format, versions, precision, the text of its file, digests of the games
    sweep.csv        every measurement of every finished cell, a row each
    cells/           a result folder for each finished cell, written atomically
    unfinished/      cells that run alone and were interrupted; they resume from there
    damaged/         folders of cells that could not be read; these cells have run again

A finished cell never runs again. A failed cell is finished too: `failed.txt` in its folder has the reason.
"""

import contextlib
import csv
import io
import itertools
import json
import os
import pathlib
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from gdlx.experiments.sweeps import config
from gdlx.propnet.common import atomic_files, bounded_files, errors
from gdlx.propnet.io import array_files
from gdlx.solvers import tabular_policies
from gdlx.solvers.runs import driver, result_folder

MANIFEST, TABLE, FAILED = "sweep.json", "sweep.csv", "failed.txt"
CELLS, UNFINISHED, DAMAGED = "cells", "unfinished", "damaged"
_SWEEP_FILES = (MANIFEST, TABLE, CELLS, UNFINISHED, DAMAGED, result_folder.LOCK)
_FORMAT = 1
_KINDS = ("value_error", "value", "improvement", "gain")  # columns with a player's name; `gain` in older files
_MAX_REASON = 2**16  # bytes of `failed.txt`
_PART = ".part"  # suffix of a folder that is being written


class FinishedCell(NamedTuple):
    """The results of a cell; `policies` is None if it failed."""

    cell: config.Cell
    config: result_folder.Config | None
    players: Sequence[str]
    metrics: Sequence[driver.Metrics]
    policies: tabular_policies.Policies | None
    failure: str | None = None


class SweepStore:
    """Reads and writes the folder of a sweep; only one process can write to it at a time."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self._manifest: dict[str, Any] = {}
        self._rules: dict[str, str] = {}

    @contextlib.contextmanager
    def open_for_writing(self, source: str, x64: bool) -> Iterator[None]:
        """Creates the folder or resumes in it, and locks it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        lock = result_folder.lock(self.folder)
        try:
            self._require_sweep_folder(x64)
            for part in self.folder.glob(f"{CELLS}/*/.*{_PART}"):  # left by a process that was killed
                shutil.rmtree(part, ignore_errors=True)
            self._manifest |= {"format": _FORMAT, "versions": result_folder.versions(), "x64": x64, "source": source}
            self._write_manifest()
            yield
        finally:
            if lock is not None:
                lock.close()

    def _require_sweep_folder(self, x64: bool) -> None:
        path = self.folder / MANIFEST
        if not path.exists():
            if any(child.name not in _SWEEP_FILES for child in self.folder.iterdir()):
                raise config.SweepError(
                    f"{self.folder} has other files than those of a sweep; use another results folder"
                )
            return
        try:
            self._manifest = bounded_files.read_json(path)
            form, was_double = self._manifest["format"], bool(self._manifest["x64"])
            self._rules = {str(game): str(digest) for game, digest in self._manifest.get("rules", {}).items()}
        except (AttributeError, ValueError, KeyError, TypeError) as error:
            raise config.SweepError(
                f"{path} cannot be read ({error}); remove that file alone to resume with the finished cells"
            ) from None
        if form != _FORMAT:
            raise config.SweepError(f"{self.folder} was written by another version of gdlx; use another results folder")
        if was_double != x64:
            raise config.SweepError(
                f"{self.folder} was computed in {'double' if was_double else 'single'} precision; "
                f"resume {'with' if was_double else 'without'} `jax_enable_x64=True`, or use another results folder"
            )

    def require_same_rules(self, digests: Mapping[str, str], cells: Iterable[config.Cell]) -> None:
        """Raises an error if the rules of a game have changed since the sweep was started.

        If all cells of the game have failed so far, the change may be a fix: they run again.
        """
        stale: list[pathlib.Path] = []
        for game, place in {cell.game: self.cell_folder(cell).parent for cell in cells}.items():
            before, now = self._rules.get(game), digests.get(game)
            if now is None or now == before:
                continue
            failed = {path.parent for path in place.glob(f"*/{FAILED}")}
            if before is not None and set(place.glob("*")) - failed:
                raise config.SweepError(
                    f"the rules of {game} have changed since {self.folder} was started; use another results folder"
                )
            stale += failed
        for folder in stale:
            shutil.rmtree(folder)
        self._rules |= digests
        self._manifest["rules"] = self._rules
        self._write_manifest()

    def require_matching_cells(self, cells: Iterable[config.Cell]) -> None:
        """Raises an error if the folder has the cells of another file of the same name.

        The same sweep may have grown, or may now stop elsewhere: then games and algorithms are still in the file.
        """
        existing = {str(path.relative_to(self.folder / CELLS)) for path in self._cell_folders() if not _failed(path)}
        known = tuple(
            f"{cell.name.partition('/')[0]}/{cell.algorithm.name}{end}" for cell in cells for end in (",", "-")
        )
        if existing and not any(name.startswith(known) for name in existing):
            raise config.SweepError(
                f"{self.folder} holds another sweep: none of its {len(existing):,} cells is in the file; "
                "use another results folder, or rename the file"
            )

    def drop_former_failures(self, cells: Iterable[config.Cell]) -> None:
        """Removes cells that failed and are no longer in the file, as those of a game whose name was misspelt."""
        names = {cell.name for cell in cells}
        for path in self._cell_folders():
            if _failed(path) and str(path.relative_to(self.folder / CELLS)) not in names:
                shutil.rmtree(path)
                with contextlib.suppress(OSError):  # other cells of the game
                    path.parent.rmdir()

    def _cell_folders(self) -> list[pathlib.Path]:
        return sorted((self.folder / CELLS).glob("*/*"))

    def _write_manifest(self) -> None:
        atomic_files.write_atomically(self.folder / MANIFEST, json.dumps(self._manifest, indent=1).encode())

    def is_finished(self, cell: config.Cell) -> bool:
        return self.cell_folder(cell).is_dir()

    def quarantine(self, folder: pathlib.Path) -> pathlib.Path:
        """Moves a folder that cannot be read to `damaged`, and returns its new path."""
        first = self.folder / DAMAGED / folder.relative_to(self.folder)
        numbered = (first.with_name(f"{first.name}-{number}") for number in itertools.count(2))
        place = next(place for place in itertools.chain([first], numbered) if not place.exists())
        place.parent.mkdir(parents=True, exist_ok=True)
        os.rename(folder, place)
        return place

    def find_damage(self, cell: config.Cell) -> str | None:
        """Returns why the folder of a finished cell cannot be used, or None if it can."""
        place = self.cell_folder(cell)
        if (place / FAILED).exists():
            return None
        try:
            if result_folder.read_config(place).algorithm != cell.algorithm:
                return f"{place / result_folder.CONFIG} has other settings"
            if not self._measurements(cell):
                return f"{place / result_folder.METRICS} has no measurements"
        except (errors.UserError, OSError) as error:
            return str(error)
        policy = place / result_folder.POLICY
        return None if array_files.is_intact(policy) else f"{policy} is missing or damaged"

    def cell_folder(self, cell: config.Cell) -> pathlib.Path:
        return self.folder / CELLS / cell.name

    def unfinished_folder(self, cell: config.Cell) -> pathlib.Path:
        return self.folder / UNFINISHED / cell.name

    def save_cells(self, done: Iterable[FinishedCell]) -> None:
        """Writes each cell to a temporary folder beside its own, and then renames it, which is atomic.

        One `sync` flushes all files: syncing each of them would take longer than the runs.
        """
        written = []
        for one in done:
            place = self.cell_folder(one.cell)
            beside = place.with_name(f".{place.name}{_PART}")
            shutil.rmtree(beside, ignore_errors=True)
            beside.mkdir(parents=True)
            _write(beside, one)
            written.append((beside, place))
        os.sync()
        for beside, place in written:
            os.rename(beside, place)

    def finish_cell(self, cell: config.Cell) -> None:
        """Moves a cell that ran alone to the finished ones."""
        place = self.cell_folder(cell)
        place.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self.unfinished_folder(cell)
        (unfinished / result_folder.CHECKPOINT).unlink(missing_ok=True)
        (unfinished / result_folder.LOCK).unlink(missing_ok=True)
        os.rename(unfinished, place)

    def failure(self, cell: config.Cell) -> str | None:
        path = self.cell_folder(cell) / FAILED
        return read_reason(path) if path.exists() else None

    def write_table(self, cells: Iterable[config.Cell]) -> pathlib.Path:
        """Writes the measurements of all finished cells as one CSV file, and returns its path."""
        finished = [cell for cell in cells if self.is_finished(cell)]
        settings = list(dict.fromkeys(key for cell in finished for key in cell.overrides))
        measurements = [(cell, self._measurements(cell)) for cell in finished]
        columns = list(dict.fromkeys(key for _, rows in measurements for row in rows for key in row))
        text = io.StringIO()
        writer = csv.DictWriter(
            text, ["cell", "game", "algorithm", *settings, *columns, "failure"], restval="", lineterminator="\n"
        )
        writer.writeheader()
        for cell, rows in measurements:
            common: dict[str, Any] = {
                "cell": cell.name,
                "game": cell.game,
                "algorithm": cell.algorithm.name,
                **cell.overrides,
            }
            failure = self.failure(cell)
            if failure is not None:
                common["failure"] = failure
            writer.writerows([common | row for row in rows] or [common])
        path = self.folder / TABLE
        atomic_files.write_atomically(path, text.getvalue().encode())
        return path

    def _measurements(self, cell: config.Cell) -> list[dict[str, str]]:
        """The rows of its metrics, with players by number: their names differ between games."""
        path = self.cell_folder(cell) / result_folder.METRICS
        if not path.exists():
            return []
        head, *rows = bounded_files.read_csv(path) or [[]]
        if any(len(row) != len(head) for row in rows):
            raise config.SweepError(f"{path} cannot be read: a row is incomplete")
        return [dict(zip(_numbered(head), row, strict=True)) for row in rows]


def _failed(folder: pathlib.Path) -> bool:
    return (folder / FAILED).exists()


def is_partial(folder: pathlib.Path) -> bool:
    """Whether a folder is being written, or was when its process was killed."""
    return folder.name.startswith(".") and folder.name.endswith(_PART)


def read_reason(path: pathlib.Path) -> str:
    """Reads why a cell has failed, which is only shown."""
    try:
        return bounded_files.read_bytes(path, _MAX_REASON).decode(errors="replace").strip()
    except (OSError, bounded_files.FileError) as error:
        return str(error)


def _numbered(head: Sequence[str]) -> list[str]:
    """Replaces the names of players by numbers.

    >>> _numbered(["iterations", "value_white", "value_black", "improvement_white", "improvement_black"])
    ['iterations', 'value_1', 'value_2', 'improvement_1', 'improvement_2']
    """
    counts: dict[str, int] = {}
    columns = []
    for name in head:
        kind = next((kind for kind in _KINDS if name.startswith(f"{kind}_")), None)
        kind = "improvement" if kind == "gain" else kind
        if kind is not None:
            counts[kind] = counts.get(kind, 0) + 1
        columns.append(name if kind is None else f"{kind}_{counts[kind]}")
    return columns


def _write(folder: pathlib.Path, done: FinishedCell) -> None:
    if done.config is not None:
        (folder / result_folder.CONFIG).write_bytes(result_folder.encode_config(done.config))
    if done.metrics:
        (folder / result_folder.METRICS).write_bytes(result_folder.encode_metrics(done.players, done.metrics))
    if done.policies is not None:
        (folder / result_folder.POLICY).write_bytes(result_folder.encode_arrays(done.policies))
    if done.failure is not None:
        (folder / FAILED).write_text(f"{done.failure}\n", encoding="utf-8")
