"""What views at public states are worth when the rest of the game is solved, given how everybody comes there.

The value of a view is its player's expected payoff given that the others and chance come there: a best answer of the
player to what the others play in the solved rest. Views to which a player never comes itself have values as well.
"""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from gdlx.envs.trees import game_tree, sequence_form
from gdlx.nets.values import public_states
from gdlx.solvers import tabular_policies, tasks
from gdlx.solvers.exact import best_response, fixed_policies, realization_plans


class _Edges(NamedTuple):
    """Joint moves of a level. Axes: E edges, P players, N nodes, M nodes of the next level."""

    source: jax.Array  # [E] int32, sorted
    chance: jax.Array  # [E] float
    option: tuple[jax.Array, ...]  # P x [E] int32, place in the player's flat vector; 0 where it has no choice
    child: jax.Array  # [E] int32, node of the next level, or M + an end
    nodes: int  # N


@dataclasses.dataclass(frozen=True, eq=False)
class SubgameEvaluator:
    """What is needed of a game to value views at the public states of one depth."""

    task: tasks.TreeTask
    public: public_states.PublicStates
    is_fixed: fixed_policies.InfosetMask  # sets before the cut
    edges: tuple[_Edges, ...]  # levels from the cut on

    def values(self, profile: tabular_policies.Profile) -> jax.Array:
        """[V, ..] of best answers to given policies [w, n, ..] of the whole game."""
        number_of = range(self.public.players)
        batch = next((level.shape[2:] for own in profile for level in own), ())
        flat = [realization_plans.flatten(own, batch) for own in profile]
        reach = best_response.flat_realization_plans(self.task.form, profile)
        found = []
        for number in number_of:
            best, _ = best_response.best_response(self.task.form, profile, number)
            answer = [realization_plans.flatten(best, batch) if n == number else flat[n] for n in number_of]
            worth = self._nodes(answer, number)
            found.append(self._of_views(worth, reach, number))
        return jnp.concatenate(found)

    def _nodes(self, policies: Sequence[jax.Array], number: int) -> jax.Array:
        """[N, ..] a player's expected payoff at every node of the cut."""
        batch = policies[0].shape[1:]
        dtype = policies[0].dtype
        payoff = jnp.asarray(self.task.tree.terminals.payoff[:, number], dtype)
        ends = jnp.broadcast_to(payoff.reshape(-1, *[1] * len(batch)), (len(payoff), *batch))
        worth = jnp.zeros((0, *batch), dtype)
        for level in reversed(self.edges):
            each = jnp.concatenate([worth, ends])[level.child] * realization_plans.expand_like(level.chance, worth)
            for places, policy in zip(level.option, policies, strict=True):
                each = each * policy[places]
            worth = jax.ops.segment_sum(each, level.source, num_segments=level.nodes, indices_are_sorted=True)
        return worth

    def _of_views(self, worth: jax.Array, reach: Sequence[jax.Array], number: int) -> jax.Array:
        """Nodes' values averaged over what a player cannot tell apart; 0 where nobody else comes."""
        public, layouts = self.public, self.task.layouts
        weight = realization_plans.expand_like(jnp.asarray(public.weight, worth.dtype), worth)
        for other, plan in enumerate(reach):
            if other != number:
                views = public.node[:, other]
                weight = weight * plan[layouts[other].place[public.sequence[views]]]
        own = public.of_player(number)
        views = public.node[:, number] - own.start
        total, mass = (
            jax.ops.segment_sum(jnp.broadcast_to(x, worth.shape), views, num_segments=own.stop - own.start)
            for x in (weight * worth, weight)
        )
        return jnp.where(mass > 0, total / jnp.where(mass > 0, mass, 1), 0)


def make_subgame_evaluator(task: tasks.TreeTask, depth: int) -> SubgameEvaluator:
    """Of a game unrolled with its edges."""
    public = public_states.find_public_states(task.tree, depth)
    assert task.tree.levels is not None
    levels = task.tree.levels[depth:]
    after = [*(len(level.decision) for level in levels[1:]), 0]
    edges = tuple(_edges(task, level, nodes) for level, nodes in zip(levels, after, strict=True))
    return SubgameEvaluator(task, public, fixed_policies.infosets_before(task.tree, task.layouts, depth), edges)


def _edges(task: tasks.TreeTask, level: game_tree.Level, after: int) -> _Edges:
    fan = np.diff(level.first_edge)
    source = np.repeat(np.arange(len(fan)), fan)
    widths = [
        np.where(own >= 0, np.diff(player.first)[own] if player.sets else 1, 1)
        for player, own in zip(task.tree.players, level.decision.T, strict=True)
    ]
    # The last player's options change faster than those before it, chance's fastest.
    left = (np.arange(len(source)) - level.first_edge[source]) // (fan // np.prod(widths, axis=0))[source]
    option: list[jax.Array] = []
    for number in reversed(range(len(widths))):
        player, decision, width = task.tree.players[number], level.decision[source, number], widths[number][source]
        sequence = np.where(decision >= 0, player.first[decision] + left % width, 0)
        option.insert(0, _ints(task.layouts[number].place[sequence]))
        left = left // width
    child = np.where(level.child >= 0, level.child, after - 1 - level.child)
    chance = sequence_form.to_device(level.chance.astype(jnp.result_type(float)))
    return _Edges(_ints(source), chance, tuple(option), _ints(child), len(fan))


def _ints(values: game_tree.Longs) -> jax.Array:
    return sequence_form.to_device(values.astype(np.int32))
