"""Depth-limited solving: a game is solved segment by segment, and a network values the subgames below a segment.

A segment is some joint actions deep and is solved by CFR+ with alternating updates. Policies at information sets above
it are fixed to those solved before, information sets in it are updated, and views (information sets) at its end have
the values that `values` returns at the ranges of the current policies (Moravcik et al. 2017, Brown et al. 2020). The
last segment ends at the terminals of the game.

Given the average policies above it, a segment may have many equilibria, most of which allow the other player to improve
above. So there are many lanes: each continues from the policies of one iteration of the segment above, at whose ranges
values were queried, and the mean over lanes is the policy. Iterations are chosen in proportion to their weight in the
average, so that in expectation deeper segments are as good as the values that the segments above relied on (Brown et
al. 2020, theorem 3).
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gdlx.envs.trees import game_tree, sequence_form
from gdlx.nets import checkpoints
from gdlx.nets.learners import supervised
from gdlx.nets.values import public_states, subgame_values
from gdlx.propnet import games
from gdlx.solvers import requests, tabular_policies, tasks
from gdlx.solvers.exact import cfr, fixed_policies, realization_plans
from gdlx.solvers.runs import solver_run

_ITERATIONS = 500  # of each segment

# (public states, realization plans [S, B] of every player above them) -> payoffs [V, B] of the views.
ValueFn = Callable[[public_states.PublicStates, Sequence[jax.Array]], jax.Array]


def solve(
    task: tasks.TreeTask, depth: int, values: ValueFn, *, iterations: int = _ITERATIONS, lanes: int = 32
) -> tabular_policies.Policies:
    """Solves a game `depth` joint actions at a time.

    Args:
      task: the game, unrolled with `keep_edges=True`.
      depth: joint actions of a segment.
      values: of views at the end of a segment.
      iterations: of CFR+ in each segment.
      lanes: iterations of a segment that the next one continues from.

    Returns:
      Policies of all players in the whole game.
    """
    players = task.tree.players
    policies = [tabular_policies.uniform(player) for player in players]
    fixed = [np.repeat(policy[:, None], lanes, axis=1) for policy in policies]
    start = 0
    for end in (*public_states.cut_depths(task.tree, depth), None):
        segment = task.tree if end is None else public_states.trunk(task.tree, end)
        public = None if end is None else public_states.find_public_states(task.tree, end)
        above = [policy[: player.sequences] for policy, player in zip(fixed, segment.players, strict=True)]
        averages, sampled = _solve_segment(segment, above, start, public, values, iterations)
        for number, player in enumerate(segment.players):
            here = player.first[np.searchsorted(player.step, start)]
            # Lanes are weighted at an information set by the player's own reach.
            plan = tabular_policies.realization_plan(
                player, np.concatenate([above[number][:here], averages[number][here:]])
            )
            mean = tabular_policies.from_realization_plan(player, plan.sum(axis=1))
            policies[number][here : player.sequences] = mean[here:]
            fixed[number][here : player.sequences] = sampled[number][here:]
        start = end or 0
    return tuple(policies)


def network_values(learner: supervised.Supervised, parameters: Any) -> ValueFn:
    """The values that a learner's value network predicts."""
    encoded = {where.public.depth: where for where in learner.encoded_states}
    center, scale = learner.payoff_center_and_scale

    def values(public: public_states.PublicStates, reach: Sequence[jax.Array]) -> jax.Array:
        where = encoded[public.depth]
        ranges = public_states.ranges(where.public, reach)
        predicted = supervised.predict_values(
            learner.value_network, parameters, where, ranges, is_zero_sum=learner.task.is_zero_sum
        )
        return center + scale * predicted

    return values


def zero_values(public: public_states.PublicStates, reach: Sequence[jax.Array]) -> jax.Array:
    """The lower baseline: all values are 0."""
    return jnp.zeros_like(public_states.ranges(public, reach))


def exact_values(task: tasks.TreeTask, iterations: int = _ITERATIONS) -> ValueFn:
    """The upper baseline: subgames are solved at every query."""
    evaluators: dict[int, subgame_values.SubgameEvaluator] = {}

    def values(public: public_states.PublicStates, reach: Sequence[jax.Array]) -> jax.Array:
        subgame = evaluators.setdefault(public.depth, subgame_values.make_subgame_evaluator(task, public.depth))
        policies = tuple(
            tuple(
                map(
                    fixed_policies.add_tremble,
                    realization_plans.unflatten(form, _policy(player, layout, plan)),
                    form.uniform,
                )
            )
            for form, player, layout, plan in zip(
                task.form.players, task.tree.players, task.layouts, reach, strict=True
            )
        )
        return subgame.values(fixed_policies.solve_remaining(task.form, policies, subgame.is_fixed, iterations))

    return values


def _policy(player: game_tree.Player, layout: sequence_form.SequenceLayout, plan: jax.Array) -> jax.Array:
    """The flat policy [size, B] of a realization plan [S', B] of the first sequences; arbitrary where that is 0."""
    count = len(plan)
    parent = np.concatenate([[0], np.repeat(player.parent, np.diff(player.first))])[:count]
    policy = plan / jnp.where(plan[parent] > 0, plan[parent], 1)
    size = 1 + sum(width * sets for width, sets in layout.shapes)
    return jnp.zeros((size, *plan.shape[1:]), plan.dtype).at[layout.place[:count]].set(policy)


def _solve_segment(
    segment: game_tree.GameTree,
    above: Sequence[tabular_policies.Policy],
    start: int,
    public: public_states.PublicStates | None,
    values: ValueFn,
    iterations: int,
) -> tuple[tabular_policies.Policies, tabular_policies.Policies]:
    """Policies [S', B] of the first sequences, with those before `start` fixed.

    Returns:
      The average policies, and the trembling policies of one iteration for each lane.
    """
    form, layouts = sequence_form.sequence_form(segment)
    levels = tabular_policies.to_levels(segment, layouts, above)
    is_fixed = fixed_policies.infosets_before(segment, layouts, start)
    sampled_iteration = _sampled_iterations(iterations, above[0].shape[1])

    def leaves(reach: Sequence[jax.Array], number: int) -> jax.Array:
        """[size, B] counterfactual values of views at the end of the segment, added up by sequence."""
        assert public is not None
        by_sequence = [plan[layout.place] for plan, layout in zip(reach, layouts, strict=True)]
        others_reach = public_states.counterfactual_reach(public, public_states.ranges(public, by_sequence))
        views = public.of_player(number)
        view_values = (others_reach * values(public, by_sequence))[views]
        return jnp.zeros_like(reach[number]).at[layouts[number].place[public.sequence[views]]].add(view_values)

    @jax.jit
    def run(
        form: sequence_form.SequenceForm, levels: tabular_policies.Profile
    ) -> tuple[tabular_policies.Profile, tabular_policies.Profile]:
        fixed = fixed_policies.fix_policies(form, levels, is_fixed)
        start = cfr.init_from_regrets(fixed, jax.tree.map(jnp.zeros_like, levels))

        def step(
            _: jax.Array, carry: tuple[cfr.CfrState, tabular_policies.Profile]
        ) -> tuple[cfr.CfrState, tabular_policies.Profile]:
            state, sampled = carry
            is_sampled = state.t == sampled_iteration
            sampled = jax.tree.map(lambda old, new: jnp.where(is_sampled, new, old), sampled, state.policy)
            return fixed_policies.cfr_plus_step(fixed, state, leaves if public else None), sampled

        state, sampled = jax.lax.fori_loop(0, iterations, step, (start, start.policy))
        trembling = [
            tuple(map(fixed_policies.add_tremble, policy, player.uniform))
            for policy, player in zip(sampled, form.players, strict=True)
        ]
        return cfr.average_policies(fixed, state), tuple(trembling)

    averages, sampled = (tabular_policies.from_levels(segment, layouts, profile) for profile in run(form, levels))
    return averages, sampled


def _sampled_iterations(iterations: int, lanes: int) -> public_states.Ints:
    """[B] iterations, distributed by their weights in a linear average: policy t has weight t + 1."""
    quantile = (np.arange(lanes) + 0.5) / lanes
    sampled: public_states.Ints = np.minimum(iterations * np.sqrt(quantile), iterations - 1).astype(np.int32)
    return sampled


def make_direct_solver(request: requests.SolveRequest, task: tasks.TreeTask) -> Callable[[], solver_run.DirectResult]:
    """A function that solves the game of a request with the network in the folder that it names."""

    def solve_directly() -> solver_run.DirectResult:
        start, folder, game = time.monotonic(), request.network, task.game
        assert folder is not None
        propnet = games.compile_game(game.spec, fold_case=game.fold_case, gdl=game.gdl, saved=True)
        learner, state, *_ = checkpoints.restore_training(folder, propnet, task, payoff=game.payoff)
        if not isinstance(learner, supervised.Supervised):
            raise checkpoints.CheckpointError(
                f"{folder} has no value network for ranges; train one with the learner supervised"
            )
        depth, iterations = learner.settings.depth, request.iterations or _ITERATIONS
        policies = solve(task, depth, network_values(learner, learner.values(state)), iterations=iterations)
        facts = {"network": str(folder), "depth": depth}
        return solver_run.DirectResult(policies, time.monotonic() - start, iterations, facts)

    return solve_directly
