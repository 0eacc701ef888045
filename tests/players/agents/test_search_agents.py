"""Agents that search: their moves, their clocks, and the parts they are built from."""

import dataclasses
import functools
import itertools
import time
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
import pytest

from gdlx.envs import game_spec, host
from gdlx.envs.trees import infoset_keys
from gdlx.envs.views import history
from gdlx.players.agents import agent, match_beliefs, pimc_agent, subtree_cfr_agent, time_control, uct_agent, uniform
from gdlx.players.matches import arenas, match
from gdlx.solvers import tasks
from gdlx.solvers.search import beliefs, enumeration, rollouts, subtree_cfr

RANDOM = uniform.UniformAgent("random")
PLENTY = agent.Clock(1e6)


@functools.cache
def arena_of(game: str) -> agent.Arena:
    return arenas.make_arena(game)


def played(game: str, first: agent.Agent, second: agent.Agent, games: int) -> npt.NDArray[np.float64]:
    """Payoffs of the first agent, which rotates through the roles."""
    collected = []
    terms = match.MatchSettings(games=games, start_seconds=600, play_seconds=600)
    for batch in match.play_games(match.Match(arena_of(game), (first, second), terms)):
        assert not batch.incidents
        collected.append(batch.games.payoff[batch.games.agent == 0])
    return np.concatenate(collected)


def mind_of(player: agent.Agent, view: history.ActionObservationHistory, seed: int = 0) -> agent.Player:
    return player.start_match(
        agent.PlayerContext(arena_of(view.game.name), view.player, np.random.default_rng(seed)), PLENTY
    )


# ---- matches


@pytest.mark.slow
def test_uct_does_not_lose_tictactoe() -> None:
    searches = uct_agent.UctAgent(iterations=60, trees=16)
    against_random = played("tictactoe", searches, RANDOM, 12)
    assert against_random.min() >= 0
    assert against_random.mean() > 30
    against_itself = played("tictactoe", searches, dataclasses.replace(searches, name="itself"), 6)
    assert (against_itself == 0).sum() >= 4


def test_games_are_the_same_for_the_same_seed() -> None:
    searches = uct_agent.UctAgent(iterations=20, trees=16)
    view = match_beliefs.play_random_match(arena_of("tictactoe"), np.random.default_rng(1))[0]
    view = dataclasses.replace(view, events=view.events[:2])
    chosen = [[mind_of(searches, view, seed).choose(view, PLENTY) for _ in range(2)] for seed in range(4)]
    assert all(one == other for one, other in chosen)
    assert played("tictactoe", searches, RANDOM, 3).tolist() == played("tictactoe", searches, RANDOM, 3).tolist()


@pytest.mark.slow
def test_sampled_states_beat_random_play_where_most_is_hidden() -> None:
    """A random player gets 0 against another on average."""
    flat = pimc_agent.PimcAgent(iterations=1, states=32, visits=64, search="flat")
    assert played("blind_tictactoe", flat, RANDOM, 40).mean() > 15


def test_a_small_tree_beats_random_play() -> None:
    solves = subtree_cfr_agent.SubtreeCfrAgent(iterations=100)
    assert played("goofspiel:cards=3", solves, RANDOM, 60).mean() > 5


# ---- decisions

KUHN = "kuhn_poker"


def kuhn_views() -> Iterator[history.ActionObservationHistory]:
    """Of all decisions."""
    arena = arena_of(KUHN)
    nodes = host.HostEnv(arena.env.propnet, arena.env.payoffs, arena.steps)

    def visit(
        registers: bytes, views: list[history.ActionObservationHistory]
    ) -> Iterator[history.ActionObservationHistory]:
        position = nodes.position(registers)
        yield from (view for view in views if len(view.legal) > 1)
        for *joint, chance in itertools.product(*position.legal, position.chance or (0,)):
            if not position.terminal:
                after, percepts = nodes.transition(registers, tuple(joint), chance)
                legal = nodes.position(after).legal
                events = map(history.Event, joint, percepts, legal)
                yield from visit(after, [view.after(event) for view, event in zip(views, events, strict=True)])

    start = arena.env.propnet.initial.tobytes()
    first = [history.ActionObservationHistory(arena.env, n, own) for n, own in enumerate(nodes.position(start).legal)]
    return visit(start, first)


def kuhn_view(*message: str) -> history.ActionObservationHistory:
    """A decision of which all these are told."""
    return next(
        view for view in kuhn_views() if all(any(part in word for word in view.step_texts()) for part in message)
    )


@pytest.mark.parametrize(
    "player",
    [
        uct_agent.UctAgent(iterations=100, trees=16, table=12, by="value"),
        pimc_agent.PimcAgent(iterations=1, states=16, visits=100),
        subtree_cfr_agent.SubtreeCfrAgent(iterations=100),
    ],
    ids=lambda player: player.name,
)
def test_the_best_card_calls_and_the_worst_folds(player: agent.Agent) -> None:
    """Whatever the other one has."""
    moves = arena_of(KUHN).env.propnet.players[0].moves
    for card, move in (("jack", "fold"), ("king", "call")):
        view = kuhn_view(f"dealt {card}", "opponent_did bet")
        assert {moves[n] for n in view.legal} == {"call", "fold"}
        assert moves[mind_of(player, view).choose(view, PLENTY)] == move


def test_the_whole_tree_of_kuhn_poker_is_near_the_equilibrium() -> None:
    """The policies of a player at all decisions, evaluated on the unrolled game."""
    task = tasks.make_tree_task(game_spec.GameSpec(KUHN))
    solves = subtree_cfr_agent.SubtreeCfrAgent(iterations=300, depth=9)
    policies = [np.ones(player.sequences) for player in task.tree.players]
    keys = [
        infoset_keys.compute_infoset_keys(task.tree, n, arena_of(KUHN).env.num_actions).T.tolist() for n in range(2)
    ]
    by_player: dict[int, subtree_cfr_agent.SubtreeCfrPlayer] = {}
    for view in kuhn_views():
        player = by_player.setdefault(view.player, solves.start_match(_seat(view), PLENTY))
        number = keys[view.player].index(view.keys[-1].tolist())
        own = task.tree.players[view.player]
        span = slice(own.first[number], own.first[number + 1])
        assert own.action[span].tolist() == list(view.legal)
        policies[view.player][span] = player.policy(view, PLENTY)
    actual = task.metrics(tuple(policies))
    assert actual.exploitability is not None
    assert actual.exploitability < 0.005
    assert actual.value[0] == pytest.approx(-1 / 18, abs=0.005)


def _seat(view: history.ActionObservationHistory) -> agent.PlayerContext:
    return agent.PlayerContext(arena_of(view.game.name), view.player, np.random.default_rng(0))


def test_a_short_tree_starts_at_consistent_states() -> None:
    """With too few nodes for the game from its start."""
    view = kuhn_view("dealt king", "opponent_did bet")
    mind = subtree_cfr_agent.SubtreeCfrAgent(iterations=100, depth=2, nodes=20).start_match(_seat(view), PLENTY)
    assert mind.tree_from_root(view.step + 2) is None
    moves = [view.game.propnet.players[view.player].moves[n] for n in view.legal]
    assert dict(zip(moves, mind.policy(view, PLENTY), strict=True))["call"] > 0.95


def test_a_tree_with_too_few_nodes_for_a_move_is_refused() -> None:
    view = match_beliefs.play_random_match(arena_of("tictactoe"), np.random.default_rng(0))[0]
    view = history.ActionObservationHistory(view.game, 0, view.first)
    mind = subtree_cfr_agent.SubtreeCfrAgent(iterations=1, nodes=5).start_match(_seat(view), PLENTY)
    with pytest.raises(agent.AgentError, match="joint action 1 of tictactoe alone has more than 5"):
        mind.choose(view, PLENTY)


@pytest.mark.parametrize("kind", [uct_agent.UctAgent, pimc_agent.PimcAgent, subtree_cfr_agent.SubtreeCfrAgent])
def test_impossible_percepts_are_reported(kind: type) -> None:
    view = kuhn_view("dealt king")
    wrong = view.events[-1]._replace(percepts=())
    reported = history.ActionObservationHistory(view.game, view.player, view.first, (*view.events[:-1], wrong))
    with pytest.raises(beliefs.ImpossiblePerceptsError, match=f"joint action {view.step}"):
        mind_of(kind(iterations=1), reported).choose(reported, PLENTY)


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (uct_agent.UctAgent, {"seconds": 0}, "more than 0 seconds"),
        (uct_agent.UctAgent, {"iterations": 0}, "iterations is at least 1"),
        (uct_agent.UctAgent, {"trees": 0}, "trees is at least 1"),
        (uct_agent.UctAgent, {"c": -1}, "0 or more"),
        (uct_agent.UctAgent, {"table": 40}, "4 to 28"),
        (pimc_agent.PimcAgent, {"states": 0}, "states is at least 1"),
        (pimc_agent.PimcAgent, {"visits": 0}, "visits is at least 1"),
        (subtree_cfr_agent.SubtreeCfrAgent, {"depth": 0}, "depth is at least 1"),
        (subtree_cfr_agent.SubtreeCfrAgent, {"nodes": 10**6}, "at most 65,536 nodes"),
    ],
)
def test_wrong_options(kind: type, options: dict[str, float], message: str) -> None:
    with pytest.raises(agent.AgentError, match=message):
        kind(**options)


# ---- time


class Watch:
    """Time that passes only where a test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now)

    def clock(self) -> agent.Clock:
        return agent.Clock(1.0, self.now)


@pytest.mark.parametrize("each", [1e-5, 0.003, 0.2])
def test_thinking_ends_before_the_clock(monkeypatch: pytest.MonkeyPatch, each: float) -> None:
    watch = Watch(monkeypatch)
    clock = watch.clock()
    for portion in time_control.iteration_chunks(time_control.deadline(clock, None), None):
        watch.now += each * portion
    assert 0 < clock.remaining < 0.4
    watch.now = 100.0
    for portion in time_control.iteration_chunks(time_control.deadline(clock, 0.5), None):
        watch.now += each * portion
    assert 0.5 <= clock.remaining < 0.8


def test_chunks_of_fixed_iterations_do_not_depend_on_time(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = Watch(monkeypatch)
    made: list[list[int]] = [[], []]
    for each in (1e-5, 1e-3):
        for portion in time_control.iteration_chunks(time_control.deadline(watch.clock(), None), 100):
            watch.now += each * portion
            made[each > 1e-4].append(portion)
    assert made[0] == made[1]
    assert sum(made[0]) == 100


def test_fixed_iterations_end_with_the_clock_too(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = Watch(monkeypatch)
    clock = watch.clock()
    for portion in time_control.iteration_chunks(time_control.deadline(clock, None), 10**6):
        watch.now += 0.01 * portion
    assert clock.remaining > 0


# ---- parts


def test_values_of_random_play_agree_with_recursion() -> None:
    """From every node after two joint actions; payoffs of Kuhn poker are at most 2."""
    arena, rounds = arena_of(KUHN), 600
    active = enumeration.start(arena.packed)
    for _ in range(2):
        active = enumeration.apply_joint_actions(
            arena.packed,
            active,
            enumeration.enumerate_joint_actions(enumeration.take_snapshot(arena.packed, active), {}),
        )
    nodes = host.HostEnv(arena.env.propnet, arena.env.payoffs, arena.steps)

    def value(registers: bytes) -> float:
        position = nodes.position(registers)
        if position.terminal:
            return position.goals[0] - arena.env.payoffs.offset
        joint = list(itertools.product(*position.legal, position.chance or (0,)))
        return float(np.mean([value(nodes.transition(registers, tuple(move[:-1]), move[-1])[0]) for move in joint]))

    exact = [
        value(row.tobytes())
        for row in enumeration.take_snapshot(arena.packed, active).rows[: len(arena.env.propnet.initial)].T
    ]
    actual = rollouts.mean_payoffs(arena.packed, active.games, jax.random.key(0), np.int32(rounds), steps=arena.steps)
    got = np.asarray(actual)[:, active.lanes]
    assert len(exact) == 6
    assert np.ptp(exact) > 0.5
    np.testing.assert_allclose(got[0], exact, atol=4 * 2 / np.sqrt(rounds))
    np.testing.assert_allclose(got[1], -got[0], atol=1e-5)


def test_first_moves_of_random_play_come_equally_often() -> None:
    """Biased rock-paper-scissors: a sign is worth its mean against the three."""
    arena = arena_of("biased_rps")
    games = jax.jit(lambda: arena.packed.start(32))()
    counts, totals = rollouts.payoffs_by_first_action(
        arena.packed, games, jax.random.key(1), jnp.int32(300), player=1, steps=4
    )
    assert (np.asarray(counts) == 100).all()
    means = dict(zip(arena.env.propnet.players[1].moves, np.asarray(totals).sum(axis=1) / 3_200, strict=True))
    expected = {"rock": 25 / 3, "paper": 20 / 3, "scissors": -15.0}
    assert means == pytest.approx(expected, abs=4 * 32 / np.sqrt(3_200))


def test_subtree_cfr_solves_simultaneous_moves() -> None:
    """The only equilibrium of biased rock-paper-scissors, and the value 0."""
    arena = arena_of("biased_rps")
    limits = subtree_cfr.SubtreeLimits(nodes=64, rounds=1, steps=4)
    tree = subtree_cfr.build_subtree(
        arena.packed, enumeration.start(arena.packed), np.ones(1), 1, limits, jax.random.key(0)
    )
    assert tree is not None
    assert (tree.nodes, tree.is_complete) == (10, True)
    solver = subtree_cfr.SubtreeSolver(tree)
    for _ in range(2_000):
        solver.iterate()
    for player in range(2):
        policy = solver.average_policy(player, int(tree.infosets[player].key[0]))
        assert policy is not None
        actual = dict(zip(arena.env.propnet.players[player].moves, policy, strict=True))
        assert actual == pytest.approx({"rock": 1 / 16, "paper": 10 / 16, "scissors": 5 / 16}, abs=0.01)


def test_what_is_open() -> None:
    assert match_beliefs.is_fully_observable(arena_of("tictactoe"))
    assert match_beliefs.is_fully_observable(arena_of("biased_rps"))
    assert not match_beliefs.is_fully_observable(arena_of(KUHN))
    assert not match_beliefs.is_fully_observable(arena_of("blind_tictactoe"))
