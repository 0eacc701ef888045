"""The size of a game from random play: Knuth's estimate of the number of its histories, step by step.

A random match through states with k1, k2, .. joint actions represents k1 k2 .. histories of its length; the mean over
many matches is an unbiased estimate, mostly from below where few matches find the widest part of the game.
"""

import itertools
import math
from collections.abc import Generator, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gdlx.propnet.circuits import propnet
from gdlx.propnet.common import seeds
from gdlx.propnet.simulate import machine, random_play

_MATCHES, _MAX_STEPS = 2_048, 500
Hashes = npt.NDArray[np.uint64]
_CHUNK = 2**13  # matches played in parallel
_PRIME, _OFFSET = np.uint64(0x100000001B3), np.uint64(0xCBF29CE484222325)
_ERRORS, _MOST_EXPONENT = 4.0, 100.0  # standard errors that an interval extends to both sides
BYTES_PER_EDGE = 100  # that unrolling needs for every joint action of its widest step


class Interval(NamedTuple):
    """An estimate and the numbers between which the truth is expected; all the same if it was counted.

    >>> print(Interval.exact(54), Interval(2e6, 1.9e6, 2.2e6), Interval(5.0, 5.0, np.inf))
    54 2.0e+06 (1.9e+06 to 2.2e+06) more than 5
    """

    estimate: float
    low: float
    high: float

    @classmethod
    def exact(cls, number: float) -> "Interval":
        return cls(number, number, number)

    @classmethod
    def of_mean(cls, samples: npt.NDArray[np.float64]) -> "Interval":
        """The mean of positive samples, within four standard errors of its logarithm."""
        mean = float(samples.mean())
        if not 0 < mean < np.inf:
            return cls(mean, 0.0, np.inf)
        error = float((samples / mean).std()) / math.sqrt(max(1, len(samples) - 1))
        factor = math.exp(min(_ERRORS * error, _MOST_EXPONENT))
        return cls(mean, mean / factor, mean * factor)

    @property
    def is_exact(self) -> bool:
        return self.low == self.high

    def scaled(self, by: float, factor: float = 1.0) -> "Interval":
        """The same multiple of all numbers, which is itself known within a factor."""
        return Interval(self.estimate * by, self.low * by / factor, self.high * by * factor)

    def __contains__(self, number: object) -> bool:
        return isinstance(number, float | int) and self.low * (1 - 1e-9) <= number <= self.high * (1 + 1e-9)

    def __str__(self) -> str:
        if self.is_exact:
            return _in_words(self.estimate)
        if math.isinf(self.high):
            return f"more than {_in_words(self.low)}"
        return f"{_in_words(self.estimate)} ({_in_words(self.low)} to {_in_words(self.high)})"


def _in_words(number: float) -> str:
    return f"{number:,.0f}" if number < 1e6 else f"{number:.1e}"


class SizeEstimate(NamedTuple):
    histories: tuple[float, ...]  # after each number of joint actions, terminals included; unmerged
    is_truncated: bool  # whether matches continued after the last one
    sum: Interval = Interval(np.nan, 0.0, np.inf)  # all histories

    def up_to_depth(self, depth: int | None) -> "SizeEstimate":
        """The estimate for the first joint actions only."""
        if depth is None or depth + 1 >= len(self.histories):
            return self
        return SizeEstimate(self.histories[: depth + 1], is_truncated=False)

    def max_depth_within(self, most: float) -> int:
        """The most joint actions after which there are at most so many histories in total."""
        return sum(total <= most for total in itertools.accumulate(self.histories)) - 1

    @property
    def total(self) -> float:
        return sum(self.histories)

    @property
    def bytes(self) -> float:
        """Memory that unrolling needs if no histories can be merged."""
        return BYTES_PER_EDGE * max(self.histories)


class SizeEstimator:
    """Estimates from one set of random matches, which are continued only as far as needed."""

    def __init__(self, propnet: propnet.PropNet, seed: int = 0, *, matches: int = _MATCHES) -> None:
        self._levels = _levels(propnet, seed, matches)
        self._histories = [1.0]
        self._totals = np.ones(matches)  # histories that each match stands for
        self._is_cut: bool | None = None  # None while the matches can be continued

    def estimate(self, enough: float = np.inf, depth: int | None = None) -> SizeEstimate:
        """Up to the first step with more than `enough` histories; for the first `depth` joint actions only."""
        for step in itertools.count(1):
            if depth is not None and step > depth:
                return SizeEstimate(tuple(self._histories[:step]), is_truncated=False)
            if step == len(self._histories):
                self._continue()
            if step == len(self._histories):
                return SizeEstimate(tuple(self._histories), is_truncated=bool(self._is_cut), sum=self._sum())
            if self._histories[step] > enough:
                return SizeEstimate(tuple(self._histories[: step + 1]), is_truncated=True)
        raise AssertionError("unreachable")

    def _sum(self) -> Interval:
        total = Interval.of_mean(self._totals)
        return total._replace(high=np.inf) if self._is_cut else total

    def _continue(self) -> None:
        if self._is_cut is None:
            try:
                weights = next(self._levels)
                self._histories.append(float(weights.mean()))
                self._totals += weights
            except StopIteration as end:
                self._is_cut = end.value


def estimate_size(
    propnet: propnet.PropNet, seed: int = 0, *, matches: int = _MATCHES, enough: float = np.inf
) -> SizeEstimate:
    """Stops early where there are more than `enough` histories."""
    return SizeEstimator(propnet, seed, matches=matches).estimate(enough)


def _levels(propnet: propnet.PropNet, seed: int, matches: int) -> Generator[npt.NDArray[np.float64], None, bool]:
    """Yields the histories [matches] that each match stands for after one joint action, two, ..

    Returns whether matches continued after the last.
    """
    game = machine.for_propnet(propnet)
    rng = np.random.default_rng(seeds.non_negative(seed))
    sizes = [len(role.moves) for role in propnet.roles]
    state = game.initial(matches)
    weight = np.ones(matches)
    for _ in range(_MAX_STEPS):
        with np.errstate(over="ignore"):
            terminal, _ = game.terminal_and_goals(state)
            per_role = machine.split_rows(game.legal(state), sizes)
            choices = np.prod([rows.sum(axis=0, dtype=np.float64) for rows in per_role], axis=0)
            # States after a terminal one count for nothing, though the rules may let them go on.
            alive = ~terminal & (choices > 0) & (weight > 0)
            weight = np.where(alive, weight * choices, 0)
            if not alive.any():
                return False
        yield weight
        state, _ = game.step(state, np.concatenate([random_play.sample_legal_moves(rows, rng) for rows in per_role]))
    return True


def node_count_lower_bounds(propnet: propnet.PropNet, *, matches: int, seed: int = 0) -> Iterator[float]:
    """Lower confidence bounds on the number of nodes after one joint action, two, .., while matches continue.

    A node is a state together with every player's actions and percepts so far, so histories that unrolling merges count
    once. At least as many joint actions lead to them. Two matches that last so long meet in one of N nodes with
    probability at least 1 / N, however unevenly play is distributed over them. Of m matches, c pairs that meet imply
    N >= m (m - 1) / 2 / u, where u is an upper confidence bound on a Poisson mean of which c was observed; it fails
    about once in a hundred thousand times.
    """
    game = machine.for_propnet(propnet)
    rng = np.random.default_rng(seeds.non_negative(seed))
    state, views = game.initial(matches), np.zeros((len(propnet.players), matches), np.uint64)
    while True:
        chunks = [slice(first, first + _CHUNK) for first in range(0, state.shape[1], _CHUNK)]
        parts = [_random_move(game, state[:, chunk], views[:, chunk], rng) for chunk in chunks]
        state, views = (np.concatenate(rows, axis=1) for rows in zip(*parts, strict=True))
        playing = state.shape[1]
        if not playing:
            return
        nodes = _hashed(np.zeros(playing, np.uint64), [*np.packbits(state, axis=0), *views])
        same = np.unique(nodes, return_counts=True)[1]
        meetings = float((same * (same - 1) / 2).sum())
        yield playing * (playing - 1) / 2 / (meetings + 4 * math.sqrt(meetings + 1) + 8)


def _random_move(
    game: machine.StateMachine, state: random_play.Bools, views: Hashes, rng: np.random.Generator
) -> tuple[random_play.Bools, Hashes]:
    """States and hashes [players, matches] of information sets after a random joint action, of unfinished matches."""
    propnet = game.propnet
    terminal, _ = game.terminal_and_goals(state)
    per_role = machine.split_rows(game.legal(state), [len(role.moves) for role in propnet.roles])
    unfinished = ~terminal & np.all([rows.any(axis=0) for rows in per_role], axis=0)
    chosen = [random_play.sample_legal_moves(rows[:, unfinished], rng) for rows in per_role]
    following, sees = game.step(state[:, unfinished], np.concatenate(chosen))
    percepts = machine.split_rows(sees, [len(role.percepts) for role in propnet.roles])
    players = [n for n, role in enumerate(propnet.roles) if not role.is_random]
    known = [
        _hashed(before, [chosen[n].argmax(axis=0), *np.packbits(percepts[n], axis=0)])
        for n, before in zip(players, views[:, unfinished], strict=True)
    ]
    return following, np.stack(known) if known else views[:, unfinished]


def _hashed(start: Hashes, rows: Iterable[npt.NDArray[Any]]) -> Hashes:
    """A hash of every column: FNV-1a with a shift, which carries high bits down."""
    hashes = start
    for row in rows:
        hashes = (hashes ^ row.astype(np.uint64)) * _PRIME + _OFFSET
        hashes = hashes ^ (hashes >> np.uint64(29))
    return hashes
