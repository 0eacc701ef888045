"""Lower bounds on the exploitability of policy functions, by play: for games that cannot be unrolled.

A function is asked on the host, for all matches of a batch at once, at every step. What it says of the information
sets that its matches reach, against itself and against uniform players, becomes a table, and approximate best responses
learn against that table on the device. Then they play against the function itself, so that the bound is one for the
function, whatever the table lacks.
"""

import time
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from gdlx.envs import env as envs
from gdlx.envs.packed import packed_env
from gdlx.solvers.bounds import approximate_response, estimates, search_bounds
from gdlx.solvers.mccfr import hash_table, table_policy, table_rows
from gdlx.solvers.policy_sources import function_policies

MATCHES = 1_024  # played at once
_MAX_ROWS = 2**19  # information sets of each player that are remembered
# Shares of the time: matches of the function, learning, matches of the responses.
_FUNCTION_SHARE, _LEARNING_SHARE = 0.35, 0.3
_MIN_BATCHES = 2  # of every kind of match: one for each half

Floats = npt.NDArray[np.float64]
_Scalar = TypeVar("_Scalar", bound=np.generic)


class FunctionBound(NamedTuple):
    """What play shows of a policy function. Axes: P players."""

    bound: estimates.ExploitabilityBound
    value: tuple[float, ...]  # [P] mean payoff
    value_error: tuple[float, ...]  # [P] its standard error
    table: table_policy.TablePolicy  # what the function said of the information sets that were reached
    missing: int  # information sets of those for which it had no policy; they were played uniformly


class _Player:
    """A player who follows the function. Axes: N information sets, A moves."""

    def __init__(self, function: function_policies.PolicyFunction, name: str) -> None:
        self._function, self._name = function, name
        self.rows: dict[int, Floats] = {}  # the key as one number -> [A]
        self.missing = 0

    def probabilities(self, infosets: function_policies.PlayedInformationSets) -> Floats:
        """Returns the policy [N, A], and asks the function only for what is not known yet."""
        keys, first, inverse = np.unique(_numbers(infosets.keys), return_index=True, return_inverse=True)
        known = [self.rows.get(key) for key in keys.tolist()]
        new = np.array([n for n, row in enumerate(known) if row is None], np.int64)
        if len(new):
            asked = infosets.take(first[new])
            table = function_policies.probabilities(self._function, self._name, asked)
            is_missing = np.isnan(table).any(axis=1)
            table[is_missing] = _uniform(asked.legal[is_missing])
            table = _normalised(table, self._name, asked)
            self.missing += int(is_missing.sum())
            for n, row in zip(new.tolist(), table, strict=True):
                known[n] = row
                if len(self.rows) < _MAX_ROWS:
                    self.rows[int(keys[n])] = row
        policy: Floats = np.stack([row for row in known if row is not None])[inverse]
        return policy


class _UniformPlayer:
    def probabilities(self, infosets: function_policies.PlayedInformationSets) -> Floats:
        return _uniform(infosets.legal)


class _Responder:
    """A player who follows a response where it has one, and the function elsewhere."""

    def __init__(self, response: table_policy.TablePolicy, otherwise: _Player, number: int) -> None:
        keys, probability = table_policy.to_arrays(response)
        words = np.stack([keys[0] ^ table_rows.player_salt(number), keys[1]], axis=1)
        self._row = dict(zip(_numbers(words).tolist(), probability, strict=True))
        self._otherwise = otherwise

    def probabilities(self, infosets: function_policies.PlayedInformationSets) -> Floats:
        policy = self._otherwise.probabilities(infosets).copy()
        for n, key in enumerate(_numbers(infosets.keys).tolist()):
            if key in self._row:
                policy[n] = self._row[key][: policy.shape[1]] * infosets.legal[n]
        return policy


AnyPlayer = _Player | _UniformPlayer | _Responder


class _Arena:
    """Matches on the host, in batches."""

    def __init__(self, env: envs.Env, steps: int, seed: int) -> None:
        env = env.tracking("info_key", "percepts")
        self._env, self._steps = env, steps
        self._key, self._batches = jax.random.key(seed), 0
        self._rng = np.random.default_rng(seed)
        self._step = jax.jit(jax.vmap(env.step))

    def play(self, players: Sequence[AnyPlayer]) -> tuple[Floats, int]:
        """Plays a batch; returns payoffs [P, B], the lowest for unfinished matches, and how many these are."""
        env, count = self._env, self._env.num_players
        self._batches += 1
        state = jax.tree.map(lambda x: jnp.broadcast_to(x, (MATCHES, *x.shape)), env.init())
        widths = [len(role.percepts) for role in env.propnet.players]
        made: list[npt.NDArray[np.int32]] = [np.zeros((MATCHES, 0), np.int32) for _ in range(count)]
        was_choice: list[npt.NDArray[np.bool_]] = [np.zeros((MATCHES, 0), np.bool_) for _ in range(count)]
        seen: list[npt.NDArray[np.bool_]] = [np.zeros((MATCHES, 0, width), np.bool_) for width in widths]
        payoff = np.zeros((count, MATCHES))
        over = np.asarray(state.terminated)
        for step in range(self._steps):
            if over.all():
                break
            legal, keys = np.asarray(state.legal_mask), np.asarray(state.info_key)
            actions = legal.argmax(axis=2).astype(np.int32)
            is_choice = legal.sum(axis=2) > 1
            for number, player in enumerate(players):
                lanes = np.flatnonzero(is_choice[:, number])
                if len(lanes):
                    arrays = function_policies.PlayedArrays(
                        legal[lanes, number, : len(env.propnet.players[number].moves)],
                        made[number][lanes],
                        was_choice[number][lanes],
                        seen[number][lanes],
                        keys[lanes, number],
                    )
                    infosets = function_policies.PlayedInformationSets(env, number, arrays)
                    actions[lanes, number] = self._sample(player.probabilities(infosets))
            streams = jax.random.fold_in(jax.random.fold_in(self._key, self._batches), step)
            state = self._step(state, actions, jax.random.split(streams, MATCHES))
            percepts = np.asarray(state.percepts)
            payoff += np.where(over[:, None], 0, np.asarray(state.rewards, np.float64)).T
            for number in range(count):
                made[number] = _append(made[number], actions[:, number])
                was_choice[number] = _append(was_choice[number], is_choice[:, number])
                seen[number] = _append(seen[number], percepts[:, number, : widths[number]])
            over = np.asarray(state.terminated)
        payoff[:, ~over] = env.payoff_range[0]
        return payoff, int((~over).sum())

    def _sample(self, policy: Floats) -> npt.NDArray[np.int32]:
        """One move for each row."""
        total = policy.cumsum(axis=1)
        draw = self._rng.uniform(size=(len(policy), 1)) * total[:, -1:]
        chosen = np.minimum((total <= draw).sum(axis=1), policy.shape[1] - 1)
        moves: npt.NDArray[np.int32] = chosen.astype(np.int32)
        return moves


def search(
    game: packed_env.PackedEnv,
    function: function_policies.PolicyFunction,
    name: str,
    *,
    seconds: float,
    steps: int,
    seed: int = 0,
) -> FunctionBound:
    """Bounds the exploitability of a policy function from below, and estimates its values.

    Args:
      game: the environment.
      function: the policy of all players.
      name: of the function, for errors.
      seconds: duration, without compilation; a few batches are played in any case.
      steps: capacity for joint actions of a match.
      seed: of all random choices.

    Raises:
      PolicyError: the function fails, or does not return probabilities of the legal moves.
      UnfinishedMatchesError: matches of the function exceed the capacity.

    >>> from gdlx.envs import make_env
    >>> def uniform(infosets):
    ...     return infosets.legal / infosets.legal.sum(axis=1, keepdims=True)
    >>> result = search(packed_env.PackedEnv(make_env.make("kuhn_poker")), uniform, "uniform", seconds=0.1, steps=8)
    >>> result.bound.exploitability < 0.458 + 4 * result.bound.standard_error
    True
    """
    env, config = game.env, search_bounds.make_config(game, steps)
    count = env.num_players
    arena = _Arena(env, steps, seed)
    followers = [_Player(function, name) for _ in range(count)]
    none = estimates.empty_moments(count)
    halves = estimates.SplitMatches(none, none)
    begun = time.perf_counter()
    while halves.estimation.matches < MATCHES or time.perf_counter() - begun < _FUNCTION_SHARE * seconds:
        payoff, unfinished = arena.play(followers)
        if unfinished:
            raise search_bounds.UnfinishedMatchesError(
                f"{unfinished:,} of {MATCHES:,} matches of {env.name} are longer than the capacity of {steps} joint "
                "actions"
            )
        halves = halves.plus(payoff)
        for number, follower in enumerate(followers):
            arena.play([follower if n == number else _UniformPlayer() for n in range(count)])
    table = _to_table(followers, env.num_actions)
    spread = np.sqrt(np.maximum(np.diag(halves.selection.covariance) * halves.selection.matches, 0)).tolist()
    matches = [
        _respond(game, arena, table, followers, number, seconds / count, float(spread[number]), config, seed)
        for number in range(count)
    ]
    bound = estimates.combine_matches(env.players, halves, matches, time.perf_counter() - begun)
    whole = halves.estimation
    errors = np.sqrt(np.maximum(np.diag(whole.covariance), 0)).tolist()
    missing = sum(follower.missing for follower in followers)
    return FunctionBound(bound, tuple(whole.mean.tolist()), tuple(errors), table, missing)


def _respond(
    game: packed_env.PackedEnv,
    arena: _Arena,
    table: table_policy.TablePolicy,
    followers: Sequence[_Player],
    number: int,
    seconds: float,
    spread: float,
    config: search_bounds.BoundConfig,
    seed: int,
) -> estimates.ResponderMatches:
    """Learns a response of one player, and plays it against the function."""
    settings = approximate_response.LearnerSettings(np.float32(approximate_response.clip_payoff_std(game, spread)))
    key = jax.random.fold_in(jax.random.key(seed), number)
    with jax.enable_x64(False):
        learner = approximate_response.init(game, config.bits)

        def learn(batches: int, before: approximate_response.LearnerState) -> approximate_response.LearnerState:
            after: approximate_response.LearnerState = approximate_response.learn(
                game, table, before, settings, key, number, batches, config=config.learning
            )
            after.visits.block_until_ready()
            return after

        learner = learn(0, learner)  # compiles
        begun = time.perf_counter()
        while time.perf_counter() - begun < _LEARNING_SHARE * seconds or int(learner.batches) < _MIN_BATCHES:
            learner = learn(1, learner)
        response = approximate_response.greedy_response(learner, settings)
    players: list[AnyPlayer] = list(followers)
    players[number] = _Responder(response, followers[number], number)
    played, begun = estimates.EMPTY_SPLIT, time.perf_counter()
    share = 1 - _FUNCTION_SHARE - _LEARNING_SHARE
    while played.estimation.matches < MATCHES or time.perf_counter() - begun < share * seconds:
        played = played.plus(arena.play(players)[0][number])
    sets = int(hash_table.count_used(learner.table))
    return estimates.ResponderMatches(played, estimates.EMPTY_SPLIT, int(learner.batches), sets)


def _to_table(followers: Sequence[_Player], num_actions: int) -> table_policy.TablePolicy:
    """What the function has said so far, as a hash table."""
    keys, rows = [np.zeros((2, 0), np.uint32)], [np.zeros((0, max(1, num_actions)), np.float32)]
    for number, follower in enumerate(followers):
        if follower.rows:
            known = np.fromiter(follower.rows, np.uint64, len(follower.rows))
            words = np.stack([(known >> np.uint64(32)), known & np.uint64(0xFFFFFFFF)]).astype(np.uint32)
            words[0] ^= table_rows.player_salt(number)
            narrow = np.stack(list(follower.rows.values())).astype(np.float32)
            keys.append(words)
            rows.append(np.pad(narrow, ((0, 0), (0, rows[0].shape[1] - narrow.shape[1]))))
    return table_policy.from_arrays(np.concatenate(keys, axis=1), np.concatenate(rows))


def _numbers(keys: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint64]:
    """Keys [N, 2] as one number each."""
    wide = keys.astype(np.uint64)
    return (wide[:, 0] << np.uint64(32)) | wide[:, 1]


def _uniform(legal: npt.NDArray[np.bool_]) -> Floats:
    even: Floats = legal / np.maximum(legal.sum(axis=1, keepdims=True), 1)
    return even


def _normalised(table: Floats, name: str, infosets: function_policies.PlayedInformationSets) -> Floats:
    return function_policies.require_sums(np.where(infosets.legal, table, 0.0), name, infosets)


def _append(rows: npt.NDArray[_Scalar], column: npt.NDArray[_Scalar]) -> npt.NDArray[_Scalar]:
    return np.concatenate([rows, column[:, None]], axis=1)
