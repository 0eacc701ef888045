"""The order of the states of a graph: the longest way from the first state to each of them, and cycles."""

import numpy as np

from gdlx.envs.trees import game_tree
from gdlx.envs.trees.factored import ragged

Ints = game_tree.Ints
Longs = game_tree.Longs


def longest_paths(first_edge: Longs, successor: Ints) -> Ints | None:
    """[S] the edges of the longest path from state 0 to every state; None if there is a cycle.

    All states can be reached from state 0. A state gets its layer when all edges that lead to it are counted.

    >>> longest_paths(np.array([0, 2, 3, 3]), np.array([1, 2, 2])).tolist()
    [0, 1, 2]
    >>> longest_paths(np.array([0, 1, 2]), np.array([1, 0])) is None
    True
    """
    layer = _peel(first_edge, successor)
    return None if (layer < 0).any() else layer


def _peel(first_edge: Longs, successor: Ints) -> Ints:
    """The longest paths; -1 for the states of cycles and those after them."""
    states = len(first_edge) - 1
    waiting: Longs = np.bincount(successor, minlength=states).astype(np.int64)
    layer = np.full(states, -1, np.int32)
    ready: Longs = np.flatnonzero(waiting == 0)
    number = 0
    while len(ready):
        layer[ready] = number
        number += 1
        reached = successor[_edges_of(first_edge, ready)]
        np.subtract.at(waiting, reached, 1)
        candidates: Longs = np.unique(reached).astype(np.int64)
        ready = candidates[waiting[candidates] == 0]
    return layer


def _edges_of(first_edge: Longs, states: Longs) -> Longs:
    return ragged.places_of(first_edge[states], first_edge[states + 1] - first_edge[states])


def find_cycle(first_edge: Longs, successor: Ints) -> list[int]:
    """Edges of a cycle in order, which must exist.

    Every state without a layer has a predecessor without one, so that going backward ends in a cycle.

    >>> sorted(find_cycle(np.array([0, 1, 3, 3]), np.array([1, 0, 2])))
    [0, 1]
    """
    in_cycle = _peel(first_edge, successor) < 0
    source = np.repeat(np.arange(len(first_edge) - 1), np.diff(first_edge))
    edges = np.flatnonzero(in_cycle[source] & in_cycle[successor])
    edge_to = np.full(len(in_cycle), -1, np.int64)
    edge_to[successor[edges]] = edges
    state = int(successor[edges[0]])
    seen: dict[int, int] = {}
    path: list[int] = []
    while state not in seen:
        seen[state] = len(path)
        path.append(int(edge_to[state]))
        state = int(source[path[-1]])
    return path[seen[state] :][::-1]
