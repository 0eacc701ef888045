"""Benchmark `infoset`: information sets counted, listed and sampled, beside Richards (2012) and plain sampling.

His figures: 4,495,121 histories of a position of kriegspiel took 1,524 s on one processor, and 4.59 s on 512 (table
4.2); the most histories found in a column of his table 4.1, in 30 s for each of ten positions, are repeated here.
"""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gdlx.experiments.bench import harness

if TYPE_CHECKING:
    from gdlx.propnet.circuits import propnet
    from gdlx.propnet.observations import choices, positions

_KRIEGSPIEL_SECONDS = 1_524.0
_LISTED = ("krieg_tictactoe", 6, 1)  # game, joint actions, seed: 10,706,415 histories
_GUIDED = ("racko:slots=6,cards=30", 20, 0)
_ENOUGH = 10_000  # histories of a position


class _Cell(NamedTuple):
    """A cell of table 4.1, at one of our positions."""

    game: str
    moves: int
    published: int  # histories found at ten positions


_CELLS = (
    _Cell("racko:slots=6,cards=30", 20, 131),
    _Cell("racko:slots=10,cards=60", 48, 179),
    _Cell("battleship:side=10,ships=5", 56, 1_074),
    _Cell("battleship:side=6,ships=3", 26, 656),
    _Cell("gops:rounds=10,extra=40,slots=yes", 36, 300),
)


def figures() -> Iterator[harness.Figure]:
    """Sizes, then counts and lists, samples, and cells of the table."""
    yield from _list_figures()
    yield from _guided_figures()
    for cell in _CELLS:
        yield from _cell_figures(cell)
    yield from _size_figures()


def _observe(game: str, moves: int, seed: int) -> "tuple[propnet.PropNet, positions.Position, choices.Choices, float]":
    """The position, what it leaves open, and the seconds of inferring that."""
    from gdlx.propnet import games
    from gdlx.propnet.observations import choices, information_set, positions

    net = games.compile_game(game)
    position = positions.random_position(net, 0, moves, seed)
    begun = time.process_time()
    left = choices.find_choices(information_set.infer(net, position))
    return net, position, left, time.process_time() - begun


def _list_figures() -> Iterator[harness.Figure]:
    """Every history listed once with its probability, unmerged; and counted, merged."""
    from gdlx.propnet.observations import history_enumeration

    game, moves, seed = _LISTED
    net, _, left, inferred = _observe(game, moves, seed)
    begun, number = time.process_time(), 0
    for batch in history_enumeration.list_histories(left):
        number += batch.codes.shape[1]
    listed = time.process_time() - begun + inferred
    begun = time.process_time()
    count = history_enumeration.MergedHistories(left, keep=False).histories
    counted = time.process_time() - begun + inferred
    what = f"{game} ({_operations(net)} operations) after {moves} joint actions, seed {seed}"
    yield harness.Figure(
        f"{what}: {number:,} histories listed, processor time",
        listed,
        "s",
        peer="Richards (2012), 4,495,121 histories, one processor",
        peer_value=_KRIEGSPIEL_SECONDS,
        target=harness.Target(5.0),
        note=None if number == count and number >= 4_500_000 else f"listed {number:,}, counted {count:,}",
    )
    yield harness.Figure(
        f"{what}: listed a second", number / listed / 1e6, "million/s", "higher", target=harness.Target(1.0)
    )
    yield harness.Figure(f"{what}: {count:,} counted, merged", counted, "s")
    game, moves = "krieg_tictactoe", 12
    _, _, left, inferred = _observe(game, moves, 0)
    begun = time.process_time()
    count = history_enumeration.MergedHistories(left, keep=False).histories
    spent = time.process_time() - begun + inferred
    yield harness.Figure(f"{game} after {moves} joint actions, seed 0: {count:,} counted, merged", spent, "s")


def _guided_figures() -> Iterator[harness.Figure]:
    """Agreeing samples a second, beside rejection, whose acceptance probability is known from the count."""
    from gdlx.propnet.observations import guided_sampling, history_enumeration

    game, moves, seed = _GUIDED
    net, position, left, _ = _observe(game, moves, seed)
    likelihood = history_enumeration.MergedHistories(left, keep=False).likelihood
    size = 2**14
    begun = time.process_time()
    sample = guided_sampling.sample_histories(left, size, np.random.default_rng(0))
    rate = len(sample.weights) / (time.process_time() - begun)
    played = _playout_rate(net, len(position.events))
    distinct = np.unique(sample.histories.codes, axis=1).shape[1]
    yield harness.Figure(
        f"{game} after {moves} joint actions: guided samples that agree, {distinct:,} of {size:,} distinct",
        rate,
        "/s",
        "higher",
        peer=f"rejection, which accepts {likelihood:.2g}",
        peer_value=played * likelihood,
        target=harness.Target(1_000, of="ratio"),
    )


def _playout_rate(net: "propnet.PropNet", steps: int) -> float:
    """Games a second that random play reaches so many joint actions of, on one device."""
    import gdlx
    from gdlx.envs.packed import packed_env
    from gdlx.envs.views import history
    from gdlx.solvers.search import rejection

    environment = gdlx.make(net)
    game = packed_env.PackedEnv(environment)
    from gdlx.propnet.observations import positions

    position = positions.random_position(net, 0, steps, 0)
    events = tuple(history.Event(*event) for event in position.events)
    view = history.ActionObservationHistory(environment, 0, position.first, events)
    batches = rejection.sample_batches(game, view, None, 64, 0)
    next(batches)  # compiles
    begun, count = time.process_time(), 8
    for _ in range(count):
        next(batches)
    return count * rejection.BATCH / (time.process_time() - begun)


def _cell_figures(cell: _Cell) -> Iterator[harness.Figure]:
    """The complete set, or at least `_ENOUGH` different histories; the time is that of everything."""
    from gdlx.propnet import games
    from gdlx.propnet.observations import information_set, positions

    net = games.compile_game(cell.game)
    position = positions.random_position(net, 0, cell.moves, 0)
    begun = time.process_time()
    found = information_set.find_information_set(net, position, size=2 * _ENOUGH)
    spent = time.process_time() - begun
    what = f"{cell.game} after {cell.moves} joint actions"
    if found.complete:
        yield harness.Figure(
            f"{what}: histories, all of them ({found.way})",
            float(found.distinct),
            "",
            "higher",
            note=f"the complete set of one position; Richards (2012) found {cell.published:,} at ten together",
        )
    else:
        yield harness.Figure(
            f"{what}: histories sampled ({found.way}, worth {found.effective_sample_size:,.0f})",
            float(found.distinct),
            "",
            "higher",
            peer="Richards (2012), at ten positions",
            peer_value=float(cell.published),
            target=harness.Target(_ENOUGH),
        )
    yield harness.Figure(f"{what}: processor time", spent, "s", target=harness.Target(30.0))


def _operations(net: "propnet.PropNet") -> int:
    """Of the emitted code, as `gdlx info` counts them."""
    from gdlx.propnet.circuits import measure

    operations = measure.sizes(net, always_count=True)["operations"]
    assert isinstance(operations, int)
    return operations


def _size_figures() -> Iterator[harness.Figure]:
    """Counters in binary keep propnets small."""
    from gdlx.propnet import games

    game = "gops:rounds=6,extra=30"
    net = games.compile_game(game)
    yield harness.Figure(f"{game}: operations", float(_operations(net)), "", target=harness.Target(1_300))
