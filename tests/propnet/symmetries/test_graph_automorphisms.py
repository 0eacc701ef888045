"""Automorphism groups of small graphs, compared with all permutations of their vertices."""

import itertools
import random

import pytest

from gdlx.propnet.symmetries import graph_automorphisms as automorphisms


def all_automorphisms(graph: automorphisms.Graph) -> set[tuple[int, ...]]:
    edges = set(graph.edges)
    collected = set()
    for order in itertools.permutations(range(len(graph.colours))):
        same_colours = all(graph.colours[v] == graph.colours[order[v]] for v in range(len(order)))
        if same_colours and {(order[u], order[v], kind) for u, v, kind in edges} == edges:
            collected.add(order)
    return collected


def generated(group: automorphisms.Automorphisms, size: int) -> set[tuple[int, ...]]:
    actual = {tuple(range(size))}
    while True:
        more = actual | {tuple(int(g[v]) for v in one) for one in actual for g in group.generators}
        if more == actual:
            return actual
        actual = more


def random_graph(seed: int) -> automorphisms.Graph:
    rng = random.Random(seed)
    size = 7
    pairs = [pair for pair in itertools.permutations(range(size), 2) if rng.random() < rng.choice((0.1, 0.3))]
    colours = tuple(rng.choice("ab") if seed % 2 else "a" for _ in range(size))
    return automorphisms.Graph(colours, tuple((u, v, rng.choice("ee" if seed % 3 else "ef")) for u, v in pairs))


def ring(size: int) -> automorphisms.Graph:
    pairs = [(n, (n + 1) % size) for n in range(size)]
    return automorphisms.Graph(("v",) * size, tuple((a, b, "e") for p in pairs for a, b in (p, p[::-1])))


@pytest.mark.parametrize("graph", [*map(random_graph, range(12)), ring(7), automorphisms.Graph(("v",) * 6, ())])
def test_the_group_is_that_of_all_permutations_that_keep_the_graph(graph: automorphisms.Graph) -> None:
    expected = all_automorphisms(graph)
    group = automorphisms.find_automorphisms(graph)
    assert group.order == len(expected)
    assert generated(group, len(graph.colours)) == expected


def test_a_large_group_is_counted_without_listing_it() -> None:
    assert automorphisms.find_automorphisms(automorphisms.Graph(("v",) * 20, ())).order == 2432902008176640000


def test_two_rings_are_not_one() -> None:
    two = automorphisms.Graph(
        ("v",) * 6, tuple((3 * part + n, 3 * part + (n + 1) % 3, "e") for part in (0, 1) for n in range(3))
    )
    assert automorphisms.find_automorphisms(two).order == 18


def test_the_search_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(automorphisms, "_MOST_REFINEMENTS", 3)
    with pytest.raises(automorphisms.TooManyError):
        automorphisms.find_automorphisms(ring(7))
