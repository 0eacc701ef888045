"""Requests: errors that name arguments, the same request from commands and from Python, and resuming."""

import dataclasses
import math
import pathlib
from typing import Any

import numpy as np
import pytest

import gdlx
from gdlx.cli import shared_options
from gdlx.envs import game_spec
from gdlx.solvers import algorithms, evaluate_requests, requests, solve_requests, tasks
from gdlx.solvers.exact import restricted_nash
from gdlx.solvers.runs import driver, result_folder, solver_run


@pytest.mark.parametrize(
    ("asked", "error", "message"),
    [
        ({"algorithm": "magic"}, algorithms.UnknownAlgorithmError, "there is no algorithm 'magic'"),
        ({"iterations": -1}, driver.StopError, "iterations cannot be negative"),
        ({"seconds": 0.0}, driver.StopError, "more than 0 seconds"),
        ({"every": 0}, requests.RequestError, "every is a number of iterations, 1 or more; not 0"),
        ({"settings": {"delta": 1.0}}, algorithms.UnknownAlgorithmError, "dcfr has no setting 'delta'"),
        (
            {"algorithm": "dcfr", "settings": {"batch": 8}},
            algorithms.UnknownAlgorithmError,
            "dcfr does not sample, so it has no batch",
        ),
        (
            {"algorithm": "os-mccfr", "simultaneous": True},
            algorithms.UnknownAlgorithmError,
            "cannot update all players",
        ),
        ({"network": pathlib.Path("x")}, requests.RequestError, "pass `algorithm='depth-limited'`"),
        (
            {"algorithm": "dcfr", "network": pathlib.Path("x")},
            requests.RequestError,
            "not for dcfr; leave out `network=`",
        ),
        ({"target": "tiny"}, driver.StopError, "is not a number"),
        ({"target": "0%"}, driver.StopError, "must be above 0"),
        ({"algorithm": "depth-limited"}, algorithms.UnknownAlgorithmError, "depth-limited needs a network"),
        (
            {"algorithm": "depth-limited", "network": pathlib.Path("x"), "target": 0.1},
            requests.RequestError,
            "leave out `target=`",
        ),
        (
            {"algorithm": "es-mccfr", "opponent": requests.OpponentModel(pathlib.Path("x"), 0.5)},
            restricted_nash.RestrictionError,
            "es-mccfr samples play",
        ),
    ],
)
def test_what_a_request_refuses(asked: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        requests.SolveRequest("kuhn_poker", **asked)
    if error is requests.RequestError:
        assert "--" not in str(caught.value)


def test_an_opponent_is_trusted_from_0_to_1() -> None:
    with pytest.raises(restricted_nash.RestrictionError, match="from 0 to 1"):
        requests.OpponentModel(pathlib.Path("x"), 1.5)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"bound_seconds": 1.0}, "`bound_seconds=` needs `bound=True`"),
        ({"bound": True, "bound_seconds": 0.0}, "bound_seconds is a number of seconds above 0"),
        ({"bound": True, "bound_seconds": math.inf}, "bound_seconds is a number of seconds above 0"),
    ],
)
def test_what_a_request_to_evaluate_refuses(asked: dict[str, Any], message: str) -> None:
    with pytest.raises(requests.RequestError, match=message):
        requests.EvaluateRequest(pathlib.Path("x"), **asked)


@pytest.mark.parametrize(
    ("algorithm", "settings", "kind", "needs"),
    [
        ("cfr+", {}, "full", "tree"),
        ("os-mccfr", {}, "sampled", "edges"),
        ("os-mccfr", {"table": 8}, "table", "rules"),
        ("lp", {}, "exact", "terminals"),
    ],
)
def test_kinds_of_run(algorithm: str, settings: dict[str, Any], kind: str, needs: str) -> None:
    chosen = requests.SolveRequest("kuhn_poker", algorithm, settings=settings).configured_algorithm
    assert (chosen.kind, chosen.needs) == (kind, needs)


def test_a_table_needs_rules() -> None:
    tree = game_spec.unroll_game(game_spec.GameSpec("kuhn_poker"))
    with pytest.raises(algorithms.UnknownAlgorithmError, match="needs the rules of a game"):
        requests.SolveRequest(tree, "os-mccfr", settings={"table": 8})


def test_a_task_fits_its_algorithm() -> None:
    task = tasks.prepare(game_spec.GameSpec("kuhn_poker"), "tree")
    table = algorithms.configure(algorithms.find("os-mccfr"), None, {"table": 8})
    with pytest.raises(algorithms.UnknownAlgorithmError, match="as it was prepared"):
        solver_run.make_solver(task, table)


@pytest.mark.parametrize("algorithm", ["hs-dcfr", "lp"])
def test_python_and_requests_are_the_same(algorithm: str, tmp_path: pathlib.Path) -> None:
    request = requests.SolveRequest("kuhn_poker", algorithm, 20, results=tmp_path)
    reported: list[driver.Metrics] = []
    labels: list[str] = []

    def stage(label: str) -> Any:
        labels.append(label.split()[0])
        return requests.NO_CALLBACKS.stage(label)

    outcome = solve_requests.execute(request, requests.Callbacks(stage=stage, on_metrics=reported.append))
    assert outcome.solution.metrics[-1].value == reported[-1].value
    assert labels == ["compiling", "unrolling", {"lp": "linear"}.get(algorithm, algorithm)]
    assert outcome.folder is not None
    assert outcome.folder.parent == tmp_path / "kuhn_poker"
    called = gdlx.solve("kuhn_poker", algorithm, iterations=20)
    for ours, theirs in zip(outcome.solution.policies, called.policies, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert called.config == outcome.solution.config
    again = evaluate_requests.execute(requests.EvaluateRequest(outcome.folder))
    assert again.solution.exploitability == pytest.approx(called.exploitability, abs=1e-6)
    assert again.bound_result is None


def test_a_request_goes_through_its_folder(tmp_path: pathlib.Path) -> None:
    """A resumed run has the game, the settings and the horizon of its start, whatever the new stop condition."""
    game = game_spec.GameSpec("kuhn_poker", "zero-sum")
    first = requests.SolveRequest(
        game, "hs-dcfr", 30, settings={"beta": -math.inf}, simultaneous=True, results=tmp_path
    )
    outcome = solve_requests.execute(first)
    assert outcome.folder is not None
    second = requests.resume_request(outcome.folder, iterations=50)
    assert (second.resolved_game, second.configured_algorithm) == (game, first.configured_algorithm)
    assert second.configured_algorithm.settings.horizon == 30
    assert solve_requests.execute(second).solution.iterations == 50
    assert result_folder.read_config(outcome.folder).algorithm == first.configured_algorithm


def test_steps_may_be_raised_when_resumed(tmp_path: pathlib.Path) -> None:
    settings = {"table": 8, "batch": 64, "max_steps": 10}
    outcome = solve_requests.execute(
        requests.SolveRequest("kuhn_poker", "os-mccfr", 2, settings=settings, results=tmp_path)
    )
    assert outcome.folder is not None
    again = requests.resume_request(outcome.folder, max_steps=20, iterations=3)
    assert solve_requests.execute(again).solution.iterations == 3
    assert result_folder.read_config(outcome.folder).algorithm.sampling_config.max_steps == 20


def test_what_is_found_at_once_is_not_resumed(tmp_path: pathlib.Path) -> None:
    outcome = solve_requests.execute(requests.SolveRequest("kuhn_poker", "lp", results=tmp_path))
    assert outcome.folder is not None
    with pytest.raises(result_folder.ResultError, match="solved at once"):
        requests.resume_request(outcome.folder)


def test_what_fails_at_once_leaves_no_folder(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ValueError, match="zero-sum"):
        solve_requests.execute(requests.SolveRequest("smallest:numbers=2,steps=1", "lp", results=tmp_path))
    assert not list(tmp_path.rglob("lp*"))


def test_an_interrupt_keeps_what_there_is(tmp_path: pathlib.Path) -> None:
    def interrupt(metrics: driver.Metrics) -> None:
        if metrics.iterations >= 4:
            raise KeyboardInterrupt

    request = requests.SolveRequest("kuhn_poker", "cfr+", 100, every=2, results=tmp_path)
    outcome = solve_requests.execute(request, requests.Callbacks(on_metrics=interrupt))
    assert (outcome.interrupted, outcome.solution.iterations) == (True, 4)
    assert outcome.folder is not None
    assert (outcome.folder / result_folder.POLICY).exists()


@dataclasses.dataclass(frozen=True)
class Block:
    first: int = 1
    second: str = "b"


def test_blocks_of_options_are_expanded() -> None:
    calls: list[tuple[int, Block, int]] = []

    def command(number: int = 0, *, block: Block, last: int = 9) -> None:
        calls.append((number, block, last))

    expanded: Any = shared_options.expanded(command)
    assert list(expanded.__signature__.parameters) == ["number", "first", "second", "last"]
    expanded(number=5, first=2, second="c", last=3)
    assert calls == [(5, Block(2, "c"), 3)]


def test_renamed_options_are_accepted_up_to_the_end_of_options() -> None:
    arguments = ["kuhn_poker", "--net", "FOLDER", "--", "--net"]
    current, notes = shared_options.current_names("solve", arguments)
    assert current == ["kuhn_poker", "--network", "FOLDER", "--", "--net"]
    assert notes == ["--net is now called --network"]
    assert shared_options.current_names("match", arguments) == (arguments, [])
