"""`gdlx.solve` and its solution: values, policies by history, errors, how it prints."""

import dataclasses
import html.parser
import pathlib
import sys
import types

import numpy as np
import pytest

import gdlx
from gdlx.envs import game_spec, payoffs
from gdlx.propnet import library
from gdlx.propnet.common import errors
from gdlx.solvers import algorithms, solution, tasks
from gdlx.solvers.runs import driver, result_folder, solver_run


@pytest.fixture(scope="module")
def kuhn() -> solution.Solution:
    return gdlx.solve("kuhn_poker", "cfr+", iterations=2_000)


def test_cfr_plus_solves_kuhn(kuhn: solution.Solution) -> None:
    # Kuhn (1950): the first player loses 1/18 of an ante per game at equilibrium.
    assert kuhn.exploitability is not None
    assert kuhn.exploitability < 1e-3
    assert abs(kuhn.value[0] + 1 / 18) < 1e-3
    assert kuhn.goals[0] == pytest.approx(50 + kuhn.value[0])
    assert kuhn.iterations == 2_000


def test_policies_of_kuhn(kuhn: solution.Solution) -> None:
    # Kuhn (1950): with the jack bet a, with the king 3a; never bet the queen, never fold the king.
    bluff = kuhn.policy("player1", "(dealt jack)")["bet"]
    assert kuhn.policy("player1", ["(dealt king)"])["bet"] == pytest.approx(3 * bluff, abs=0.05)
    assert kuhn.policy("player1", ["(dealt queen)"])["bet"] < 0.01
    assert kuhn.policy("player2", "(dealt king); (opponent_did bet)")["call"] > 0.99
    assert kuhn.policy("player2", ["(dealt queen)", "(opponent_did bet)"])["call"] == pytest.approx(1 / 3, abs=0.02)


@pytest.mark.parametrize(
    "history", ["(dealt king); check; (opponent_did bet)", "(dealt king), check,(opponent_did bet)"]
)
def test_histories_may_be_written_loosely(kuhn: solution.Solution, history: str) -> None:
    assert kuhn.policy("player1", history)["call"] > 0.99


def test_what_there_is_not(kuhn: solution.Solution) -> None:
    with pytest.raises(solution.UnknownHistoryError, match="player1, player2"):
        kuhn.policy("first", "(dealt king)")
    with pytest.raises(solution.UnknownHistoryError, match=r"nearest of its 6 information sets: \(dealt king\)"):
        kuhn.policy("player1", "(dealt kin)")


def test_labels_tell_every_set_apart(kuhn: solution.Solution) -> None:
    for number, player in enumerate(kuhn.tree.players):
        assert len(set(player.labels)) == player.sets
        for decision, label in enumerate(player.labels):
            assert kuhn.find_infoset(number, label) == decision


def test_a_matrix_game_has_one_history() -> None:
    # Seed 000, Table 3.3: the unique equilibrium of the biased game.
    solved = gdlx.solve("biased_rps", "lp")
    assert solved.exploitability == pytest.approx(0, abs=1e-4)
    for player in ("player1", "player2"):
        assert sorted(solved.policy(player).values()) == pytest.approx([0.0625, 0.3125, 0.625], abs=1e-6)


def test_one_player_alone() -> None:
    solved = gdlx.solve("monty_hall", iterations=500)
    assert solved.exploitability is None
    assert solved.value[0] == pytest.approx(200 / 3, abs=0.1)
    assert solved.improvements[0] < 0.1


def test_three_players_have_gains() -> None:
    solved = gdlx.solve("smallest:numbers=3,steps=1", iterations=50)
    assert solved.exploitability is None
    assert len(solved.improvements) == 3


def test_targets_may_be_relative() -> None:
    solved = gdlx.solve("kuhn_poker", target="1%")
    assert solved.exploitability is not None
    assert solved.exploitability <= 0.04  # payoffs go from -2 to 2


def test_settings_change_an_algorithm() -> None:
    plain = gdlx.solve("kuhn_poker", "cfr", iterations=100)
    linear = gdlx.solve("kuhn_poker", "cfr", iterations=100, gamma=1.0)
    assert plain.value != linear.value


def test_a_game_read_in_another_way() -> None:
    solved = gdlx.solve(game_spec.GameSpec("kuhn_poker", payoff="goal"), iterations=100)
    assert solved.value[0] == pytest.approx(50 - 1 / 18, abs=0.1)
    assert not solved.tree.zero_sum


def test_a_solution_prints_in_one_line(kuhn: solution.Solution) -> None:
    assert repr(kuhn) == (
        f"Solution(kuhn_poker, cfr+: 2,000 iterations, value {kuhn.value[0]:.3g}, "
        f"exploitability {kuhn.exploitability:.2g})"
    )
    assert repr(gdlx.solve("biased_rps", "lp")).startswith("Solution(biased_rps, lp: value ")


def test_three_players_print_their_largest_improvement() -> None:
    solved = gdlx.solve("smallest:numbers=3,steps=1", iterations=50)
    values = ", ".join(f"{value:.3g}" for value in solved.value)
    assert repr(solved) == (
        f"Solution({solved.tree.name}, dcfr: 50 iterations, values {values}, "
        f"largest improvement {max(solved.improvements):.2g})"
    )


@pytest.mark.parametrize(
    "metrics", [(), (driver.Metrics(5, 1.0, (), ()),)], ids=["without metrics", "of an unknown value"]
)
def test_a_solution_prints_without_a_value(kuhn: solution.Solution, metrics: tuple[driver.Metrics, ...]) -> None:
    solved = dataclasses.replace(kuhn, metrics=metrics)
    shown = "5 iterations" if metrics else "not measured"
    assert repr(solved) == f"Solution(kuhn_poker, cfr+: {shown})"
    assert shown in solved._repr_html_()


class _Cells(html.parser.HTMLParser):
    """The tags of a text, and the rows of its tables."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.rows: list[list[str]] = []
        self._open: list[str] = []
        self.feed(text)
        assert self._open == [], "every tag is closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert attrs == []
        self.tags.add(tag)
        self._open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("th", "td"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] in ("th", "td"):
            self.rows[-1][-1] += data


def test_a_solution_in_a_notebook(kuhn: solution.Solution) -> None:
    rows = _Cells(kuhn._repr_html_()).rows
    assert rows[0] == ["player", "information sets", "payoff", "goal", "improvement"]
    for number, row in enumerate(rows[1:3]):
        payoff, goal = f"{kuhn.value[number]:.3g}", f"{kuhn.goals[number]:.3g}"
        assert row == [f"player{number + 1}", "6", payoff, goal, f"{kuhn.improvements[number]:.2g}"]
    assert len(rows) == 3 + 2 * (1 + 6)
    shown = dict(row for row in rows[4:10])
    king = kuhn.policy("player1", "(dealt king)")
    assert shown["(dealt king)"] == f"bet: {king['bet']:.3f}, check: {king['check']:.3f}"


def test_a_notebook_shows_the_first_information_sets() -> None:
    solved = gdlx.solve("leduc_poker", iterations=1)
    text = solved._repr_html_()
    assert len(_Cells(text).rows) == 3 + 2 * (1 + 10)
    for player in solved.tree.players:
        assert f"{player.name}: 10 of {player.sets:,} information sets" in text


def test_names_are_escaped_in_a_notebook(kuhn: solution.Solution) -> None:
    hostile = "<script>alert('x')</script>&\""
    players = tuple(
        dataclasses.replace(
            player,
            name=hostile,
            action_names=(hostile,) * len(player.action_names),
            views=(hostile,) * (int(player.view.max()) + 1),
        )
        for player in kuhn.tree.players
    )
    tree = dataclasses.replace(kuhn.tree, name=f"{hostile}\n{hostile}", players=players)
    solved = dataclasses.replace(kuhn, tree=tree, algorithm=hostile)
    cells = _Cells(solved._repr_html_())
    assert cells.tags == {"div", "p", "table", "thead", "tbody", "tr", "th", "td"}
    assert cells.rows[1][0] == hostile
    assert cells.rows[4][0].startswith(hostile)
    assert cells.rows[4][1].startswith(f"{hostile}: ")
    assert "\n" not in repr(solved)


def test_tasks_algorithms_and_runs_print_in_one_line() -> None:
    game = game_spec.GameSpec("kuhn_poker")
    task = tasks.make_tree_task(game)
    assert repr(task) == "TreeTask(kuhn_poker: 2 players, 12 information sets, 30 terminals)"
    assert repr(tasks.make_table_task(game)) == "TableTask(kuhn_poker: 2 players, unrolled)"
    assert repr(algorithms.find("cfr")) == "Algorithm(cfr)"
    assert repr(algorithms.find("vr-mccfr")) == "Algorithm(vr-mccfr: alpha=1.0, beta=1.0, gamma=1.0, decay=0.3)"
    simultaneous = algorithms.with_simultaneous_updates(algorithms.find("cfr"))
    assert repr(simultaneous) == "Algorithm(cfr: alternating=False)"
    run = solver_run.Run(task, algorithms.find("cfr"))
    assert repr(run) == "Run(kuhn_poker, cfr: 0 iterations)"
    list(run.snapshots(driver.StopCondition(iterations=3)))
    assert repr(run) == "Run(kuhn_poker, cfr: 3 iterations)"


def test_solutions_are_saved_and_loaded(kuhn: solution.Solution, tmp_path: pathlib.Path) -> None:
    folder = kuhn.save(str(tmp_path / "a" / "kuhn"))
    solved = gdlx.load_solution(folder)
    assert solved == kuhn
    assert solved.iterations == 2_000
    assert solved.exploitability == pytest.approx(kuhn.exploitability, abs=1e-6)
    assert gdlx.load_solution(solved.save(tmp_path / "again")) == kuhn
    gdlx.solve("biased_rps", "lp").save(folder)
    assert gdlx.load_solution(folder).algorithm == "lp"  # a solution in the folder is replaced


def test_a_saved_solution_is_an_agent(kuhn: solution.Solution, tmp_path: pathlib.Path) -> None:
    result = gdlx.compete("kuhn_poker", [str(kuhn.save(tmp_path / "kuhn")), "random"], games=64)
    assert result.games == 64
    assert not result.incidents


@pytest.mark.parametrize("payoff", ["auto", "goal"])
def test_solutions_of_what_has_no_name_are_loaded_with_the_game(
    payoff: payoffs.PayoffMode, tmp_path: pathlib.Path
) -> None:
    env = gdlx.make(rules=library.text("rps"), payoff=payoff)
    solved = gdlx.solve(env, iterations=5)
    folder = solved.save(tmp_path / "saved")
    assert gdlx.load_solution(folder, env) == solved
    assert gdlx.load_solution(folder, solved.tree) == solved
    with pytest.raises(errors.UserError, match="rules"):  # there is no game of this name
        gdlx.load_solution(folder)
    with pytest.raises(result_folder.ResultError, match="other rules"):
        gdlx.load_solution(folder, "kuhn_poker")


def test_solutions_of_rules_as_text_need_nothing_else(tmp_path: pathlib.Path) -> None:
    solved = gdlx.solve(rules=library.text("rps"), iterations=5)
    assert gdlx.load_solution(solved.save(tmp_path)) == solved


def test_hash_tables_are_saved(tmp_path: pathlib.Path) -> None:
    solved = gdlx.solve("kuhn_poker", "os-mccfr", iterations=3, table=8, batch=64)
    loaded = gdlx.load_solution(solved.save(tmp_path))
    for loaded_policy, policy in zip(loaded.policies, solved.policies, strict=True):
        np.testing.assert_allclose(loaded_policy, policy, atol=1e-6)
    assert gdlx.compete("kuhn_poker", [str(tmp_path), "random"], games=32).games == 32


def test_saving_destroys_nothing(kuhn: solution.Solution, tmp_path: pathlib.Path) -> None:
    (tmp_path / "checkpoint.npz").write_bytes(b"of another run")
    with pytest.raises(result_folder.ResultError, match=r"other files \(checkpoint.npz\)"):
        kuhn.save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint.npz"]
    with pytest.raises(result_folder.ResultError, match="not a folder"):
        kuhn.save(tmp_path / "checkpoint.npz")
    with pytest.raises(result_folder.ResultError, match="no `config`"):
        dataclasses.replace(kuhn, config={}).save(tmp_path / "new")


def test_solutions_are_equal_if_their_policies_are(kuhn: solution.Solution) -> None:
    again, other = (gdlx.solve("kuhn_poker", "cfr+", iterations=n) for n in (2_000, 1_999))
    assert again == kuhn
    assert other != kuhn
    assert len({kuhn, again, other}) == 2
    assert kuhn != "kuhn"


def test_dataframes(kuhn: solution.Solution, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", types.SimpleNamespace(DataFrame=lambda rows: ("made of", rows)))
    assert kuhn.to_dataframe() == ("made of", kuhn.rows())
    assert len(kuhn.rows()) == 24  # 12 information sets with two actions
    monkeypatch.setitem(sys.modules, "pandas", None)  # as if it were not installed
    with pytest.raises(errors.MissingPackageError, match="pip install pandas"):
        kuhn.to_dataframe()
