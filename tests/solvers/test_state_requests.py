"""Games of states from request to result folder: solve, evaluate, load, resume, restrict, match, report."""

import json
import pathlib

import jax
import numpy as np
import pytest

import gdlx
from gdlx.envs import make_env
from gdlx.envs.packed import packed_env
from gdlx.envs.states import state_graph
from gdlx.experiments.reports import facts, gather, policies
from gdlx.players.agents import agent, saved_policies, uniform
from gdlx.players.matches import arenas, match
from gdlx.propnet import games
from gdlx.propnet.common import errors
from gdlx.solvers import algorithms, evaluate_requests, requests, solve_requests, tasks
from gdlx.solvers.mccfr import table_policy
from gdlx.solvers.runs import policy_files, policy_tables, result_folder
from gdlx.tests.helpers import players

GAME = "repeated_rps:rounds=3"
BIDS = "goofspiel:info=perfect,cards=4"


@pytest.fixture(scope="module")
def solved(tmp_path_factory: pytest.TempPathFactory) -> solve_requests.SolveResult:
    results = tmp_path_factory.mktemp("results")
    return solve_requests.execute(requests.SolveRequest(GAME, "backward-induction", results=results))


def folder_of(result: solve_requests.SolveResult) -> pathlib.Path:
    assert result.folder is not None
    return result.folder


def test_the_result_is_exact_and_states_its_bound(solved: solve_requests.SolveResult) -> None:
    assert solved.solution.value == pytest.approx((0.0, 0.0), abs=1e-9)
    assert solved.solution.exploitability == pytest.approx(0.0, abs=1e-9)
    assert solved.facts["matrix_games"] == 9
    assert 0 <= solved.facts["tolerance"] <= solved.facts["error_bound"] <= 3 * max(solved.facts["tolerance"], 1e-300)
    uniform = solved.solution.policy("player1", "(lead 0); (played 0)")
    assert uniform == pytest.approx(dict.fromkeys(("paper", "rock", "scissors"), 1 / 3), abs=1e-9)


def test_underscores_name_the_same_algorithm() -> None:
    assert algorithms.find("backward_induction") is algorithms.find("backward-induction")


def test_a_saved_result_is_measured_again(solved: solve_requests.SolveResult) -> None:
    loaded = evaluate_requests.load_solution(folder_of(solved))
    for one, other in zip(loaded.policies, solved.solution.policies, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)
    assert loaded.value == pytest.approx(solved.solution.value)
    assert loaded.exploitability == pytest.approx(0.0, abs=1e-9)


def test_a_solution_is_saved_and_loaded(tmp_path: pathlib.Path) -> None:
    solution = gdlx.solve(BIDS, "dcfr", iterations=20, states=True)
    loaded = gdlx.load_solution(solution.save(tmp_path / "bids"))
    assert loaded.exploitability == pytest.approx(solution.exploitability)
    assert len(loaded.rows()) == len(solution.rows())


def test_a_worse_policy_is_measured_as_worse(solved: solve_requests.SolveResult, tmp_path: pathlib.Path) -> None:
    # Always the first move: the opponent wins every round, and improves by the whole of 50.
    changed = [np.zeros_like(policy) for policy in solved.solution.policies]
    for policy, player in zip(changed, solved.solution.tree.players, strict=True):
        policy[0] = 1
        policy[player.first[:-1]] = 1
    task = solved.task
    assert isinstance(task, tasks.StateTask)
    assert task.metrics(tuple(changed)).improvements == pytest.approx((50.0, 50.0))


def test_cfr_on_states_resumes_to_the_same_policies(tmp_path: pathlib.Path) -> None:
    whole = solve_requests.execute(requests.SolveRequest(BIDS, "cfr+", 12, states=True, results=tmp_path / "whole"))
    first = solve_requests.execute(requests.SolveRequest(BIDS, "cfr+", 5, states=True, results=tmp_path / "parts"))
    resumed = solve_requests.execute(requests.resume_request(folder_of(first), iterations=12))
    assert resumed.solution == whole.solution
    config = result_folder.read_config(folder_of(first))
    assert config.algorithm.on_states
    assert config.algorithm.kind == "states"
    assert evaluate_requests.load_solution(folder_of(first)).nash_conv == pytest.approx(resumed.solution.nash_conv)


def test_a_target_can_stop_cfr_on_states() -> None:
    result = solve_requests.execute(requests.SolveRequest(BIDS, "dcfr", target="1%", states=True))
    assert result.solution.exploitability is not None
    assert 0 < result.solution.exploitability <= 1.0


def test_policies_by_state_restrict_the_tree(solved: solve_requests.SolveResult) -> None:
    # Against uniform play every response is worth 0.
    model = requests.OpponentModel(folder_of(solved), p=1.0)
    result = solve_requests.execute(requests.SolveRequest(GAME, "cfr+", 20, opponent=model))
    facts = result.task.facts(result.solution.policies)["restricted"]
    assert facts["exploitation"] == pytest.approx(0.0, abs=1e-4)
    with pytest.raises(requests.RequestError, match="does not know the state"):
        requests.SolveRequest(GAME, "backward-induction", opponent=model)


def test_a_table_by_state_has_the_probabilities_of_the_policy(solved: solve_requests.SolveResult) -> None:
    env = make_env.make(GAME)
    table = policy_files.load_table_policy(folder_of(solved), solved.task.game, env)
    assert table.state_constants is not None
    arena = arenas.make_arena(GAME)
    state = arena.packed.start(64)
    key = jax.random.key(0)
    for step in range(3):
        for player in range(2):
            played = np.asarray(table_policy.player_policy(table, state, player))
            np.testing.assert_allclose(played.sum(axis=0), 1.0, atol=1e-6)
            if step < 2:  # by symmetry uniform while the match is even; mixed everywhere
                assert (played > 0.05).any(axis=1).all()
        actions = jax.random.randint(jax.random.fold_in(key, step), (2, 64), 0, 3)
        state = arena.packed.step(state, actions, jax.numpy.zeros(64))


@pytest.mark.parametrize("suffix", [".csv", ".json"])
def test_tables_by_state_are_read_back(solved: solve_requests.SolveResult, suffix: str, tmp_path: pathlib.Path) -> None:
    tree, written = solved.task.tree, tmp_path / f"policy{suffix}"
    if suffix == ".csv":
        written.write_text(policy_tables.to_csv(tree, solved.solution.policies))
    else:
        written.write_text(json.dumps(policy_tables.to_json(tree, solved.solution.policies)))
    request = requests.EvaluateRequest(written, game=GAME, policy=written)
    on_tree = evaluate_requests.execute(request)  # of what players remember
    assert on_tree.task.tree_task is not None
    assert on_tree.solution.exploitability == pytest.approx(0.0, abs=1e-4)
    env = make_env.make(GAME)
    table = policy_files.load_table_policy(written, solved.task.game, env)
    assert table.state_constants is not None
    # The file in a result folder is read like the folder.
    expected = policy_files.load_table_policy(folder_of(solved) / "policy.npz", solved.task.game, env)
    assert expected.state_constants is not None
    for player in range(2):
        state = packed_env.PackedEnv(env).start(1)
        np.testing.assert_allclose(
            table_policy.player_policy(table, state, player),
            table_policy.player_policy(expected, state, player),
            atol=1e-6,
        )


@pytest.mark.parametrize(
    ("opponent", "count"),
    [(uniform.UniformAgent("random"), 200), (players.FunctionAgent(players.choose_first), 4)],
    ids=["on the device", "move by move"],
)
def test_it_never_loses_at_tic_tac_toe(opponent: agent.Agent, count: int, tmp_path: pathlib.Path) -> None:
    result = solve_requests.execute(requests.SolveRequest("tictactoe", "backward-induction", results=tmp_path))
    agents = (saved_policies.SolutionAgent("exact", str(result.folder)), opponent)
    arena = arenas.make_arena("tictactoe")
    played = match.Match(arena, agents, match.MatchSettings(games=count, play_seconds=60.0))
    assert played.is_vectorised == (opponent.name == "random")
    records = [batch.games for batch in match.play_games(played)]
    payoff = np.concatenate([record.payoff for record in records])
    seated = np.concatenate([record.agent for record in records])
    assert sum(record.incidents.sum() for record in records) == 0
    assert payoff[seated == 0].min() >= 0


def test_reports_show_the_policies(solved: solve_requests.SolveResult) -> None:
    subject = facts.load_game(solved.task.game)
    assert isinstance(subject, facts.LoadedGame)
    gathered = gather.gather_runs([folder_of(solved)])
    tables = policies.load_policy_tables(gathered.runs[0], subject)
    assert [table.player for table in tables] == ["player1", "player2"]
    assert tables[0].choices[0].history == "(lead 0); (played 0)"


def test_what_cannot_be_solved_says_why(tmp_path: pathlib.Path) -> None:
    with pytest.raises(state_graph.HiddenStateError, match="cannot tell"):
        gdlx.solve("kuhn_poker", "backward-induction")
    with pytest.raises(algorithms.UnknownAlgorithmError, match="es-mccfr does not solve the graph of states"):
        requests.SolveRequest(GAME, "es-mccfr", states=True)
    with pytest.raises(errors.UserError, match="needs the rules of a game, not its tree"):
        requests.SolveRequest(gdlx.unroll("rps"), "backward-induction")
    with pytest.raises(errors.UserError, match="game of OpenSpiel"):
        tasks.make_state_task("spiel:kuhn_poker")
    with pytest.raises(errors.UserError, match="too many states"):
        gdlx.solve("tictactoe", "backward-induction", max_nodes=100)
    assert not list(tmp_path.iterdir())


def test_other_names_of_a_game_are_solved_alike() -> None:
    propnet = games.compile_game(GAME)
    assert gdlx.solve(propnet, "backward-induction") == gdlx.solve(GAME, "backward-induction")


def test_networks_can_meet_it_on_the_device() -> None:
    """In matches with networks, observations have the registers that a table by state needs."""
    from gdlx.nets import vectorised_play

    env = make_env.make("tictactoe")
    task = tasks.make_state_task("tictactoe")
    solution = gdlx.solve("tictactoe", "backward-induction")
    table = table_policy.from_states(solution.policies, task.graph, env)
    outcomes = vectorised_play.play(
        env,
        (vectorised_play.hash_table_policy, vectorised_play.uniform_policy),
        (table, None),
        jax.random.key(0),
        matches=128,
        steps=9,
        window=1,
    )
    payoff = np.asarray(outcomes.payoff)[0]
    assert payoff.min() >= 0
    assert payoff.mean() > 30  # uniform play would win about 30 of 100 more than it loses


def test_a_bound_from_play_is_below_what_is_measured(solved: solve_requests.SolveResult) -> None:
    request = requests.EvaluateRequest(folder_of(solved), bound=True, bound_seconds=1.0)
    bound = evaluate_requests.execute(request).bound_result
    assert bound is not None
    assert bound.bound.exploitability is not None
    assert bound.bound.exploitability <= 5 * bound.bound.standard_error
