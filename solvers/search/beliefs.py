"""Beliefs: the distribution over states of a match, conditional on one player's action-observation history.

The other players are assumed to follow known policies, uniform by default; the player's own actions are fixed. The
states that are consistent with the history then have probabilities, which several methods compute or sample:

- enumeration: all joint actions of the others and of chance, with exact weights. Equal states are merged;
- what the observations of the whole match leave open (`observed_histories`): listed, sampled with guidance, or found by
  a SAT solver;
- particles: sampled games, resampled in every step from those that are consistent (`particle_filter`);
- rejection: games sampled from the initial state, of which the consistent ones are accepted (`rejection`).

A `BeliefTracker` follows one match: it enumerates while the joint actions of a step are few enough, then continues with
what the observations leave open. The `likelihood` of a report means the same for all methods: the probability of the
player's observations, given its own actions. Rejection accepts that fraction of its games.
"""

import dataclasses
import itertools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from gdlx.envs.packed import packed_env
from gdlx.envs.views import history
from gdlx.propnet.common import seeds
from gdlx.propnet.observations import observation_circuit, plausible_moves, unit_propagation
from gdlx.solvers.mccfr import table_policy
from gdlx.solvers.search import (
    belief_report,
    enumeration,
    function_policies,
    observed_histories,
    particle_filter,
    rejection,
)

_MORE = 8  # factor on the number of particles after none was consistent

BeliefMethod = belief_report.BeliefMethod
BeliefBudget = belief_report.BeliefBudget
Report = belief_report.Report
ImpossiblePerceptsError = belief_report.ImpossiblePerceptsError
TooManyStatesError = belief_report.TooManyStatesError
NoConsistentStateError = belief_report.NoConsistentStateError

_DEFAULT_BUDGET = BeliefBudget()


class Belief(NamedTuple):
    """Consistent games with their probabilities. Axes: N active lanes."""

    games: packed_env.PackedState
    lanes: enumeration.Ints  # [N]
    weights: enumeration.Floats  # [N], their probabilities
    report: Report

    def sample(self, game: packed_env.PackedEnv, count: int, random: np.random.Generator) -> packed_env.PackedState:
        """Sample `count` games; each occurs as often as expected, to within 1 (systematic resampling)."""
        return enumeration.take(
            game, enumeration.ActiveGames(self.games, self.lanes), systematic_resample(self.weights, count, random)
        )


class _Exact(NamedTuple):
    """An enumerated belief. Axes: N states."""

    active: enumeration.ActiveGames
    weights: enumeration.Floats  # [N], their probabilities
    histories: enumeration.Counts  # [N], histories that lead to each
    log_likelihood: float  # log probability of the observations
    tried: int


def compute_belief(
    game: packed_env.PackedEnv,
    view: history.ActionObservationHistory,
    policies: function_policies.Policies | None = None,
    *,
    method: BeliefMethod = "auto",
    budget: BeliefBudget = _DEFAULT_BUDGET,
    seed: int = 0,
) -> Belief:
    """Computes the belief over states that are consistent with a player's view.

    Args:
      game: The game, in lockstep batches.
      view: The player's action-observation history.
      policies: Policies of the other players; uniform if None. Tables, or a function that returns the probabilities of
        the legal actions of an action-observation history.
      method: "auto" enumerates until that exceeds the budget, then lists or samples what the observations leave open,
        and at last asks a SAT solver; "guided" samples, "sat" only asks. A filter of "particles" and "rejection" do not
        look ahead. The report tells what was done.
      budget: Limits on the work.
      seed: Seed of the sampling methods.

    Returns:
      Games with their probabilities, and a report.

    Raises:
      ImpossiblePerceptsError: If the rules do not allow the view. Sampling does not detect impossible percepts.
      TooManyStatesError: If `method` is "enumerate" and a step has more than `budget.states` joint actions.
      NoConsistentStateError: If sampling did not find a consistent state.
    """
    if method == "rejection" and not callable(policies):
        return _sample_by_rejection(game, view, policies, budget, seed)
    tracker = BeliefTracker(game, view, policies, method=method, budget=budget, seed=seed)
    return tracker.update(view)


class BeliefTracker:
    """Tracks one player's belief during a match, event by event, without repeating work."""

    def __init__(
        self,
        game: packed_env.PackedEnv,
        view: history.ActionObservationHistory,
        policies: function_policies.Policies | None = None,
        *,
        method: BeliefMethod = "auto",
        budget: BeliefBudget = _DEFAULT_BUDGET,
        seed: int = 0,
    ) -> None:
        """Start before the first event of `view`; `update` processes the events."""
        self._game, self._policies = game, policies
        self._tables = None if callable(policies) else policies
        if callable(policies) and method not in ("auto", "guided", "sat"):
            raise function_policies.InvalidPolicyError(
                f"`method={method!r}` needs policies in tables; with a function use auto, guided or sat"
            )
        self._method, self._budget = method, budget
        self._seed, self._key = seed, jax.random.key(seed)
        self.view = history.ActionObservationHistory(view.game, view.player, view.first)
        start = enumeration.start(game)
        if not _is_consistent(enumeration.take_snapshot(game, start), self.view).all():
            raise ImpossiblePerceptsError(belief_report.wrong_start_message(game, self.view))
        self._exact = _Exact(start, np.ones(1), np.ones(1, object), 0.0, 1)  # after the last enumerated step
        self._enumerated = 0  # number of enumerated events
        self._plausible: plausible_moves.PlausibleMoves | None = None
        self._found: tuple[int, Belief] | None = None  # the step and what was found
        self._sampled: particle_filter.Particles | None = None
        self._accepted = 0
        self._begun = 0

    def update(self, view: history.ActionObservationHistory) -> Belief:
        """Process the new events of a view of the same match, and return the belief."""
        for event in view.events[self.view.step :]:
            self.observe(event)
        return self.belief()

    def observe(self, event: history.Event) -> None:
        """Process the event of one joint action. An error does not change the belief."""
        if event.move not in self.view.legal:
            raise ImpossiblePerceptsError(belief_report.wrong_move_message(self.view, event))
        after = self.view.after(event)
        if (
            self._method in ("auto", "enumerate")
            and self._enumerated == self.view.step
            and not callable(self._policies)
        ):
            exact = _enumerate_step(self._game, self._exact, self._tables, after, self._budget.states)
            if exact is not None:
                if not len(exact.weights):
                    raise ImpossiblePerceptsError(belief_report.impossible_message(self.view, event))
                self._exact, self._enumerated, self.view = exact, after.step, after
                return
            if self._method == "enumerate":
                raise TooManyStatesError(
                    f"joint action {after.step} of {after.game.name} has more than {self._budget.states:,} "
                    f"possibilities for {after.game.players[after.player]}; sample particles instead, or allow more "
                    "states"
                )
        if self._method != "particles":
            try:
                self._plausible = observed_histories.infer(self._plausible, after)
            except observation_circuit.ObservationTooLargeError:
                self._method = "particles"
            except unit_propagation.ContradictionError:
                self._plausible = None  # inferred again from the view before
                raise ImpossiblePerceptsError(belief_report.impossible_message(self.view, event)) from None
        if self._method == "particles":
            self._sampled = self._advance_particles(after)
        self.view = after

    def belief(self) -> Belief:
        """Returns the current belief.

        Raises:
          ImpossiblePerceptsError: If it is proved only now that the rules do not allow the observations.
          NoConsistentStateError: If no consistent state was found.
        """
        if self._enumerated < self.view.step and self._method != "particles":
            if self._found is None or self._found[0] != self.view.step:
                self._found = self.view.step, self._find_histories()
            if self._enumerated < self.view.step:
                return self._found[1]
        if self._sampled is None or self._enumerated == self.view.step:
            return _exact_belief(self._exact)
        games = self._sampled.games
        likelihood = math.exp(float(self._sampled.log_likelihood[0]))
        report = Report("particles", self._budget.size, self._begun, self._accepted, likelihood)
        lanes = np.arange(games.batch, dtype=np.int32)
        return _with_sample_size(self._game, Belief(games, lanes, np.full(games.batch, 1 / games.batch), report))

    def _find_histories(self) -> Belief:
        """The belief from what the observations leave open; if it is exact, enumeration continues from it."""
        assert self._plausible is not None
        random = np.random.default_rng((seeds.non_negative(self._seed), self.view.step))
        found = observed_histories.find_histories(
            self._game, self.view.player, self._plausible, self._policies, self._budget, random, self._method
        )
        if found is None:
            step = observed_histories.first_impossible_step(self.view, self._enumerated, self._budget)
            before = dataclasses.replace(self.view, events=self.view.events[:step])
            raise ImpossiblePerceptsError(belief_report.impossible_message(before, self.view.events[step]))
        if not found.report.accepted:
            tried = f"{found.report.tried:,} sampled histories"
            raise NoConsistentStateError(belief_report.no_state_message(self.view, tried))
        if found.report.complete and self._method == "auto" and not callable(self._policies):
            ones = np.ones(len(found.weights), object)
            self._exact = _merge(
                self._game, found.active, found.weights, ones, found.log_likelihood, found.report.tried
            )
            self._enumerated = self.view.step
        return _with_sample_size(self._game, Belief(*found.active, found.weights, found.report))

    def _advance_particles(self, view: history.ActionObservationHistory) -> particle_filter.Particles:
        """Filter by the last event; if no game is consistent, restart from the last exact step with more games."""
        started_before, last = self._begun, self._sampled
        particles = (
            self._filter_step(last, view, view.step)
            if last is not None
            else self._restart_particles(view, self._budget.size)
        )
        size = self._budget.size if last is None else last.games.batch
        while particles is None:
            size = min(_MORE * size, particle_filter.MAX_PARTICLES)
            if self._begun + size > started_before + self._budget.tries:
                raise NoConsistentStateError(belief_report.no_state_message(view, f"{self._begun:,} sampled games"))
            particles = self._restart_particles(view, size)
        return particles

    def _restart_particles(self, view: history.ActionObservationHistory, size: int) -> particle_filter.Particles | None:
        """Draws particles from the last exact belief and filters by all events since; None if no game is consistent."""
        random = np.random.default_rng((seeds.non_negative(self._seed), self._enumerated, self._begun))
        chosen = random.permutation(systematic_resample(self._exact.weights, size, random))
        log_likelihood = jnp.full(1, self._exact.log_likelihood, jnp.float32)
        particles: particle_filter.Particles | None = particle_filter.Particles(
            enumeration.take(self._game, self._exact.active, chosen), log_likelihood
        )
        self._begun += size
        for step in range(self._enumerated + 1, view.step + 1):
            particles = None if particles is None else self._filter_step(particles, view, step)
        return particles

    def _filter_step(
        self, before: particle_filter.Particles, view: history.ActionObservationHistory, step: int
    ) -> particle_filter.Particles | None:
        """Filter by the event of one step; None if no game is consistent."""
        high, low = view.keys[step]
        with jax.enable_x64(False):
            particles, fraction = _filter(
                self._game,
                before,
                table_policy.uniform_table_policy(self._game.env.num_actions) if self._tables is None else self._tables,
                jax.random.fold_in(jax.random.fold_in(self._key, step), self._begun),
                player=view.player,
                actions=np.array([view.events[step - 1].move], np.int32),
                keys=(high[None], low[None]),
            )
        self._accepted = round(float(fraction[0]) * before.games.batch)
        return particles if self._accepted else None


_filter = jax.jit(particle_filter.step, static_argnames="game")


def systematic_resample(weights: enumeration.Floats, count: int, random: np.random.Generator) -> enumeration.Ints:
    """Returns int32[count] indices, each as often as expected by its weight, to within 1 (systematic resampling)."""
    cumulative = np.cumsum(weights)
    points = (np.arange(count) + random.random()) * (cumulative[-1] / count)
    indices: enumeration.Ints = np.searchsorted(cumulative, points, side="right").astype(np.int32)
    return np.minimum(indices, np.int32(len(weights) - 1))


def _is_consistent(seen: enumeration.Snapshot, view: history.ActionObservationHistory) -> npt.NDArray[np.bool_]:
    """Returns which lanes are consistent with the view: the player's information is the same."""
    return np.asarray((seen.keys[:, view.player] == view.keys[-1][:, None]).all(axis=0))


def _enumerate_step(
    game: packed_env.PackedEnv,
    before: _Exact,
    policies: table_policy.TablePolicies | None,
    view: history.ActionObservationHistory,
    most: int,
) -> _Exact | None:
    """Advances an exact belief by the last event of the view; None if there are more than `most` joint actions."""
    forced = {view.player: view.events[-1].move}
    snapshot_before = enumeration.take_snapshot(game, before.active)
    count = int(enumeration.count_joint_actions(snapshot_before, forced).sum())
    if count > min(most, enumeration.MAX_LANES):
        return None
    if not count:
        return _Exact(before.active, np.zeros(0), np.zeros(0, object), -math.inf, 0)
    moves = enumeration.enumerate_joint_actions(snapshot_before, forced)
    weights = before.weights[moves.parent] * moves.share
    for player in range(game.env.num_players):
        if player != view.player:
            chosen = observed_histories.policy_rows(policies, before.active, snapshot_before.legal[player], player)
            weights *= chosen[moves.actions[player], moves.parent]
    after = enumeration.apply_joint_actions(game, before.active, moves)
    snapshot = enumeration.take_snapshot(game, after)
    consistent = np.flatnonzero(_is_consistent(snapshot, view))
    if not len(consistent):
        return _Exact(after, np.zeros(0), np.zeros(0, object), -math.inf, count)
    active = enumeration.ActiveGames(after.games, after.lanes[consistent])
    total = float(weights[consistent].sum())
    return _merge(
        game,
        active,
        weights[consistent] / total,
        before.histories[moves.parent[consistent]],
        before.log_likelihood + math.log(total),
        count,
        enumeration.select_lanes(snapshot, consistent),
    )


def _merge(
    game: packed_env.PackedEnv,
    active: enumeration.ActiveGames,
    weights: enumeration.Floats,
    histories: enumeration.Counts,
    log_likelihood: float,
    tried: int,
    snapshot: enumeration.Snapshot | None = None,
) -> _Exact:
    """Merges equal states of an exact belief; takes a snapshot of them if none is given."""
    same = enumeration.merge_equal_states(snapshot or enumeration.take_snapshot(game, active))
    counts = np.zeros(same.size, object)
    np.add.at(counts, same.number, histories)
    merged = enumeration.ActiveGames(active.games, active.lanes[same.example])
    return _Exact(merged, same.sums(weights), counts, log_likelihood, tried)


def _exact_belief(exact: _Exact) -> Belief:
    active, weights, histories, log_likelihood, tried = exact
    report = Report(
        "enumerate",
        requested=len(weights),
        tried=tried,
        accepted=len(weights),
        likelihood=math.exp(log_likelihood),
        histories=int(histories.sum()),
        distinct=len(weights),
        complete=True,
        effective_sample_size=effective_sample_size(weights),
    )
    return Belief(active.games, active.lanes, weights, report)


def _sample_by_rejection(
    game: packed_env.PackedEnv,
    view: history.ActionObservationHistory,
    policies: table_policy.TablePolicies | None,
    budget: BeliefBudget,
    seed: int,
) -> Belief:
    batches = rejection.sample_batches(game, view, policies, budget.size, seed)
    started = accepted = 0
    for batch in itertools.islice(batches, -(-budget.tries // rejection.BATCH)):
        started, accepted, games = started + rejection.BATCH, accepted + batch.num_accepted, batch.games
        if accepted >= budget.size:
            break
    if not accepted:
        raise NoConsistentStateError(belief_report.no_state_message(view, f"{started:,} sampled games"))
    report = Report("rejection", budget.size, started, accepted, accepted / started)
    count = min(accepted, budget.size)
    return _with_sample_size(game, Belief(games, np.arange(count, dtype=np.int32), np.full(count, 1 / count), report))


def _with_sample_size(game: packed_env.PackedEnv, belief: Belief) -> Belief:
    """The belief, with the number of distinct states and the effective sample size in its report."""
    active = enumeration.ActiveGames(belief.games, belief.lanes)
    same = enumeration.merge_equal_states(enumeration.take_snapshot(game, active))
    size = effective_sample_size(same.sums(belief.weights))
    return belief._replace(report=belief.report._replace(distinct=same.size, effective_sample_size=size))


def effective_sample_size(weights: enumeration.Floats) -> float:
    """Returns (sum of weights)^2 / sum of weights^2: n for n equal weights, 1 if one has all.

    >>> effective_sample_size(np.full(4, 0.25)), effective_sample_size(np.array([1.0, 0.0]))
    (4.0, 1.0)
    """
    return float(weights.sum() ** 2 / np.square(weights).sum())
