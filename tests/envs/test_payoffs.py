"""Payoffs: zero-sum where two players' goals always have the same sum, the goals themselves elsewhere."""

import pytest

from gdlx.envs import payoffs
from gdlx.propnet import games, library
from gdlx.propnet.common import errors
from gdlx.tests.helpers import sheets

SPLIT = """
(role a) (role b)
(share 0 70) (share 30 40) (share 70 0) {more}
(<= (legal a (take ?x)) (share ?x ?y))
(legal b wait)
(<= (next (took ?x)) (does a (take ?x)))
(<= terminal (true (took ?x)))
(<= (goal a ?x) (true (took ?x)))
(<= (goal b ?y) (true (took ?x)) (share ?x ?y))
"""


@pytest.mark.parametrize("game", library.names())
def test_the_payoffs_of_the_library(game: str) -> None:
    propnet = games.compile_game(game)
    actual = payoffs.infer_payoffs(propnet)
    if game in ("monty_hall", "smallest"):  # one player, three players
        assert actual == payoffs.Payoffs(0.0, False, True)
    else:
        assert (actual.offset, actual.zero_sum) == (50.0, True)
    assert payoffs.infer_payoffs(propnet) == actual


def test_goals_of_a_constant_sum_are_shifted() -> None:
    propnet = sheets.compile_text(SPLIT.format(more=""))
    assert (payoffs.infer_payoffs(propnet).offset, payoffs.infer_payoffs(propnet).zero_sum) == (35.0, True)
    assert payoffs.infer_payoffs(propnet, "zero-sum") == payoffs.infer_payoffs(propnet)
    assert payoffs.infer_payoffs(propnet, "goal") == payoffs.Payoffs(0.0, False, True)


def test_goals_of_other_sums_are_payoffs() -> None:
    propnet = sheets.compile_text(SPLIT.format(more="(share 50 50)"))
    assert payoffs.infer_payoffs(propnet) == payoffs.Payoffs(0.0, False, True)
    with pytest.raises(payoffs.PayoffError, match="constant sum; sums observed: 70, 100"):
        payoffs.infer_payoffs(propnet, "zero-sum")


def test_negative_goals() -> None:
    propnet = sheets.compile_text(SPLIT.format(more="").replace("0 70", "-5 75"))
    assert propnet.roles[0].goal_values == (-5, 30, 70)
    assert (payoffs.infer_payoffs(propnet).offset, payoffs.infer_payoffs(propnet).zero_sum) == (35.0, True)


def test_the_highest_of_several_goals_counts() -> None:
    assert not payoffs.infer_payoffs(sheets.compile_text(sheets.CONFLICTS)).zero_sum
    # With the highest goal of each the sum is always 100; with the lowest, or with all, it is not.
    text = sheets.CONFLICTS.replace("(goal second 10) (true (chosen 2))", "(goal second 0) (true (chosen 2))")
    text = text.replace("(goal second 10) (true (chosen 3))", "(goal second 100) (true (chosen 3))")
    assert (
        payoffs.infer_payoffs(sheets.compile_text(text)).offset,
        payoffs.infer_payoffs(sheets.compile_text(text)).zero_sum,
    ) == (50.0, True)


def test_zero_sum_needs_two_players() -> None:
    for game, players in (("monty_hall", 1), ("smallest", 3)):
        with pytest.raises(payoffs.PayoffError, match=f"needs two players; {game} has {players}"):
            payoffs.infer_payoffs(games.compile_game(game), "zero-sum")
    assert issubclass(payoffs.PayoffError, errors.UserError)


def test_a_game_that_never_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payoffs, "_ROUNDS", ((10, 20), (5, 10)))
    propnet = sheets.compile_text(
        SPLIT.format(more="").replace("(<= terminal (true (took ?x)))", "(<= terminal (true done))")
    )
    assert payoffs.infer_payoffs(propnet) == payoffs.Payoffs(0.0, False, True)
    with pytest.raises(payoffs.PayoffError, match="no random match ended"):
        payoffs.infer_payoffs(propnet, "zero-sum")


def test_a_game_that_ends_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first round of matches is over before any of them is; the second one sees their ends."""
    monkeypatch.setattr(payoffs, "_QUICK_ROUNDS", ((5, 10),))
    monkeypatch.setattr(payoffs, "_ROUNDS", ((10, 20), (5, 100)))
    numbers = " ".join(f"(succ {n} {n + 1})" for n in range(30))
    text = f"""(role a) (role b) (legal a go) (legal b go) (init (at 0)) {numbers}
        (<= (next (at ?n)) (true (at ?m)) (succ ?m ?n)) (<= terminal (true (at 30))) (goal a 20) (goal b 50)"""
    assert payoffs.infer_payoffs(sheets.compile_text(text)).offset == 35.0


def test_a_sum_is_proved_where_no_state_at_all_has_another() -> None:
    assert payoffs.infer_payoffs(games.compile_game("blind_tictactoe")).proved
    # Here a state in which both (took 0) and (took 70) hold would have another sum, though none is ever reached.
    propnet = sheets.compile_text(SPLIT.format(more=""))
    assert not payoffs._is_proved(propnet, 71)
    recursive = sheets.MAZE.replace("(role random)", "(role random) (role rival)").replace(
        "(legal random wait)", "(legal random wait) (legal rival wait) (goal rival 0)"
    )
    assert not payoffs.infer_payoffs(sheets.compile_text(recursive, iterated=True)).zero_sum
    assert payoffs._is_proved(
        sheets.compile_text(recursive.replace("(goal digger 0)", "(goal digger 100)"), iterated=True), 100
    )
