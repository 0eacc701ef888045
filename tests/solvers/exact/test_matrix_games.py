"""Matrix games against scipy's linear programs, closed forms, and rational arithmetic."""

import numpy as np
import pytest
import scipy.optimize

from gdlx.solvers.exact import matrix_games

Floats = matrix_games.Floats


def value_by_scipy(payoff: Floats) -> float:
    rows, columns = payoff.shape
    optimum = scipy.optimize.linprog(
        np.append(np.zeros(rows), -1.0),
        A_ub=np.hstack([-payoff.T, np.ones((columns, 1))]),
        b_ub=np.zeros(columns),
        A_eq=np.append(np.ones(rows), 0.0)[None],
        b_eq=[1.0],
        bounds=[(0, None)] * rows + [(None, None)],
        method="highs",
    )
    return float(-optimum.fun)


def check(payoff: Floats, games: matrix_games.MatrixGames) -> None:
    """The strategies are distributions, and guarantee the value up to the tolerance."""
    for strategy in (games.row, games.column):
        assert (strategy >= 0).all()
        np.testing.assert_allclose(strategy.sum(axis=1), 1.0, atol=1e-12)
    guarantee = np.einsum("bn,bnm->bm", games.row, payoff).min(axis=1)
    concession = np.einsum("bnm,bm->bn", payoff, games.column).max(axis=1)
    spread = np.ptp(payoff, axis=(1, 2))
    assert (concession - guarantee <= 2 * matrix_games.TOLERANCE * spread + 1e-12).all()
    np.testing.assert_allclose(games.gap, np.maximum(concession - guarantee, 0), atol=1e-12)


@pytest.mark.parametrize("shape", [(2, 2), (3, 3), (2, 5), (5, 2), (6, 7), (1, 4), (4, 1)])
@pytest.mark.parametrize("kind", ["normal", "few values"])
def test_values_are_those_of_scipy(shape: tuple[int, int], kind: str) -> None:
    rng = np.random.default_rng(hash(shape) % 1_000)
    size = (40, *shape)
    payoff = rng.normal(size=size) if kind == "normal" else rng.choice([-50.0, 0.0, 50.0], size=size)
    games = matrix_games.solve(payoff)
    check(payoff, games)
    np.testing.assert_allclose(games.value, [value_by_scipy(one) for one in payoff], atol=1e-7)


def test_rock_paper_scissors_and_matching_pennies_have_their_textbook_solutions() -> None:
    rps = np.array([[[0.0, 1.0, -1.0], [-1.0, 0.0, 1.0], [1.0, -1.0, 0.0]]])
    np.testing.assert_allclose(matrix_games.solve(rps).row, np.full((1, 3), 1 / 3), atol=1e-12)
    # Without a saddle point, p = (d - c) / (a - b - c + d): 3/5 here.
    games = matrix_games.solve(np.array([[[3.0, -1.0], [-2.0, 4.0]]]))
    np.testing.assert_allclose(games.row, [[0.6, 0.4]])
    np.testing.assert_allclose(games.column, [[0.5, 0.5]])
    np.testing.assert_allclose(games.value, [1.0])


def test_of_several_saddle_points_the_first_is_taken() -> None:
    games = matrix_games.solve(np.zeros((1, 3, 2)))
    assert games.row.tolist() == [[1.0, 0.0, 0.0]]
    assert games.column.tolist() == [[1.0, 0.0]]
    assert games.mixed == 0


def test_games_that_are_nearly_singular_are_solved_in_rational_numbers() -> None:
    rng = np.random.default_rng(0)
    size = (400, 9, 9)
    scale = rng.choice([-1, 1, 1e-3], size=(400, 9, 1)) * rng.choice([0, 1.0], size=(400, 1, 9))
    payoff = scale + rng.choice([0, 0, 0, 1e-7], size=size)
    games = matrix_games.solve(payoff)
    check(payoff, games)
    assert games.rational > 0


def test_rational_arithmetic_agrees_with_scipy() -> None:
    rng = np.random.default_rng(3)
    for _ in range(10):
        payoff = rng.integers(-3, 4, (4, 5)).astype(float)
        row, column = matrix_games._by_rationals(payoff)
        value = value_by_scipy(payoff)
        assert (row @ payoff).min() == pytest.approx(value, abs=1e-9)
        assert (payoff @ column).max() == pytest.approx(value, abs=1e-9)


def test_scale_and_offset_do_not_matter() -> None:
    rng = np.random.default_rng(4)
    payoff = rng.normal(size=(20, 4, 4))
    plain, scaled = matrix_games.solve(payoff), matrix_games.solve(1e6 * payoff - 3e7)
    np.testing.assert_allclose(scaled.value, 1e6 * plain.value - 3e7, rtol=1e-9)
