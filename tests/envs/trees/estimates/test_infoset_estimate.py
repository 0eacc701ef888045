"""Estimated numbers of information sets, histories and blocks, against those counted by unrolling."""

import functools

import numpy as np
import pytest

from gdlx.envs import game_facts
from gdlx.envs.trees import game_tree, unroll
from gdlx.envs.trees.estimates import block_estimate, infoset_estimate, size_estimate
from gdlx.envs.trees.factored import unroll_blocks
from gdlx.propnet import games
from gdlx.tests.helpers import sheets

_GAMES = (
    *("biased_rps", "goofspiel:cards=4", "kuhn_poker", "leduc_poker", "liars_dice:sides=3", "modified_rps"),
    *("monty_hall", "rps_plus", "simple_poker", "three_card_poker", "dark_hex:columns=2,rows=2", "tictactoe"),
    *("dark_hex:columns=3,rows=2", "repeated_rps:rounds=3"),
)
_SEEDS = range(3)


@functools.cache
def unrolled(game: str) -> game_tree.GameTree:
    return unroll.unroll(games.compile_game(game), goal_conflict="max")


@pytest.mark.parametrize("game", _GAMES)
def test_information_sets_and_histories_are_within_their_intervals(game: str) -> None:
    propnet, tree = games.compile_game(game), unrolled(game)
    for number, player in enumerate(tree.players):
        assert isinstance(player.views, game_tree.InfosetTree)
        for seed in _SEEDS:
            estimate = infoset_estimate.estimate_infosets(propnet, number, seed, work=2**22)
            assert player.sets in estimate.choices
            assert len(player.views.parent) in estimate.all
    for seed in _SEEDS:
        histories = size_estimate.SizeEstimator(propnet, seed, matches=4_096).estimate()
        assert sum(tree.counts.histories) in histories.sum
        assert histories.sum.high < 2 * histories.sum.low


@pytest.mark.parametrize("game", ["kuhn_poker", "goofspiel:cards=4", "tictactoe"])
def test_intervals_tell_something(game: str) -> None:
    for number, player in enumerate(unrolled(game).players):
        estimate = infoset_estimate.estimate_infosets(games.compile_game(game), number, work=2**24)
        assert 0.8 * player.sets < estimate.choices.low
        assert estimate.choices.high < 1.2 * player.sets


def test_games_of_millions_of_information_sets() -> None:
    # docs/development/results-log.md: counted by unrolling in blocks, and equal to published numbers.
    propnet = games.compile_game("phantom_ttt")
    for number, counted in enumerate((1_893_106, 2_307_355)):
        estimate = infoset_estimate.estimate_infosets(propnet, number, work=2**27)
        assert counted in estimate.choices
        assert estimate.choices.high < 5 * counted


def test_walks_beyond_the_limits_give_lower_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    propnet = games.compile_game("goofspiel:cards=4")
    monkeypatch.setattr(infoset_estimate, "_MAX_JOINT_ACTIONS", 2)
    monkeypatch.setattr(infoset_estimate, "_MIN_JOINT_ACTIONS", 2)
    thinned = infoset_estimate.estimate_infosets(propnet, 0, work=2**22)
    assert 0 < thinned.choices.low <= 81
    assert thinned.choices.high == np.inf


def test_a_game_without_an_end_has_no_upper_bound() -> None:
    propnet = sheets.compile_text("(role a) (legal a x) (legal a y) (init p) (<= (next p) (true p)) (goal a 0)")
    assert infoset_estimate.estimate_infosets(propnet, 0, work=1.0).choices.high == np.inf
    assert game_facts.probe(propnet).histories().sum.high == np.inf


@pytest.mark.parametrize(
    "game", ["dark_hex:columns=3,rows=2", "dark_hex:columns=4,rows=2", "phantom_ttt:width=3,height=2"]
)
@pytest.mark.parametrize("most", [400, 3_000, 200_000])
def test_blocks_are_within_their_interval(game: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_estimate, "_MAX_BLOCKS", most)
    propnet = games.compile_game(game)
    counted = max(unroll_blocks.unroll(propnet).counts.nodes)
    estimate = block_estimate.estimate_blocks(propnet, game_facts.probe(propnet).histories().histories)
    assert counted in estimate.widest
    assert estimate.widest.is_exact == (most > counted)


def test_blocks_of_large_games() -> None:
    def widest(game: str) -> size_estimate.Interval:
        propnet = games.compile_game(game)
        return block_estimate.estimate_blocks(propnet, game_facts.probe(propnet).histories().histories).widest

    assert 300_672 in widest("phantom_ttt")  # the limit of blocks, in propnet/common/limits.py, names this number
    assert widest("phantom_ttt:tries=abrupt").low > 700_000


def test_intervals() -> None:
    interval = size_estimate.Interval.of_mean(np.array([1.0, 2.0, 3.0, 2.0]))
    assert interval.estimate == 2
    assert 2 in interval
    assert 20 not in interval
    assert size_estimate.Interval.of_mean(np.full(9, 7.0)).is_exact
    assert size_estimate.Interval(4.0, 2.0, 8.0).scaled(10, factor=2) == (40, 10, 160)
    assert size_estimate.Interval.of_mean(np.zeros(3)) == (0, 0, np.inf)
