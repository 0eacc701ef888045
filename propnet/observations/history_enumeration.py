"""All histories that agree with a player's observations: listed one by one, counted, or sampled from their posterior.

The choices are made one after the other (`choices`), each move in all histories so far at once (`choice_programs`).
Those that no clause rejects continue. Listing bounds its memory: histories continue in slabs, the deepest slab first.

Counting merges histories with the same values of all live gates, which have the same futures. So sets that are far too
large to be listed are counted exactly, and independent samples of them are drawn backwards from the last choice.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gdlx.propnet.common import deadlines, errors
from gdlx.propnet.observations import choice_programs
from gdlx.propnet.observations import choices as choosing

Counts = npt.NDArray[np.uint64]
Codes = choice_programs.Codes
Floats = choice_programs.Floats
Indices = choice_programs.Indices

SLAB = 2**19  # histories that continue together
MAX_LANES = 2**22  # of a count after a choice; bounds its memory
_PIECE = 2**17  # histories on which a program runs at once
_LARGEST = 2.0**63  # of a count; sums of two do not overflow


class TooManyHistoriesError(errors.UserError, RuntimeError):
    """More histories than can be counted."""


class Histories(NamedTuple):
    """Histories that agree. Axes: N histories, G choices."""

    codes: Codes  # [G, N] for every choice, the index of the move among its plausible ones
    log_probability: Floats  # [N] of the moves of all others, if they play uniformly

    def moves(self, left: choosing.Choices) -> npt.NDArray[np.int64]:
        """int64[N, T, roles], the moves of all roles."""
        every = np.repeat(left.moves[None], self.codes.shape[1], axis=0)
        for choice, codes in zip(left.choices, self.codes, strict=True):
            every[:, choice.step, choice.role] = np.array(choice.moves)[codes]
        return every


class _Level(NamedTuple):
    """Histories after a choice. Axes: N histories, L live nodes, W words, G choices so far."""

    rows: choice_programs.Words  # [L, W]
    log_probability: Floats  # [N]
    codes: Codes  # [G, N], or [1, N] of the last choice if histories are merged
    parent: Indices  # [N] in the level before
    bits: list[choice_programs.Bits]  # [L][N], the rows unpacked
    counts: Counts  # [N] histories merged in each


def list_histories(left: choosing.Choices, slab: int = SLAB) -> Iterator[Histories]:
    """Yields all histories that agree, each exactly once, in batches.

    Args:
      left: The choices that the observations leave.
      slab: Histories that continue together; bounds the memory.

    Yields:
      Batches of histories.

    >>> from gdlx.propnet.observations import positions
    >>> from gdlx.propnet import games
    >>> from gdlx.propnet.observations import plausible_moves
    >>> kuhn = games.compile_game("kuhn_poker")
    >>> plausible = plausible_moves.PlausibleMoves(kuhn, player=1, legal=(4,))
    >>> plausible.extend(positions.Event(4, (), (4,)))  # a card is dealt to the other player
    >>> left = choosing.find_choices(plausible)
    >>> [np.exp(batch.log_probability).round(3).tolist() for batch in list_histories(left)]
    [[0.333, 0.333, 0.333]]
    """
    programs = choice_programs.Programs(left)
    yield from _descend(programs, _start(left), np.zeros((0, 1), np.uint16), 0, slab)


def _descend(
    programs: choice_programs.Programs, level: _Level, codes: Codes, number: int, slab: int
) -> Iterator[Histories]:
    """Yields what is left of some histories after the last choice."""
    if number == len(programs):
        yield Histories(codes, level.log_probability)
        return
    for after in _expand(programs, level, number, slab):
        yield from _descend(programs, after, np.concatenate([codes[:, after.parent], after.codes]), number + 1, slab)


def _start(left: choosing.Choices) -> _Level:
    no_rows, log_probability, none = np.zeros((0, 1), np.uint64), np.full(1, left.log_share), np.zeros(1, np.int64)
    return _Level(no_rows, log_probability, np.zeros((1, 1), np.uint16), none, [], np.ones(1, np.uint64))


def _expand(programs: choice_programs.Programs, level: _Level, number: int, slab: int) -> Iterator[_Level]:
    """Yields the histories after a choice, in levels of about `slab` histories."""
    parts: list[_Level] = []
    held = 0
    is_last = number + 1 == len(programs)
    size = len(level.log_probability)
    for begin in range(0, size, _PIECE):
        piece = choice_programs.Piece(level.rows, programs.live_before(number), begin, min(begin + _PIECE, size))
        for code, program in enumerate(programs.of(number)):
            deadlines.check()
            if program is None:
                continue
            evaluation = choice_programs.Evaluation(program, piece)
            indices = evaluation.indices()
            if not len(indices):
                continue
            parent = begin + indices
            log_probability = level.log_probability[parent] + evaluation.log_share(indices)
            bits = [] if is_last else evaluation.live(indices)
            codes = np.full((1, len(indices)), code, np.uint16)
            parts.append(_Level(level.rows, log_probability, codes, parent, bits, level.counts[parent]))
            held += len(indices)
            if held >= slab:
                yield _pack(parts)
                parts, held = [], 0
    if parts:
        yield _pack(parts)


def _pack(parts: Sequence[_Level]) -> _Level:
    """Joins parts of a level."""
    log_probability = np.concatenate([part.log_probability for part in parts])
    bits = [np.concatenate(row) for row in zip(*(part.bits for part in parts), strict=True)]
    return _Level(
        choice_programs.pack(bits, len(log_probability)),
        log_probability,
        np.concatenate([part.codes for part in parts], axis=1),
        np.concatenate([part.parent for part in parts]),
        bits,
        np.concatenate([part.counts for part in parts]),
    )


class _MergedLevel(NamedTuple):
    """Classes of histories with the same future. Axes: M classes, N edges that lead to them from the level before."""

    counts: Counts  # [M] histories of each class
    log_probability: Floats  # [M] their total
    starts: Indices  # [M + 1] the first edge of each class
    parent: Indices  # [N] the class before each edge
    code: Codes  # [N] the move of each edge
    edge_log_probability: Floats  # [N]


class MergedHistories:
    """All histories that agree, with those merged that have the same future: counted exactly, and sampled.

    Attributes:
      histories: how many there are.
      likelihood: the probability of the observations, given the player's own moves, if all others play uniformly.

    >>> from gdlx.propnet.observations import positions
    >>> from gdlx.propnet import games
    >>> from gdlx.propnet.observations import plausible_moves
    >>> kuhn = games.compile_game("kuhn_poker")
    >>> plausible = plausible_moves.PlausibleMoves(kuhn, player=1, legal=(4,))
    >>> plausible.extend(positions.Event(4, (), (4,)))  # a card is dealt to the other player
    >>> merged = MergedHistories(choosing.find_choices(plausible))
    >>> merged.histories, round(merged.likelihood, 3)
    (3, 1.0)
    """

    def __init__(self, left: choosing.Choices, *, keep: bool = True, max_lanes: int = MAX_LANES) -> None:
        """Makes all choices.

        Args:
          left: The choices that the observations leave.
          keep: Keep what `sample` needs, which takes memory.
          max_lanes: The limit on what is kept after a choice, without `keep` on classes of histories.

        Raises:
          TooManyHistoriesError: If there are 2^63 or more, or after some choice more than `max_lanes` that differ in
            what matters later.
        """
        self._left = left
        programs = choice_programs.Programs(left)
        level, self._levels = _start(left), list[_MergedLevel]()
        for number in range(len(programs)):
            parts, size = [], 0
            for part in _expand(programs, level, number, SLAB):
                parts.append(part if keep else _merge(part)[0])
                size += len(parts[-1].log_probability)
                if size > max_lanes:
                    raise TooManyHistoriesError(
                        f"more than {max_lanes:,} histories that agree until joint action "
                        f"{left.choices[number].step + 1} differ in what matters later; sample them instead"
                    )
            if not parts:
                level = level._replace(counts=level.counts[:0], log_probability=level.log_probability[:0])
                break
            level, merged = _merge(_pack(parts))
            if keep:
                self._levels.append(merged)
        self.histories = sum(level.counts.tolist())
        self.log_likelihood = float(np.logaddexp.reduce(level.log_probability)) if self.histories else -np.inf
        self.likelihood = float(np.exp(self.log_likelihood))

    def sample(self, count: int, random: np.random.Generator, *, uniform: bool = False) -> Histories:
        """Draws independent histories from their posterior if all others play uniformly.

        Args:
          count: How many.
          random: The source of randomness.
          uniform: Draw all histories with the same probability instead.

        Returns:
          The histories.
        """
        codes = np.zeros((len(self._levels), count), np.uint16)
        log_probability = np.full(count, self._left.log_share)
        lanes = None
        for number in range(len(self._levels) - 1, -1, -1):
            level = self._levels[number]
            before = self._levels[number - 1] if number else None
            if uniform:
                weights = (np.ones(1) if before is None else before.counts.astype(np.float64))[level.parent]
            else:
                weights = np.exp(level.edge_log_probability - self.log_likelihood)
            if lanes is None:
                edges = _draw(np.cumsum(weights), np.zeros(count, np.int64), np.full(count, len(weights)), random)
            else:
                edges = _draw(np.cumsum(weights), level.starts[lanes], level.starts[lanes + 1], random)
            codes[number] = level.code[edges]
            lanes = level.parent[edges]
            own = np.zeros(1) + self._left.log_share if before is None else before.log_probability
            log_probability += level.edge_log_probability[edges] - own[lanes]
        return Histories(codes, log_probability)


def _draw(cumulative: Floats, first: Indices, end: Indices, random: np.random.Generator) -> Indices:
    """Draws an edge of each range, in proportion to weights whose cumulative sums are given."""
    low = np.where(first > 0, cumulative[first - 1], 0.0)
    points = low + random.random(len(first)) * (cumulative[end - 1] - low)
    return np.clip(np.searchsorted(cumulative, points, side="right"), first, end - 1)


def _merge(level: _Level) -> tuple[_Level, _MergedLevel]:
    """Merges histories whose live nodes have the same values."""
    size = len(level.log_probability)
    order, starts = _group(level.bits, size)
    edge_counts = level.counts[order]
    if edge_counts.sum(dtype=np.float64) >= _LARGEST:
        raise TooManyHistoriesError("there are 2^63 or more histories; sample them instead")
    edge_log_probability = level.log_probability[order]
    merged = _MergedLevel(
        np.add.reduceat(edge_counts, starts),
        np.logaddexp.reduceat(edge_log_probability, starts),
        np.append(starts, size),
        level.parent[order],
        level.codes[0, order],
        edge_log_probability,
    )
    first = order[starts]
    bits = [row[first] for row in level.bits]
    rows = choice_programs.pack(bits, len(first))
    return _Level(rows, merged.log_probability, level.codes[:, first], level.parent[first], bits, merged.counts), merged


def _group(bits: Sequence[choice_programs.Bits], size: int) -> tuple[Indices, Indices]:
    """Returns an order in which equal columns are adjacent, and where each group of them starts."""
    keys = []
    for begin in range(0, len(bits), 64):
        key = np.zeros(size, np.uint64)
        for place, row in enumerate(bits[begin : begin + 64]):
            key |= row.astype(np.uint64) << np.uint64(place)
        keys.append(key)
    if not keys:
        return np.arange(size), np.zeros(1, np.int64)
    order = np.lexsort(keys)
    is_first = np.zeros(size, np.bool_)
    is_first[0] = True
    for key in keys:
        ordered = key[order]
        is_first[1:] |= ordered[1:] != ordered[:-1]
    return order, np.flatnonzero(is_first)
