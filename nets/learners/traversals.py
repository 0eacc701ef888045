"""External sampling (Lanctot et al. 2009) that keeps what every single traversal met, as Deep CFR learns from it.

`solvers.external` adds up what a batch of traversals finds at each information set; here each visit stays by itself.
A traversal of player i draws from the policies of the others and from chance, and walks all options of i; q(a) is what
comes back from option a. The sampled advantages of a visit are

    q(a) - sum_b policy(b) q(b),

and their sum over the visits of a traversal to a set is expected to be the set's instantaneous counterfactual regret.

All traversals run in lockstep as lanes of one level. It has room for some number of lanes; where there are more, a
part of them is kept (see `solvers.frontier`). Each of these stands for several visits, its weight, and what comes back
from the options that were kept makes up for those that were not. The levels of the game are steps of a loop, so that a
program is as small for a long game as for a short one; and the player who walks is a number like any other.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from gdlx.envs.trees import sampling_form, sequence_form
from gdlx.solvers.mccfr import categorical, external_sampling, lane_packing


class Nodes(NamedTuple):
    """Nodes and edges of all levels, one level's after the other's; the last of each stands for lanes that have ended.

    Axes: M nodes, K choices of players at a node, E edges.
    """

    column: jax.Array  # [K, M] int32, information set
    stride: jax.Array  # [K, M] int32, edges from one option to the next
    outcomes: jax.Array  # [M] int32, of chance
    first_edge: jax.Array  # [M] int32
    keep: jax.Array  # [E] float, probability to keep a drawn outcome of chance
    other: jax.Array  # [E] int32, else what to take instead, relative to it
    child: jax.Array  # [E] int32, node; ends are -1 - their number


class TraversalTable(NamedTuple):
    """A game. Axes: C columns, the information sets of all players and one for no choice; P players, T ends."""

    nodes: Nodes
    options: jax.Array  # [C] int32
    player: jax.Array  # [C] int32, whose column it is; -1 for no choice
    payoff: jax.Array  # [P, T + 1] float, 0 for what is not there


class TraversalSize(NamedTuple):
    """Of a batch of traversals. Static."""

    batch: int
    lanes: int
    levels: int


class Visits(NamedTuple):
    """Axes: V places for visits of the player who walks, U for those of others, W options.

    Sets are columns. A place without a visit has the column of no choice.
    """

    column: jax.Array  # [V] int32
    weight: jax.Array  # [V] float, how many visits it stands for: 1 as long as there is room for all lanes
    advantage: jax.Array  # [V, W] float
    opponent_column: jax.Array  # [U] int32
    opponent_weight: jax.Array  # [U] float


def make_traversal_table(form: sampling_form.SamplingForm) -> TraversalTable:
    none, slots = form.shape[1] - 1, max(len(level.choices) for level in form.levels)
    parts, node, edge = [], 0, 0
    for level in form.levels:
        node += len(level.first_edge) - 1  # where the next level begins
        parts.append(_level(level, none, slots, node, edge))
        edge += len(level.child) - 1
    row, one = np.zeros((slots, 1)), np.ones(1)
    parts.append(Nodes(row + none, row, one, one * edge, one, one * 0, one * 0))  # type: ignore[arg-type]
    joined = Nodes(*(np.concatenate(field, axis=-1) for field in zip(*parts, strict=True)))  # type: ignore[arg-type]
    whole = jax.tree.map(lambda x: sequence_form.to_device(np.asarray(x, np.int32)), joined)
    who = [*(np.full(own.shape[1], number) for number, own in enumerate(form.uniform_by_player)), np.full(1, -1)]
    return TraversalTable(
        whole._replace(keep=sequence_form.to_device(np.asarray(joined.keep, form.share.dtype))),
        sequence_form.to_device(np.rint(1 / np.asarray(form.share)).astype(np.int32)),
        sequence_form.to_device(np.concatenate(who).astype(np.int32)),
        sequence_form.to_device(np.pad(np.asarray(form.payoff), ((0, 0), (0, 1)))),
    )


def _level(level: sampling_form.SamplingLevel, none: int, slots: int, below: int, before: int) -> Nodes:
    """The nodes of a level; those below it begin at `below`, its edges at `before`. All in numpy."""
    count, size = len(level.first_edge) - 1, len(level.child) - 1
    column, stride = np.full((slots, count), none), np.zeros((slots, count))
    for number, slot in enumerate(level.choices):
        column[number], stride[number] = slot.column[:-1], slot.stride[:-1]
    outcomes, keep, other = np.ones(count), np.ones(size), np.zeros(size)
    if level.chance is not None:
        outcomes = np.asarray(level.chance.outcomes[:-1])
        if level.chance.alias_prob is not None and level.chance.alias_offset is not None:
            keep, other = np.asarray(level.chance.alias_prob[:-1]), np.asarray(level.chance.alias_offset[:-1])
    child = np.asarray(level.child[:-1])
    first_edge = np.asarray(level.first_edge[:-1]) + before
    after = np.where(child >= 0, child + below, child)
    return Nodes(column, stride, outcomes, first_edge, keep, other, after)  # type: ignore[arg-type]


def traversal_size(form: sampling_form.SamplingForm, *, batch: int, width: float) -> TraversalSize:
    """With room for all lanes that are to be expected, or for `width` of each traversal where that is less."""
    lanes = max(room.lanes for own in external_sampling.compute_capacities(form, width=width) for room in own)
    return TraversalSize(batch, max(batch, -int(-lanes * batch // 8) * 8), len(form.levels))


class _Lanes(NamedTuple):
    """Axes: L lanes."""

    last: jax.Array  # [L] int32, node, or -1 - end
    weight: jax.Array  # [L] float


class _LevelTrace(NamedTuple):
    """A level of the game. Axes: L lanes, K choices."""

    lanes: _Lanes  # before it
    own: jax.Array  # [L] int32, column where the player who walks has chosen
    others: jax.Array  # [K, L] int32, columns where others have
    parent: jax.Array  # [L] int32, the lane before it of each one after it
    option: jax.Array  # [L] int32, that of the player who walks; 0 without a choice
    factor: jax.Array  # [] float, 1 / the part of the lanes that were kept


def draws_shape(game: TraversalTable, size: TraversalSize) -> tuple[int, int, int]:
    """The shape of what a batch of traversals draws."""
    return size.levels, len(game.nodes.column) + 2, size.lanes


def sample_visits(
    game: TraversalTable, policy: jax.Array, drawn: jax.Array, player: jax.Array | int, *, size: TraversalSize
) -> Visits:
    """The visits of a batch of traversals, with the policies [W, C] of all columns, and what is `drawn` in [0, 1)."""
    nowhere = -game.payoff.shape[1]
    lane = jnp.arange(size.lanes)
    start = _Lanes(jnp.where(lane < size.batch, 0, nowhere), jnp.ones(size.lanes, policy.dtype))
    bounds = categorical.cdf_thresholds(policy)

    def down(lanes: _Lanes, draw: jax.Array) -> tuple[_Lanes, _LevelTrace]:
        return _down(game, bounds, lanes, draw, player, len(policy))

    last, walks = jax.lax.scan(down, start, drawn)
    payoff = game.payoff[player]
    ends = categorical.take(payoff, -1 - last.last)  # all lanes have ended

    def up(value: jax.Array, walk: _LevelTrace) -> tuple[jax.Array, jax.Array]:
        back = jnp.zeros((size.lanes, len(policy)), value.dtype).at[walk.parent, walk.option].add(value * walk.factor)
        worth = (policy.T[walk.own] * back).sum(axis=1)
        is_option = jnp.arange(len(policy)) < game.options[walk.own][:, None]
        ended = categorical.take(payoff, jnp.maximum(-1 - walk.lanes.last, 0))
        return jnp.where(walk.lanes.last < 0, ended, worth), jnp.where(is_option, back - worth[:, None], 0)

    _, advantage = jax.lax.scan(up, ends, walks, reverse=True)
    weight = walks.lanes.weight
    return Visits(
        walks.own.reshape(-1),
        weight.reshape(-1),
        advantage.reshape(-1, len(policy)),
        walks.others.reshape(-1),
        jnp.repeat(weight, len(game.nodes.column), axis=0).reshape(-1),
    )


def _down(
    game: TraversalTable, bounds: jax.Array, lanes: _Lanes, draws: jax.Array, player: jax.Array | int, most: int
) -> tuple[_Lanes, _LevelTrace]:
    """One level: others choose, then all options of the player who walks, then chance; ended lanes stay behind."""
    nodes, none = game.nodes, len(game.options) - 1
    node = jnp.where(lanes.last >= 0, lanes.last, len(nodes.first_edge) - 1)
    edge = categorical.take(nodes.first_edge, node)
    own, own_stride, others = jnp.full_like(node, none), jnp.zeros_like(node), []
    *choosing, chance, keeping = draws
    for column, stride, draw in zip(nodes.column[:, node], nodes.stride[:, node], choosing, strict=True):
        is_own = categorical.take(game.player, column) == player
        own, own_stride = jnp.where(is_own, column, own), jnp.where(is_own, stride, own_stride)
        others.append(jnp.where(is_own, none, column))
        edge = edge + categorical.invert_cdf(bounds, others[-1], draw) * stride
    counts = jnp.where(lanes.last >= 0, categorical.take(game.options, own), 0)
    children = lane_packing.pack_children(counts, most, len(node), keeping[0])
    assert children.parent is not None
    assert children.factor is not None
    node, edge, stride, chance, weight = (
        categorical.take(x, children.parent) for x in (node, edge, own_stride, chance, lanes.weight)
    )
    slot = sampling_form.ChanceSlot(nodes.outcomes, nodes.outcomes, nodes.keep, nodes.other)
    edge = categorical.sample_chance_edge(slot, node, edge + children.rank * stride, chance)
    last = jnp.where(children.is_active, categorical.take(nodes.child, edge), -game.payoff.shape[1])
    after = _Lanes(last, weight * children.factor)
    return after, _LevelTrace(lanes, own, jnp.stack(others), children.parent, children.rank, children.factor)
