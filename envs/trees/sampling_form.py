"""SamplingForm: an unrolled game as look-up tables for trajectories that run in lockstep.

All trajectories are at the same level at the same time. In a level, the players with a choice act one after the other,
then chance: each is a slot of the level. In a turn-taking game a level has one slot for choices, shared by all players.
The edge of a trajectory is the sum of its slots' contributions. Information sets of all players are columns of shared
tables, player by player.
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from gdlx.envs.trees import device_arrays, game_tree

Ints = game_tree.Ints


class ChoiceSlot(NamedTuple):
    """Where a player may have a choice. Axes: N nodes of the level (one more row for terminated trajectories)."""

    column: jax.Array  # [N + 1] int32, information set; the last column of the tables where there is no choice
    stride: jax.Array  # [N + 1] int32, edges from one action to the next


class ChanceSlot(NamedTuple):
    """Where chance may act. Axes: N nodes, E edges. Outcomes that are not uniform have Walker's alias tables."""

    outcomes: jax.Array  # [N + 1] int32, number of outcomes
    numbers: jax.Array  # [M] int32, 0 .. M - 1, where M is the most outcomes of a node
    alias_prob: jax.Array | None  # [E] float, probability to keep the drawn outcome; None if all are uniform
    alias_offset: jax.Array | None  # [E] int32, the outcome to take otherwise, relative to the drawn one


class SamplingLevel(NamedTuple):
    """One level of the tree. Axes: N nodes, E edges."""

    choices: tuple[ChoiceSlot, ...]
    chance: ChanceSlot | None
    first_edge: jax.Array  # [N + 1] int32
    child: jax.Array  # [E + 1] int32, node of the next level; terminal t is -1 - t, and absorbing

    @property
    def slots(self) -> int:
        return len(self.choices) + (self.chance is not None)


class SamplingForm(NamedTuple):
    """A game as look-up tables, the input of sampling solvers. A pytree.

    Axes: P players, C columns (the information sets of all players, and one for no choice), A most actions of a set,
    T terminals.

    >>> import gdlx
    >>> form = sampling_form(gdlx.unroll("kuhn_poker", keep_edges=True))
    >>> form.shape, form.player_columns(1), form.payoff.shape
    ((2, 13), slice(6, 12, None), (2, 30))
    """

    levels: tuple[SamplingLevel, ...]
    uniform_by_player: tuple[jax.Array, ...]  # P x [A, information sets] float, 1 / number of actions
    share: jax.Array  # [C] float, 1 / number of actions of every column
    payoff: jax.Array  # [P, T] float

    def __repr__(self) -> str:
        try:  # leaves of a pytree need not be arrays
            (players, terminals), columns = self.payoff.shape[-2:], self.share.shape[-1]
            sizes = f"{columns - 1} information sets, {len(self.levels)} levels, {terminals} terminals"
            return f"SamplingForm({players} players; {sizes})"
        except (AttributeError, IndexError, TypeError, ValueError):
            return f"SamplingForm({len(jax.tree.leaves(self))} leaves)"

    @property
    def players(self) -> int:
        return len(self.payoff)

    @property
    def shape(self) -> tuple[int, int]:
        """A, C: the shape of tables of actions by columns."""
        return self.uniform_by_player[0].shape[0] if self.uniform_by_player else 1, len(self.share)

    def player_columns(self, player: int) -> slice:
        """The columns of a player."""
        start = sum(table.shape[1] for table in self.uniform_by_player[:player])
        return slice(start, start + self.uniform_by_player[player].shape[1])

    def join_players(self, tables: Sequence[jax.Array]) -> jax.Array:
        """Joins the players' tables to [A, C]; the column for no choice has 1 for its single action."""
        none = (jnp.arange(self.shape[0]) == 0).astype(self.share.dtype)[:, None]
        return jnp.concatenate([*tables, none], axis=1)

    @property
    def uniform(self) -> jax.Array:
        """[A, C] float, 1 / number of actions."""
        return self.join_players(self.uniform_by_player)

    @property
    def slots(self) -> int:
        """The number of random numbers that a trajectory needs."""
        return sum(level.slots for level in self.levels)

    @property
    def histories(self) -> int:
        """The size of a table with an entry for every action, of players and of chance, at every node."""
        return sum(level.slots * len(level.child) for level in self.levels)


def sampling_form(tree: game_tree.GameTree) -> SamplingForm:
    """Converts a tree to look-up tables. Columns are in the order of players and of their information sets.

    Args:
      tree: a game unrolled with `keep_edges=True`.

    Returns:
      The `SamplingForm`, in jax's default precision.

    Raises:
      ValueError: if the tree has no edges.

    >>> import gdlx
    >>> sampling_form(gdlx.unroll("kuhn_poker", keep_edges=True))
    SamplingForm(2 players; 12 information sets, 5 levels, 30 terminals)
    """
    if tree.levels is None:
        raise ValueError("sampling needs the edges of the tree: unroll it with `keep_edges=True`")
    widths = np.concatenate([*(np.diff(player.first) for player in tree.players), [1]])
    first = np.cumsum([0, *(player.sets for player in tree.players)])
    uniform = np.where(np.arange(widths.max())[:, None] < widths, 1 / widths, 0)
    return SamplingForm(
        tuple(_level(level, widths, first) for level in tree.levels),
        tuple(device_arrays.floats(uniform[:, begin:end]) for begin, end in itertools.pairwise(first.tolist())),
        device_arrays.floats(1 / widths),
        device_arrays.floats(tree.terminals.payoff.T),
    )


def _level(level: game_tree.Level, widths: Ints, first: Ints) -> SamplingLevel:
    nodes, players = level.decision.shape
    none = len(widths) - 1
    column = np.where(level.decision >= 0, level.decision + first[:-1], none)  # [N, P]
    actions = widths[column]
    chance = np.diff(level.first_edge) // np.prod(actions, axis=1)
    # Later players' actions change faster, chance's fastest.
    stride = chance[:, None] * np.concatenate(
        [np.cumprod(actions[:, :0:-1], axis=1)[:, ::-1], np.ones((nodes, min(1, players)), np.int64)], axis=1
    )
    # Players with a choice come first; the k-th of them is in slot k.
    order = np.argsort(column == none, axis=1, kind="stable")
    column, stride = np.take_along_axis(column, order, axis=1), np.take_along_axis(stride, order, axis=1)
    used = int((column != none).sum(axis=1).max(initial=0))
    return SamplingLevel(
        tuple(
            ChoiceSlot(
                device_arrays.ints(np.append(column[:, k], none)), device_arrays.ints(np.append(stride[:, k], 0))
            )
            for k in range(used)
        ),
        _chance(level, chance) if (chance > 1).any() else None,
        device_arrays.ints(np.append(level.first_edge[:-1], len(level.child))),
        device_arrays.ints(np.append(level.child, 0)),
    )


def _chance(level: game_tree.Level, count: Ints) -> ChanceSlot:
    share = np.repeat(1 / count, np.diff(level.first_edge))
    counts, numbers = device_arrays.ints(np.append(count, 1)), device_arrays.ints(np.arange(count.max()))
    if np.allclose(level.chance, share, rtol=1e-9):
        return ChanceSlot(counts, numbers, None, None)
    keep, other = np.ones(len(share) + 1), np.zeros(len(share) + 1, np.int64)
    bounds = level.first_edge.tolist()
    for begin, end, size in zip(bounds, bounds[1:], count.tolist(), strict=False):
        for start in range(begin, end, size):  # outcomes of chance are adjacent edges
            outcomes = slice(start, start + size)
            keep[outcomes], other[outcomes] = _alias(level.chance[outcomes])
    return ChanceSlot(counts, numbers, device_arrays.floats(keep), device_arrays.ints(other))


def _alias(probability: game_tree.Floats) -> tuple[game_tree.Floats, Ints]:
    """Walker's tables: a uniform draw is kept with `keep`, else replaced by the outcome `other` further on."""
    size = len(probability)
    mass = probability * size
    keep, other = np.ones(size), np.zeros(size, np.int64)
    small = [n for n in range(size) if mass[n] < 1]
    large = [n for n in range(size) if mass[n] >= 1]
    while small and large:
        poor, rich = small.pop(), large.pop()
        keep[poor], other[poor] = mass[poor], rich - poor
        mass[rich] -= 1 - mass[poor]
        (small if mass[rich] < 1 else large).append(rich)
    return keep, other.astype(np.int32)
