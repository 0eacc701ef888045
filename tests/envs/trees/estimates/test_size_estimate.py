"""Sizes of games from random play, against sizes counted by unrolling."""

import pytest

from gdlx.envs import game_spec
from gdlx.envs.trees import unroll
from gdlx.envs.trees.estimates import size_estimate
from gdlx.propnet import games
from gdlx.tests.helpers import sheets


@pytest.mark.parametrize("game", ["goofspiel:cards=4", "rps", "simple_poker"])
def test_games_of_one_length_are_counted_exactly(game: str) -> None:
    """Where every state of a step has as many joint actions as the others, one match tells all."""
    propnet = games.compile_game(game)
    counted = unroll.unroll(propnet, goal_conflict="max").counts.histories
    estimate = size_estimate.estimate_size(propnet)
    assert not estimate.is_truncated
    if game != "simple_poker":
        assert estimate.histories == pytest.approx(counted)
    assert estimate.total == pytest.approx(sum(counted), rel=0.2)


def test_what_rules_say_after_the_end_does_not_count() -> None:
    # After the end no heap is left, but one player still waits, and the other takes something or nothing.
    minus = " ".join(f"(minus {a} {b} {a - b})" for a in range(1, 6) for b in range(1, min(a, 3) + 1))
    rules = """(role a) (role b) (init (heap 5)) (init (turn a)) (goal a 100) (goal b 0) (<= terminal (true (heap 0)))
        (<= (legal ?p (take ?n)) (true (turn ?p)) (true (heap ?h)) (minus ?h ?n ?r))
        (<= (legal a noop) (true (turn b))) (<= (legal b noop) (true (turn a)))
        (<= (next (heap ?r)) (true (heap ?h)) (does ?p (take ?n)) (minus ?h ?n ?r))
        (<= (next (turn b)) (true (turn a))) (<= (next (turn a)) (true (turn b)))"""
    propnet = games.compile_game(rules=rules + minus)
    estimate = size_estimate.estimate_size(propnet)
    assert not estimate.is_truncated
    assert len(estimate.histories) == len(unroll.unroll(propnet, goal_conflict="max").counts.histories)


def test_leduc_is_about_right() -> None:
    # FACTS: 9 457 histories, counted with OpenSpiel.
    assert size_estimate.estimate_size(games.compile_game("leduc_poker")).total == pytest.approx(9_457, rel=0.25)


def test_estimates_may_stop_early() -> None:
    propnet = games.compile_game("connect_four")
    estimate = size_estimate.estimate_size(propnet, matches=64, enough=1e6)
    assert estimate.is_truncated
    assert 1e6 < estimate.histories[-1] < 1e8
    shorter = estimate.up_to_depth(2)
    assert shorter.histories == (1.0, 7.0, 49.0)
    assert shorter.bytes == 4_900
    assert estimate.up_to_depth(None) is estimate


def test_hopeless_games_are_refused_at_once() -> None:
    with pytest.raises(ValueError, match="too large to unroll: random play shows more than"):
        game_spec.unroll_game(game_spec.GameSpec("connect_four"))


@pytest.mark.parametrize("game", ["kuhn_poker", "leduc_poker", "goofspiel:cards=4", "liars_dice:sides=3", "tictactoe"])
def test_no_step_has_fewer_nodes_than_the_bound(game: str) -> None:
    propnet = games.compile_game(game)
    counted = unroll.unroll(propnet, goal_conflict="max").counts.nodes[1:]
    bounds = [list(size_estimate.node_count_lower_bounds(propnet, matches=4_000, seed=seed)) for seed in range(3)]
    assert all(bound <= nodes for seen in bounds for bound, nodes in zip(seen, counted, strict=False))
    assert all(seen[0] > 0.9 * counted[0] for seen in bounds)  # and it is near where matches meet often


_FORGOTTEN = """(role x) (role random) (init (at 0)) (legal x wait) (succ 0 1) (succ 1 2) (succ 2 3) (succ 3 4)
    (number 1) (number 2) (number 3) (number 4) (number 5) (number 6) (number 7) (number 8)
    (<= (legal random (draw ?n)) (number ?n)) (<= (next (at ?n)) (true (at ?m)) (succ ?m ?n))
    (<= (sees x two) (does random (draw 2))) (<= terminal (true (at 4))) (goal x 50)"""


def test_merged_histories_count_once() -> None:
    """Of eight numbers drawn, the player learns whether it was the 2, and the state nothing."""
    propnet = sheets.compile_text(_FORGOTTEN)
    counted = unroll.unroll(propnet).counts
    assert (counted.nodes, counted.histories) == ((1, 2, 4, 8, 1), (1, 8, 64, 512, 4_096))
    bounds = list(size_estimate.node_count_lower_bounds(propnet, matches=20_000))
    # Unrolling also merges ends that differ only in what is known there.
    assert all(1 <= bound <= nodes for bound, nodes in zip(bounds, (2, 4, 8, 16), strict=True))
    assert unroll.unroll(propnet, max_nodes=100).counts == counted  # with 4 096 histories, most of which merge


@pytest.mark.parametrize(("max_nodes", "step"), [(1_000, 3), (20_000, 4)])
def test_a_game_is_refused_before_it_is_unrolled(max_nodes: int, step: int) -> None:
    steps: list[int] = []
    with pytest.raises(ValueError, match=rf"nodes after {step} joint actions; allowed are .*at most {step - 1}\)"):
        game_spec.unroll_game(
            game_spec.GameSpec("goofspiel:cards=6"), max_nodes=max_nodes, report=lambda step, nodes: steps.append(step)
        )
    assert not steps


def test_a_game_within_the_limits_is_not_refused() -> None:
    game = game_spec.GameSpec("goofspiel:cards=5")
    widest = max(game_spec.unroll_game(game).counts.nodes)
    assert max(game_spec.unroll_game(game, max_nodes=widest).counts.nodes) == widest
    with pytest.raises(ValueError, match="too large to unroll"):
        game_spec.unroll_game(game, max_nodes=widest - 1)
