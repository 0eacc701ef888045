"""Restricted Nash responses: against the game with an explicit coin toss, linear programs, and p of 0 and 1."""

import dataclasses
import functools
import itertools
import json
import pathlib
from collections.abc import Iterator

import jax
import numpy as np
import pytest
import scipy.optimize

from gdlx import cli
from gdlx.envs import game_spec
from gdlx.solvers import algorithms, solve_requests, tabular_policies, tasks
from gdlx.solvers.exact import best_response, lp, restricted_nash
from gdlx.solvers.runs import result_folder, solver_run
from gdlx.tests.helpers import explicit
from gdlx.tests.solvers.exact import test_cfr
from gdlx.tests.solvers.exact.test_best_response import random_policies

GAMES = ("biased_rps", "kuhn_poker", "goofspiel:cards=3", "simple_poker")
jitted_best_response = jax.jit(best_response.best_response, static_argnums=2)


@pytest.fixture(autouse=True)
def _x64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


@pytest.fixture
def _single() -> Iterator[None]:
    """For sweeps: a precision that is set by a context manager does not apply to their threads."""
    with jax.enable_x64(False):
        yield


def task_of(spec: str) -> tasks.TreeTask:
    return _task(spec, jax.numpy.result_type(float) == np.float64)


@functools.cache
def _task(spec: str, is_double: bool) -> tasks.TreeTask:
    del is_double
    return tasks.make_tree_task(game_spec.GameSpec(spec))


def model_of(spec: str, player: int, seed: int = 0) -> tabular_policies.Policy:
    return random_policies(task_of(spec).tree, seed)[player]


def bound(node: explicit.Node, player: int, model: explicit.Policy) -> explicit.Node:
    """The game in which the actions of a player are chance's."""
    match node:
        case explicit.TerminalNode():
            return node
        case explicit.ChanceNode():
            return explicit.ChanceNode([(p, bound(child, player, model)) for p, child in node.children])
        case explicit.DecisionNode():
            if player not in node.views:
                return node._replace(children={j: bound(c, player, model) for j, c in node.children.items()})
            place, drawn = list(node.views).index(player), model[player, node.views[player]]
            kept: dict[tuple[int, ...], list[tuple[float, explicit.Node]]] = {}
            for joint, child in node.children.items():
                rest = (*joint[:place], *joint[place + 1 :])
                kept.setdefault(rest, []).append((drawn[joint[place]], bound(child, player, model)))
            children: dict[tuple[int, ...], explicit.Node] = {rest: explicit.ChanceNode(c) for rest, c in kept.items()}
            if () in children:
                return children[()]
            views, options = ({n: own for n, own in part.items() if n != player} for part in (node.views, node.actions))
            return explicit.DecisionNode(views, options, children)  # type: ignore[arg-type]


@pytest.mark.parametrize("player", [0, 1])
@pytest.mark.parametrize("spec", GAMES[1:])
def test_it_is_the_game_with_a_toss_at_the_start(spec: str, player: int) -> None:
    """Iteration by iteration against recursion over a game in which chance first draws the kind of opponent."""
    tree, root = explicit.load_game(spec)
    policies = random_policies(tree, 1)
    model = explicit.from_arrays(tree, policies)
    tossed = explicit.ChanceNode([(0.3, bound(root, player, model)), (0.7, root)])
    actual = restricted_nash.restricted_tree(tree, restricted_nash.Restriction(player, policies[player], 0.3))
    test_cfr.assert_same_run(actual, tossed, test_cfr.SETTINGS["dcfr"], 6)


def matrix_value(payoff: np.ndarray, column: np.ndarray, p: float) -> float:
    """max over x of p x'Ac + (1 - p) min of x'A, by a linear program in x and that minimum."""
    rows, columns = payoff.shape
    optimum = scipy.optimize.linprog(
        np.concatenate([-p * payoff @ column, [p - 1]]),
        A_ub=np.hstack([-payoff.T, np.ones((columns, 1))]),
        b_ub=np.zeros(columns),
        A_eq=[[1] * rows + [0]],
        b_eq=[1],
        bounds=[(0, None)] * rows + [(None, None)],
    )
    return float(-optimum.fun)


# Goals of Shafiei Khadem (2010), Table 3.3, less 50: paper, rock, scissors against the same.
BIASED = np.array([[0, 25, -5], [-25, 0, 50], [5, -50, 0]], float)


@pytest.mark.parametrize("p", [0, 0.1, 0.25, 0.5, 0.75, 1])
def test_a_matrix_game_against_its_linear_program(p: float) -> None:
    task = task_of("biased_rps")
    for model in (np.array([1, 0, 1.0, 0]), np.array([1, 0.2, 0.3, 0.5])):
        restriction = restricted_nash.Restriction(1, model, p)
        value = matrix_value(BIASED, model[1:], p)
        exact = solver_run.solve_exactly(restricted_nash.make_restricted_task(task, restriction), algorithms.find("lp"))
        assert exact.value[0] == pytest.approx(value, abs=1e-7)
        iterated = solve_requests.solve(
            restricted_nash.restricted_tree(task.tree, restriction), "cfr+", iterations=2000
        )
        assert iterated.exploitability is not None
        assert iterated.exploitability < 0.01
        assert iterated.value[0] == pytest.approx(value, abs=0.02)


@pytest.mark.usefixtures("_single")
@pytest.mark.parametrize("spec", GAMES)
def test_no_trust_is_an_equilibrium_and_full_trust_a_best_response(spec: str) -> None:
    task = task_of(spec)
    for player in (0, 1):
        model, own = model_of(spec, player), 1 - player
        responses = restricted_nash.sweep_probabilities(task, player, model, [0, 1], algorithms.find("dcfr"), 1000)
        got = restricted_nash.evaluate_trade_off(task, player, model, responses)
        value = restricted_nash.exact_game_value(task, own)
        assert value is not None
        spread = task.payoff_range[1] - task.payoff_range[0]
        assert value - 2e-3 * spread < got.worst_case[0] < value + 1e-6 * spread
        policies = random_policies(task.tree, 0)
        _, best = jitted_best_response(task.form, tabular_policies.to_levels(task.tree, task.layouts, policies), own)
        assert float(best) - 2e-3 * spread < got.exploitation[1] < float(best) + 1e-6 * spread


@pytest.mark.parametrize("spec", GAMES)
def test_more_trust_exploits_more_and_risks_more(spec: str) -> None:
    task = task_of(spec)
    for player, seed in itertools.product((0, 1), (0, 1)):
        model = model_of(spec, player, seed)
        responses = [
            lp.solve(
                restricted_nash.restricted_tree(task.tree, restricted_nash.Restriction(player, model, p))
            ).policies[1 - player]
            for p in np.linspace(0, 1, 9)
        ]
        got = restricted_nash.evaluate_trade_off(task, player, model, np.stack(responses, axis=1))
        assert (np.diff(got.exploitation) > -1e-6).all()
        assert (np.diff(got.worst_case) < 1e-6).all()
        policies = random_policies(task.tree, seed)
        _, best = jitted_best_response(
            task.form, tabular_policies.to_levels(task.tree, task.layouts, policies), 1 - player
        )
        assert got.exploitation[-1] == pytest.approx(float(best))


@pytest.mark.usefixtures("_single")
def test_a_sweep_is_its_runs() -> None:
    task, p = task_of("kuhn_poker"), [0.0, 0.4, 0.9]
    model = model_of("kuhn_poker", 0)
    together = restricted_nash.sweep_probabilities(task, 0, model, p, algorithms.find("cfr+"), 50)
    for number, each in enumerate(p):
        alone = solve_requests.solve(
            restricted_nash.restricted_tree(task.tree, restricted_nash.Restriction(0, model, each)),
            "cfr+",
            iterations=50,
        )
        np.testing.assert_allclose(together[:, number], alone.policies[1], atol=1e-5)


@pytest.mark.parametrize("spec", ["kuhn_poker", "goofspiel:cards=3"])
def test_a_mixture_gets_what_drawing_before_the_game_gets(spec: str) -> None:
    task = task_of(spec)
    first, second, against = (random_policies(task.tree, seed) for seed in (3, 4, 5))
    weights = np.array([0, 0.2, 0.7, 1])
    actual = restricted_nash.mix_policies(task.tree.players[0], first[0], second[0], weights)
    ends = [restricted_nash.evaluate_trade_off(task, 1, against[1], own[0]).exploitation for own in (first, second)]
    got = restricted_nash.evaluate_trade_off(task, 1, against[1], actual)
    np.testing.assert_allclose(got.exploitation, (1 - weights) * ends[0] + weights * ends[1], atol=1e-12)
    tabular_policies.validate(task.tree.players[0], actual)
    slow = explicit.from_arrays(task.tree, (actual[:, 1], against[1]))
    assert explicit.expected(explicit.load_game(spec)[1], slow)[0] == pytest.approx(got.exploitation[1])


def test_models_are_told_apart_and_checked() -> None:
    task = task_of("kuhn_poker")
    one, other = (restricted_nash.Restriction(1, model_of("kuhn_poker", 1, seed), 0.5) for seed in (0, 1))
    assert one.digest != other.digest == dataclasses.replace(other, p=0.1).digest
    assert restricted_nash.make_restricted_task(task, one).digest == task.digest
    with pytest.raises(tabular_policies.PolicyError, match="13 sequences"):
        restricted_nash.make_restricted_task(task, dataclasses.replace(one, model=np.ones(4)))
    with pytest.raises(restricted_nash.RestrictionError, match="from 0 to 1; it cannot be nan"):
        restricted_nash.Restriction(1, one.model, float("nan"))
    with pytest.raises(restricted_nash.RestrictionError, match="3 players"):
        restricted_nash.model_terminals(explicit.load_game("smallest:numbers=2,steps=2")[0], 0, np.ones(1))


ROCK = "player,information_set,option,probability\nplayer2,start,rock,1\n"


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[pathlib.Path]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rock.csv").write_text(ROCK)
    with jax.enable_x64(False):
        yield tmp_path


def test_the_command_and_going_on(folder: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["solve", "biased_rps", "--restrict", "rock.csv", "--p", "0.5", "--algorithm", "cfr+"]
    assert cli.main([*command, "--iterations", "100", "--json"]) == 0
    first = json.loads(capsys.readouterr().out)
    where = folder / first["result"]
    assert (where / result_folder.MODEL).exists()
    (folder / "rock.csv").unlink()  # the result has a copy
    assert cli.main(["solve", "--resume", str(where), "--iterations", "500", "--json"]) == 0
    output = json.loads(capsys.readouterr().out)
    assert output["iterations"] == 500
    reported = output["restricted"]
    assert (reported["model"], reported["responder"], reported["p"]) == ("player2", "player1", 0.5)
    assert output["value"]["player1"] == pytest.approx(matrix_value(BIASED, np.array([0, 1, 0]), 0.5), abs=0.05)
    # Paper with 15/16, rock with 1/16: as much as scissors and paper of a free opponent leave it.
    assert reported["exploitation_goal"] == pytest.approx(73.4375, abs=0.1)
    assert reported["worst_goal"] == pytest.approx(48.4375, abs=0.1)
    assert reported["exploitability"] == pytest.approx(reported["game_value"] - reported["worst"])
    assert cli.main(["evaluate", str(where), "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["exploitability"] == pytest.approx(output["exploitability"], abs=1e-4)
    assert again["restricted"]["exploitation"] == pytest.approx(reported["exploitation"])
    result_folder.write_model(where, np.array([1, 1, 0, 0.0]))
    assert cli.main(["evaluate", str(where)]) == 1
    assert "another model than config.json says" in capsys.readouterr().err


def test_the_other_player_and_its_words(folder: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "rock.csv").write_text(ROCK.replace("player2", "player1"))
    assert (
        cli.main(
            ["solve", "biased_rps", "--restrict", "rock.csv", "--p", "1", "--model", "player1", "--algorithm", "lp"]
        )
        == 0
    )
    printed = capsys.readouterr().out
    assert "exploitability in the restricted game" in printed
    assert "player1 plays the model with probability 1; the payoff of player2 is" in printed
    assert "25.000000 (goal 75.0000) against the model" in printed
    assert "-5.000000 (goal 45.0000) against a best response, 5 below the value of the game" in printed


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--restrict", "rock.csv"), 2, "--restrict needs --p"),
        (("--p", "0.5"), 2, "--p needs --restrict"),
        (("--restrict", "rock.csv", "--p", "1.5"), 1, "from 0 to 1; it cannot be 1.5"),
        (("--restrict", "rock.csv", "--p", "0.5", "--model", "bob"), 1, "no player 'bob' to model; it has player1 and"),
        (("--restrict", "rock.csv", "--p", "0.5", "--model", "player1"), 1, "no policy of player1, only of player2"),
        (("--restrict", "rock.csv", "--p", "0.5", "--algorithm", "es-mccfr"), 1, "es-mccfr samples play"),
        (("--restrict", "nowhere.csv", "--p", "0.5"), 1, "nowhere.csv does not exist: name the result folder"),
        (("--restrict", "rock.txt", "--p", "0.5"), 1, "rock.txt does not exist: name the result folder"),
        (("--restrict", "rock.png", "--p", "0.5"), 1, "rock.png is not a policy: name the result folder"),
        (("--restrict", "lizard.csv", "--p", "0.5"), 1, "no action 'lizard'"),
        (("--restrict", "broken.json", "--p", "0.5"), 1, "broken.json is not a policy of player2 in biased_rps"),
        (("--restrict", "kuhn", "--p", "0.5"), 1, "other rules than biased_rps has now, those of kuhn_poker"),
    ],
)
def test_mistakes(
    folder: pathlib.Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], code: int, message: str
) -> None:
    (folder / "lizard.csv").write_text(ROCK.replace("rock", "lizard"))
    (folder / "rock.png").write_text("a picture")
    (folder / "broken.json").write_text('{"policy"')
    (folder / "kuhn").mkdir()
    config = result_folder.Config(
        game_spec.GameSpec("kuhn_poker"), task_of("kuhn_poker").digest, algorithms.find("cfr"), False
    )
    result_folder.write_config(folder / "kuhn", config)
    assert cli.main(["solve", "biased_rps", *arguments]) == code
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.out == ""
    assert not (folder / "results").exists()


def test_a_run_goes_on_with_its_own_model(folder: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["solve", "--resume", "nowhere", "--p", "0.5", "--restrict", "rock.csv"]) == 2
    assert "leave out --restrict" in capsys.readouterr().err
