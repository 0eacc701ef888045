"""Guided samples against the posterior by recursion over single games."""

import math

import numpy as np
import pytest
import scipy.stats

from gdlx.propnet import games
from gdlx.propnet.observations import choices, guided_sampling, plausible_moves
from gdlx.tests.helpers import observations

SIZE = 256
RUNS = 200


def position(name: str, steps: int, seed: int, player: int) -> choices.Choices:
    net = games.compile_game(name)
    match = observations.play(net, steps, seed)
    plausible = plausible_moves.PlausibleMoves(net, player, match.first[player])
    plausible.extend_all(match.events[player])
    return choices.find_choices(plausible)


@pytest.mark.parametrize(
    ("name", "steps", "seed", "player"),
    [("phantom_tictactoe", 6, 26, 1), ("leduc_poker", 3, 0, 0), ("blind_tictactoe", 3, 0, 0)],
)
def test_weighted_samples_have_the_posterior_distribution(name: str, steps: int, seed: int, player: int) -> None:
    net, left = games.compile_game(name), position(name, steps, seed, player)
    match = observations.play(net, steps, seed)
    expected = observations.list_histories(net, player, match.events[player])
    total = sum(expected.values())
    keys = {key: number for number, key in enumerate(expected)}
    random = np.random.default_rng(1)
    frequencies = np.zeros((RUNS, len(keys)))
    likelihoods = np.zeros(RUNS)
    for run in range(RUNS):
        sample = guided_sampling.sample_histories(left, SIZE, random)
        likelihoods[run] = math.exp(sample.log_likelihood)
        assert math.isclose(sample.weights.sum(), 1)
        for history, weight in zip(sample.histories.moves(left).tolist(), sample.weights.tolist(), strict=True):
            frequencies[run, keys[tuple(map(tuple, history))]] += weight
    # The estimate of the likelihood is unbiased, and so are weights that are multiplied by it.
    assert abs(likelihoods.mean() - total) <= 4 * likelihoods.std() / math.sqrt(RUNS) + 1e-12
    masses = frequencies * likelihoods[:, None]
    error = np.abs(masses.mean(axis=0) - np.array(list(expected.values())))
    assert (error <= 5 * masses.std(axis=0) / math.sqrt(RUNS) + 1e-12).all()


@pytest.mark.slow
def test_resampling_keeps_the_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    """Histories are resampled after every choice; one history of each run is an independent sample."""
    monkeypatch.setattr(guided_sampling, "_UNEVEN", 2.0)
    net, left = games.compile_game("phantom_tictactoe"), position("phantom_tictactoe", 6, 26, 1)
    match = observations.play(net, 6, 26)
    expected = observations.list_histories(net, 1, match.events[1])
    counts = dict.fromkeys(expected, 0)
    random = np.random.default_rng(2)
    runs = 1_500
    for _ in range(runs):
        sample = guided_sampling.sample_histories(left, 64, random)
        chosen = random.choice(len(sample.weights), p=sample.weights)
        history = sample.histories.moves(left)[chosen].tolist()
        counts[tuple(map(tuple, history))] += 1
    total = sum(expected.values())
    # 192 histories: pool them so that every cell expects enough.
    pooled: dict[int, list[float]] = {}
    for number, key in enumerate(sorted(expected)):
        cell = pooled.setdefault(number // 8, [0.0, 0.0])
        cell[0] += counts[key]
        cell[1] += runs * expected[key] / total
    seen, wanted = zip(*pooled.values(), strict=True)
    assert scipy.stats.chisquare(seen, wanted).pvalue > 1e-3


def test_it_says_where_all_histories_died_out() -> None:
    """The last clause rejects everything: a contradiction that propagation does not see."""
    left = position("phantom_tictactoe", 6, 26, 1)
    last = left.choices[-1]
    last.clauses.extend([(2 * node,) for node in last.nodes])
    sample = guided_sampling.sample_histories(left, 64, np.random.default_rng(0))
    assert not len(sample.weights)
    assert sample.steps == last.step
