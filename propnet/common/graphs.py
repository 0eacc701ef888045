"""Strongly connected components and reachability of small directed graphs."""

from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

from gdlx.propnet.common import deadlines

N = TypeVar("N", bound=Hashable)


def strongly_connected_components(edges: Mapping[N, Iterable[N]]) -> list[list[N]]:
    """Strongly connected components, successors before predecessors (Tarjan 1972, without recursion).

    >>> strongly_connected_components({"a": ["b"], "b": ["c"], "c": ["b"]})
    [['c', 'b'], ['a']]
    """
    index: dict[N, int] = {}
    low: dict[N, int] = {}
    open_nodes: list[N] = []
    is_open: set[N] = set()
    components: list[list[N]] = []
    for root in deadlines.watched(edges):
        if root in index:
            continue
        work = [(root, iter(edges[root]))]
        index[root] = low[root] = len(index)
        open_nodes.append(root)
        is_open.add(root)
        while work:
            node, successors = work[-1]
            for successor in successors:
                if successor not in index:
                    index[successor] = low[successor] = len(index)
                    open_nodes.append(successor)
                    is_open.add(successor)
                    work.append((successor, iter(edges.get(successor, ()))))
                    break
                if successor in is_open:
                    low[node] = min(low[node], index[successor])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    component: list[N] = []
                    while not component or component[-1] != node:
                        component.append(open_nodes.pop())
                        is_open.discard(component[-1])
                    components.append(component)
    return components


def reachable(edges: Mapping[N, Iterable[N]], roots: Iterable[N]) -> set[N]:
    """Returns all nodes that can be reached from the roots, including the roots."""
    seen = set(roots)
    work = list(seen)
    while work:
        for successor in edges.get(work.pop(), ()):
            if successor not in seen:
                seen.add(successor)
                work.append(successor)
    return seen


def shortest_path(edges: Mapping[N, Iterable[N]], start: N, goals: set[N]) -> list[N]:
    """Returns a shortest path from `start` to one of the goals; empty if there is none."""
    before: dict[N, N] = {start: start}
    layer = [start]
    while layer:
        for node in layer:
            if node in goals:
                path = [node]
                while before[path[-1]] != path[-1]:
                    path.append(before[path[-1]])
                return path[::-1]
        following: list[N] = []
        for node in layer:
            for successor in edges.get(node, ()):
                if successor not in before:
                    before[successor] = node
                    following.append(successor)
        layer = following
    return []
