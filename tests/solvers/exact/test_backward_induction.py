"""Backward induction against the sequence form, linear programs and plain recursion."""

import functools

import jax
import numpy as np
import pytest

from gdlx.envs.states import infoset_states, state_graph, state_index
from gdlx.envs.trees import game_tree, unroll
from gdlx.propnet import games
from gdlx.propnet.circuits import propnet
from gdlx.solvers import infoset_values, state_policies, tabular_policies, tasks
from gdlx.solvers.exact import backward_induction, lp
from gdlx.tests.helpers import random_state_games


@functools.cache
def compiled(rules: str) -> propnet.PropNet:
    return games.compile_game(rules) if len(rules) < 100 else games.compile_game(rules=rules)


def random_policies(graph: state_graph.StateGraph, seed: int) -> tabular_policies.Policies:
    rng = np.random.default_rng(seed)
    return tuple(
        tabular_policies.normalise(player, rng.random(player.sequences) * (rng.random(player.sequences) < 0.7))
        for player in graph.players
    )


def plain_values(graph: state_graph.StateGraph) -> list[list[float]]:
    """Backward induction as a recursion, for turn-taking games."""

    @functools.cache
    def value(state: int) -> list[float]:
        if graph.is_terminal[state]:
            return [float(number) for number in graph.payoff[state]]
        widths = graph.width[state].tolist()
        edges = graph.successor[graph.first_edge[state] : graph.first_edge[state + 1]].tolist()
        chance = int(graph.chance[state])
        options = [
            np.mean([value(child) for child in edges[n : n + chance]], axis=0).tolist()
            for n in range(0, len(edges), chance)
        ]
        mover = next((n for n, width in enumerate(widths) if width > 1), 0)
        best: list[float] = max(options, key=lambda option: option[mover])  # the first of equal ones
        return best

    return [value(state) for state in range(graph.states)]


SHEETS = [
    *(random_state_games.generate_sheet(seed) for seed in range(4)),
    *(random_state_games.generate_sheet(seed, chance=True) for seed in range(6, 10)),
]
LIBRARY = [
    "rps",
    "biased_rps",
    "repeated_rps:rounds=3",
    "goofspiel:info=perfect,cards=4",
    "simultaneous_breakthrough:width=2,height=4",
]


@pytest.mark.parametrize("rules", [*SHEETS, *LIBRARY], ids=[*(f"random {n}" for n in range(len(SHEETS))), *LIBRARY])
def test_values_are_those_of_linear_programs_on_the_tree(rules: str) -> None:
    game = compiled(rules)
    graph = state_graph.build(game)
    solved = backward_induction.solve(graph)
    tree = unroll.unroll(game)
    assert graph.zero_sum
    assert tree.zero_sum
    expected = lp.solve(tree)
    task = tasks.make_tree_task("rps", tree)
    with jax.enable_x64(True):
        on_tree = tasks.make_tree_task("rps", tree).metrics(state_policies.to_tree(solved.policies, graph, game, tree))
        by_lp = task.metrics(expected.policies)
    # HiGHS is accurate to 1e-7 of payoffs up to 50.
    assert solved.values[0, 0] == pytest.approx(by_lp.value[0], abs=1e-5)
    # The policies are an equilibrium of the whole game, where players remember how they came to a state.
    assert on_tree.nash_conv == pytest.approx(0.0, abs=1e-9)
    assert on_tree.nash_conv is not None
    assert on_tree.nash_conv <= solved.error_bound + 1e-9
    assert on_tree.value == pytest.approx(solved.values[0].tolist(), abs=1e-9)


@pytest.mark.parametrize("chance", [False, True])
@pytest.mark.parametrize("players", [1, 2, 3])
@pytest.mark.parametrize("zero_sum", [False, True])
def test_any_policies_are_measured_as_on_the_tree(players: int, chance: bool, zero_sum: bool) -> None:
    for seed in range(3):
        rules = random_state_games.generate_sheet(
            seed, players=players, zero_sum=zero_sum and players == 2, chance=chance
        )
        game = compiled(rules)
        graph = state_graph.build(game)
        policies = random_policies(graph, seed)
        measured = backward_induction.evaluate(graph, policies)
        tree = unroll.unroll(game)
        with jax.enable_x64(True):
            on_tree = tasks.make_tree_task("rps", tree).metrics(state_policies.to_tree(policies, graph, game, tree))
        assert measured.value.tolist() == pytest.approx(on_tree.value, abs=1e-9)
        assert measured.improvements.tolist() == pytest.approx(on_tree.improvements, abs=1e-9)


@pytest.mark.parametrize("players", [1, 2, 3])
@pytest.mark.parametrize("chance", [False, True])
def test_turn_taking_games_are_solved_as_by_recursion(players: int, chance: bool) -> None:
    for seed in range(4):
        rules = random_state_games.generate_sheet(
            seed, players=players, simultaneous=False, zero_sum=False, chance=chance
        )
        graph = state_graph.build(compiled(rules))
        solved = backward_induction.solve(graph)
        np.testing.assert_allclose(solved.values, plain_values(graph), atol=1e-12)
        assert solved.matrix_games == 0
        for policy in solved.policies:
            assert set(policy.tolist()) <= {0.0, 1.0}  # pure
        assert backward_induction.evaluate(graph, solved.policies).improvements.tolist() == pytest.approx(
            [0.0] * players
        )


def test_policies_are_optimal_from_every_state_on() -> None:
    graph = state_graph.build(games.compile_game("simultaneous_tictactoe"))
    solved = backward_induction.solve(graph)
    values = graph.payoff.copy()
    best = graph.payoff.copy()
    for batch in graph.batches:
        after = graph.successors(batch)
        played = backward_induction.strategies(graph, solved.policies, batch)
        for player in range(2):
            values[batch.states, player] = backward_induction.expect(values[:, player][after].mean(axis=-1), played)
            responses = backward_induction.expect(best[:, player][after].mean(axis=-1), played, keep=player)
            best[batch.states, player] = responses.max(axis=1)
    assert np.abs(best - values).max() <= solved.error_bound + 1e-9
    np.testing.assert_allclose(values, solved.values, atol=1e-9)


def test_known_values() -> None:
    # Tic-tac-toe is a draw; so is Connect Four on 4x4 (Tromp, "John's Connect Four Playground").
    tictactoe = backward_induction.solve(state_graph.build(games.compile_game("tictactoe")))
    assert tictactoe.values[0].tolist() == [0.0, 0.0]
    connect_four = backward_induction.solve(state_graph.build(games.compile_game("connect_four:width=4,height=4")))
    assert connect_four.values[0].tolist() == [0.0, 0.0]


def test_the_first_of_equal_actions_is_taken() -> None:
    graph = state_graph.build(games.compile_game("tictactoe"))
    policy = backward_induction.solve(graph).policies[0]
    assert policy[1:10].tolist() == [1.0] + [0.0] * 8  # all openings draw


def test_games_without_a_guarantee_are_refused() -> None:
    rules = random_state_games.generate_sheet(0, zero_sum=False)
    with pytest.raises(backward_induction.NotSolvableError, match=r"is not zero-sum.*choose at once.*`states=True`"):
        backward_induction.solve(state_graph.build(compiled(rules)))
    rules = random_state_games.generate_sheet(0, players=3, zero_sum=False)
    with pytest.raises(backward_induction.NotSolvableError, match="more than two players"):
        backward_induction.solve(state_graph.build(compiled(rules)))


@pytest.mark.parametrize("seed", range(3))
def test_values_of_decisions_are_those_of_the_tree(seed: int) -> None:
    game = compiled(random_state_games.generate_sheet(seed, chance=seed == 2))
    graph = state_graph.build(game)
    policies = random_policies(graph, seed)
    tree = unroll.unroll(game)
    on_tree = state_policies.to_tree(policies, graph, game, tree)
    for number in range(2):
        actual = backward_induction.decision_values(graph, policies, number)
        expected = infoset_values.infoset_values(tree, on_tree, number)
        # Information sets of the tree with the same state add up.
        states = _states_of(graph, game, tree, number)
        reach = np.bincount(states, weights=expected.reach, minlength=graph.players[number].sets)
        np.testing.assert_allclose(actual.reach, reach, atol=1e-9)
        known = np.isfinite(expected.value)
        np.testing.assert_allclose(actual.value[states[known]], expected.value[known], atol=1e-9)


def _states_of(
    graph: state_graph.StateGraph, game: propnet.PropNet, tree: game_tree.GameTree, number: int
) -> game_tree.Ints:
    """The information set in the graph of every information set of the tree."""
    index = state_index.StateIndex(graph.words.shape[1])
    index.add(graph.words)
    decisions: game_tree.Ints = graph.decision[index.find(infoset_states.infoset_states(game, tree, number)), number]
    return decisions
