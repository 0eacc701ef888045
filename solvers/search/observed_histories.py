"""Beliefs from what a player's observations leave open: histories are listed, sampled or found by SAT, then replayed.

The observations of the whole match decide which moves are plausible (`propnet.observations`), so that what was revealed
late guides what is sampled early. In order, until one is possible:

- histories are merged where their futures are equal, which counts them. All are listed if they are few, which gives the
  exact belief; otherwise they are sampled independently from the posterior;
- guided particles: weighted histories, sampled among plausible moves;
- a SAT solver. If it does not finish, nothing is known of how it selects, and the belief is reported as biased.

The others are taken to play uniformly while sampling; weights account for other policies afterwards.
"""

import time
from typing import NamedTuple

import jax
import numpy as np
import numpy.typing as npt

from gdlx.envs.packed import packed_env
from gdlx.envs.views import history
from gdlx.propnet.observations import (
    choices,
    guided_sampling,
    history_enumeration,
    plausible_moves,
    sat_histories,
)
from gdlx.solvers.mccfr import table_policy
from gdlx.solvers.search import belief_report, enumeration, function_policies

_GROWTH = 4  # factor on the number of guided particles if too few are left
_FEW = 1 / 16  # fraction of the effective sample size that is too few


class FoundHistories(NamedTuple):
    """Games that agree with a player's observations. Axes: N histories."""

    active: enumeration.ActiveGames
    weights: enumeration.Floats  # [N], their probabilities
    log_likelihood: float
    report: belief_report.Report  # without what depends on which states are equal


class _Selection(NamedTuple):
    """Histories, and how they were selected. Axes: N histories.

    exp(`log_correction`) times the probability of the moves of all others is the weight of a history. The weights add
    up to the probability of the observations.
    """

    method: belief_report.BeliefMethod
    histories: history_enumeration.Histories
    log_correction: enumeration.Floats  # [N]
    tried: int
    total: int | None = None  # number of all histories that agree
    complete: bool = False
    biased: bool = False


def find_histories(
    game: packed_env.PackedEnv,
    player: int,
    plausible: plausible_moves.PlausibleMoves,
    policies: function_policies.Policies | None,
    budget: belief_report.BeliefBudget,
    random: np.random.Generator,
    method: belief_report.BeliefMethod = "auto",
) -> FoundHistories | None:
    """Returns games that agree with a player's observations.

    Args:
      game: The game, in lockstep batches.
      player: The player.
      plausible: Its observations, with what follows from them.
      policies: Policies of the other players, as tables or as a function of their histories; uniform if None.
      budget: Limits on the work.
      random: The source of randomness.
      method: "guided" and "sat" skip what comes before them; "auto" takes the first that is possible.

    Returns:
      The games; None if it is proved that there are none, or no games if none was found.
    """
    left = choices.find_choices(plausible)
    selection = _select(left, budget, random, method)
    if not selection.histories.codes.shape[1]:
        if selection.complete:
            return None
        nothing = enumeration.ActiveGames(enumeration.start(game).games, np.zeros(0, np.int32))
        report = belief_report.Report(selection.method, budget.size, selection.tried, 0, 0.0)
        return FoundHistories(nothing, np.zeros(0), -np.inf, report)
    moves = selection.histories.moves(left)
    if callable(policies):
        active, _ = replay(game, player, moves, None)
        log_policies = function_policies.log_probability(game.env, player, moves, policies)
    else:
        active, log_policies = replay(game, player, moves, policies)
    log_weights = log_policies + selection.log_correction
    log_likelihood = float(np.logaddexp.reduce(log_weights))
    number = len(log_weights)
    report = belief_report.Report(
        selection.method,
        requested=number if selection.complete else budget.size,
        tried=selection.tried,
        accepted=number,
        likelihood=float(np.exp(log_likelihood)),
        histories=selection.total,
        complete=selection.complete,
        biased=selection.biased,
    )
    return FoundHistories(active, np.exp(log_weights - log_likelihood), log_likelihood, report)


def _select(
    left: choices.Choices,
    budget: belief_report.BeliefBudget,
    random: np.random.Generator,
    method: belief_report.BeliefMethod,
) -> _Selection:
    selection = None
    if method == "auto":
        selection = _enumerate(left, budget, random)
    if selection is None and method != "sat":
        selection = _sample(left, budget, random)
    if selection is not None and (method == "guided" or selection.complete or selection.histories.codes.shape[1]):
        return selection
    return _solve(left, budget, random)


def _enumerate(
    left: choices.Choices, budget: belief_report.BeliefBudget, random: np.random.Generator
) -> _Selection | None:
    """Lists all histories if they are few, else samples from all; None if they are too many to be merged."""
    try:
        merged = history_enumeration.MergedHistories(left, max_lanes=budget.merged)
    except history_enumeration.TooManyHistoriesError:
        return None
    if merged.histories <= min(budget.states, enumeration.MAX_LANES):
        batches = list(history_enumeration.list_histories(left))
        none = np.zeros((len(left.choices), 0), np.uint16)
        every = history_enumeration.Histories(
            np.concatenate([none, *(batch.codes for batch in batches)], axis=1),
            np.concatenate([np.zeros(0), *(batch.log_probability for batch in batches)]),
        )
        number = merged.histories
        return _Selection("enumerate", every, np.zeros(number), number, number, complete=True)
    sampled = merged.sample(budget.size, random)
    correction = merged.log_likelihood - np.log(budget.size) - sampled.log_probability
    return _Selection("enumerate", sampled, correction, budget.size, merged.histories)


def _sample(left: choices.Choices, budget: belief_report.BeliefBudget, random: np.random.Generator) -> _Selection:
    """Samples with guidance, with more particles if too few are left."""
    size, tried, begun = budget.size, 0, time.monotonic()
    while True:
        sample = guided_sampling.sample_histories(left, size, random)
        tried += size
        few = not len(sample.weights) or 1 / np.square(sample.weights).sum() < _FEW * budget.size
        size *= _GROWTH
        spent = time.monotonic() - begun
        if not few or size > enumeration.MAX_LANES or tried + size > budget.tries or _GROWTH * spent > budget.seconds:
            break
    histories, weights = sample.histories, sample.weights
    if len(weights) > budget.size:
        chosen = guided_sampling.resample(weights, budget.size, random)
        histories = history_enumeration.Histories(histories.codes[:, chosen], histories.log_probability[chosen])
        weights = np.full(budget.size, 1 / budget.size)
    correction = np.log(weights) + sample.log_likelihood - histories.log_probability
    return _Selection("guided", histories, correction, tried)


def _solve(left: choices.Choices, budget: belief_report.BeliefBudget, random: np.random.Generator) -> _Selection:
    """Finds as many histories as may be listed, which may be all."""
    wanted = min(budget.states, enumeration.MAX_LANES)
    seed = int(random.integers(2**31))
    result = sat_histories.find_histories(left, wanted=wanted + 1, seconds=budget.seconds, seed=seed, random=True)
    number = result.histories.codes.shape[1]
    if result.complete:
        return _Selection("sat", result.histories, np.zeros(number), number, number, complete=True)
    kept = history_enumeration.Histories(result.histories.codes[:, :wanted], result.histories.log_probability[:wanted])
    return _Selection("sat", kept, np.zeros(kept.codes.shape[1]), number, biased=True)


def infer(
    plausible: plausible_moves.PlausibleMoves | None, view: history.ActionObservationHistory, end: int | None = None
) -> plausible_moves.PlausibleMoves:
    """Returns what follows from a player's observations, with those that were not yet observed.

    Args:
      plausible: What followed from its first observations, which is changed; None to start.
      view: The player's action-observation history.
      end: How many joint actions to observe; all if None.

    Raises:
      ContradictionError: If the rules do not allow the observations. `plausible` is then of no use.
      ObservationTooLargeError: If the circuit of the observations is too large.
    """
    if plausible is None:
        plausible = plausible_moves.PlausibleMoves(view.game.propnet, view.player, view.first)
    for step in range(len(plausible.circuit.moves), view.step if end is None else end):
        plausible.extend(view.events[step], is_last=step + 1 == view.game.max_steps)
    return plausible


def first_impossible_step(
    view: history.ActionObservationHistory, possible: int, budget: belief_report.BeliefBudget
) -> int:
    """Returns the number, from 0, of the first joint action after which nothing agrees; `possible` ones do."""
    return (
        sat_histories.first_impossible(
            lambda end: choices.find_choices(infer(None, view, end)), possible, view.step, budget.seconds
        )
        - 1
    )


def replay(
    game: packed_env.PackedEnv,
    player: int,
    moves: npt.NDArray[np.int64],
    policies: table_policy.TablePolicies | None,
) -> tuple[enumeration.ActiveGames, enumeration.Floats]:
    """Plays histories move by move.

    Args:
      game: The game.
      player: The player whose moves are given.
      moves: int64[N, T, roles], the moves of all roles in N histories.
      policies: Policies of the other players; uniform if None.

    Returns:
      The games after the last move, and the log probability [N] of the moves of all others.
    """
    roles = game.env.propnet.roles
    players = [number for number, role in enumerate(roles) if not role.is_random]
    random = [number for number, role in enumerate(roles) if role.is_random]
    active, parent = enumeration.start(game), np.zeros(len(moves), np.int32)
    log_probability = np.zeros(len(moves))
    for step in range(moves.shape[1]):
        seen = enumeration.take_snapshot(game, active)
        lanes = np.arange(len(active.lanes))
        rank = np.zeros(len(moves))
        if random:
            legal = seen.rows[game.layout.chance][:, parent]
            below = np.arange(len(legal))[:, None] < moves[:, step, random[0]]
            rank = (legal & below).sum(axis=0)
            log_probability -= np.log(seen.outcomes[parent])
        actions = moves[:, step, players].T.astype(np.int32)
        for other in range(game.env.num_players):
            if other != player:
                rows = policy_rows(policies, active, seen.legal[other], other)
                log_probability += np.log(rows[actions[other], lanes[parent]])
        chance = ((rank + 0.5) / seen.outcomes[parent]).astype(np.float32)
        joint = enumeration.JointActions(parent, actions, chance, np.ones(len(moves)))
        active = enumeration.apply_joint_actions(game, active, joint)
        parent = np.arange(len(moves), dtype=np.int32)
    if not moves.shape[1]:
        active = enumeration.ActiveGames(active.games, np.zeros(len(moves), np.int32))
    return active, log_probability


def policy_rows(
    policies: table_policy.TablePolicies | None,
    active: enumeration.ActiveGames,
    legal: npt.NDArray[np.bool_],
    player: int,
) -> enumeration.Floats:
    """Returns a player's policy [A, N] in the active lanes, in which it does anything legal with some probability."""
    uniform: enumeration.Floats = legal / np.maximum(legal.sum(axis=0), 1)
    if policies is None:
        return uniform
    with jax.enable_x64(False):
        policy = np.asarray(_player_policy_jit(policies, active.games, player), np.float64)[:, active.lanes]
    return policy + function_policies.TREMBLE * (uniform - policy)


_player_policy_jit = jax.jit(table_policy.player_policy, static_argnames="number")
