"""Outcome sampling: Monte Carlo CFR on batches of trajectories in lockstep (Lanctot et al. 2009).

A trajectory updates one player i. It explores: i plays (1 - e) policy + e uniform, everybody else and chance play as
they do. With xi the probabilities that i draws with, q their product before an information set, and v the value that
comes back from below (the payoff at the end),

    v(I, a) = b(I, a) + [a drawn] (v - b(I, a)) / xi(a),      Q(I, a) += v(I, a) / q,      v <- sum_a policy(a) v(I, a)

is an unbiased estimate of the counterfactual values Q that CFR computes exactly; from there on everything is as in CFR,
with all its regret minimisers. The policies stay as they are for the whole batch, so that sums over a batch need only
scalars: Q is one number for each visit, and regrets are made of the sums afterwards.

b are baselines (Schmid et al. 2018): any numbers leave the estimate unbiased, good ones make it precise. Here b follows
the mean of what came back from below. The same correction, with xi the policy itself, is made where others choose, each
in turn where they choose at the same time. Chance has no baselines.

In two-player games the average policy of the one who is not updated gets 1 / q at every set it visits: the probability
to come there is its own reach, times chance's, which never changes, times q. Otherwise i's own average gets its reach
over q and over the reach of all the others.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from gdlx.envs import sampling_form, sequence_form
from gdlx.solvers import plans, regret

LANES = 8  # parts of a batch with random numbers of their own, whatever device they run on


class SampleSettings(NamedTuple):
    """All traced."""

    minimiser: regret.Settings
    exploration: Any = 0.6
    decay: Any = None  # how far a baseline moves to what a batch brought; None: no baselines


class SampleState(NamedTuple):
    """Axes: A options, C columns: information sets of all players, and one for no choice; P players."""

    regret: jax.Array  # [A, C]
    weight: jax.Array  # [A, C], sums for the average policies
    policy: jax.Array  # [A, C]
    baseline: jax.Array | None  # [P, A, C], what each player may expect after each option
    t: jax.Array  # [] int32, iterations: each is one batch for every player


def init(form: sampling_form.SamplingForm, *, baselines: bool = False) -> SampleState:
    zero = sequence_form.put(np.zeros(form.uniform.shape, form.uniform.dtype))
    none = np.zeros((form.players, *form.uniform.shape), form.uniform.dtype)
    expected = sequence_form.put(none) if baselines else None
    return SampleState(zero, zero, form.uniform, expected, sequence_form.put(np.zeros((), np.int32)))


class Visit(NamedTuple):
    """What a batch of trajectories did in one slot. Axes: B trajectories."""

    column: jax.Array  # [B] int32
    place: jax.Array  # [B] int32, of the option in a flat table
    chosen: jax.Array  # [B] float, probability of the option under the policy
    drawn: jax.Array  # [B] float, probability with which it was drawn
    before: jax.Array  # [B] float, q before
    reach: jax.Array  # [B] float, weight of the average policy


class Sums(NamedTuple):
    """Of a batch, for one updated player; only its own columns of `values` and `visits` mean something."""

    values: jax.Array  # [A, C] Q without what baselines add to every option
    visits: jax.Array  # [C] sum of 1 / q
    weight: jax.Array  # [C] for the averages
    below: jax.Array | None  # [A, C] sums of what came back from below
    counts: jax.Array | None  # [A, C] and how often


def step(
    form: sampling_form.SamplingForm,
    state: SampleState,
    settings: SampleSettings,
    key: jax.Array,
    *,
    batch: int,
    axis: str | None = None,
) -> SampleState:
    """One iteration: a batch of trajectories for every player in turn. `key` is the run's, the same in every step.

    With `axis` this device plays its part of the batch, and sums are taken over the axis of that name.
    """
    t = state.t + 1
    by = regret.discounts(settings.minimiser, t)
    now = jax.random.fold_in(key, t)
    for player in range(form.players):
        own_key = jax.random.fold_in(now, player)
        sums = sample(form, state, settings.exploration, own_key, player, batch=batch, axis=axis)
        state = _updated(form, state, settings, by, sums, player)
    return state._replace(t=t)


def sample(
    form: sampling_form.SamplingForm,
    state: SampleState,
    exploration: Any,
    key: jax.Array,
    player: int,
    *,
    batch: int,
    axis: str | None = None,
) -> Sums:
    """The means over a batch that estimate a player's counterfactual values."""
    lanes = LANES if axis is None else LANES // jax.lax.axis_size(axis)
    first = 0 if axis is None else jax.lax.axis_index(axis) * lanes
    keys = jax.vmap(lambda lane: jax.random.fold_in(key, lane))(first + jnp.arange(lanes))
    draws = jax.vmap(lambda own: jax.random.uniform(own, (form.slots, batch // LANES)))(keys)
    draws = draws.swapaxes(0, 1).reshape(form.slots, -1)
    explored = state.policy + exploration * (form.uniform - state.policy)
    drawn_from = jnp.where(form.player == player, explored, state.policy)
    visits, payoff = _forward(form, state.policy, drawn_from, draws, player)
    sums = _backward(form, state, visits, payoff, player)
    if axis is not None:
        sums = jax.lax.psum(sums, axis)  # type: ignore[no-untyped-call]
    means: Sums = jax.tree.map(lambda x: x / batch, sums)
    return means


def _forward(
    form: sampling_form.SamplingForm, policy: jax.Array, drawn_from: jax.Array, draws: jax.Array, player: int
) -> tuple[list[Visit], jax.Array]:
    """Play all trajectories to their ends; the visits in order, and the payoffs."""
    size = draws.shape[1]
    columns = policy.shape[1]
    bounds = _bounds(form, drawn_from)
    steps = (len(drawn_from) - 1).bit_length()
    before = reach = jnp.ones(size, policy.dtype)
    last = jnp.zeros(size, jnp.int32)  # node of the level, or -1 - end
    visits: list[Visit] = []
    slot = 0
    for level in form.levels:
        node = jnp.where(last >= 0, last, len(level.first_edge) - 1)
        edge = _take(level.first_edge, node)
        for choice in level.choices:
            column = _take(choice.column, node)
            action = _drawn(bounds, column, draws[slot], steps)
            place = action * columns + column
            chosen, drawn = _take(policy.reshape(-1), place), _take(drawn_from.reshape(-1), place)
            visits.append(Visit(column, place, chosen, drawn, before, reach))
            edge = edge + action * _take(choice.stride, node)
            is_own = _take(form.player, column) == player
            before = jnp.where(is_own, before * drawn, before)
            reach = _next_reach(form.players, is_own, reach, chosen, drawn)
            slot += 1
        if level.chance is not None:
            edge = edge + _chance(level.chance, node, edge, draws[slot])
            slot += 1
        last = jnp.where(last >= 0, _take(level.child, edge), last)
    return visits, _take(form.payoff[player], -1 - last)


def _bounds(form: sampling_form.SamplingForm, drawn_from: jax.Array) -> jax.Array:
    """[C, W] where draws of the next option begin, W the power of two from A on: rows to search by halves.

    Above the last option of a set nothing can be drawn, whatever rounding does to the sums. They are written out,
    because XLA's sums over windows take longer than all the rest.
    """
    options = len(drawn_from)
    bounds, total = [], jnp.zeros_like(drawn_from[0])
    for option in range(options - 1):
        total = total + drawn_from[option]
        bounds.append(jnp.where(form.uniform[option + 1] > 0, total, 2))
    never = jnp.full_like(total, 2)
    bounds += [never] * (2 ** (options - 1).bit_length() - len(bounds))
    return jnp.stack(bounds, axis=1)


def _drawn(bounds: jax.Array, column: jax.Array, draw: jax.Array, steps: int) -> jax.Array:
    """How many bounds of its row each draw has reached: the option."""
    flat, start = bounds.reshape(-1), column * bounds.shape[1]
    reached = jnp.zeros_like(column)
    for step in reversed(range(steps)):
        half = 1 << step
        reached = jnp.where(draw >= _take(flat, start + reached + half - 1), reached + half, reached)
    return reached


def _next_reach(players: int, is_own: jax.Array, reach: jax.Array, chosen: jax.Array, drawn: jax.Array) -> jax.Array:
    """The weight of average policies after one more choice."""
    if players == 2:
        return jnp.where(is_own, reach / drawn, reach)
    return reach * jnp.where(is_own, chosen / drawn, 1 / chosen)


def _chance(slot: sampling_form.ChanceSlot, node: jax.Array, edge: jax.Array, draw: jax.Array) -> jax.Array:
    count = _take(slot.outcomes, node)
    scaled = draw * count
    outcome = jnp.minimum(scaled.astype(jnp.int32), count - 1)
    if slot.keep is None or slot.other is None:
        return outcome
    fraction = scaled - outcome  # what is left of the draw is uniform again
    return outcome + jnp.where(fraction < _take(slot.keep, edge + outcome), 0, _take(slot.other, edge + outcome))


def _backward(
    form: sampling_form.SamplingForm, state: SampleState, visits: list[Visit], payoff: jax.Array, player: int
) -> Sums:
    """Carry payoffs back through the visits and add them up."""
    zero, line = jnp.zeros_like(form.uniform).reshape(-1), jnp.zeros_like(form.uniform[0])
    values, counted, weight, below, counts = zero, line, line, zero, zero
    baseline = None if state.baseline is None else state.baseline[player]
    expected = line if baseline is None else plans.total(state.policy * baseline)
    value = payoff
    for visit in reversed(visits):
        weight = _add(weight, visit.column, visit.reach)
        if baseline is None:
            corrected = value / visit.drawn
            following = visit.chosen * corrected
        else:
            below, counts = _add(below, visit.place, value), _add(counts, visit.place, jnp.ones_like(value))
            counted = _add(counted, visit.column, 1 / visit.before)
            corrected = (value - _take(baseline.reshape(-1), visit.place)) / visit.drawn
            following = _take(expected, visit.column) + visit.chosen * corrected
        values = _add(values, visit.place, corrected / visit.before)
        value = following
    shape = form.uniform.shape
    if baseline is None:
        return Sums(values.reshape(shape), counted, weight, None, None)
    return Sums(values.reshape(shape), counted, weight, below.reshape(shape), counts.reshape(shape))


def _updated(
    form: sampling_form.SamplingForm,
    state: SampleState,
    settings: SampleSettings,
    by: regret.Discounts,
    sums: Sums,
    player: int,
) -> SampleState:
    """Averages, baselines, then the regrets and the policy of the updated player."""
    is_own = form.player == player
    values, baseline = sums.values, state.baseline
    if baseline is not None and sums.below is not None and sums.counts is not None:
        old = baseline[player]
        values = values + old * sums.visits
        was_there = sums.counts > 0
        seen = sums.below / jnp.where(was_there, sums.counts, 1)
        baseline = baseline.at[player].set(jnp.where(was_there, old + settings.decay * (seen - old), old))
    # Whose average is added to: the other one's of two, else the updated player's own.
    weighed = (form.player == 1 - player) if form.players == 2 else is_own
    weight = jnp.where(weighed, state.weight * by.average + state.policy * sums.weight, state.weight)
    # Without the barrier every option's update would compute the mean of all options anew.
    mean: jax.Array = jax.lax.optimization_barrier(  # type: ignore[no-untyped-call]
        plans.total(state.policy * values)
    )
    new = values - mean
    noise = jnp.where((form.uniform > 0) & is_own, 0.0, jnp.inf)
    total, policy = regret.update(state.regret, new, form.uniform, noise, by)
    return state._replace(
        regret=jnp.where(is_own, total, state.regret),
        policy=jnp.where(is_own, policy, state.policy),
        weight=weight,
        baseline=baseline,
    )


def _take(table: jax.Array, index: jax.Array) -> jax.Array:
    return table.at[index].get(mode="promise_in_bounds")


def _add(table: jax.Array, index: jax.Array, numbers: jax.Array) -> jax.Array:
    return table.at[index].add(numbers, mode="promise_in_bounds")


def average(form: sampling_form.SamplingForm, state: SampleState) -> jax.Array:
    """Average policies [A, C]; uniform at sets that were never visited."""
    return regret.matching(state.weight, form.uniform)


Advance = Callable[..., SampleState]


class Runner(NamedTuple):
    """`advance(form, state, settings, key, count)` makes so many iterations; `place` puts its arguments there first."""

    advance: Advance
    place: Callable[[Any], Any]


@functools.lru_cache
def on_devices(devices: tuple[jax.Device, ...], batch: int) -> Runner:
    """Iterations with the batch divided among devices.

    The trajectories are the same on any number of devices; sums over them may differ by rounding.
    """
    used = next(n for n in range(min(len(devices), LANES), 0, -1) if LANES % n == 0)
    axis = "batch" if used > 1 else None

    def advance(
        form: sampling_form.SamplingForm, state: SampleState, settings: SampleSettings, key: jax.Array, count: Any
    ) -> SampleState:
        done: SampleState = jax.lax.fori_loop(
            0, count, lambda _, s: step(form, s, settings, key, batch=batch, axis=axis), state
        )
        return done

    if axis is None:
        return Runner(jax.jit(advance), functools.partial(jax.device_put, device=devices[0]))
    mesh = jax.sharding.Mesh(np.array(devices[:used]), (axis,))
    everywhere = jax.sharding.PartitionSpec()  # type: ignore[no-untyped-call]
    divided = jax.shard_map(advance, mesh=mesh, in_specs=everywhere, out_specs=everywhere, check_vma=False)
    return Runner(jax.jit(divided), functools.partial(jax.device_put, device=jax.NamedSharding(mesh, everywhere)))
