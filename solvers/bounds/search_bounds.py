"""Anytime search for lower bounds on exploitability by sampled play: no tree is needed.

Two responders exploit the frozen policies of the others for each player: one learns (`approximate_response`), the other
looks one action ahead (`local_best_response`). `estimates` combines their matches to bounds.

Time is divided into rounds of growing length, and every round ends with a bound from the matches so far, so that a
search can stop at any time. Report the last bound: the best of several would be biased upwards.
"""

import math
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import jax
import numpy as np

from gdlx.envs import game_facts
from gdlx.envs.packed import packed_env
from gdlx.propnet.common import errors
from gdlx.solvers import tasks
from gdlx.solvers.bounds import approximate_response, estimates, local_best_response
from gdlx.solvers.mccfr import hash_table, table_policy

DEFAULT_SECONDS = 30.0
_ROUNDS = 4  # each but the first as long as all before it
# Shares of the time: matches of the policies, learning, matches of the approximate response, local best responses.
_POLICY_MATCHES_SHARE, _LEARNING_SHARE, _RESPONSE_MATCHES_SHARE, _LOCAL_SHARE = 0.05, 0.5, 0.3, 0.15
_FIRST_MATCHES = 16  # batches of matches of the policies before the first round
_BATCHES = 4  # per call of the learner
_TABLE_BYTES = 2**27  # of a learner
_MAX_BITS = 20


class UnfinishedMatchesError(errors.UserError, ValueError):
    """Matches that are longer than the capacity for joint actions."""


class BoundConfig(NamedTuple):
    """Static settings of the responders. `steps` is the capacity for joint actions, 2^bits that of a table."""

    learning: approximate_response.LearnerConfig
    local: local_best_response.ResponderConfig
    bits: int
    matches: int = 2**12  # played at once

    @property
    def steps(self) -> int:
        return self.learning.steps


def make_config(game: packed_env.PackedEnv, steps: int) -> BoundConfig:
    """Builds the config for a game, with tables that fit into memory."""
    bits = min(_MAX_BITS, hash_table.largest_bits(approximate_response.row_bytes(game), _TABLE_BYTES))
    return BoundConfig(approximate_response.LearnerConfig(steps), local_best_response.ResponderConfig(steps), bits)


def search(
    game: packed_env.PackedEnv,
    policies: table_policy.TablePolicies,
    key: jax.Array,
    *,
    seconds: float,
    config: BoundConfig,
) -> Iterator[estimates.ExploitabilityBound]:
    """Yields bounds, each from more matches than the one before.

    Args:
      game: the environment.
      policies: the policies to exploit.
      key: consumed.
      seconds: duration of the search, without compilation.
      config: see `make_config`.

    Raises:
      UnfinishedMatchesError: matches of the policies exceed the capacity for joint actions.
    """
    if game.env.num_players == 0:
        yield estimates.ExploitabilityBound((), None, 0.0, 0.0)
        return
    baseline = _PolicyMatches(game, policies, jax.random.fold_in(key, 0), config)
    for _ in range(_FIRST_MATCHES):
        baseline.play()
    responders = [
        _PlayerResponders(
            game, policies, jax.random.fold_in(key, 1 + number), config, number, baseline.payoff_std(number)
        )
        for number in range(game.env.num_players)
    ]
    for responder in responders:
        responder.compile()
    work = [
        _Work(_POLICY_MATCHES_SHARE, baseline.play),
        *(
            _Work(share / len(responders), do)
            for responder in responders
            for share, do in (
                (_LEARNING_SHARE, responder.learn),
                (_RESPONSE_MATCHES_SHARE, responder.play_approximate),
                (_LOCAL_SHARE, responder.play_local),
            )
        ),
    ]
    begun, before = time.perf_counter(), 0.0
    for number in reversed(range(_ROUNDS)):
        until = seconds / 2**number
        for item in work:
            item.do_for(until - before)
        before = until
        matches = [responder.matches_so_far() for responder in responders]
        yield estimates.combine_matches(game.env.players, baseline.halves, matches, time.perf_counter() - begun)


def bound_policy(
    task: tasks.TableTask, policy: table_policy.TablePolicy, seconds: float, seed: int, max_steps: int = 0
) -> estimates.ExploitabilityBound:
    """Search for so many seconds, and return the last bound for the policies of a table task."""
    steps = max_steps or game_facts.probe(task.env.propnet, seed).step_capacity
    *_, last = search(
        task.packed, policy, jax.random.key(seed), seconds=seconds, config=make_config(task.packed, steps)
    )
    return last


class _Work:
    """A function that is called repeatedly for a share of the time."""

    def __init__(self, share: float, do: Callable[[], None]) -> None:
        self._share, self._do = share, do
        self._allowed = self._spent = 0.0  # seconds
        self._times = 0

    def do_for(self, seconds: float) -> None:
        self._allowed += self._share * seconds
        while self._spent + self._spent / max(self._times, 1) <= self._allowed:
            begun = time.perf_counter()
            self._do()
            self._spent += time.perf_counter() - begun
            self._times += 1


class _PolicyMatches:
    """Matches in which all players follow their policies."""

    def __init__(
        self, game: packed_env.PackedEnv, policies: table_policy.TablePolicies, key: jax.Array, config: BoundConfig
    ) -> None:
        self._game, self._policies, self._key, self._config = game, policies, key, config
        none = estimates.empty_moments(game.env.num_players)
        self.halves = estimates.SplitMatches(none, none)

    def play(self) -> None:
        matches = table_policy.play_matches(
            self._game,
            self._policies,
            self._key,
            first=sum(half.matches for half in self.halves),
            matches=self._config.matches,
            steps=self._config.steps,
        )
        if unfinished := int((~np.asarray(matches.ended)).sum()):
            raise UnfinishedMatchesError(
                f"{unfinished:,} of {self._config.matches:,} matches of {self._game.env.name} are longer than the "
                f"capacity of {self._config.steps} joint actions; if the policies were sampled into a table, resume "
                f"that run with `max_steps={2 * self._config.steps}`"
            )
        self.halves = self.halves.plus(matches.payoff)

    def payoff_std(self, player: int) -> float:
        """Returns the standard deviation of a player's payoffs."""
        moments = self.halves.selection
        variance = moments.covariance[player, player] * moments.matches
        return approximate_response.clip_payoff_std(self._game, math.sqrt(max(variance, 0.0)))


class _PlayerResponders:
    """The responders of one player."""

    def __init__(
        self,
        game: packed_env.PackedEnv,
        policies: table_policy.TablePolicies,
        key: jax.Array,
        config: BoundConfig,
        player: int,
        spread: float,
    ) -> None:
        self._game, self._policies, self._config, self._player = game, policies, config, player
        self._learning_key, self._approximate_key, self._local_key = jax.random.split(key, 3)
        self._settings = approximate_response.LearnerSettings(np.float32(spread))
        self._learner = approximate_response.init(game, config.bits)
        self._response: table_policy.TablePolicy | None = None
        self._approximate = self._local = estimates.EMPTY_SPLIT
        self._approximate_batches = self._local_batches = 0

    def compile(self) -> None:
        self._learn(0)
        self.play_approximate()
        self.play_local()

    def learn(self) -> None:
        self._learn(_BATCHES)

    def _learn(self, count: int) -> None:
        with jax.enable_x64(False):
            self._learner = approximate_response.learn(
                self._game,
                self._policies,
                self._learner,
                self._settings,
                self._learning_key,
                self._player,
                count,
                config=self._config.learning,
            )
            self._learner.visits.block_until_ready()
        self._response, self._approximate = None, estimates.EMPTY_SPLIT  # earlier matches were of another response

    def play_approximate(self) -> None:
        with jax.enable_x64(False):
            if self._response is None:
                self._response = approximate_response.greedy_response(self._learner, self._settings)
            payoff = approximate_response.play(
                self._game,
                self._policies,
                self._response,
                jax.random.fold_in(self._approximate_key, self._approximate_batches),
                self._player,
                matches=self._config.matches,
                steps=self._config.steps,
            )
        self._approximate_batches += 1
        self._approximate = self._approximate.plus(payoff)

    def play_local(self) -> None:
        with jax.enable_x64(False):
            key = jax.random.fold_in(self._local_key, self._local_batches)
            payoff = local_best_response.play(self._game, self._policies, key, self._player, config=self._config.local)
        self._local_batches += 1
        self._local = self._local.plus(payoff)

    def matches_so_far(self) -> estimates.ResponderMatches:
        while not self._approximate.estimation.matches:
            self.play_approximate()
        sets = int(hash_table.count_used(self._learner.table))
        return estimates.ResponderMatches(self._approximate, self._local, int(self._learner.batches), sets)
