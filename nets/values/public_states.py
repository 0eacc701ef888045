"""Where the first moves of a game end: what each player may know there, and which of that can be at the same time.

The nodes after so many joint moves that are not terminal fall into public states: two nodes are in one public state
if some player cannot tell them apart, or if a chain of such pairs joins them. Everybody knows the public state, so that
one with the players' ranges - how likely each comes to each of its views by its own choices - is a game of its own,
whose values need nothing else (the public belief states of Brown et al. 2020).
"""

import dataclasses
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

from gdlx.envs.trees import game_tree
from gdlx.propnet.common import errors

Ints = game_tree.Ints
Floats = game_tree.Floats


class CutError(errors.UserError, ValueError):
    """A depth at which a game cannot be cut."""


@dataclasses.dataclass(frozen=True, eq=False)
class PublicStates:
    """Of one depth. Axes: G public states, N nodes, P players, V views: one player's after the other's."""

    depth: int  # joint moves made before
    players: int  # P
    states: int  # G
    view: Ints  # [V] row of the player's trail
    player: Ints  # [V]
    sequence: Ints  # [V] of the player, that leads to the view
    state: Ints  # [V]
    node: Ints  # [N, P] views of the players
    weight: Floats  # [N] of chance

    @property
    def views(self) -> int:
        """V"""
        return len(self.view)

    def of_player(self, number: int) -> slice:
        """The views of a player."""
        first, end = np.searchsorted(self.player, [number, number + 1]).tolist()
        return slice(first, end)

    @property
    def state_of_player(self) -> Ints:
        """[V] number of the public state and the player together, below G * P."""
        number: Ints = self.state * self.players + self.player
        return number


def find_public_states(tree: game_tree.GameTree, depth: int) -> PublicStates:
    """Of a tree with its edges."""
    level = _levels(tree)[depth] if 0 <= depth < len(_levels(tree)) else None
    if level is None or not len(level.decision):
        raise CutError(f"{tree.name} is over after {depth} joint moves: cut it earlier, or solve it whole")
    assert level.infoset is not None
    players = len(tree.players)
    views: list[Ints] = []
    nodes: list[Ints] = []
    first = 0
    for number in range(players):
        own, node = np.unique(level.infoset[:, number], return_inverse=True)
        views.append(own.astype(np.int32))
        nodes.append((first + node).astype(np.int32))
        first += len(own)
    together: Ints = np.stack(nodes, axis=1)
    state = _connected_components(together, first)
    sequence = [
        view_sequences(tree.players[number], tree.name)[own].astype(np.int32) for number, own in enumerate(views)
    ]
    who = np.repeat(np.arange(players, dtype=np.int32), [len(own) for own in views])
    return PublicStates(
        depth=depth,
        players=players,
        states=int(state.max()) + 1,
        view=np.concatenate(views),
        player=who,
        sequence=np.concatenate(sequence),
        state=state,
        node=together,
        weight=chance_reach(tree)[depth],
    )


def cut_depths(tree: game_tree.GameTree, depth: int) -> tuple[int, ...]:
    """Multiples of `depth` with choices before the cut, since the cut before, and after it."""
    if depth < 1:
        raise CutError(f"segments have 1 joint move or more, not {depth}")
    steps = np.unique(np.concatenate([player.step for player in tree.players]))
    found, last = [], -1
    for cut in range(depth, int(steps.max(initial=0)) + 1, depth):
        if ((steps > last) & (steps < cut)).any():
            found.append(cut)
            last = cut - 1
    return tuple(found)


def _levels(tree: game_tree.GameTree) -> tuple[game_tree.Level, ...]:
    if tree.levels is None or any(level.infoset is None for level in tree.levels):
        raise CutError(f"{tree.name} was unrolled without its edges, or not from rules: it cannot be cut")
    return tree.levels


def _connected_components(node: Ints, views: int) -> Ints:
    """[V] connected components of views that are together in a node, in the order of their first views."""
    first = np.repeat(node[:, :1], node.shape[1], axis=1)
    edges = scipy.sparse.coo_array((np.ones(node.size), (first.reshape(-1), node.reshape(-1))), (views, views))
    component = scipy.sparse.csgraph.connected_components(edges, directed=False)[1]
    found: Ints = component.astype(np.int32)
    return found


def view_sequences(player: game_tree.Player, game: str) -> Ints:
    """[V] the sequence that leads to each view of a player's trail."""
    trail = player.views
    if not isinstance(trail, game_tree.InfosetTree):
        raise CutError(f"{game} was not unrolled from rules: its information sets cannot be followed")
    decision = np.full(len(trail.parent), -1, np.int64)
    decision[player.view] = np.arange(player.sets)
    # Options of a set are in the order of their numbers, so that these keys are sorted.
    moves = int(max(trail.move.max(initial=0), player.action.max(initial=0))) + 1
    options = np.repeat(np.arange(player.sets), np.diff(player.first)) * moves + player.action[1:]
    chosen = 1 + np.searchsorted(options, decision[trail.parent] * moves + trail.move)
    found = np.where(trail.was_choice, chosen, -1).astype(np.int32)
    for view in np.flatnonzero(~trail.was_choice).tolist():  # parents come first
        found[view] = found[trail.parent[view]] if trail.parent[view] >= 0 else 0
    return found


def chance_reach(tree: game_tree.GameTree) -> list[Floats]:
    """[N] of each level: the probability of chance's moves up to each node."""
    found: list[Floats] = [np.ones(len(_levels(tree)[0].decision))] if tree.levels else []
    for level, after in zip(_levels(tree), _levels(tree)[1:], strict=False):
        goes_on = level.child >= 0
        arriving = (np.repeat(found[-1], np.diff(level.first_edge)) * level.chance)[goes_on]
        found.append(np.bincount(level.child[goes_on], arriving, len(after.decision)).astype(np.float64))
    return found


def trunk(tree: game_tree.GameTree, depth: int) -> game_tree.GameTree:
    """The first joint moves of a game, with the ends among them: the sets and sequences keep their numbers."""
    levels = _levels(tree)[:depth]
    ended = max((int((-level.child).max(initial=0)) for level in levels), default=0)
    ends = game_tree.Terminals(
        tree.terminals.sequence[:ended],
        tree.terminals.payoff[:ended],
        tree.terminals.weight[:ended],
        tree.terminals.histories[:ended],
    )
    players = []
    for player in tree.players:
        sets = int(np.searchsorted(player.step, depth))
        options = int(player.first[sets])
        players.append(
            dataclasses.replace(
                player,
                parent=player.parent[:sets],
                first=player.first[: sets + 1],
                step=player.step[:sets],
                chance=player.chance[:sets],
                action=player.action[:options],
                action_name=player.action_name[:options],
                view=player.view[:sets],
            )
        )
    return dataclasses.replace(tree, players=tuple(players), terminals=ends, levels=levels)


def ranges(public: PublicStates, plans: Sequence[jax.Array]) -> jax.Array:
    """[V, ..] how likely each player comes to its views by its own choices; plans are [S, ..] by sequences."""
    own = [plan[public.sequence[public.of_player(number)]] for number, plan in enumerate(plans)]
    return jnp.concatenate(own)


def counterfactual_reach(public: PublicStates, range_: jax.Array) -> jax.Array:
    """[V, ..] how likely the others and chance come to each view."""
    found = jnp.zeros_like(range_)
    weight = jnp.asarray(public.weight, range_.dtype).reshape(-1, *[1] * (range_.ndim - 1))
    for number in range(public.players):
        reach = weight * jnp.ones((1, *range_.shape[1:]), range_.dtype)
        for other in range(public.players):
            if other != number:
                reach = reach * range_[public.node[:, other]]
        found = found.at[public.node[:, number]].add(reach)
    return found


def normalize_by_state(public: PublicStates, amounts: jax.Array) -> jax.Array:
    """[V, ..] amounts as parts of what their player has in their public state; equal parts where it has none."""
    states, where = public.states * public.players, public.state_of_player
    all_of = jax.ops.segment_sum(amounts, where, num_segments=states)[where]
    count = jnp.asarray(np.bincount(where, minlength=states)[where], amounts.dtype)
    even = 1 / count.reshape(-1, *[1] * (amounts.ndim - 1))
    return jnp.where(all_of > 0, amounts / jnp.where(all_of > 0, all_of, 1), even)
