"""Exact values of views (information sets) at public states, from solved subgames at given ranges.

The value of a view is its player's expected payoff, given that the others and chance reach it, of a best response to
the others' policies in the solved subgame. Views that a player never reaches itself have values as well.
"""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from gdlx.envs.trees import device_arrays, game_tree
from gdlx.nets.values import public_states
from gdlx.solvers import tabular_policies, tasks
from gdlx.solvers.exact import best_response, fixed_policies, realization_plans


class _Edges(NamedTuple):
    """Joint actions of a level. Axes: E edges, P players, N nodes, M nodes of the next level."""

    source: jax.Array  # [E] int32, sorted
    chance: jax.Array  # [E] float
    option: tuple[jax.Array, ...]  # P x [E] int32, index in the player's flat vector; 0 where it has no choice
    child: jax.Array  # [E] int32, node of the next level, or M + a terminal
    nodes: int  # N


@dataclasses.dataclass(frozen=True, eq=False)
class SubgameEvaluator:
    """Computes the values of views at the public states of one depth."""

    task: tasks.TreeTask
    public: public_states.PublicStates
    is_fixed: fixed_policies.InfosetMask  # information sets above the cut
    edges: tuple[_Edges, ...]  # levels below the cut

    def values(self, profile: tabular_policies.Profile) -> jax.Array:
        """[V, ..] values of best responses to policies [w, n, ..] of the whole game."""
        numbers = range(self.public.players)
        batch = next((level.shape[2:] for policy in profile for level in policy), ())
        flat = [realization_plans.flatten(policy, batch) for policy in profile]
        reach = best_response.flat_realization_plans(self.task.form, profile)
        by_player = []
        for number in numbers:
            best, _ = best_response.best_response(self.task.form, profile, number)
            responding = [realization_plans.flatten(best, batch) if n == number else flat[n] for n in numbers]
            node_values = self._node_values(responding, number)
            by_player.append(self._view_values(node_values, reach, number))
        return jnp.concatenate(by_player)

    def _node_values(self, policies: Sequence[jax.Array], number: int) -> jax.Array:
        """[N, ..] a player's expected payoff at every node of the cut."""
        batch = policies[0].shape[1:]
        dtype = policies[0].dtype
        payoff = jnp.asarray(self.task.tree.listed_terminals.payoff[:, number], dtype)
        terminals = jnp.broadcast_to(payoff.reshape(-1, *[1] * len(batch)), (len(payoff), *batch))
        value = jnp.zeros((0, *batch), dtype)
        for level in reversed(self.edges):
            edge_values = jnp.concatenate([value, terminals])[level.child] * realization_plans.expand_like(
                level.chance, value
            )
            for index, policy in zip(level.option, policies, strict=True):
                edge_values = edge_values * policy[index]
            value = jax.ops.segment_sum(edge_values, level.source, num_segments=level.nodes, indices_are_sorted=True)
        return value

    def _view_values(self, value: jax.Array, reach: Sequence[jax.Array], number: int) -> jax.Array:
        """The mean values of the nodes of each view; 0 where the others have no reach."""
        public, layouts = self.public, self.task.layouts
        weight = realization_plans.expand_like(jnp.asarray(public.weight, value.dtype), value)
        for other, plan in enumerate(reach):
            if other != number:
                views = public.node[:, other]
                weight = weight * plan[layouts[other].place[public.sequence[views]]]
        own_views = public.of_player(number)
        views = public.node[:, number] - own_views.start
        total, mass = (
            jax.ops.segment_sum(jnp.broadcast_to(x, value.shape), views, num_segments=own_views.stop - own_views.start)
            for x in (weight * value, weight)
        )
        return jnp.where(mass > 0, total / jnp.where(mass > 0, mass, 1), 0)


def make_subgame_evaluator(task: tasks.TreeTask, depth: int) -> SubgameEvaluator:
    """The evaluator below `depth` joint actions, for a task that was unrolled with its edges."""
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
        np.where(decision >= 0, np.diff(player.first)[decision] if player.sets else 1, 1)
        for player, decision in zip(task.tree.players, level.decision.T, strict=True)
    ]
    # Edges are in row-major order of the players' actions, chance last.
    left = (np.arange(len(source)) - level.first_edge[source]) // (fan // np.prod(widths, axis=0))[source]
    option: list[jax.Array] = []
    for number in reversed(range(len(widths))):
        player, decision, width = task.tree.players[number], level.decision[source, number], widths[number][source]
        sequence = np.where(decision >= 0, player.first[decision] + left % width, 0)
        option.insert(0, _ints(task.layouts[number].place[sequence]))
        left = left // width
    child = np.where(level.child >= 0, level.child, after - 1 - level.child)
    chance = device_arrays.to_device(level.chance.astype(jnp.result_type(float)))
    return _Edges(_ints(source), chance, tuple(option), _ints(child), len(fan))


def _ints(values: game_tree.Longs) -> jax.Array:
    return device_arrays.to_device(values.astype(np.int32))
