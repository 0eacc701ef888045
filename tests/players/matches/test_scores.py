"""Scores of matches: means, intervals, wins; and tournaments."""

import csv
import itertools
import json
import pathlib

import numpy as np
import pytest

from gdlx.players.agents import agent_registry
from gdlx.players.matches import game_log, match, records, scores, tournament
from gdlx.tests.helpers import players

KUHN, THREE = "kuhn_poker", "smallest:numbers=3,steps=1"


def test_an_interval_of_one_role_is_the_normal_one() -> None:
    numbers = np.array([1.0, 2.0, 4.0, 9.0])
    actual = scores.stratified_mean([numbers])
    half = 1.959964 * numbers.std(ddof=1) / 2
    assert actual.mean == 4
    assert actual.half_width == pytest.approx(half)
    assert actual.interval == pytest.approx((4 - half, 4 + half))
    assert str(actual) == f"4 ± {half:.2g}"


def test_intervals_over_roles_hold_the_mean_as_often_as_they_say() -> None:
    """Roles whose means are far apart: pooled as one sample, the interval would be several times too wide."""
    rng = np.random.default_rng(0)
    held, widths = 0, 0.0
    for _ in range(2_000):
        strata = [rng.normal(10, 1, 60), rng.normal(-10, 3, 60)]
        actual = scores.stratified_mean(strata)
        assert actual.interval is not None
        held += actual.interval[0] < 0 < actual.interval[1]
        widths += actual.interval[1] - actual.interval[0]
    assert 0.93 < held / 2_000 < 0.97
    assert widths / 2_000 < 1.0  # pooled: 2 * 1.96 * 10 / sqrt(120), which is 3.6


def test_one_game_has_no_interval() -> None:
    actual = scores.stratified_mean([np.array([3.0]), np.array([])])
    assert (actual.mean, actual.half_width, actual.interval) == (3, None, None)
    assert actual.to_json() == {"mean": 3.0, "interval": None}


def games_of(payoff: list[list[float]], agent: list[list[int]], unplayable: list[bool]) -> game_log.GameRecords:
    count = len(payoff)
    none = np.zeros(count, np.int64)
    return game_log.GameRecords(
        number=np.arange(count),
        agent=np.array(agent),
        payoff=np.array(payoff),
        goal=np.array(payoff) + 50,
        length=none,
        unplayable=np.array(unplayable),
        goal_conflict=np.zeros(count, np.bool_),
        incidents=none,
    )


def test_who_won() -> None:
    payoff = [[1.0, -1.0], [2.0, -2.0], [0.0, 0.0], [-1.0, 1.0], [0.0, 0.0]]
    agent = [[0, 1], [1, 0], [0, 1], [1, 0], [0, 1]]
    actual = scores.score_match(
        players.load_arena(KUHN), ("a", "b"), games_of(payoff, agent, [False] * 4 + [True]), [incident("b")]
    )
    first, second = actual.scores
    assert (first.wins, first.draws, first.losses) == (2, 1, 1)
    assert (second.wins, second.draws, second.losses) == (1, 1, 2)
    assert actual.unplayable == 1
    assert (first.incidents, second.incidents) == (0, 1)
    # Agent 0 got 1, -2, 0, 1, 0.
    assert first.overall.payoff.mean == 0
    assert first.overall.goal.mean == 50
    assert first.roles["player1"].payoff.mean == pytest.approx(1 / 3)
    assert first.roles["player2"].payoff.mean == pytest.approx(-1 / 2)
    assert (first.roles["player1"].games, first.roles["player2"].games) == (3, 2)
    json.dumps(actual.to_json(), allow_nan=False)


def incident(name: str) -> game_log.Incident:
    return game_log.Incident(0, 0, "player1", name, "crash", "")


def test_nothing_played_yet() -> None:
    actual = scores.score_match(players.load_arena(KUHN), ("a", "b"), game_log.empty_records(2), [])
    assert (actual.games, actual.scores) == (0, ())


@pytest.mark.parametrize(
    ("names", "folder"),
    [
        (["random", "random"], "match-random-vs-random"),
        (["mccfr:seconds=1,table=8"], "match-mccfr_seconds=1,table=8"),
        (["results/leduc_poker/dcfr", "a/b/../policy.csv"], "match-leduc_poker_dcfr-vs-policy.csv"),
        (["x" * 99, "//"], f"match-{'x' * 40}-vs-agent"),
        (["random"] * 99, "match" + "-random-vs" * 13),
    ],
)
def test_folders_have_safe_names(names: list[str], folder: str) -> None:
    assert records.folder_name("match", names) == folder


# ---- tournaments


def entrants(count: int) -> "tuple[players.FunctionAgent, ...]":
    """Of whom the later ones take later options."""

    def taking(number: int) -> players.FunctionAgent:
        return players.FunctionAgent(lambda view, _: view.legal[min(number, len(view.legal) - 1)], f"agent {number}")

    return tuple(map(taking, range(count)))


def all_of(run: tournament.TournamentRun) -> tournament.TournamentResult:
    for _ in run.batches():
        pass
    return run.finish()


def test_everybody_meets_everybody(tmp_path: pathlib.Path) -> None:
    whole = tournament.Tournament(players.load_arena(KUHN), entrants(3), match.MatchSettings(games=30, seed=4))
    actual = all_of(tournament.TournamentRun(whole, tmp_path))
    assert whole.groups == [(0, 1), (0, 2), (1, 2)]
    assert [one.games for one in actual.matches] == [30, 30, 30]
    assert len({whole.pairing(number).settings.seed for number in range(3)}) == 3
    for row in whole.labels:
        assert (row, row) not in actual.table
        for column in whole.labels:
            if row != column:  # zero-sum
                assert actual.table[row, column].mean == pytest.approx(-actual.table[column, row].mean)
    means = {standing.agent: standing.whole.payoff.mean for standing in actual.standings}
    for row in whole.labels:
        policy = [actual.table[row, column].mean for column in whole.labels if column != row]
        assert means[row] == pytest.approx(sum(policy) / 2)
    assert list(means.values()) == sorted(means.values(), reverse=True)
    table = list(csv.reader((tmp_path / "crosstable.csv").open()))
    assert [line[0] for line in table] == ["agent", *whole.labels]
    assert float(table[1][2]) == actual.table["agent 0", "agent 1"].mean
    assert table[1][1] == ""
    means_shown = ", ".join(f"{standing.agent!r}: {standing.whole.payoff}" for standing in actual.standings)
    assert repr(actual) == f"TournamentResult(game={KUHN!r}, matches=3, payoffs={{{means_shown}}})"
    assert repr(actual.matches[0]).startswith(f"MatchResult(game={KUHN!r}, games=30, payoffs={{'agent 0': ")
    assert repr(actual.matches[0]).endswith("}, incidents=0)")
    output = json.loads((tmp_path / "result.json").read_text())
    assert output["table"]["agent 0"]["agent 0"] is None
    assert len(list(tmp_path.glob("*/games.csv"))) == 3


def test_a_resumed_tournament_is_as_if_never_stopped(tmp_path: pathlib.Path) -> None:
    whole = tournament.Tournament(players.load_arena(KUHN), entrants(3), match.MatchSettings(games=10))
    expected = all_of(tournament.TournamentRun(whole))
    run = tournament.TournamentRun(whole, tmp_path)
    for _ in itertools.islice(run.batches(), 14):  # one match and a half
        pass
    early = run.finish()
    assert [one.games for one in early.matches] == [10, 4]
    again = tournament.TournamentRun(whole, tmp_path)
    assert all_of(again) == expected
    assert records.read_config(tmp_path).kind == "tournament"


def test_three_at_a_table() -> None:
    whole = tournament.Tournament(players.load_arena(THREE), entrants(4), match.MatchSettings(games=3))
    actual = all_of(tournament.TournamentRun(whole))
    assert len(whole.groups) == 4
    assert not actual.table
    assert actual.to_json()["table"] is None
    assert [standing.whole.games for standing in actual.standings] == [9] * 4


def test_too_few_for_a_tournament() -> None:
    with pytest.raises(match.MatchError, match="needs 3 agents or more, and 2 were named"):
        tournament.Tournament(
            players.load_arena(THREE), (agent_registry.make_agent("random"),) * 2, match.MatchSettings()
        )
