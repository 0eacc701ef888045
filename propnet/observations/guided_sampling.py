"""Guided particles: histories sampled choice by choice among the moves that are legal and plausible.

Every history draws uniformly from the moves that no clause rejects, and its weight is multiplied by their number over
that of the legal moves: so weighted histories have the posterior distribution, if all others play uniformly. Where the
weights become uneven the histories are resampled (an auxiliary particle filter, Pitt & Shephard 1999).
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gdlx.propnet.observations import choice_programs, history_enumeration
from gdlx.propnet.observations import choices as choosing

Floats = choice_programs.Floats

_UNEVEN = 0.5  # resample if the effective sample size is less than this fraction


class Sample(NamedTuple):
    """Weighted histories, and how they were found. Axes: N histories; none if all died out."""

    histories: history_enumeration.Histories
    weights: Floats  # [N] adds up to 1
    log_likelihood: float  # estimated log probability of the observations, given the player's own moves
    steps: int  # joint actions until which some history agreed; all of them, unless they died out


def sample_histories(left: choosing.Choices, size: int, random: np.random.Generator) -> Sample:
    """Samples histories that agree.

    Args:
      left: The choices that the observations leave.
      size: How many histories to start.
      random: The source of randomness.

    Returns:
      The histories that agree, with their weights; fewer than `size` where some died out after the last resampling.

    >>> from gdlx.propnet.observations import positions
    >>> from gdlx.propnet import games
    >>> from gdlx.propnet.observations import plausible_moves
    >>> kuhn = games.compile_game("kuhn_poker")
    >>> plausible = plausible_moves.PlausibleMoves(kuhn, player=1, legal=(4,))
    >>> plausible.extend(positions.Event(4, (), (4,)))  # a card is dealt to the other player
    >>> sample = sample_histories(choosing.find_choices(plausible), 64, np.random.default_rng(0))
    >>> sample.histories.codes.shape, round(sample.log_likelihood, 9) + 0.0
    ((1, 64), 0.0)
    """
    programs = choice_programs.Programs(left)
    codes = np.zeros((0, size), np.uint16)
    log_probability = np.full(size, left.log_share)
    log_options = np.zeros(size)  # -log probability of the draws
    rows = np.zeros((0, -(-size // 64)), np.uint64)
    log_mean = 0.0  # log of the mean weight, at every resampling; weights are relative to it
    for number, choice in enumerate(left.choices):
        count = codes.shape[1]
        piece = choice_programs.Piece(rows, programs.live_before(number), 0, count)
        evaluations = [
            None if program is None else choice_programs.Evaluation(program, piece) for program in programs.of(number)
        ]
        agree = np.stack(
            [
                np.zeros(count, np.uint8) if run is None else choice_programs.unpack(run.agree, count)
                for run in evaluations
            ]
        )
        drawn = _draw(agree, random)
        parent, log_shares, live = [], [], []
        for code, run in enumerate(evaluations):
            indices = np.flatnonzero(drawn == code)
            if run is not None and len(indices):
                parent.append(indices)
                log_shares.append(run.log_share(indices))
                live.append(run.live(indices))
        if not parent:
            none = history_enumeration.Histories(codes[:, :0], np.zeros(0))
            return Sample(none, np.zeros(0), -np.inf, choice.step)
        at = np.concatenate(parent)
        codes = np.concatenate([codes[:, at], drawn[None, at].astype(np.uint16)])
        log_probability = log_probability[at] + np.concatenate(log_shares)
        log_options = log_options[at] + np.log(agree.sum(axis=0, dtype=np.int64)[at])
        bits = [np.concatenate(row) for row in zip(*live, strict=True)]
        weights, mean = _normalise(log_probability + log_options, size)
        if number + 1 < len(left.choices) and 1 / np.square(weights).sum() < _UNEVEN * size:
            chosen = resample(weights, size, random)
            codes, log_probability = codes[:, chosen], log_probability[chosen]
            bits = [row[chosen] for row in bits]
            log_mean = mean
            log_options = log_mean - log_probability
        rows = choice_programs.pack(bits, codes.shape[1])
    weights, log_likelihood = _normalise(log_probability + log_options, size)
    steps = len(left.moves)
    return Sample(history_enumeration.Histories(codes, log_probability), weights, log_likelihood, steps)


def resample(weights: Floats, count: int, random: np.random.Generator) -> npt.NDArray[np.int64]:
    """Returns `count` indices, each as often as expected by its weight, to within 1 (systematic resampling)."""
    cumulative = np.cumsum(weights)
    points = (np.arange(count) + random.random()) * (cumulative[-1] / count)
    indices: npt.NDArray[np.int64] = np.searchsorted(cumulative, points, side="right")
    return np.minimum(indices, len(weights) - 1)


def _draw(agree: choice_programs.Bits, random: np.random.Generator) -> npt.NDArray[np.int64]:
    """Returns a true row of every column, uniformly at random; -1 where there is none."""
    ranks = agree.cumsum(axis=0, dtype=np.int32)
    options = ranks[-1]
    target = (random.random(agree.shape[1]) * options).astype(np.int32) + 1
    drawn = (ranks < target).sum(axis=0)
    return np.where(options > 0, drawn, -1)


def _normalise(log_weights: Floats, size: int) -> tuple[Floats, float]:
    """Returns weights that add up to 1, and the log of their mean over `size` histories."""
    most = log_weights.max()
    weights = np.exp(log_weights - most)
    total = weights.sum()
    return weights / total, float(most + np.log(total / size))
