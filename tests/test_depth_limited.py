"""Solving segment by segment: with exact values it finds equilibria, and with learnt ones it comes near."""

import jax
import numpy as np

from gdlx.nets import depth_limited
from gdlx.solvers import lp, profiles
from gdlx.tests import test_supervised


def test_exact_values_give_an_equilibrium() -> None:
    task = test_supervised.task_of("kuhn_poker")
    values = depth_limited.exact(task, 100)
    found = depth_limited.solve(task, 3, values, iterations=200, lanes=16)
    metrics = task.metrics(found)
    assert sum(metrics.gain) / 2 < 0.02  # payoffs are from -2 to 2
    # The last segment alone gives uniform policies above: that would be seen.
    uniform = task.metrics(tuple(map(profiles.uniform, task.tree.players)))
    assert sum(uniform.gain) / 2 > 0.2


def test_a_game_without_cuts_is_solved_whole() -> None:
    task = test_supervised.task_of("goofspiel:cards=3")

    def never(*_: object) -> jax.Array:
        raise AssertionError("there is no frontier")

    metrics = task.metrics(depth_limited.solve(task, 9, never, iterations=500, lanes=1))
    assert sum(metrics.gain) / 2 < 1e-2 * np.ptp(task.payoff_range)
    assert abs(metrics.value[0] - lp.solve(task.tree).value[0]) < 1e-2 * np.ptp(task.payoff_range)


def test_learnt_values_come_near() -> None:
    learner, state, _ = test_supervised.trained()
    values = depth_limited.learnt(learner, learner.values(state))
    metrics = learner.task.metrics(depth_limited.solve(learner.task, 3, values, iterations=300, lanes=16))
    assert sum(metrics.gain) / 2 < 0.02 * 4  # 2 % of the payoff range


def test_wrong_values_are_noticed() -> None:
    """A network that tells the opposite gives policies that can be exploited: leaves do matter."""
    task = test_supervised.task_of("kuhn_poker")
    exact = depth_limited.exact(task, 50)
    found = depth_limited.solve(task, 3, lambda *own: -exact(*own), iterations=50, lanes=4)
    assert sum(task.metrics(found).gain) / 2 > 0.1
