"""An exact equilibrium of a two-player zero-sum game by one linear program on its sequence form, in float64.

With A the payoffs of the first player by pairs of sequences, and E, F the constraints that plans x, y of the two
players obey (Ex = e: the options of a set have together what leads to it), the first player's problem is

    maximise v_0   subject to   Ex = e,  x >= 0,  F'v <= A'x                     (Koller, Megiddo & von Stengel 1996)

and the multipliers of its inequalities are an optimal plan of the second player. Needs perfect recall, which all trees
here have. A matrix game is the case of one set for each player.
"""

import time
from typing import Any, NamedTuple

import numpy as np
import scipy.optimize
import scipy.sparse

from gdlx.envs.trees import game_tree
from gdlx.propnet.common import errors
from gdlx.solvers import tabular_policies

# Payoffs in the program. On a busy core leduc_poker (5 520) took 0.1 s, liars_dice (147 390) 6 to 13 s, goofspiel of
# six cards (518 400) 77 s; beyond that CFR is there first.
MAX_ENTRIES = 1_000_000
_TOLERANCE = 1e-9  # of HiGHS, on payoffs scaled to 1
_NEVER = 1e-8  # probabilities below are rounding errors

Matrix = Any  # scipy.sparse.csr_array, which has no types


class LinearProgramError(errors.UserError, ValueError):
    """A game that no linear program solves, or too large a one."""


class LpSolution(NamedTuple):
    value: tuple[float, float]  # payoffs of the two players
    policies: tabular_policies.Policies
    seconds: float  # of HiGHS


def solve(tree: game_tree.GameTree, *, max_entries: int = MAX_ENTRIES) -> LpSolution:
    """An equilibrium. Where a player never comes by its own choice, it has a best answer to the other one's policy."""
    _require_fit(tree)
    payoffs = payoff_matrix(tree)
    if payoffs.nnz > max_entries:
        raise LinearProgramError(
            f"{tree.name} is too large for a linear program: {payoffs.nnz:,} payoffs, more than {max_entries:,}. "
            "Use cfr+ or dcfr, which come as near as you like"
        )
    scale = float(abs(payoffs).max()) if payoffs.nnz else 1.0
    start = time.perf_counter()
    first, second, value = _optimum(
        payoffs / scale, plan_constraints(tree.players[0]), plan_constraints(tree.players[1])
    )
    seconds = time.perf_counter() - start
    value = value * scale + 0.0  # and never -0
    policies = (
        _completed(tree.players[0], first, payoffs @ second),
        _completed(tree.players[1], second, -(payoffs.T @ first)),
    )
    return LpSolution((value, 0.0 - value), policies, seconds)


def payoff_matrix(tree: game_tree.GameTree) -> Matrix:
    """[S, S'] the first player's payoff times the probability of chance, by the sequences of the two players."""
    ends = tree.terminals
    shape = (tree.players[0].sequences, tree.players[1].sequences)
    weighted = ends.payoff[:, 0] * ends.weight
    found = scipy.sparse.coo_array((weighted, (ends.sequence[:, 0], ends.sequence[:, 1])), shape).tocsr()
    found.eliminate_zeros()
    return found


def plan_constraints(player: game_tree.Player) -> Matrix:
    """[1 + I, S] for a plan x: x_0, and at every set the sum of its options less what leads to it."""
    sets = np.arange(player.sets)
    rows = np.concatenate([[0], 1 + np.repeat(sets, np.diff(player.first)), 1 + sets])
    columns = np.concatenate([np.arange(player.sequences), player.parent])
    signs = np.concatenate([np.ones(player.sequences), -np.ones(player.sets)])
    return scipy.sparse.coo_array((signs, (rows, columns)), (1 + player.sets, player.sequences)).tocsr()


def _require_fit(tree: game_tree.GameTree) -> None:
    if len(tree.players) != 2 or not tree.zero_sum:
        what = f"{len(tree.players)} player{'s' * (len(tree.players) > 1)}" if len(tree.players) != 2 else "other sums"
        raise LinearProgramError(
            f"a linear program solves zero-sum games of two players; {tree.name} has {what}. Use cfr"
        )
    if tree.leaves is not None:
        raise LinearProgramError(f"{tree.name} is not unrolled to its end; a linear program needs the whole game")


def _optimum(
    payoffs: Matrix, own: Matrix, others: Matrix
) -> tuple[tabular_policies.Policy, tabular_policies.Policy, float]:
    """Optimal plans [S], [S'] of both players, and the value."""
    sequences, sets = own.shape[1], others.shape[0]
    target = np.zeros(sequences + sets)
    target[sequences] = -1  # v_0, to be as large as possible
    bounds = np.zeros((sequences + sets, 2))
    bounds[:, 1] = np.inf
    bounds[sequences:, 0] = -np.inf
    right = np.zeros(own.shape[0])
    right[0] = 1
    found = scipy.optimize.linprog(
        target,
        A_ub=scipy.sparse.hstack([-payoffs.T, others.T]).tocsc(),
        b_ub=np.zeros(others.shape[1]),
        A_eq=scipy.sparse.hstack([own, scipy.sparse.csr_array((own.shape[0], sets))]).tocsc(),
        b_eq=right,
        bounds=bounds,
        method="highs-ipm",
        options={"primal_feasibility_tolerance": _TOLERANCE, "dual_feasibility_tolerance": _TOLERANCE},
    )
    if found.status != 0:
        raise LinearProgramError(f"HiGHS found no solution: {found.message}")
    return (
        _drop_rounding_errors(found.x[:sequences]),
        _drop_rounding_errors(-found.ineqlin.marginals),
        float(-found.fun),
    )


def _drop_rounding_errors(values: tabular_policies.Policy) -> tabular_policies.Policy:
    return np.where(values < _NEVER, 0.0, values)


def _completed(
    player: game_tree.Player, plan: tabular_policies.Policy, utility: tabular_policies.Policy
) -> tabular_policies.Policy:
    """The policy of a plan; where that says nothing, the best options against the other player, given by `utility`."""
    worth = utility.copy()
    weights = plan.copy()
    for begin, end in reversed(tabular_policies.step_ranges(player)):
        first, last = player.first[begin], player.first[end]
        widths = np.diff(player.first[begin : end + 1])
        starts = player.first[begin:end] - first
        options = worth[first:last]
        best = np.maximum.reduceat(options, starts)
        np.add.at(worth, player.parent[begin:end], best)
        total = np.repeat(np.add.reduceat(plan[first:last], starts), widths)
        slack = 1e-9 * np.abs(utility).max(initial=0)
        is_best = options >= np.repeat(best, widths) - slack
        weights[first:last] = np.where(total > 0, plan[first:last], is_best)
    return tabular_policies.normalise(player, weights)
