"""Plans: what is chosen for each game, sizes that contain the true ones, and requests that follow them."""

import json
import pathlib

import pytest

from gdlx.envs import game_spec
from gdlx.envs.trees import game_tree
from gdlx.propnet import games, library
from gdlx.solvers import algorithms, plan, requests, size_advice, solve_requests, tasks
from gdlx.tests.helpers import commands, sheets

SAMPLED = {
    *("battleship", "blind_tictactoe", "connect_four", "krieg_tictactoe", "meier", "oshi_zumo", "phantom_tictactoe"),
    *("racko", "repeated_rps", "simultaneous_breakthrough", "smallest"),
}
BLOCKS = {"dark_hex", "phantom_ttt"}
ENDLESS = "(role a) (legal a stay) (legal a go) (init (at 1)) (<= (next (at 1)) (true (at 1))) (goal a 100)"
ENDING = """(role a) (role b) (init (at 1)) (legal a stay) (legal a go) (legal b wait) (goal a 100) (goal b 0)
    (<= (next (at 1)) (does a stay) (true (at 1))) (<= (next (at 2)) (does a go)) (<= terminal (true (at 2)))"""
CONFLICT = """(role a) (init (at 1)) (legal a stay) (legal a go) (<= (next (at 2)) (does a ?x)) (goal a 100) (goal a 0)
    (<= terminal (true (at 2)))"""


def choice_for(game: str) -> plan.Choice:
    return plan.choose(game_spec.GameSpec(game), games.compile_game(game), allowed=("tree", "blocks", "sampling"))


@pytest.mark.parametrize("game", sorted(library.names()))
def test_something_useful_is_chosen_for_every_game_of_the_library(game: str) -> None:
    choice = choice_for(game)
    assert choice.method == ("sampling" if game in SAMPLED else "blocks" if game in BLOCKS else "tree")
    assert choice.fallback == (None if choice.method == "sampling" else "sampling")
    assert plan.describe(choice).startswith("os-mccfr with " if game in SAMPLED else "dcfr on the ")


def test_games_of_states_are_solved_by_states() -> None:
    propnet = games.compile_game("tictactoe")
    choice = plan.choose(game_spec.GameSpec("tictactoe"), propnet)
    assert plan.describe(choice).startswith("backward-induction on its graph of states: ")
    assert "5,478 states" in choice.reason
    assert plan.choose(game_spec.GameSpec("tictactoe"), propnet, max_nodes=1_000).method != "states"
    result = solve_requests.execute(requests.SolveRequest("tictactoe"))
    assert result.algorithm.name == "backward-induction"
    assert result.solution.value == pytest.approx((0.0, 0.0), abs=1e-6)


def test_games_of_states_that_induction_does_not_solve_take_cfr() -> None:
    """Three players who choose at once: the tree if it fits, else the graph of states, measured exactly."""
    spec = "smallest:players=3,numbers=3,steps=3"
    propnet = games.compile_game(spec)
    assert plan.choose(game_spec.GameSpec(spec), propnet).method == "tree"
    choice = plan.choose(game_spec.GameSpec(spec), propnet, max_nodes=3_000)
    assert (choice.method, choice.fallback) == ("cfr-on-states", "sampling")
    assert plan.describe(choice).startswith("dcfr on its graph of states: its players always know the state")
    result = solve_requests.execute(requests.SolveRequest(spec, iterations=10, max_nodes=3_000))
    assert result.algorithm.kind == "states"
    assert result.solution.nash_conv is not None
    planned = plan.make_plan(game_spec.GameSpec("smallest"), games.compile_game("smallest"))
    assert planned.choice.method == "cfr-on-states"
    assert planned.iteration is not None


def test_plans_without_symmetric_information_sets(tmp_path: pathlib.Path) -> None:
    ran = commands.run("solve", "phantom_ttt", "--symmetries", "--dry-run", cwd=tmp_path)
    assert ran.returncode == 0
    assert "dcfr on the game unrolled in blocks" in ran.stdout
    assert "8 symmetries" in ran.stdout
    propnet = games.compile_game("phantom_ttt")
    whole, symmetric = (
        plan.make_plan(game_spec.GameSpec("phantom_ttt"), propnet, symmetries=symmetries, allowed=("tree", "blocks"))
        for symmetries in (False, True)
    )
    for name in ("seconds", "iteration", "memory"):
        assert getattr(symmetric, name).estimate < getattr(whole, name).estimate / 3
    ran = commands.run("solve", "kuhn_poker", "--symmetries", "--dry-run", cwd=tmp_path)
    assert "no symmetries of its rules were found" in ran.stdout


def test_variants_that_do_not_fit_in_blocks_are_sampled() -> None:
    assert choice_for("phantom_ttt:tries=abrupt").method == "sampling"
    assert choice_for("phantom_ttt:width=4,height=2").method == "blocks"


@pytest.mark.parametrize("game", ["kuhn_poker", "leduc_poker", "tictactoe"])
def test_sizes_contain_the_true_ones(game: str) -> None:
    propnet = games.compile_game(game)
    tree = game_spec.unroll_game(game_spec.GameSpec(game, goal_conflict="max"))
    planned = plan.make_plan(game_spec.GameSpec(game), propnet, allowed=("tree",), seed=5)
    assert sum(tree.counts.histories) in planned.sizes["histories"]
    for player, count in tree.information_sets.items():
        assert count in planned.sizes[f"information sets of {player}"]
    assert planned.memory.low <= planned.memory.estimate <= planned.memory.high
    assert json.loads(json.dumps(planned.to_json(), allow_nan=False))["algorithm"] == "dcfr"


def test_auto_solves_what_can_be_unrolled_and_says_so() -> None:
    chosen: list[plan.Choice] = []
    callbacks = requests.Callbacks(on_choice=chosen.append)
    result = solve_requests.execute(requests.SolveRequest("kuhn_poker", iterations=300), callbacks)
    assert [result.choice] == chosen
    assert result.algorithm.name == result.solution.algorithm == "dcfr"
    assert result.solution.exploitability is not None
    assert result.solution.exploitability < 0.01


def test_auto_samples_what_is_too_large(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "SAMPLING_SECONDS", 0.01)
    warnings: list[str] = []
    request = requests.SolveRequest(
        "goofspiel:cards=4", settings={"batch": 32, "seed": 3}, target=0.1, max_nodes=100, results=tmp_path
    )
    monkeypatch.setattr(size_advice, "table_bits", lambda propnet: 8)
    result = solve_requests.execute(request, requests.Callbacks(warn=warnings.append))
    assert result.algorithm.name == "os-mccfr"
    assert (result.table_bits, result.algorithm.seed, result.algorithm.samples) == (8, 3, 32)
    assert result.folder is not None
    assert result.folder.name == "os-mccfr"
    assert "the target is ignored" in warnings[0]


def test_what_turns_out_too_large_is_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise game_tree.TooLargeError("the tree is larger than it seemed")

    monkeypatch.setattr(game_spec, "unroll_game", refuse)
    monkeypatch.setattr(tasks, "make_table_task", lambda game, **_: pytest.skip(f"sampled {game.spec}"))
    chosen: list[plan.Choice] = []
    with pytest.raises(pytest.skip.Exception, match="sampled kuhn_poker"):
        solve_requests.execute(requests.SolveRequest("kuhn_poker"), requests.Callbacks(on_choice=chosen.append))
    assert [choice.method for choice in chosen] == ["tree", "sampling"]
    assert "the tree is larger than it seemed" in chosen[1].reason


def test_settings_restrict_the_choice() -> None:
    methods = {
        "alpha": ["blocks", "cfr-on-states", "sampling", "tree"],
        "table": ["sampling"],
        "batch": ["sampling"],
        "seed": ["blocks", "cfr-on-states", "sampling", "tree"],
    }
    for name, expected in methods.items():
        actual = requests.SolveRequest("kuhn_poker", settings={name: 8}).candidates
        assert sorted(set(actual) - {"states"}) == expected
    simultaneous = requests.SolveRequest("kuhn_poker", simultaneous=True).candidates
    assert sorted(simultaneous) == ["blocks", "cfr-on-states", "tree"]
    assert not simultaneous["tree"].alternating
    with pytest.raises(algorithms.UnknownAlgorithmError, match="has no setting 'gama'"):
        requests.SolveRequest("kuhn_poker", settings={"gama": 2.0})


def test_endless_games_are_sampled_or_refused() -> None:
    ending = plan.choose(game_spec.GameSpec("mine"), sheets.compile_text(ENDING), allowed=("tree", "sampling"))
    assert (ending.method, ending.reason) == ("sampling", "its states repeat, so that its tree is infinite")
    endless = plan.make_plan(game_spec.GameSpec("mine"), sheets.compile_text(ENDLESS), allowed=("tree", "sampling"))
    assert endless.choice.method is endless.algorithm is None
    assert "Add a step counter" in endless.problem


def test_goal_conflicts_are_found_before_solving() -> None:
    propnet = sheets.compile_text(CONFLICT)
    problem = plan.find_problem(game_spec.GameSpec("mine"), propnet)
    assert "the goal values 0 and 100 in a terminal state" in problem
    assert not plan.find_problem(game_spec.GameSpec("mine", goal_conflict="max"), propnet)


def test_a_dry_run_writes_nothing(tmp_path: pathlib.Path) -> None:
    ran = commands.run("solve", "phantom_ttt", "--dry-run", "--json", cwd=tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")
    planned = json.loads(ran.stdout)
    assert (planned["method"], planned["algorithm"], planned["fallback"]) == ("blocks", "dcfr", "sampling")
    # Counted by unrolling, and published (docs/development/results-log.md).
    for player, count in (("x", 1_893_106), ("o", 2_307_355)):
        size = planned["sizes"][f"information sets of {player}"]
        assert size["low"] <= count <= size["high"]
    ran = commands.run("solve", "kuhn_poker", "--algorithm", "cfr+", "--dry-run", cwd=tmp_path)
    assert ran.stdout.startswith("kuhn_poker: cfr+ on the unrolled game: it has about 58 histories\n")
    (tmp_path / "endless.gdl").write_text(ENDLESS)
    ran = commands.run("solve", "endless.gdl", "--dry-run", cwd=tmp_path)
    assert ran.returncode == 0
    assert "problem: endless.gdl need not end, so its tree is infinite" in ran.stdout
    assert "Add a step counter" in ran.stdout
    assert not (tmp_path / "results").exists()


def test_a_command_without_an_algorithm_says_what_it_chose(tmp_path: pathlib.Path) -> None:
    ran = commands.run("solve", "kuhn_poker", "--iterations", "10", cwd=tmp_path)
    assert ran.stdout.startswith("chosen: dcfr on the unrolled game: ")
    ran = commands.run("solve", "kuhn_poker", "--iterations", "10", "--json", cwd=tmp_path)
    assert json.loads(ran.stdout)["chosen"]["algorithm"] == "dcfr"
    assert (tmp_path / "results" / "kuhn_poker" / "dcfr").is_dir()
    ran = commands.run("solve", "kuhn_poker", "--algorithm", "cfr+", "--iterations", "10", cwd=tmp_path)
    assert "chosen" not in ran.stdout


def test_a_sampled_game_is_bounded(tmp_path: pathlib.Path) -> None:
    ran = commands.run(
        *("solve", "goofspiel:cards=4", "--max-nodes", "100", "--time", "0.1", "--batch", "32", "--table", "8"),
        *("--json",),
        cwd=tmp_path,
    )
    result = json.loads(ran.stdout)
    assert result["chosen"]["method"] == "sampling"
    measured = result["exploitability"] if result["improvements"] else result["exploitability_bound"]
    assert measured is not None
