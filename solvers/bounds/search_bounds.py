"""Bounds on what players could gain against saved policies, found by playing for some time: no tree is needed.

Two responders look for gains of one player while everybody else's policies are frozen: one that learns (`exploiter`)
and one that looks a move ahead (`local_response`). `gains` says how their matches make a bound.

Time is divided among rounds that grow, and every round ends with a bound from matches of what is known by then, so that
one may stop at any time. Report the last one: the best of several would be too large on average.
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
# Parts of the time of a round: matches of the policies, learning, matches of what was learnt, local responses.
_POLICY_MATCHES_SHARE, _LEARNING_SHARE, _RESPONSE_MATCHES_SHARE, _LOCAL_SHARE = 0.05, 0.5, 0.3, 0.15
_FIRST_MATCHES = 16  # times that policies are played before the first round
_BATCHES = 4  # learnt from at a time
_TABLE_BYTES = 2**27  # of a learner
_MOST_BITS = 20


class UnfinishedMatchesError(errors.UserError, ValueError):
    """Matches for whose ends there is no room."""


class BoundConfig(NamedTuple):
    """How responders are played. `steps` is the room for joint moves, 2^bits that for sets of a learner."""

    learning: approximate_response.LearnerConfig
    local: local_best_response.ResponderConfig
    bits: int
    matches: int = 2**12  # played at once

    @property
    def steps(self) -> int:
        return self.learning.steps


def make_config(game: packed_env.PackedEnv, steps: int) -> BoundConfig:
    bits = min(_MOST_BITS, (_TABLE_BYTES // approximate_response.row_bytes(game)).bit_length() - 1)
    return BoundConfig(approximate_response.LearnerConfig(steps), local_best_response.ResponderConfig(steps), bits)


def search(
    game: packed_env.PackedEnv,
    policies: table_policy.TablePolicies,
    key: jax.Array,
    *,
    seconds: float,
    config: BoundConfig,
) -> Iterator[estimates.ExploitabilityBound]:
    """Bounds, each from more work than the one before, the last after so many seconds; compiling is left out."""
    if game.env.num_players == 0:
        yield estimates.ExploitabilityBound((), None, 0.0, 0.0)
        return
    usual = _PolicyMatches(game, policies, jax.random.fold_in(key, 0), config)
    for _ in range(_FIRST_MATCHES):
        usual.play()
    seats = [
        _PlayerResponders(game, policies, jax.random.fold_in(key, 1 + number), config, number, usual.payoff_std(number))
        for number in range(game.env.num_players)
    ]
    for seat in seats:
        seat.compile()
    part = 1 / len(seats)
    work = [
        _Work(_POLICY_MATCHES_SHARE, usual.play),
        *(
            _Work(share * part, do)
            for seat in seats
            for share, do in (
                (_LEARNING_SHARE, seat.learn),
                (_RESPONSE_MATCHES_SHARE, seat.play_learnt),
                (_LOCAL_SHARE, seat.play_local),
            )
        ),
    ]
    begun, before = time.perf_counter(), 0.0
    for number in reversed(range(_ROUNDS)):
        until = seconds / 2**number
        for own in work:
            own.do_for(until - before)
        before = until
        found = [seat.matches_so_far() for seat in seats]
        yield estimates.combine_matches(game.env.players, usual.halves, found, time.perf_counter() - begun)


def bound_policy(
    task: tasks.TableTask, policy: table_policy.TablePolicy, seconds: float, seed: int, max_steps: int = 0
) -> estimates.ExploitabilityBound:
    """The last bound that a search finds for policies that were sampled into a table."""
    steps = max_steps or game_facts.probe(task.env.net, seed).step_capacity
    *_, found = search(
        task.packed, policy, jax.random.key(seed), seconds=seconds, config=make_config(task.packed, steps)
    )
    return found


class _Work:
    """Work that takes a part of the time, done again as long as that lasts."""

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
    """Matches in which everybody plays its policy."""

    def __init__(
        self, game: packed_env.PackedEnv, policies: table_policy.TablePolicies, key: jax.Array, plan: BoundConfig
    ) -> None:
        self._game, self._policies, self._key, self._plan = game, policies, key, plan
        none = estimates.empty_moments(game.env.num_players)
        self.halves = estimates.SplitMatches(none, none)

    def play(self) -> None:
        found = table_policy.play_matches(
            self._game,
            self._policies,
            self._key,
            first=sum(half.matches for half in self.halves),
            matches=self._plan.matches,
            steps=self._plan.steps,
        )
        if unfinished := int((~np.asarray(found.ended)).sum()):
            raise UnfinishedMatchesError(
                f"{unfinished:,} of {self._plan.matches:,} matches of {self._game.env.name} went on after "
                f"{self._plan.steps} joint moves, for which there is no room; if they were sampled into a table, "
                f"resume that run with `max_steps={2 * self._plan.steps}`"
            )
        self.halves = self.halves.plus(found.payoff)

    def payoff_std(self, player: int) -> float:
        known = self.halves.selection
        variance = known.covariance[player, player] * known.matches
        return approximate_response.clip_payoff_std(self._game, math.sqrt(max(variance, 0.0)))


class _PlayerResponders:
    """The responders of one player."""

    def __init__(
        self,
        game: packed_env.PackedEnv,
        policies: table_policy.TablePolicies,
        key: jax.Array,
        plan: BoundConfig,
        player: int,
        spread: float,
    ) -> None:
        self._game, self._policies, self._plan, self._player = game, policies, plan, player
        self._learning, self._playing, self._trying = jax.random.split(key, 3)
        self._settings = approximate_response.LearnerSettings(np.float32(spread))
        self._learner = approximate_response.init(game, plan.bits)
        self._response: table_policy.TablePolicy | None = None
        self._learnt = self._local = estimates.EMPTY_SPLIT
        self._played = self._tried = 0

    def compile(self) -> None:
        self._learn(0)
        self.play_learnt()
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
                self._learning,
                self._player,
                count,
                config=self._plan.learning,
            )
            self._learner.visits.block_until_ready()
        self._response, self._learnt = None, estimates.EMPTY_SPLIT  # what it got before it learnt more does not count

    def play_learnt(self) -> None:
        with jax.enable_x64(False):
            if self._response is None:
                self._response = approximate_response.greedy_response(self._learner, self._settings)
            payoff = approximate_response.play(
                self._game,
                self._policies,
                self._response,
                jax.random.fold_in(self._playing, self._played),
                self._player,
                matches=self._plan.matches,
                steps=self._plan.steps,
            )
        self._played += 1
        self._learnt = self._learnt.plus(payoff)

    def play_local(self) -> None:
        with jax.enable_x64(False):
            key = jax.random.fold_in(self._trying, self._tried)
            payoff = local_best_response.play(self._game, self._policies, key, self._player, config=self._plan.local)
        self._tried += 1
        self._local = self._local.plus(payoff)

    def matches_so_far(self) -> estimates.ResponderMatches:
        while not self._learnt.estimation.matches:
            self.play_learnt()
        sets = int(hash_table.count_used(self._learner.table))
        return estimates.ResponderMatches(self._learnt, self._local, int(self._learner.batches), sets)
