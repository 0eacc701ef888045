"""What a report and the list of results say of rules, propnets, matches, tournaments, trainings and batches."""

import json
import pathlib
from typing import Any

import pytest

import gdlx
from gdlx.envs import game_spec
from gdlx.experiments.reports import gather, report
from gdlx.experiments.reports.drawing import propnet_figure
from gdlx.experiments.sweeps import query
from gdlx.nets import checkpoints
from gdlx.nets.learners import learner_registry
from gdlx.players.agents import agent_registry
from gdlx.players.matches import arenas, match, tournament
from gdlx.propnet import library
from gdlx.tests.helpers import reports

GAME = "rps"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A match, a tournament and a training of one game."""
    root = tmp_path_factory.mktemp("results")
    gdlx.compete(GAME, ["random", "random"], games=32, seed=3, folder=_new(root / "match"))
    agents = tuple(agent_registry.make_agent("random") for _ in range(3))
    played = tournament.Tournament(arenas.make_arena(GAME), agents, match.MatchSettings(games=10))
    running = tournament.TournamentRun(played, _new(root / "tournament"))
    for _ in running.batches():
        pass
    running.finish()
    config = learner_registry.TrainConfig(
        game_spec.GameSpec(GAME), "self-play", 5, learner_registry.make_settings("self-play", {})
    )
    checkpoints.write_config(_new(root / "net"), config, _digest(root / "match"), seed=7)
    rows = [
        {"iteration": 1, "seconds": 2.5, "loss": 0.5},
        {"iteration": 10, "seconds": 9.0, "exploitability": 0.125, "goal_player1": 61.0, "goal_player2": 58.5},
        {"iteration": 11, "seconds": 9.5, "loss": 0.25},
    ]
    checkpoints.write_metrics(root / "net", rows)
    return root


def _new(folder: pathlib.Path) -> pathlib.Path:
    folder.mkdir()
    return folder


def _digest(folder: pathlib.Path) -> str:
    return str(json.loads((folder / "config.json").read_text())["digest"])


def tables_of(page: reports.Element) -> list[list[list[str]]]:
    return [
        [[cell.text for cell in row.find("td")] for row in table.find("tr") if list(row.find("td"))]
        for table in page.find("table", "scores")
    ]


def test_matches_tournaments_and_trainings_are_on_the_page(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    written = report.write([folder], tmp_path / "report.html")
    assert (written.runs, written.contests, written.trainings, written.games) == (0, 2, 1, (GAME,))
    assert written.skipped == ()  # the matches of the tournament are in it
    page = reports.parse_page(tmp_path / "report.html")
    training, match_table, standings, crosstable = tables_of(page)
    assert training == [["self-play", "7", "11", "9.5", "0.125", "61", "58.5", str(folder / "net")]]
    result = json.loads((folder / "match" / "result.json").read_text())
    best = max(result["agents"], key=lambda one: one["payoff"]["mean"])
    assert match_table[0][:2] == [best["agent"], "32"]
    assert match_table[0][2].startswith(f"{best['payoff']['mean']:.4g} ± ")
    assert [row[1] for row in standings] == ["20"] * 3
    assert [row[0] for row in crosstable] == [row[0] for row in standings]
    assert [crosstable[n][n + 1] for n in range(3)] == [""] * 3  # nobody plays against itself
    assert "Tournament of 30 games" in page.text


def test_they_stand_beside_the_solutions_of_their_game(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    gdlx.solve(GAME, iterations=5).save(tmp_path / "solution")
    gdlx.solve("spiel:kuhn_poker", iterations=5).save(tmp_path / "spiel")
    report.write([folder, tmp_path], tmp_path / "report.html")
    page = reports.parse_page(tmp_path / "report.html")
    assert sorted(title.text for title in page.find("h2")) == [GAME, "spiel:kuhn_poker"]
    assert len(list(page.find("table", "policy"))) == 4  # also of the game of OpenSpiel
    assert len(list(page.find("svg", "propnet"))) == 1


def test_the_rules_are_on_the_page(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    sheet = tmp_path / "mine.gdl"
    sheet.write_text(library.text(GAME) + "; a comment </pre><script>alert(1)</script> \u202e & more\n")
    gdlx.solve(sheet, iterations=5).save(tmp_path / "solution")
    page = reports.write_and_parse_report(tmp_path)
    assert "; a comment </pre><script>alert(1)</script> \N{REPLACEMENT CHARACTER} & more" in page.text
    assert not list(page.find("script"))
    sheet.write_text(library.text("tictactoe"))  # the same name, another game
    text = reports.write_and_parse_report(tmp_path).text
    assert "The rules have changed since" in text
    assert "(role x)" not in text


def test_the_drawing_of_a_propnet_has_every_gate_and_output() -> None:
    propnet = gdlx.compile("kuhn_poker")
    drawn = reports.Parser(str(propnet_figure.draw(propnet))).open[0]
    nodes = list(drawn.find("circle"))
    assert len([node for node in nodes if node.attributes["class"] == "gate"]) == propnet.gates
    assert len([node for node in nodes if node.attributes["class"] == "output"]) == len(propnet.as_circuit().outputs)
    wires = len(propnet.gate_inputs) + len(propnet.as_circuit().outputs)
    assert len(list(drawn.find("path", "wire"))) == wires
    assert {"terminal", "does player1 bet", "legal player2 fold"} <= {text.text for text in drawn.find("text")}
    assert propnet_figure.draw(gdlx.compile("gops")) is None  # too large to be seen


def test_runs_that_shared_their_seconds_say_so(tmp_path: pathlib.Path) -> None:
    alone = reports.write_run(tmp_path / "alone", reports.make_metrics([0, 1, 10]), gamma=1.0)
    page = reports.write_and_parse_report(tmp_path)
    assert "computed together" not in page.text
    reports.patch(together=9)(reports.write_run(tmp_path / "shared", reports.make_metrics([0, 1, 10])))
    page = reports.write_and_parse_report(tmp_path)
    assert "computed together" in page.text
    seconds = {row[1]: row[4] for row in reports.rows_of(page)}
    assert seconds == {"gamma 1": "0.1", "": "0.1 1/9"}
    assert alone.exists()


def test_results_list_every_kind(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    reports.write_run(tmp_path / "solution", reports.make_metrics([0, 10]), game=GAME)
    rows = query.rows(gather.gather_runs([folder, tmp_path]))
    assert sorted(str(row["kind"]) for row in rows) == ["match", "solution", "tournament", "training"]
    by_kind: dict[Any, query.Row] = {row["kind"]: row for row in rows}
    assert (by_kind["training"]["algorithm"], by_kind["training"]["exploitability"]) == ("self-play", 0.125)
    assert by_kind["training"]["goal_player1"] == 61
    assert by_kind["match"]["agents"] == "random vs random"
    assert (by_kind["match"]["games"], by_kind["tournament"]["games"]) == (32, 30)
    assert query.columns(rows)[:3] == ["kind", "game", "algorithm"]
    assert "payoffs" in query.columns(rows)
    (actual,) = query.filter_rows(rows, [query.parse("kind=match"), query.parse("games>20")])
    assert actual is by_kind["match"]
    assert query.sort_rows(rows, "exploitability")[-1]["kind"] in ("match", "tournament")


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("result.json", "{}", "result.json cannot be read"),
        ("result.json", '{"games": 1, "agents": [{"agent": "a", "games": -1}]}', "result.json cannot be read"),
        ("result.json", '{"games": 0, "agents": []}', "no game has ended"),
        ("config.json", '{"kind": "match", "agents": ["a"], "format": 99}', "another version of gdlx"),
    ],
)
def test_damaged_matches_are_named(
    folder: pathlib.Path, tmp_path: pathlib.Path, name: str, text: str, why: str
) -> None:
    for path in (folder / "match").glob("*.json"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / name).write_text(text)
    gathered = gather.gather_runs([tmp_path])
    assert gathered.total == 0
    assert why in gathered.skipped[0].reason
