"""The symmetries of a game as tables, for whole levels of a tree at once.

An information set is stored as an element of the group and the representative of its orbit: the set is the image of the
representative. Elements that have the same image differ by the stabiliser of the representative, a set of elements that
is kept as the bits of a word; the smallest number stands for all of them.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gdlx.envs.trees import unique_rows
from gdlx.propnet.circuits import memo, propnet
from gdlx.propnet.symmetries import symmetries

Bools = npt.NDArray[np.bool_]
Longs = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

MOST_ELEMENTS = 64  # bits of a word


class Bits(NamedTuple):
    """How elements permute some registers. Axes: G elements, R registers."""

    image: Longs  # [G, R]
    inverted: Bools  # [G, R]

    def apply(self, element: int, states: Bools) -> Bools:
        """The images of states [R, N]."""
        images = np.empty_like(states)
        images[self.image[element]] = states ^ self.inverted[element][:, None]
        return images


class Group(NamedTuple):
    """A group of symmetries that leave every player its role. Axes: G elements, P players, M moves, Q percepts."""

    multiply: Longs  # [G, G] the product a b is b, followed by a
    inverse: Longs  # [G]
    moves: list[Longs]  # P x [G, M]
    percepts: list[Longs]  # P x [G, Q]
    registers: Bits

    @property
    def order(self) -> int:
        return len(self.inverse)

    @property
    def everything(self) -> int:
        """The whole group as bits of a word."""
        return (1 << self.order) - 1

    def restrict(self, registers: Longs) -> Bits:
        """How elements permute some registers, which they map to each other."""
        place = np.full(self.registers.image.shape[1], -1, np.int64)
        place[registers] = np.arange(len(registers))
        return Bits(place[self.registers.image[:, registers]], self.registers.inverted[:, registers])

    def smallest_equal(self, elements: Longs, stabilisers: Words) -> Longs:
        """The smallest element of each coset: of all that differ from `elements` [N] by one of `stabilisers` [N]."""
        smallest = np.full(len(elements), self.order, np.int64)
        for other in range(self.order):
            product = self.multiply[elements, other]
            np.minimum(smallest, np.where(has(stabilisers, other), product, self.order), out=smallest)
        return smallest


def has(sets: Words, elements: Longs | int) -> Bools:
    """Whether sets of elements, as bits of words, have an element."""
    members: Bools = (sets >> np.asarray(elements).astype(np.uint64)) & np.uint64(1) != 0
    return members


@memo.per_propnet
def build(propnet: propnet.PropNet) -> Group | None:
    """The symmetries of a game that leave every player its role; None if there is only the identity.

    A group of more than `MOST_ELEMENTS` is replaced by a part of it.
    """
    all_symmetries = symmetries.find_symmetries(propnet)
    elements = all_symmetries.elements()
    fixing: Sequence[symmetries.Symmetry] = all_symmetries.generators if elements is None else elements
    chosen: tuple[symmetries.Symmetry, ...] = (all_symmetries.identity,)
    for generator in fixing:
        if not generator.exchanges_players and generator.key not in {each.key for each in chosen}:
            more = symmetries.close(all_symmetries.identity, [*chosen, generator], MOST_ELEMENTS)
            chosen = chosen if more is None else more
    return from_elements(propnet, chosen) if len(chosen) > 1 else None


def from_elements(propnet: propnet.PropNet, elements: Sequence[symmetries.Symmetry]) -> Group:
    """Makes tables of all elements of a group, the identity first."""
    number = {element.key: n for n, element in enumerate(elements)}
    multiply = np.array([[number[b.then(a).key] for b in elements] for a in elements])
    players = [n for n, role in enumerate(propnet.roles) if not role.is_random]
    registers = np.stack([element.registers for element in elements]).reshape(len(elements), -1)
    return Group(
        multiply,
        np.argmax(multiply == 0, axis=1),
        [np.stack([element.moves[role] for element in elements]) for role in players],
        [np.stack([element.percepts[role] for element in elements]) for role in players],
        Bits(registers >> 1, (registers & 1).astype(np.bool_)),
    )


class ClosedRows(NamedTuple):
    """Distinct rows with all their images. Axes: N given rows, D rows, G elements, C columns."""

    rows: Bools  # [D, C]
    of: Longs  # [N] row of each given one
    image: Longs  # [G, D]


def close_rows(given: Bools, columns: Longs) -> ClosedRows:
    """Adds the images of rows [N, C], whose columns are permuted by `columns` [G, C]."""

    def images(rows: Bools) -> list[Bools]:
        permuted = []
        for column in columns:
            image = np.empty_like(rows)
            image[:, column] = rows
            permuted.append(image)
        return permuted

    first = np.concatenate(images(given))
    distinct = unique_rows.number_bit_columns(first.T)
    rows = first[distinct.example]
    both = unique_rows.number_bit_columns(np.concatenate([rows, *images(rows)]).T)
    place = np.empty(both.size, np.int64)
    place[both.number[: len(rows)]] = np.arange(len(rows))
    of = distinct.number[: len(given)].astype(np.int64)  # the identity is the first element
    return ClosedRows(rows, of, place[both.number[len(rows) :]].reshape(len(columns), len(rows)))
