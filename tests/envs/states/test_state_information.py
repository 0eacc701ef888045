"""Games of states: recognised by proof, and refuted by what a player cannot tell apart."""

import itertools

import pytest

from gdlx.envs.states import state_count, state_information
from gdlx.propnet import games
from gdlx.propnet.circuits import propnet
from gdlx.tests.helpers import playing

# Matching pennies, twice. What a player sees of the other's move is up to the sheet.
TWICE = """
(role left) (role right)
(init (round 1))
(<= (legal ?p heads) (role ?p)) (<= (legal ?p tails) (role ?p))
(<= (next (round 2)) (true (round 1))) (<= (next (round 3)) (true (round 2)))
(<= (next (last ?m)) (does right ?m))
(<= (next (same)) (does left ?m) (does right ?m))
(<= (goal left 100) (true (same))) (<= (goal left 0) (not (true (same))))
(<= (goal right 0) (true (same))) (<= (goal right 100) (not (true (same))))
(<= terminal (true (round 3)))
"""
SEES_MOVE = "(<= (sees ?p (did ?q ?m)) (role ?p) (does ?q ?m))"
SEES_RESULT = "(<= (sees ?p match) (role ?p) (does left ?m) (does right ?m))"
SEES_OTHER_TAILS = "(<= (sees left tails) (does right tails)) (<= (sees right tails) (does left tails))"


def compiled(*rules: str) -> propnet.PropNet:
    return games.compile_game(rules="\n".join([TWICE, *rules]))


@pytest.mark.parametrize("percepts", [SEES_MOVE, SEES_RESULT, SEES_OTHER_TAILS])
def test_percepts_that_determine_the_state_are_proved_to(percepts: str) -> None:
    information = state_information.infer_state_information(compiled(percepts))
    assert information == state_information.StateInformation(True, True)


def test_a_player_who_sees_nothing_does_not_know_the_state() -> None:
    game = compiled(SEES_MOVE.replace("(role ?p)", "(distinct ?p left) (role ?p)"))
    information = state_information.infer_state_information(game)
    assert not information.known
    assert information.proved
    assert information.ambiguity is not None
    assert information.ambiguity.player == "left"
    first, second = information.ambiguity.first, information.ambiguity.second
    assert first[0] == second[0]
    assert first[1] != second[1]
    assert "cannot tell" in information.ambiguity.in_words()


def test_states_that_end_the_game_need_not_be_told_apart() -> None:
    once = TWICE.replace("(true (round 3))", "(true (round 2))")
    game = games.compile_game(rules=once + "(sees left nothing)")
    assert state_information.infer_state_information(game).known


@pytest.mark.parametrize("name", ["kuhn_poker", "phantom_tictactoe", "goofspiel", "monty_hall", "liars_dice"])
def test_games_with_hidden_information_are_refuted(name: str) -> None:
    information = state_information.infer_state_information(games.compile_game(name))
    assert not information.known
    assert information.ambiguity is not None
    assert state_count.describe(games.compile_game(name))[1] is None


@pytest.mark.parametrize("name", ["tictactoe", "simultaneous_tictactoe", "goofspiel:info=perfect,cards=4"])
def test_games_without_sees_are_games_of_states(name: str) -> None:
    assert state_information.infer_state_information(games.compile_game(name)).proved


def count_by_interpreter(rules: str) -> tuple[int, int]:
    """Distinct states of every step and their joint actions, from the rules themselves."""
    game = playing.load_interpreter(rules)
    level = {game.initial}
    states = pairs = 0
    while level:
        states += len(level)
        following = set()
        for state in level:
            if not game.is_terminal(state):
                options = game.legal(state)
                for joint in itertools.product(*options.values()):
                    pairs += 1
                    following.add(game.next(state, dict(zip(options, joint, strict=True))))
        level = following
    return states, pairs


def test_states_are_counted_as_by_the_interpreter() -> None:
    count = state_count.count_states(compiled(SEES_MOVE))
    assert count.exact
    assert count.steps == 2
    assert (count.states, count.joint_actions) == count_by_interpreter(TWICE + SEES_MOVE)


def test_the_number_of_states_is_known_or_estimated_from_below() -> None:
    game = games.compile_game("tictactoe")
    exact = state_count.count_states(game)
    # The positions of tic-tac-toe, a number known from many sources.
    assert exact.exact
    assert (exact.states, exact.steps) == (5_478, 9)
    estimate = state_count.count_states(game, budget=500)
    assert not estimate.exact
    assert estimate.steps == 9
    assert 0.5 * exact.states < estimate.states < 1.2 * exact.states
    assert 0.5 * exact.joint_actions < estimate.joint_actions < 1.5 * exact.joint_actions
