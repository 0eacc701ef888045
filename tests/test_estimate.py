"""Sizes of games from random play, against sizes counted by unrolling."""

import pytest

from gdlx.envs import estimate, trees, unroll
from gdlx.propnet import cache, load


@pytest.mark.parametrize("game", ["goofspiel:cards=4", "rps", "simple_poker"])
def test_games_of_one_length_are_counted_exactly(game: str) -> None:
    """Where every state of a step has as many joint moves as the others, one match tells all."""
    net = cache.compiled(load.load(game))
    counted = unroll.unroll(net, goal_conflict="max").counts.histories
    found = estimate.estimate(net)
    assert not found.is_cut
    if game != "simple_poker":
        assert found.histories == pytest.approx(counted)
    assert found.total == pytest.approx(sum(counted), rel=0.2)


def test_leduc_is_about_right() -> None:
    # FACTS: 9 457 histories, counted with OpenSpiel.
    assert estimate.estimate(cache.compiled(load.load("leduc_poker"))).total == pytest.approx(9_457, rel=0.25)


def test_estimates_may_stop_early() -> None:
    net = cache.compiled(load.load("connect_four"))
    found = estimate.estimate(net, matches=64, enough=1e6)
    assert found.is_cut
    assert 1e6 < found.histories[-1] < 1e8
    shorter = found.upto(2)
    assert shorter.histories == (1.0, 7.0, 49.0)
    assert shorter.bytes == 4_900
    assert found.upto(None) is found


def test_hopeless_games_are_refused_at_once() -> None:
    with pytest.raises(ValueError, match="too large to unroll: random play tells of more than"):
        trees.unrolled(trees.Game("connect_four"))
