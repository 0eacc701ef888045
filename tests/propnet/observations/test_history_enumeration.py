"""Histories listed, counted and sampled, against recursion over single games."""

import functools
import itertools
import math

import numpy as np
import pytest
import scipy.stats

from gdlx.propnet import games
from gdlx.propnet.observations import choices, history_enumeration, plausible_moves
from gdlx.tests.helpers import observations

# Chance and betting; hidden moves with refusals; simultaneous moves; chance that is revealed late; lies.
POSITIONS = (
    ("leduc_poker", 6),
    ("phantom_tictactoe", 7),
    ("blind_tictactoe", 3),
    ("gops:rounds=2,extra=1", 8),
    ("meier", 4),
)
Expected = dict[tuple[observations.Joint, ...], float]


@functools.cache
def positions(name: str, steps: int) -> list[tuple[choices.Choices, Expected]]:
    """What the observations of each player leave open in some matches, and the histories that agree."""
    net, found = games.compile_game(name), []
    for seed, player in itertools.product(range(2), range(len(net.players))):
        match = observations.play(net, steps, seed)
        plausible = plausible_moves.PlausibleMoves(net, player, match.first[player])
        plausible.extend_all(match.events[player])
        expected = observations.list_histories(net, player, match.events[player])
        found.append((choices.find_choices(plausible), expected))
    return found


def as_dictionary(left: choices.Choices, batches: list[history_enumeration.Histories]) -> Expected:
    listed: Expected = {}
    for batch in batches:
        moves = batch.moves(left).tolist()
        for history, log_probability in zip(moves, batch.log_probability.tolist(), strict=True):
            key = tuple(map(tuple, history))
            assert key not in listed
            listed[key] = math.exp(log_probability)
    return listed


@pytest.mark.parametrize(("name", "steps"), POSITIONS)
@pytest.mark.parametrize("sizes", [(2**19, 2**17), (7, 64)], ids=["whole", "pieces"])
def test_all_histories_are_listed_with_their_probabilities(
    name: str, steps: int, sizes: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    slab, piece = sizes
    monkeypatch.setattr(history_enumeration, "_PIECE", piece)
    for left, expected in positions(name, steps):
        listed = as_dictionary(left, list(history_enumeration.list_histories(left, slab)))
        assert listed.keys() == expected.keys()
        assert all(math.isclose(listed[key], probability, rel_tol=1e-9) for key, probability in expected.items())


@pytest.mark.parametrize(("name", "steps"), POSITIONS)
@pytest.mark.parametrize("keep", [False, True])
def test_merged_histories_are_counted_exactly(
    name: str, steps: int, keep: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for slab in (2**19, 16):
        monkeypatch.setattr(history_enumeration, "SLAB", slab)
        for left, expected in positions(name, steps):
            merged = history_enumeration.MergedHistories(left, keep=keep)
            assert merged.histories == len(expected)
            assert math.isclose(merged.likelihood, sum(expected.values()), rel_tol=1e-9)


def test_the_count_of_a_phantom_position() -> None:
    net = games.compile_game("phantom_tictactoe")
    match = observations.play(net, 6, 26)
    plausible = plausible_moves.PlausibleMoves(net, 1, match.first[1])
    plausible.extend_all(match.events[1])
    assert history_enumeration.MergedHistories(choices.find_choices(plausible)).histories == 192
    assert len(observations.list_histories(net, 1, match.events[1])) == 192


@pytest.mark.parametrize(("name", "steps"), POSITIONS[:4])
@pytest.mark.parametrize("uniform", [False, True])
def test_samples_have_the_distribution_of_the_posterior(name: str, steps: int, uniform: bool) -> None:
    left, expected = max(positions(name, steps), key=lambda position: len(position[1]))
    assert len(expected) > 3
    samples = history_enumeration.MergedHistories(left).sample(20_000, np.random.default_rng(0), uniform=uniform)
    counts = dict.fromkeys(expected, 0)
    total = sum(expected.values())
    for history, log_probability in zip(samples.moves(left).tolist(), samples.log_probability.tolist(), strict=True):
        key = tuple(map(tuple, history))
        counts[key] += 1
        assert math.isclose(math.exp(log_probability), expected[key], rel_tol=1e-9)
    wanted = [20_000 / len(expected) if uniform else 20_000 * p / total for p in expected.values()]
    assert scipy.stats.chisquare(list(counts.values()), wanted).pvalue > 1e-3


def test_counts_that_are_too_large_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    left = positions("phantom_tictactoe", 7)[0][0]
    with pytest.raises(history_enumeration.TooManyHistoriesError, match="more than 3 histories that agree until joint"):
        history_enumeration.MergedHistories(left, max_lanes=3)
    monkeypatch.setattr(history_enumeration, "_LARGEST", 10.0)
    with pytest.raises(history_enumeration.TooManyHistoriesError, match="2\\^63"):
        history_enumeration.MergedHistories(left)


def test_observations_that_leave_nothing_open() -> None:
    net = games.compile_game("tictactoe")
    match = observations.play(net, 5, 0)
    plausible = plausible_moves.PlausibleMoves(net, 0, match.first[0])
    plausible.extend_all(match.events[0])
    left = choices.find_choices(plausible)
    assert not left.choices
    assert history_enumeration.MergedHistories(left).histories == 1
    (batch,) = history_enumeration.list_histories(left)
    assert [tuple(map(tuple, history)) for history in batch.moves(left).tolist()] == [match.joints]
