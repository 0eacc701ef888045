"""Linear programs against published values and against regret minimisation."""

from collections.abc import Iterator

import jax
import numpy as np
import pytest

from gdlx.envs.trees import game_tree, sequence_form, unroll
from gdlx.propnet import games
from gdlx.solvers import tabular_policies
from gdlx.solvers.exact import best_response, cfr, lp, regret_matching
from gdlx.solvers.runs import policy_tables
from gdlx.tests.helpers import sheets

evaluate = jax.jit(best_response.evaluate)
counterfactual_values = jax.jit(best_response.counterfactual_values, static_argnums=2)
jitted_best_response = jax.jit(best_response.best_response, static_argnums=2)


@pytest.fixture(autouse=True)
def _x64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def tree_of(spec: str) -> game_tree.GameTree:
    return unroll.unroll(games.compile_game(spec))


def evaluated(tree: game_tree.GameTree, policies: tabular_policies.Policies) -> best_response.Evaluation:
    game, layouts = sequence_form.sequence_form(tree)
    evaluation: best_response.Evaluation = evaluate(game, tabular_policies.to_levels(tree, layouts, policies))
    return evaluation


@pytest.mark.parametrize(
    ("spec", "value"),
    [
        ("kuhn_poker", -1 / 18),  # Kuhn (1950)
        ("leduc_poker", -0.085606424078),  # OpenSpiel's own sequence-form LP
        ("simple_poker", 1 / 3),
        ("goofspiel:cards=4", 0.0),  # symmetric
        ("rps", 0.0),
        pytest.param("liars_dice", -50 * 7 / 258, marks=pytest.mark.slow),  # a win is 50 here, 1 in OpenSpiel
    ],
)
def test_known_values(spec: str, value: float) -> None:
    tree = tree_of(spec)
    solved = lp.solve(tree)
    assert list(solved.value) == pytest.approx([value, -value], abs=1e-9)
    judged = evaluated(tree, solved.policies)
    assert float(judged.value[0]) == pytest.approx(value, abs=1e-9)
    assert float(judged.nash_conv) < 1e-9


@pytest.mark.parametrize(
    ("spec", "policy"),
    [
        ("biased_rps", {"rock": 0.0625, "paper": 0.625, "scissors": 0.3125}),
        ("modified_rps", {"rock": 0.4, "paper": 0.4, "scissors": 0.2}),
    ],
)
def test_matrix_games(spec: str, policy: dict[str, float]) -> None:
    tree = tree_of(spec)
    solved = lp.solve(tree)
    for player, chosen in zip(tree.players, solved.policies, strict=True):
        assert dict(zip(player.options(0), chosen[1:].tolist(), strict=True)) == pytest.approx(policy)


def test_simple_poker() -> None:
    """Bet a king always, bluff with a jack one time in three, call two times in three."""
    tree = tree_of("simple_poker")
    policies = lp.solve(tree).policies
    rows = {row[2:4]: row.probability for row in policy_tables.rows(tree, policies)}
    assert rows["(dealt king)", "bet"] == pytest.approx(1)
    assert rows["(dealt jack)", "bet"] == pytest.approx(1 / 3)
    assert rows["(opponent_did bet)", "bet"] == pytest.approx(2 / 3)


def test_the_same_as_regret_minimisation() -> None:
    """A game with several equilibria, so that only values agree."""
    for spec in ("three_card_poker", "liars_dice:sides=2"):
        tree = tree_of(spec)
        game, _ = sequence_form.sequence_form(tree)
        state, step = cfr.init(game), jax.jit(cfr.step)
        for _ in range(300):
            state = step(game, state, regret_matching.Settings(beta=-np.inf, gamma=2.0, optimism=1.0))
        approached = jax.jit(best_response.evaluate_average)(game, state)
        exact = lp.solve(tree)
        assert float(approached.nash_conv) < 1e-3
        assert float(approached.value[0]) == pytest.approx(exact.value[0], abs=1e-3)
        assert float(evaluated(tree, exact.policies).nash_conv) < 1e-9


def test_where_a_player_never_comes_it_answers_well() -> None:
    """In kuhn_poker the first player may check every king, and its policy after a bet that it never makes does not
    affect the value. The policy is a best response at every information set that the other player can reach."""
    for spec in ("kuhn_poker", "liars_dice:sides=2"):
        tree = tree_of(spec)
        game, layouts = sequence_form.sequence_form(tree)
        profile = tabular_policies.to_levels(tree, layouts, lp.solve(tree).policies)
        for number in range(2):
            values = counterfactual_values(game, profile, number)
            best = jitted_best_response(game, profile, number)[0]
            answered = counterfactual_values(
                game, tuple(best if n == number else chosen for n, chosen in enumerate(profile)), number
            )
            for level, (ours, theirs) in enumerate(zip(values, answered, strict=True)):
                is_option = np.asarray(game.players[number].uniform[level]) > 0
                worth = (np.asarray(ours) * np.asarray(profile[number][level])).sum(axis=0)
                top = np.where(is_option, theirs, -np.inf).max(axis=0)
                np.testing.assert_allclose(worth, top, atol=1e-7)


def test_players_without_a_choice() -> None:
    solved = lp.solve(unroll.unroll(sheets.compile_text(sheets.DEAD_END), unplayable="end"))
    assert list(solved.value) == pytest.approx([50, -50])
    assert solved.policies[1].tolist() == [1.0]


def test_what_cannot_be_solved() -> None:
    with pytest.raises(lp.LinearProgramError, match="has 1 player"):
        lp.solve(tree_of("monty_hall"))
    with pytest.raises(lp.LinearProgramError, match="has 3 players"):
        lp.solve(tree_of("smallest:numbers=2,steps=2"))
    with pytest.raises(lp.LinearProgramError, match="zero-sum games of two players"):
        lp.solve(unroll.unroll(games.compile_game("kuhn_poker"), "goal"))
    with pytest.raises(lp.LinearProgramError, match="too large for a linear program: 30 payoffs, more than 20"):
        lp.solve(tree_of("kuhn_poker"), max_entries=20)
    with pytest.raises(lp.LinearProgramError, match="not unrolled to its terminals"):
        lp.solve(unroll.unroll(games.compile_game("kuhn_poker"), depth=3))
