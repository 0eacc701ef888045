"""Histories that agree with what a player saw, at ten random positions of each game of table 4.1 of Richards (2012).

At each position all histories are counted, with those merged that have the same future; if they are too many, or that
takes more than half of the time, they are sampled among plausible moves.
"""

import time
from collections.abc import Iterator, Sequence

import numpy as np

from gdlx.experiments.studies import result_cache, study_registry
from gdlx.experiments.studies.information_sets import published
from gdlx.propnet import games
from gdlx.propnet.circuits import propnet
from gdlx.propnet.observations import information_set, positions
from gdlx.solvers.runs import result_folder

MINUTES, FULL_MINUTES = 30.0, 90.0
POSITIONS = 10
SECONDS = 30.0  # of a position, as in the publication
_SIZE = 20_000  # histories to sample where they cannot be counted
_HEADER = ("game", "all counted", "histories", "found", "most seconds", "theirs, constraints", "theirs, search")


def run(setting: study_registry.StudyConfig) -> Iterator[study_registry.StudyTable]:
    """Yields a table for each game."""
    cells = published.cells()
    share = setting.minutes * 60 / sum(len(row) for row in cells.values()) / POSITIONS
    seconds = SECONDS if setting.is_full else min(SECONDS, 2 * share)  # most positions take much less
    for name, row in cells.items():
        measured = [_cached(cell, seconds, setting) for cell in row]
        data = [{**result, **cell._asdict()} for cell, result in zip(row, measured, strict=True)]
        title = f"{name}: {POSITIONS} random positions, at most {seconds:.3g} s each"
        yield study_registry.StudyTable(title, _HEADER, [_line(entry) for entry in data], data)


def _line(entry: result_cache.Row) -> Sequence[str]:
    histories = [count for count in entry["histories"] if count is not None]
    median = f"{float(np.median(histories)):,.0f}" if histories else "-"
    return (
        entry["game"],
        f"{len(histories)} of {len(entry['histories'])}",
        median,
        f"{sum(entry['distinct']):,}",
        f"{max(entry['seconds']):.2g}",
        f"{entry['constraints']:,}",
        f"{entry['search']:,}",
    )


def _cached(cell: published.Cell, seconds: float, setting: study_registry.StudyConfig) -> result_cache.Row:
    path = setting.folder / f"{result_folder.folder_name(cell.game)}.json"
    settings = {"game": cell.game, "seconds": seconds, "seed": setting.seed, "positions": POSITIONS}

    def measure() -> result_cache.Row:
        setting.report(cell.game)
        return measure_cell(cell.game, seconds, setting.seed, POSITIONS)

    return result_cache.load_or_measure(path, settings, measure)


def measure_cell(game: str, seconds: float, seed: int, count: int) -> result_cache.Row:
    """Returns, for each of some random positions, how many histories agree (None: unknown), were found, and the time.

    Args:
      game: The game.
      seconds: The time for a position.
      seed: The seed of the positions.
      count: How many positions.
    """
    net = games.compile_game(game)
    row: result_cache.Row = {"moves": [], "histories": [], "distinct": [], "ways": [], "seconds": []}
    for number in range(count):
        position = _random_position(net, seed, number)
        begun = time.perf_counter()
        found = information_set.find_information_set(net, position, size=_SIZE, seconds=seconds)
        row["moves"].append(len(position.events))
        row["histories"].append(found.histories)
        row["distinct"].append(found.distinct)
        row["ways"].append(found.way)
        row["seconds"].append(time.perf_counter() - begun)
    return row


def _random_position(net: propnet.PropNet, seed: int, number: int) -> positions.Position:
    """A position after a random number of joint actions of a random match; the players take turns."""
    random = np.random.default_rng((seed, number))
    player, match = number % len(net.players), 100_000 * seed + number
    length = len(positions.random_position(net, player, None, match).events) * 2
    return positions.random_position(net, player, int(random.integers(1, max(2, length))), match)
