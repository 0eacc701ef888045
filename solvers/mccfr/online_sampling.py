"""Online outcome sampling: search targeted at the current state of a match (Lisy, Lanctot & Bowling 2015).

The hash table with its regrets and averages keeps growing during a match, but a fraction of every batch is targeted at
the histories that the searching player cannot distinguish from the true one (its information set), or at those with the
same public information (the public subgame). The other trajectories sample the whole game, so that the other players'
policies elsewhere are learned too; without them the others would act as if they knew the searching player's private
information.

Targeting. All trajectories start at the initial state in lockstep and are guided step by step: towards an information
set, the searching player repeats its actions of the match, and all others sample from their policies. Games in which
the target can no longer be reached are then replaced by copies of games in which it can. If s of n games survive step
k, the weight of all is multiplied by s / n. This is a particle filter, and its weighted games are an unbiased sample of

    sum over histories h in the target of  probability(h) f(h)      for any f

so the probability of the target, which is unknown, is not needed. Lisy et al. instead mix both kinds of trajectories
with one probability for each history, which requires the probability that a targeted trajectory takes its course.

Credit. In the subgame of the target only targeted trajectories count; untargeted ones that pass through the target
update information sets before it and outside it. So every history is counted once, and sampled regrets have the same
means as without targeting. A forced action is weighted by its probability under the policy, which is never 0 where
every policy is mixed with a fraction `exploration` of the uniform one.
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
_MAX_SAMPLING_REACH = 1e25  # a larger q would make quotients by it NaN


class Target(NamedTuple):
    """Current state of a match, as one player knows it. Axes: T capacity for steps.

    All traced: one compiled program serves every player and every step.
    """

    player: jax.Array  # [] int32, the searching player
    moves: jax.Array  # [T] int32, actions of the searching player
    high: jax.Array  # [T + 1] uint32, first words of its keys after 0, 1, .. steps, or of the public keys
    low: jax.Array  # [T + 1] uint32, second words
    length: jax.Array  # [] int32, steps so far


class SearchConfig(NamedTuple):
    """Static settings. `num_targeted` trajectories of each batch are targeted; both are multiples of 32."""

    config: table_state.SamplerConfig
    num_targeted: int
    targeting: Targeting = "information set"


def make_target(
    game: packed_env.PackedEnv, view: history.ActionObservationHistory, steps: int, aim: Targeting
) -> Target:
    """Returns the target for a player's view of a match, with a capacity of `steps` steps."""
    keys = view.keys
    if aim == "public subgame":
        assert game.public is not None
        keys = view.public_state_keys(game.public)
    padded_keys = np.zeros((steps + 1, 2), np.uint32)
    padded_keys[: len(keys)] = keys
    moves = np.zeros(steps, np.int32)
    moves[: view.step] = [event.move for event in view.events]
    return Target(
        jnp.int32(view.player),
        jnp.asarray(moves),
        jnp.asarray(padded_keys[:, 0]),
        jnp.asarray(padded_keys[:, 1]),
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
    """Run `count` iterations, each with a batch for every player in turn. `state` is donated."""

    def one(now: table_state.TableState, discounts: table_state.CumulativeDiscounts) -> table_state.TableState:
        now, by = table_loop.next_iteration(now, settings.minimiser, discounts)
        iteration_key = jax.random.fold_in(key, now.t)
        for player in range(game.env.num_players):
            batch = TargetedBatch(game, settings, by, search.config, None, player, search, where)
            now = batch.update(now, jax.random.fold_in(iteration_key, player))
        return now

    return table_loop.iterate(state, settings.minimiser, count, one)


class _TargetedGames(NamedTuple):
    """Games that are guided to the target. Axes: B games."""

    step: jax.Array  # [] int32
    games: packed_env.PackedState
    streams: rng.Streams
    sampling_reach: jax.Array  # [B] float32, q
    reach: jax.Array  # [B] float32, weight in the average policy
    part: jax.Array  # [] float32, estimated probability to get this far


@dataclasses.dataclass(frozen=True)
class TargetedBatch(table_sampler.TrajectoryBatch):
    """A batch that updates one player; some of its trajectories are targeted."""

    search: SearchConfig
    target: Target

    def start_trajectories(
        self, state: table_state.TableState, key: jax.Array, size: int
    ) -> table_sampler.TrajectoryStart:
        """Starts the targeted trajectories at the target, and all others at the initial state."""
        num_targeted = self.search.num_targeted
        guided = self.reach_target(state, key)
        # Each kind is a separate estimate, weighted by its fraction of the lanes. At the initial state all are alike.
        is_start = self.target.length == 0
        share = jnp.where(is_start, 1.0, num_targeted / size)
        other_share = jnp.where(is_start, 1.0, 1 - num_targeted / size)
        untargeted_reach = jnp.full(size - num_targeted, other_share, jnp.float32)
        possible = guided.part > 0
        weight = jnp.where(possible, guided.part / share, 0)
        targeted_reach = jnp.where(
            possible,
            jnp.minimum(guided.sampling_reach * (share / jnp.where(possible, guided.part, 1)), _MAX_SAMPLING_REACH),
            jnp.inf,
        )
        return table_sampler.TrajectoryStart(
            packed_env.PackedEnv.join(self.game.start(size - num_targeted), guided.games),
            packed_env.PackedEnv.join_lanes(untargeted_reach, targeted_reach),
            packed_env.PackedEnv.join_lanes(1 / untargeted_reach, guided.reach * weight),
        )

    def reach_target(self, state: table_state.TableState, key: jax.Array) -> _TargetedGames:
        """Guide the targeted games to the target, resampling after every step."""
        size = self.search.num_targeted
        ones = jnp.ones(size, jnp.float32)
        resampling, sampling = jax.random.split(key)
        start = _TargetedGames(
            jnp.zeros((), jnp.int32),
            self.game.start(size),
            rng.make_streams(sampling, 0, size),
            ones,
            ones,
            jnp.ones((), jnp.float32),
        )

        def step(guided: _TargetedGames) -> _TargetedGames:
            moved = self.step_towards_target(state, guided)
            draws = jax.random.uniform(jax.random.fold_in(resampling, guided.step), (2,), jnp.float32)
            return self.resample(moved, self.matches_target(moved.games, moved.step), draws)

        final: _TargetedGames = jax.lax.while_loop(lambda guided: guided.step < self.target.length, step, start)
        return final

    def step_towards_target(self, state: table_state.TableState, led: _TargetedGames) -> _TargetedGames:
        """Takes one joint action. Nothing is learned here: estimates would lack the replaced games."""
        players = self.game.env.num_players
        streams, words = rng.draw_rows(led.streams, players + 1)
        draws = table_rows.uniform_from_bits(words)
        sampling_reach, reach, actions = led.sampling_reach, led.reach, []
        high, low = led.games.keys
        for number in range(players):
            legal = led.games.legal[number]
            row = hash_table.lookup(state.table, table_rows.player_keys(high[number], low[number], number))
            policy = self.policy(state.entries, row, legal)
            sampling_policy = policy
            if number == self.player:
                sampling_policy = policy + self.settings.exploration * (table_rows.uniform_policy(legal) - policy)
            if self.search.targeting == "information set":
                is_match_action = legal & (np.arange(legal.shape[0])[:, None] == self.target.moves[led.step])
                # Legal unless no game has reached the state of the match.
                is_forced = (number == self.target.player) & is_match_action.any(axis=0)
                sampling_policy = jnp.where(is_forced, is_match_action.astype(jnp.float32), sampling_policy)
            action = table_rows.sample_actions(sampling_policy, draws[number])
            num_actions = jnp.sum(legal, axis=0)
            weights = _weights_after(
                players,
                number == self.player,
                (sampling_reach, reach),
                (
                    table_rows.select_actions(policy, action),
                    table_rows.select_actions(sampling_policy, action),
                    1 / jnp.maximum(num_actions, 1),
                ),
            )
            sampling_reach, reach = (
                jnp.where(num_actions > 1, new, old) for new, old in zip(weights, (sampling_reach, reach), strict=True)
            )
            actions.append(action)
        games = self.game.step(led.games, jnp.stack(actions), draws[players])
        return _TargetedGames(led.step + 1, games, streams, sampling_reach, reach, led.part)

    def matches_target(self, games: packed_env.PackedState, step: jax.Array) -> jax.Array:
        """Returns bool[B], whether games agree with the match after `step` steps."""
        number = self.game.env.num_players if self.search.targeting == "public subgame" else self.target.player
        high, low = (word[number] for word in games.keys)
        return (high == self.target.high[step]) & (low == self.target.low[step]) & ~games.terminated

    def resample(self, led: _TargetedGames, fits: jax.Array, draws: jax.Array) -> _TargetedGames:
        """Replaces games that do not fit by copies of those that do, all about equally often, if there are any."""
        size = fits.shape[0]
        count = jnp.sum(fits, dtype=jnp.int32)

        def replaced(led: _TargetedGames) -> _TargetedGames:
            (lanes,) = particle_filter.resample_lanes(fits[None], *draws[:, None])
            return led._replace(
                games=self.game.take(led.games, lanes), sampling_reach=led.sampling_reach[lanes], reach=led.reach[lanes]
            )

        resampled: _TargetedGames = jax.lax.cond(count == size, lambda led: led, replaced, led)
        return resampled._replace(part=led.part * (count / size))

    def play(self, walked: table_sampler.TrajectoryState) -> table_sampler.TrajectoryState:
        """Takes one joint action; the subgame of the target is left to the targeted games."""
        words, targeted_words = walked.games.rows.shape[1], self.search.num_targeted // packed_env.GAMES_PER_WORD
        is_targeted = jnp.arange(walked.games.batch) % words >= words - targeted_words
        at_target = (walked.step == self.target.length) & (walked.step > 0)
        passes_target = at_target & self.matches_target(walked.games, walked.step) & ~is_targeted
        return super().play(
            walked._replace(
                sampling_reach=jnp.where(passes_target, jnp.inf, walked.sampling_reach),
                reach=jnp.where(passes_target, 0, walked.reach),
            )
        )


def _weights_after(
    players: int,
    is_own: bool,
    weights: tuple[jax.Array, jax.Array],
    choice: tuple[jax.Array, jax.Array, jax.Array],
) -> tuple[jax.Array, jax.Array]:
    """Returns q and the weight in the average policy after an action, as in `table_sampler`, also for forced actions.

    `choice` is the action's probability under the policy, the one it was sampled with, and 1 / number of actions.
    """
    (sampling_reach, reach), (chosen, drawn, share) = weights, choice
    if is_own:
        return sampling_reach * drawn / share, reach * share / drawn if players == 2 else reach * chosen / drawn
    nonzero = jnp.where(chosen > 0, chosen, 1)
    sampling_reach = jnp.where(chosen > 0, sampling_reach * drawn / nonzero, jnp.inf)
    return sampling_reach, reach * chosen / drawn if players == 2 else reach * share / drawn


@jax.jit
def average_policy_at(
    state: table_state.TableState, key: tuple[jax.Array, jax.Array], legal: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Returns the average policy float32[A] at one information set, and whether the set has any weight in the average.

    `legal` is bool[A]; `key` is as in the table (`table_rows.player_keys`). Pending discounts do not matter: they are
    the same for all actions.
    """
    high, low = key
    row = hash_table.lookup(state.table, (high[None], low[None]))[0]
    weight = jnp.where(legal & (row >= 0), state.averages.cumulative_policy[0, jnp.maximum(row, 0)], 0)
    total = jnp.sum(weight)
    uniform = legal / jnp.maximum(jnp.sum(legal), 1)
    return jnp.where(total > 0, weight / jnp.where(total > 0, total, 1), uniform), total > 0
