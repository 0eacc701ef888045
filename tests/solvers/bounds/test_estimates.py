"""Bounds from matches: against numpy, and without the bias of the larger of two means."""

import numpy as np
import pytest

from gdlx.solvers.bounds import estimates

PLAYERS = ("first", "second")


def halves(choosing: np.ndarray, telling: np.ndarray) -> estimates.SplitMatches:
    return estimates.EMPTY_SPLIT.plus(choosing).plus(telling)


def test_tallies_are_means_and_covariances() -> None:
    rng = np.random.default_rng(0)
    numbers = rng.normal(3, 2, (2, 1_000))
    numbers[1] += numbers[0]
    tally = estimates.empty_moments(2)
    for part in np.split(numbers, 10, axis=1):
        tally = tally.plus(part)
    assert tally.matches == 1_000
    np.testing.assert_allclose(tally.mean, numbers.mean(axis=1))
    np.testing.assert_allclose(tally.covariance, np.cov(numbers) / 1_000, rtol=1e-9)
    assert tally.standard_error == pytest.approx(numbers[0].std(ddof=1) / np.sqrt(1_000))


def test_halves_grow_in_turn() -> None:
    actual = estimates.EMPTY_SPLIT
    for number in range(4):
        actual = actual.plus(np.full(5, float(number)))
    assert (actual.selection.matches, actual.estimation.matches) == (10, 10)
    assert (actual.selection.mean[0], actual.estimation.mean[0]) == (1.0, 2.0)


def found(rng: np.random.Generator, learnt: float, local: float, matches: int = 400) -> estimates.ResponderMatches:
    drawn = [rng.normal(mean, 1, matches) for mean in (learnt, learnt, local, local)]
    return estimates.ResponderMatches(halves(*drawn[:2]), halves(*drawn[2:]))


def test_taking_the_better_of_two_is_not_biased() -> None:
    """Both responders get 1 on average; the larger of their two means is more than that, the estimate is not."""
    rng = np.random.default_rng(1)
    policies = estimates.empty_moments(2).plus(np.zeros((2, 1_000)))
    bounds, larger = [], []
    for _ in range(300):
        policy = found(rng, 1.0, 1.0)
        bound = estimates.combine_matches(PLAYERS, estimates.SplitMatches(policies, policies), [policy, policy], 0.0)
        bounds.append(bound.improvements[0].improvement)
        larger.append(max(policy.approximate.selection.mean[0], policy.local.selection.mean[0]))
    error = np.std(bounds) / np.sqrt(len(bounds))
    assert abs(np.mean(bounds) - 1) < 4 * error
    assert np.mean(larger) - 1 > 4 * error
    assert bound.improvements[0].standard_error == pytest.approx(1 / 20, rel=0.2)


@pytest.mark.parametrize(
    ("learnt", "local", "chosen"),
    [(2.0, 1.0, estimates.APPROXIMATE_RESPONSE), (1.0, 2.0, estimates.LOCAL_BEST_RESPONSE), (-1.0, -2.0, None)],
)
def test_the_better_responder_counts(learnt: float, local: float, chosen: str | None) -> None:
    rng = np.random.default_rng(2)
    policies = estimates.empty_moments(2).plus(np.zeros((2, 1_000)))
    policy = found(rng, learnt, local)
    gain = estimates.combine_matches(
        PLAYERS, estimates.SplitMatches(policies, policies), [policy, policy], 0.0
    ).improvements[0]
    assert (None if gain.chosen is None else gain.chosen.method) == chosen
    assert gain.improvement == (0.0 if chosen is None else pytest.approx(max(learnt, local), abs=0.3))
    assert [response.method for response in gain.responses] == [
        estimates.APPROXIMATE_RESPONSE,
        estimates.LOCAL_BEST_RESPONSE,
    ]


def test_few_matches_do_not_count() -> None:
    rng = np.random.default_rng(3)
    policies = estimates.empty_moments(2).plus(np.zeros((2, 1_000)))
    policy = found(rng, 1.0, 5.0)._replace(local=halves(np.full(9, 5.0), np.full(9, 5.0)))
    gain = estimates.combine_matches(
        PLAYERS, estimates.SplitMatches(policies, policies), [policy, policy], 0.0
    ).improvements[0]
    assert gain.chosen is not None
    assert gain.chosen.method == estimates.APPROXIMATE_RESPONSE


def test_payoffs_of_zero_sum_policies_cancel() -> None:
    """With any number of matches of the policies."""
    rng = np.random.default_rng(4)
    first = rng.normal(0, 50, 10)
    policy = [found(rng, 60.0, 0.0), found(rng, 70.0, 0.0)]
    policies = estimates.empty_moments(2).plus([first, -first])
    bound = estimates.combine_matches(PLAYERS, estimates.SplitMatches(policies, policies), policy, 1.5)
    assert bound.exploitability == pytest.approx(65, abs=0.3)
    assert bound.standard_error == pytest.approx(np.hypot(1, 1) / 20 / 2, rel=0.2)
    assert bound.improvements[0].standard_error > 5
    low, high = bound.interval or (0.0, 0.0)
    assert high - low == pytest.approx(2 * 1.96 * bound.standard_error)
    assert bound.seconds == 1.5


def test_others_than_two_players_have_gains_only() -> None:
    rng = np.random.default_rng(5)
    players = (*PLAYERS, "third")
    policies = estimates.empty_moments(3).plus(rng.normal(1, 1, (3, 1_000)))
    bound = estimates.combine_matches(
        players, estimates.SplitMatches(policies, policies), [found(rng, 3.0, 0.0)] * 3, 0.0
    )
    assert bound.exploitability is None
    assert bound.interval is None
    for own in bound.improvements:
        assert own.improvement == pytest.approx(2, abs=0.3)
        assert own.standard_error == pytest.approx(np.sqrt(1 / 400 + 1 / 1_000), rel=0.2)


def test_bad_luck_of_the_policies_is_no_gain() -> None:
    """Where no improvement is possible, estimates are 0 on average, whichever responder is chosen."""
    rng = np.random.default_rng(5)
    bounds = []
    for _ in range(1_000):
        halves = [estimates.empty_moments(2).plus(rng.normal(0, 1, (2, 300))) for _ in range(2)]
        policy = [found(rng, 0.0, 0.0) for _ in range(2)]
        bounds.append(
            estimates.combine_matches(PLAYERS, estimates.SplitMatches(*halves), policy, 0.0).improvements[0].improvement
        )
    assert abs(np.mean(bounds)) < 4 * np.std(bounds) / np.sqrt(len(bounds))
