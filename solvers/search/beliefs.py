"""Beliefs: the distribution over states of a match, conditional on one player's action-observation history.

The other players are assumed to follow known policies, uniform by default; the player's own actions are fixed. The
states that are consistent with the history then have probabilities, which three methods compute or sample:

- enumeration: all joint actions of the others and of chance, step by step, with exact weights. Equal states in which
  all players have the same information are merged;
- particles: sampled games, resampled in every step from those that are consistent (`particle_filter`);
- rejection: games sampled from the initial state, of which the consistent ones are accepted (`rejection`).

A `BeliefTracker` follows one match: it enumerates while the joint actions of a step are few enough, then continues with
particles drawn from its last exact belief. The `likelihood` of a report means the same for all methods: the probability
of the player's observations, given its own actions. Rejection accepts that fraction of its games.
"""

import itertools
import math
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from gdlx.envs.packed import packed_env
from gdlx.envs.views import history
from gdlx.propnet.common import errors, seeds
from gdlx.solvers.mccfr import table_policy
from gdlx.solvers.search import enumeration, particle_filter, rejection

BeliefMethod = Literal["auto", "enumerate", "particles", "rejection"]
_TREMBLE = 1e-6  # uniform fraction mixed into policies: an action of probability 0 must not make a match impossible
_MORE = 8  # factor on the number of particles after none was consistent


class ImpossiblePerceptsError(errors.UserError, ValueError):
    """Percepts that are impossible under the rules."""


class TooManyStatesError(errors.UserError, ValueError):
    """More joint actions in a step than enumeration is allowed to consider."""


class NoConsistentStateError(errors.UserError, RuntimeError):
    """Sampling did not find a consistent state. One may exist."""


class BeliefBudget(NamedTuple):
    """Limits on the work of computing a belief."""

    size: int = 1_024  # games to sample
    states: int = 2**12  # maximal number of joint actions of a step to enumerate
    tries: int = 2**20  # maximal number of games that sampling starts


_DEFAULT_BUDGET = BeliefBudget()


class Report(NamedTuple):
    """How a belief was computed. `tried` counts joint actions of the last step for enumeration, else games started.

    Attributes:
      method: How the states were found.
      requested: Games that were asked for; for enumeration, the states that there are.
      tried: What was looked at.
      accepted: How many of those were consistent.
      likelihood: The probability of the player's observations, given its own actions.
      histories: How many histories are consistent, exactly; None if they were not counted.
      distinct: Distinct states with the information of all players in the belief.
      complete: Whether these are all there are.
      effective_sample_size: (sum of weights)^2 / sum of weights^2, over distinct states. Far below `requested` it
        shows that a sampled belief has collapsed.
    """

    method: BeliefMethod
    requested: int
    tried: int
    accepted: int
    likelihood: float
    histories: int | None = None
    distinct: int = 0
    complete: bool = False
    effective_sample_size: float = 0.0

    def __str__(self) -> str:
        return f"{self.method}: {self.accepted:,} of {self.tried:,}, probability {self.likelihood:.3g}"


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
    policies: table_policy.TablePolicies | None = None,
    *,
    method: BeliefMethod = "auto",
    budget: BeliefBudget = _DEFAULT_BUDGET,
    seed: int = 0,
) -> Belief:
    """Computes the belief over states that are consistent with a player's view.

    Args:
      game: The game, in lockstep batches.
      view: The player's action-observation history.
      policies: Policies of the other players; uniform if None.
      method: Enumeration, particles or rejection; "auto" enumerates until that exceeds the budget, then uses particles.
      budget: Limits on the work.
      seed: Seed of the sampling methods.

    Returns:
      Games with their probabilities, and a report.

    Raises:
      ImpossiblePerceptsError: If the rules do not allow the view. Sampling does not detect impossible percepts.
      TooManyStatesError: If `method` is "enumerate" and a step has more than `budget.states` joint actions.
      NoConsistentStateError: If sampling did not find a consistent state.
    """
    if method == "rejection":
        return _sample_by_rejection(game, view, policies, budget, seed)
    tracker = BeliefTracker(game, view, policies, method=method, budget=budget, seed=seed)
    return tracker.update(view)


class BeliefTracker:
    """Tracks one player's belief during a match, event by event, without repeating work."""

    def __init__(
        self,
        game: packed_env.PackedEnv,
        view: history.ActionObservationHistory,
        policies: table_policy.TablePolicies | None = None,
        *,
        method: Literal["auto", "enumerate", "particles"] = "auto",
        budget: BeliefBudget = _DEFAULT_BUDGET,
        seed: int = 0,
    ) -> None:
        """Start before the first event of `view`; `update` processes the events."""
        self._game, self._policies = game, policies
        self._method, self._budget = method, budget
        self._seed, self._key = seed, jax.random.key(seed)
        self.view = history.ActionObservationHistory(view.game, view.player, view.first)
        start = enumeration.start(game)
        if not _is_consistent(enumeration.take_snapshot(game, start), self.view).all():
            raise ImpossiblePerceptsError(_wrong_start_message(game, self.view))
        self._exact = _Exact(start, np.ones(1), np.ones(1, object), 0.0, 1)  # after the last enumerated step
        self._enumerated = 0  # number of enumerated events
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
            raise ImpossiblePerceptsError(_wrong_move_message(self.view, event))
        after = self.view.after(event)
        if self._method != "particles" and self._enumerated == self.view.step:
            exact = _enumerate_step(self._game, self._exact, self._policies, after, self._budget.states)
            if exact is not None:
                if not len(exact.weights):
                    raise ImpossiblePerceptsError(_impossible_message(self.view, event))
                self._exact, self._enumerated, self.view = exact, after.step, after
                return
            if self._method == "enumerate":
                raise TooManyStatesError(
                    f"joint action {after.step} of {after.game.name} has more than {self._budget.states:,} "
                    f"possibilities for {after.game.players[after.player]}; sample particles instead, or allow more "
                    "states"
                )
        self._sampled, self.view = self._advance_particles(after), after

    def belief(self) -> Belief:
        """Returns the current belief."""
        if self._sampled is None:
            active, weights, histories, log_likelihood, tried = self._exact
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
        games = self._sampled.games
        likelihood = math.exp(float(self._sampled.log_likelihood[0]))
        report = Report("particles", self._budget.size, self._begun, self._accepted, likelihood)
        return _sampled_belief(self._game, games, games.batch, report)

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
                raise NoConsistentStateError(_no_state_message(view, self._begun))
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
                table_policy.uniform_table_policy(self._game.env.num_actions)
                if self._policies is None
                else self._policies,
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
            chosen = _policy(policies, before.active, snapshot_before.legal[player], player)
            weights *= chosen[moves.actions[player], moves.parent]
    after = enumeration.apply_joint_actions(game, before.active, moves)
    snapshot = enumeration.take_snapshot(game, after)
    consistent = np.flatnonzero(_is_consistent(snapshot, view))
    if not len(consistent):
        return _Exact(after, np.zeros(0), np.zeros(0, object), -math.inf, count)
    same = enumeration.merge_equal_states(enumeration.select_lanes(snapshot, consistent))
    active = enumeration.ActiveGames(after.games, after.lanes[consistent[same.example]])
    summed = same.sums(weights[consistent])
    histories = np.zeros(same.size, object)
    np.add.at(histories, same.number, before.histories[moves.parent[consistent]])
    total = float(summed.sum())
    return _Exact(active, summed / total, histories, before.log_likelihood + math.log(total), count)


def _policy(
    policies: table_policy.TablePolicies | None,
    active: enumeration.ActiveGames,
    legal: npt.NDArray[np.bool_],
    player: int,
) -> enumeration.Floats:
    """Returns a player's policy [A, N] in the active lanes."""
    uniform: enumeration.Floats = legal / np.maximum(legal.sum(axis=0), 1)
    if policies is None:
        return uniform
    with jax.enable_x64(False):
        policy = np.asarray(_player_policy_jit(policies, active.games, player), np.float64)[:, active.lanes]
    return policy + _TREMBLE * (uniform - policy)


_player_policy_jit = jax.jit(table_policy.player_policy, static_argnames="number")


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
        raise NoConsistentStateError(_no_state_message(view, started))
    report = Report("rejection", budget.size, started, accepted, accepted / started)
    return _sampled_belief(game, games, min(accepted, budget.size), report)


def _sampled_belief(game: packed_env.PackedEnv, games: packed_env.PackedState, count: int, report: Report) -> Belief:
    """The belief of the first `count` games, equally probable, with the number of distinct ones in its report."""
    active = enumeration.ActiveGames(games, np.arange(count, dtype=np.int32))
    weights = np.full(count, 1 / count)
    same = enumeration.merge_equal_states(enumeration.take_snapshot(game, active))
    size = effective_sample_size(same.sums(weights))
    return Belief(games, active.lanes, weights, report._replace(distinct=same.size, effective_sample_size=size))


def effective_sample_size(weights: enumeration.Floats) -> float:
    """Returns (sum of weights)^2 / sum of weights^2: n for n equal weights, 1 if one has all.

    >>> effective_sample_size(np.full(4, 0.25)), effective_sample_size(np.array([1.0, 0.0]))
    (4.0, 1.0)
    """
    return float(weights.sum() ** 2 / np.square(weights).sum())


def _describe_event(view: history.ActionObservationHistory, event: history.Event) -> str:
    move, percepts = view.event_names(event)
    perceived = ", ".join(percepts) or "nothing"
    legal = ", ".join(view.game.propnet.players[view.player].moves[n] for n in event.legal)
    return f"it did {move}, perceived {perceived}, and then {f'may {legal}' if legal else 'has no legal move'}"


def _impossible_message(view: history.ActionObservationHistory, event: history.Event) -> str:
    return (
        f"the rules of {view.game.name} do not allow what was reported to {view.game.players[view.player]} after joint "
        f"action {view.step + 1}: {_describe_event(view, event)}. All earlier events are consistent with the rules; "
        "check that the match uses the same rules, and that no percepts were lost"
    )


def _wrong_move_message(view: history.ActionObservationHistory, event: history.Event) -> str:
    role = view.game.propnet.players[view.player]
    legal = ", ".join(role.moves[n] for n in view.legal) or "none"
    return (
        f"{role.name} cannot have done {role.moves[event.move]} in joint action {view.step + 1} of {view.game.name}: "
        f"its legal moves were {legal}"
    )


def _wrong_start_message(game: packed_env.PackedEnv, view: history.ActionObservationHistory) -> str:
    role = view.game.propnet.players[view.player]
    reported = ", ".join(role.moves[n] for n in view.first) or "none"
    return (
        f"the legal moves reported to {role.name} before joint action 1 of {game.env.name} are {reported}, which "
        "differs from the rules; check that the match uses the same rules"
    )


def _no_state_message(view: history.ActionObservationHistory, started: int) -> str:
    return (
        f"none of {started:,} sampled games of {view.game.name} is consistent with the history of "
        f"{view.game.players[view.player]} after joint action {view.step} ({_last_event(view)}); this is improbable, "
        "but was not found to be impossible. Sample more games, or allow enumeration more states"
    )


def _last_event(view: history.ActionObservationHistory) -> str:
    return _describe_event(view, view.events[-1]) if view.events else "before the first move"
