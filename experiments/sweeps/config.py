"""The configuration of a sweep, read from TOML:

    games = ["kuhn_poker", "goofspiel:cards=4"]
    iterations = 1000
    seeds = 20                                       # or a list; only for sampling algorithms

    [[algorithms]]
    name = "dcfr"
    alpha = [1.0, 1.5, 2.0]                          # a list: one cell per value
    gamma = { from = 0.0, to = 4.0, count = 9 }      # evenly spaced; with scale = "log", geometrically
    beta = 0.0                                       # the same value in all cells

Each combination of a game, an algorithm, its settings and a seed is a cell.
"""

import hashlib
import itertools
import json
import math
import pathlib
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from gdlx.propnet import library
from gdlx.propnet.common import bounded_files, errors
from gdlx.propnet.common.text import plurals, suggestions
from gdlx.propnet.syntax import diagnostics
from gdlx.solvers import algorithms
from gdlx.solvers.exact import regret_matching
from gdlx.solvers.runs import driver, result_folder

MAX_CELLS = 1_000_000
_MAX_BYTES = 4 * 2**20  # of a file
_MAX_SEED = 2**32 - 1
_MAX_NAME_LENGTH = 100
_SWEEP_KEYS = ("games", "algorithms", "iterations", "seconds", "target", "seeds", "every")
_STOPS = ("iterations", "seconds", "target")
_RANGE_KEYS = ("from", "to", "count", "scale")
# An entry cannot set these: `seeds` sets the seed, `iterations` the horizon, and the algorithm the scheme.
_SETTINGS = tuple(
    sorted(
        {*regret_matching.Settings._fields, *algorithms.SamplingConfig.__dataclass_fields__}
        - {"seed", "scheme", "horizon"}
    )
)
_KINDS: Mapping[str, type] = {"batch": int, "table": int, "max_steps": int, "grow": str, "simultaneous": bool}

Value = float | int | str | bool


class SweepError(errors.UserError, ValueError):
    """The file of a sweep is invalid, or its folder cannot be used; the message names the place and the fix."""


class Cell(NamedTuple):
    """One run of a sweep."""

    game: str
    algorithm: algorithms.Algorithm
    stop: driver.StopCondition
    target: str | float | None  # as written in the file: a percentage is of the payoff range, which is not known yet
    every: int | None  # iterations between measurements
    overrides: Mapping[str, Value]  # settings that the file sets, and the seed, in the order of the file

    @property
    def name(self) -> str:
        """The path of its folder within the sweep: readable, and unique to the cell."""
        words = ",".join([self.algorithm.name, *(f"{key}={value}" for key, value in self.overrides.items())])
        plain = re.sub(r"[^\w.+=,-]", "_", words)
        if plain != words or len(plain) > _MAX_NAME_LENGTH:
            plain = f"{plain[:_MAX_NAME_LENGTH]}-{self.digest}"
        return f"{self._game_name()}/{plain}-{self._stop_name()}"

    def _game_name(self) -> str:
        """Two files in different folders may have the same name."""
        plain = result_folder.folder_name(self.game)
        return f"{plain}-{_digest(self.game)}" if result_folder.is_rulesheet_path(self.game) else plain

    def _stop_name(self) -> str:
        every = None if self.every is None else f"every_{self.every}"
        target = None if self.target is None else f"target_{self.target}"
        parts = (self.stop.iterations, self.stop.seconds and f"{self.stop.seconds:g}s", target, every)
        return "-".join(re.sub(r"[^\w.]", "_", str(part)) for part in parts if part is not None)

    @property
    def digest(self) -> str:
        return _digest(json.dumps([self.game, self.algorithm.name, list(self.overrides.items()), self._stop_name()]))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:10]


class Sweep(NamedTuple):
    """A named list of runs.

    >>> entry = {"name": "dcfr", "alpha": [1.0, 1.5]}
    >>> sweep = Sweep("grid", expand_cells({"games": ["kuhn_poker"], "iterations": 10, "algorithms": [entry]}))
    >>> sweep.name, len(sweep.cells)
    ('grid', 2)
    """

    name: str
    cells: tuple[Cell, ...]

    def __repr__(self) -> str:
        return f"Sweep({self.name}: {plurals.count(len(self.cells), 'cell')})"


def read(path: pathlib.Path) -> Sweep:
    r"""Reads the configuration of a sweep from a TOML file.

    Args:
      path: The file; the docstring of this module describes its keys.

    Returns:
      The sweep, named after the file, with one cell for each combination of game, algorithm, settings and seed.

    Raises:
      SweepError: The file cannot be read, or does not describe a sweep.

    >>> import tempfile
    >>> from gdlx import experiments
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "grid.toml"
    ...     _ = path.write_text('games = ["rps"]\niterations = 10\n[[algorithms]]\nname = "dcfr"\nalpha = [1.0, 1.5]')
    ...     sweep = experiments.read_sweep(path)
    >>> [cell.name for cell in sweep.cells]
    ['rps/dcfr,alpha=1.0-10', 'rps/dcfr,alpha=1.5-10']
    """
    try:
        text = read_source(path)
    except FileNotFoundError:
        raise SweepError(f"there is no file {path}") from None
    except IsADirectoryError:
        raise SweepError(f"{path} is a folder; pass the .toml file of a sweep") from None
    except bounded_files.FileError as error:
        raise SweepError(str(error)) from None
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise SweepError(f"{path} is not valid TOML: {error}") from None
    try:
        return Sweep(path.stem, expand_cells(document))
    except errors.UserError as error:
        raise SweepError(f"{path}: {error}") from None


def read_source(path: pathlib.Path) -> str:
    """Reads the text of the TOML file of a sweep."""
    return bounded_files.read_text(path, _MAX_BYTES, "utf-8-sig")


def expand_cells(description: Mapping[str, Any]) -> tuple[Cell, ...]:
    """Returns all cells of a sweep, in the order of the file; `description` is its parsed content.

    >>> algorithms = [{"name": "dcfr", "alpha": [1.0, 1.5]}, {"name": "cfr+"}]
    >>> [cell.name for cell in expand_cells({"games": ["kuhn_poker"], "iterations": 10, "algorithms": algorithms})]
    ['kuhn_poker/dcfr,alpha=1.0-10', 'kuhn_poker/dcfr,alpha=1.5-10', 'kuhn_poker/cfr+-10']
    """
    _require_known("the sweep", description, _SWEEP_KEYS)
    games = _games(_require_key(description, "games"))
    entries = _require_key(description, "algorithms")
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        name = (
            next((entry for entry in entries if isinstance(entry, str)), "dcfr")
            if isinstance(entries, list)
            else "dcfr"
        )
        raise SweepError(
            "algorithms must be one or more tables, after all other lines: write each under a line [[algorithms]], "
            f'as [[algorithms]] and then name = "{diagnostics.shorten(name)}"'
        )
    seeds = _seeds(description.get("seeds", 1))
    every = _whole("every", description["every"], 1) if "every" in description else None
    axes = [_axes(number, entry) for number, entry in enumerate(entries, 1)]
    count = len(games) * sum(
        math.prod(map(len, grid.values())) * (len(seeds) if _find_algorithm(entry).sampling else 1)
        for entry, grid in zip(entries, axes, strict=True)
    )
    if count > MAX_CELLS:
        raise SweepError(f"the sweep has {count:,} cells, more than {MAX_CELLS:,}; make the lists shorter")
    cells: dict[Any, Cell] = {}
    for game in games:
        for number, (entry, grid) in enumerate(zip(entries, axes, strict=True), 1):
            for cell in _expand_entry(
                game, entry, grid, seeds, every, {**description, **entry}, f"algorithms[{number}]"
            ):
                run = (
                    cell.game,
                    cell.algorithm,
                    cell.stop,
                    str(cell.target),
                    cell.every,
                )  # not the spelling of settings
                if run in cells:
                    raise SweepError(
                        f"algorithms[{number}] has the cell {cell.name} a second time"
                        f"{'' if cells[run].name == cell.name else f', which is {cells[run].name}'}; "
                        "remove it from one of the lists"
                    )
                cells[run] = cell
    return tuple(cells.values())


def _expand_entry(
    game: str,
    entry: Mapping[str, Any],
    grid: Mapping[str, Sequence[Value]],
    seeds: Sequence[int],
    every: int | None,
    stops: Mapping[str, Any],
    place: str,
) -> Iterator[Cell]:
    algorithm = _find_algorithm(entry)
    stop, target = _stop(place, stops)
    for values in itertools.product(*grid.values()):
        settings: dict[str, Value] = dict(zip(grid, values, strict=True))
        for seed in seeds if algorithm.is_sampled else (None,):
            overrides = settings if seed is None else {**settings, "seed": seed}
            changes = {name: value for name, value in overrides.items() if name != "simultaneous"}
            try:
                configured = algorithms.configure(algorithm, stop.iterations, changes)
                if settings.get("simultaneous"):
                    configured = algorithms.with_simultaneous_updates(configured)
            except algorithms.UnknownAlgorithmError as error:
                raise SweepError(f"{place}: {error}") from None
            yield Cell(game, configured, stop, target, every, overrides)


def _find_algorithm(entry: Mapping[str, Any]) -> algorithms.Algorithm:
    return algorithms.require_no_network(algorithms.find(entry["name"]))


def _axes(number: int, entry: Mapping[str, Any]) -> dict[str, list[Value]]:
    place = f"algorithms[{number}]"
    if not isinstance(entry.get("name"), str):
        raise SweepError(f'{place} needs the name of an algorithm, as in name = "dcfr"')
    try:
        _find_algorithm(entry)
    except algorithms.UnknownAlgorithmError as error:
        raise SweepError(f"{place}: {error}") from None
    _require_known(place, entry, ("name", "simultaneous", *_STOPS, *_SETTINGS))
    return {key: _axis(f"{place}.{key}", value) for key, value in entry.items() if key != "name" and key not in _STOPS}


def _axis(place: str, value: Any) -> list[Value]:
    if isinstance(value, dict):
        return list(_range(place, value))
    values = value if isinstance(value, list) else [value]
    if not values:
        raise SweepError(f"{place} is an empty list, which leaves no cells")
    return [_plain(place, one) for one in values]


def _plain(place: str, value: Any) -> Value:
    """Normalises a value: 1 and 1.0 are the same cell."""
    key = place.rpartition(".")[2]
    kind = _KINDS.get(key, float)
    accepted = (float, int) if kind is float else (kind,)
    is_of_kind = isinstance(value, accepted) and isinstance(value, bool) == (kind is bool)
    if is_of_kind and not (isinstance(value, float) and math.isnan(value)):
        plain: Value = kind(value)
        return plain
    what = {bool: "true or false", int: "a whole number", str: "a word in quotes", float: "a number"}[kind]
    raise SweepError(
        f"{place} must be {what}, a list of them, or {{ from = .., to = .., count = .. }}; not {_shown(value)}"
    )


def _range(place: str, value: Mapping[str, Any]) -> Iterator[float]:
    _require_known(place, value, _RANGE_KEYS)
    missing = [key for key in ("from", "to", "count") if key not in value]
    if missing:
        raise SweepError(f"{place} lacks {' and '.join(missing)}: write {{ from = 0.0, to = 3.0, count = 10 }}")
    low, high = (_number(f"{place}.{key}", value[key]) for key in ("from", "to"))
    count = _whole(f"{place}.count", value["count"], 2)
    if count > MAX_CELLS:
        raise SweepError(f"{place}.count is more than {MAX_CELLS:,}")
    scale = value.get("scale", "linear")
    if scale not in ("linear", "log"):
        raise SweepError(f'{place}.scale is "linear" or "log", not {_shown(scale)}')
    if low == high:
        raise SweepError(f"{place} goes from {low:g} to {high:g}: all its cells would be the same")
    if scale == "log" and not (low > 0 and high > 0):
        raise SweepError(f"{place} has a logarithmic scale: from and to must be above 0")
    for number in range(count):
        fraction = number / (count - 1)
        point = low * (high / low) ** fraction if scale == "log" else low + (high - low) * fraction
        yield float(f"{point:.12g}")


def _stop(place: str, stops: Mapping[str, Any]) -> tuple[driver.StopCondition, str | float | None]:
    if not any(key in stops for key in _STOPS):
        raise SweepError("the file does not say when a run ends; set iterations = 1000, or seconds, or target")
    iterations = _whole(f"{place}.iterations", stops["iterations"], 1) if "iterations" in stops else None
    seconds = _number(f"{place}.seconds", stops["seconds"]) if "seconds" in stops else None
    target = stops.get("target")
    if target is not None and not isinstance(target, str):
        target = _number(f"{place}.target", target)
    driver.StopCondition(iterations, seconds, driver.parse_target(target, 1.0))
    return driver.StopCondition(iterations, seconds), target


def _seeds(value: Any) -> list[int]:
    if isinstance(value, list):
        seeds = [_whole("seeds", one, 0, _MAX_SEED) for one in value]
        if not seeds or len(set(seeds)) < len(seeds):
            raise SweepError("seeds must be different whole numbers, one or more")
        return seeds
    return list(range(_whole("seeds", value, 1, MAX_CELLS)))


def _texts(place: str, value: Any) -> list[str]:
    if not isinstance(value, list) or not value or not all(isinstance(one, str) and one for one in value):
        raise SweepError(f'{place} must be a list of names, as in {place} = ["kuhn_poker"]')
    return value


def _games(value: Any) -> list[str]:
    """Rejects two spellings of the same game."""
    unique: dict[Any, str] = {}
    for game in _texts("games", value):
        try:
            known, settings = library.parse_spec(game.strip())
            identity: Any = (known.name, *settings.items())
        except library.LibraryError:  # a path, or a game whose cells will fail
            identity = game
        if identity in unique:
            what = "twice" if unique[identity] == game else f"and {unique[identity]!r}, which are the same"
            raise SweepError(f"games has {game!r} {what}; remove one of them")
        unique[identity] = game
    return list(unique.values())


def _require_key(document: Mapping[str, Any], key: str) -> Any:
    if key not in document:
        raise SweepError(f"{key} is missing; a sweep needs games, algorithms, and iterations, seconds or target")
    return document[key]


def _shown(value: Any) -> str:
    return diagnostics.shorten(repr(value))


def _whole(place: str, value: Any, least: int, most: int = 2**31 - 1) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise SweepError(f"{place} must be a whole number from {least:,} to {most:,}, not {_shown(value)}")
    return value


def _number(place: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise SweepError(f"{place} must be a number, not {_shown(value)}")
    return float(value)


def _require_known(place: str, table: Mapping[str, Any], known: Sequence[str]) -> None:
    for key in table:
        if key not in known:
            near = suggestions.near_names(key, known, most=1)
            hint = f"is it {near[0]}?" if near else f"there are {', '.join(known)}"
            if key in _SWEEP_KEYS:
                hint = "it goes to the top of the file, before the first [[algorithms]]"
            raise SweepError(f"{place} has no key {key!r}; {hint}")
