"""Normal forms of boolean functions: all prime implicants, which do not depend on how a rule is written.

A chain of stones may be searched from either end of the board: other gates, the same function. Symmetries are
therefore looked for among prime implicants where there are few, and among gates elsewhere.
"""

import itertools
from collections.abc import Iterable

from gdlx.propnet.circuits import aig
from gdlx.propnet.common import deadlines

Cube = int  # a conjunction; bit n is set if it contains literal n
Form = frozenset[Cube]  # all prime implicants

_MOST_CUBES = 256
_MOST_PRODUCTS = 4_096
_MOST_WORK = 20_000_000  # comparisons of cubes in one circuit; work, not time, so that results are the same everywhere


def find_normal_forms(circuit: aig.Circuit) -> list[Form | None]:
    """Returns the normal form of every literal, None where it has too many prime implicants.

    >>> circuit = aig.Circuit(2, ((2, 4),), (6,))
    >>> find_normal_forms(circuit)[6] == frozenset({1 << 2 | 1 << 4})
    True
    >>> find_normal_forms(circuit)[7] == frozenset({1 << 3, 1 << 5})
    True
    """
    work = _Work(circuit.inputs, _MOST_WORK)
    forms: list[Form | None] = [frozenset(), frozenset({0})]
    for literal in range(2, 2 * circuit.inputs + 2):
        forms.append(frozenset({1 << literal}))
    for gate in deadlines.watched(circuit.gates):
        forms.append(work.conjunction([forms[literal] for literal in gate]))
        forms.append(work.disjunction([forms[literal ^ 1] for literal in gate]))
    return forms


class _Work:
    """Computes forms until the budget is spent."""

    def __init__(self, inputs: int, budget: int) -> None:
        self._budget = budget
        self._positive = sum(1 << 2 * node for node in range(1, inputs + 1))

    def conjunction(self, forms: Iterable[Form | None]) -> Form | None:
        """Prime implicants of a conjunction are the shortest products of those of its parts."""
        parts = list(forms)
        known = [form for form in parts if form is not None]
        if len(known) < len(parts):
            return None
        result: Form = frozenset({0})
        for form in sorted(known, key=len):
            if len(result) * len(form) > _MOST_PRODUCTS:
                return None
            products = {a | b for a, b in itertools.product(result, form)}
            shortest = self._absorb(cube for cube in products if not self._clash(cube, cube))
            if shortest is None:
                return None
            result = shortest
        return result

    def disjunction(self, forms: Iterable[Form | None]) -> Form | None:
        """Prime implicants of a disjunction are those of its parts, and what follows from them by consensus."""
        parts = list(forms)
        cubes: set[Cube] = set()
        for form in parts:
            if form is None or len(cubes) > _MOST_PRODUCTS:
                return None
            cubes |= form
        return self._close(cubes)

    def _clash(self, first: Cube, second: Cube) -> int:
        """The inputs of which one cube needs the value, and the other the opposite."""
        return ((first & second >> 1) | (first >> 1 & second)) & self._positive

    def _close(self, cubes: set[Cube]) -> Form | None:
        form = self._absorb(cubes)
        while form is not None:
            union = 0
            for cube in form:
                union |= cube
            if not self._clash(union, union):  # no input occurs with both values
                return form
            self._budget -= len(form) ** 2
            if self._budget < 0:
                return None
            more: set[Cube] = set()
            for first, second in itertools.combinations(form, 2):
                clash = self._clash(first, second)
                if clash and not clash & (clash - 1):
                    more.add((first | second) & ~(clash | clash << 1))
            joined = self._absorb(form | more)
            if joined == form:
                return form
            form = joined
        return None

    def _absorb(self, cubes: Iterable[Cube]) -> Form | None:
        """Leaves out cubes that contain another one; None if too many remain."""
        kept: list[Cube] = []
        for cube in sorted(set(cubes), key=int.bit_count):
            self._budget -= len(kept)
            if self._budget < 0:
                return None
            if not any(shorter & cube == shorter for shorter in kept):
                kept.append(cube)
                if len(kept) > _MOST_CUBES:
                    return None
        return frozenset(kept)
