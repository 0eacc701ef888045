"""Solving without symmetric information sets: the same results, files that can be read, and clear refusals."""

import json
import pathlib
from typing import Any

import numpy as np
import pytest

import gdlx
from gdlx import cli
from gdlx.envs import game_spec
from gdlx.envs.trees.factored import symmetry_group, unroll_blocks
from gdlx.propnet import games
from gdlx.solvers import (
    evaluate_requests,
    infoset_values,
    requests,
    solve_requests,
    symmetric_policies,
    tabular_policies,
    tasks,
)
from gdlx.solvers.mccfr import table_policy
from gdlx.solvers.policy_sources import function_policies
from gdlx.solvers.runs import policy_files

GAME = "phantom_ttt:width=2,height=3"


@pytest.fixture(scope="module")
def solved(tmp_path_factory: pytest.TempPathFactory) -> solve_requests.SolveResult:
    request = requests.SolveRequest(
        GAME, "cfr+", iterations=100, symmetries=True, results=tmp_path_factory.mktemp("results")
    )
    return solve_requests.execute(request)


def test_the_result_is_that_of_the_whole_game(solved: solve_requests.SolveResult) -> None:
    whole = gdlx.solve(GAME, "cfr+", iterations=100)
    result = solved.solution
    assert sum(player.sets for player in result.tree.players) < sum(player.sets for player in whole.tree.players) / 20
    assert [row.iterations for row in result.metrics] == [row.iterations for row in whole.metrics]
    for small, large in zip(result.metrics, whole.metrics, strict=True):
        np.testing.assert_allclose(small.value, large.value, rtol=0, atol=2e-3)  # of 100, in single precision
        np.testing.assert_allclose(small.improvements, large.improvements, rtol=0, atol=2e-3)


def test_policies_and_values_name_all_actions_that_are_alike(solved: solve_requests.SolveResult) -> None:
    policy = solved.solution.policy("x")
    assert list(policy.values()) == [1.0]
    (name,) = policy
    assert name.split(" or ") == [f"(mark {column} {row})" for column in (1, 2) for row in (1, 2, 3)]
    result = infoset_values.infoset_values(solved.solution.tree, solved.solution.policies, 0)
    assert result.reach[0] == pytest.approx(1)
    assert result.value[0] == pytest.approx(solved.solution.value[0], abs=1e-4)
    # The second time it moves, having had success, in each of the six cells.
    second = solved.solution.find_infoset(0, "(mark 1 1), placed")
    assert result.reach[second] == pytest.approx(1)


def test_a_folder_is_evaluated_and_its_policy_judged_on_the_whole_game(solved: solve_requests.SolveResult) -> None:
    assert solved.folder is not None
    again = evaluate_requests.execute(requests.EvaluateRequest(solved.folder))
    assert again.solution == solved.solution
    assert again.solution.exploitability == pytest.approx(solved.solution.exploitability, abs=1e-4)
    whole = tasks.make_tree_task(GAME)
    policies = policy_files.load_policies(solved.folder, game_spec.GameSpec(GAME), whole.tree)
    assert whole.metrics(policies).exploitability == pytest.approx(solved.solution.exploitability, abs=2e-3)
    arena = gdlx.make(GAME)
    table = policy_files.load_table_policy(solved.folder, game_spec.GameSpec(GAME), arena)
    assert len(table.cumulative_policy) > sum(player.sets for player in whole.tree.players)


@pytest.mark.parametrize("game", ["leduc_poker", GAME, "krieg_tictactoe:size=2,line=2", "dark_hex:columns=2,rows=2"])
def test_images_of_information_sets_are_all_those_of_the_whole_game(game: str) -> None:
    propnet = games.compile_game(game)
    group = symmetry_group.build(propnet)
    assert group is not None
    tree = unroll_blocks.unroll(propnet, group=group)
    rng = np.random.default_rng(0)
    policies = tuple(tabular_policies.normalise(player, rng.random(player.sequences)) for player in tree.players)
    whole = unroll_blocks.unroll_whole(propnet, group)
    lifted = symmetric_policies.to_whole(whole, policies)
    arena = gdlx.make(game)
    actual, known = table_policy.to_tabular(
        symmetric_policies.to_table(tree, policies, group, arena), arena, whole.tree
    )
    assert known == sum(player.sets for player in whole.tree.players)
    for expected, policy in zip(lifted, actual, strict=True):
        np.testing.assert_allclose(expected, policy, rtol=0, atol=1e-6)


def by_number(infosets: function_policies.InformationSets) -> Any:
    """Later moves more often, and later in the game even more often: moves are not exchanged in leduc_poker."""
    weight = infosets.legal * (1.0 + np.arange(len(infosets.moves)) * infosets.steps[:, None])
    return weight / weight.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("game", "policy"),
    [("leduc_poker", by_number), ("leduc_poker", "uniform"), (GAME, "uniform"), ("monty_hall", "uniform")],
)
def test_policies_are_judged_without_symmetric_information_sets(game: str, policy: Any) -> None:
    small, whole = (gdlx.evaluate(game, policy, symmetries=symmetries) for symmetries in (True, False))
    assert small.is_exact
    assert not small.task.tree.is_whole
    np.testing.assert_allclose(small.value, whole.value, rtol=0, atol=1e-9)
    np.testing.assert_allclose(small.improvements, whole.improvements, rtol=0, atol=1e-9)


def test_results_are_judged_without_symmetric_information_sets(solved: solve_requests.SolveResult) -> None:
    assert solved.folder is not None
    small, whole = (gdlx.evaluate(GAME, solved.folder, symmetries=symmetries) for symmetries in (True, False))
    assert [len(sets) for sets in small.missing] == [0, 0]
    # Hash tables are in single precision.
    np.testing.assert_allclose(small.improvements, whole.improvements, rtol=0, atol=1e-4)


def test_a_game_without_symmetries_cannot_have_left_any_out(tmp_path: pathlib.Path) -> None:
    folder = solve_requests.execute(
        requests.SolveRequest("simple_poker", "cfr+", iterations=1, results=tmp_path)
    ).folder
    assert folder is not None
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"symmetries": True}))
    with pytest.raises(policy_files.PolicyFileError, match=r"simple_poker has none: was that file changed\?"):
        gdlx.evaluate("simple_poker", folder)


def test_policies_that_symmetries_change_are_not_judged_without_them() -> None:
    with pytest.raises(symmetric_policies.NotInvariantError, match=r"the policy of x is not symmetric.*whole game"):
        gdlx.evaluate(GAME, by_number, symmetries=True)
    assert gdlx.evaluate(GAME, by_number).is_exact


def test_missing_information_sets_are_those_of_the_representatives() -> None:
    judged = gdlx.evaluate("leduc_poker", lambda infosets: np.full(infosets.legal.shape, np.nan), symmetries=True)
    assert [len(sets) for sets in judged.missing] == [144, 144]


def test_the_command_that_judges(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["evaluate", GAME, "--policy", "uniform", "--symmetries"]) == 0
    assert "symmetries do not change this policy" in capsys.readouterr().out
    assert cli.main(["evaluate", GAME, "--policy", "uniform", "--max-nodes", "10", "--bound-seconds", "0.1"]) == 0
    assert "may be judged exactly with --symmetries" in " ".join(capsys.readouterr().err.split())
    assert cli.main(["evaluate", "results", "--symmetries"]) == 2
    assert "--symmetries" in capsys.readouterr().err


def test_a_run_is_resumed(solved: solve_requests.SolveResult, tmp_path: pathlib.Path) -> None:
    first = requests.SolveRequest(GAME, "cfr+", iterations=50, symmetries=True, results=tmp_path)
    folder = solve_requests.execute(first).folder
    assert folder is not None
    resumed = solve_requests.execute(requests.resume_request(folder, iterations=100))
    assert resumed.solution == solved.solution


def test_a_table_cannot_be_taken_for_one_of_the_whole_game(
    solved: solve_requests.SolveResult, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "table.csv"
    assert cli.main(["evaluate", str(solved.folder), "-o", str(table)]) == 0
    capsys.readouterr()
    assert cli.main(["evaluate", GAME, "--policy", str(table)]) == 1
    assert "has no action '(mark 1 1) or (mark 1 2) or" in capsys.readouterr().err


def test_the_command(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--json", "solve", "leduc_poker", "--symmetries", "--iterations", "100", "--results", str(tmp_path)]
    assert cli.main(arguments) == 0
    output = json.loads(capsys.readouterr().out)
    assert output["information_sets"] == {"player1": 144, "player2": 144}
    config = json.loads((pathlib.Path(output["result"]) / "config.json").read_text())
    assert config["symmetries"] is True
    assert cli.main(["solve", "kuhn_poker", "--symmetries", "--iterations", "10", "--results", str(tmp_path)]) == 0
    assert "no symmetry of kuhn_poker was found" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"algorithm": "lp"}, "lp needs every information set"),
        ({"algorithm": "es-mccfr"}, "es-mccfr needs every information set"),
        ({"opponent": requests.OpponentModel(pathlib.Path("x"), 0.5)}, "an opponent model need not be symmetric"),
    ],
)
def test_what_needs_the_whole_game_refuses(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(requests.RequestError, match=message):
        requests.SolveRequest("leduc_poker", symmetries=True, **arguments)  # type: ignore[arg-type]


def test_other_trees_are_refused() -> None:
    with pytest.raises(requests.RequestError, match="symmetries are found in rules"):
        gdlx.solve(gdlx.unroll("leduc_poker"), symmetries=True, iterations=1)
    for arguments in ({"depth": 1}, {"keep_edges": True}):
        with pytest.raises(gdlx.UserError, match="symmetries are found in rules"):
            gdlx.unroll("leduc_poker", symmetries=True, **arguments)
    with pytest.raises(gdlx.UserError, match="game of OpenSpiel"):
        gdlx.unroll("spiel:kuhn_poker", symmetries=True)
    quotient = gdlx.unroll("leduc_poker", symmetries=True)
    assert gdlx.solve(quotient, iterations=20).exploitability is not None
    for name in ("lp", "es-mccfr"):
        with pytest.raises(ValueError, match=r"each of them listed|needs the edges"):
            gdlx.solve(quotient, name, iterations=1)
