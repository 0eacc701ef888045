"""Outcome sampling: every sample is one trajectory (Lanctot et al. 2009).

A trajectory updates one player i. It explores: i plays (1 - e) policy + e uniform, everybody else and chance play as
they do. With xi the probabilities that i draws with, q their product before an information set, and v the value that
comes back from below (the payoff at the end),

    v(I, a) = b(I, a) + [a drawn] (v - b(I, a)) / xi(a),      Q(I, a) += v(I, a) / q,      v <- sum_a policy(a) v(I, a)

is an unbiased estimate of the counterfactual values Q that CFR computes exactly; from there on everything is as in CFR,
with all its regret minimisers. The policies stay as they are for the whole batch, so that sums over a batch need only
scalars: Q is one number for each visit, and regrets are made of the sums afterwards.

b are baselines (Schmid et al. 2018): any numbers leave the estimate unbiased, good ones make it precise. Here there is
one for every node and option, not only for every information set (Davis, Schmid & Bowling 2020), and it follows the
mean of what came back from below. The same correction, with xi the policy itself, is made where others choose, each in
turn where they choose at the same time, and with xi = 1 / outcomes where chance does.

In two-player games the average policy of the one who is not updated gets 1 / q at every set it visits: the probability
to come there is its own reach, times chance's, which never changes, times q. Otherwise i's own average gets its reach
over q and over the reach of all the others, times what that would be if they played uniformly: this never changes
either, and keeps the numbers from overflowing in long games.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from gdlx.envs.lowering import rng
from gdlx.envs.trees import sampling_form
from gdlx.solvers.mccfr import categorical, mccfr


class DecisionVisit(NamedTuple):
    """What a batch of trajectories did in one slot. Axes: B trajectories."""

    column: jax.Array  # [B] int32
    place: jax.Array  # [B] int32, of the option in a flat table
    is_own: jax.Array  # [B] bool, whether the updated player chose
    policy_prob: jax.Array  # [B] float, probability of the option under the policy
    sampling_prob: jax.Array  # [B] float, probability with which it was drawn
    sampling_reach: jax.Array  # [B] float, q before
    reach: jax.Array  # [B] float, weight of the average policy
    first: jax.Array  # [B] int32, baseline of the first option
    stride: jax.Array  # [B] int32, from there to the next one's
    baseline: jax.Array  # [B] int32, that of the option


class ChanceVisit(NamedTuple):
    """What chance did. Axes: B trajectories, M outcomes of the node with the most."""

    first: jax.Array  # [B] int32, baseline of the first outcome
    baseline: jax.Array  # [B] int32, that of the one that was drawn
    outcomes: jax.Array  # [B] int32
    numbers: jax.Array  # [M] int32


def sample(
    form: sampling_form.SamplingForm,
    state: mccfr.MccfrState,
    settings: mccfr.MccfrSettings,
    key: jax.Array,
    player: int,
    *,
    batch: int,
    axis: str | None = None,
) -> mccfr.BatchEstimates:
    """The means over a batch of trajectories that estimate a player's counterfactual values.

    A trajectory's random numbers depend on its number in the batch alone, whatever device it runs on.
    """
    size = batch if axis is None else batch // jax.lax.axis_size(axis)
    first = 0 if axis is None else jax.lax.axis_index(axis) * size
    _, words = rng.draw_rows(rng.make_streams(key, first, size), form.slots)
    draws = (words >> 8).astype(form.share.dtype) * 2.0**-24
    policy = form.join_players(state.policy)
    visits, payoff = _forward(form, policy, settings.exploration, draws, player)
    baseline = None if state.baseline is None else state.baseline[player]
    sums = _backward(form, policy, baseline, visits, payoff)
    if axis is not None:
        sums = jax.lax.psum(sums, axis)  # type: ignore[no-untyped-call]
    return _means(form, sums, player, batch)


def _forward(
    form: sampling_form.SamplingForm, policy: jax.Array, exploration: Any, draws: jax.Array, player: int
) -> tuple[list[DecisionVisit | ChanceVisit], jax.Array]:
    """Play all trajectories to their ends; the visits in order, and the payoffs."""
    size = draws.shape[1]
    columns = policy.shape[1]
    bounds = categorical.cdf_thresholds(policy)
    own = form.own(player)
    before = reach = jnp.ones(size, policy.dtype)
    last = jnp.zeros(size, jnp.int32)  # node of the level, or -1 - end
    visits: list[DecisionVisit | ChanceVisit] = []
    slot = start = 0
    for level in form.levels:
        node = jnp.where(last >= 0, last, len(level.first_edge) - 1)
        edge = categorical.take(level.first_edge, node)
        for choice in level.choices:
            column = categorical.take(choice.column, node)
            is_own = (column >= own.start) & (column < own.stop)
            share = categorical.take(form.share, column)
            action = _sample_actions(bounds, column, is_own, share, exploration, draws[slot])
            place = action * columns + column
            chosen = categorical.take(policy.reshape(-1), place)
            drawn = jnp.where(is_own, chosen + exploration * (share - chosen), chosen)
            stride = categorical.take(choice.stride, node)
            first = start + edge
            edge = edge + action * stride
            visits.append(
                DecisionVisit(column, place, is_own, chosen, drawn, before, reach, first, stride, start + edge)
            )
            start += len(level.child)
            before = jnp.where(is_own, before * drawn, before)
            reach = next_average_weight(form.players, is_own, reach, chosen, drawn, share)
            slot += 1
        if level.chance is not None:
            first, edge = start + edge, categorical.sample_chance_edge(level.chance, node, edge, draws[slot])
            if level.chance.alias_prob is None:
                count = categorical.take(level.chance.outcomes, node)
                visits.append(ChanceVisit(first, start + edge, count, level.chance.numbers))
            start += len(level.child)
            slot += 1
        last = jnp.where(last >= 0, categorical.take(level.child, edge), last)
    return visits, categorical.take(form.payoff[player], -1 - last)


def _sample_actions(
    bounds: jax.Array, column: jax.Array, is_own: jax.Array, share: jax.Array, exploration: Any, draw: jax.Array
) -> jax.Array:
    """The option of each draw: by its place in [0, e) where it explores, else what the rest of it falls on."""
    explores = is_own & (draw < exploration)
    even = draw / (jnp.maximum(exploration, 1e-30) * share)
    most = 1 / share - 0.5  # rounding must not lead beyond the last option
    rest = jnp.where(is_own, (draw - exploration) / jnp.maximum(1 - exploration, 1e-30), draw)
    return jnp.where(explores, jnp.minimum(even, most).astype(jnp.int32), categorical.invert_cdf(bounds, column, rest))


def next_average_weight(
    players: int, is_own: Any, reach: jax.Array, chosen: jax.Array, drawn: jax.Array, share: jax.Array
) -> jax.Array:
    """The weight of average policies after one more choice; `share` is 1 / options there."""
    if players == 2:
        return jnp.where(is_own, reach / drawn, reach)
    return reach * jnp.where(is_own, chosen / drawn, share / chosen)


class _Sums(NamedTuple):
    """Of a batch. `tally` has a row for every option's values, then one for weights; then a place for nothing."""

    tally: jax.Array  # [(A + 1) C + 1]
    value_sums: jax.Array | None  # [H] sums of what came back from below
    counts: jax.Array | None  # [H] and how often


def _backward(
    form: sampling_form.SamplingForm,
    policy: jax.Array,
    baseline: jax.Array | None,
    visits: list[DecisionVisit | ChanceVisit],
    payoff: jax.Array,
) -> _Sums:
    """Carry payoffs back through the visits and add them up."""
    options, columns = form.shape
    tally = jnp.zeros((options + 1) * columns + 1, payoff.dtype)
    value = payoff
    if baseline is None:
        for visit in reversed(visits):
            if isinstance(visit, DecisionVisit):
                corrected = value / visit.sampling_prob
                tally = _accumulate_visit(tally, form, visit, corrected / visit.sampling_reach)
                value = visit.policy_prob * corrected
        return _Sums(tally, None, None)
    below = counts = jnp.zeros_like(baseline)
    for visit in reversed(visits):
        below = categorical.scatter_add(below, visit.baseline, value)
        counts = categorical.scatter_add(counts, visit.baseline, jnp.ones_like(value))
        told = value - categorical.take(baseline, visit.baseline)
        if isinstance(visit, ChanceVisit):
            value = told + _mean_outcome(baseline, visit)
            continue
        corrected = told / visit.sampling_prob
        tally = _accumulate_visit(tally, form, visit, corrected / visit.sampling_reach)
        expected = jnp.zeros_like(value)
        for option in range(options):
            is_option = (option + 0.5) * categorical.take(form.share, visit.column) < 1
            at = jnp.where(is_option, visit.first + option * visit.stride, visit.first)
            place = option * columns + visit.column
            known = jnp.where(is_option, categorical.take(baseline, at), 0)
            expected = expected + known * categorical.take(policy.reshape(-1), place)
            nowhere = len(tally) - 1
            tally = categorical.scatter_add(
                tally, jnp.where(visit.is_own & is_option, place, nowhere), known / visit.sampling_reach
            )
        value = expected + visit.policy_prob * corrected
    return _Sums(tally, below, counts)


def _mean_outcome(baseline: jax.Array, luck: ChanceVisit) -> jax.Array:
    """What is expected before chance chooses; its outcomes are equally likely, and side by side."""
    is_outcome = luck.numbers[:, None] < luck.outcomes
    known = categorical.take(baseline, jnp.where(is_outcome, luck.first + luck.numbers[:, None], luck.first))
    return jnp.sum(jnp.where(is_outcome, known, 0), axis=0) / luck.outcomes


def _accumulate_visit(
    tally: jax.Array, form: sampling_form.SamplingForm, visit: DecisionVisit, value: jax.Array
) -> jax.Array:
    """Values of the updated player's options, and weights of whose average grows."""
    options, columns = form.shape
    aside = options * columns + visit.column
    if form.players == 2:  # either the one or the other: a single scatter does
        return categorical.scatter_add(
            tally, jnp.where(visit.is_own, visit.place, aside), jnp.where(visit.is_own, value, visit.reach)
        )
    return categorical.scatter_add(categorical.scatter_add(tally, visit.place, value), aside, visit.reach)


def _means(form: sampling_form.SamplingForm, sums: _Sums, player: int, batch: int) -> mccfr.BatchEstimates:
    options, columns = form.shape
    tally = sums.tally[:-1].reshape(options + 1, columns) / batch
    own, other = form.own(player), form.own(mccfr.averaged_player(form.players, player))
    return mccfr.BatchEstimates(tally[:options, own], tally[options, other], sums.value_sums, sums.counts)
