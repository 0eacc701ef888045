"""Agents by name, and those that play policies from files or from sampling."""

import dataclasses
import io
import json
import pathlib
from typing import Any

import numpy as np
import pytest

from gdlx.envs import game_facts
from gdlx.envs.views import history
from gdlx.nets.learners import learner_registry
from gdlx.players.agents import agent, agent_registry, entries, human, subtree_cfr_agent, table_agent, uniform
from gdlx.solvers import algorithms, tabular_policies, tasks
from gdlx.solvers.mccfr import table_policy
from gdlx.solvers.runs import policy_files, policy_tables, result_folder, solver_run
from gdlx.tests.helpers import paths, players, samples

KUHN = "kuhn_poker"


@dataclasses.dataclass(frozen=True)
class Chosen:
    name: str
    needed: str
    count: int | None = None
    part: float = 0.5
    is_bold: bool = False


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent `chosen` with an option of every kind."""
    monkeypatch.setattr(uniform, "Chosen", Chosen, raising=False)
    monkeypatch.setattr(entries, "ENTRIES", {**entries.ENTRIES, "chosen": entries.AgentEntry("uniform", "Chosen", "")})


@pytest.mark.parametrize("option", ["network", "net"])  # the second is its old name
def test_paths_may_look_as_if_they_had_options(option: str) -> None:
    """Folders of games with parameters do."""
    path = "results/smallest_players=3,numbers=3,steps=3/network-self-play"
    actual = agent_registry.make_agent(f"cfr:{option}={path},iterations=20")
    assert isinstance(actual, subtree_cfr_agent.SubtreeCfrAgent)
    assert (actual.network, actual.iterations) == (path, 20)
    with pytest.raises(agent.AgentError, match="cfr has no option 'numbers'"):
        agent_registry.make_agent("cfr:iterations=20,numbers=3")


@pytest.mark.usefixtures("chosen")
def test_options_have_the_types_of_their_fields() -> None:
    actual: object = agent_registry.make_agent("chosen:needed=some text,count=3,is_bold=true")
    assert actual == Chosen("chosen:needed=some text,count=3,is_bold=true", "some text", 3, 0.5, True)
    assert list(agent_registry.describe_options("chosen")) == ["needed", "count", "part", "is_bold"]


@pytest.mark.usefixtures("chosen")
def test_paths_may_have_commas_and_equals_signs() -> None:
    named: object = agent_registry.make_agent("chosen:needed=a=1,b/c,count=3")
    assert named == Chosen("chosen:needed=a=1,b/c,count=3", "a=1,b/c", 3)
    for text in (
        "network:goofspiel:cards=4,x=2/net",
        "network:folder=goofspiel:cards=4,x=2/net",
        "net:goofspiel:cards=4,x=2/net",
    ):
        assert getattr(agent_registry.make_agent(text), "folder") == "goofspiel:cards=4,x=2/net"  # noqa: B009


@pytest.mark.usefixtures("chosen")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("randon", "there is no agent 'randon' (is it random?); there are random, "),
        ("", "there is no agent ''; there are"),
        ("random:speed=3", "random has no option 'speed'; it has no options"),
        ("mccfr:second=3", "mccfr has no option 'second'; its options: seconds, iterations"),
        ("mccfr:seconds", "'seconds' is not an option of mccfr: write mccfr:option=value"),
        ("mccfr:seconds=soon", "seconds of mccfr takes a number, not 'soon'; its options: seconds"),
        ("mccfr:seconds=nan", "seconds of mccfr takes a number, not 'nan'"),
        ("mccfr:seconds=0", "more than 0 seconds"),
        ("mccfr:iterations=1.5", "iterations of mccfr takes a whole number, not '1.5'"),
        ("mccfr:iterations=0", "iterations is at least 1, not 0"),
        ("mccfr:seed=-9223372036854775809", "seed is a 64-bit integer"),
        ("mccfr:batch=0", "at least 1 trajectory"),
        ("mccfr:algorithm=cfr", "algorithm of mccfr takes os-mccfr or vr-mccfr, not 'cfr'"),
        ("mccfr:table=8,table=9", "the option table of mccfr is specified twice"),
        ("chosen:needed=a,is_bold=maybe", "is_bold of chosen takes true or false, not 'maybe'"),
        ("chosen:count=3", "chosen needs needed: write chosen:needed=.."),
        ("results/nowhere", "results/nowhere is not a saved solution: the folder does not exist"),
    ],
)
def test_mistakes(text: str, message: str) -> None:
    with pytest.raises(agent.AgentError) as caught:
        agent_registry.make_agent(text)
    assert message in str(caught.value)


def test_messages_shorten_long_values() -> None:
    for text in (f"mccfr:iterations={'9x' * 4_000}", f"mccfr:{'y' * 4_000}=1"):
        with pytest.raises(agent.AgentError) as raised:
            agent_registry.make_agent(text)
        assert len(str(raised.value)) < 1_000
    with pytest.raises(learner_registry.TrainConfigError) as refused:
        learner_registry.make_settings("self-play", {"widths": "x" * 4_000})
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize("name", entries.ENTRIES)
def test_every_agent_is_described_with_its_options(name: str) -> None:
    text = (paths.ROOT / "docs" / "howto" / "play-matches.md").read_text()
    (row,) = (line for line in text.splitlines() if line.startswith(f"| `{name}` |"))
    for option in agent_registry.describe_options(name):
        assert f"`{option}`" in row, f"play-matches.md does not describe {option} of {name}"


# ---- saved solutions


def solved(folder: pathlib.Path, game: str) -> tabular_policies.Policies:
    """The folder of an exact solution, and its policies."""
    folder.mkdir(parents=True)
    return solver_run.solve_exactly(tasks.make_tree_task(samples_game(game)), algorithms.find("lp"), folder).policies


def samples_game(game: str) -> Any:
    return players.load_arena(game).game


def played_policies(actual: agent.Agent, game: str) -> tabular_policies.Policies:
    assert isinstance(actual, agent.PolicyAgent)
    arena = players.load_arena(game)
    policy = actual.policy(arena)
    assert isinstance(policy, table_policy.TablePolicy)
    return table_policy.to_tabular(policy, arena.env, samples.load_tree(game))[0]


def assert_same(first: tabular_policies.Policies, second: tabular_policies.Policies) -> None:
    for own, other in zip(first, second, strict=True):
        np.testing.assert_allclose(own, other, atol=1e-6)


def test_an_unrolled_solution_is_played_as_it_is(tmp_path: pathlib.Path) -> None:
    policies = solved(tmp_path / "lp", KUHN)
    assert_same(played_policies(agent_registry.make_agent(str(tmp_path / "lp")), KUHN), policies)


def test_a_solution_of_a_table_is_played_as_it_is(tmp_path: pathlib.Path) -> None:
    arena, policies = players.load_arena(KUHN), players.random_policies(KUHN, 3)
    algorithm = algorithms.configure(algorithms.find("os-mccfr"), 1, {"table": 6})
    result_folder.write_config(
        tmp_path, result_folder.Config(arena.game, game_facts.probe(arena.env.propnet).digest, algorithm, x64=False)
    )
    result_folder.write_table_policy(tmp_path, table_policy.from_tabular(policies, arena.env, samples.load_tree(KUHN)))
    assert_same(played_policies(agent_registry.make_agent(str(tmp_path)), KUHN), policies)


@pytest.mark.parametrize("algorithm", ["lp", "os-mccfr"])
def test_a_solution_of_other_rules_is_refused(tmp_path: pathlib.Path, algorithm: str) -> None:
    folder = tmp_path / "result"
    if algorithm == "lp":
        solved(folder, "biased_rps")
    else:
        folder.mkdir()
        other = players.load_arena("biased_rps")
        configured = algorithms.configure(algorithms.find(algorithm), 1, {"table": 6})
        digest = game_facts.probe(other.env.propnet).digest
        result_folder.write_config(folder, result_folder.Config(other.game, digest, configured, x64=False))
    with pytest.raises(policy_files.PolicyFileError, match="other rules than kuhn_poker has now"):
        played_policies(agent_registry.make_agent(str(folder)), KUHN)


def test_the_host_looks_up_what_the_device_does() -> None:
    """At sets that a table knows, and at one that it does not."""
    arena, policies = players.load_arena(KUHN), players.random_policies(KUHN, 4)
    known = table_agent.to_host_policy(table_policy.from_tabular(policies, arena.env, samples.load_tree(KUHN)))
    moves = arena.env.propnet.players[0].moves
    options = tuple(sorted(moves.index(name) for name in ("bet", "check")))
    dealt = arena.env.propnet.players[0].percepts.index("(dealt king)")
    noop = moves.index("noop")
    view = history.ActionObservationHistory(
        arena.env, 0, (noop,), (history.Event(noop, (dealt,), (noop,)), history.Event(noop, (), options))
    )
    tree = samples.load_tree(KUHN)
    decision = tree.players[0].labels.index("(dealt king)")
    start = tree.players[0].first[decision]
    np.testing.assert_allclose(known.at(view), policies[0][start : start + 2], atol=1e-6)
    other = dataclasses.replace(view, events=(view.events[0], history.Event(noop, (dealt,), options)))
    np.testing.assert_allclose(known.at(other), [0.5, 0.5])


# ---- policy tables


def test_a_policy_table_is_played_as_it_is(tmp_path: pathlib.Path) -> None:
    tree, policies = samples.load_tree(KUHN), players.random_policies(KUHN, 5)
    (tmp_path / "policy.csv").write_text(policy_tables.to_csv(tree, policies))
    (tmp_path / "policy.json").write_text(json.dumps(policy_tables.to_json(tree, policies)))
    for name in ("policy.csv", "policy.json"):
        assert_same(played_policies(agent_registry.make_agent(str(tmp_path / name)), KUHN), policies)


HAND_WRITTEN = """player,information_set,action,probability
player1,(dealt king),bet,1
player2,(dealt jack); (opponent_did bet),fold,0.75
player2,(dealt jack); (opponent_did bet),call,0.25
"""


def test_what_a_hand_written_table_does_not_tell_is_uniform(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_text(HAND_WRITTEN)
    actual = played_policies(agent_registry.make_agent(f"fixed:file={file}"), KUHN)
    reported = {
        (row.player, row.information_set, row.action): row.probability
        for row in policy_tables.rows(samples.load_tree(KUHN), actual)
    }
    assert reported.pop(("player1", "(dealt king)", "bet")) == 1
    assert reported.pop(("player1", "(dealt king)", "check")) == 0
    assert reported.pop(("player2", "(dealt jack); (opponent_did bet)", "fold")) == 0.75
    assert reported.pop(("player2", "(dealt jack); (opponent_did bet)", "call")) == 0.25
    assert set(reported.values()) == {0.5}


def test_a_table_of_the_first_steps_of_a_large_game(tmp_path: pathlib.Path) -> None:
    game = "blind_tictactoe"
    file = tmp_path / "opening.csv"
    file.write_text("player,step,information_set,action,probability\nx,0,start,(mark 2 2),1\n")
    arena = players.load_arena(game)
    role = arena.env.propnet.players[0]
    legal = tuple(n for n, move in enumerate(role.moves) if move.startswith("(mark"))
    context = agent.PlayerContext(arena, 0, np.random.default_rng(0))
    mind = agent_registry.make_agent(str(file)).start_match(context, agent.Clock(1))
    view = history.ActionObservationHistory(arena.env, 0, legal)
    assert {role.moves[mind.choose(view, agent.Clock(1))] for _ in range(5)} == {"(mark 2 2)"}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", b"player,option\n", "lacks the column information_set"),
        ("a.csv", b"", "lacks the column player"),
        ("a.csv", HAND_WRITTEN.replace("king", "ace").encode(), "line 2: player1 has no information set"),
        ("a.csv", HAND_WRITTEN.replace("bet,1", "jump,1").encode(), "line 2: player1 has no action 'jump'"),
        ("a.csv", HAND_WRITTEN.replace("bet,1", "bet,0.5").encode(), "add up to 0.5, not 1"),
        ("a.csv", HAND_WRITTEN.replace("0.25", "0.25\n\xe9").encode("latin-1"), "not UTF-8 text"),
        ("a.csv", HAND_WRITTEN.replace("bet,1", "bet").encode(), "line 2"),
        ("a.json", b"[1]", "the policy table is not an object"),
        ("a.json", b'{"policy": 3}', "policy is not an object"),
        ("a.json", b'{\n"policy": }', "line 2 column 11"),
        ("a.json", b"[" * 100_000, "cannot be read"),
    ],
)
def test_tables_that_are_none(tmp_path: pathlib.Path, name: str, text: bytes, message: str) -> None:
    file = tmp_path / name
    file.write_bytes(text)
    with pytest.raises(policy_files.PolicyFileError) as caught:
        played_policies(agent_registry.make_agent(str(file)), KUHN)
    assert str(caught.value).startswith((f"{file} is not a policy of kuhn_poker: ", f"{file}: "))
    assert message in str(caught.value)


def test_a_table_that_is_not_there() -> None:
    with pytest.raises(policy_files.PolicyFileError, match=r"nowhere\.csv does not exist: name the result folder"):
        played_policies(agent_registry.make_agent("nowhere.csv"), KUHN)


# ---- sampling


def test_sampling_by_iterations_learns_and_is_the_same_every_time() -> None:
    text = "mccfr:iterations=60,batch=128,table=8,algorithm=os-mccfr"
    arena, task = players.load_arena(KUHN), tasks.make_tree_task(samples_game(KUHN))
    actual, again, other = (
        played_policies(agent_registry.make_agent(text + seed), KUHN) for seed in ("", ",seed=0", ",seed=1")
    )
    assert_same(actual, again)
    assert any((own != their).any() for own, their in zip(actual, other, strict=True))
    before = task.metrics(tuple(map(tabular_policies.uniform, task.tree.players))).exploitability
    after = task.metrics(actual).exploitability
    assert before is not None
    assert after is not None
    assert after < before / 2
    kept = agent_registry.make_agent(text)
    assert isinstance(kept, agent.PolicyAgent)
    assert kept.policy(arena) is kept.policy(arena)  # thinks once


def test_a_table_that_cannot_be() -> None:
    with pytest.raises(agent.AgentError, match=r"mccfr:table=99: `table=` is the base-2 logarithm .* not 99"):
        played_policies(agent_registry.make_agent("mccfr:table=99"), KUHN)


# ---- people


def asked(monkeypatch: pytest.MonkeyPatch, typed: str) -> tuple[human.HumanPlayer, history.ActionObservationHistory]:
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    arena = players.load_arena(KUHN)
    moves = arena.env.propnet.players[0].moves
    noop, options = moves.index("noop"), tuple(sorted(moves.index(name) for name in ("bet", "check")))
    dealt = arena.env.propnet.players[0].percepts.index("(dealt king)")
    view = history.ActionObservationHistory(arena.env, 0, (noop,), (history.Event(noop, (dealt,), options),))
    return human.HumanAgent().start_match(agent.PlayerContext(arena, 0, np.random.default_rng(0)), agent.Clock(1)), view


@pytest.mark.parametrize(
    ("typed", "move"), [("1\n", "bet"), ("check\n", "check"), ("  2 \n", "check"), ("(bet)\nbet\n", "bet")]
)
def test_a_person_types_a_number_or_a_move(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], typed: str, move: str
) -> None:
    mind, view = asked(monkeypatch, typed)
    number = mind.choose(view, agent.Clock(1))
    assert view.game.propnet.players[0].moves[number] == move
    out, err = capsys.readouterr()
    assert out == ""
    assert "You are player1 in kuhn_poker, with player2." in err
    assert "1. you see (dealt king)" in err  # and not that it had to wait
    assert "[1] bet" in err


def test_a_person_is_asked_again(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    mind, view = asked(monkeypatch, "chek\n3\n0\n\nbet\n")
    mind.choose(view, agent.Clock(1))
    err = capsys.readouterr().err
    assert "'chek' is not a legal move (is it check?): type its number from 1 to 2" in err
    assert err.count("is not a legal move") == 4


@pytest.mark.parametrize("typed", ["quit\n", "Q\n", ""])
def test_a_person_leaves(monkeypatch: pytest.MonkeyPatch, typed: str) -> None:
    mind, view = asked(monkeypatch, typed)
    with pytest.raises(agent.PlayerQuitError):
        mind.choose(view, agent.Clock(1))
