"""An exact equilibrium of a two-player zero-sum game by one linear program on its sequence form, in float64.

With A the payoffs of the first player by pairs of sequences, and E, F the constraints on the realization plans x, y of
the two players (Ex = e: the actions of an information set sum to the sequence that leads to it), the first player's
problem is

    maximise v_0   subject to   Ex = e,  x >= 0,  F'v <= A'x                     (Koller, Megiddo & von Stengel 1996)

and the dual variables of its inequalities are an optimal plan of the second player. Needs perfect recall, which all
trees here have. A matrix game is the case of one information set for each player.
"""

import time
from typing import Any, NamedTuple

import numpy as np
import scipy.optimize
import scipy.sparse

from gdlx.envs.trees import game_tree
from gdlx.propnet.common import errors
from gdlx.propnet.common.text import plurals
from gdlx.solvers import tabular_policies

# Payoffs in the program. CFR is faster well before that: "Linear programming" in docs/development/results-log.md.
MAX_ENTRIES = 1_000_000
_TOLERANCE = 1e-9  # of HiGHS, on payoffs scaled to 1
_NEVER = 1e-8  # smaller probabilities are rounding errors

Matrix = Any  # scipy.sparse.csr_array, which has no types


class LinearProgramError(errors.UserError, ValueError):
    """A game that a linear program cannot solve, or that is too large for one."""


class LpSolution(NamedTuple):
    """An equilibrium."""

    value: tuple[float, float]  # payoffs of the two players
    policies: tabular_policies.Policies
    seconds: float  # of HiGHS


def solve(tree: game_tree.GameTree, *, max_entries: int = MAX_ENTRIES) -> LpSolution:
    """Computes an equilibrium. Information sets that a player's own plan never reaches get best responses.

    Args:
      tree: a two-player zero-sum game, unrolled to its terminals.
      max_entries: refuse programs with more payoffs than this.

    Raises:
      LinearProgramError: the game is not two-player zero-sum, not fully unrolled, or too large.
    """
    _require_fit(tree)
    payoffs = payoff_matrix(tree)
    if payoffs.nnz > max_entries:
        raise LinearProgramError(
            f"{tree.name} is too large for a linear program: {payoffs.nnz:,} payoffs, more than {max_entries:,}. "
            "Use cfr+ or dcfr, which converge to an equilibrium"
        )
    scale = float(abs(payoffs).max()) if payoffs.nnz else 1.0
    start = time.perf_counter()
    first, second, value = _optimum(
        payoffs / scale, plan_constraints(tree.players[0]), plan_constraints(tree.players[1])
    )
    seconds = time.perf_counter() - start
    value = value * scale + 0.0  # and never -0
    policies = (
        _complete_policy(tree.players[0], first, payoffs @ second),
        _complete_policy(tree.players[1], second, -(payoffs.T @ first)),
    )
    return LpSolution((value, 0.0 - value), policies, seconds)


def payoff_matrix(tree: game_tree.GameTree) -> Matrix:
    """Returns A [S, S']: the first player's payoff times the probability of chance, by both sequences."""
    terminals = tree.listed_terminals
    shape = (tree.players[0].sequences, tree.players[1].sequences)
    weighted = terminals.payoff[:, 0] * terminals.weight
    matrix = scipy.sparse.coo_array((weighted, (terminals.sequence[:, 0], terminals.sequence[:, 1])), shape).tocsr()
    matrix.eliminate_zeros()
    return matrix


def plan_constraints(player: game_tree.Player) -> Matrix:
    """Returns E [1 + I, S]: Ex is x_0, then per information set the sum of its actions less its parent sequence."""
    sets = np.arange(player.sets)
    rows = np.concatenate([[0], 1 + np.repeat(sets, np.diff(player.first)), 1 + sets])
    columns = np.concatenate([np.arange(player.sequences), player.parent])
    signs = np.concatenate([np.ones(player.sequences), -np.ones(player.sets)])
    return scipy.sparse.coo_array((signs, (rows, columns)), (1 + player.sets, player.sequences)).tocsr()


def _require_fit(tree: game_tree.GameTree) -> None:
    if len(tree.players) != 2 or not tree.zero_sum:
        what = plurals.count(len(tree.players), "player") if len(tree.players) != 2 else "other sums"
        raise LinearProgramError(
            f"a linear program solves zero-sum games of two players; {tree.name} has {what}. Use cfr"
        )
    if tree.leaves is not None:
        raise LinearProgramError(f"{tree.name} is not unrolled to its terminals; a linear program needs the whole game")


def _optimum(
    payoffs: Matrix, constraints: Matrix, other_constraints: Matrix
) -> tuple[tabular_policies.Policy, tabular_policies.Policy, float]:
    """Returns optimal plans [S], [S'] of both players, and the value."""
    sequences, sets = constraints.shape[1], other_constraints.shape[0]
    target = np.zeros(sequences + sets)
    target[sequences] = -1  # maximises v_0
    bounds = np.zeros((sequences + sets, 2))
    bounds[:, 1] = np.inf
    bounds[sequences:, 0] = -np.inf
    right = np.zeros(constraints.shape[0])
    right[0] = 1
    result = scipy.optimize.linprog(
        target,
        A_ub=scipy.sparse.hstack([-payoffs.T, other_constraints.T]).tocsc(),
        b_ub=np.zeros(other_constraints.shape[1]),
        A_eq=scipy.sparse.hstack([constraints, scipy.sparse.csr_array((constraints.shape[0], sets))]).tocsc(),
        b_eq=right,
        bounds=bounds,
        method="highs-ipm",
        options={"primal_feasibility_tolerance": _TOLERANCE, "dual_feasibility_tolerance": _TOLERANCE},
    )
    if result.status != 0:
        raise LinearProgramError(f"HiGHS found no solution: {result.message}")
    return (
        _drop_rounding_errors(result.x[:sequences]),
        _drop_rounding_errors(-result.ineqlin.marginals),
        float(-result.fun),
    )


def _drop_rounding_errors(values: tabular_policies.Policy) -> tabular_policies.Policy:
    return np.where(values < _NEVER, 0.0, values)


def _complete_policy(
    player: game_tree.Player, plan: tabular_policies.Policy, utility: tabular_policies.Policy
) -> tabular_policies.Policy:
    """Returns the policy of a plan; at information sets that it does not reach, the best actions by `utility` [S]."""
    values = utility.copy()
    weights = plan.copy()
    for begin, end in reversed(tabular_policies.step_ranges(player)):
        first, last = player.first[begin], player.first[end]
        widths = np.diff(player.first[begin : end + 1])
        starts = player.first[begin:end] - first
        actions = values[first:last]
        best = np.maximum.reduceat(actions, starts)
        np.add.at(values, player.parent[begin:end], best)
        total = np.repeat(np.add.reduceat(plan[first:last], starts), widths)
        slack = 1e-9 * np.abs(utility).max(initial=0)
        is_best = actions >= np.repeat(best, widths) - slack
        weights[first:last] = np.where(total > 0, plan[first:last], is_best)
    return tabular_policies.normalise(player, weights)
