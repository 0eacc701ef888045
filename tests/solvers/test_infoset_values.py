"""Values and reach of information sets, beside sums over all terminals below them."""

import numpy as np
import pytest

from gdlx.solvers import infoset_values, tabular_policies
from gdlx.tests.helpers import players, samples


def test_values_at_infosets_are_those_of_all_terminals_below_them() -> None:
    tree = samples.load_tree("kuhn_poker")
    policies = players.random_policies("kuhn_poker", 3)
    for number, player in enumerate(tree.players):
        often, value, _ = infoset_values.infoset_values(tree, policies, number)
        plans = [
            tabular_policies.realization_plan(policy, chosen)
            for policy, chosen in zip(tree.players, policies, strict=True)
        ]
        for decision in range(player.sets):
            below, mass = 0.0, 0.0
            for sequence, payoff, weight in zip(
                tree.terminals.sequence, tree.terminals.payoff, tree.terminals.weight, strict=True
            ):
                at = int(sequence[number])
                while at >= player.first[decision + 1]:
                    at = int(player.parent[np.searchsorted(player.first, at, side="right") - 1])
                if player.first[decision] <= at:
                    here = weight * plans[0][sequence[0]] * plans[1][sequence[1]]
                    below, mass = below + here * payoff[number], mass + here
            assert often[decision] == pytest.approx(mass)
            assert value[decision] == pytest.approx(below / mass)
