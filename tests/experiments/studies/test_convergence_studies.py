"""The studies of convergence in miniature: cfr_convergence, hyperparameters and modified_rps."""

import itertools
import json
import pathlib
from typing import Any

import jax
import numpy as np
import pytest

import gdlx
from gdlx import cli
from gdlx.envs import game_spec
from gdlx.experiments.studies import plots, result_cache, study_registry
from gdlx.experiments.studies.cfr_convergence import graph
from gdlx.experiments.studies.cfr_convergence import study as convergence
from gdlx.experiments.studies.hyperparameters import choices
from gdlx.experiments.studies.hyperparameters import study as hyper
from gdlx.experiments.studies.modified_rps import study as rps
from gdlx.experiments.sweeps import config
from gdlx.propnet import games
from gdlx.propnet.common import limits
from gdlx.solvers import algorithms, tasks
from gdlx.solvers.exact import batch
from gdlx.solvers.runs import driver

BOTH_AT_ONCE = algorithms.with_simultaneous_updates(algorithms.find("cfr"))
GOOFSPIEL = "goofspiel:cards=3,info=perfect"


def run_command(command: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert cli.main([*command, "--json"]) == 0
    output: dict[str, Any] = json.loads(capsys.readouterr().out)
    return output


def graph_of(spec: str) -> graph.StateGraph:
    return graph.build_graph(games.compile_game(spec, within=limits.Limits()))


def test_graphs_have_all_states() -> None:
    """The states of goofspiel are both hands, and the lead of the first player."""
    cards = range(1, 5)
    states: set[Any] = {(frozenset(cards), frozenset(cards), 0)}
    sizes = [1]
    for prize in cards:
        states = {
            (mine - {x}, yours - {y}, lead + prize * ((x > y) - (x < y)))
            for mine, yours, lead in states
            for x, y in itertools.product(mine, yours)
        }
        sizes.append(len(states))
    unrolled = graph_of("goofspiel:cards=4,info=perfect")
    assert [len(level.payoff) for level in unrolled.levels] == sizes
    assert (unrolled.nodes, unrolled.terminals) == (sum(sizes), sizes[-1])


def test_their_sizes() -> None:
    """Table 5.1 counts the wins of both players in nine rounds; hands, points and the last winner in goofspiel."""
    wins = [(mine, yours) for mine in range(10) for yours in range(10 - mine)]
    assert (sum(1 for mine, yours in wins for _ in range(mine + yours, 10)), len(wins)) == (220, 55)
    cards = frozenset(range(1, 6))
    states: set[Any] = {(cards, cards, 0, 0, 0)}
    sizes = [1]
    for prize in range(1, 6):
        states = {
            (mine - {x}, yours - {y}, own + prize * (x > y), other + prize * (x < y), (x > y) - (x < y))
            for mine, yours, own, other, _ in states
            for x, y in itertools.product(mine, yours)
        }
        sizes.append(len(states))
    published = convergence.GAMES[2]
    assert (sum(sizes), sizes[-1]) == (published.nodes, published.terminals) == (2_936, 138)


def test_on_a_tree_it_is_cfr() -> None:
    """No two histories of three cards meet where there is still a choice."""
    with jax.enable_x64(True):
        unrolled = graph_of(GOOFSPIEL)
        average = graph.average_policy(unrolled, graph.advance(unrolled, graph.init(unrolled), 40))
        solution = gdlx.solve(GOOFSPIEL, BOTH_AT_ONCE, iterations=40)
        exploitability = float(graph.exploitability(unrolled, average))
    for player, policy in enumerate(solution.policies):
        np.testing.assert_allclose(average[0][player, 0], policy[1:4], atol=1e-9)
        later = np.asarray(average[1])[player, :, :2]
        np.testing.assert_allclose(sorted(map(tuple, later)), sorted(map(tuple, policy[4:].reshape(-1, 2))), atol=1e-9)
    assert exploitability == pytest.approx(solution.exploitability, abs=1e-9)


class Rounds:
    """CFR in two rounds of rock-paper-scissors, history by history, with regrets by round and lead."""

    def __init__(self) -> None:
        leads = [(0, 0), (1, -1), (1, 0), (1, 1)]
        self.regret, self.total = ({(i, s): np.zeros(3) for i in (0, 1) for s in leads} for _ in range(2))
        self.policy = {key: np.array([1.0, 0.0, 0.0]) for key in self.regret}

    def value(self, played: int, lead: int, reach: tuple[float, float], new: dict[Any, Any]) -> float:
        if played == 2:
            return 50.0 * int(np.sign(lead))
        state = (played, lead)
        first, second = (self.policy[i, state] for i in (0, 1))
        # Signs in the order of their names: paper, rock, scissors; each beats the next.
        after = np.array(
            [
                [
                    self.value(
                        played + 1, lead + (0, 1, -1)[(b - a) % 3], (reach[0] * first[a], reach[1] * second[b]), new
                    )
                    for b in range(3)
                ]
                for a in range(3)
            ]
        )
        for player, options in enumerate((after @ second, -(first @ after))):
            own = (first, second)[player]
            new[player, state][0] += reach[1 - player] * (options - own @ options)
            new[player, state][1] += reach[player] * own
        return float(first @ after @ second)

    def step(self) -> None:
        new = {key: [np.zeros(3), np.zeros(3)] for key in self.regret}
        self.value(0, 0, (1.0, 1.0), new)
        for key, (regret, weight) in new.items():
            self.regret[key] += np.where(np.abs(regret) > 1e-9, regret, 0)
            self.total[key] += weight
            positive = np.maximum(self.regret[key], 0)
            self.policy[key] = positive / positive.sum() if positive.sum() > 0 else np.full(3, 1 / 3)

    def average(self, player: int, state: tuple[int, int]) -> Any:
        return self.total[player, state] / self.total[player, state].sum()

    def best(self, player: int, played: int, lead: int) -> float:
        """Payoff of a best response by this player."""
        if played == 2:
            return 50.0 * int(np.sign(lead)) * (1 - 2 * player)
        other = self.average(1 - player, (played, lead))
        sign = 1 - 2 * player
        return max(
            sum(
                float(other[b]) * self.best(player, played + 1, lead + sign * (0, 1, -1)[(b - a) % 3]) for b in range(3)
            )
            for a in range(3)
        )


def test_states_that_many_histories_reach() -> None:
    slow = Rounds()
    for _ in range(25):
        slow.step()
    with jax.enable_x64(True):
        unrolled = graph_of("repeated_rps:rounds=2")
        assert [len(level.payoff) for level in unrolled.levels] == [1, 3, 5]
        average = graph.average_policy(unrolled, graph.advance(unrolled, graph.init(unrolled, first=True), 25))
        exploitability = float(graph.exploitability(unrolled, average))
    for player in (0, 1):
        np.testing.assert_allclose(average[0][player, 0], slow.average(player, (0, 0)), atol=1e-9)
        expected = sorted(tuple(slow.average(player, (1, lead))) for lead in (-1, 0, 1))
        np.testing.assert_allclose(sorted(map(tuple, np.asarray(average[1])[player])), expected, atol=1e-9)
    assert exploitability == pytest.approx((slow.best(0, 0, 0) + slow.best(1, 0, 0)) / 2)
    assert exploitability > 0.1


def test_cfr_convergence(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    biased = convergence.GAMES[0]
    small = biased._replace(spec=GOOFSPIEL, nodes=54, terminals=13, is_merged=False)
    monkeypatch.setattr(convergence, "GAMES", (biased, small))
    minutes = 1e-4 * convergence.MINUTES  # 100 iterations of a million
    command = ["experiment", "cfr_convergence", "--minutes", str(minutes), "--results", str(tmp_path)]
    sizes, speeds, finals = run_command(command, capsys)["tables"]
    assert sizes["data"][0] == {"game": "biased_rps", "nodes": 10, "terminals": 9}
    with jax.enable_x64(True):
        by_hand = [
            np.concatenate([policy[1:] for policy in gdlx.solve("biased_rps", BOTH_AT_ONCE, iterations=n).policies])
            for n in (20, 100)
        ]
        exact = gdlx.solve("biased_rps", BOTH_AT_ONCE, iterations=100).exploitability
        actual = convergence._cached_curve(biased, study_registry.StudyConfig(tmp_path / "cfr_convergence", minutes))
    assert actual.mse[19] == pytest.approx(sum((by_hand[0] - by_hand[1]) ** 2) / 6, rel=1e-6)
    assert actual.mse[-1] == 0
    assert finals["data"][0]["exploitability"] == pytest.approx(exact, rel=1e-6)
    (reached, _) = speeds["data"][0]["reached"]
    assert actual.mse[reached["iterations"] - 1] < 0.01 <= actual.mse[: reached["iterations"] - 1].min()
    assert actual.mse[reached["stays"] - 2] >= 0.01 > actual.mse[reached["stays"] - 1 :].max()
    assert reached["stays"] > reached["iterations"]  # the error oscillates
    assert (tmp_path / "cfr_convergence" / convergence.FIGURE).stat().st_size > 10_000

    def no_run(*_: Any) -> convergence.ConvergenceCurve:
        raise AssertionError("cached results are not computed again")

    monkeypatch.setattr(convergence, "measure_curve", no_run)
    assert run_command(command, capsys)["tables"] == [sizes, speeds, finals]


def test_an_interrupted_run_resumes(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convergence, "_SAVE_INTERVAL", 0.0)
    biased = convergence.GAMES[0]
    small = biased._replace(spec=GOOFSPIEL, is_merged=False)
    for game, kind in ((biased, convergence.StateGraphSolver), (small, convergence.TreeSolver)):
        path = tmp_path / f"{kind.__name__}.npz"
        advance = kind.advance
        counts: list[int] = []

        def stops(self: Any, count: int, advance: Any = advance, counts: list[int] = counts) -> None:
            counts.append(count)
            if len(counts) == 21:
                raise KeyboardInterrupt
            advance(self, count)

        with jax.enable_x64(True):
            whole = convergence.measure_curve(game, 40, tmp_path / "no.npz")
            result_cache.remove_arrays(tmp_path / "no.npz")
            monkeypatch.setattr(kind, "advance", stops)
            with pytest.raises(KeyboardInterrupt):
                convergence.measure_curve(game, 40, path)
            first = sum(counts[:-1])
            counts.clear()
            counts.extend([0] * 21)
            actual = convergence.measure_curve(game, 40, path)
        again = 40 + 1 + (10 if game.is_merged else 0) - first  # one more for the change, a quarter from another start
        assert (first, sum(counts)) == (19, again)
        np.testing.assert_allclose(actual.mse, whole.mse, rtol=1e-9)
        np.testing.assert_allclose(actual.exploitability, whole.exploitability, rtol=1e-9)
        assert actual.change == pytest.approx(float(whole.change))


def test_scores() -> None:
    first = [np.array([2.0, 4.0]), np.array([1.0, 2.0]), np.array([12.0, 12.0])]
    second = [np.array([1.0, 1.0]), np.array([4.0, 4.0]), np.array([1.0, 1.0])]
    actual = hyper.scores([first, second])
    np.testing.assert_allclose(actual.ratio, [np.sqrt(2), 2, np.sqrt(8)])  # means 3, 1.5, 12 and 1, 4, 1
    assert actual.rank == [1, 2, 3]
    np.testing.assert_allclose(actual.error, [np.sqrt(2) * (1 / 3) / 2, 2 * (0.5 / 1.5) / 2, 0])
    figure = choices.ThesisFigure(
        "0", "", {"a": choices.FullCfrChoice(), "b": choices.CFR_PLUS, "c": choices.DCFR_CANDIDATE}, ["a", "b"]
    )
    assert hyper.verdict(figure, actual) == (
        "Best here: a; chosen by the thesis: a is among the best; b is not among the best (1.41)"
    )


def test_every_choice_is_a_cell_of_its_own() -> None:
    size = hyper.DEFAULT_SIZE
    every = {choice for figure in (*choices.FULL, *choices.SAMPLING) for choice in figure.choices.values()}
    assert every >= set(choices.FINAL_CANDIDATES.values())
    names = [cell.name for choice in every for cell in hyper.make_cells(size, choice)]
    assert len(names) == len(set(names))
    for figure in (*choices.FULL, *choices.SAMPLING):
        assert set(figure.chosen) <= set(figure.choices)


def test_the_full_size() -> None:
    setting = study_registry.StudyConfig(pathlib.Path(), hyper.FULL_MINUTES, is_full=True)
    assert hyper.scaled_size(setting) == hyper.FULL_SIZE
    for game in hyper.FULL_SIZE.games:
        games.load_rulesheet(game.spec)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    games = [hyper.StudyGame(spec, "", spec) for spec in ("kuhn_poker", "simple_poker")]
    monkeypatch.setattr(hyper, "DEFAULT_SIZE", hyper.DEFAULT_SIZE._replace(games=games, batch=4, seeds=3))
    exploration = {name: choices.SAMPLING[1].choices[name] for name in ("0.3", "0.7", "1")}
    monkeypatch.setattr(choices, "FULL", choices.FULL[1:2])
    monkeypatch.setattr(choices, "SAMPLING", (choices.SAMPLING[1]._replace(choices=exploration),))
    monkeypatch.setattr(
        choices, "FINAL_CANDIDATES", {"CFR+ 1": choices.CFR_PLUS, "MC": choices.OutcomeSamplingChoice(exploration=0.7)}
    )


@pytest.mark.slow
@pytest.mark.usefixtures("few")
def test_hyperparameters(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["experiment", "hyperparameters", "--minutes", str(0.05 * hyper.MINUTES), "--results", str(tmp_path)]
    tables = run_command(command, capsys)["tables"]
    full, sampled, last = (next(iter(table["data"].values())) for table in tables)
    chosen = next(row for row in full if row["choice"] == "1.5")
    assert chosen["chosen"]
    alone = gdlx.solve("kuhn_poker", "cfr+", iterations=50, gamma=1.5).exploitability
    assert alone is not None
    assert chosen["exploitability"][0] == pytest.approx(100 / 4 * alone, rel=1e-4)  # payoffs from -2 to 2
    settings: dict[str, Any] = {"alpha": np.inf, "beta": np.inf, "gamma": 0.0, "exploration": 0.3, "batch": 4}
    runs = [
        100 / 4 * float(gdlx.solve("kuhn_poker", "os-mccfr", iterations=150, seed=seed, **settings).exploitability or 0)
        for seed in range(3)
    ]
    assert sampled[0]["exploitability"][0] == pytest.approx(np.mean(runs), rel=1e-3)
    assert sampled[0]["standard_error"][0] == pytest.approx(np.std(runs, ddof=1) / np.sqrt(3), rel=1e-2)
    for rows in (full, sampled):
        assert [row["rank"] for row in sorted(rows, key=lambda row: row["times_best"])] == list(range(1, len(rows) + 1))
    assert [row["candidate"] for row in last] == ["CFR+ 1", "MC"] * 2
    plus = gdlx.solve("kuhn_poker", "cfr+", iterations=50).exploitability
    assert plus is not None
    finals = {"CFR+ 1": 100 / 4 * plus, "MC": sampled[1]["exploitability"][0]}
    for what in ("at_visits", "at_seconds"):  # the candidate with the least of it has then run to its end
        at_end = {row["candidate"]: row[what][-1] for row in last[:2]}
        assert any(at_end[name] == pytest.approx(final, rel=1e-4) for name, final in finals.items())
    for name in hyper.FIGURE_FILES:
        assert (tmp_path / "hyperparameters" / name).stat().st_size > 10_000

    def no_run(*_: Any, **__: Any) -> None:
        raise AssertionError("cached results are not computed again")

    monkeypatch.setattr(batch, "run_chunks", no_run)
    assert run_command(command, capsys)["tables"] == tables


def test_what_was_visited() -> None:
    tree = gdlx.solve("kuhn_poker", "cfr", iterations=1).tree
    counts = np.array([1.0, 10.0])
    none = np.zeros(2)
    full = hyper.RunCurves(counts, none, none[:, None], none[:, None])
    nodes = sum(tree.counts.nodes)
    assert hyper.nodes_visited(full, tree).tolist() == [2 * nodes, 20 * nodes]
    sampled = full._replace(samples=np.array([8.0, 80.0]))
    assert hyper.nodes_visited(sampled, tree).tolist() == [8 * len(tree.counts.nodes), 80 * len(tree.counts.nodes)]
    assert np.isnan(hyper.interpolate_log_log(counts, np.array([1.0, 0.1]), 0.5))


def test_modified_rps(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    searches = (rps.SEARCHES[0], rps.SEARCHES[3])
    monkeypatch.setattr(rps, "SEARCHES", searches)
    monkeypatch.setattr(rps, "SEEDS", 2)
    part = 0.01  # 200 iterations
    command = ["experiment", "modified_rps", "--minutes", str(part * rps.MINUTES), "--results", str(tmp_path)]
    equilibrium, table = run_command(command, capsys)["tables"]
    assert equilibrium["data"]["policy"] == pytest.approx([0.4, 0.4, 0.2])
    assert equilibrium["data"]["goals"] == pytest.approx(50)
    setting = study_registry.StudyConfig(tmp_path / "modified_rps", part * rps.MINUTES)
    task = tasks.make_tree_task(game_spec.GameSpec(rps.GAME), keep_edges=True)
    curves = [rps._cached_curve(task, search, setting) for search in searches]
    for row, curve in zip(table["data"], curves, strict=True):
        # West (2024), Table 1: goals of the first player by the moves of both.
        goals = np.array([[50, 25, 100], [75, 50, 0], [0, 100, 50]])
        np.testing.assert_allclose(curve.worst, (curve.policy @ goals).min(axis=2), atol=1e-3)
        assert row["worst"] == pytest.approx(curve.worst[-1].mean())
        for reached in row["reached"]:
            distance = np.abs(curve.policy - [0.4, 0.4, 0.2]).max(axis=2).mean(axis=1)
            after = curve.iterations >= (reached["iterations"] or np.inf)
            assert (distance[after] <= reached["within"]).all()
            assert not after.any() or after.all() or distance[~after][-1] > reached["within"]
    assert curves[1].policy.shape[1] == 2
    solution = gdlx.solve(rps.GAME, "cfr", iterations=200)
    assert curves[0].policy[-1, 0] == pytest.approx([solution.policy("player1")[move] for move in rps.MOVES], abs=1e-5)
    assert (tmp_path / "modified_rps" / rps.FIGURE).stat().st_size > 10_000

    def no_run(*_: Any, **__: Any) -> None:
        raise AssertionError("cached results are not computed again")

    monkeypatch.setattr(driver, "iterate", no_run)
    assert run_command(command, capsys)["tables"] == [equilibrium, table]


def test_a_failed_cell_is_reported(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    games = [hyper.StudyGame("no_such_game", "", "")]
    monkeypatch.setattr(hyper, "DEFAULT_SIZE", hyper.DEFAULT_SIZE._replace(games=games))
    setting = study_registry.StudyConfig(tmp_path, hyper.MINUTES)
    with pytest.raises(config.SweepError, match=r"no_such_game.* failed"):
        hyper.run_sweep(hyper.scaled_size(setting), [choices.CFR_PLUS], setting)


def test_lines_and_bands(tmp_path: pathlib.Path) -> None:
    figure, (axes,) = plots.make_panels(1, 1)
    runs = np.array([[1.0, 3.0], [0.0, 0.0], [0.1, 0.1]])
    plots.plot_curves(axes, [plots.Line("a", np.array([1.0, 2.0, 4.0]), runs)], title="", x="", y="", reference=0.1)
    drawn, known = axes.get_lines()
    assert drawn.get_xydata().tolist() == [[1.0, 2.0], [4.0, 0.1]]  # logarithmic axes omit zeros
    assert set(known.get_ydata()) == {0.1}
    assert len(axes.collections) == 1
    plots.save_figure(tmp_path / "a.png", figure)
    assert (tmp_path / "a.png").read_bytes()[1:4] == b"PNG"
