"""Policies of a graph of states at the information sets of the unrolled game."""

import numpy as np

from gdlx.envs.states import infoset_states, state_graph, state_index
from gdlx.envs.trees import game_tree
from gdlx.propnet.circuits import propnet
from gdlx.solvers import tabular_policies


def to_tree(
    policies: tabular_policies.Policies,
    graph: state_graph.StateGraph,
    game: propnet.PropNet,
    tree: game_tree.GameTree,
) -> tabular_policies.Policies:
    """Converts policies by state to the information sets of the tree of the same game: each plays as its state does.

    Args:
      policies: at the states.
      graph: the states.
      game: the rules.
      tree: the game, unrolled from them.

    Raises:
      UnknownStateError: the tree is of other rules.

    >>> from gdlx.envs.trees import unroll
    >>> from gdlx.propnet import games
    >>> rps = games.compile_game("rps")
    >>> first = np.array([1.0, 1.0, 0.0, 0.0])
    >>> [policy.tolist() for policy in to_tree((first, first), state_graph.build(rps), rps, unroll.unroll(rps))]
    [[1.0, 1.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0]]
    """
    index = state_index.StateIndex(graph.words.shape[1])
    index.add(graph.words)
    return tuple(
        _player_to_tree(number, policy, graph, index, infoset_states.infoset_states(game, tree, number), player)
        for number, (player, policy) in enumerate(zip(tree.players, policies, strict=True))
    )


def _player_to_tree(
    number: int,
    policy: tabular_policies.Policy,
    graph: state_graph.StateGraph,
    index: state_index.StateIndex,
    words: infoset_states.Words,
    player: game_tree.Player,
) -> tabular_policies.Policy:
    decision = graph.decision[index.find(words), number]
    widths = np.diff(player.first)
    first = graph.players[number].first[decision]
    places = np.repeat(first - (player.first[:-1] - 1), widths) + np.arange(player.sequences - 1)
    return np.concatenate([[1.0], policy[places]])
