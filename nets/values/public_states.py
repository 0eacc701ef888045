"""Public states at a cut of a game: the players' views there (information sets), and which of them can coexist.

The non-terminal nodes after some number of joint actions are partitioned into public states: two nodes are in one
public state if some player cannot distinguish them, or if a chain of such pairs connects them. All players know the
public state. Together with the players' ranges (the probabilities that each reaches each of its views by its own
choices) it defines a subgame, whose values depend on nothing else (public belief states, Brown et al. 2020).
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
    """The public states of one depth. Axes: G public states, N nodes, P players, V views, player by player."""

    depth: int  # joint actions before it
    players: int  # P
    states: int  # G
    view: Ints  # [V] row of the player's tree of information sets
    player: Ints  # [V]
    sequence: Ints  # [V] the player's sequence that leads to the view
    state: Ints  # [V] public state
    node: Ints  # [N, P] views of the players
    weight: Floats  # [N] reach probability of chance

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
        """[V] index of the pair of public state and player, below G * P."""
        number: Ints = self.state * self.players + self.player
        return number


def find_public_states(tree: game_tree.GameTree, depth: int) -> PublicStates:
    """The public states after `depth` joint actions, of a tree that was unrolled with its edges."""
    level = _levels(tree)[depth] if 0 <= depth < len(_levels(tree)) else None
    if level is None or not len(level.decision):
        raise CutError(f"{tree.name} is over after {depth} joint actions: cut it earlier, or solve the whole game")
    assert level.infoset is not None
    players = len(tree.players)
    views: list[Ints] = []
    nodes: list[Ints] = []
    first = 0
    for number in range(players):
        player_views, node = np.unique(level.infoset[:, number], return_inverse=True)
        views.append(player_views.astype(np.int32))
        nodes.append((first + node).astype(np.int32))
        first += len(player_views)
    node_views: Ints = np.stack(nodes, axis=1)
    state = _connected_components(node_views, first)
    sequence = [
        view_sequences(tree.players[number], tree.name)[player_views].astype(np.int32)
        for number, player_views in enumerate(views)
    ]
    player = np.repeat(np.arange(players, dtype=np.int32), [len(player_views) for player_views in views])
    return PublicStates(
        depth=depth,
        players=players,
        states=int(state.max()) + 1,
        view=np.concatenate(views),
        player=player,
        sequence=np.concatenate(sequence),
        state=state,
        node=node_views,
        weight=chance_reach(tree)[depth],
    )


def cut_depths(tree: game_tree.GameTree, depth: int) -> tuple[int, ...]:
    """Multiples of `depth` with choices before the cut, since the cut before, and after it."""
    if depth < 1:
        raise CutError(f"segments have 1 joint action or more, not {depth}")
    steps = np.unique(np.concatenate([player.step for player in tree.players]))
    cuts, last = [], -1
    for cut in range(depth, int(steps.max(initial=0)) + 1, depth):
        if ((steps > last) & (steps < cut)).any():
            cuts.append(cut)
            last = cut - 1
    return tuple(cuts)


def _levels(tree: game_tree.GameTree) -> tuple[game_tree.Level, ...]:
    if tree.levels is None or any(level.infoset is None for level in tree.levels):
        raise CutError(f"{tree.name} was unrolled without its edges, or not from rules: it cannot be cut")
    return tree.levels


def _connected_components(node: Ints, views: int) -> Ints:
    """[V] connected components of views that share a node, in the order of their first views."""
    first = np.repeat(node[:, :1], node.shape[1], axis=1)
    edges = scipy.sparse.coo_array((np.ones(node.size), (first.reshape(-1), node.reshape(-1))), (views, views))
    component = scipy.sparse.csgraph.connected_components(edges, directed=False)[1]
    components: Ints = component.astype(np.int32)
    return components


def view_sequences(player: game_tree.Player, game: str) -> Ints:
    """[V] the sequence that leads to each row of a player's tree of information sets."""
    trail = player.views
    if not isinstance(trail, game_tree.InfosetTree):
        raise CutError(f"{game} was not unrolled from rules: the sequences of its information sets are unknown")
    decision = np.full(len(trail.parent), -1, np.int64)
    decision[player.view] = np.arange(player.sets)
    # Actions of an information set are sorted by index, and so are these keys.
    moves = int(max(trail.move.max(initial=0), player.action.max(initial=0))) + 1
    keys = np.repeat(np.arange(player.sets), np.diff(player.first)) * moves + player.action[1:]
    chosen = 1 + np.searchsorted(keys, decision[trail.parent] * moves + trail.move)
    sequence = np.where(trail.was_choice, chosen, -1).astype(np.int32)
    for view in np.flatnonzero(~trail.was_choice).tolist():  # parents come first
        sequence[view] = sequence[trail.parent[view]] if trail.parent[view] >= 0 else 0
    return sequence


def chance_reach(tree: game_tree.GameTree) -> list[Floats]:
    """[N] of each level: the reach probability of chance at each node."""
    reach: list[Floats] = [np.ones(len(_levels(tree)[0].decision))] if tree.levels else []
    for level, after in zip(_levels(tree), _levels(tree)[1:], strict=False):
        has_child = level.child >= 0
        arriving = (np.repeat(reach[-1], np.diff(level.first_edge)) * level.chance)[has_child]
        reach.append(np.bincount(level.child[has_child], arriving, len(after.decision)).astype(np.float64))
    return reach


def trunk(tree: game_tree.GameTree, depth: int) -> game_tree.GameTree:
    """The first joint actions of a game, with the terminals among them. Information sets and sequences keep their
    numbers."""
    levels = _levels(tree)[:depth]
    num_terminals = max((int((-level.child).max(initial=0)) for level in levels), default=0)
    terminals = game_tree.Terminals(
        tree.listed_terminals.sequence[:num_terminals],
        tree.listed_terminals.payoff[:num_terminals],
        tree.listed_terminals.weight[:num_terminals],
        tree.listed_terminals.histories[:num_terminals],
    )
    players = []
    for player in tree.players:
        sets = int(np.searchsorted(player.step, depth))
        sequences = int(player.first[sets])
        players.append(
            dataclasses.replace(
                player,
                parent=player.parent[:sets],
                first=player.first[: sets + 1],
                step=player.step[:sets],
                chance=player.chance[:sets],
                action=player.action[:sequences],
                action_name=player.action_name[:sequences],
                view=player.view[:sets],
            )
        )
    return dataclasses.replace(tree, players=tuple(players), terminals=terminals, levels=levels)


def ranges(public: PublicStates, plans: Sequence[jax.Array]) -> jax.Array:
    """[V, ..] reach probabilities of the views by their players' own choices, from realization plans [S, ..]."""
    by_player = [plan[public.sequence[public.of_player(number)]] for number, plan in enumerate(plans)]
    return jnp.concatenate(by_player)


def counterfactual_reach(public: PublicStates, range_: jax.Array) -> jax.Array:
    """[V, ..] reach probabilities of the views by the others and chance."""
    total = jnp.zeros_like(range_)
    weight = jnp.asarray(public.weight, range_.dtype).reshape(-1, *[1] * (range_.ndim - 1))
    for number in range(public.players):
        reach = weight * jnp.ones((1, *range_.shape[1:]), range_.dtype)
        for other in range(public.players):
            if other != number:
                reach = reach * range_[public.node[:, other]]
        total = total.at[public.node[:, number]].add(reach)
    return total


def normalize_by_state(public: PublicStates, amounts: jax.Array) -> jax.Array:
    """[V, ..] amounts, normalised to sum to 1 over a player's views in a public state; uniform where they are all 0."""
    states, where = public.states * public.players, public.state_of_player
    total = jax.ops.segment_sum(amounts, where, num_segments=states)[where]
    count = jnp.asarray(np.bincount(where, minlength=states)[where], amounts.dtype)
    uniform = 1 / count.reshape(-1, *[1] * (amounts.ndim - 1))
    return jnp.where(total > 0, amounts / jnp.where(total > 0, total, 1), uniform)
