"""Online outcome sampling: search aimed at where a match is (Lisy, Lanctot & Bowling 2015).

The hash table, its regrets and averages go on growing through a match, but a part of every batch is aimed at a target:
the histories that the searching player cannot tell from the true one (its information set), or those that have the
same public knowledge (the public subgame). The other trajectories play the whole game, so that what the others would do
elsewhere is learnt too; without them the others would come to know what only the searching player knows.

How a trajectory is aimed. All start at the beginning of the game in lockstep, and are led there step by step: to an
information set the searching player makes the moves that it made in the match, and everybody else draws as ever. Games
in which the target can no longer be reached are then replaced by copies of such in which it can. With s of n games left
after step k, what all of them count is multiplied by s / n. This is a particle filter, and its weighted games are an
unbiased sample of

    sum over histories h in the target of  probability(h) f(h)      for any f

so nothing about the probability of the target, which nobody knows, is needed. Lisy et al. instead mix both kinds of
trajectories with one probability for each history, which asks for the probability that an aimed one takes its course.

Which trajectory teaches what. Below the target aimed trajectories count alone; those that play the whole game and come
by the target teach what lies before it and beside it. So every history is counted once, and sampled regrets have the
same means as without aiming. A player that made a move in spite of its policy, as it was led, counts by how likely the
move is in its policy; where everybody has a part `exploration` of every policy that is uniform, that is never 0.
"""

import dataclasses
import functools
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from gdlx.envs.lowering import rng
from gdlx.envs.packed import packed_env
from gdlx.envs.views import history
from gdlx.solvers.mccfr import hash_table, mccfr, table_loop, table_rows, table_sampler, table_state
from gdlx.solvers.search import particle_filter

Targeting = Literal["information set", "public subgame"]
_MOST = 1e25  # of q: beyond it numbers that are divided by it would be no numbers any more


class Target(NamedTuple):
    """Where a match is. All traced: one program serves every player and every step. Axes: T room for steps."""

    player: jax.Array  # [] int32, who searches
    moves: jax.Array  # [T] int32, what the searching player did
    high: jax.Array  # [T + 1] uint32, first words of its keys after 0, 1, .. steps, or of the public ones
    low: jax.Array  # [T + 1] uint32, second words
    length: jax.Array  # [] int32, steps made


class SearchConfig(NamedTuple):
    """What is static. `aimed` of the config's batch are aimed, both in whole words of 32."""

    config: table_state.SamplerConfig
    num_targeted: int
    targeting: Targeting = "information set"


def make_target(
    game: packed_env.PackedEnv, view: history.ActionObservationHistory, steps: int, aim: Targeting
) -> Target:
    """Where the match is that a player sees, with room for so many steps."""
    keys = view.keys
    if aim == "public subgame":
        assert game.public is not None
        keys = view.public_state_keys(game.public)
    room = np.zeros((steps + 1, 2), np.uint32)
    room[: len(keys)] = keys
    moves = np.zeros(steps, np.int32)
    moves[: view.step] = [event.move for event in view.events]
    return Target(
        jnp.int32(view.player),
        jnp.asarray(moves),
        jnp.asarray(room[:, 0]),
        jnp.asarray(room[:, 1]),
        jnp.int32(view.step),
    )


@functools.partial(jax.jit, static_argnames=("game", "search"), donate_argnames="state")
def advance(
    game: packed_env.PackedEnv,
    state: table_state.TableState,
    settings: mccfr.MccfrSettings,
    where: Target,
    key: jax.Array,
    count: Any,
    *,
    search: SearchConfig,
) -> table_state.TableState:
    """So many iterations, each with a batch for every player in turn. The state is used up."""

    def one(now: table_state.TableState, made: table_state.CumulativeDiscounts) -> table_state.TableState:
        now, by = table_loop.next_iteration(now, settings.minimiser, made)
        own = jax.random.fold_in(key, now.t)
        for player in range(game.env.num_players):
            batch = TargetedBatch(game, settings, by, search.config, None, player, search, where)
            now = batch.update(now, jax.random.fold_in(own, player))
        return now

    return table_loop.iterate(state, settings.minimiser, count, one)


class _TargetedGames(NamedTuple):
    """Games on the way to the target. Axes: B games."""

    step: jax.Array  # [] int32
    games: packed_env.PackedState
    streams: rng.Streams
    sampling_reach: jax.Array  # [B] float32, q
    reach: jax.Array  # [B] float32, weight of average policies
    part: jax.Array  # [] float32, estimate of the probability to come this far


@dataclasses.dataclass(frozen=True)
class TargetedBatch(table_sampler.TrajectoryBatch):
    """A batch that updates one player, some of its trajectories being aimed."""

    search: SearchConfig
    target: Target

    def start_trajectories(
        self, state: table_state.TableState, key: jax.Array, size: int
    ) -> table_sampler.TrajectoryStart:
        aimed = self.search.num_targeted
        led = self.reach_target(state, key)
        # Each kind is an estimate of its own: its lanes count by how few they are. But at the beginning all are alike.
        is_start = self.target.length == 0
        share, others = jnp.where(is_start, 1.0, aimed / size), jnp.where(is_start, 1.0, 1 - aimed / size)
        before = jnp.full(size - aimed, others, jnp.float32)
        possible = led.part > 0
        weight = jnp.where(possible, led.part / share, 0)
        own = jnp.where(
            possible, jnp.minimum(led.sampling_reach * (share / jnp.where(possible, led.part, 1)), _MOST), jnp.inf
        )
        return table_sampler.TrajectoryStart(
            packed_env.PackedEnv.join(self.game.start(size - aimed), led.games),
            packed_env.PackedEnv.join_lanes(before, own),
            packed_env.PackedEnv.join_lanes(1 / before, led.reach * weight),
        )

    def reach_target(self, state: table_state.TableState, key: jax.Array) -> _TargetedGames:
        size = self.search.num_targeted
        one = jnp.ones(size, jnp.float32)
        resampling, walking = jax.random.split(key)
        start = _TargetedGames(
            jnp.zeros((), jnp.int32),
            self.game.start(size),
            rng.make_streams(walking, 0, size),
            one,
            one,
            jnp.ones((), jnp.float32),
        )

        def step(led: _TargetedGames) -> _TargetedGames:
            moved = self.step_towards_target(state, led)
            draws = jax.random.uniform(jax.random.fold_in(resampling, led.step), (2,), jnp.float32)
            return self.resample(moved, self.matches_target(moved.games, moved.step), draws)

        found: _TargetedGames = jax.lax.while_loop(lambda led: led.step < self.target.length, step, start)
        return found

    def step_towards_target(self, state: table_state.TableState, led: _TargetedGames) -> _TargetedGames:
        """One joint move. Nothing is learnt on the way: games that were replaced are missing in what would be."""
        players = self.game.env.num_players
        streams, words = rng.draw_rows(led.streams, players + 1)
        draws = table_rows.uniform_from_bits(words)
        before, reach, actions = led.sampling_reach, led.reach, []
        high, low = led.games.keys
        for number in range(players):
            legal = led.games.legal[number]
            row = hash_table.lookup(state.table, table_rows.player_keys(high[number], low[number], number))
            policy = self.policy(state.entries, row, legal)
            drawn_from = policy
            if number == self.player:
                drawn_from = policy + self.settings.exploration * (table_rows.uniform_policy(legal) - policy)
            if self.search.targeting == "information set":
                made = legal & (np.arange(legal.shape[0])[:, None] == self.target.moves[led.step])
                # It is legal, unless no game has been where the match was.
                is_led = (number == self.target.player) & made.any(axis=0)
                drawn_from = jnp.where(is_led, made.astype(jnp.float32), drawn_from)
            action = table_rows.sample_actions(drawn_from, draws[number])
            options = jnp.sum(legal, axis=0)
            counted = _counted(
                players,
                number == self.player,
                (before, reach),
                (
                    table_rows.select_actions(policy, action),
                    table_rows.select_actions(drawn_from, action),
                    1 / jnp.maximum(options, 1),
                ),
            )
            before, reach = (
                jnp.where(options > 1, new, old) for new, old in zip(counted, (before, reach), strict=True)
            )
            actions.append(action)
        games = self.game.step(led.games, jnp.stack(actions), draws[players])
        return _TargetedGames(led.step + 1, games, streams, before, reach, led.part)

    def matches_target(self, games: packed_env.PackedState, step: jax.Array) -> jax.Array:
        """[B] bool, whether games are, after so many steps, where the match was then."""
        number = self.game.env.num_players if self.search.targeting == "public subgame" else self.target.player
        high, low = (word[number] for word in games.keys)
        return (high == self.target.high[step]) & (low == self.target.low[step]) & ~games.terminated

    def resample(self, led: _TargetedGames, fits: jax.Array, draws: jax.Array) -> _TargetedGames:
        """Only games that fit, each about as often, if there are any."""
        size = fits.shape[0]
        count = jnp.sum(fits, dtype=jnp.int32)

        def replaced(led: _TargetedGames) -> _TargetedGames:
            (lanes,) = particle_filter.resample_lanes(fits[None], *draws[:, None])
            return led._replace(
                games=self.game.take(led.games, lanes), sampling_reach=led.sampling_reach[lanes], reach=led.reach[lanes]
            )

        kept: _TargetedGames = jax.lax.cond(count == size, lambda led: led, replaced, led)
        return kept._replace(part=led.part * (count / size))

    def play(self, walked: table_sampler.TrajectoryState) -> table_sampler.TrajectoryState:
        """One joint move; what lies below the target is left to the games that were led there."""
        words, aimed = walked.games.rows.shape[1], self.search.num_targeted // packed_env.GAMES_PER_WORD
        is_led = jnp.arange(walked.games.batch) % words >= words - aimed
        is_there = (walked.step == self.target.length) & (walked.step > 0)
        comes_by = is_there & self.matches_target(walked.games, walked.step) & ~is_led
        return super().play(
            walked._replace(
                sampling_reach=jnp.where(comes_by, jnp.inf, walked.sampling_reach),
                reach=jnp.where(comes_by, 0, walked.reach),
            )
        )


def _counted(
    players: int,
    is_own: bool,
    weights: tuple[jax.Array, jax.Array],
    choice: tuple[jax.Array, jax.Array, jax.Array],
) -> tuple[jax.Array, jax.Array]:
    """q and the weight of average policies after a choice, as in `hashed`, also where others were led.

    A choice is its probability in the policy, that with which it was drawn, and 1 / options.
    """
    (before, reach), (chosen, drawn, share) = weights, choice
    if is_own:
        return before * drawn / share, reach * share / drawn if players == 2 else reach * chosen / drawn
    likely = jnp.where(chosen > 0, chosen, 1)
    before = jnp.where(chosen > 0, before * drawn / likely, jnp.inf)
    return before, reach * chosen / drawn if players == 2 else reach * share / drawn


@jax.jit
def average_policy_at(
    state: table_state.TableState, key: tuple[jax.Array, jax.Array], legal: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """float32[A] the average policy at one set with moves bool[A], and whether the set has been weighed.

    Keys as in the table, `rows.own_keys`. Discounts since the last visit are the same for all moves.
    """
    high, low = key
    row = hash_table.lookup(state.table, (high[None], low[None]))[0]
    weight = jnp.where(legal & (row >= 0), state.averages.cumulative_policy[0, jnp.maximum(row, 0)], 0)
    total = jnp.sum(weight)
    even = legal / jnp.maximum(jnp.sum(legal), 1)
    return jnp.where(total > 0, weight / jnp.where(total > 0, total, 1), even), total > 0
