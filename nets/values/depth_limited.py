"""Solving a game segment by segment: some joint moves at a time, what lies below them valued by a network.

A segment is solved by CFR+ with alternating updates. The sets before it are held at what was found for them, the sets
in it learn, and views at its end are worth what `values` tells of them at the ranges of the current policies
(Moravcik et al. 2017, Brown et al. 2020). The last segment ends where the game does.

A segment given the average policies above it may have many equilibria, most of which allow the other player to do
better above. So there are many lanes: each goes on from the policies of another moment of the segment before, at whose
ranges its values were asked for, and the mean over lanes is what is played. A moment is drawn as averages weigh it, so
that in the mean deeper segments are as good as what the segments above counted on (Brown et al. 2020, theorem 3).
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

# (public states, plans [S, B] of every player by the sequences before it) -> payoffs [V, B] of the views.
ValueFn = Callable[[public_states.PublicStates, Sequence[jax.Array]], jax.Array]


def solve(
    task: tasks.TreeTask, depth: int, values: ValueFn, *, iterations: int = _ITERATIONS, lanes: int = 32
) -> tabular_policies.Policies:
    """Policies of the whole game, unrolled with its edges, found `depth` joint moves at a time."""
    players = task.tree.players
    found = [tabular_policies.uniform(player) for player in players]
    given = [np.repeat(own[:, None], lanes, axis=1) for own in found]
    start = 0
    for end in (*public_states.cut_depths(task.tree, depth), None):
        part = task.tree if end is None else public_states.trunk(task.tree, end)
        public = None if end is None else public_states.find_public_states(task.tree, end)
        above = [own[: player.sequences] for own, player in zip(given, part.players, strict=True)]
        averages, moments = _segment(part, above, start, public, values, iterations)
        for number, player in enumerate(part.players):
            here = player.first[np.searchsorted(player.step, start)]
            # A lane counts at a set as much as its player comes there.
            reach = tabular_policies.realization_plan(
                player, np.concatenate([above[number][:here], averages[number][here:]])
            )
            found[number][here : player.sequences] = tabular_policies.from_realization_plan(player, reach.sum(axis=1))[
                here:
            ]
            given[number][here : player.sequences] = moments[number][here:]
        start = end or 0
    return tuple(found)


def network_values(learner: supervised.Supervised, parameters: Any) -> ValueFn:
    """What a learner's network tells."""
    known = {where.public.depth: where for where in learner.encoded_states}
    middle, scale = learner.payoff_center_and_scale

    def values(public: public_states.PublicStates, reach: Sequence[jax.Array]) -> jax.Array:
        where = known[public.depth]
        ranges = public_states.ranges(where.public, reach)
        told = supervised.predict_values(
            learner.value_network, parameters, where, ranges, is_zero_sum=learner.task.is_zero_sum
        )
        return middle + scale * told

    return values


def zero_values(public: public_states.PublicStates, reach: Sequence[jax.Array]) -> jax.Array:
    """The other yardstick: everything is worth the same."""
    return jnp.zeros_like(public_states.ranges(public, reach))


def exact_values(task: tasks.TreeTask, iterations: int = _ITERATIONS) -> ValueFn:
    """The yardstick: the rest of the game solved at every question."""
    rests: dict[int, subgame_values.SubgameEvaluator] = {}

    def values(public: public_states.PublicStates, reach: Sequence[jax.Array]) -> jax.Array:
        rest = rests.setdefault(public.depth, subgame_values.make_subgame_evaluator(task, public.depth))
        given = tuple(
            tuple(
                map(
                    fixed_policies.add_tremble,
                    realization_plans.unflatten(own, _policy(player, layout, plan)),
                    own.uniform,
                )
            )
            for own, player, layout, plan in zip(task.form.players, task.tree.players, task.layouts, reach, strict=True)
        )
        return rest.values(fixed_policies.solve_remaining(task.form, given, rest.is_fixed, iterations))

    return values


def _policy(player: game_tree.Player, layout: sequence_form.SequenceLayout, plan: jax.Array) -> jax.Array:
    """The flat policy [size, B] of a plan [S', B] of the first sequences; anything where that is 0."""
    known = len(plan)
    parent = np.concatenate([[0], np.repeat(player.parent, np.diff(player.first))])[:known]
    policy = plan / jnp.where(plan[parent] > 0, plan[parent], 1)
    size = 1 + sum(width * sets for width, sets in layout.shapes)
    return jnp.zeros((size, *plan.shape[1:]), plan.dtype).at[layout.place[:known]].set(policy)


def _segment(
    part: game_tree.GameTree,
    given: Sequence[tabular_policies.Policy],
    start: int,
    public: public_states.PublicStates | None,
    values: ValueFn,
    iterations: int,
) -> tuple[tabular_policies.Policies, tabular_policies.Policies]:
    """Policies [S', B] of the first sequences, given those before `start`: on average, and, trembling, at a moment of
    each lane."""
    form, layouts = sequence_form.sequence_form(part)
    levels = tabular_policies.to_levels(part, layouts, given)
    is_given = fixed_policies.infosets_before(part, layouts, start)
    moment = _moments(iterations, given[0].shape[1])

    def leaves(reach: Sequence[jax.Array], number: int) -> jax.Array:
        """[size, B] what views at the end of the segment add to the sequences that lead to them."""
        assert public is not None
        by_sequence = [plan[own.place] for plan, own in zip(reach, layouts, strict=True)]
        arriving = public_states.counterfactual_reach(public, public_states.ranges(public, by_sequence))
        views = public.of_player(number)
        worth = (arriving * values(public, by_sequence))[views]
        return jnp.zeros_like(reach[number]).at[layouts[number].place[public.sequence[views]]].add(worth)

    @jax.jit
    def run(
        form: sequence_form.SequenceForm, levels: tabular_policies.Profile
    ) -> tuple[tabular_policies.Profile, tabular_policies.Profile]:
        fixed = fixed_policies.fix_policies(form, levels, is_given)
        start = cfr.init_from_regrets(fixed, jax.tree.map(jnp.zeros_like, levels))

        def step(
            _: jax.Array, carry: tuple[cfr.CfrState, tabular_policies.Profile]
        ) -> tuple[cfr.CfrState, tabular_policies.Profile]:
            state, taken = carry
            now = state.t == moment
            taken = jax.tree.map(lambda old, new: jnp.where(now, new, old), taken, state.policy)
            return fixed_policies.cfr_plus_step(fixed, state, leaves if public else None), taken

        state, taken = jax.lax.fori_loop(0, iterations, step, (start, start.policy))
        given = [
            tuple(map(fixed_policies.add_tremble, own, player.uniform))
            for own, player in zip(taken, form.players, strict=True)
        ]
        return cfr.average_policies(fixed, state), tuple(given)

    averages, moments = (tabular_policies.from_levels(part, layouts, found) for found in run(form, levels))
    return averages, moments


def _moments(iterations: int, lanes: int) -> public_states.Ints:
    """[B] iterations, spread as linear averages weigh them: policy t has weight t + 1."""
    share = (np.arange(lanes) + 0.5) / lanes
    found: public_states.Ints = np.minimum(iterations * np.sqrt(share), iterations - 1).astype(np.int32)
    return found


def make_direct_solver(request: requests.SolveRequest, task: tasks.TreeTask) -> Callable[[], solver_run.DirectResult]:
    """What solves the game of a request with the network in the folder that it names."""

    def find() -> solver_run.DirectResult:
        begun, folder, game = time.monotonic(), request.network, task.game
        assert folder is not None
        net = games.compile_game(game.spec, fold_case=game.fold_case, gdl=game.gdl, saved=True)
        learner, state, *_ = checkpoints.restore_training(folder, net, task, payoff=game.payoff)
        if not isinstance(learner, supervised.Supervised):
            raise checkpoints.CheckpointError(
                f"{folder} has no network of values of ranges; train one with the learner supervised"
            )
        depth, iterations = learner.settings.depth, request.iterations or _ITERATIONS
        policies = solve(task, depth, network_values(learner, learner.values(state)), iterations=iterations)
        facts = {"net": str(folder), "depth": depth}
        return solver_run.DirectResult(policies, time.monotonic() - begun, iterations, facts)

    return find
