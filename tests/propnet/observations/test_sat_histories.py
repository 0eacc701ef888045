"""Histories that the SAT solver finds, against those that are listed, and its limits."""

import itertools

import numpy as np
import pytest

from gdlx.propnet import games
from gdlx.propnet.observations import choices, history_enumeration, plausible_moves, sat_histories
from gdlx.tests.helpers import observations


def position(name: str, steps: int, seed: int, player: int) -> choices.Choices:
    net = games.compile_game(name)
    match = observations.play(net, steps, seed)
    plausible = plausible_moves.PlausibleMoves(net, player, match.first[player])
    plausible.extend_all(match.events[player])
    return choices.find_choices(plausible)


def columns(codes: history_enumeration.Codes) -> list[tuple[int, ...]]:
    return sorted(map(tuple, codes.T.tolist()))


@pytest.mark.parametrize(("name", "steps"), [("phantom_tictactoe", 6), ("leduc_poker", 4), ("blind_tictactoe", 3)])
def test_it_finds_the_histories_that_are_listed(name: str, steps: int) -> None:
    for seed, player in itertools.product((0, 26), (0, 1)):
        left = position(name, steps, seed, player)
        result = sat_histories.find_histories(left)
        assert result.complete
        listed = np.concatenate([batch.codes for batch in history_enumeration.list_histories(left)], axis=1)
        assert columns(result.histories.codes) == columns(listed)


def test_some_of_many() -> None:
    left = position("phantom_tictactoe", 6, 26, 1)
    few = sat_histories.find_histories(left, wanted=5, random=True, seed=3)
    assert (few.complete, few.stopped) == (False, "wanted")
    found = columns(few.histories.codes)
    assert len(set(found)) == 5
    every = sat_histories.find_histories(left)
    assert set(found) < set(columns(every.histories.codes))


def test_a_proof_that_there_is_none() -> None:
    left = position("phantom_tictactoe", 6, 26, 1)
    left.choices[-1].clauses.extend([(2 * node,) for node in left.choices[-1].nodes])
    result = sat_histories.find_histories(left)
    assert result.complete
    assert not result.histories.codes.shape[1]


def test_limits_on_time_and_memory() -> None:
    left = position("krieg_tictactoe", 12, 0, 0)  # some 10^12 histories
    result = sat_histories.find_histories(left, seconds=0.5)
    assert (result.complete, result.stopped) == (False, "seconds")
    first, second = left.choices[0].nodes[:2]
    left.choices[0].gates.extend((10**7 + n, (2 * first, 2 * second + 1)) for n in range(400_000))
    result = sat_histories.find_histories(left, memory_mb=30)
    assert (result.complete, result.stopped) == (False, "memory")
