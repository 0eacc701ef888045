"""What information sets are worth to their player when everybody plays given policies."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gdlx.envs.trees import game_tree
from gdlx.solvers import tabular_policies

Floats = npt.NDArray[np.float64]


class InfosetValues(NamedTuple):
    """Facts of the information sets of one player. Axes: I information sets, S sequences."""

    reach: Floats  # [I] the probability that play leads there
    value: Floats  # [I] the expected payoff once it has; NaN where the others or chance never lead
    action_value: Floats  # [S] the same if the player takes the action of a sequence there; NaN for the empty sequence


def infoset_values(tree: game_tree.GameTree, policies: tabular_policies.Policies, number: int) -> InfosetValues:
    """Computes the reach and the values of all information sets of a player.

    Values are defined also where only the player itself never goes: what it would get if it did. In a tree without
    symmetric information sets, the reach of one is that of all for which it stands.

    Args:
      tree: an unrolled game.
      policies: the policies of all players.
      number: index of the player.

    >>> import gdlx
    >>> solution = gdlx.solve("biased_rps", "lp")
    >>> exact = infoset_values(solution.tree, solution.policies, 0)
    >>> exact.reach.tolist(), bool(abs(exact.action_value[1:]).max() < 1e-6)
    ([1.0], True)
    """
    player, policy = tree.players[number], policies[number]
    plans = [tabular_policies.realization_plan(*pair) for pair in zip(tree.players, policies, strict=True)]
    mass = tree.terminals.weight.copy()  # reach of chance and the other players
    for other, plan in enumerate(plans):
        if other != number:
            mass *= plan[tree.terminals.sequence[:, other]]
    sequence = tree.terminals.sequence[:, number]
    payoff_sums, mass_sums = (
        np.bincount(sequence, sums, player.sequences).astype(np.float64)
        for sums in (mass * tree.terminals.payoff[:, number], mass)
    )
    if tree.blocks is not None:
        whole_plans = [plan * each.plan_scale for each, plan in zip(tree.players, plans, strict=True)]
        in_blocks = [sums * player.plan_scale for sums in tree.blocks.sequence_sums(whole_plans, number)]
        payoff_sums, mass_sums = payoff_sums + in_blocks[0], mass_sums + in_blocks[1]
    others_reach = np.zeros(player.sets)
    totals = np.zeros(player.sets)
    for begin, end in reversed(tabular_policies.step_ranges(player)):
        first, last = player.first[begin], player.first[end]
        starts, parent = player.first[begin:end] - first, player.parent[begin:end]
        for sums, totals_of_sets in ((payoff_sums, totals), (mass_sums, others_reach)):
            totals_of_sets[begin:end] = np.add.reduceat(policy[first:last] * sums[first:last], starts)
            np.add.at(sums, parent, totals_of_sets[begin:end])
    is_reached = others_reach > 0
    with np.errstate(invalid="ignore", divide="ignore"):
        value = np.where(is_reached, totals / others_reach, np.nan)
        action_value = np.where(mass_sums > 0, payoff_sums / mass_sums, np.nan)
    action_value[0] = np.nan
    return InfosetValues(others_reach * plans[number][player.parent], value, action_value)
