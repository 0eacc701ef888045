"""Lower bounds on best-response improvements, estimated from matches of responders.

The mean payoff of any responder is at most that of a best response, while the policies of the others are fixed:

    improvement  =  payoff of a best response - payoff of the policies
                 >= payoff of a responder     - payoff of the policies,

and in a two-player game the mean of the two improvements, NashConv / 2, is at least the mean of these bounds. All
payoffs are means of matches, and have standard errors. One half of the matches selects the responder, and the other
half estimates its payoff: the larger of two noisy means would be biased upwards. If no responder improves on a player's
policy, the bound is 0.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

APPROXIMATE_RESPONSE, LOCAL_BEST_RESPONSE = "learnt", "local"
MIN_MATCHES = 256  # of each half, to select a responder: fewer do not estimate their own standard error well
_Z95 = 1.96  # standard errors on each side of a mean, for 95 % confidence

Floats = npt.NDArray[np.float64]


class PayoffMoments(NamedTuple):
    """Sums over matches. Axes: K payoffs of each match."""

    matches: int
    total: Floats  # [K]
    products: Floats  # [K, K] sums of products of pairs

    def plus(self, numbers: npt.ArrayLike) -> "PayoffMoments":
        """Adds further matches [K, M]."""
        more = np.asarray(numbers, np.float64)
        return PayoffMoments(self.matches + more.shape[1], self.total + more.sum(axis=1), self.products + more @ more.T)

    @property
    def mean(self) -> Floats:
        return self.total / max(self.matches, 1)

    @property
    def covariance(self) -> Floats:
        """Covariance of the means [K, K]."""
        population: Floats = self.products / max(self.matches, 1) - np.outer(self.mean, self.mean)
        return population / max(self.matches - 1, 1)

    @property
    def standard_error(self) -> float:
        """Standard error of the mean of the first payoff."""
        return math.sqrt(max(float(self.covariance[0, 0]), 0.0))

    @property
    def interval(self) -> tuple[float, float]:
        """95 % confidence interval of the mean of the first payoff."""
        return _interval(float(self.mean[0]), self.standard_error)


def empty_moments(width: int = 1) -> PayoffMoments:
    return PayoffMoments(0, np.zeros(width), np.zeros((width, width)))


class SplitMatches(NamedTuple):
    """Matches of one responder, or of the policies, in two independent halves."""

    selection: PayoffMoments
    estimation: PayoffMoments

    def plus(self, payoff: npt.ArrayLike) -> "SplitMatches":
        """Adds payoffs [M] of a responder, or [P, M] of all players, to the half with fewer matches."""
        more = np.atleast_2d(np.asarray(payoff))
        if self.selection.matches <= self.estimation.matches:
            return self._replace(selection=self.selection.plus(more))
        return self._replace(estimation=self.estimation.plus(more))


EMPTY_SPLIT = SplitMatches(empty_moments(), empty_moments())


class ResponseEstimate(NamedTuple):
    """The payoff of a responder, from the half that estimates it."""

    method: str
    payoff: float
    standard_error: float
    matches: int


class Improvement(NamedTuple):
    """A lower bound on the best-response improvement of one player."""

    player: str
    value: float  # payoff of the policies
    responses: tuple[ResponseEstimate, ...]
    chosen: ResponseEstimate | None  # None: no responder improves on the policy
    improvement: float  # the lower bound
    standard_error: float  # of the bound
    batches: int  # that the approximate response learnt from
    sets: int  # information sets of the approximate response

    @property
    def interval(self) -> tuple[float, float]:
        return _interval(self.improvement, self.standard_error)


class ExploitabilityBound(NamedTuple):
    """Lower bounds for all players. Axes: P players."""

    improvements: tuple[Improvement, ...]  # [P]
    exploitability: float | None  # the lower bound; None unless there are two players
    standard_error: float  # of the bound on exploitability; 0 if that is None
    seconds: float  # of the search

    @property
    def interval(self) -> tuple[float, float] | None:
        return None if self.exploitability is None else _interval(self.exploitability, self.standard_error)


def _interval(mean: float, error: float) -> tuple[float, float]:
    return mean - _Z95 * error, mean + _Z95 * error


class ResponderMatches(NamedTuple):
    """The matches of both responders of one player."""

    approximate: SplitMatches
    local: SplitMatches
    batches: int = 0
    sets: int = 0


def combine_matches(
    players: Sequence[str], played: SplitMatches, responders: Sequence[ResponderMatches], seconds: float
) -> ExploitabilityBound:
    """Combine matches to lower bounds.

    Args:
      players: the names [P].
      played: matches of the policies, with the payoffs of all players. They are split too: bad luck of the policies
        that led to the choice of a responder must not count as an improvement.
      responders: matches of the responders of each player [P].
      seconds: time spent so far.
    """
    policies = played.estimation
    rows, is_improved = [], np.zeros(len(players))
    for number, (name, matches) in enumerate(zip(players, responders, strict=True)):
        value = float(policies.mean[number])
        halves = {APPROXIMATE_RESPONSE: matches.approximate, LOCAL_BEST_RESPONSE: matches.local}
        responses = tuple(
            _response(method, half.estimation) for method, half in halves.items() if half.estimation.matches
        )
        method = select_responder(float(played.selection.mean[number]), halves)
        chosen = next((response for response in responses if response.method == method), None)
        improvement = error = 0.0
        if chosen is not None:
            is_improved[number] = 1
            improvement = chosen.payoff - value
            error = math.sqrt(chosen.standard_error**2 + max(float(policies.covariance[number, number]), 0.0))
        rows.append(Improvement(name, value, responses, chosen, improvement, error, matches.batches, matches.sets))
    if len(players) != 2:
        return ExploitabilityBound(tuple(rows), None, 0.0, seconds)
    # In a zero-sum game the payoffs of the policies cancel, and so do their errors.
    variance = max(float(is_improved @ policies.covariance @ is_improved), 0.0)
    variance += sum(row.chosen.standard_error**2 for row in rows if row.chosen)
    return ExploitabilityBound(tuple(rows), sum(row.improvement for row in rows) / 2, math.sqrt(variance) / 2, seconds)


def _response(method: str, moments: PayoffMoments) -> ResponseEstimate:
    return ResponseEstimate(method, float(moments.mean[0]), moments.standard_error, moments.matches)


def select_responder(value: float, halves: dict[str, SplitMatches]) -> str | None:
    """Returns the responder with the highest lower confidence limit in the selection half.

    None if its mean does not exceed `value`, or no responder has enough matches.
    """
    candidates = {
        name: split.selection for name, split in halves.items() if min(half.matches for half in split) >= MIN_MATCHES
    }
    if not candidates:
        return None
    # Not by means alone: a few lucky matches must not outweigh many.
    lower = {name: moments.interval[0] for name, moments in candidates.items()}
    name = max(lower, key=lambda name: lower[name])
    return name if candidates[name].mean[0] > value else None
