"""What to do with games that are too large: the advice fits the game, and can be followed."""

import pathlib
import re
import shlex
from typing import Any

import pytest

from gdlx.envs import devices, game_facts, game_spec
from gdlx.envs.trees import game_tree
from gdlx.envs.trees.factored import unroll_blocks
from gdlx.propnet.common import limits
from gdlx.solvers import requests, size_advice, solve_requests
from gdlx.solvers.runs import table_solver
from gdlx.tests.helpers import commands, tables

STAY = """(role a) (role b) (init (at 1)) (legal a stay) (legal a move) (legal b wait) (legal b go)
    (<= (next (at ?n)) (does a stay) (true (at ?n))) (<= (next (at 2)) (does a move) (true (at 1)))
    (<= (next (at 3)) (does a move) (does b go) (true (at 2))) (goal a 100) (goal b 0)
    (<= (next (at 1)) (does a move) (does b wait) (true (at 2)))"""
ENDING = "(<= terminal (true (at 3)))"
ENDLESS = "(<= terminal (true (at 4))) (<= (next (at 3)) (true (at 3)))"


def refusal(game: game_spec.GameSpec) -> str:
    with pytest.raises(game_tree.TooLargeError) as refused:
        solve_requests.prepare(game_spec.ResolvedGame(game), "tree")
    return str(refused.value)


def rules(text: str) -> game_spec.GameSpec:
    return game_spec.GameSpec("mine", rules=text)


def test_a_game_whose_states_repeat_needs_a_step_counter() -> None:
    message = refusal(rules(STAY + ENDING))
    assert "its tree is infinite: the initial state is reached again after [stay " in message
    assert "`gdlx solve mine --algorithm os-mccfr --table 22 --time 60`" in message  # its matches are short
    counter = re.search(r"e\.g\. (\(init.*\(true \(step 20\)\)\))", message)
    assert counter is not None
    counted = counter[1].replace("..", "").replace("step 20", "step 3") + "(succ 2 3)"
    task = solve_requests.prepare(game_spec.ResolvedGame(rules(STAY + ENDING + counted)), "tree")
    assert task.tree.counts.nodes[-1] > 1


def test_nobody_samples_a_game_that_never_ends() -> None:
    message = refusal(rules(STAY + ENDLESS))
    assert "Add a step counter" in message
    assert "os-mccfr" not in message
    with pytest.raises(table_solver.TableError, match=r"no random match of rules ended.*add a step counter"):
        solve_requests.solve(rules=STAY + ENDLESS, algorithm="os-mccfr", table=10, iterations=1)


def test_perfect_information_is_searched_and_hidden_information_is_sampled() -> None:
    message = refusal(game_spec.GameSpec("connect_four"))
    assert "`gdlx match connect_four uct random --games 10`" in message
    assert "connect_four:width=7" in message
    assert "os-mccfr" not in message
    assert not game_facts.probe(game_spec.GameSpec("krieg_tictactoe").compile()).perfect_information
    message = refusal(game_spec.GameSpec("krieg_tictactoe"))
    assert "uct" not in message
    assert "`gdlx evaluate RESULT --bound`" in message


def _run(game: str, **asked: Any) -> None:
    algorithm = asked.pop("algorithm", "dcfr")
    solve_requests.execute(requests.SolveRequest(game, algorithm, iterations=1, **asked))


@pytest.mark.parametrize("is_restricted", [False, True])
def test_what_needs_each_terminal_refuses_games_in_blocks_before_unrolling_them(
    is_restricted: bool, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    game = "phantom_ttt:width=2,height=2,line=2"
    solve_requests.solve(game, iterations=1).save(tmp_path / "model")
    model = requests.OpponentModel(tmp_path / "model", p=0.5)
    asked: dict[str, Any] = {"opponent": model} if is_restricted else {"algorithm": "lp"}
    monkeypatch.setattr(limits, "NODES", 10)
    monkeypatch.setattr(unroll_blocks, "unroll", lambda *_, **__: pytest.fail("it was unrolled"))
    with pytest.raises(game_tree.TerminalsInBlocksError, match="needs each terminal listed, as linear") as refused:
        _run(game, max_nodes=10, **asked)
    assert f"`gdlx solve {game} --algorithm dcfr`" in str(refused.value)
    monkeypatch.undo()
    _run(game, **asked)  # with all terminals listed


def test_too_many_blocks_are_allowed_by_max_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    game = "phantom_ttt:width=2,height=2,line=2"
    monkeypatch.setattr(limits, "NODES", 10)
    monkeypatch.setattr(limits, "BLOCKS", 5)
    with pytest.raises(game_tree.TooManyBlocksError, match="Allow more with `max_nodes=`"):
        _run(game, max_nodes=10)
    with pytest.raises(game_tree.TooLargeError, match="Allow more with `max_nodes=`"):
        solve_requests.prepare(game_spec.resolve(game), "tree", max_nodes=12)
    assert game_spec.unroll_game(game, max_nodes=100).counts.nodes


def test_a_limit_that_was_lowered_may_be_raised() -> None:
    with pytest.raises(game_tree.TooLargeError, match="Allow more with `max_nodes=`"):
        solve_requests.solve("kuhn_poker", "dcfr", iterations=1, max_nodes=5)
    assert "max_nodes" not in refusal(game_spec.GameSpec("krieg_tictactoe"))


def test_known_states_are_solved_exactly_where_the_tree_is_too_large() -> None:
    message = refusal(game_spec.GameSpec("simultaneous_breakthrough"))
    assert "`gdlx solve simultaneous_breakthrough --algorithm backward-induction`" in message
    assert "more than" in message
    message = refusal(game_spec.GameSpec("smallest"))  # three players who choose at once
    assert "`gdlx solve smallest --states`" in message


@pytest.mark.parametrize(
    ("game", "order"), [("phantom_ttt:tries=abrupt", 8), ("dark_hex:tries=abrupt", 2), ("krieg_tictactoe", None)]
)
def test_symmetries_are_named_where_they_may_help(game: str, order: int | None) -> None:
    spec = game_spec.GameSpec(game)
    error = game_tree.TooLargeError("too large")
    message = str(size_advice.explain(spec, spec.compile(), error))
    assert (f"`gdlx solve {game} --symmetries`" in message) == (order is not None)
    assert order is None or f"Its rules have {order} symmetries" in message
    assert "--symmetries" not in str(size_advice.explain(spec, spec.compile(), error, symmetries=True))


def test_what_needs_each_terminal_of_a_game_in_blocks_is_told_what_does_not() -> None:
    spec = game_spec.GameSpec("phantom_ttt")
    message = str(size_advice.explain(spec, spec.compile(), game_tree.TooLargeError("too large")))
    assert "an algorithm that works on its blocks: `gdlx solve phantom_ttt`; or make the game smaller" in message
    assert "symmetries" not in message
    spec = game_spec.GameSpec("phantom_tictactoe")
    assert "blocks" not in str(size_advice.explain(spec, spec.compile(), game_tree.TooLargeError("too large")))


def test_the_suggested_command_runs(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_solver, "_MATCHES", 64)
    (tmp_path / "mine.gdl").write_text(STAY + ENDING)
    refused = commands.run("solve", "mine.gdl", "--algorithm", "dcfr", cwd=tmp_path)
    command = re.search(r"--algorithm os-mccfr[^`]*", refused.stderr)
    assert command is not None
    smaller = command[0].replace("--time 60", "--iterations 1 --batch 32").replace("--table 22", "--table 8")
    ran = commands.run("solve", "mine.gdl", *shlex.split(smaller), cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "bound it with: gdlx evaluate results/mine/os-mccfr --bound" in ran.stdout


@pytest.mark.parametrize("memory", [2**28, 2**29, 2**40])
@pytest.mark.parametrize("name", ["krieg_tictactoe", "goofspiel:cards=8"])
def test_the_suggested_table_is_the_largest_that_the_solver_accepts(
    name: str, memory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "machine_memory_bytes", lambda: memory)
    suggested = size_advice.table_bits(game_spec.GameSpec(name).compile())
    tables.make_solver(name, table=suggested, batch=4_096)
    if suggested < 22:
        with pytest.raises(table_solver.TableError, match=f"`table={suggested}` or less"):
            tables.make_solver(name, table=suggested + 1, batch=4_096)
    assert (suggested == 22) == (memory == 2**40)


def test_a_table_that_is_too_large_names_one_that_fits() -> None:
    with pytest.raises(table_solver.TableError, match=r"a smaller table, `table=2\d` or less") as refused:
        solve_requests.solve("goofspiel:cards=8", "os-mccfr", table=28, iterations=1)
    fitting = int(re.findall(r"table=(\d+)", str(refused.value))[0])
    assert 20 <= fitting < 28
