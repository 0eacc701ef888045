"""States that a match may be in, for all that one player has done and seen of it.

The others are taken to play given policies, uniform ones if nothing is said; the player's own moves are as they were.
Then the states that agree with its sight have probabilities, and there are three ways to them:

- enumeration: all joint moves of the others and of chance, step by step, with exact weights. Equal states in which
  everybody knows the same are merged;
- particles: sampled games of which those that agree are copied in every step (`particles`);
- rejection: whole games from the start, of which those that agree are kept.

A `BeliefTracker` follows one match: it enumerates as long as the joint moves of a step are few enough, then goes on
from what it has with particles. `rate` of a report is the same thing whichever way it was found: how probable what
was seen is, given the player's own moves. Rejection keeps that part of its games.
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
from gdlx.propnet.common import errors
from gdlx.solvers.mccfr import table_policy
from gdlx.solvers.search import enumeration, particle_filter, rejection

BeliefMethod = Literal["auto", "enumeration", "particles", "rejection"]
_TREMBLE = 1e-6  # of policies: what they never do must not make a match impossible
_MORE = 8  # times the particles after all have died out


class ImpossiblePerceptsError(errors.UserError, ValueError):
    """What no play by the rules can give."""


class TooManyStatesError(errors.UserError, ValueError):
    """More states than enumeration may look at."""


class NoConsistentStateError(errors.UserError, RuntimeError):
    """Sampling that found no state that agrees. There may be some."""


class BeliefBudget(NamedTuple):
    size: int = 1_024  # games to sample
    states: int = 2**12  # joint moves of a step that are enumerated at most
    tries: int = 2**20  # games that are begun at most by sampling


_DEFAULT_BUDGET = BeliefBudget()


class Report(NamedTuple):
    """`tried` are the joint moves of the last step for enumeration, else the games that were begun."""

    method: BeliefMethod
    requested: int
    tried: int
    accepted: int
    likelihood: float

    def __str__(self) -> str:
        return f"{self.method}: {self.accepted:,} of {self.tried:,}, probability {self.likelihood:.3g}"


class Belief(NamedTuple):
    """Games that agree. Axes: N lanes that count."""

    games: packed_env.PackedState
    lanes: enumeration.Ints  # [N]
    weights: enumeration.Floats  # [N], their probabilities
    report: Report

    def sample(self, game: packed_env.PackedEnv, count: int, random: np.random.Generator) -> packed_env.PackedState:
        """So many games, each as often as it is probable: within 1 of the mean."""
        return enumeration.take(
            game, enumeration.ActiveGames(self.games, self.lanes), systematic_resample(self.weights, count, random)
        )


class _Exact(NamedTuple):
    """Axes: N states."""

    active: enumeration.ActiveGames
    weights: enumeration.Floats  # [N], their probabilities
    log_likelihood: float  # log probability of what was seen
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
    """States that agree with a player's sight."""
    if method == "rejection":
        return _rejected(game, view, policies, budget, seed)
    tracker = BeliefTracker(game, view, policies, way=method, effort=budget, seed=seed)
    return tracker.update(view)


class BeliefTracker:
    """One player's match, event by event: nothing is found out twice."""

    def __init__(
        self,
        game: packed_env.PackedEnv,
        view: history.ActionObservationHistory,
        policies: table_policy.TablePolicies | None = None,
        *,
        way: Literal["auto", "enumeration", "particles"] = "auto",
        effort: BeliefBudget = _DEFAULT_BUDGET,
        seed: int = 0,
    ) -> None:
        """Before the first event of the view, whichever it has."""
        self._game, self._policies = game, policies
        self._way, self._effort = way, effort
        self._seed, self._key = seed, jax.random.key(seed)
        self.view = history.ActionObservationHistory(view.game, view.player, view.first)
        start = enumeration.start(game)
        if not _agrees(enumeration.take_snapshot(game, start), self.view).all():
            raise ImpossiblePerceptsError(_wrong_start(game, self.view))
        self._exact = _Exact(start, np.ones(1), 0.0, 1)  # the last step that was enumerated
        self._enumerated = 0  # events until then
        self._sampled: particle_filter.Particles | None = None
        self._accepted = 0
        self._begun = 0

    def update(self, view: history.ActionObservationHistory) -> Belief:
        """What agrees after all that is new in the view of the same match."""
        for event in view.events[self.view.step :]:
            self.observe(event)
        return self.belief()

    def observe(self, event: history.Event) -> None:
        """One joint move more. After an error everything is as it was before."""
        if event.move not in self.view.legal:
            raise ImpossiblePerceptsError(_wrong_move(self.view, event))
        after = self.view.after(event)
        if self._way != "particles" and self._enumerated == self.view.step:
            exact = _enumerated(self._game, self._exact, self._policies, after, self._effort.states)
            if exact is not None:
                if not len(exact.weights):
                    raise ImpossiblePerceptsError(_impossible(self.view, event))
                self._exact, self._enumerated, self.view = exact, after.step, after
                return
            if self._way == "enumeration":
                raise TooManyStatesError(
                    f"joint move {after.step} of {after.game.name} has more than {self._effort.states:,} possibilities "
                    f"for {after.game.players[after.player]}; sample them (way particles), or allow for more states"
                )
        self._sampled, self.view = self._resampled(after), after

    def belief(self) -> Belief:
        if self._sampled is None:
            active, weights, evidence, tried = self._exact
            report = Report("enumeration", len(weights), tried, len(weights), math.exp(evidence))
            return Belief(active.games, active.lanes, weights, report)
        games = self._sampled.games
        rate = math.exp(float(self._sampled.log_likelihood[0]))
        report = Report("particles", self._effort.size, self._begun, self._accepted, rate)
        lanes = np.arange(games.batch, dtype=np.int32)
        return Belief(games, lanes, np.full(len(lanes), 1 / len(lanes)), report)

    def _resampled(self, view: history.ActionObservationHistory) -> particle_filter.Particles:
        """After the last event; if nothing is left, all since the last exact step once more, with more games."""
        start, last = self._begun, self._sampled
        found = self._filtered(last, view, view.step) if last is not None else self._begin(view, self._effort.size)
        size = self._effort.size if last is None else last.games.batch
        while found is None:
            size = min(_MORE * size, particle_filter.MAX_PARTICLES)
            if self._begun + size > start + self._effort.tries:
                raise NoConsistentStateError(_nothing(view, self._begun))
            found = self._begin(view, size)
        return found

    def _begin(self, view: history.ActionObservationHistory, size: int) -> particle_filter.Particles | None:
        """From the last exact step on, if any are left at the end."""
        random = np.random.default_rng((self._seed, self._enumerated, self._begun))
        chosen = random.permutation(systematic_resample(self._exact.weights, size, random))
        evidence = jnp.full(1, self._exact.log_likelihood, jnp.float32)
        found: particle_filter.Particles | None = particle_filter.Particles(
            enumeration.take(self._game, self._exact.active, chosen), evidence
        )
        self._begun += size
        for step in range(self._enumerated + 1, view.step + 1):
            found = None if found is None else self._filtered(found, view, step)
        return found

    def _filtered(
        self, before: particle_filter.Particles, view: history.ActionObservationHistory, step: int
    ) -> particle_filter.Particles | None:
        """After the event of a step, if any are left."""
        high, low = view.keys[step]
        with jax.enable_x64(False):
            found, part = _filter(
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
        self._accepted = round(float(part[0]) * before.games.batch)
        return found if self._accepted else None


_filter = jax.jit(particle_filter.step, static_argnames="game")


def systematic_resample(weights: enumeration.Floats, count: int, random: np.random.Generator) -> enumeration.Ints:
    """int32[count] positions, each as often as its weight says: within 1 of the mean (systematic resampling)."""
    total = np.cumsum(weights)
    marks = (np.arange(count) + random.random()) * (total[-1] / count)
    found: enumeration.Ints = np.searchsorted(total, marks, side="right").astype(np.int32)
    return np.minimum(found, np.int32(len(weights) - 1))


def _agrees(seen: enumeration.Snapshot, view: history.ActionObservationHistory) -> npt.NDArray[np.bool_]:
    """Lanes in which the player knows what it does after all events of the view."""
    return np.asarray((seen.keys[:, view.player] == view.keys[-1][:, None]).all(axis=0))


def _enumerated(
    game: packed_env.PackedEnv,
    before: _Exact,
    policies: table_policy.TablePolicies | None,
    view: history.ActionObservationHistory,
    most: int,
) -> _Exact | None:
    """After the last event of the view; None if that has too many possibilities."""
    forced = {view.player: view.events[-1].move}
    seen = enumeration.take_snapshot(game, before.active)
    number = int(enumeration.count_joint_actions(seen, forced).sum())
    if number > min(most, enumeration.MAX_LANES):
        return None
    if not number:
        return _Exact(before.active, np.zeros(0), -math.inf, 0)
    moves = enumeration.enumerate_joint_actions(seen, forced)
    weights = before.weights[moves.parent] * moves.share
    for player in range(game.env.num_players):
        if player != view.player:
            chosen = _policy(policies, before.active, seen.legal[player], player)
            weights *= chosen[moves.actions[player], moves.parent]
    after = enumeration.apply_joint_actions(game, before.active, moves)
    told = enumeration.take_snapshot(game, after)
    agree = np.flatnonzero(_agrees(told, view))
    if not len(agree):
        return _Exact(after, np.zeros(0), -math.inf, number)
    same = enumeration.merge_equal_states(enumeration.select_lanes(told, agree))
    active = enumeration.ActiveGames(after.games, after.lanes[agree[same.example]])
    summed = same.sums(weights[agree])
    total = float(summed.sum())
    return _Exact(active, summed / total, before.log_likelihood + math.log(total), number)


def _policy(
    policies: table_policy.TablePolicies | None,
    active: enumeration.ActiveGames,
    legal: npt.NDArray[np.bool_],
    player: int,
) -> enumeration.Floats:
    """[A, N] of the lanes that count."""
    even: enumeration.Floats = legal / np.maximum(legal.sum(axis=0), 1)
    if policies is None:
        return even
    with jax.enable_x64(False):
        found = np.asarray(_at_games(policies, active.games, player), np.float64)[:, active.lanes]
    return found + _TREMBLE * (even - found)


_at_games = jax.jit(table_policy.player_policy, static_argnames="number")


def _rejected(
    game: packed_env.PackedEnv,
    view: history.ActionObservationHistory,
    policies: table_policy.TablePolicies | None,
    effort: BeliefBudget,
    seed: int,
) -> Belief:
    batches = rejection.sample_batches(game, view, policies, effort.size, seed)
    begun = accepted = 0
    for batch in itertools.islice(batches, -(-effort.tries // rejection.BATCH)):
        begun, accepted, games = begun + rejection.BATCH, accepted + batch.num_accepted, batch.games
        if accepted >= effort.size:
            break
    if not accepted:
        raise NoConsistentStateError(_nothing(view, begun))
    kept = np.arange(min(accepted, effort.size), dtype=np.int32)
    report = Report("rejection", effort.size, begun, accepted, accepted / begun)
    return Belief(games, kept, np.full(len(kept), 1 / len(kept)), report)


def _describe_event(view: history.ActionObservationHistory, event: history.Event) -> str:
    move, percepts = view.event_names(event)
    seen = ", ".join(percepts) or "nothing"
    may = ", ".join(view.game.net.players[view.player].moves[n] for n in event.legal)
    return f"it did {move}, perceived {seen}, and then {f'may {may}' if may else 'has no move'}"


def _impossible(view: history.ActionObservationHistory, event: history.Event) -> str:
    return (
        f"no play of {view.game.name} gives {view.game.players[view.player]} what it was told of joint move "
        f"{view.step + 1}: {_describe_event(view, event)}. All before agrees with the rules; look whether the match is "
        "played by the same rules, and whether percepts went missing"
    )


def _wrong_move(view: history.ActionObservationHistory, event: history.Event) -> str:
    role = view.game.net.players[view.player]
    legal = ", ".join(role.moves[n] for n in view.legal) or "none"
    return (
        f"{role.name} cannot have done {role.moves[event.move]} in joint move {view.step + 1} of {view.game.name}: "
        f"the moves that it had were {legal}"
    )


def _wrong_start(game: packed_env.PackedEnv, view: history.ActionObservationHistory) -> str:
    role = view.game.net.players[view.player]
    told = ", ".join(role.moves[n] for n in view.first) or "none"
    return (
        f"{role.name} was told that its moves before joint move 1 of {game.env.name} are {told}, which is not what the "
        "rules say; look whether the match is played by the same rules"
    )


def _nothing(view: history.ActionObservationHistory, begun: int) -> str:
    return (
        f"none of {begun:,} sampled games of {view.game.name} gave {view.game.players[view.player]} what it knows "
        f"after joint move {view.step} ({_last(view)}); that is improbable, but it was not found to be impossible. "
        "Sample more games, or allow enumeration more states"
    )


def _last(view: history.ActionObservationHistory) -> str:
    return _describe_event(view, view.events[-1]) if view.events else "before the first move"
