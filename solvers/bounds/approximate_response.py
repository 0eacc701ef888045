"""Approximate best responses without a tree: lower bounds on exploitability in games of any size.

A learner responds to the frozen policies of the other players. The outcome of its action then depends only on chance
and on these policies, whatever the learner does elsewhere, and an information set J is reached in one way only, by
action a of the information set I before (perfect recall). So sample means are valid for every policy of the learner,
and are backed up through its own tree of information sets, with the best action everywhere:

    W(I, a) = payoffs of visits that ended + the sum of n(J) V(J) over the information sets J that came next
    V(I)    = max_a Q(I, a),   Q(I, a) = (W(I, a) + k M(I)) / (n(I, a) + k),   M(I) = sum_a W(I, a) / sum_a n(I, a)

n counts visits. A prior of k visits with the mean M keeps a few lucky samples from becoming the maximum. As in Monte
Carlo tree search, each trajectory adds the first information set that is not in the table yet, and continues below it
with the frozen policies, the learner's own included.

Actions are sampled in proportion to the likelihood that they are the best, as if means had normal errors,

    exp( -(V(I) - Q(I, a))^2 n(I, a) / (2 s^2) ),

with s the standard deviation of payoffs, mixed with a uniform policy.

The response takes the best action of every information set in the table. A best response gets at least as much, and
matches estimate the payoff of the response up to their standard error. In a two-player zero-sum game:

    exploitability  >=  (payoff of a response of player 0 + payoff of a response of player 1) / 2
"""

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from gdlx.envs.lowering import rng
from gdlx.envs.packed import packed_env
from gdlx.solvers.mccfr import hash_table, table_policy, table_rows

_MIN_PAYOFF_STD = 0.02  # smallest standard deviation of payoffs, as a fraction of their range


class LearnerState(NamedTuple):
    """The state of one learner. Axes: R rows of information sets, the last for lanes without one; A actions."""

    table: hash_table.Table
    visits: jax.Array  # [R, A] float32, n
    total: jax.Array  # [R, A] float32, W
    representative: jax.Array  # [R] int32, scratch: the representative of the lanes at an information set
    batches: jax.Array  # [] int32


class LearnerSettings(NamedTuple):
    """Traced settings."""

    payoff_std: Any  # s, in payoff units
    prior_visits: Any = 4.0  # k
    exploration: Any = 0.1  # weight of the uniform policy


class LearnerConfig(NamedTuple):
    """Static settings. `steps` is the capacity for joint actions of a trajectory."""

    steps: int
    batch: int = 4_096


def init(game: packed_env.PackedEnv, bits: int) -> LearnerState:
    """Returns a learner with an empty table of capacity 2^bits."""
    shape = (2**bits + 1, max(1, game.env.num_actions))
    with jax.enable_x64(False):
        return LearnerState(
            table=hash_table.init(bits),
            visits=jnp.zeros(shape, jnp.float32),
            total=jnp.zeros(shape, jnp.float32),
            representative=jnp.zeros(shape[0], jnp.int32),
            batches=jnp.zeros((), jnp.int32),
        )


def row_bytes(game: packed_env.PackedEnv) -> int:
    """Returns the bytes of one row of a learner."""
    return 8 * max(1, game.env.num_actions) + 12


def clip_payoff_std(game: packed_env.PackedEnv, deviation: float) -> float:
    """Returns s for the standard deviation of payoffs in matches of the frozen policies, which may be 0."""
    low, high = game.env.payoff_range
    return max(deviation, _MIN_PAYOFF_STD * (high - low), 1e-6)


class _Trail(NamedTuple):
    """Trajectories under way. Axes: T steps, B trajectories."""

    step: jax.Array  # [] int32
    games: packed_env.PackedState
    streams: rng.Streams
    rolling: jax.Array  # [B] bool, below the information set that the trajectory adds
    table: hash_table.Table
    row: jax.Array  # [T, B] int32, of the learner; -1 where it had no choice, or no row
    action: jax.Array  # [T, B] int32


@functools.partial(jax.jit, static_argnames=("game", "config"), donate_argnames="learner")
def learn(
    game: packed_env.PackedEnv,
    policies: table_policy.TablePolicies,
    learner: LearnerState,
    settings: LearnerSettings,
    key: jax.Array,
    player: jax.Array | int,
    count: jax.Array | int,
    *,
    config: LearnerConfig,
) -> LearnerState:
    """Learns from `count` more batches. Donates the buffers of the learner; one program serves all players."""

    def one(_: jax.Array, before: LearnerState) -> LearnerState:
        now = jax.random.fold_in(jax.random.fold_in(key, player), before.batches)
        trail = _forward(game, policies, before, settings, now, player, config)
        return _backward(before, trail, settings, player_payoff(game, trail.games, player))

    after: LearnerState = jax.lax.fori_loop(0, count, one, learner)
    return after


def _forward(
    game: packed_env.PackedEnv,
    policies: table_policy.TablePolicies,
    learner: LearnerState,
    settings: LearnerSettings,
    key: jax.Array,
    player: jax.Array | int,
    config: LearnerConfig,
) -> _Trail:
    """Plays a batch to its end, and inserts new information sets on the way."""
    size = config.batch
    is_open = hash_table.has_capacity(learner.table)

    def move(trail: _Trail) -> _Trail:
        streams, words = rng.draw_rows(trail.streams, game.env.num_players + 1)
        draws = table_rows.uniform_from_bits(words)
        legal = trail.games.legal[player]
        has_choice = jnp.sum(legal, axis=0) > 1
        needs_row = has_choice & ~trail.rolling
        table, row = jax.lax.cond(
            needs_row.any(),
            lambda: _insert_rows(trail.table, trail.games, player, needs_row, is_open),
            lambda: (trail.table, jnp.full(size, -1, jnp.int32)),
        )
        visits, total = (
            jnp.where(row >= 0, table_rows.gather(array, row), 0) for array in (learner.visits, learner.total)
        )
        is_known = visits.sum(axis=0) > 0
        sampled = _exploration_policy(visits, total, legal, settings)
        actions = sample_joint_action(policies, trail.games, player, sampled, is_known, draws)
        return _Trail(
            step=trail.step + 1,
            games=game.step(trail.games, actions, draws[-1]),
            streams=streams,
            rolling=trail.rolling | (has_choice & ~is_known),
            table=table,
            row=jax.lax.dynamic_update_slice(trail.row, row[None], (trail.step, 0)),
            action=jax.lax.dynamic_update_slice(trail.action, actions[player][None], (trail.step, 0)),
        )

    blank = jnp.zeros((config.steps, size), jnp.int32)
    start = _Trail(
        jnp.zeros((), jnp.int32),
        game.start(size),
        rng.make_streams(key, 0, size),
        jnp.zeros(size, jnp.bool_),
        learner.table,
        blank,
        blank,
    )
    trail: _Trail = jax.lax.while_loop(lambda t: (t.step < config.steps) & ~t.games.terminated.all(), move, start)
    return trail


def _insert_rows(
    table: hash_table.Table,
    games: packed_env.PackedState,
    player: jax.Array | int,
    needs_row: jax.Array,
    is_open: jax.Array,
) -> tuple[hash_table.Table, jax.Array]:
    """Inserts the player's information sets where `needs_row`, and returns their rows; -1 elsewhere, or where full."""
    high, low = (jnp.where(needs_row, word, 0) for word in _player_keys(games, player))
    after, rows, _ = hash_table.insert(table, (high, low), needs_row & is_open)
    return after, jnp.where(needs_row, rows, -1)


def _backward(learner: LearnerState, trail: _Trail, settings: LearnerSettings, payoff: jax.Array) -> LearnerState:
    """Back up the payoffs of a batch, the last actions first.

    A lane adds its payoff to its last action. Every earlier action gets the change of n V of the information set after
    it, once: the representative lane of the information set carries it, the other lanes carry 0.
    """

    def back(count: jax.Array, carry: tuple[LearnerState, jax.Array]) -> tuple[LearnerState, jax.Array]:
        at = trail.step - 1 - count
        row, action = trail.row[at], trail.action[at]
        after: tuple[LearnerState, jax.Array] = jax.lax.cond(
            (row >= 0).any(), lambda: _backup_step(*carry, row, action, settings), lambda: carry
        )
        return after

    start = learner._replace(table=trail.table, batches=learner.batches + 1)
    done: tuple[LearnerState, jax.Array] = jax.lax.fori_loop(0, trail.step, back, (start, payoff))
    return done[0]


def _backup_step(
    learner: LearnerState, carried: jax.Array, row: jax.Array, action: jax.Array, settings: LearnerSettings
) -> tuple[LearnerState, jax.Array]:
    """Adds the carried payoffs [B] to the actions of one step, and returns what the lanes carry to the step before."""
    representative, lane = table_rows.elect_representatives(learner.representative, row)
    visits, total = table_rows.gather(learner.visits, row), table_rows.gather(learner.total, row)
    visits_after = visits + table_rows.sum_by_action(lane, action, jnp.ones_like(carried), visits.shape[0])
    total_after = total + table_rows.sum_by_action(lane, action, carried, visits.shape[0])
    change = _visit_weighted_value(visits_after, total_after, settings) - _visit_weighted_value(visits, total, settings)
    is_representative = lane == jnp.arange(lane.shape[0])
    return learner._replace(
        visits=table_rows.scatter(learner.visits, row, lane, visits_after),
        total=table_rows.scatter(learner.total, row, lane, total_after),
        representative=representative,
    ), jnp.where(row >= 0, jnp.where(is_representative, change, 0), carried)


def _values(visits: jax.Array, total: jax.Array, settings: LearnerSettings) -> jax.Array:
    """Returns Q [A, ..] from n and W; actions without visits have the mean of the information set."""
    mean = total.sum(axis=0) / jnp.maximum(visits.sum(axis=0), 1)
    values: jax.Array = (total + settings.prior_visits * mean) / (visits + settings.prior_visits)
    return values


def _visit_weighted_value(visits: jax.Array, total: jax.Array, settings: LearnerSettings) -> jax.Array:
    """Returns n V [B]. Actions without visits, and illegal ones, have the mean, which does not exceed the maximum."""
    return visits.sum(axis=0) * _values(visits, total, settings).max(axis=0)


def _exploration_policy(visits: jax.Array, total: jax.Array, legal: jax.Array, settings: LearnerSettings) -> jax.Array:
    """Returns the policy [A, B] that the learner samples its actions from."""
    values = _values(visits, total, settings)
    gap = jnp.where(legal, jnp.max(jnp.where(legal, values, -jnp.inf), axis=0) - values, 0)
    likelihood = jnp.where(legal, jnp.exp(-0.5 * visits * (gap / settings.payoff_std) ** 2), 0)
    policy = likelihood / jnp.maximum(likelihood.sum(axis=0), 1)  # that of the best action is 1, if any is legal
    mixed: jax.Array = policy + settings.exploration * (table_rows.uniform_policy(legal) - policy)
    return mixed


def _player_keys(games: packed_env.PackedState, player: jax.Array | int) -> tuple[jax.Array, jax.Array]:
    """rows.own_keys of a player who is not known at compile time."""
    high, low = games.keys
    salts = np.array([table_rows.player_salt(number) for number in range(high.shape[0])], np.uint32)
    return high[player] ^ jnp.asarray(salts)[player], low[player]


def sample_joint_action(
    policies: table_policy.TablePolicies,
    games: packed_env.PackedState,
    player: jax.Array | int,
    probabilities: jax.Array,
    is_known: jax.Array,
    draws: jax.Array,
) -> jax.Array:
    """Sample actions int32[P, B]: of `player` from `probabilities` [A, B] where `is_known`, else frozen policies."""
    frozen = table_policy.all_player_policies(policies, games)
    is_player = np.arange(len(frozen))[:, None, None] == player
    joint = jnp.where(is_player & is_known, probabilities, frozen)
    return jnp.stack([table_rows.sample_actions(policy, draw) for policy, draw in zip(joint, draws, strict=False)])


def player_payoff(game: packed_env.PackedEnv, games: packed_env.PackedState, player: jax.Array | int) -> jax.Array:
    """Returns payoffs [B] of a player; unfinished games get the lowest payoff, so that lower bounds stay valid."""
    return jnp.where(games.terminated, games.payoff[player], game.env.payoff_range[0])


@jax.jit
def greedy_response(learner: LearnerState, settings: LearnerSettings) -> table_policy.TablePolicy:
    """Returns the best action of every visited information set; other rows are 0, for the frozen policies."""
    values = jnp.where(learner.visits > 0, _values(learner.visits.T, learner.total.T, settings).T, -jnp.inf)
    best = jax.nn.one_hot(jnp.argmax(values, axis=1), values.shape[1], dtype=jnp.float32)
    known = learner.visits.sum(axis=1, keepdims=True) > 0
    return table_policy.TablePolicy(learner.table, jnp.where(known, best, 0).at[-1].set(0))


@functools.partial(jax.jit, static_argnames=("game", "matches", "steps"))
def play(
    game: packed_env.PackedEnv,
    policies: table_policy.TablePolicies,
    response: table_policy.TablePolicy,
    key: jax.Array,
    player: jax.Array | int,
    *,
    matches: int,
    steps: int,
) -> jax.Array:
    """Play matches against frozen policies, and return the payoffs float32[M] of a player with a response."""

    def move(
        carry: tuple[jax.Array, packed_env.PackedState, rng.Streams],
    ) -> tuple[jax.Array, packed_env.PackedState, rng.Streams]:
        step, games, streams = carry
        streams, words = rng.draw_rows(streams, game.env.num_players + 1)
        draws = table_rows.uniform_from_bits(words)
        row = jax.lax.cond(
            (jnp.sum(games.legal[player], axis=0) > 1).any(),
            lambda: hash_table.lookup(response.table, _player_keys(games, player)),
            lambda: jnp.full(matches, -1, jnp.int32),
        )
        probabilities = jnp.where(row >= 0, table_rows.gather(response.cumulative_policy, row), 0)
        actions = sample_joint_action(policies, games, player, probabilities, probabilities.sum(axis=0) > 0, draws)
        return step + 1, game.step(games, actions, draws[-1]), streams

    start = (jnp.zeros((), jnp.int32), game.start(matches), rng.make_streams(key, 0, matches))
    _, games, _ = jax.lax.while_loop(lambda c: (c[0] < steps) & ~c[1].terminated.all(), move, start)
    return player_payoff(game, games, player)


class Budget(NamedTuple):
    """The budget of a bound: batches to learn from, then matches. Tables have 2^bits information sets per player."""

    config: LearnerConfig
    batches: int = 256
    matches: int = 2**18
    bits: int = 18


class ResponseBound(NamedTuple):
    """Estimated payoffs of approximate best responses. Axes: P players."""

    payoff: tuple[float, ...]  # mean of each player's response
    error: tuple[float, ...]  # its standard error

    @property
    def exploitability(self) -> float:
        """The lower bound, in a two-player zero-sum game."""
        return sum(self.payoff) / 2

    @property
    def standard_error(self) -> float:
        return math.hypot(*self.error) / 2


def estimate_bound(
    game: packed_env.PackedEnv, policies: table_policy.TablePolicies, key: jax.Array, budget: Budget
) -> ResponseBound:
    """Estimates the payoffs of approximate best responses to policies, for a fixed budget."""
    payoff, error = [], []
    with jax.enable_x64(False):
        learning, playing, spread = jax.random.split(key, 3)
        payoffs = table_policy.play_matches(game, policies, spread, matches=_MATCHES, steps=budget.config.steps).payoff
        for player in range(game.env.num_players):
            settings = LearnerSettings(np.float32(clip_payoff_std(game, float(np.asarray(payoffs[player]).std()))))
            learner = init(game, budget.bits)
            learner = learn(game, policies, learner, settings, learning, player, budget.batches, config=budget.config)
            response_payoffs = play(
                game,
                policies,
                greedy_response(learner, settings),
                jax.random.fold_in(playing, player),
                player,
                matches=budget.matches,
                steps=budget.config.steps,
            )
            samples = np.asarray(response_payoffs, np.float64)
            payoff.append(float(samples.mean()))
            error.append(float(samples.std()) / math.sqrt(budget.matches))
    return ResponseBound(tuple(payoff), tuple(error))


_MATCHES = 2**14  # to estimate the standard deviation of payoffs
