"""Solving with some policies fixed: against a linear program with the same constraints, in batches and alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.sparse

from gdlx.envs import game_spec
from gdlx.solvers import tabular_policies, tasks
from gdlx.solvers.exact import fixed_policies, lp

BATCH = 3


def _drawn(task: tasks.TreeTask, seed: int, batch: tuple[int, ...] = ()) -> tabular_policies.Policies:
    rng = np.random.default_rng(seed)
    return tuple(
        tabular_policies.normalise(player, rng.uniform(0.1, 1, (player.sequences, *batch)))
        for player in task.tree.players
    )


def _best_value(task: tasks.TreeTask, given: tabular_policies.Policies, steps: int) -> float:
    """The value of the first player with policies before a step fixed: the linear program with further equations,
    x(sequence) = policy(sequence) x(parent sequence), for either player."""
    payoffs = lp.payoff_matrix(task.tree)
    plans, sides = [], []
    for player, policy in zip(task.tree.players, given, strict=True):
        rows = [lp.plan_constraints(player)]
        right = [1.0, *[0.0] * player.sets]
        early = np.flatnonzero(np.repeat(player.step < steps, np.diff(player.first))) + 1
        owner = np.repeat(np.arange(player.sets), np.diff(player.first))
        fixed = np.zeros((len(early), player.sequences))
        fixed[np.arange(len(early)), early] = 1
        fixed[np.arange(len(early)), player.parent[owner[early - 1]]] -= policy[early]
        plans.append(scipy.sparse.vstack([*rows, scipy.sparse.csr_array(fixed)]).tocsr())
        sides.append(np.array([*right, *[0.0] * len(early)]))
    plan, others = plans
    optimum = scipy.optimize.linprog(
        np.concatenate([np.zeros(plan.shape[1]), -sides[1]]),
        A_ub=scipy.sparse.hstack([-payoffs.T, others.T]).tocsc(),
        b_ub=np.zeros(others.shape[1]),
        A_eq=scipy.sparse.hstack([plan, scipy.sparse.csr_array((plan.shape[0], others.shape[0]))]).tocsc(),
        b_eq=sides[0],
        bounds=[(0, None)] * plan.shape[1] + [(None, None)] * others.shape[0],
    )
    assert optimum.status == 0
    return float(-optimum.fun)


@pytest.mark.parametrize(("game", "steps"), [("kuhn_poker", 3), ("goofspiel:cards=3", 1)])
def test_the_rest_is_solved(game: str, steps: int) -> None:
    task = tasks.make_tree_task(game_spec.GameSpec(game))
    given = _drawn(task, 0, (BATCH,))
    is_given = fixed_policies.infosets_before(task.tree, task.layouts, steps)
    levels = tabular_policies.to_levels(task.tree, task.layouts, given)
    run = jax.jit(lambda policy: fixed_policies.solve_remaining(task.form, policy, is_given, 2_000))
    actual = tabular_policies.from_levels(task.tree, task.layouts, run(levels))
    assert any((player.step < steps).any() for player in task.tree.players)
    for player, policy, before in zip(task.tree.players, actual, given, strict=True):
        early = np.repeat(player.step < steps, np.diff(player.first))
        assert not early.all()
        np.testing.assert_allclose(policy[1:][early], before[1:][early], atol=1e-5)
    for lane in range(BATCH):
        value = task.metrics(tuple(policy[:, lane] for policy in actual)).value[0]
        best = _best_value(task, tuple(policy[:, lane] for policy in given), steps)
        assert abs(value - best) < 2e-3 * np.ptp(task.payoff_range)
    # Other fixed policies have another value: the comparison depends on them.
    free = lp.solve(task.tree).value[0]
    assert abs(_best_value(task, _drawn(task, 1), 0) - free) < 1e-6


def test_each_lane_has_its_own_sets() -> None:
    """Masks with a batch axis: one lane with everything fixed, one with nothing."""
    task = tasks.make_tree_task(game_spec.GameSpec("kuhn_poker"))
    given = _drawn(task, 2, (2,))
    levels = tabular_policies.to_levels(task.tree, task.layouts, given)
    every, none = (
        fixed_policies.infosets_before(task.tree, task.layouts, 100),
        fixed_policies.infosets_before(task.tree, task.layouts, 0),
    )
    flags = jax.tree.map(lambda a, b: jnp.stack([a, b], axis=-1), every, none)
    actual = tabular_policies.from_levels(
        task.tree,
        task.layouts,
        jax.jit(lambda policy: fixed_policies.solve_remaining(task.form, policy, flags, 1_000))(levels),
    )
    np.testing.assert_allclose(actual[0][:, 0], given[0][:, 0], atol=1e-5)
    metrics = task.metrics(tuple(policy[:, 1] for policy in actual))
    assert sum(metrics.improvements) / 2 < 1e-3
    assert abs(metrics.value[0] + 1 / 18) < 1e-3  # Kuhn (1950)
