"""Outcome sampling: every sample is one trajectory (Lanctot et al. 2009).

A trajectory updates one player i. That player explores: it samples from (1 - e) policy + e uniform, while the other
players and chance sample from their own distributions. With xi the probabilities that i samples with, q their product
before an information set (its sampling reach), and v the value backed up from the subgame (the payoff at a terminal),

    v(I, a) = b(I, a) + [a drawn] (v - b(I, a)) / xi(a),      Q(I, a) += v(I, a) / q,      v <- sum_a policy(a) v(I, a)

is an unbiased estimate of the counterfactual values Q that CFR computes exactly; the rest is CFR, with any of its
regret minimisers. The policies are constant during a batch, so sums over a batch need only scalars: Q is one number per
visit, and regrets are computed from the sums afterwards.

b are baselines (Schmid et al. 2018): the estimate is unbiased for any b, and good baselines reduce its variance. Here
there is one for every node and action, not only for every information set (Davis, Schmid & Bowling 2020); it tracks
the mean of the values backed up through that action. The same correction applies where other players act, with xi the
policy itself (one player after the other where they act simultaneously), and at chance nodes with xi = 1 / outcomes.

In two-player games the average policy of the other player is incremented by 1 / q at every information set it visits:
the probability to get there is its own reach, times that of chance, which is constant, times q. Otherwise i's own
average is incremented by its reach over q and over the reach of all others, times what the latter would be under
uniform play: this is constant too, and keeps the numbers from overflowing in long games.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from gdlx.envs.lowering import rng
from gdlx.envs.trees import sampling_form
from gdlx.solvers.mccfr import categorical, mccfr


class DecisionVisit(NamedTuple):
    """Actions of a batch of trajectories in one slot. Axes: B trajectories."""

    column: jax.Array  # [B] int32
    place: jax.Array  # [B] int32, index of the action in a flat table
    is_own: jax.Array  # [B] bool, whether the updated player acts
    policy_prob: jax.Array  # [B] float, probability of the action under the policy
    sampling_prob: jax.Array  # [B] float, probability with which it was sampled
    sampling_reach: jax.Array  # [B] float, q before the action
    reach: jax.Array  # [B] float, weight of this visit in the average policy
    first: jax.Array  # [B] int32, index of the first action's baseline
    stride: jax.Array  # [B] int32, from one action's baseline to the next
    baseline: jax.Array  # [B] int32, index of the sampled action's baseline


class ChanceVisit(NamedTuple):
    """Outcomes of chance. Axes: B trajectories, M largest number of outcomes of a node."""

    first: jax.Array  # [B] int32, index of the first outcome's baseline
    baseline: jax.Array  # [B] int32, index of the sampled outcome's baseline
    outcomes: jax.Array  # [B] int32, number of outcomes
    numbers: jax.Array  # [M] int32, 0 .. M - 1


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
    """Estimates a player's counterfactual values by the means over a batch of trajectories.

    The random numbers of a trajectory depend only on its index in the batch, not on the device that runs it.
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
    """Plays all trajectories to terminal nodes; returns their visits in order, and the payoffs."""
    size = draws.shape[1]
    columns = policy.shape[1]
    bounds = categorical.cdf_thresholds(policy)
    own_columns = form.player_columns(player)
    sampling_reach = reach = jnp.ones(size, policy.dtype)
    last = jnp.zeros(size, jnp.int32)  # node of the level, or -1 - terminal
    visits: list[DecisionVisit | ChanceVisit] = []
    slot = start = 0
    for level in form.levels:
        node = jnp.where(last >= 0, last, len(level.first_edge) - 1)
        edge = categorical.take(level.first_edge, node)
        for choice in level.choices:
            column = categorical.take(choice.column, node)
            is_own = (column >= own_columns.start) & (column < own_columns.stop)
            share = categorical.take(form.share, column)
            action = _sample_actions(bounds, column, is_own, share, exploration, draws[slot])
            place = action * columns + column
            chosen = categorical.take(policy.reshape(-1), place)
            drawn = jnp.where(is_own, chosen + exploration * (share - chosen), chosen)
            stride = categorical.take(choice.stride, node)
            first = start + edge
            edge = edge + action * stride
            visits.append(
                DecisionVisit(column, place, is_own, chosen, drawn, sampling_reach, reach, first, stride, start + edge)
            )
            start += len(level.child)
            sampling_reach = jnp.where(is_own, sampling_reach * drawn, sampling_reach)
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
    """Maps each draw to an action: draws in [0, e) explore uniformly, the rest are rescaled and follow the policy."""
    explores = is_own & (draw < exploration)
    uniform_action = draw / (jnp.maximum(exploration, 1e-30) * share)
    last_action = 1 / share - 0.5  # rounding must not exceed the last action
    policy_draw = jnp.where(is_own, (draw - exploration) / jnp.maximum(1 - exploration, 1e-30), draw)
    return jnp.where(
        explores,
        jnp.minimum(uniform_action, last_action).astype(jnp.int32),
        categorical.invert_cdf(bounds, column, policy_draw),
    )


def next_average_weight(
    players: int, is_own: Any, reach: jax.Array, chosen: jax.Array, drawn: jax.Array, share: jax.Array
) -> jax.Array:
    """Returns the weight in the average policy after one more action; `share` is 1 / number of actions."""
    if players == 2:
        return jnp.where(is_own, reach / drawn, reach)
    return reach * jnp.where(is_own, chosen / drawn, share / chosen)


class _Sums(NamedTuple):
    """Sums over a batch. `tally` has a row of values for every action, a row of average weights, and a dummy entry."""

    tally: jax.Array  # [(A + 1) C + 1]
    value_sums: jax.Array | None  # [H] sums of the values backed up through each action
    counts: jax.Array | None  # [H] number of those values


def _backward(
    form: sampling_form.SamplingForm,
    policy: jax.Array,
    baseline: jax.Array | None,
    visits: list[DecisionVisit | ChanceVisit],
    payoff: jax.Array,
) -> _Sums:
    """Back up the payoffs through the visits, and sum the estimates."""
    num_actions, columns = form.shape
    tally = jnp.zeros((num_actions + 1) * columns + 1, payoff.dtype)
    value = payoff
    if baseline is None:
        for visit in reversed(visits):
            if isinstance(visit, DecisionVisit):
                corrected = value / visit.sampling_prob
                tally = _accumulate_visit(tally, form, visit, corrected / visit.sampling_reach)
                value = visit.policy_prob * corrected
        return _Sums(tally, None, None)
    value_sums = counts = jnp.zeros_like(baseline)
    for visit in reversed(visits):
        value_sums = categorical.scatter_add(value_sums, visit.baseline, value)
        counts = categorical.scatter_add(counts, visit.baseline, jnp.ones_like(value))
        residual = value - categorical.take(baseline, visit.baseline)
        if isinstance(visit, ChanceVisit):
            value = residual + _mean_outcome(baseline, visit)
            continue
        corrected = residual / visit.sampling_prob
        tally = _accumulate_visit(tally, form, visit, corrected / visit.sampling_reach)
        expected = jnp.zeros_like(value)
        for action in range(num_actions):
            is_action = (action + 0.5) * categorical.take(form.share, visit.column) < 1
            index = jnp.where(is_action, visit.first + action * visit.stride, visit.first)
            place = action * columns + visit.column
            action_baseline = jnp.where(is_action, categorical.take(baseline, index), 0)
            expected = expected + action_baseline * categorical.take(policy.reshape(-1), place)
            dummy = len(tally) - 1
            tally = categorical.scatter_add(
                tally, jnp.where(visit.is_own & is_action, place, dummy), action_baseline / visit.sampling_reach
            )
        value = expected + visit.policy_prob * corrected
    return _Sums(tally, value_sums, counts)


def _mean_outcome(baseline: jax.Array, visit: ChanceVisit) -> jax.Array:
    """Returns the mean baseline of chance's outcomes, which are equally likely and contiguous."""
    is_outcome = visit.numbers[:, None] < visit.outcomes
    values = categorical.take(baseline, jnp.where(is_outcome, visit.first + visit.numbers[:, None], visit.first))
    return jnp.sum(jnp.where(is_outcome, values, 0), axis=0) / visit.outcomes


def _accumulate_visit(
    tally: jax.Array, form: sampling_form.SamplingForm, visit: DecisionVisit, value: jax.Array
) -> jax.Array:
    """Adds the values of the updated player's actions, and the weights of the average policy."""
    num_actions, columns = form.shape
    weight_place = num_actions * columns + visit.column
    if form.players == 2:  # every visit adds one of the two, so one scatter is enough
        return categorical.scatter_add(
            tally, jnp.where(visit.is_own, visit.place, weight_place), jnp.where(visit.is_own, value, visit.reach)
        )
    return categorical.scatter_add(categorical.scatter_add(tally, visit.place, value), weight_place, visit.reach)


def _means(form: sampling_form.SamplingForm, sums: _Sums, player: int, batch: int) -> mccfr.BatchEstimates:
    num_actions, columns = form.shape
    tally = sums.tally[:-1].reshape(num_actions + 1, columns) / batch
    own_columns = form.player_columns(player)
    averaged_columns = form.player_columns(mccfr.averaged_player(form.players, player))
    return mccfr.BatchEstimates(
        tally[:num_actions, own_columns], tally[num_actions, averaged_columns], sums.value_sums, sums.counts
    )
