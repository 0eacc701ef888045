"""Beliefs against posteriors by recursion over single games, and the errors for impossible percepts."""

import collections
import dataclasses
import functools
import itertools
import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
import scipy.stats

import gdlx
from gdlx.envs import host
from gdlx.envs.packed import packed_env
from gdlx.envs.trees import infoset_keys
from gdlx.envs.views import history
from gdlx.solvers.mccfr import table_policy, table_rows
from gdlx.solvers.search import beliefs, enumeration, function_policies
from gdlx.tests.helpers import samples

Identity = tuple[bytes, ...]  # registers, and the key of every player
FEW = beliefs.BeliefBudget(size=256, states=2**12, tries=2**18)
FILTERS = 100


class Match(NamedTuple):
    registers: bytes
    views: tuple[history.ActionObservationHistory, ...]

    @property
    def identity(self) -> Identity:
        return (self.registers, *(view.keys[-1].tobytes() for view in self.views))


@functools.cache
def lanes_of(name: str) -> packed_env.PackedEnv:
    return packed_env.PackedEnv(gdlx.make(name))


@functools.cache
def nodes_of(name: str) -> host.HostEnv:
    game = lanes_of(name).env
    return host.HostEnv(game.propnet, game.payoffs, 1_000)


def start(name: str) -> Match:
    game, nodes = lanes_of(name).env, nodes_of(name)
    registers = game.propnet.initial.tobytes()
    legal = nodes.position(registers).legal
    return Match(registers, tuple(history.ActionObservationHistory(game, n, mask) for n, mask in enumerate(legal)))


def after(name: str, match: Match, joint: tuple[int, ...], chance: int) -> Match:
    nodes = nodes_of(name)
    registers, percepts = nodes.transition(match.registers, joint, chance)
    legal = nodes.position(registers).legal
    events = (history.Event(*parts) for parts in zip(joint, percepts, legal, strict=True))
    return Match(registers, tuple(view.after(event) for view, event in zip(match.views, events, strict=True)))


def random_match(name: str, steps: int, seed: int) -> Match:
    rng, match = np.random.default_rng(seed), start(name)
    for _ in range(steps):
        position = nodes_of(name).position(match.registers)
        if position.terminal:
            break
        joint = tuple(int(rng.choice(actions)) for actions in position.legal)
        match = after(name, match, joint, int(rng.choice(position.chance)) if position.chance else 0)
    return match


Chosen = dict[tuple[int, bytes], npt.NDArray[np.float64]]  # policies by player and key


def posterior(
    name: str, view: history.ActionObservationHistory, policies: Chosen | None = None
) -> tuple[dict[Identity, float], float]:
    """Returns the probabilities of all states consistent with a view, and of the view given the player's actions."""
    weights_by_identity: dict[Identity, float] = collections.defaultdict(float)

    def visit(match: Match, weight: float) -> None:
        own_view = match.views[view.player]
        if own_view.events != view.events[: own_view.step]:
            return
        if own_view.step == view.step:
            weights_by_identity[match.identity] += weight
            return
        position = nodes_of(name).position(match.registers)
        options: list[list[tuple[int, float]]] = []
        for player, legal in enumerate(position.legal):
            chosen = (policies or {}).get((player, match.views[player].keys[-1].tobytes()))
            weights = [1.0 for _ in legal] if chosen is None else [chosen[action] for action in legal]
            options.append([(action, w / sum(weights)) for action, w in zip(legal, weights, strict=True)])
        options[view.player] = [(view.events[own_view.step].move, 1.0)]
        chances = position.chance or (0,)
        options.append([(outcome, 1 / len(chances)) for outcome in chances])
        for chosen_by_all in itertools.product(*options):
            *joint, outcome = (action for action, _ in chosen_by_all)
            visit(after(name, match, tuple(joint), outcome), weight * math.prod(p for _, p in chosen_by_all))

    visit(start(name), 1.0)
    total = sum(weights_by_identity.values())
    return {identity: weight / total for identity, weight in weights_by_identity.items()}, total


def count_histories(name: str, view: history.ActionObservationHistory) -> int:
    """Returns the number of histories that a player cannot distinguish from its own, by recursion over single games."""

    def visit(match: Match) -> int:
        own_view = match.views[view.player]
        if own_view.events != view.events[: own_view.step]:
            return 0
        if own_view.step == view.step:
            return 1
        position = nodes_of(name).position(match.registers)
        options = [*position.legal, position.chance or (0,)]
        options[view.player] = (view.events[own_view.step].move,)
        return sum(visit(after(name, match, tuple(joint), chance)) for *joint, chance in itertools.product(*options))

    return visit(start(name))


def identities(game: packed_env.PackedEnv, belief: beliefs.Belief) -> list[Identity]:
    seen = enumeration.take_snapshot(game, enumeration.ActiveGames(belief.games, belief.lanes))
    registers = seen.rows[: len(game.env.propnet.initial)]
    return [
        (registers[:, n].tobytes(), *(seen.keys[:, p, n].tobytes() for p in range(game.env.num_players)))
        for n in range(len(belief.lanes))
    ]


def summed(game: packed_env.PackedEnv, belief: beliefs.Belief) -> dict[Identity, float]:
    total: dict[Identity, float] = collections.defaultdict(float)
    for identity, weight in zip(identities(game, belief), belief.weights.tolist(), strict=True):
        total[identity] += weight
    return dict(total)


def p_value(exact: dict[Identity, float], counts: dict[Identity, int]) -> float:
    """Returns the p-value of the counts by a chi-square test; improbable states are pooled."""
    assert set(counts) <= set(exact)
    number = sum(counts.values())
    expected, seen = [0.0], [0]
    for identity, probability in sorted(exact.items()):
        if expected[-1] >= 8:
            expected.append(0.0)
            seen.append(0)
        expected[-1] += probability * number
        seen[-1] += counts.get(identity, 0)
    assert len(expected) > 1
    return float(scipy.stats.chisquare(seen, expected).pvalue)


@functools.cache
def skewed(name: str) -> tuple[table_policy.TablePolicy, Chosen]:
    """Returns policies that differ between information sets, as a table and for the recursion."""
    tree, game, rng = samples.load_tree(name), lanes_of(name).env, np.random.default_rng(1)
    keys, chosen = [], []
    by_key: Chosen = {}
    for number, player in enumerate(tree.players):
        high, low = infoset_keys.compute_infoset_keys(tree, number, game.num_actions)
        keys.append(np.stack([high ^ table_rows.player_salt(number), low]))
        policy = rng.uniform(0.1, 1, (player.sets, game.num_actions)) ** 3
        chosen.append(policy)
        by_key |= {(number, np.array(key, np.uint32).tobytes()): p for *key, p in zip(high, low, policy, strict=True)}
    table = table_policy.from_arrays(np.concatenate(keys, axis=1), np.concatenate(chosen).astype(np.float32))
    return table, by_key


class Case(NamedTuple):
    """A player's view during a match; the others play uniformly, or by policies that differ everywhere."""

    name: str
    steps: int
    seed: int
    player: int
    is_skewed: bool = False

    @property
    def game(self) -> packed_env.PackedEnv:
        return lanes_of(self.name)

    @property
    def view(self) -> history.ActionObservationHistory:
        return random_match(self.name, self.steps, self.seed).views[self.player]

    def belief(self, way: beliefs.BeliefMethod, seed: int = 0) -> beliefs.Belief:
        policies = skewed(self.name)[0] if self.is_skewed else None
        return beliefs.compute_belief(self.game, self.view, policies, method=way, budget=FEW, seed=seed)

    def posterior(self) -> tuple[dict[Identity, float], float]:
        return posterior(self.name, self.view, skewed(self.name)[1] if self.is_skewed else None)


CASES = pytest.mark.parametrize(
    "case",
    [Case("kuhn_poker", 3, 0, 1, is_skewed=True), Case("leduc_poker", 7, 1, 1), Case("blind_tictactoe", 2, 0, 0)],
    ids=lambda case: case.name,
)


@CASES
def test_enumeration_is_the_posterior(case: Case) -> None:
    assert len(case.view.legal) > 1
    exact, total = case.posterior()
    belief = case.belief("enumerate")
    got = summed(case.game, belief)
    assert len(belief.lanes) == len(got) == len(exact) > 1
    assert got == pytest.approx(exact, abs=1e-5)
    assert belief.report.likelihood == pytest.approx(total, rel=1e-4)
    assert (belief.report.accepted, belief.report.method) == (len(exact), "enumerate")
    assert belief.report.histories == count_histories(case.name, case.view)
    assert (belief.report.distinct, belief.report.complete) == (len(exact), True)
    if case.is_skewed:
        assert max(abs(exact[k] - p) for k, p in posterior(case.name, case.view)[0].items()) > 0.1


@CASES
def test_rejection_draws_from_the_posterior(case: Case) -> None:
    exact, total = case.posterior()
    belief = case.belief("rejection")
    assert belief.weights == pytest.approx(np.full(256, 1 / 256))
    assert p_value(exact, collections.Counter(identities(case.game, belief))) > 1e-3
    assert belief.report.likelihood == pytest.approx(total, abs=4 * np.sqrt(total / belief.report.tried))
    assert belief.report.accepted >= belief.report.requested == 256
    assert belief.report.distinct == len(summed(case.game, belief))
    assert belief.report.effective_sample_size <= belief.report.distinct
    assert not belief.report.complete
    assert belief.report.histories is None


@CASES
def test_particles_draw_from_the_posterior(case: Case) -> None:
    """One game of each of many filters: the games of one filter depend on one another."""
    exact, total = case.posterior()
    counts: collections.Counter[Identity] = collections.Counter()
    likelihoods = []
    for number in range(FILTERS):
        belief = case.belief("particles", number)
        one = belief._replace(lanes=belief.lanes[number : number + 1])
        counts.update(identities(case.game, one))
        likelihoods.append(belief.report.likelihood)
    assert p_value(exact, counts) > 1e-3
    assert np.mean(likelihoods) == pytest.approx(total, abs=4 * np.std(likelihoods) / np.sqrt(FILTERS))


@pytest.mark.parametrize(("way", "later"), [("auto", "enumerate"), ("guided", "guided"), ("sat", "sat")])
def test_a_tracker_continues_with_what_observations_leave_open(
    way: beliefs.BeliefMethod, later: beliefs.BeliefMethod
) -> None:
    """Its belief equals that of a new tracker that processes all events at once."""
    name, game = "leduc_poker", lanes_of("leduc_poker")
    view = random_match(name, 7, 1).views[1]
    few = beliefs.BeliefBudget(size=256, states=10)
    tracker = beliefs.BeliefTracker(game, view, method=way, budget=few)
    views = [history.ActionObservationHistory(view.game, view.player, view.first, view.events[:n]) for n in range(8)]
    methods = [tracker.update(view).report.method for view in views]
    assert methods[-1] == later
    exact, total = posterior(name, view)
    assert summed(game, tracker.belief()) == pytest.approx(exact, abs=0.1 if way == "guided" else 1e-9)
    assert tracker.belief().report.likelihood == pytest.approx(total, rel=0.2 if way == "guided" else 1e-6)
    again = beliefs.compute_belief(game, view, method=way, budget=few)
    assert summed(game, again) == pytest.approx(summed(game, tracker.belief()), abs=0.1)


@CASES
@pytest.mark.parametrize("way", ["auto", "guided", "sat"])
def test_what_observations_leave_open_has_the_posterior_weights(case: Case, way: beliefs.BeliefMethod) -> None:
    """Also if the others play policies that differ everywhere: `auto` enumerates no step here."""
    policies = skewed(case.name)[0] if case.is_skewed else None
    budget = beliefs.BeliefBudget(size=4_096, states=1 if way == "auto" else 4_096, merged=2**16)
    belief = beliefs.compute_belief(case.game, case.view, policies, method=way, budget=budget)
    exact, total = case.posterior()
    got = summed(case.game, belief)
    assert set(got) <= set(exact)
    assert got == pytest.approx(exact, abs=1e-5 if way == "sat" else 0.05)
    assert belief.report.likelihood == pytest.approx(total, rel=1e-4 if way == "sat" else 0.1)
    assert belief.report.complete == (way == "sat")
    if way == "auto":
        assert belief.report.histories == count_histories(case.name, case.view)


def by_function(name: str) -> function_policies.PolicyOfHistory:
    """The skewed policies as a function of what a player knows."""
    chosen = skewed(name)[1]

    def policy(view: history.ActionObservationHistory) -> npt.NDArray[np.float64]:
        table: npt.NDArray[np.float64] = chosen[view.player, view.keys[-1].tobytes()][list(view.legal)]
        return np.asarray(table / table.sum())

    return policy


@pytest.mark.parametrize(("way", "states"), [("auto", 4_096), ("auto", 1), ("guided", 4_096), ("sat", 4_096)])
def test_policies_may_be_a_function(way: beliefs.BeliefMethod, states: int) -> None:
    case = Case("kuhn_poker", 3, 0, 1, is_skewed=True)
    budget = beliefs.BeliefBudget(size=4_096, states=states)
    policy = by_function(case.name)
    belief = beliefs.compute_belief(case.game, case.view, policy, method=way, budget=budget)
    exact, total = case.posterior()
    is_exact = way == "sat" or (way == "auto" and states > 1)
    assert summed(case.game, belief) == pytest.approx(exact, abs=1e-5 if is_exact else 0.05)
    assert belief.report.likelihood == pytest.approx(total, rel=1e-4 if is_exact else 0.1)
    assert belief.report.complete == is_exact


def test_what_is_no_policy_is_refused() -> None:
    case = Case("kuhn_poker", 3, 0, 1)
    with pytest.raises(function_policies.InvalidPolicyError, match="must be 2 probabilities, of bet, check"):
        beliefs.compute_belief(case.game, case.view, lambda view: np.ones(3))
    with pytest.raises(function_policies.InvalidPolicyError, match="needs policies in tables"):
        beliefs.compute_belief(case.game, case.view, by_function(case.name), method="particles")


def test_a_belief_that_is_only_sampled_by_a_solver_is_biased() -> None:
    case = Case("blind_tictactoe", 2, 0, 0)
    budget = beliefs.BeliefBudget(states=3)
    report = beliefs.compute_belief(case.game, case.view, method="sat", budget=budget).report
    assert (report.biased, report.complete, report.accepted) == (True, False, 3)
    assert "biased" in str(report)


def test_a_late_contradiction_names_the_joint_action(monkeypatch: pytest.MonkeyPatch) -> None:
    """Percepts that only search proves impossible; the belief before stays as it was."""
    game, view = lanes_of("phantom_tictactoe"), random_match("phantom_tictactoe", 6, 26).views[1]
    budget = beliefs.BeliefBudget(states=1)
    tracker = beliefs.BeliefTracker(game, view, budget=budget)
    tracker.update(dataclasses.replace(view, events=view.events[:5]))
    before = tracker.belief().report
    wrong = view.events[5]._replace(percepts=tuple(range(len(game.env.propnet.players[1].percepts))))
    with pytest.raises(beliefs.ImpossiblePerceptsError, match="after joint action 6"):
        tracker.observe(wrong)
    assert tracker.belief().report == before
    assert tracker.update(view).report.histories == 192


def test_a_collapsed_sample_says_so() -> None:
    report = beliefs.Report("particles", 1_024, 1_024, 1_024, 0.1, distinct=4, effective_sample_size=4.0)
    assert report.collapsed
    assert str(report).endswith("collapsed")
    assert not report._replace(effective_sample_size=900.0).collapsed
    assert not report._replace(complete=True).collapsed


def test_particles_restart_with_more_if_none_is_consistent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two games seldom have the card that was dealt; other tests compile the program for 256 games too."""
    monkeypatch.setattr(beliefs, "_MORE", 128)
    game, view = lanes_of("kuhn_poker"), random_match("kuhn_poker", 3, 0).views[1]
    few, sizes = beliefs.BeliefBudget(size=2), set()
    for seed in range(40):
        belief = beliefs.compute_belief(game, view, skewed("kuhn_poker")[0], method="particles", budget=few, seed=seed)
        assert all(key == view.keys[-1].tobytes() for *_, key in identities(game, belief))
        assert belief.report.tried == (2 if belief.games.batch == 2 else 258)
        sizes.add(belief.games.batch)
    assert sizes == {2, 256}


def test_games_are_sampled_by_their_probabilities() -> None:
    name, game = "kuhn_poker", lanes_of("kuhn_poker")
    view = random_match(name, 3, 0).views[1]
    table, _ = skewed(name)
    belief = beliefs.compute_belief(game, view, table)
    games = belief.sample(game, 128, np.random.default_rng(0))
    assert games.batch == 128
    every = beliefs.Belief(games, np.arange(128, dtype=np.int32), np.full(128, 1 / 128), belief.report)
    assert summed(game, every) == pytest.approx(summed(game, belief), abs=1 / 128)


def kuhn_number(kind: str, name: str) -> int:
    role = lanes_of("kuhn_poker").env.propnet.players[0]
    return (role.moves if kind == "move" else role.percepts).index(name)


def test_the_error_describes_impossible_percepts() -> None:
    game = lanes_of("kuhn_poker")
    view = random_match("kuhn_poker", 2, 0).views[0]
    bet = kuhn_number("move", "bet")
    wrong = history.Event(bet, tuple(range(len(game.env.propnet.players[0].percepts))), ())
    with pytest.raises(
        beliefs.ImpossiblePerceptsError, match=r"joint action 3: it did bet, perceived \(dealt"
    ) as error:
        beliefs.compute_belief(game, view.after(wrong))
    assert "player1" in str(error.value)
    assert "kuhn_poker" in str(error.value)


def test_an_illegal_move_is_impossible() -> None:
    game = lanes_of("kuhn_poker")
    view = start("kuhn_poker").views[0]
    assert kuhn_number("move", "bet") not in view.legal
    event = history.Event(kuhn_number("move", "bet"), (), view.legal)
    with pytest.raises(beliefs.ImpossiblePerceptsError, match="cannot have done bet in joint action 1"):
        beliefs.compute_belief(game, view.after(event))


def test_a_wrong_start_is_impossible() -> None:
    view = history.ActionObservationHistory(lanes_of("kuhn_poker").env, 0, (kuhn_number("move", "bet"),))
    with pytest.raises(beliefs.ImpossiblePerceptsError, match="before joint action 1"):
        beliefs.compute_belief(lanes_of("kuhn_poker"), view)


@pytest.mark.parametrize("way", ["particles", "rejection"])
def test_sampling_does_not_call_anything_impossible(way: beliefs.BeliefMethod) -> None:
    game = lanes_of("kuhn_poker")
    view = random_match("kuhn_poker", 2, 0).views[1]
    last = view.events[1]._replace(percepts=())
    assert last != view.events[1]
    wrong = history.ActionObservationHistory(view.game, 1, view.first, (view.events[0], last))
    few, policies = beliefs.BeliefBudget(size=256, tries=2**9), skewed("kuhn_poker")[0]
    with pytest.raises(beliefs.NoConsistentStateError, match="not found to be impossible"):
        beliefs.compute_belief(game, wrong, policies, method=way, budget=few)
    with pytest.raises(beliefs.ImpossiblePerceptsError, match="joint action 2"):
        beliefs.compute_belief(game, wrong)


def test_too_many_states_to_enumerate() -> None:
    game = lanes_of("blind_tictactoe")
    view = random_match("blind_tictactoe", 2, 0).views[0]
    with pytest.raises(beliefs.TooManyStatesError, match="joint action 2"):
        beliefs.compute_belief(game, view, method="enumerate", budget=beliefs.BeliefBudget(states=20))
