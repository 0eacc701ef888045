"""External sampling (Lanctot et al. 2009) and average-strategy sampling (Gibson et al. 2012) on batches in lockstep.

A traversal updates one player i. It draws from the policies of the others and from chance, one common draw for all that
i may choose at the same time, and walks all options of i. With f(a) the factor of an option, 1 for now, and w the
product of the factors of the options walked before,

    v(node) = sum_a policy(a) f(a) v(node after a)  where i chooses,      Q(I, a) += w f(a) v(node after a)

are unbiased: the probability to come to a set of i is the reach of the others and of chance, which makes the Qs the
counterfactual values of CFR. All nodes that the traversals of a batch are at are lanes of one level, breadth first.
Every level has room for some number of lanes for each traversal; where there are more, a part of them is kept, and f is
what makes up for that (see `frontier`). Lanes that end are left out at the next choice of i.

Average-strategy sampling walks an option only with probability rho, and then f(a) = 1 / rho(a):

    rho(a) = min(1, max(epsilon, (beta + tau s(a)) / (beta + sum_b s(b)))),      s the weights of i's average policy

The paper decides about every option by a draw of its own. Here one draw decides about all options of a set, by points
one apart on the line of their rhos: each option is walked with the same probability as there, and their number differs
by one at most.

In two-player games the average policy of the one who is not updated gets w at every set it visits: the probability to
come there is its own reach, times chance's, which never changes. Otherwise i's own average gets w times its reach over
the reach of all the others, times what that would be if they played uniformly, which never changes either.

Draws are a lattice with a random shift (Cranley & Patterson 1976): in each slot of the game one random number for the
whole batch, and lane n is n steps further on the circle. Whatever was drawn before, a lane's draw is uniform, which is
all that unbiased estimates need; and a batch is divided more evenly than by chance.
"""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from gdlx.envs.trees import sampling_form
from gdlx.solvers.mccfr import categorical, lane_packing, mccfr


class AverageStrategy(NamedTuple):
    """Of average-strategy sampling. All traced.

    s is what the state has: sums over iterations of means over batches, discounted. The paper's are sums over
    traversals: its beta is this one times the batch.
    """

    epsilon: Any = 0.05
    tau: Any = 1_000.0
    beta: Any = 1_000.0


class LevelCapacity(NamedTuple):
    """What one level has for the traversals of one player. Static."""

    options: int  # of the widest choice of this player; 1 where it has none
    others: bool  # whether anybody else has a choice
    lanes: float  # for one traversal, afterwards


LaneCapacities = tuple[tuple[LevelCapacity, ...], ...]  # players x levels

CAPACITY_MARGIN = 1.5  # times the lanes that are needed while the others play uniformly
MIN_LANES_PER_TRAVERSAL = 0.125  # lanes for a traversal, however few are expected


def compute_capacities(form: sampling_form.SamplingForm, *, width: float) -> LaneCapacities:
    """For all players, with at most `width` lanes for a traversal. Looks at the tables, so it must not be traced."""
    return tuple(_player_capacities(form, player, width) for player in range(form.players))


def _player_capacities(form: sampling_form.SamplingForm, player: int, width: float) -> tuple[LevelCapacity, ...]:
    sizes = np.rint(1 / np.asarray(form.share)).astype(np.int64)
    own = form.own(player)
    found, lanes = [], 1.0
    expected: npt.NDArray[np.float64] = np.ones(1)  # lanes at every node
    for level in form.levels:
        edges = np.diff(np.asarray(level.first_edge))
        column = np.array([slot.column[:-1] for slot in level.choices], np.int64).reshape(-1, len(edges))
        is_own = (column >= own.start) & (column < own.stop)
        options = np.where(is_own, sizes[column], 1).prod(axis=0)
        others = bool((~is_own & (sizes[column] > 1)).any())
        along = np.repeat(expected * options / edges, edges)
        if options.max() > 1:
            lanes = min(
                lanes * int(options.max()),
                max(MIN_LANES_PER_TRAVERSAL, min(width, CAPACITY_MARGIN * float(along.sum()))),
            )
        found.append(LevelCapacity(int(options.max()), others, lanes))
        child = np.asarray(level.child)[:-1]
        goes_on = child >= 0
        expected = np.bincount(child[goes_on], along[goes_on], minlength=1).astype(float)
    return tuple(found)


def bytes_per_traversal(own: tuple[LevelCapacity, ...]) -> float:
    """Of what is kept of a traversal until its payoffs have come back, about."""
    return sum(40 * room.lanes for room in own)


class Lanes(NamedTuple):
    """A level of the traversals. Axes: L lanes."""

    last: jax.Array  # [L] int32, node of the level, or -1 - end
    factor: jax.Array  # [] or [L] float, w
    reach: jax.Array | None  # [L] float, the updated player's over that of the others; None: nobody needs it


class BranchingLevel(NamedTuple):
    """A level where the updated player may choose. Axes: L lanes before, S slots after."""

    last: jax.Array  # [L] int32
    children: lane_packing.Children
    place: jax.Array  # [S] int32, of the option in a flat table; the place after the last without a choice
    factor: jax.Array  # [] or [S] float, w f(a)


class _Tables(NamedTuple):
    """Axes: I columns of the updated player, O others and one for no choice; A options, W search rows."""

    policy: jax.Array  # [A I + 1] float, of the updated player, and 1 for no choice
    share: jax.Array | None  # [A I + 1] float, rho; None: 1
    lines: jax.Array | None  # [I + 1, W] float, where the rhos of the next option begin
    walked: jax.Array  # [I + 1] options, or the sum of their rhos
    others: jax.Array  # [A O] float, policies
    bounds: jax.Array  # [O, W] float, where draws of the next option begin
    payoff: jax.Array  # [T + 1] float, 0 for what is not there


@dataclasses.dataclass(frozen=True)
class ExternalSampler:
    """A `sampled.Sampler`: external sampling, or average-strategy sampling where the settings say how."""

    capacities: LaneCapacities

    def __call__(
        self,
        form: sampling_form.SamplingForm,
        state: mccfr.MccfrState,
        settings: mccfr.MccfrSettings,
        key: jax.Array,
        player: int,
        *,
        batch: int,
        axis: str | None = None,
    ) -> mccfr.BatchEstimates:
        return sample(
            form, state, settings.average_strategy, key, player, capacities=self.capacities, batch=batch, axis=axis
        )


def sample(
    form: sampling_form.SamplingForm,
    state: mccfr.MccfrState,
    settings: AverageStrategy | None,
    key: jax.Array,
    player: int,
    *,
    capacities: LaneCapacities,
    batch: int,
    axis: str | None = None,
) -> mccfr.BatchEstimates:
    """The means over a batch of traversals that estimate a player's counterfactual values.

    External sampling without settings. With `axis` every device has lanes of its own for its part of the batch.
    """
    size = batch if axis is None else batch // jax.lax.axis_size(axis)
    device = 0 if axis is None else jax.lax.axis_index(axis)
    tables = _tables(form, state, settings, player)
    walks, last, weight = _forward(form, tables, capacities[player], key, device, player, size)
    sums = _backward(form, tables, walks, last, player), weight
    if axis is not None:
        sums = jax.lax.psum(sums, axis)  # type: ignore[no-untyped-call]
    return mccfr.BatchEstimates(sums[0] / batch, sums[1] / batch)


def _tables(
    form: sampling_form.SamplingForm, state: mccfr.MccfrState, settings: AverageStrategy | None, player: int
) -> _Tables:
    own, dtype = form.own(player), form.share.dtype
    policy = _with_none(state.policy[player].reshape(-1), 1)
    others = form.join_players([table for n, table in enumerate(state.policy) if n != player])
    bounds = categorical.cdf_thresholds(others)
    payoff = _with_none(form.payoff[player], 0)
    if settings is None:
        walked = _with_none(jnp.round(1 / form.share[own]).astype(jnp.int32), 1)
        return _Tables(policy, None, None, walked, others.reshape(-1), bounds, payoff)
    s = state.cumulative_policy[player]
    scale = settings.beta + s.sum(axis=0)
    likely = (settings.beta + settings.tau * s) / jnp.where(scale > 0, scale, 1)
    rho = jnp.clip(jnp.where(scale > 0, likely, 1), settings.epsilon, 1).astype(dtype)
    rho = jnp.where(form.uniform_by_player[player] > 0, rho, 0)
    none = (jnp.arange(len(rho)) == 0).astype(dtype)[:, None]
    lines = categorical.cdf_thresholds(jnp.concatenate([rho, none], axis=1))
    share = _with_none(rho.reshape(-1), 1)
    return _Tables(
        policy, share, lines, _with_none(categorical.prefix_sums(rho)[-1], 1), others.reshape(-1), bounds, payoff
    )


def _with_none(numbers: jax.Array, none: float) -> jax.Array:
    return jnp.append(numbers, jnp.asarray(none, numbers.dtype))


class _Draws:
    """The random numbers of a batch, slot after slot."""

    def __init__(self, key: jax.Array, slots: int, device: int | jax.Array, dtype: Any) -> None:
        self._shifts = iter(jax.random.bits(key, (slots,), jnp.uint32))
        self._steps = iter(_irrational(slots))
        self._device = jnp.uint32(device)
        self._dtype = dtype

    def __call__(self, lanes: int) -> jax.Array:
        """[lanes] uniform in [0, 1)."""
        number = self._device * jnp.uint32(lanes) + jnp.arange(lanes, dtype=jnp.uint32)
        point: jax.Array = next(self._shifts) + next(self._steps) * number
        return (point >> 8).astype(self._dtype) * jnp.asarray(2.0**-24, self._dtype)


def _irrational(count: int) -> npt.NDArray[np.uint32]:
    """Fractions of the square roots of primes, in units of 2^-32: no sum of multiples of them is an integer."""
    primes: list[int] = []
    candidate = 2
    while len(primes) < count:
        if all(candidate % prime for prime in primes):
            primes.append(candidate)
        candidate += 1
    return np.array([int(prime**0.5 % 1 * 2**32) for prime in primes], np.uint32)


def _forward(
    form: sampling_form.SamplingForm,
    tables: _Tables,
    capacities: tuple[LevelCapacity, ...],
    key: jax.Array,
    device: int | jax.Array,
    player: int,
    size: int,
) -> tuple[list[BranchingLevel], jax.Array, jax.Array]:
    """Walk until all lanes have ended: the walks in order, the last lanes' ends, and sums for the averages."""
    draws = _Draws(key, form.slots + 2 * len(form.levels), device, form.share.dtype)
    one = jnp.ones((), form.share.dtype)
    lanes = Lanes(jnp.zeros(size, jnp.int32), one, None if form.players == 2 else jnp.ones(size, one.dtype))
    weight = jnp.zeros(form.uniform_by_player[mccfr.averaged_player(form.players, player)].shape[1] + 1, one.dtype)
    walks = []
    for level, room in zip(form.levels, capacities, strict=True):
        move, lanes, weight = _others_move(form, tables, level, room, lanes, weight, draws, player)
        if room.options == 1:
            last = jnp.where(lanes.last >= 0, categorical.take(level.child, _after_chance(level, move)), lanes.last)
            lanes = lanes._replace(last=last)
        else:
            slots = -int(-room.lanes * size // 8) * 8
            walk, lanes = _own_moves(form, tables, level, room.options, slots, lanes, move, draws)
            walks.append(walk)
    return walks, lanes.last, weight[:-1]


class _Move(NamedTuple):
    """Axes: L lanes."""

    node: jax.Array  # [L] int32
    edge: jax.Array  # [L] int32, without the updated player's choice and chance's
    own: jax.Array  # [L] int32, row of the updated player's set; the last one without a choice
    stride: jax.Array  # [L] int32, edges from one of its options to the next
    chance: jax.Array | None  # [L] float, draw


def _others_move(
    form: sampling_form.SamplingForm,
    tables: _Tables,
    level: sampling_form.SamplingLevel,
    room: LevelCapacity,
    lanes: Lanes,
    weight: jax.Array,
    draws: _Draws,
    player: int,
) -> tuple[_Move, Lanes, jax.Array]:
    columns, none = form.own(player), form.own(player).stop - form.own(player).start
    size, reach = len(lanes.last), lanes.reach
    node = jnp.where(lanes.last >= 0, lanes.last, len(level.first_edge) - 1)
    edge = categorical.take(level.first_edge, node)
    own, own_stride = jnp.full_like(node, none), jnp.zeros_like(node)
    for slot in level.choices:
        column, stride = categorical.take(slot.column, node), categorical.take(slot.stride, node)
        is_own = (column >= columns.start) & (column < columns.stop)
        own, own_stride = jnp.where(is_own, column - columns.start, own), jnp.where(is_own, stride, own_stride)
        if not room.others:
            continue
        row = jnp.where(is_own, len(tables.bounds) - 1, jnp.where(column < columns.start, column, column - none))
        option = categorical.invert_cdf(tables.bounds, row, draws(size))
        edge = edge + option * stride
        if reach is None:
            weight = categorical.scatter_add(weight, row, jnp.broadcast_to(lanes.factor, (size,)))
        else:
            share = jnp.where(is_own, 1, categorical.take(form.share, column))
            reach = reach * share / categorical.take(tables.others, option * len(tables.bounds) + row)
    if lanes.reach is not None:
        weight = categorical.scatter_add(weight, own, lanes.factor * lanes.reach)
    chance = None if level.chance is None else draws(size)
    return _Move(node, edge, own, own_stride, chance), lanes._replace(reach=reach), weight


def _own_moves(
    form: sampling_form.SamplingForm,
    tables: _Tables,
    level: sampling_form.SamplingLevel,
    most: int,
    slots: int,
    lanes: Lanes,
    move: _Move,
    draws: _Draws,
) -> tuple[BranchingLevel, Lanes]:
    size = len(lanes.last)
    walked, point = categorical.take(tables.walked, move.own), draws(size)
    if tables.lines is not None:
        walked = jnp.ceil(walked - point).astype(jnp.int32)
    counts = jnp.where(lanes.last >= 0, walked, 0)
    enough = slots >= size * most
    children = (
        lane_packing.spread_children(counts, most)
        if enough
        else lane_packing.pack_children(counts, most, slots, draws(1)[0])
    )

    def of_parents(numbers: jax.Array) -> jax.Array:
        return lane_packing.gather_from_parents(children, numbers) if numbers.ndim else numbers

    own, option = of_parents(move.own), children.rank
    if tables.lines is not None:
        option = jnp.where(
            children.is_active, categorical.invert_cdf(tables.lines, own, of_parents(point) + children.rank), 0
        )
    none, sets = len(tables.policy) - 1, len(tables.walked) - 1
    place = jnp.where(children.is_active & (own < sets), option * sets + own, none)
    factor, reach = of_parents(lanes.factor), lanes.reach
    if children.factor is not None:
        factor = factor * children.factor
    if tables.share is not None:
        factor = factor / categorical.take(tables.share, place)
    if reach is not None:
        reach = of_parents(reach) * categorical.take(tables.policy, place)
    edge = of_parents(move.edge) + option * of_parents(move.stride)
    chance = None if move.chance is None else of_parents(move.chance)
    edge = _after_chance(level, _Move(of_parents(move.node), edge, own, option, chance))
    last = jnp.where(children.is_active, categorical.take(level.child, edge), -len(tables.payoff))
    return BranchingLevel(lanes.last, children, place, factor), Lanes(last, factor, reach)


def _after_chance(level: sampling_form.SamplingLevel, move: _Move) -> jax.Array:
    if level.chance is None or move.chance is None:
        return move.edge
    return categorical.sample_chance_edge(level.chance, move.node, move.edge, move.chance)


def _backward(
    form: sampling_form.SamplingForm, tables: _Tables, walks: list[BranchingLevel], last: jax.Array, player: int
) -> jax.Array:
    """[A, I] Carry payoffs back through the walks and add them up."""
    sums = jnp.zeros_like(tables.policy)
    policy = tables.policy if tables.share is None else tables.policy / jnp.where(tables.share > 0, tables.share, 1)
    value = categorical.take(tables.payoff, -1 - last)
    for walk in reversed(walks):
        sums = categorical.scatter_add(sums, walk.place, value * walk.factor)
        back = lane_packing.sum_to_parents(walk.children, value * categorical.take(policy, walk.place), len(walk.last))
        ended = categorical.take(tables.payoff, jnp.maximum(-1 - walk.last, 0))
        value = jnp.where(walk.last < 0, ended, back)
    return sums[:-1].reshape(form.uniform_by_player[player].shape)
