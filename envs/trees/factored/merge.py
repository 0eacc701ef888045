"""Merging blocks: equal ones add their weights, and ones that differ in one player's set are united.

Uniting is exact if the sets have no member in common, and the blocks the same weight. It is done only for sets of
players that have just had a choice: other unions are as correct, but cut the game into products that no longer fit
together later, so that it has more blocks in the end.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gdlx.envs.trees import unique_rows
from gdlx.envs.trees.factored import blocks, ragged

Bools = blocks.Bools
Longs = blocks.Longs
Floats = blocks.Floats

_DIGITS = 14  # weights that agree so far are products of the same probabilities


class Products(NamedTuple):
    """Blocks while they are merged. Axes: B blocks, P players."""

    world: Longs  # [B]
    sets: list[Longs]  # P x [B]
    weight: Floats  # [B]
    histories: Floats  # [B]
    chose: list[Bools]  # P x [B] whether the player has just had a choice

    def take(self, rows: Longs) -> "Products":
        return Products(
            self.world[rows],
            [sets[rows] for sets in self.sets],
            self.weight[rows],
            self.histories[rows],
            [chose[rows] for chose in self.chose],
        )


def merge(products: Products, pools: list[ragged.Ragged]) -> tuple[Products, list[ragged.Ragged]]:
    """Merges blocks until nothing changes.

    Args:
      products: the blocks.
      pools: for every player its distinct sets of members, sorted.

    Returns:
      Fewer blocks, and the sets with unions added.
    """
    products, pools = _merge_equal(products), list(pools)
    changed = True
    while changed:
        changed = False
        for player in range(len(pools)):
            united = _unite(products, pools[player], player)
            if united is not None:
                products, pools[player] = _merge_equal(united[0]), united[1]
                changed = True
    return products, pools


def ranges(columns: Sequence[npt.NDArray[np.integer[Any]]]) -> list[int]:
    """For each column a bound above its items, as `unique_rows.number_rows` needs."""
    return [1 + int(column.max(initial=0)) for column in columns]


def _merge_equal(products: Products) -> Products:
    """Blocks with the same world and sets become one, with the sum of the weights."""
    columns = [products.world, *products.sets]
    same = unique_rows.number_rows(columns, ranges(columns))
    if same.size == len(products.world):
        return products
    chose = [np.bincount(same.number, chose, minlength=same.size) > 0 for chose in products.chose]
    merged = products.take(same.example)
    return merged._replace(weight=same.sums(products.weight), histories=same.sums(products.histories), chose=chose)


def _unite(products: Products, pool: ragged.Ragged, player: int) -> tuple[Products, ragged.Ragged] | None:
    """Unites the sets of one player in blocks that are otherwise equal; None if there are none."""
    others = [sets for n, sets in enumerate(products.sets) if n != player]
    weight = np.unique(np.round(products.weight / products.weight.max(initial=1e-300), _DIGITS), return_inverse=True)[1]
    histories = np.unique(products.histories, return_inverse=True)[1]
    columns = [products.world, *others, weight, histories]
    group = unique_rows.number_rows(columns, ranges(columns))
    may = np.bincount(group.number, products.chose[player], minlength=group.size) > 0
    several = np.flatnonzero((np.bincount(group.number, minlength=group.size) > 1) & may)
    if not len(several):
        return None
    members = ragged.from_groups(group.number, np.arange(len(products.world)), group.size).take(several)
    # Groups with the same sets have the same union.
    sets = ragged.from_groups(
        np.repeat(np.arange(members.rows), members.lengths), products.sets[player][members.items], members.rows
    )
    kinds = ragged.number_rows(sets)
    unions, is_disjoint = _unions(pool, sets.take(kinds.example))
    good = is_disjoint[kinds.number]
    if not good.any():
        return None
    united = np.cumsum(is_disjoint) - 1  # number among the unions that are kept
    leader = members.items[members.starts[:-1]]
    gone = np.zeros(len(products.world), np.bool_)
    gone[members.take(np.flatnonzero(good)).items] = True
    gone[leader[good]] = False
    products.sets[player][leader[good]] = pool.rows + united[kinds.number[good]]
    rows = np.repeat(np.arange(members.rows), members.lengths)
    for chose in products.chose:
        chose[leader] |= np.bincount(rows, chose[members.items], minlength=members.rows) > 0
    kept = unions.take(np.flatnonzero(is_disjoint))
    return products.take(np.flatnonzero(~gone)), ragged.concatenate([pool, kept])


def _unions(pool: ragged.Ragged, groups: ragged.Ragged) -> tuple[ragged.Ragged, Bools]:
    """The union of each group of sets, and whether these have no member in common."""
    parts, disjoint = [], [np.zeros(0, np.bool_)]
    lengths = np.add.reduceat(np.append(pool.lengths[groups.items], 0), groups.starts[:-1])
    for part in ragged.chunks(lengths, 2**22):
        group = groups.take(np.arange(part.start, part.stop))
        items = pool.take(group.items).items
        union = ragged.sort_rows(ragged.Ragged(ragged.starts_of(lengths[part]), items))
        repeated = np.zeros(len(items) + 1, np.bool_)
        repeated[1:-1] = union.items[1:] == union.items[:-1]
        repeated[union.starts] = False  # where a row begins, its neighbour is of another one
        parts.append(union)
        disjoint.append(np.add.reduceat(repeated, union.starts[:-1], dtype=np.int64) == 0)
    return ragged.concatenate(parts), np.concatenate(disjoint)


def drop_unused(world: Longs, worlds: Bools) -> tuple[Longs, Bools]:
    """Leaves out worlds that no block has."""
    used, number = np.unique(world, return_inverse=True)
    return number.reshape(-1), worlds[:, used]


def used_sets(sets: Longs, pool: ragged.Ragged) -> tuple[Longs, ragged.Ragged]:
    """Leaves out sets that no block has."""
    used, number = np.unique(sets, return_inverse=True)
    return (sets, pool) if len(used) == pool.rows else (number.reshape(-1), pool.take(used))


def member_sums(values: Floats, sets: ragged.Ragged, members: int) -> Floats:
    """[M] the sum over the sets [S] that have a member, of their values."""
    total = np.zeros(members)
    lengths = sets.lengths
    for part in ragged.chunks(lengths, 2**23):
        items = sets.items[sets.starts[part.start] : sets.starts[part.stop]]
        total += sum_by(items, np.repeat(values[part], lengths[part]), members)
    return total


def sum_by(group: Longs, values: Floats, groups: int) -> Floats:
    """The sum of the values of each group."""
    return np.bincount(group, values, minlength=groups).astype(np.float64, copy=False)
