"""What every player could gain at least, made of matches of responders.

Any responder's mean payoff is at most that of a best response, while everybody else's policies stay as they are:

    gain  =  payoff of a best response - payoff of the policies
          >= payoff of a responder     - payoff of the policies,

and in a game of two the mean of the two gains, NashConv / 2, is at least the mean of these bounds. All payoffs are
means of matches, and have standard errors. Which responder counts is decided by one half of the matches, and the other
half tells what it gets: the larger of two noisy means would be too large on average. A player whom no responder makes
gain plays on as it does and gains nothing.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

APPROXIMATE_RESPONSE, LOCAL_BEST_RESPONSE = "learnt", "local"
MIN_MATCHES = 256  # matches of each half without which a responder does not count: fewer tell little of their own error
_Z95 = 1.96  # standard errors on each side of a mean that leave out one case in twenty

Floats = npt.NDArray[np.float64]


class PayoffMoments(NamedTuple):
    """Of matches. Axes: K numbers that each match has."""

    matches: int
    total: Floats  # [K]
    products: Floats  # [K, K] sums of products of two

    def plus(self, numbers: npt.ArrayLike) -> "PayoffMoments":
        """With further matches [K, M]."""
        more = np.asarray(numbers, np.float64)
        return PayoffMoments(self.matches + more.shape[1], self.total + more.sum(axis=1), self.products + more @ more.T)

    @property
    def mean(self) -> Floats:
        return self.total / max(self.matches, 1)

    @property
    def covariance(self) -> Floats:
        """[K, K] of the means."""
        found: Floats = self.products / max(self.matches, 1) - np.outer(self.mean, self.mean)
        return found / max(self.matches - 1, 1)

    @property
    def standard_error(self) -> float:
        """Of the mean of the first number."""
        return math.sqrt(max(float(self.covariance[0, 0]), 0.0))

    @property
    def interval(self) -> tuple[float, float]:
        return _interval(float(self.mean[0]), self.standard_error)


def empty_moments(width: int = 1) -> PayoffMoments:
    return PayoffMoments(0, np.zeros(width), np.zeros((width, width)))


class SplitMatches(NamedTuple):
    """Matches of one responder, or of the policies."""

    selection: PayoffMoments
    estimation: PayoffMoments

    def plus(self, payoff: npt.ArrayLike) -> "SplitMatches":
        """Further matches go to the half that has fewer: payoffs [M] of a responder, or [P, M] of all players."""
        more = np.atleast_2d(np.asarray(payoff))
        if self.selection.matches <= self.estimation.matches:
            return self._replace(selection=self.selection.plus(more))
        return self._replace(estimation=self.estimation.plus(more))


EMPTY_SPLIT = SplitMatches(empty_moments(), empty_moments())


class ResponseEstimate(NamedTuple):
    """What a responder got in the matches that tell it."""

    method: str
    payoff: float
    standard_error: float
    matches: int


class Improvement(NamedTuple):
    """Of one player."""

    player: str
    value: float  # payoff of the policies
    responses: tuple[ResponseEstimate, ...]
    chosen: ResponseEstimate | None  # None: no responder gains
    improvement: float  # at least
    standard_error: float  # of that
    batches: int  # that were learnt from
    sets: int  # that were learnt

    @property
    def interval(self) -> tuple[float, float]:
        return _interval(self.improvement, self.standard_error)


class ExploitabilityBound(NamedTuple):
    """Axes: P players."""

    improvements: tuple[Improvement, ...]  # [P]
    exploitability: float | None  # at least; None unless there are two players
    standard_error: float  # of that, 0 if it is None
    seconds: float

    @property
    def interval(self) -> tuple[float, float] | None:
        return None if self.exploitability is None else _interval(self.exploitability, self.standard_error)


def _interval(mean: float, error: float) -> tuple[float, float]:
    return mean - _Z95 * error, mean + _Z95 * error


class ResponderMatches(NamedTuple):
    """All that is known of one player's gain."""

    approximate: SplitMatches
    local: SplitMatches
    batches: int = 0
    sets: int = 0


def combine_matches(
    players: Sequence[str], played: SplitMatches, found: Sequence[ResponderMatches], seconds: float
) -> ExploitabilityBound:
    """`played` are matches in which everybody plays its policy, with all payoffs.

    They are halved too: to choose a responder because policies had bad luck must not count that luck as a gain.
    """
    usual = played.estimation
    gains, is_gained = [], np.zeros(len(players))
    for number, (name, own) in enumerate(zip(players, found, strict=True)):
        value = float(usual.mean[number])
        halves = {APPROXIMATE_RESPONSE: own.approximate, LOCAL_BEST_RESPONSE: own.local}
        told = tuple(_response(method, half.estimation) for method, half in halves.items() if half.estimation.matches)
        method = select_responder(float(played.selection.mean[number]), halves)
        best = next((response for response in told if response.method == method), None)
        gain = error = 0.0
        if best is not None:
            is_gained[number] = 1
            gain = best.payoff - value
            error = math.sqrt(best.standard_error**2 + max(float(usual.covariance[number, number]), 0.0))
        gains.append(Improvement(name, value, told, best, gain, error, own.batches, own.sets))
    if len(players) != 2:
        return ExploitabilityBound(tuple(gains), None, 0.0, seconds)
    # In a zero-sum game the payoffs of the policies cancel, and so do their errors.
    variance = max(float(is_gained @ usual.covariance @ is_gained), 0.0)
    variance += sum(own.chosen.standard_error**2 for own in gains if own.chosen)
    return ExploitabilityBound(
        tuple(gains), sum(own.improvement for own in gains) / 2, math.sqrt(variance) / 2, seconds
    )


def _response(method: str, tally: PayoffMoments) -> ResponseEstimate:
    return ResponseEstimate(method, float(tally.mean[0]), tally.standard_error, tally.matches)


def select_responder(value: float, halves: dict[str, SplitMatches]) -> str | None:
    """The responder that most surely gains, by the half that chooses; None if that one does not gain."""
    able = {name: own.selection for name, own in halves.items() if min(tally.matches for tally in own) >= MIN_MATCHES}
    if not able:
        return None
    # Not by means alone: a few lucky matches must not replace many.
    sure = {name: tally.interval[0] for name, tally in able.items()}
    name = max(sure, key=lambda name: sure[name])
    return name if able[name].mean[0] > value else None
