"""Outcome sampling on games that cannot be unrolled: trajectories on the network, information sets in a hash table.

The same estimates as `outcome` makes (its docstring has the equations), with the same updates as `sampled`, but only of
the sets that a batch visited. What an iteration does to all other sets is made up for when they are visited again
(`table_state`).

q counts relative to uniform play: it is multiplied by the number of options at each choice of the updated player, and
so are its regrets divided by a number that is the same for all visits of a set. Policies do not depend on it, and
numbers stay in range in long games. Only where a player is nearly sure of many of its moves q may still overflow, as
9^40 does; regrets so far on are then 0, and nothing is learnt there.

Baselines are of states of the game and options, everybody's choices alike, in a hash table of their own
(`state_values`). While a batch is carried back they stay as they are: a state may be visited twice in a trajectory, and
its baseline must not know yet what comes.

A set is added when it is first visited (`grow="all"`), or only the first unknown one of each trajectory, which goes on
below it with uniform policies (`grow="first"`, Lisy et al. 2015). Once a table is full, all that it has goes on
learning, while sets that are not in it are played uniformly and learn nothing; `lost` counts visits of these.

With several devices each plays its part of a batch. All have the same keys and regrets, made of everybody's visits;
average policies are sums of what each device saw, and are added up when they are read.
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
    """Of every player in every step. Axes: T steps, P players, B trajectories of this device."""

    row: jax.Array  # [T, P, B] int32; -1 where there was no choice, or no place for the set
    action: jax.Array  # [T, P, B] int32
    policy_prob: jax.Array  # [T, P, B] float32, probability under the policy
    sampling_prob: jax.Array  # [T, P, B] float32, probability with which it was drawn
    sampling_reach: jax.Array  # [T, P, B] float32, q
    baselines: "_BaselineVisits | None"


class _BaselineVisits(NamedTuple):
    """What baselines said at visits, and are told. Axes as above."""

    row: jax.Array  # [T, P, B] int32, of the state; -1 where there was no choice, or no place for it
    default_baseline: jax.Array  # [T, P, B] float32, the baseline of options of which nothing is known
    expected: jax.Array  # [T, P, B] float32, that of the policy
    returned_value: jax.Array  # [T, P, B] float32, what came back from below


class TrajectoryStart(NamedTuple):
    """Starts of trajectories. Axes as above."""

    games: packed_env.PackedState
    sampling_reach: jax.Array  # [B] float32, q
    reach: jax.Array  # [B] float32, weight of average policies


class TrajectoryState(NamedTuple):
    """Trajectories under way. Axes as above."""

    step: jax.Array  # [] int32
    games: packed_env.PackedState
    streams: rng.Streams
    sampling_reach: jax.Array  # [B] float32, q
    reach: jax.Array  # [B] float32, weight of average policies
    default_baseline: jax.Array  # [B] float32, what baselines say of the last choice
    left_table: jax.Array  # [B] bool, has come to a set that was unknown
    dropped_visits: jax.Array  # [] int32, visits without a place
    is_open: jax.Array  # [] bool, whether the table takes more sets
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
        walked = self.forward(state, key)
        ended = walked.games.terminated
        value = jnp.where(ended, walked.games.payoff[self.player], 0)

        def back(count: jax.Array, carry: _BackupState) -> _BackupState:
            at = walked.step - 1 - count
            for number in reversed(range(self.game.env.num_players)):
                carry = self.back_up(walked.baselines, carry, at, number)
            return carry

        start = _BackupState(walked.entries, walked.visits, value, value)
        returned = jax.lax.fori_loop(0, walked.step, back, start)
        return table_state.TableState(
            table=walked.table,
            entries=returned.entries,
            averages=walked.averages,
            t=state.t,
            dropped_visits=state.dropped_visits + walked.dropped_visits,
            abnormal=self.count_abnormal_terminations(state.abnormal, walked.games),
            baselines=self.update_baselines(walked.baselines, returned.visits, walked.step),
        )

    def count_abnormal_terminations(
        self, before: table_state.AbnormalTerminations, games: packed_env.PackedState
    ) -> table_state.AbnormalTerminations:
        payoff, is_zero_sum = games.payoff, self.game.env.payoffs.zero_sum
        ends = games.terminated & ~games.unplayable
        unbalanced = ends & (payoff.sum(axis=0) != 0) if is_zero_sum else jnp.zeros_like(ends)
        now = (~games.terminated, games.goal_conflict, unbalanced, games.unplayable)
        counts = [table_rows.count_true(flags, self.axis) for flags in now]
        return table_state.AbnormalTerminations(
            *(jnp.minimum(old + new, table_state.COUNT_LIMIT) for old, new in zip(before, counts, strict=True))
        )

    def start_trajectories(self, state: table_state.TableState, key: jax.Array, size: int) -> TrajectoryStart:
        """Where trajectories start, and with which weights: at the beginning of the game."""
        one = jnp.ones(size, jnp.float32)
        return TrajectoryStart(self.game.start(size), one, one)

    def forward(self, state: table_state.TableState, key: jax.Array) -> TrajectoryState:
        """Play all trajectories to their ends; sets are added and average policies grow on the way."""
        size = self.config.batch if self.axis is None else self.config.batch // jax.lax.axis_size(self.axis)
        first = 0 if self.axis is None else jax.lax.axis_index(self.axis) * size
        begun = self.start_trajectories(state, jax.random.fold_in(key, 1), size)
        blank = functools.partial(jnp.zeros, (self.config.steps, self.game.env.num_players, size))
        start = TrajectoryState(
            step=jnp.zeros((), jnp.int32),
            games=begun.games,
            streams=rng.make_streams(key, first, size),
            sampling_reach=begun.sampling_reach,
            reach=begun.reach,
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

        def goes_on(walked: TrajectoryState) -> jax.Array:
            return (walked.step < self.config.steps) & (table_rows.count_true(~walked.games.terminated, self.axis) > 0)

        found: TrajectoryState = jax.lax.while_loop(goes_on, self.play, start)
        return found

    def play(self, walked: TrajectoryState) -> TrajectoryState:
        """One joint move of every trajectory."""
        players = self.game.env.num_players
        states = None if walked.baselines is None else self.game.state_keys(walked.games)
        streams, words = rng.draw_rows(walked.streams, players + 1)
        draws = table_rows.uniform_from_bits(words)
        made = []
        for number in range(players):
            walked, visit = self.choose(walked, states, number, draws[number])
            made.append(visit)
            states = None if states is None else state_baselines.keys_after_action(states, visit.action)
        joint: _Visits = jax.tree.map(lambda *parts: jnp.stack(parts), *made)
        visits = jax.tree.map(
            lambda all_, new: jax.lax.dynamic_update_slice(all_, new[None], (walked.step, 0, 0)), walked.visits, joint
        )
        games = self.game.step(walked.games, joint.action, draws[players])
        return walked._replace(step=walked.step + 1, games=games, streams=streams, visits=visits)

    def choose(
        self, walked: TrajectoryState, states: state_baselines.Keys | None, number: int, draw: jax.Array
    ) -> tuple[TrajectoryState, _Visits]:
        """What one player does in this step; the states are after the moves of those before it."""
        legal = walked.games.legal[number]
        has_choice = jnp.sum(legal, axis=0) > 1
        walked, row = self.find_rows(walked, number, has_choice)
        even = table_rows.uniform_policy(legal)
        policy = self.policy(walked.entries, row, legal)
        is_own = number == self.player
        drawn_from = policy + self.settings.exploration * (even - policy) if is_own else policy
        action = table_rows.sample_actions(drawn_from, draw)
        chosen, drawn = table_rows.select_actions(policy, action), table_rows.select_actions(drawn_from, action)
        walked, said = self.read_baselines(walked, states, number, has_choice, policy, action)
        visit = _Visits(row, action, chosen, drawn, walked.sampling_reach, said)
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
        # Where a game has ended there is no option, and nothing was drawn.
        reach = jnp.where(has_choice, reach, walked.reach)
        before = (
            jnp.where(has_choice, walked.sampling_reach * relative, walked.sampling_reach)
            if is_own
            else walked.sampling_reach
        )
        return walked._replace(reach=reach, sampling_reach=before), visit

    def read_baselines(
        self,
        walked: TrajectoryState,
        states: state_baselines.Keys | None,
        number: int,
        has_choice: jax.Array,
        policy: jax.Array,
        action: jax.Array,
    ) -> tuple[TrajectoryState, _BaselineVisits | None]:
        """What baselines say of a choice."""
        if walked.baselines is None or states is None:
            return walked, None
        values, row = state_baselines.find_or_insert(
            walked.baselines, state_baselines.keys_for_player(states, number), has_choice, self.axis
        )
        told = state_baselines.lookup(values, self.player, row, walked.default_baseline)
        expected = jnp.sum(policy * told, axis=0)
        said = _BaselineVisits(row, walked.default_baseline, expected, jnp.zeros_like(expected))
        return walked._replace(
            default_baseline=jnp.where(has_choice, table_rows.select_actions(told, action), walked.default_baseline),
            baselines=values,
        ), said

    def policy(self, entries: table_state.Entries, row: jax.Array, legal: jax.Array) -> jax.Array:
        """[A, B]"""
        found = table_rows.proportional_policy(entries.regret if entries.score is None else entries.score, row, legal)
        part = self.by.current.exploration
        return found if part is None else found + part * (table_rows.uniform_policy(legal) - found)

    def find_rows(
        self, walked: TrajectoryState, number: int, has_choice: jax.Array
    ) -> tuple[TrajectoryState, jax.Array]:
        """Rows of this device's lanes, once the sets of all devices' lanes have been added; -1 where there is none."""
        wanted = has_choice & walked.is_open
        if self.config.grow == "first":
            wanted &= ~walked.left_table
        high, low = walked.games.keys
        high, low = (
            jnp.where(has_choice, word, 0) for word in table_rows.player_keys(high[number], low[number], number)
        )
        high, low, wanted, bits = (
            table_rows.all_gather_lanes(part, self.axis)
            for part in (high, low, wanted, table_rows.pack_legal_mask(walked.games.legal[number]))
        )
        table, found, fresh = hash_table.insert(walked.table, (high, low), wanted)
        entries = walked.entries
        none = entries.stamp.shape[0] - 1
        told = entries.legal.at[jnp.where(fresh, found, none)].set(bits.T, mode="promise_in_bounds")
        row = jnp.where(has_choice, table_rows.local_shard(found, has_choice.shape[0], self.axis), -1)
        is_unknown = has_choice & (table_rows.local_shard(fresh, has_choice.shape[0], self.axis) | (row < 0))
        # What only rolls out below a new set is not lost.
        without = has_choice & (row < 0) & ~walked.left_table if self.config.grow == "first" else has_choice & (row < 0)
        return walked._replace(
            table=table,
            entries=entries._replace(legal=told),
            left_table=walked.left_table | is_unknown,
            dropped_visits=walked.dropped_visits + table_rows.count_true(without, self.axis),
        ), row

    def update_average(self, walked: TrajectoryState, row: jax.Array, policy: jax.Array) -> TrajectoryState:
        """Average policies of the sets in these rows: all discounts since the last visit, and this batch's part."""
        averages, by = walked.averages, self.by
        speaker, lane = table_rows.elect_representatives(walked.entries.representative, row)
        told = table_rows.sum_to_representatives(lane, walked.reach) / self.config.batch
        last = table_rows.gather_one(averages.stamp, row)
        since = by.cumulative.average[by.n] - by.cumulative.average[last]
        after = table_rows.gather(averages.cumulative_policy, row) * jnp.exp(since) + policy * told
        return walked._replace(
            entries=walked.entries._replace(representative=speaker),
            averages=table_state.AveragePolicies(
                table_rows.scatter(averages.cumulative_policy, row, lane, after),
                table_rows.update_stamps(averages.stamp, row, last, by.n),
            ),
        )

    def back_up(
        self, values: state_baselines.StateBaselines | None, carry: "_BackupState", at: jax.Array, number: int
    ) -> "_BackupState":
        """Values before a choice, and the entries with what was learnt there."""
        entries, visits, value, hint = carry
        visit: _Visits = jax.tree.map(lambda x: x[at, number], visits)
        was_choice = visit.sampling_prob > 0
        drawn = jnp.where(was_choice, visit.sampling_prob, 1)
        ratio = visit.policy_prob / drawn
        told, corrected, expected = None, value / drawn, jnp.zeros_like(value)
        if values is not None and visits.baselines is not None and visit.baselines is not None:
            told = state_baselines.lookup(values, self.player, visit.baselines.row, visit.baselines.default_baseline)
            baseline, expected = table_rows.select_actions(told, visit.action), visit.baselines.expected
            corrected = (value - baseline) / drawn
            came = visits.baselines.returned_value.at[at, number].set(hint)
            visits = visits._replace(baselines=visits.baselines._replace(returned_value=came))
            hint = jnp.where(was_choice, expected + jnp.minimum(ratio, 1) * (hint - baseline), hint)
        if number == self.player:
            entries = self.update_regrets(entries, told, visit, corrected)
        value = jnp.where(was_choice, expected + visit.policy_prob * corrected, value)
        return _BackupState(entries, visits, value, hint)

    def update_regrets(
        self, entries: table_state.Entries, told: jax.Array | None, visit: _Visits, corrected: jax.Array
    ) -> table_state.Entries:
        """Regrets of the updated player's sets that were visited; `told` [A, B] are baselines."""
        row, action = (table_rows.all_gather_lanes(part, self.axis) for part in (visit.row, visit.action))
        speaker, lane = table_rows.elect_representatives(entries.representative, row)
        entries = entries._replace(representative=speaker)
        scale = 1 / (self.config.batch * visit.sampling_reach)
        gained, mean = (
            table_rows.all_gather_lanes(part, self.axis)
            for part in (corrected * scale, visit.policy_prob * corrected * scale)
        )
        legal = table_rows.unpack_legal_mask(entries.legal, row, entries.regret.shape[1])
        values = table_rows.sum_by_action(lane, action, gained, legal.shape[0])
        total = table_rows.sum_to_representatives(lane, mean)
        if told is not None and visit.baselines is not None:
            values = values + table_rows.sum_rows_to_representatives(
                lane, table_rows.all_gather_lanes(told * scale, self.axis)
            )
            total = total + table_rows.sum_to_representatives(
                lane, table_rows.all_gather_lanes(visit.baselines.expected * scale, self.axis)
            )
        new = jnp.where(legal, values - total, 0)
        old, made, n = table_rows.gather(entries.regret, row), self.by.cumulative, self.by.n
        last = table_rows.gather_one(entries.stamp, row)
        # Iterations up to the last one are made up for; this one's discount comes after its regret.
        positive, negative = (part[n - 1] - part[last] for part in (made.positive, made.negative))
        old = old * jnp.exp(jnp.where(old > 0, positive, negative))
        after = old + new
        after = after * jnp.where(after > 0, self.by.current.positive, self.by.current.negative)
        score = entries.score
        if score is not None and self.by.current.optimism is not None:
            told = jnp.where(
                (new != 0).any(axis=0), after + self.by.current.optimism * new, table_rows.gather(score, row)
            )
            score = table_rows.scatter(score, row, lane, told)
        return entries._replace(
            regret=table_rows.scatter(entries.regret, row, lane, after),
            score=score,
            stamp=table_rows.update_stamps(entries.stamp, row, last, n),
        )

    def update_baselines(
        self, values: state_baselines.StateBaselines | None, visits: _Visits, steps: jax.Array
    ) -> state_baselines.StateBaselines | None:
        """Baselines, once all of a batch came back."""
        if values is None or visits.baselines is None:
            return None

        def one(at: jax.Array, values: state_baselines.StateBaselines) -> state_baselines.StateBaselines:
            # All choosers of a step at once: their rows differ, and each alone would copy scratch of a table's size.
            row, action, came = (part[at].reshape(-1) for part in (told.row, visits.action, told.returned_value))
            return state_baselines.update(values, self.player, (row, action, came), self.settings.decay, self.axis)

        told = visits.baselines
        found: state_baselines.StateBaselines = jax.lax.fori_loop(0, steps, one, values)
        return found


class _BackupState(NamedTuple):
    """Trajectories on the way back. Axes: B trajectories."""

    entries: table_state.Entries
    visits: _Visits
    value: jax.Array  # [B] float32, unbiased
    hint: jax.Array  # [B] float32, what baselines follow
