"""Outcome sampling on games that cannot be unrolled: trajectories on the propnet, information sets in a hash table.

The estimates are those of `outcome_sampling` (its docstring has the equations) and the updates those of `mccfr`, but
only for the information sets that a batch visited. Discounts of all other information sets are pending, and applied
when these are visited again (`table_state`).

q is relative to uniform play: it is multiplied by the number of actions at each decision of the updated player, which
divides the regrets by a number that is the same for all visits of an information set. Policies do not depend on it, and
numbers stay in range in long games. Only where a player takes many actions with probability near 1 can q still
overflow, as 9^40 does; regrets that deep are then 0, and nothing is learned there.

Baselines belong to states of the game and actions, whoever acts, and have a separate hash table (`state_baselines`).
They are constant while values are backed up: a trajectory may visit a state twice, and the baseline of the second visit
must not depend on the first one.

An information set is added when it is first visited (`grow="all"`); with `grow="first"` only the first unknown one of
each trajectory is added, and the trajectory continues with uniform policies (Lisy et al. 2015). Once the table is full,
its information sets continue to learn, while all others are played uniformly and learn nothing; `dropped_visits` counts
visits of these.

With several devices, each samples its shard of a batch. All have the same keys and regrets, from the visits of all
devices; average policies are partial sums per device, which are added when they are read.
"""

import dataclasses
import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp

from gdlx.envs.lowering import rng
from gdlx.envs.packed import packed_env
from gdlx.solvers.mccfr import hash_table, mccfr, outcome_sampling, state_baselines, table_rows, table_state


class _Visits(NamedTuple):
    """Decisions of every player in every step. Axes: T steps, P players, B trajectories of this device."""

    row: jax.Array  # [T, P, B] int32; -1 where there was no choice, or the information set is not in the table
    action: jax.Array  # [T, P, B] int32
    policy_prob: jax.Array  # [T, P, B] float32, probability under the policy
    sampling_prob: jax.Array  # [T, P, B] float32, probability with which it was sampled
    sampling_reach: jax.Array  # [T, P, B] float32, q
    baselines: "_BaselineVisits | None"


class _BaselineVisits(NamedTuple):
    """Baselines at visits, and the values that update them. Axes as above."""

    row: jax.Array  # [T, P, B] int32, of the state; -1 where there was no choice, or the state is not in the table
    default_baseline: jax.Array  # [T, P, B] float32, used for actions without a baseline
    expected: jax.Array  # [T, P, B] float32, mean of the baselines under the policy
    returned_value: jax.Array  # [T, P, B] float32, value backed up from the subgame


class TrajectoryStart(NamedTuple):
    """Initial states and weights of trajectories. Axes as above."""

    games: packed_env.PackedState
    sampling_reach: jax.Array  # [B] float32, q
    reach: jax.Array  # [B] float32, weight in the average policy


class TrajectoryState(NamedTuple):
    """Trajectories in progress. Axes as above."""

    step: jax.Array  # [] int32
    games: packed_env.PackedState
    streams: rng.Streams
    sampling_reach: jax.Array  # [B] float32, q
    reach: jax.Array  # [B] float32, weight in the average policy
    default_baseline: jax.Array  # [B] float32, baseline of the last action
    left_table: jax.Array  # [B] bool, has visited an information set that was not in the table
    dropped_visits: jax.Array  # [] int32, visits of information sets that did not fit into the table
    is_open: jax.Array  # [] bool, whether the table accepts more information sets
    table: hash_table.Table
    entries: table_state.Entries
    averages: table_state.AveragePolicies
    baselines: state_baselines.StateBaselines | None
    visits: _Visits


@dataclasses.dataclass(frozen=True)
class TrajectoryBatch:
    """A batch of trajectories that updates one player."""

    game: packed_env.PackedEnv
    settings: mccfr.MccfrSettings
    by: table_state.IterationDiscounts
    config: table_state.SamplerConfig
    axis: str | None
    player: int

    def update(self, state: table_state.TableState, key: jax.Array) -> table_state.TableState:
        """Samples a batch and returns the updated state."""
        played = self.forward(state, key)
        terminated = played.games.terminated
        value = jnp.where(terminated, played.games.payoff[self.player], 0)

        def back(count: jax.Array, carry: _BackupState) -> _BackupState:
            at = played.step - 1 - count
            for number in reversed(range(self.game.env.num_players)):
                carry = self.back_up(played.baselines, carry, at, number)
            return carry

        start = _BackupState(played.entries, played.visits, value, value)
        backed_up = jax.lax.fori_loop(0, played.step, back, start)
        return table_state.TableState(
            table=played.table,
            entries=backed_up.entries,
            averages=played.averages,
            t=state.t,
            dropped_visits=state.dropped_visits + played.dropped_visits,
            abnormal=self.count_abnormal_terminations(state.abnormal, played.games),
            baselines=self.update_baselines(played.baselines, backed_up.visits, played.step),
        )

    def count_abnormal_terminations(
        self, before: table_state.AbnormalTerminations, games: packed_env.PackedState
    ) -> table_state.AbnormalTerminations:
        """Adds the final states of a batch to the counts."""
        payoff, is_zero_sum = games.payoff, self.game.env.payoffs.zero_sum
        is_normal = games.terminated & ~games.unplayable
        unbalanced = is_normal & (payoff.sum(axis=0) != 0) if is_zero_sum else jnp.zeros_like(is_normal)
        flags_by_kind = (~games.terminated, games.goal_conflict, unbalanced, games.unplayable)
        counts = [table_rows.count_true(flags, self.axis) for flags in flags_by_kind]
        return table_state.AbnormalTerminations(
            *(jnp.minimum(old + new, table_state.COUNT_LIMIT) for old, new in zip(before, counts, strict=True))
        )

    def start_trajectories(self, state: table_state.TableState, key: jax.Array, size: int) -> TrajectoryStart:
        """Starts all trajectories at the initial state, with weight 1. Subclasses may start elsewhere."""
        one = jnp.ones(size, jnp.float32)
        return TrajectoryStart(self.game.start(size), one, one)

    def forward(self, state: table_state.TableState, key: jax.Array) -> TrajectoryState:
        """Plays all trajectories to terminal states, adding information sets and updating average policies."""
        size = self.config.batch if self.axis is None else self.config.batch // jax.lax.axis_size(self.axis)
        first = 0 if self.axis is None else jax.lax.axis_index(self.axis) * size
        initial = self.start_trajectories(state, jax.random.fold_in(key, 1), size)
        blank = functools.partial(jnp.zeros, (self.config.steps, self.game.env.num_players, size))
        start = TrajectoryState(
            step=jnp.zeros((), jnp.int32),
            games=initial.games,
            streams=rng.make_streams(key, first, size),
            sampling_reach=initial.sampling_reach,
            reach=initial.reach,
            default_baseline=jnp.zeros(size, jnp.float32),
            left_table=jnp.zeros(size, jnp.bool_),
            dropped_visits=jnp.zeros((), jnp.int32),
            is_open=hash_table.has_capacity(state.table),
            table=state.table,
            entries=state.entries,
            averages=state.averages,
            baselines=state.baselines,
            visits=_Visits(
                row=blank(jnp.int32),
                action=blank(jnp.int32),
                policy_prob=blank(jnp.float32),
                sampling_prob=blank(jnp.float32),
                sampling_reach=blank(jnp.float32),
                baselines=None
                if state.baselines is None
                else _BaselineVisits(blank(jnp.int32), *(blank(jnp.float32) for _ in range(3))),
            ),
        )

        def in_progress(now: TrajectoryState) -> jax.Array:
            return (now.step < self.config.steps) & (table_rows.count_true(~now.games.terminated, self.axis) > 0)

        final: TrajectoryState = jax.lax.while_loop(in_progress, self.play, start)
        return final

    def play(self, walked: TrajectoryState) -> TrajectoryState:
        """Takes one joint action in every trajectory."""
        players = self.game.env.num_players
        states = None if walked.baselines is None else self.game.state_keys(walked.games)
        streams, words = rng.draw_rows(walked.streams, players + 1)
        draws = table_rows.uniform_from_bits(words)
        visits_by_player = []
        for number in range(players):
            walked, visit = self.choose(walked, states, number, draws[number])
            visits_by_player.append(visit)
            states = None if states is None else state_baselines.keys_after_action(states, visit.action)
        joint: _Visits = jax.tree.map(lambda *parts: jnp.stack(parts), *visits_by_player)
        visits = jax.tree.map(
            lambda all_, new: jax.lax.dynamic_update_slice(all_, new[None], (walked.step, 0, 0)), walked.visits, joint
        )
        games = self.game.step(walked.games, joint.action, draws[players])
        return walked._replace(step=walked.step + 1, games=games, streams=streams, visits=visits)

    def choose(
        self, walked: TrajectoryState, states: state_baselines.Keys | None, number: int, draw: jax.Array
    ) -> tuple[TrajectoryState, _Visits]:
        """Samples the action of one player; `states` are keys after the actions of the players before it."""
        legal = walked.games.legal[number]
        has_choice = jnp.sum(legal, axis=0) > 1
        walked, row = self.find_rows(walked, number, has_choice)
        uniform = table_rows.uniform_policy(legal)
        policy = self.policy(walked.entries, row, legal)
        is_own = number == self.player
        sampling_policy = policy + self.settings.exploration * (uniform - policy) if is_own else policy
        action = table_rows.sample_actions(sampling_policy, draw)
        chosen, drawn = table_rows.select_actions(policy, action), table_rows.select_actions(sampling_policy, action)
        walked, baseline_visit = self.read_baselines(walked, states, number, has_choice, policy, action)
        visit = _Visits(row, action, chosen, drawn, walked.sampling_reach, baseline_visit)
        if number == mccfr.averaged_player(self.game.env.num_players, self.player):
            walked = self.update_average(walked, row, policy)
        share = 1 / jnp.maximum(jnp.sum(legal, axis=0), 1)
        relative = drawn / share
        if self.game.env.num_players == 2:
            reach = walked.reach / relative if is_own else walked.reach
        else:
            reach = outcome_sampling.next_average_weight(
                self.game.env.num_players, is_own, walked.reach, chosen, drawn, share
            )
        # Terminal games have no legal action, and nothing was sampled.
        reach = jnp.where(has_choice, reach, walked.reach)
        sampling_reach = (
            jnp.where(has_choice, walked.sampling_reach * relative, walked.sampling_reach)
            if is_own
            else walked.sampling_reach
        )
        return walked._replace(reach=reach, sampling_reach=sampling_reach), visit

    def read_baselines(
        self,
        walked: TrajectoryState,
        states: state_baselines.Keys | None,
        number: int,
        has_choice: jax.Array,
        policy: jax.Array,
        action: jax.Array,
    ) -> tuple[TrajectoryState, _BaselineVisits | None]:
        """Look up the baselines of a decision."""
        if walked.baselines is None or states is None:
            return walked, None
        values, row = state_baselines.find_or_insert(
            walked.baselines, state_baselines.keys_for_player(states, number), has_choice, self.axis
        )
        baselines = state_baselines.lookup(values, self.player, row, walked.default_baseline)
        expected = jnp.sum(policy * baselines, axis=0)
        visit = _BaselineVisits(row, walked.default_baseline, expected, jnp.zeros_like(expected))
        return walked._replace(
            default_baseline=jnp.where(
                has_choice, table_rows.select_actions(baselines, action), walked.default_baseline
            ),
            baselines=values,
        ), visit

    def policy(self, entries: table_state.Entries, row: jax.Array, legal: jax.Array) -> jax.Array:
        """Returns the current policies [A, B] at these rows."""
        policy = table_rows.proportional_policy(entries.regret if entries.score is None else entries.score, row, legal)
        epsilon = self.by.current.exploration
        return policy if epsilon is None else policy + epsilon * (table_rows.uniform_policy(legal) - policy)

    def find_rows(
        self, walked: TrajectoryState, number: int, has_choice: jax.Array
    ) -> tuple[TrajectoryState, jax.Array]:
        """Adds the information sets of all devices' lanes; returns the rows of this device, -1 where there is none."""
        to_insert = has_choice & walked.is_open
        if self.config.grow == "first":
            to_insert &= ~walked.left_table
        high, low = walked.games.keys
        high, low = (
            jnp.where(has_choice, word, 0) for word in table_rows.player_keys(high[number], low[number], number)
        )
        high, low, to_insert, bits = (
            table_rows.all_gather_lanes(part, self.axis)
            for part in (high, low, to_insert, table_rows.pack_legal_mask(walked.games.legal[number]))
        )
        table, rows, is_new = hash_table.insert(walked.table, (high, low), to_insert)
        entries = walked.entries
        dummy = entries.stamp.shape[0] - 1
        legal = entries.legal.at[jnp.where(is_new, rows, dummy)].set(bits.T, mode="promise_in_bounds")
        row = jnp.where(has_choice, table_rows.local_shard(rows, has_choice.shape[0], self.axis), -1)
        is_unknown = has_choice & (table_rows.local_shard(is_new, has_choice.shape[0], self.axis) | (row < 0))
        # With `grow="first"`, visits after a new information set are rollouts, and not dropped.
        is_dropped = (
            has_choice & (row < 0) & ~walked.left_table if self.config.grow == "first" else has_choice & (row < 0)
        )
        return walked._replace(
            table=table,
            entries=entries._replace(legal=legal),
            left_table=walked.left_table | is_unknown,
            dropped_visits=walked.dropped_visits + table_rows.count_true(is_dropped, self.axis),
        ), row

    def update_average(self, walked: TrajectoryState, row: jax.Array, policy: jax.Array) -> TrajectoryState:
        """Updates the average policies in these rows: applies pending discounts, then adds this batch."""
        averages, by = walked.averages, self.by
        representative, lane = table_rows.elect_representatives(walked.entries.representative, row)
        weight = table_rows.sum_to_representatives(lane, walked.reach) / self.config.batch
        last = table_rows.gather_one(averages.stamp, row)
        since = by.cumulative.average[by.n] - by.cumulative.average[last]
        after = table_rows.gather(averages.cumulative_policy, row) * jnp.exp(since) + policy * weight
        return walked._replace(
            entries=walked.entries._replace(representative=representative),
            averages=table_state.AveragePolicies(
                table_rows.scatter(averages.cumulative_policy, row, lane, after),
                table_rows.update_stamps(averages.stamp, row, last, by.n),
            ),
        )

    def back_up(
        self, values: state_baselines.StateBaselines | None, carry: "_BackupState", at: jax.Array, number: int
    ) -> "_BackupState":
        """Back up values through one decision, and update its regrets if the updated player made it."""
        entries, visits, value, target = carry
        visit: _Visits = jax.tree.map(lambda x: x[at, number], visits)
        was_choice = visit.sampling_prob > 0
        drawn = jnp.where(was_choice, visit.sampling_prob, 1)
        ratio = visit.policy_prob / drawn
        baselines, corrected, expected = None, value / drawn, jnp.zeros_like(value)
        if values is not None and visits.baselines is not None and visit.baselines is not None:
            baselines = state_baselines.lookup(
                values, self.player, visit.baselines.row, visit.baselines.default_baseline
            )
            baseline, expected = table_rows.select_actions(baselines, visit.action), visit.baselines.expected
            corrected = (value - baseline) / drawn
            returned_value = visits.baselines.returned_value.at[at, number].set(target)
            visits = visits._replace(baselines=visits.baselines._replace(returned_value=returned_value))
            target = jnp.where(was_choice, expected + jnp.minimum(ratio, 1) * (target - baseline), target)
        if number == self.player:
            entries = self.update_regrets(entries, baselines, visit, corrected)
        value = jnp.where(was_choice, expected + visit.policy_prob * corrected, value)
        return _BackupState(entries, visits, value, target)

    def update_regrets(
        self, entries: table_state.Entries, baselines: jax.Array | None, visit: _Visits, corrected: jax.Array
    ) -> table_state.Entries:
        """Updates the regrets of the visited information sets of the updated player; `baselines` are [A, B]."""
        row, action = (table_rows.all_gather_lanes(part, self.axis) for part in (visit.row, visit.action))
        representative, lane = table_rows.elect_representatives(entries.representative, row)
        entries = entries._replace(representative=representative)
        scale = 1 / (self.config.batch * visit.sampling_reach)
        estimate, mean = (
            table_rows.all_gather_lanes(part, self.axis)
            for part in (corrected * scale, visit.policy_prob * corrected * scale)
        )
        legal = table_rows.unpack_legal_mask(entries.legal, row, entries.regret.shape[1])
        values = table_rows.sum_by_action(lane, action, estimate, legal.shape[0])
        total = table_rows.sum_to_representatives(lane, mean)
        if baselines is not None and visit.baselines is not None:
            values = values + table_rows.sum_rows_to_representatives(
                lane, table_rows.all_gather_lanes(baselines * scale, self.axis)
            )
            total = total + table_rows.sum_to_representatives(
                lane, table_rows.all_gather_lanes(visit.baselines.expected * scale, self.axis)
            )
        new = jnp.where(legal, values - total, 0)
        old, cumulative, n = table_rows.gather(entries.regret, row), self.by.cumulative, self.by.n
        last = table_rows.gather_one(entries.stamp, row)
        # Pending discounts of earlier iterations come first; this iteration's follows its regret.
        positive, negative = (part[n - 1] - part[last] for part in (cumulative.positive, cumulative.negative))
        old = old * jnp.exp(jnp.where(old > 0, positive, negative))
        after = old + new
        after = after * jnp.where(after > 0, self.by.current.positive, self.by.current.negative)
        score = entries.score
        if score is not None and self.by.current.optimism is not None:
            optimistic = jnp.where(
                (new != 0).any(axis=0), after + self.by.current.optimism * new, table_rows.gather(score, row)
            )
            score = table_rows.scatter(score, row, lane, optimistic)
        return entries._replace(
            regret=table_rows.scatter(entries.regret, row, lane, after),
            score=score,
            stamp=table_rows.update_stamps(entries.stamp, row, last, n),
        )

    def update_baselines(
        self, values: state_baselines.StateBaselines | None, visits: _Visits, steps: jax.Array
    ) -> state_baselines.StateBaselines | None:
        """Updates the baselines with all values of a batch."""
        if values is None or visits.baselines is None:
            return None

        def one(at: jax.Array, values: state_baselines.StateBaselines) -> state_baselines.StateBaselines:
            # All players of a step at once: their rows differ, and one by one each would copy table-sized scratch.
            row, action, value = (
                part[at].reshape(-1) for part in (baseline_visits.row, visits.action, baseline_visits.returned_value)
            )
            return state_baselines.update(values, self.player, (row, action, value), self.settings.decay, self.axis)

        baseline_visits = visits.baselines
        updated: state_baselines.StateBaselines = jax.lax.fori_loop(0, steps, one, values)
        return updated


class _BackupState(NamedTuple):
    """Values being backed up. Axes: B trajectories."""

    entries: table_state.Entries
    visits: _Visits
    value: jax.Array  # [B] float32, unbiased
    hint: jax.Array  # [B] float32, with clipped ratios: the target of the baselines
