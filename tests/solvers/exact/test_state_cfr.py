"""CFR on graphs of states: equal to CFR on the tree where nothing merges, and measured exactly where it does."""

import jax
import numpy as np
import pytest

from gdlx.envs.states import state_graph
from gdlx.envs.trees import unroll
from gdlx.propnet import games
from gdlx.solvers import algorithms, state_policies, tasks
from gdlx.solvers.exact import backward_induction
from gdlx.solvers.runs import state_solver, tree_solvers
from gdlx.tests.helpers import random_state_games


@pytest.mark.parametrize("name", ["cfr", "cfr+", "dcfr", "pcfr+", "hs-dcfr"])
@pytest.mark.parametrize(("players", "chance"), [(2, False), (2, True), (3, False)])
def test_iterations_are_those_of_the_tree_where_nothing_merges(name: str, players: int, chance: bool) -> None:
    rules = random_state_games.generate_sheet(7, players=players, zero_sum=players == 2, chance=chance, tree=True)
    game = games.compile_game(rules=rules)
    algorithm = algorithms.find(name)
    with jax.enable_x64(True):
        tree = unroll.unroll(game)
        on_tree = tree_solvers.FullSolver(tasks.make_tree_task("rps", tree), algorithm)
        on_states = state_solver.StateSolver(tasks.make_state_task(game), algorithms.on_states(algorithm))
        graph = state_graph.build(game)
        assert [player.sets for player in graph.players] == [player.sets for player in tree.players]
        assert sum(player.sets for player in graph.players) > 5
        before, state = on_tree.init(), on_states.init()
        for _ in range(6):
            before, state = on_tree.advance(before, 2), on_states.advance(state, 2)
            expected = on_tree.policies(before)
            actual = state_policies.to_tree(on_states.policies(state), graph, game, tree)
            for one, other in zip(actual, expected, strict=True):
                np.testing.assert_allclose(one, other, atol=1e-9)


@pytest.mark.parametrize("alternating", [True, False])
def test_both_orders_of_updates_are_those_of_the_tree(alternating: bool) -> None:
    game = games.compile_game(rules=random_state_games.generate_sheet(11, tree=True))
    algorithm = algorithms.find("cfr+")
    if not alternating:
        algorithm = algorithms.with_simultaneous_updates(algorithm)
    with jax.enable_x64(True):
        tree = unroll.unroll(game)
        on_tree = tree_solvers.FullSolver(tasks.make_tree_task("rps", tree), algorithm)
        on_states = state_solver.StateSolver(tasks.make_state_task(game), algorithms.on_states(algorithm))
        expected = on_tree.policies(on_tree.advance(on_tree.init(), 7))
        actual = on_states.policies(on_states.advance(on_states.init(), 7))
        for one, other in zip(
            state_policies.to_tree(actual, state_graph.build(game), game, tree), expected, strict=True
        ):
            np.testing.assert_allclose(one, other, atol=1e-9)


@pytest.mark.parametrize("name", ["repeated_rps:rounds=4", "goofspiel:info=perfect,cards=4"])
def test_it_comes_close_to_the_values_of_backward_induction(name: str) -> None:
    task = tasks.make_state_task(name)
    solver = state_solver.StateSolver(task, algorithms.on_states(algorithms.find("dcfr")))
    metrics = solver.measure(solver.advance(solver.init(), 200), 0.0)
    exact = backward_induction.solve(task.graph)
    low, high = task.payoff_range
    assert metrics.nash_conv is not None
    assert metrics.nash_conv < 0.02 * (high - low)
    # Play of NashConv e is worth the value of the game up to e.
    assert abs(metrics.value[0] - exact.values[0, 0]) <= metrics.nash_conv + 1e-9


def test_three_players_improve_on_uniform_play() -> None:
    rules = random_state_games.generate_sheet(2, players=3, zero_sum=False)
    solver = state_solver.StateSolver(
        tasks.make_state_task(games.compile_game(rules=rules)), algorithms.on_states(algorithms.find("cfr+"))
    )
    start = solver.init()
    before = solver.measure(start, 0.0).nash_conv
    after = solver.measure(solver.advance(start, 100), 0.0).nash_conv
    assert before is not None
    assert after is not None
    assert after < 0.25 * before
