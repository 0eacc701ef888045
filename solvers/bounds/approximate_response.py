"""Lower bounds on exploitability without a tree: a player learns a response to frozen policies, then plays matches.

Everybody else's policies are frozen. What follows a choice of the learner is then up to chance and to these policies
alone, whatever the learner does elsewhere, and an information set J can be come to in one way only, by option a of the
set I before (perfect recall). So plain means of what happened in sampled play are good for every policy of the learner,
and are backed up through its own tree of information sets, the best option being taken everywhere:

    W(I, a) = payoffs of visits that ended + the sum of n(J) V(J) over the sets J that came next
    V(I)    = max_a Q(I, a),   Q(I, a) = (W(I, a) + k M(I)) / (n(I, a) + k),   M(I) = sum_a W(I, a) / sum_a n(I, a)

n counts visits. k visits of the mean M keep the maximum from being that of a few lucky draws. Each trajectory adds the
first set that is not known yet, and goes on below it as the frozen policies do, the learner's own too (as Monte Carlo
tree search does): what is not learnt is played as before.

Options are tried in proportion to how likely they are to be the best one, as if means had a normal error,

    exp( -(V(I) - Q(I, a))^2 n(I, a) / (2 s^2) ),

s being the standard deviation of payoffs; a part of all choices is uniform.

The response takes the best option of every known set. It is one policy of many, so that a best response gets at least
as much, and matches tell how much it gets, but for their standard error. In a zero-sum game of two:

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

_LEAST_SPREAD = 0.02  # of the payoffs' range: the least standard deviation that is believed


class LearnerState(NamedTuple):
    """What one player has learnt. Axes: R rows of its sets, the last one for lanes that are at none; A moves."""

    table: hash_table.Table
    visits: jax.Array  # [R, A] float32, n
    total: jax.Array  # [R, A] float32, W
    representative: jax.Array  # [R] int32, scratch: which of the lanes that are at a set speaks for it
    batches: jax.Array  # [] int32


class LearnerSettings(NamedTuple):
    """Traced."""

    payoff_std: Any  # s, in payoff units
    prior_visits: Any = 4.0  # k
    exploration: Any = 0.1  # part of the learner's choices that is uniform


class LearnerConfig(NamedTuple):
    """Static. `steps` is the room for joint moves of a trajectory."""

    steps: int
    batch: int = 4_096


def init(game: packed_env.PackedEnv, bits: int) -> LearnerState:
    """Knows nothing, and has room for 2^bits information sets."""
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
    return 8 * max(1, game.env.num_actions) + 12


def clip_payoff_std(game: packed_env.PackedEnv, deviation: float) -> float:
    """s for a standard deviation of payoffs in matches of the frozen policies, which may all have gone the same way."""
    low, high = game.env.payoff_range
    return max(deviation, _LEAST_SPREAD * (high - low), 1e-6)


class _Trail(NamedTuple):
    """Trajectories under way. Axes: T steps, B trajectories."""

    step: jax.Array  # [] int32
    games: packed_env.PackedState
    streams: rng.Streams
    rolling: jax.Array  # [B] bool, has come to a set that was not known
    table: hash_table.Table
    row: jax.Array  # [T, B] int32, of the learner; -1 where it had no choice, or the set is not known
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
    """So many batches more. The learner is used up; it is the same program for all players."""

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
    """Play a batch to its end; unknown sets are added on the way."""
    size = config.batch
    is_open = hash_table.has_capacity(learner.table)

    def move(trail: _Trail) -> _Trail:
        streams, words = rng.draw_rows(trail.streams, game.env.num_players + 1)
        draws = table_rows.uniform_from_bits(words)
        legal = trail.games.legal[player]
        has_choice = jnp.sum(legal, axis=0) > 1
        asks = has_choice & ~trail.rolling
        table, row = jax.lax.cond(
            asks.any(),
            lambda: _rows_of(trail.table, trail.games, player, asks, is_open),
            lambda: (trail.table, jnp.full(size, -1, jnp.int32)),
        )
        visits, total = (
            jnp.where(row >= 0, table_rows.gather(part, row), 0) for part in (learner.visits, learner.total)
        )
        is_known = visits.sum(axis=0) > 0
        tried = _exploration_policy(visits, total, legal, settings)
        actions = sample_joint_action(policies, trail.games, player, tried, is_known, draws)
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


def _rows_of(
    table: hash_table.Table, games: packed_env.PackedState, player: jax.Array | int, asks: jax.Array, is_open: jax.Array
) -> tuple[hash_table.Table, jax.Array]:
    """The table with the player's sets in games that ask, and their rows; -1 for others, and where it has no place."""
    high, low = (jnp.where(asks, word, 0) for word in _player_keys(games, player))
    after, found, _ = hash_table.insert(table, (high, low), asks & is_open)
    return after, jnp.where(asks, found, -1)


def _backward(learner: LearnerState, trail: _Trail, settings: LearnerSettings, payoff: jax.Array) -> LearnerState:
    """Add what a batch brought, the last choices first.

    A lane brings its payoff to its last choice. To every earlier one the set after it brings the change of n V, once:
    the lane that speaks for the set has it, the others have nothing.
    """

    def back(count: jax.Array, carry: tuple[LearnerState, jax.Array]) -> tuple[LearnerState, jax.Array]:
        at = trail.step - 1 - count
        row, action = trail.row[at], trail.action[at]
        added: tuple[LearnerState, jax.Array] = jax.lax.cond(
            (row >= 0).any(), lambda: _added(*carry, row, action, settings), lambda: carry
        )
        return added

    start = learner._replace(table=trail.table, batches=learner.batches + 1)
    done: tuple[LearnerState, jax.Array] = jax.lax.fori_loop(0, trail.step, back, (start, payoff))
    return done[0]


def _added(
    learner: LearnerState, brought: jax.Array, row: jax.Array, action: jax.Array, settings: LearnerSettings
) -> tuple[LearnerState, jax.Array]:
    """What was brought to choices that are all of one step, and what these sets bring to those before [B]."""
    speaker, lane = table_rows.elect_representatives(learner.representative, row)
    visits, total = table_rows.gather(learner.visits, row), table_rows.gather(learner.total, row)
    visits_after = visits + table_rows.sum_by_action(lane, action, jnp.ones_like(brought), visits.shape[0])
    total_after = total + table_rows.sum_by_action(lane, action, brought, visits.shape[0])
    change = _visit_weighted_value(visits_after, total_after, settings) - _visit_weighted_value(visits, total, settings)
    speaks = lane == jnp.arange(lane.shape[0])
    return learner._replace(
        visits=table_rows.scatter(learner.visits, row, lane, visits_after),
        total=table_rows.scatter(learner.total, row, lane, total_after),
        representative=speaker,
    ), jnp.where(row >= 0, jnp.where(speaks, change, 0), brought)


def _values(visits: jax.Array, total: jax.Array, settings: LearnerSettings) -> jax.Array:
    """Q [A, ..] of n and W; the mean of the set for options that were never tried."""
    mean = total.sum(axis=0) / jnp.maximum(visits.sum(axis=0), 1)
    values: jax.Array = (total + settings.prior_visits * mean) / (visits + settings.prior_visits)
    return values


def _visit_weighted_value(visits: jax.Array, total: jax.Array, settings: LearnerSettings) -> jax.Array:
    """n V of sets [B]; what was never tried, or is not legal, is worth the mean, which is no more than the maximum."""
    return visits.sum(axis=0) * _values(visits, total, settings).max(axis=0)


def _exploration_policy(visits: jax.Array, total: jax.Array, legal: jax.Array, settings: LearnerSettings) -> jax.Array:
    """[A, B] how the learner draws its options."""
    values = _values(visits, total, settings)
    gap = jnp.where(legal, jnp.max(jnp.where(legal, values, -jnp.inf), axis=0) - values, 0)
    likely = jnp.where(legal, jnp.exp(-0.5 * visits * (gap / settings.payoff_std) ** 2), 0)
    chosen = likely / jnp.maximum(likely.sum(axis=0), 1)  # the best one is 1, unless nothing is legal
    mixed: jax.Array = chosen + settings.exploration * (table_rows.uniform_policy(legal) - chosen)
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
    own: jax.Array,
    is_known: jax.Array,
    draws: jax.Array,
) -> jax.Array:
    """int32[P, B] moves: `player` draws from `own` [A, B] where that is known, everybody else from frozen policies."""
    frozen = table_policy.all_player_policies(policies, games)
    is_own = np.arange(len(frozen))[:, None, None] == player
    chosen = jnp.where(is_own & is_known, own, frozen)
    return jnp.stack([table_rows.sample_actions(policy, draw) for policy, draw in zip(chosen, draws, strict=False)])


def player_payoff(game: packed_env.PackedEnv, games: packed_env.PackedState, player: jax.Array | int) -> jax.Array:
    """[B] of a player; the lowest there is where there was no room for the end, so that bounds stay bounds."""
    return jnp.where(games.terminated, games.payoff[player], game.env.payoff_range[0])


@jax.jit
def greedy_response(learner: LearnerState, settings: LearnerSettings) -> table_policy.TablePolicy:
    """The best option of every known set; rows of others are 0: there it plays as the frozen policies do."""
    values = jnp.where(learner.visits > 0, _values(learner.visits.T, learner.total.T, settings).T, -jnp.inf)
    best = jax.nn.one_hot(jnp.argmax(values, axis=1), values.shape[1], dtype=jnp.float32)
    known = learner.visits.sum(axis=1, keepdims=True) > 0
    return table_policy.TablePolicy(learner.table, jnp.where(known, best, 0).at[-1].set(0))


@functools.partial(jax.jit, static_argnames=("game", "matches", "steps"))
def play(
    game: packed_env.PackedEnv,
    policies: table_policy.TablePolicies,
    found: table_policy.TablePolicy,
    key: jax.Array,
    player: jax.Array | int,
    *,
    matches: int,
    steps: int,
) -> jax.Array:
    """float32[M] payoffs of a player who plays a response, in matches against frozen policies."""

    def move(
        carry: tuple[jax.Array, packed_env.PackedState, rng.Streams],
    ) -> tuple[jax.Array, packed_env.PackedState, rng.Streams]:
        step, games, streams = carry
        streams, words = rng.draw_rows(streams, game.env.num_players + 1)
        draws = table_rows.uniform_from_bits(words)
        row = jax.lax.cond(
            (jnp.sum(games.legal[player], axis=0) > 1).any(),
            lambda: hash_table.lookup(found.table, _player_keys(games, player)),
            lambda: jnp.full(matches, -1, jnp.int32),
        )
        own = jnp.where(row >= 0, table_rows.gather(found.cumulative_policy, row), 0)
        actions = sample_joint_action(policies, games, player, own, own.sum(axis=0) > 0, draws)
        return step + 1, game.step(games, actions, draws[-1]), streams

    start = (jnp.zeros((), jnp.int32), game.start(matches), rng.make_streams(key, 0, matches))
    _, games, _ = jax.lax.while_loop(lambda c: (c[0] < steps) & ~c[1].terminated.all(), move, start)
    return player_payoff(game, games, player)


class Budget(NamedTuple):
    """Of a bound that is learnt: batches, then matches. Room for 2^bits information sets of each player."""

    config: LearnerConfig
    batches: int = 256
    matches: int = 2**18
    bits: int = 18


class ResponseBound(NamedTuple):
    """Axes: P players."""

    payoff: tuple[float, ...]  # mean of each player's response
    error: tuple[float, ...]  # its standard error

    @property
    def exploitability(self) -> float:
        """The bound, of a zero-sum game of two."""
        return sum(self.payoff) / 2

    @property
    def standard_error(self) -> float:
        return math.hypot(*self.error) / 2


def estimate_bound(
    game: packed_env.PackedEnv, policies: table_policy.TablePolicies, key: jax.Array, budget: Budget
) -> ResponseBound:
    """What learnt responses get against policies, for a fixed budget."""
    payoff, error = [], []
    with jax.enable_x64(False):
        learning, playing, before = jax.random.split(key, 3)
        usual = table_policy.play_matches(game, policies, before, matches=_MATCHES, steps=budget.config.steps).payoff
        for player in range(game.env.num_players):
            settings = LearnerSettings(np.float32(clip_payoff_std(game, float(np.asarray(usual[player]).std()))))
            learner = init(game, budget.bits)
            learner = learn(game, policies, learner, settings, learning, player, budget.batches, config=budget.config)
            found = play(
                game,
                policies,
                greedy_response(learner, settings),
                jax.random.fold_in(playing, player),
                player,
                matches=budget.matches,
                steps=budget.config.steps,
            )
            payoff.append(float(np.mean(np.asarray(found), dtype=np.float64)))
            error.append(float(np.std(np.asarray(found), dtype=np.float64)) / math.sqrt(budget.matches))
    return ResponseBound(tuple(payoff), tuple(error))


_MATCHES = 2**14  # that tell the spread of payoffs
