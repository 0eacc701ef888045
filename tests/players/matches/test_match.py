"""Matches: vectorised and one by one, against exact values and the rules; swapping, seeds, resuming."""

import dataclasses
import json
import math
import pathlib
from collections.abc import Sequence

import numpy as np
import pytest

from gdlx.envs import game_spec, payoffs
from gdlx.players.agents import agent, agent_registry
from gdlx.players.matches import arenas, contest, game_log, match, records, referee
from gdlx.propnet import games
from gdlx.propnet.datalog import interpreter
from gdlx.propnet.syntax import ground_terms
from gdlx.solvers import tasks
from gdlx.solvers.runs import result_folder
from gdlx.tests.helpers import players, samples

KUHN, THREE = "kuhn_poker", "smallest:numbers=3,steps=1"


def given(game: str, seed: int) -> players.TreePolicyAgent:
    return players.TreePolicyAgent(f"seed {seed}", game, players.random_policies(game, seed))


def played(game: str, who: Sequence[agent.Agent], **terms: int) -> game_log.GameRecords:
    one = match.Match(players.load_arena(game), tuple(who), match.MatchSettings(**terms))  # type: ignore[arg-type]
    return game_log.merge_records(
        [game_log.empty_records(one.players), *(batch.games for batch in match.play_games(one))]
    )


def assert_same_games(first: game_log.GameRecords, second: game_log.GameRecords) -> None:
    for own, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(own, other)


def error_of(numbers: game_log.Floats) -> float:
    return float(numbers.std(ddof=1) / math.sqrt(len(numbers)))


@pytest.mark.parametrize(
    "game", [KUHN, *(pytest.param(game, marks=pytest.mark.slow) for game in ("goofspiel:cards=3", THREE))]
)
def test_means_are_what_the_tree_says(game: str) -> None:
    """In every rotation: the policies of the agents in their roles, evaluated exactly."""
    task = tasks.make_tree_task(game_spec.GameSpec(game), samples.load_tree(game))
    count = len(task.players)
    who = [given(game, seed) for seed in range(count)]
    actual = played(game, who, games=2_000 * count)
    assert not actual.unplayable.any()
    for rotation in range(count):
        seats = [(player + rotation) % count for player in range(count)]
        policy = game_log.select_records(actual, (actual.agent == seats).all(axis=1))
        assert len(policy.number) == 2_000
        exact = task.metrics(tuple(who[seat].policies[player] for player, seat in enumerate(seats))).value
        for player in range(count):
            assert abs(policy.payoff[:, player].mean() - exact[player]) < 4 * error_of(policy.payoff[:, player])
        np.testing.assert_allclose(policy.goal, policy.payoff + task.tree.offset, atol=1e-4)


@pytest.mark.parametrize(("game", "games"), [(KUHN, 400), pytest.param("blind_tictactoe", 500, marks=pytest.mark.slow)])
def test_vectorised_games_are_as_those_one_by_one(tmp_path: pathlib.Path, game: str, games: int) -> None:
    able: agent.Agent = given(KUHN, 0)
    other: agent.Agent = given(KUHN, 1)
    if game != KUHN:
        (tmp_path / "x.csv").write_text("player,step,information_set,option,probability\nx,0,start,(mark 2 2),1\n")
        able, other = agent_registry.make_agent(str(tmp_path / "x.csv")), agent_registry.make_agent("random")
    match.prepare(able, players.load_arena(game))
    match.prepare(other, players.load_arena(game))
    fast = played(game, [able, other], games=games)
    slow = played(game, [players.UnbatchedAgent(able), players.UnbatchedAgent(other)], games=games, seed=1)
    np.testing.assert_array_equal(fast.agent, slow.agent)
    for seat in range(2):
        for one, two in ((fast.payoff[:, 0], slow.payoff[:, 0]), (fast.length, slow.length)):
            a, b = (column[fast.agent[:, 0] == seat].astype(float) for column in (one, two))
            assert abs(a.mean() - b.mean()) < 4 * math.hypot(error_of(a), error_of(b)) + 1e-9


@pytest.mark.parametrize("game", [KUHN, "goofspiel:cards=3", THREE, "monty_hall", "simple_poker"])
def test_the_referee_keeps_to_the_rules(game: str) -> None:
    """Every game again by the interpreter: moves were legal, percepts and goals are the same."""
    arena = players.load_arena(game)
    rules = interpreter.Interpreter(games.load_rulesheet(game))
    propnet = arena.env.propnet
    seats = range(arena.env.num_players)
    spies = [players.FunctionAgent(lambda view, clock: int(rng.choice(view.legal)), f"spy {n}") for n in seats]
    rng = np.random.default_rng(0)
    judge = referee.Referee(arena, spies, seed=5)
    for number in range(10):
        for spy in spies:
            spy.views.clear()
        reported = judge.play(number, seats)
        assert reported.incidents == ()
        state, seen = rules.initial, []
        for event in reported.events:
            moves = iter(event.moves)
            joint = {}
            for role in propnet.roles:
                chosen = event.chance if role.is_random else next(moves)
                assert chosen is not None
                joint[role.name] = ground_terms.from_text(role.moves[chosen])[0]
            for name, move in joint.items():
                assert move in rules.legal(state)[name]
            seen.append(
                {name: sorted(map(ground_terms.to_text, own)) for name, own in rules.percepts(state, joint).items()}
            )
            state = rules.next(state, joint)
        assert rules.is_terminal(state)
        assert reported.goal == tuple(rules.goals(state)[name][0] for name in arena.env.players)
        for player, spy in enumerate(spies):
            role = propnet.players[player]
            for view in spy.views:
                assert len(view.legal) > 1  # forced moves are made without asking
                assert view.player == player
                assert [event.move for event in view.events] == [e.moves[player] for e in reported.events[: view.step]]
                names = [[role.percepts[n] for n in event.percepts] for event in view.events]
                assert names == [line[role.name] for line in seen[: view.step]]
    judge.close()


def test_agents_rotate_through_the_roles() -> None:
    who = [players.FunctionAgent(players.choose_first, f"agent {n}") for n in range(3)]
    actual = played(THREE, who, games=7)
    assert actual.agent.tolist() == [[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 1, 2]]
    one = match.Match(players.load_arena(THREE), tuple(who), match.MatchSettings(games=7, swap=False))
    assert {one.seats(number) for number in range(7)} == {(0, 1, 2)}


@pytest.mark.parametrize("is_lockstep", [True, False])
def test_games_depend_on_the_seed_and_their_number_alone(is_lockstep: bool) -> None:
    who: list[agent.Agent] = [given(KUHN, 0), given(KUHN, 1)]
    if not is_lockstep:
        who[1] = players.UnbatchedAgent(who[1])
    actual = played(KUHN, who, games=70)
    assert_same_games(played(KUHN, who, games=70), actual)
    fewer = played(KUHN, who, games=33)
    assert_same_games(fewer, game_log.select_records(actual, slice(33)))
    other = played(KUHN, who, games=70, seed=1)
    assert (other.payoff != actual.payoff).any()


def test_batches_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    who = [given(KUHN, 0), given(KUHN, 1)]
    actual = played(KUHN, who, games=150)
    monkeypatch.setattr(match, "_LANES", (32,))
    assert_same_games(played(KUHN, who, games=150), actual)


@pytest.mark.parametrize("is_lockstep", [True, False])
def test_a_resumed_match_is_as_if_never_stopped(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, is_lockstep: bool
) -> None:
    monkeypatch.setattr(match, "_LANES", (32,))
    who: tuple[agent.Agent, ...] = (given(KUHN, 0), given(KUHN, 1))
    if not is_lockstep:
        # Whether a move is illegal depends on the view alone: on the card that was dealt.
        who = (given(KUHN, 0), players.FunctionAgent(lambda view, _: view.legal[0] if view.keys[-1, 0] % 3 else -1))
    one = match.Match(players.load_arena(KUHN), who, match.MatchSettings(games=100))
    (tmp_path / "whole").mkdir()
    (tmp_path / "parts").mkdir()
    whole = contest.MatchRun(one, tmp_path / "whole")
    for _ in whole.batches():
        pass
    part = contest.MatchRun(one, tmp_path / "parts")
    next(part.batches())  # and then Ctrl-C
    early = part.finish()
    assert 0 < early.games < 100
    assert len((tmp_path / "parts" / "games.csv").read_text().splitlines()) == early.games + 1
    rest = contest.MatchRun(one, tmp_path / "parts", resume=True)
    for _ in rest.batches():
        pass
    assert rest.finish() == whole.finish()
    for name in ("games.csv", "incidents.csv", "result.json"):
        assert (tmp_path / "parts" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    output = json.loads((tmp_path / "whole" / "result.json").read_text())
    assert output["games"] == 100
    assert bool(output["incidents"]) != is_lockstep
    config = records.read_config(tmp_path / "whole")
    assert (config.agents, config.settings, config.kind) == (tuple(x.name for x in who), one.settings, "match")


def test_a_folder_is_written_by_one_run_at_a_time(tmp_path: pathlib.Path) -> None:
    one = match.Match(players.load_arena(KUHN), (given(KUHN, 0), given(KUHN, 1)))
    contest_run = contest.MatchRun(one, tmp_path)
    with pytest.raises(result_folder.ResultError, match="another run is writing"):
        contest.MatchRun(one, tmp_path, resume=True)
    assert contest_run.finish().games == 0


@pytest.mark.parametrize(
    ("file", "old", "new", "expected"),
    [
        ("games.csv", "seed 0", "somebody", "its games were played by other agents"),
        ("games.csv", "payoff_player1", "pay", "it has other columns"),
        ("games.csv", "\n0,", "\nzero,", "invalid literal"),
        ("games.csv", "\n1,", "\n2,", "there is no game 2 in a match of 2"),
        ("games.csv", "\n0,", "\n-1,", "there is no game -1"),
        ("games.csv", ",goal,", ",bogus,", "an unknown end"),
        ("games.csv", ",goal,0", ",goal,-7", "a negative count"),
        ("incidents.csv", "message\n", "message\n0,1\n", "cannot be read"),
    ],
)
def test_folders_that_cannot_be_resumed(tmp_path: pathlib.Path, file: str, old: str, new: str, expected: str) -> None:
    one = match.Match(
        players.load_arena(KUHN),
        (given(KUHN, 0), players.FunctionAgent(players.choose_first)),
        match.MatchSettings(games=2),
    )
    run = contest.MatchRun(one, tmp_path)
    for _ in run.batches():
        pass
    run.finish()
    text = (tmp_path / file).read_text()
    assert old in text
    (tmp_path / file).write_text(text.replace(old, new, 1))
    with pytest.raises(result_folder.ResultError, match=expected):
        contest.MatchRun(one, tmp_path, resume=True)


def test_games_that_do_not_end_are_unplayable() -> None:
    arena = arenas.make_arena(KUHN, max_steps=3)
    for who in (given(KUHN, 0), players.UnbatchedAgent(given(KUHN, 0))):
        actual = contest.compete(arena, [who, who], games=64)
        assert actual.unplayable == 64
        assert [(score.overall.payoff.mean, score.wins, score.draws) for score in actual.scores] == [
            (0, 0, 0),
            (0, 0, 0),
        ]


def test_goals_that_turn_out_not_to_be_zero_sum() -> None:
    arena = players.load_arena("monty_hall")
    wrong = dataclasses.replace(arena.env, payoffs=payoffs.Payoffs(50.0, True, False))
    arena = dataclasses.replace(arena, env=wrong)
    with pytest.raises(payoffs.PayoffError, match="`payoff='goal'`"):
        contest.compete(arena, [players.FunctionAgent(players.choose_first)], games=4)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([], r"kuhn_poker has 2 players \(player1, player2\), and 0 agents were named"),
        (["random"], "and 1 agent was named; name one for each"),
        (["random"] * 3, "and 3 agents were named"),
    ],
)
def test_an_agent_for_every_player(names: list[str], message: str) -> None:
    with pytest.raises(match.MatchError, match=message):
        contest.compete(players.load_arena(KUHN), names)


@pytest.mark.parametrize("terms", [{"games": 0}, {"start_seconds": 0}, {"play_seconds": math.inf}])
def test_terms_that_make_no_sense(terms: dict[str, int]) -> None:
    with pytest.raises(match.MatchError):
        match.MatchSettings(**terms)  # type: ignore[arg-type]
