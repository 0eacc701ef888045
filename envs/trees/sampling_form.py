"""SamplingForm: an unrolled game as look-up tables for trajectories that run in lockstep.

All trajectories are at the same level at the same time. In a level, those who have a choice choose one after the other,
then chance: each is a slot of the level. In a turn-taking game a level has one slot for choices, whoever's they are. A
trajectory's joint move is the sum of what its slots add to the number of an edge. Information sets of all players are
columns of common tables, one player's after the other's.
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from gdlx.envs.trees import game_tree, sequence_form

Ints = game_tree.Ints


class ChoiceSlot(NamedTuple):
    """Where somebody may choose. Axes: N nodes of the level (the last one stands for ended trajectories)."""

    column: jax.Array  # [N + 1] int32, information set; the last column of the tables where there is no choice
    stride: jax.Array  # [N + 1] int32, edges from one option to the next


class ChanceSlot(NamedTuple):
    """Where chance may choose. Axes: N nodes, E edges. Unequal outcomes have Walker's alias tables."""

    outcomes: jax.Array  # [N + 1] int32, how many
    numbers: jax.Array  # [M] int32, 0 .. M - 1, M being the most outcomes of a node
    alias_prob: jax.Array | None  # [E] float, probability to keep the drawn outcome; None where all are equally likely
    alias_offset: jax.Array | None  # [E] int32, else what to take instead, relative to the drawn one


class SamplingLevel(NamedTuple):
    choices: tuple[ChoiceSlot, ...]
    chance: ChanceSlot | None
    first_edge: jax.Array  # [N + 1] int32
    child: jax.Array  # [E + 1] int32, node of the next level; ends are -1 - their number, and stay

    @property
    def slots(self) -> int:
        return len(self.choices) + (self.chance is not None)


class SamplingForm(NamedTuple):
    """Axes: P players, C columns: their information sets, and one for no choice; A the widest choice, T ends."""

    levels: tuple[SamplingLevel, ...]
    uniform_by_player: tuple[jax.Array, ...]  # P x [A, sets] float, 1 / options
    share: jax.Array  # [C] float, 1 / options of every column
    payoff: jax.Array  # [P, T] float

    @property
    def players(self) -> int:
        return len(self.payoff)

    @property
    def shape(self) -> tuple[int, int]:
        """Of tables of options and columns: A, C."""
        return self.uniform_by_player[0].shape[0] if self.uniform_by_player else 1, len(self.share)

    def own(self, player: int) -> slice:
        """The columns of a player."""
        start = sum(table.shape[1] for table in self.uniform_by_player[:player])
        return slice(start, start + self.uniform_by_player[player].shape[1])

    def join_players(self, tables: Sequence[jax.Array]) -> jax.Array:
        """[A, C] of what each player has for its own columns; the one option of no choice has 1."""
        none = (jnp.arange(self.shape[0]) == 0).astype(self.share.dtype)[:, None]
        return jnp.concatenate([*tables, none], axis=1)

    @property
    def uniform(self) -> jax.Array:
        """[A, C] float, 1 / options."""
        return self.join_players(self.uniform_by_player)

    @property
    def slots(self) -> int:
        """Random numbers that a trajectory needs."""
        return sum(level.slots for level in self.levels)

    @property
    def histories(self) -> int:
        """Places in a table with a number for every choice, of players and of chance, at every node."""
        return sum(level.slots * len(level.child) for level in self.levels)


def sampling_form(tree: game_tree.GameTree) -> SamplingForm:
    """Of a tree unrolled with `keep_edges`. Columns are in the order of players and of their information sets."""
    if tree.levels is None:
        raise ValueError("sampling needs the edges of the tree: unroll it with keep_edges=True")
    widths = np.concatenate([*(np.diff(player.first) for player in tree.players), [1]])
    first = np.cumsum([0, *(player.sets for player in tree.players)])
    uniform = np.where(np.arange(widths.max())[:, None] < widths, 1 / widths, 0)
    return SamplingForm(
        tuple(_level(level, widths, first) for level in tree.levels),
        tuple(_floats(uniform[:, begin:end]) for begin, end in itertools.pairwise(first.tolist())),
        _floats(1 / widths),
        _floats(tree.terminals.payoff.T),
    )


def _level(level: game_tree.Level, widths: Ints, first: Ints) -> SamplingLevel:
    nodes, players = level.decision.shape
    none = len(widths) - 1
    column = np.where(level.decision >= 0, level.decision + first[:-1], none)  # [N, P]
    options = widths[column]
    chance = np.diff(level.first_edge) // np.prod(options, axis=1)
    # Later players' options change faster, chance's fastest.
    stride = chance[:, None] * np.concatenate(
        [np.cumprod(options[:, :0:-1], axis=1)[:, ::-1], np.ones((nodes, min(1, players)), np.int64)], axis=1
    )
    # Those who choose come first; the k-th of them is in slot k.
    order = np.argsort(column == none, axis=1, kind="stable")
    column, stride = np.take_along_axis(column, order, axis=1), np.take_along_axis(stride, order, axis=1)
    used = int((column != none).sum(axis=1).max(initial=0))
    return SamplingLevel(
        tuple(ChoiceSlot(_ints(np.append(column[:, k], none)), _ints(np.append(stride[:, k], 0))) for k in range(used)),
        _chance(level, chance) if (chance > 1).any() else None,
        _ints(np.append(level.first_edge[:-1], len(level.child))),
        _ints(np.append(level.child, 0)),
    )


def _chance(level: game_tree.Level, count: Ints) -> ChanceSlot:
    share = np.repeat(1 / count, np.diff(level.first_edge))
    counts, numbers = _ints(np.append(count, 1)), _ints(np.arange(count.max()))
    if np.allclose(level.chance, share, rtol=1e-9):
        return ChanceSlot(counts, numbers, None, None)
    keep, other = np.ones(len(share) + 1), np.zeros(len(share) + 1, np.int64)
    bounds = level.first_edge.tolist()
    for begin, end, size in zip(bounds, bounds[1:], count.tolist(), strict=False):
        for start in range(begin, end, size):  # outcomes of chance are side by side in the order of edges
            part = slice(start, start + size)
            keep[part], other[part] = _alias(level.chance[part])
    return ChanceSlot(counts, numbers, _floats(keep), _ints(other))


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


def _ints(values: object) -> jax.Array:
    return sequence_form.to_device(np.asarray(values, np.int32))


def _floats(values: object) -> jax.Array:
    return sequence_form.to_device(np.asarray(values, jax.numpy.result_type(float)))
