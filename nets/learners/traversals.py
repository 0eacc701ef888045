"""External sampling (Lanctot et al. 2009) that returns every visit of a traversal, as Deep CFR trains on them.

`solvers.mccfr.external_sampling` adds up the visits of a batch of traversals at each information set; here they stay
separate. A traversal of player i samples from the policies of the others and from chance, and follows all actions of i;
q(a) is the value returned by action a. The sampled advantages of a visit are

    q(a) - sum_b policy(b) q(b),

and the expectation of their sum over the visits of a traversal to an information set is its instantaneous
counterfactual regret.

All traversals run in parallel as lanes of one level, which has a fixed capacity. Lanes in excess are subsampled (see
`solvers.mccfr.lane_packing`): a remaining lane represents several visits, its weight, and the values of sampled actions
are scaled up to make up for dropped ones. The levels of the game are steps of a loop, so that a program is as small for
a long game as for a short one; the traversing player is an argument like any other.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from gdlx.envs.trees import device_arrays, sampling_form
from gdlx.solvers.mccfr import categorical, external_sampling, lane_packing


class Nodes(NamedTuple):
    """Nodes and edges of all levels, level by level; the last of each is for lanes that have ended.

    Axes: M nodes, K choices of players at a node, E edges.
    """

    column: jax.Array  # [K, M] int32, information set
    stride: jax.Array  # [K, M] int32, edges from one action to the next
    outcomes: jax.Array  # [M] int32, of chance
    first_edge: jax.Array  # [M] int32
    keep: jax.Array  # [E] float, alias method: probability to keep a drawn outcome of chance
    other: jax.Array  # [E] int32, alias method: offset of the outcome to take otherwise
    child: jax.Array  # [E] int32, node; terminals are -1 - their number


class TraversalTable(NamedTuple):
    """A game. Axes: C columns, the information sets of all players and one for no choice; P players, T terminals."""

    nodes: Nodes
    options: jax.Array  # [C] int32
    player: jax.Array  # [C] int32, whose column it is; -1 for no choice
    payoff: jax.Array  # [P, T + 1] float, 0 for lanes without a terminal


class TraversalSize(NamedTuple):
    """The static shape of a batch of traversals."""

    batch: int
    lanes: int
    levels: int


class Visits(NamedTuple):
    """Axes: V slots for visits of the traversing player, U for those of others, W actions.

    Information sets are columns. A slot without a visit has the column of no choice.
    """

    column: jax.Array  # [V] int32
    weight: jax.Array  # [V] float, how many visits it represents: 1 unless lanes were dropped
    advantage: jax.Array  # [V, W] float
    opponent_column: jax.Array  # [U] int32
    opponent_weight: jax.Array  # [U] float


def make_traversal_table(form: sampling_form.SamplingForm) -> TraversalTable:
    """The game as one table of all levels, on the device."""
    none, slots = form.shape[1] - 1, max(len(level.choices) for level in form.levels)
    parts, node, edge = [], 0, 0
    for level in form.levels:
        node += len(level.first_edge) - 1  # first node of the next level
        parts.append(_level(level, none, slots, node, edge))
        edge += len(level.child) - 1
    row, one = np.zeros((slots, 1)), np.ones(1)
    parts.append(Nodes(row + none, row, one, one * edge, one, one * 0, one * 0))  # type: ignore[arg-type]
    joined = Nodes(*(np.concatenate(field, axis=-1) for field in zip(*parts, strict=True)))  # type: ignore[arg-type]
    nodes = jax.tree.map(lambda x: device_arrays.to_device(np.asarray(x, np.int32)), joined)
    player = [*(np.full(x.shape[1], number) for number, x in enumerate(form.uniform_by_player)), np.full(1, -1)]
    return TraversalTable(
        nodes._replace(keep=device_arrays.to_device(np.asarray(joined.keep, form.share.dtype))),
        device_arrays.to_device(np.rint(1 / np.asarray(form.share)).astype(np.int32)),
        device_arrays.to_device(np.concatenate(player).astype(np.int32)),
        device_arrays.to_device(np.pad(np.asarray(form.payoff), ((0, 0), (0, 1)))),
    )


def _level(level: sampling_form.SamplingLevel, none: int, slots: int, below: int, before: int) -> Nodes:
    """The nodes of a level, in numpy; those of the next level start at `below`, its own edges at `before`."""
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
    """A capacity for all expected lanes, or for `width` lanes per traversal if that is less."""
    capacities = external_sampling.compute_capacities(form, width=width)
    lanes = max(capacity.lanes for levels in capacities for capacity in levels)
    return TraversalSize(batch, max(batch, -int(-lanes * batch // 8) * 8), len(form.levels))


class _Lanes(NamedTuple):
    """Axes: L lanes."""

    last: jax.Array  # [L] int32, node, or -1 - terminal
    weight: jax.Array  # [L] float


class _LevelTrace(NamedTuple):
    """A level of all traversals. Axes: L lanes, K choices."""

    lanes: _Lanes  # before it
    column: jax.Array  # [L] int32, information set of the traversing player
    others: jax.Array  # [K, L] int32, information sets of the others
    parent: jax.Array  # [L] int32, lane before the level of each lane after it
    action: jax.Array  # [L] int32, of the traversing player; 0 without a choice
    factor: jax.Array  # [] float, 1 / the fraction of lanes that were kept


def draws_shape(game: TraversalTable, size: TraversalSize) -> tuple[int, int, int]:
    """The shape of the random numbers of a batch of traversals."""
    return size.levels, len(game.nodes.column) + 2, size.lanes


def sample_visits(
    game: TraversalTable, policy: jax.Array, drawn: jax.Array, player: jax.Array | int, *, size: TraversalSize
) -> Visits:
    """The visits of a batch of traversals by `player`.

    Args:
      game: the game.
      policy: [W, C] of all columns.
      drawn: uniform random numbers in [0, 1), of the shape `draws_shape`.
      player: who traverses.
      size: static shape.
    """
    nowhere = -game.payoff.shape[1]
    lane = jnp.arange(size.lanes)
    start = _Lanes(jnp.where(lane < size.batch, 0, nowhere), jnp.ones(size.lanes, policy.dtype))
    bounds = categorical.cdf_thresholds(policy)

    def down(lanes: _Lanes, draw: jax.Array) -> tuple[_Lanes, _LevelTrace]:
        return _down(game, bounds, lanes, draw, player, len(policy))

    last, traces = jax.lax.scan(down, start, drawn)
    payoff = game.payoff[player]
    terminal_values = categorical.take(payoff, -1 - last.last)  # all lanes have ended

    def up(value: jax.Array, trace: _LevelTrace) -> tuple[jax.Array, jax.Array]:
        zeros = jnp.zeros((size.lanes, len(policy)), value.dtype)
        q_values = zeros.at[trace.parent, trace.action].add(value * trace.factor)
        expected = (policy.T[trace.column] * q_values).sum(axis=1)
        is_action = jnp.arange(len(policy)) < game.options[trace.column][:, None]
        ended = categorical.take(payoff, jnp.maximum(-1 - trace.lanes.last, 0))
        return jnp.where(trace.lanes.last < 0, ended, expected), jnp.where(is_action, q_values - expected[:, None], 0)

    _, advantage = jax.lax.scan(up, terminal_values, traces, reverse=True)
    weight = traces.lanes.weight
    return Visits(
        traces.column.reshape(-1),
        weight.reshape(-1),
        advantage.reshape(-1, len(policy)),
        traces.others.reshape(-1),
        jnp.repeat(weight, len(game.nodes.column), axis=0).reshape(-1),
    )


def _down(
    game: TraversalTable, bounds: jax.Array, lanes: _Lanes, draws: jax.Array, player: jax.Array | int, most: int
) -> tuple[_Lanes, _LevelTrace]:
    """One level: others choose, then all actions of the traversing player, then chance; ended lanes are dropped."""
    nodes, none = game.nodes, len(game.options) - 1
    node = jnp.where(lanes.last >= 0, lanes.last, len(nodes.first_edge) - 1)
    edge = categorical.take(nodes.first_edge, node)
    own_column, own_stride, others = jnp.full_like(node, none), jnp.zeros_like(node), []
    *choosing, chance, keeping = draws
    for column, stride, draw in zip(nodes.column[:, node], nodes.stride[:, node], choosing, strict=True):
        is_traverser = categorical.take(game.player, column) == player
        own_column, own_stride = (
            jnp.where(is_traverser, column, own_column),
            jnp.where(is_traverser, stride, own_stride),
        )
        others.append(jnp.where(is_traverser, none, column))
        edge = edge + categorical.invert_cdf(bounds, others[-1], draw) * stride
    counts = jnp.where(lanes.last >= 0, categorical.take(game.options, own_column), 0)
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
    return after, _LevelTrace(lanes, own_column, jnp.stack(others), children.parent, children.rank, children.factor)
