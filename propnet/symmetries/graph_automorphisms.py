"""Automorphisms of coloured graphs by colour refinement and search: generators and the order of the group.

Colours are hashes, so that they can be compared between two copies of the graph in which different vertices were told
apart. Whatever is returned was checked edge by edge; a collision of hashes can only hide an automorphism.
"""

import dataclasses
from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt

from gdlx.propnet.common import deadlines

Words = npt.NDArray[np.uint64]
Longs = npt.NDArray[np.int64]

_MOST_REFINEMENTS = 4_000


class TooManyError(ValueError):
    """The search was given up: the graph is too regular."""


@dataclasses.dataclass(frozen=True)
class Graph:
    """A directed graph. Axes: V vertices, E edges."""

    colours: tuple[Hashable, ...]  # [V]
    edges: tuple[tuple[int, int, str], ...]  # [E] from, to, kind


@dataclasses.dataclass(frozen=True)
class Automorphisms:
    """The automorphism group of a graph. Every generator maps vertex v to generator[v]."""

    generators: tuple[Longs, ...]
    order: int


def find_automorphisms(graph: Graph) -> Automorphisms:
    """Finds generators of all automorphisms of a graph.

    Raises:
      TooManyError: it would take too long.

    >>> square = Graph(("v",) * 4, ((0, 1, "e"), (1, 2, "e"), (2, 3, "e"), (3, 0, "e")))
    >>> find_automorphisms(square).order
    4
    """
    return _Search(graph).run()


class _Search:
    def __init__(self, graph: Graph) -> None:
        vertices = len(graph.colours)
        kinds = {kind: number for number, kind in enumerate(sorted({kind for _, _, kind in graph.edges}))}
        rows = np.array([(u, v, kinds[kind]) for u, v, kind in graph.edges], np.int64).reshape(-1, 3)
        rows = np.unique(rows, axis=0)
        self._edges = rows
        self._keys = (rows[:, 0] * vertices + rows[:, 1]) * max(1, len(kinds)) + rows[:, 2]
        self._vertices, self._kinds = vertices, max(1, len(kinds))
        # Both directions; sorted by the vertex that receives.
        ends = np.concatenate([rows[:, 0], rows[:, 1]])
        others = np.concatenate([rows[:, 1], rows[:, 0]])
        labels = np.concatenate([2 * rows[:, 2], 2 * rows[:, 2] + 1])
        order = np.argsort(ends, kind="stable")
        self._other = others[order]
        self._label = _mix(labels[order].astype(np.uint64) + np.uint64(1))
        self._first = np.searchsorted(ends[order], np.arange(vertices + 1))
        palette = {colour: n for n, colour in enumerate(dict.fromkeys(graph.colours))}
        self._palette = np.array([palette[colour] for colour in graph.colours], np.int64).reshape(-1)
        self._left = _MOST_REFINEMENTS

    def run(self) -> Automorphisms:
        path = [self._refine(_mix(self._palette.astype(np.uint64)))]
        base: list[int] = []
        while (vertex := _first_of_smallest_class(path[-1])) is not None:
            base.append(vertex)
            path.append(self._individualise(path[-1], vertex))
        generators: list[Longs] = []
        order = 1
        for level in range(len(base) - 1, -1, -1):  # generators so far fix the first `level + 1` vertices of the base
            colours, vertex = path[level], base[level]
            orbit = _orbit(vertex, generators)
            for image in np.flatnonzero(colours == colours[vertex]).tolist():
                if image in orbit:
                    continue
                extension = self._match(path, level + 1, base, self._individualise(colours, image))
                if extension is not None:
                    generators.append(extension)
                    orbit = _orbit(vertex, generators)
            order *= len(orbit)
        return Automorphisms(tuple(generators), order)

    def _match(self, path: list[Words], level: int, base: list[int], colours: Words) -> Longs | None:
        """An automorphism that takes the colours of `path[level]` to `colours`."""
        if not np.array_equal(np.sort(path[level]), np.sort(colours)):
            return None
        if level == len(base):
            mapping = np.empty(self._vertices, np.int64)
            mapping[np.argsort(path[level])] = np.argsort(colours)
            return mapping if self._is_automorphism(mapping) else None
        for image in np.flatnonzero(colours == path[level][base[level]]).tolist():
            extension = self._match(path, level + 1, base, self._individualise(colours, image))
            if extension is not None:
                return extension
        return None

    def _is_automorphism(self, mapping: Longs) -> bool:
        if not np.array_equal(self._palette[mapping], self._palette):
            return False
        rows = self._edges
        keys = (mapping[rows[:, 0]] * self._vertices + mapping[rows[:, 1]]) * self._kinds + rows[:, 2]
        return np.array_equal(np.sort(keys), np.sort(self._keys))

    def _individualise(self, colours: Words, vertex: int) -> Words:
        changed = colours.copy()
        changed[vertex] = _mix(changed[vertex : vertex + 1] + np.uint64(0x5BD1E995))[0]
        return self._refine(changed)

    def _refine(self, colours: Words) -> Words:
        """Tells vertices apart by the colours of their neighbours, until nothing changes."""
        deadlines.check()
        self._left -= 1
        if self._left < 0:
            raise TooManyError
        classes = len(np.unique(colours))
        sums = np.zeros(len(self._other) + 1, np.uint64)
        while True:
            np.cumsum(_mix(colours[self._other] ^ self._label), out=sums[1:])
            received = sums[self._first[1:]] - sums[self._first[:-1]]
            colours = _mix(colours * np.uint64(0x9E3779B97F4A7C15) + received)
            more = len(np.unique(colours))
            if more == classes:
                return colours
            classes = more


def _first_of_smallest_class(colours: Words) -> int | None:
    """A vertex that shares its colour with as few others as possible; None if no vertex shares its colour."""
    _, first, counts = np.unique(colours, return_index=True, return_counts=True)
    shared = np.flatnonzero(counts > 1)
    return int(first[shared[np.argmin(counts[shared])]]) if len(shared) else None


def _orbit(vertex: int, generators: Sequence[Longs]) -> set[int]:
    orbit, work = {vertex}, [vertex]
    while work:
        here = work.pop()
        for generator in generators:
            image = int(generator[here])
            if image not in orbit:
                orbit.add(image)
                work.append(image)
    return orbit


def _mix(values: Words) -> Words:
    """A hash of each word."""
    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ mixed >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ mixed >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    hashed: Words = mixed ^ mixed >> np.uint64(31)
    return hashed
