"""External sampling (Lanctot et al. 2009) and average-strategy sampling (Gibson et al. 2012) on batches in lockstep.

A traversal updates one player i. It samples the actions of the other players and of chance, with one common draw for
all simultaneous actions of i, and traverses every action of i. With f(a) the importance weight of an action, 1 for now,
and w the product of the weights of the actions before,

    v(node) = sum_a policy(a) f(a) v(node after a)  where i acts,      Q(I, a) += w f(a) v(node after a)

are unbiased: the probability to visit an information set of i is the reach of the others and of chance, which makes the
Qs the counterfactual values of CFR. Traversals run breadth first: the current nodes of a batch are the lanes of one
level. Every level has a capacity of lanes per traversal. Where there are more lanes, a random subset is kept, and f
corrects for it (see `lane_packing`). Lanes at terminals are dropped at the next level where i acts.

Average-strategy sampling traverses an action only with probability rho, with f(a) = 1 / rho(a):

    rho(a) = min(1, max(epsilon, (beta + tau s(a)) / (beta + sum_b s(b)))),      s the cumulative policy of i

The paper uses an independent draw for every action. Here one draw serves all actions of an information set, by points
at distance one on the line of their rhos: each action is traversed with the same probability as in the paper, and the
number of traversed actions varies by at most one.

In two-player games the average policy of the other player is incremented by w at every information set it visits: the
probability to get there is its own reach, times that of chance, which is constant. Otherwise i's own average is
incremented by w times its reach over the reach of all others, times what the latter would be under uniform play, which
is constant too.

Draws form a randomly shifted lattice (Cranley & Patterson 1976): each slot of the game has one random number for the
whole batch, and lane n is shifted by n steps on the circle. Conditional on all previous draws, the draw of a lane is
uniform, which is sufficient for unbiased estimates; and a batch is spread more evenly than by independent draws.
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
    """Parameters of average-strategy sampling, all traced.

    s is the cumulative policy of the state: a discounted sum over iterations of means over batches. In the paper it is
    a sum over traversals, so the paper's beta is this one times the batch size.
    """

    epsilon: Any = 0.05
    tau: Any = 1_000.0
    beta: Any = 1_000.0


class LevelCapacity(NamedTuple):
    """Capacity of one level for the traversals that update one player. Static."""

    options: int  # largest number of actions of this player; 1 if it does not act
    others: bool  # whether any other player acts
    lanes: float  # per traversal, after this level


LaneCapacities = tuple[tuple[LevelCapacity, ...], ...]  # players x levels

CAPACITY_MARGIN = 1.5  # times the expected number of lanes if the others play uniformly
MIN_LANES_PER_TRAVERSAL = 0.125  # lower bound of the capacity


def compute_capacities(form: sampling_form.SamplingForm, *, width: float) -> LaneCapacities:
    """Returns the capacities for all players, at most `width` lanes per traversal. Must not be traced."""
    return tuple(_player_capacities(form, player, width) for player in range(form.players))


def _player_capacities(form: sampling_form.SamplingForm, player: int, width: float) -> tuple[LevelCapacity, ...]:
    action_counts = np.rint(1 / np.asarray(form.share)).astype(np.int64)
    own_columns = form.player_columns(player)
    capacities, lanes = [], 1.0
    expected: npt.NDArray[np.float64] = np.ones(1)  # expected lanes at every node
    for level in form.levels:
        edges = np.diff(np.asarray(level.first_edge))
        column = np.array([slot.column[:-1] for slot in level.choices], np.int64).reshape(-1, len(edges))
        is_own = (column >= own_columns.start) & (column < own_columns.stop)
        num_actions = np.where(is_own, action_counts[column], 1).prod(axis=0)
        others = bool((~is_own & (action_counts[column] > 1)).any())
        lanes_by_edge = np.repeat(expected * num_actions / edges, edges)
        if num_actions.max() > 1:
            lanes = min(
                lanes * int(num_actions.max()),
                max(MIN_LANES_PER_TRAVERSAL, min(width, CAPACITY_MARGIN * float(lanes_by_edge.sum()))),
            )
        capacities.append(LevelCapacity(int(num_actions.max()), others, lanes))
        child = np.asarray(level.child)[:-1]
        is_inner = child >= 0
        expected = np.bincount(child[is_inner], lanes_by_edge[is_inner], minlength=1).astype(float)
    return tuple(capacities)


def bytes_per_traversal(levels: tuple[LevelCapacity, ...]) -> float:
    """Estimates the memory that a traversal needs until its payoffs are backed up."""
    return sum(40 * level.lanes for level in levels)


class Lanes(NamedTuple):
    """Current nodes of the traversals. Axes: L lanes."""

    last: jax.Array  # [L] int32, node of the level, or -1 - terminal
    factor: jax.Array  # [] or [L] float, w
    reach: jax.Array | None  # [L] float, the updated player's over that of the others; None if not needed


class BranchingLevel(NamedTuple):
    """A level where the updated player acts. Axes: L lanes before, S slots after."""

    last: jax.Array  # [L] int32
    children: lane_packing.Children
    place: jax.Array  # [S] int32, index of the action in a flat table; its last entry if the player does not act
    factor: jax.Array  # [] or [S] float, w f(a)


class _Tables(NamedTuple):
    """Tables of the updated player and the others, each with a dummy entry where nobody acts.

    Axes: I columns of the updated player, O columns of the others and the dummy; A actions, W width of binary search,
    T terminals.
    """

    policy: jax.Array  # [A I + 1] float, of the updated player; the dummy is 1
    share: jax.Array | None  # [A I + 1] float, rho; None: 1
    lines: jax.Array | None  # [I + 1, W] float, where the rhos of the next action begin
    walked: jax.Array  # [I + 1] number of actions, or the sum of their rhos
    others: jax.Array  # [A O] float, policies
    bounds: jax.Array  # [O, W] float, where draws of the next action begin
    payoff: jax.Array  # [T + 1] float; the dummy is 0


@dataclasses.dataclass(frozen=True)
class ExternalSampler:
    """A `mccfr.Sampler`: external sampling, or average-strategy sampling if `settings.average_strategy` is set."""

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
    """Estimates a player's counterfactual values by the means over a batch of traversals.

    Without `settings` this is external sampling. With `axis`, every device has separate lanes for its shard of the
    batch.
    """
    size = batch if axis is None else batch // jax.lax.axis_size(axis)
    device = 0 if axis is None else jax.lax.axis_index(axis)
    tables = _tables(form, state, settings, player)
    branches, last, weight = _forward(form, tables, capacities[player], key, device, player, size)
    sums = _backward(form, tables, branches, last, player), weight
    if axis is not None:
        sums = jax.lax.psum(sums, axis)  # type: ignore[no-untyped-call]
    return mccfr.BatchEstimates(sums[0] / batch, sums[1] / batch)


def _tables(
    form: sampling_form.SamplingForm, state: mccfr.MccfrState, settings: AverageStrategy | None, player: int
) -> _Tables:
    own_columns, dtype = form.player_columns(player), form.share.dtype
    policy = _append_dummy(state.policy[player].reshape(-1), 1)
    others = form.join_players([table for n, table in enumerate(state.policy) if n != player])
    bounds = categorical.cdf_thresholds(others)
    payoff = _append_dummy(form.payoff[player], 0)
    if settings is None:
        walked = _append_dummy(jnp.round(1 / form.share[own_columns]).astype(jnp.int32), 1)
        return _Tables(policy, None, None, walked, others.reshape(-1), bounds, payoff)
    s = state.cumulative_policy[player]
    scale = settings.beta + s.sum(axis=0)
    unclipped = (settings.beta + settings.tau * s) / jnp.where(scale > 0, scale, 1)
    rho = jnp.clip(jnp.where(scale > 0, unclipped, 1), settings.epsilon, 1).astype(dtype)
    rho = jnp.where(form.uniform_by_player[player] > 0, rho, 0)
    dummy = (jnp.arange(len(rho)) == 0).astype(dtype)[:, None]
    lines = categorical.cdf_thresholds(jnp.concatenate([rho, dummy], axis=1))
    share = _append_dummy(rho.reshape(-1), 1)
    return _Tables(
        policy, share, lines, _append_dummy(categorical.prefix_sums(rho)[-1], 1), others.reshape(-1), bounds, payoff
    )


def _append_dummy(numbers: jax.Array, dummy: float) -> jax.Array:
    return jnp.append(numbers, jnp.asarray(dummy, numbers.dtype))


class _Draws:
    """Random numbers of a batch, slot by slot."""

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
    """Returns fractional parts of square roots of primes, in units of 2^-32: no integer combination is an integer."""
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
    """Traverse to the terminals; return the branching levels in order, the terminals, and sums for the averages."""
    draws = _Draws(key, form.slots + 2 * len(form.levels), device, form.share.dtype)
    one = jnp.ones((), form.share.dtype)
    lanes = Lanes(jnp.zeros(size, jnp.int32), one, None if form.players == 2 else jnp.ones(size, one.dtype))
    weight = jnp.zeros(form.uniform_by_player[mccfr.averaged_player(form.players, player)].shape[1] + 1, one.dtype)
    branches = []
    for level, capacity in zip(form.levels, capacities, strict=True):
        move, lanes, weight = _others_move(form, tables, level, capacity, lanes, weight, draws, player)
        if capacity.options == 1:
            last = jnp.where(lanes.last >= 0, categorical.take(level.child, _after_chance(level, move)), lanes.last)
            lanes = lanes._replace(last=last)
        else:
            slots = -int(-capacity.lanes * size // 8) * 8
            branch, lanes = _own_moves(form, tables, level, capacity.options, slots, lanes, move, draws)
            branches.append(branch)
    return branches, lanes.last, weight[:-1]


class _Move(NamedTuple):
    """Axes: L lanes."""

    node: jax.Array  # [L] int32
    edge: jax.Array  # [L] int32, before the actions of the updated player and of chance
    infoset_of_player: jax.Array  # [L] int32, information set of the updated player; the dummy if it does not act
    stride: jax.Array  # [L] int32, edges from one of its actions to the next
    chance: jax.Array | None  # [L] float, draw


def _others_move(
    form: sampling_form.SamplingForm,
    tables: _Tables,
    level: sampling_form.SamplingLevel,
    capacity: LevelCapacity,
    lanes: Lanes,
    weight: jax.Array,
    draws: _Draws,
    player: int,
) -> tuple[_Move, Lanes, jax.Array]:
    own_columns = form.player_columns(player)
    num_own = own_columns.stop - own_columns.start
    size, reach = len(lanes.last), lanes.reach
    node = jnp.where(lanes.last >= 0, lanes.last, len(level.first_edge) - 1)
    edge = categorical.take(level.first_edge, node)
    infoset, own_stride = jnp.full_like(node, num_own), jnp.zeros_like(node)
    for slot in level.choices:
        column, stride = categorical.take(slot.column, node), categorical.take(slot.stride, node)
        is_own = (column >= own_columns.start) & (column < own_columns.stop)
        infoset, own_stride = (
            jnp.where(is_own, column - own_columns.start, infoset),
            jnp.where(is_own, stride, own_stride),
        )
        if not capacity.others:
            continue
        row = jnp.where(is_own, len(tables.bounds) - 1, jnp.where(column < own_columns.start, column, column - num_own))
        action = categorical.invert_cdf(tables.bounds, row, draws(size))
        edge = edge + action * stride
        if reach is None:
            weight = categorical.scatter_add(weight, row, jnp.broadcast_to(lanes.factor, (size,)))
        else:
            share = jnp.where(is_own, 1, categorical.take(form.share, column))
            reach = reach * share / categorical.take(tables.others, action * len(tables.bounds) + row)
    if lanes.reach is not None:
        weight = categorical.scatter_add(weight, infoset, lanes.factor * lanes.reach)
    chance = None if level.chance is None else draws(size)
    return _Move(node, edge, infoset, own_stride, chance), lanes._replace(reach=reach), weight


def _own_moves(
    form: sampling_form.SamplingForm,
    tables: _Tables,
    level: sampling_form.SamplingLevel,
    max_actions: int,
    slots: int,
    lanes: Lanes,
    move: _Move,
    draws: _Draws,
) -> tuple[BranchingLevel, Lanes]:
    size = len(lanes.last)
    walked, point = categorical.take(tables.walked, move.infoset_of_player), draws(size)
    if tables.lines is not None:
        walked = jnp.ceil(walked - point).astype(jnp.int32)
    counts = jnp.where(lanes.last >= 0, walked, 0)
    fits = slots >= size * max_actions
    children = (
        lane_packing.spread_children(counts, max_actions)
        if fits
        else lane_packing.pack_children(counts, max_actions, slots, draws(1)[0])
    )

    def of_parents(numbers: jax.Array) -> jax.Array:
        return lane_packing.gather_from_parents(children, numbers) if numbers.ndim else numbers

    infoset, action = of_parents(move.infoset_of_player), children.rank
    if tables.lines is not None:
        action = jnp.where(
            children.is_active, categorical.invert_cdf(tables.lines, infoset, of_parents(point) + children.rank), 0
        )
    dummy, num_infosets = len(tables.policy) - 1, len(tables.walked) - 1
    place = jnp.where(children.is_active & (infoset < num_infosets), action * num_infosets + infoset, dummy)
    factor, reach = of_parents(lanes.factor), lanes.reach
    if children.factor is not None:
        factor = factor * children.factor
    if tables.share is not None:
        factor = factor / categorical.take(tables.share, place)
    if reach is not None:
        reach = of_parents(reach) * categorical.take(tables.policy, place)
    edge = of_parents(move.edge) + action * of_parents(move.stride)
    chance = None if move.chance is None else of_parents(move.chance)
    edge = _after_chance(level, _Move(of_parents(move.node), edge, infoset, action, chance))
    last = jnp.where(children.is_active, categorical.take(level.child, edge), -len(tables.payoff))
    return BranchingLevel(lanes.last, children, place, factor), Lanes(last, factor, reach)


def _after_chance(level: sampling_form.SamplingLevel, move: _Move) -> jax.Array:
    if level.chance is None or move.chance is None:
        return move.edge
    return categorical.sample_chance_edge(level.chance, move.node, move.edge, move.chance)


def _backward(
    form: sampling_form.SamplingForm, tables: _Tables, branches: list[BranchingLevel], last: jax.Array, player: int
) -> jax.Array:
    """Back up the payoffs through the branching levels, and sum the estimates: [A, I]."""
    sums = jnp.zeros_like(tables.policy)
    policy = tables.policy if tables.share is None else tables.policy / jnp.where(tables.share > 0, tables.share, 1)
    value = categorical.take(tables.payoff, -1 - last)
    for branch in reversed(branches):
        sums = categorical.scatter_add(sums, branch.place, value * branch.factor)
        backed_up = lane_packing.sum_to_parents(
            branch.children, value * categorical.take(policy, branch.place), len(branch.last)
        )
        terminal_payoff = categorical.take(tables.payoff, jnp.maximum(-1 - branch.last, 0))
        value = jnp.where(branch.last < 0, terminal_payoff, backed_up)
    return sums[:-1].reshape(form.uniform_by_player[player].shape)
