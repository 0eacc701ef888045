"""Two-player zero-sum matrix games, thousands at once.

Games with a saddle point in pure strategies are solved by it, others of 2x2 in closed form, and the rest by the simplex
method, on all games in lockstep.
"""

import fractions
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

# Of the gap of a game, relative to the range of its payoffs; with a larger gap it is solved again in rational numbers.
TOLERANCE = 1e-9
_ZERO = 1e-11  # reduced costs and pivots below this are 0; payoffs are scaled to 1 .. 2
_BLAND_AFTER = 64  # pivots, after which Bland's rule excludes cycles
_MAX_PIVOTS = 1_024


class MatrixGames(NamedTuple):
    """Optimal strategies. Axes: B games, N rows, M columns."""

    value: Floats  # [B] for the row player: between its guarantee and what the column player concedes at most
    row: Floats  # [B, N] the row player maximises
    column: Floats  # [B, M]
    gap: Floats  # [B] measured: what the best responses to both strategies gain together
    mixed: int  # games without a saddle point in pure strategies
    rational: int  # games that needed rational arithmetic


def solve(payoff: Floats) -> MatrixGames:
    """Solves games [B, N, M] whose payoffs the row player maximises and the column player minimises.

    The gap of every solution is measured on its matrix, and is at most `TOLERANCE` times the range of the payoffs. Of
    several saddle points the one with the first row and the first column is taken.

    >>> games = solve(np.array([[[1.0, -1.0], [-1.0, 1.0]], [[3.0, 2.0], [1.0, 0.0]]]))
    >>> games.value.tolist(), games.row.tolist(), games.mixed
    ([0.0, 2.0], [[0.5, 0.5], [1.0, 0.0]], 1)
    """
    count, rows, columns = payoff.shape
    best_row, best_column = payoff.min(axis=2).argmax(axis=1), payoff.max(axis=1).argmin(axis=1)
    row, column = np.zeros((count, rows)), np.zeros((count, columns))
    every = np.arange(count)
    lower, upper = payoff.min(axis=2)[every, best_row], payoff.max(axis=1)[every, best_column]
    row[every, best_row] = 1.0
    column[every, best_column] = 1.0
    mixed = np.flatnonzero(lower < upper)
    inaccurate = mixed[:0]
    if len(mixed):
        if rows == columns == 2:
            row[mixed], column[mixed] = _two_by_two(payoff[mixed])
        else:
            row[mixed], column[mixed] = _simplex(payoff[mixed])
        guarantee, concession = _guarantees(payoff[mixed], row[mixed], column[mixed])
        spread = payoff[mixed].max(axis=(1, 2)) - payoff[mixed].min(axis=(1, 2))
        inaccurate = mixed[~(concession - guarantee <= TOLERANCE * spread)]  # or not a number
        for number in inaccurate.tolist():
            row[number], column[number] = _by_rationals(payoff[number])
    guarantee, concession = _guarantees(payoff, row, column)
    gap = np.maximum(concession - guarantee, 0.0)
    return MatrixGames((guarantee + concession) / 2, row, column, gap, len(mixed), len(inaccurate))


def _guarantees(payoff: Floats, row: Floats, column: Floats) -> tuple[Floats, Floats]:
    """What the row strategies guarantee, and what the column strategies concede at most."""
    return np.einsum("bn,bnm->bm", row, payoff).min(axis=1), np.einsum("bnm,bm->bn", payoff, column).max(axis=1)


def _two_by_two(payoff: Floats) -> tuple[Floats, Floats]:
    """Without a saddle point, both players make the other indifferent."""
    (a, b), (c, d) = payoff[:, 0].T, payoff[:, 1].T
    with np.errstate(invalid="ignore", divide="ignore"):  # rounding may leave a total of 0
        first_row, first_column = (np.clip(part / (a - b - c + d), 0, 1) for part in (d - c, d - b))
    return np.stack([first_row, 1 - first_row], axis=1), np.stack([first_column, 1 - first_column], axis=1)


def _simplex(payoff: Floats) -> tuple[Floats, Floats]:
    """The primal simplex method on all games in lockstep.

    With payoffs A scaled to 1 .. 2, the column player's strategy is y / sum(y) of: maximise sum(y) so that A y <= 1 and
    y >= 0. The origin is feasible, so that there is no first phase, and the dual solution is the row player's strategy.
    The tableau [B, N + 1, M + N + 1] has the reduced costs in its last row and the right-hand side in its last column.
    """
    count, rows, columns = payoff.shape
    low, high = payoff.min(axis=(1, 2), keepdims=True), payoff.max(axis=(1, 2), keepdims=True)
    tableau = np.zeros((count, rows + 1, columns + rows + 1))
    tableau[:, :rows, :columns] = 1 + (payoff - low) / (high - low)
    tableau[:, np.arange(rows), columns + np.arange(rows)] = 1.0
    tableau[:, :rows, -1] = 1.0
    tableau[:, rows, :columns] = -1.0
    basis = np.tile(columns + np.arange(rows), (count, 1))
    active = np.arange(count)
    for pivots in range(_MAX_PIVOTS):
        active = active[(tableau[active, rows, :-1] < -_ZERO).any(axis=1)]
        if not len(active):
            break
        _pivot(tableau, basis, active, by_bland=pivots >= _BLAND_AFTER)
    solution = np.zeros((count, columns + rows))
    np.put_along_axis(solution, basis, tableau[:, :rows, -1], axis=1)
    return _normalised(tableau[:, rows, columns:-1]), _normalised(solution[:, :columns])


def _pivot(tableau: Floats, basis: Longs, active: Longs, *, by_bland: bool) -> None:
    """One pivot of every active game, in place: the steepest reduced cost, or the first by Bland's rule."""
    rows = basis.shape[1]
    costs = tableau[active, rows, :-1]
    entering = (costs < -_ZERO).argmax(axis=1) if by_bland else costs.argmin(axis=1)
    column = tableau[active, :, entering]
    divisor = np.where(column[:, :rows] > _ZERO, column[:, :rows], 1.0)
    ratio = np.where(column[:, :rows] > _ZERO, tableau[active, :rows, -1] / divisor, np.inf)
    tied = ratio <= ratio.min(axis=1, keepdims=True) + _ZERO
    # Of the rows that tie, by Bland's rule that of the first variable; else that with the largest pivot, for accuracy.
    preference = -basis[active].astype(np.float64) if by_bland else column[:, :rows]
    leaving = np.where(tied, preference, -np.inf).argmax(axis=1)
    every = np.arange(len(active))
    pivot_row = tableau[active, leaving] / column[every, leaving][:, None]
    factor = column.copy()
    factor[every, leaving] = 0.0
    tableau[active] -= factor[:, :, None] * pivot_row[:, None, :]
    tableau[active, leaving] = pivot_row
    basis[active, leaving] = entering


def _by_rationals(payoff: Floats) -> tuple[Floats, Floats]:
    """The same method on one game, exactly: floats are rational numbers, and Bland's rule excludes cycles."""
    rows, columns = payoff.shape
    entries = [[fractions.Fraction(number) for number in line] for line in payoff.tolist()]
    shift = 1 - min(map(min, entries))
    zero, one = fractions.Fraction(0), fractions.Fraction(1)
    tableau = [
        [*(number + shift for number in line), *(one if n == row else zero for n in range(rows)), one]
        for row, line in enumerate(entries)
    ]
    costs = [-one] * columns + [zero] * (rows + 1)
    basis = [columns + n for n in range(rows)]
    while (entering := next((n for n, cost in enumerate(costs[:-1]) if cost < 0), None)) is not None:
        ratios = [(line[-1] / line[entering], basis[n], n) for n, line in enumerate(tableau) if line[entering] > 0]
        leaving = min(ratios)[2]
        pivot = tableau[leaving] = [number / tableau[leaving][entering] for number in tableau[leaving]]
        for line in (*(line for n, line in enumerate(tableau) if n != leaving), costs):
            if factor := line[entering]:
                line[:] = [number - factor * other for number, other in zip(line, pivot, strict=True)]
        basis[leaving] = entering
    solution = [zero] * (columns + rows)
    for variable, line in zip(basis, tableau, strict=True):
        solution[variable] = line[-1]
    row, column = costs[columns:-1], solution[:columns]
    return np.array([float(x / sum(row)) for x in row]), np.array([float(y / sum(column)) for y in column])


def _normalised(weights: Floats) -> Floats:
    weights = np.maximum(weights, 0.0)
    with np.errstate(invalid="ignore"):  # no solution
        strategy: Floats = weights / weights.sum(axis=-1, keepdims=True)
    return strategy
