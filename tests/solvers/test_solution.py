"""`gdlx.solve` and what it gives: values, policies by history, errors."""

import pytest

import gdlx
from gdlx.envs import game_spec
from gdlx.solvers import solution


@pytest.fixture(scope="module")
def kuhn() -> solution.Solution:
    return gdlx.solve("kuhn_poker", "cfr+", iterations=2_000)


def test_cfr_plus_solves_kuhn(kuhn: solution.Solution) -> None:
    # Kuhn (1950): the first player loses 1/18 of an ante per game at equilibrium.
    assert kuhn.exploitability is not None
    assert kuhn.exploitability < 1e-3
    assert abs(kuhn.value[0] + 1 / 18) < 1e-3
    assert kuhn.goals[0] == pytest.approx(50 + kuhn.value[0])
    assert kuhn.iterations == 2_000


def test_policies_of_kuhn(kuhn: solution.Solution) -> None:
    # Kuhn (1950): with the jack bet a, with the king 3a; never bet the queen, never fold the king.
    bluff = kuhn.policy("player1", "(dealt jack)")["bet"]
    assert kuhn.policy("player1", ["(dealt king)"])["bet"] == pytest.approx(3 * bluff, abs=0.05)
    assert kuhn.policy("player1", ["(dealt queen)"])["bet"] < 0.01
    assert kuhn.policy("player2", "(dealt king); (opponent_did bet)")["call"] > 0.99
    assert kuhn.policy("player2", ["(dealt queen)", "(opponent_did bet)"])["call"] == pytest.approx(1 / 3, abs=0.02)


@pytest.mark.parametrize(
    "history", ["(dealt king); check; (opponent_did bet)", "(dealt king), check,(opponent_did bet)"]
)
def test_histories_may_be_written_loosely(kuhn: solution.Solution, history: str) -> None:
    assert kuhn.policy("player1", history)["call"] > 0.99


def test_what_there_is_not(kuhn: solution.Solution) -> None:
    with pytest.raises(solution.UnknownHistoryError, match="player1, player2"):
        kuhn.policy("first", "(dealt king)")
    with pytest.raises(solution.UnknownHistoryError, match=r"nearest of its 6 information sets: \(dealt king\)"):
        kuhn.policy("player1", "(dealt kin)")


def test_labels_tell_every_set_apart(kuhn: solution.Solution) -> None:
    for number, player in enumerate(kuhn.tree.players):
        assert len(set(player.labels)) == player.sets
        for decision, label in enumerate(player.labels):
            assert kuhn.find_infoset(number, label) == decision


def test_a_matrix_game_has_one_history() -> None:
    # Seed 000, Table 3.3: the unique equilibrium of the biased game.
    found = gdlx.solve("biased_rps", "lp")
    assert found.exploitability == pytest.approx(0, abs=1e-4)
    for player in ("player1", "player2"):
        assert sorted(found.policy(player).values()) == pytest.approx([0.0625, 0.3125, 0.625], abs=1e-6)


def test_one_player_alone() -> None:
    found = gdlx.solve("monty_hall", iterations=500)
    assert found.exploitability is None
    assert found.value[0] == pytest.approx(200 / 3, abs=0.1)
    assert found.improvements[0] < 0.1


def test_three_players_have_gains() -> None:
    found = gdlx.solve("smallest:numbers=3,steps=1", iterations=50)
    assert found.exploitability is None
    assert len(found.improvements) == 3


def test_targets_may_be_relative() -> None:
    found = gdlx.solve("kuhn_poker", target="1%")
    assert found.exploitability is not None
    assert found.exploitability <= 0.04  # payoffs go from -2 to 2


def test_settings_change_an_algorithm() -> None:
    plain = gdlx.solve("kuhn_poker", "cfr", iterations=100)
    linear = gdlx.solve("kuhn_poker", "cfr", iterations=100, gamma=1.0)
    assert plain.value != linear.value


def test_a_game_read_in_another_way() -> None:
    found = gdlx.solve(game_spec.GameSpec("kuhn_poker", payoff="goal"), iterations=100)
    assert found.value[0] == pytest.approx(50 - 1 / 18, abs=0.1)
    assert not found.tree.zero_sum
