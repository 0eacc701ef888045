"""Policies to tables and back, and to OpenSpiel and back."""

import csv
import io
import json
import re

import numpy as np
import pytest

from gdlx.envs.bridges import open_spiel_game, open_spiel_tree
from gdlx.envs.trees import game_tree, unroll
from gdlx.solvers import tabular_policies
from gdlx.solvers.runs import policy_tables
from gdlx.tests.envs.trees.test_unroll import net_of

SPECS = ["kuhn_poker", "goofspiel:cards=3", "monty_hall", "smallest:numbers=2,steps=2", "liars_dice:sides=2"]


def some(spec: str, seed: int = 0) -> tuple[game_tree.GameTree, tabular_policies.Policies]:
    tree = unroll.unroll(net_of(spec))
    return tree, random_policies(tree, seed)


def random_policies(tree: game_tree.GameTree, seed: int) -> tabular_policies.Policies:
    rng = np.random.default_rng(seed)
    return tuple(tabular_policies.normalise(player, rng.random(player.sequences)) for player in tree.players)


def assert_same(first: tabular_policies.Policies, second: tabular_policies.Policies) -> None:
    for own, other in zip(first, second, strict=True):
        np.testing.assert_allclose(own, other, rtol=0, atol=1e-15)


@pytest.mark.parametrize("spec", SPECS)
def test_there_and_back(spec: str) -> None:
    tree, policies = some(spec)
    assert_same(policy_tables.from_csv(tree, policy_tables.to_csv(tree, policies)), policies)
    text = json.dumps(policy_tables.to_json(tree, policies))
    assert_same(policy_tables.from_json(tree, json.loads(text)), policies)
    assert_same(policy_tables.from_open_spiel(tree, policy_tables.to_open_spiel_table(tree, policies)), policies)


def test_the_table_of_kuhn_poker() -> None:
    tree, policies = some("kuhn_poker")
    table = list(csv.DictReader(io.StringIO(policy_tables.to_csv(tree, policies))))
    assert len(table) == 24
    assert list(table[0]) == ["player", "step", "information_set", "action", "probability"]
    king = [row for row in table if row["information_set"] == "(dealt king); check; (opponent_did bet)"]
    assert [row["action"] for row in king] == ["call", "fold"]
    assert {row["step"] for row in king} == {"4"}
    assert sum(float(row["probability"]) for row in king) == pytest.approx(1)
    listed = policy_tables.to_json(tree, policies)
    assert listed["game"] == "kuhn_poker"
    assert [len(sets) for sets in listed["policy"].values()] == [6, 6]


def test_older_tables_are_still_read() -> None:
    tree, policies = some("kuhn_poker")
    text = policy_tables.to_csv(tree, policies).replace("information_set,action", "information_set,option")
    assert_same(policy_tables.from_csv(tree, text), policies)
    listed = json.loads(json.dumps(policy_tables.to_json(tree, policies)).replace('"actions"', '"options"'))
    assert_same(policy_tables.from_json(tree, listed), policies)


def test_rows_in_any_order_and_rounded() -> None:
    tree, policies = some("kuhn_poker")
    head, *lines = policy_tables.to_csv(tree, tuple(np.round(policy, 5) for policy in policies)).splitlines()
    actual = policy_tables.from_csv(tree, "\r\n".join([head, *reversed(lines)]))
    for player, policy, other in zip(tree.players, actual, policies, strict=True):
        assert policy == pytest.approx(other, abs=2e-5)
        np.testing.assert_allclose(np.add.reduceat(policy[1:], player.first[:-1] - 1), 1, atol=1e-15)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (r"probability\n", "chance\n", "lacks the column probability"),
        (r"player1,2,\(dealt queen\),bet", "player9,2,(dealt queen),bet", "line 2: kuhn_poker has no player 'player9'"),
        (r"\(dealt queen\),bet", "(dealt ace),bet", r"line 2: player1 has no information set '(dealt ace)'"),
        (r"queen\),bet", "queen),raise", "line 2: player1 has no action 'raise' at '(dealt queen)'; it has bet, check"),
        (r"queen\),check", "queen),bet", "line 3: a second probability of 'bet' at '(dealt queen)' of player1"),
        (r"queen\),bet,[\d.]+", "queen),bet,much", "line 2: the probability of 'bet' at '(dealt queen)' is 'much'"),
        (r"queen\),bet,[\d.]+", "queen),bet,nan", "is nan, not in 0 .. 1"),
        (r"queen\),bet,[\d.]+", "queen),bet,-0.5", "is -0.5, not in 0 .. 1"),
        (
            r"queen\),bet,[\d.]+",
            "queen),bet,0.5",
            "player1, (dealt queen): the probabilities of its actions (bet, check)",
        ),
        (r"player1,2,\(dealt queen\),bet.*\n", "", "no probability of 'bet' at '(dealt queen)' of player1"),
        (r"queen\),bet", '"queen"x,bet', "is not CSV|no information set"),
    ],
)
def test_wrong_csv(old: str, new: str, message: str) -> None:
    tree, policies = some("kuhn_poker")
    text, count = re.subn(old, new, policy_tables.to_csv(tree, policies), count=1)
    assert count == 1
    with pytest.raises(tabular_policies.PolicyError, match=message if "|" in message else re.escape(message)):
        policy_tables.from_csv(tree, text)


def test_long_numbers_are_shortened() -> None:
    tree, policies = some("kuhn_poker")
    text = re.sub(r"queen\),bet,[\d.]+", f"queen),bet,{'9' * 5_000}", policy_tables.to_csv(tree, policies), count=1)
    with pytest.raises(tabular_policies.PolicyError, match="not in 0") as refused:
        policy_tables.from_csv(tree, text)
    assert len(str(refused.value)) < 500


def test_wrong_json() -> None:
    tree, policies = some("kuhn_poker")
    good = policy_tables.to_json(tree, policies)
    for table, reported in [
        ([], "the policy table is not an object"),
        ({}, "policy is not an object"),
        ({"policy": {"player1": 3}}, "policy.player1 is not a list"),
        ({"policy": {"player1": [3]}}, "policy.player1[0] is not an object"),
        ({"policy": {"player1": [{"information_set": "x"}]}}, "policy.player1[0].actions is not an object"),
        ({"policy": {"player1": [{"information_set": ["x"], "actions": {"bet": 1}}]}}, "has no information set ['x']"),
        ({"policy": {"player1": [{"information_set": "x", "actions": {"bet": 1}}]}}, "has no information set 'x'"),
        ({"policy": {"player1": good["policy"]["player1"]}}, "at '(dealt queen); (opponent_did check)' of player2"),
        ({"policy": {}}, "nor of 11 others"),
    ]:
        with pytest.raises(tabular_policies.PolicyError, match=re.escape(reported)):
            policy_tables.from_json(tree, table)


def test_policies_of_the_wrong_size() -> None:
    tree, policies = some("kuhn_poker")
    with pytest.raises(tabular_policies.PolicyError, match="each of its 13 sequences"):
        policy_tables.to_csv(tree, (policies[0][:-1], policies[1]))


# ---- OpenSpiel


@pytest.mark.parametrize("spec", SPECS)
def test_information_states_are_those_of_the_bridge(spec: str) -> None:
    """The tabular policy has every information set of the tree, with the same legal actions."""
    pytest.importorskip("pyspiel")
    tree, policies = some(spec)
    game = open_spiel_game.load_game(spec)
    tabular = policy_tables.to_open_spiel(tree, policies, game)
    assert_same(policy_tables.from_open_spiel(tree, tabular), policies)
    for player in tree.players:
        for number, state in enumerate(policy_tables.information_state_strings(player)):
            legal = np.flatnonzero(tabular.legal_actions_mask[tabular.state_lookup[state]])
            assert legal.tolist() == player.action[player.first[number] : player.first[number + 1]].tolist()
    forced = tabular.legal_actions_mask.sum(axis=1) == 1
    assert len(tabular.state_lookup) - forced.sum() == sum(player.sets for player in tree.players)


@pytest.mark.parametrize("name", ["kuhn_poker", "liars_dice(dice_sides=2)", "kuhn_poker(players=3)"])
def test_policies_of_open_spiels_games(name: str) -> None:
    pyspiel = pytest.importorskip("pyspiel")
    game = pyspiel.load_game(name)
    tree = open_spiel_tree.build_tree(game)
    policies = random_policies(tree, 1)
    tabular = policy_tables.to_open_spiel(tree, policies, game)
    assert_same(policy_tables.from_open_spiel(tree, tabular), policies)
    assert_same(policy_tables.from_open_spiel(tree, pyspiel.TabularPolicy(tabular.to_dict())), policies)
    assert_same(policy_tables.from_csv(tree, policy_tables.to_csv(tree, policies)), policies)


def test_a_policy_of_open_spiels_solver() -> None:
    pyspiel = pytest.importorskip("pyspiel")
    game = pyspiel.load_game("kuhn_poker")
    solver = pyspiel.CFRPlusSolver(game)
    for _ in range(5):
        solver.evaluate_and_update_policy()
    tree = open_spiel_tree.build_tree(game)
    averages = solver.tabular_average_policy()
    actual = policy_tables.from_open_spiel(tree, averages)
    for number, state in enumerate(policy_tables.information_state_strings(tree.players[0])):
        player = slice(tree.players[0].first[number], tree.players[0].first[number + 1])
        assert actual[0][player].tolist() == pytest.approx([p for _, p in averages.policy_table()[state]])


def test_wrong_policies_of_open_spiel() -> None:
    pyspiel = pytest.importorskip("pyspiel")
    tree = open_spiel_tree.build_tree("kuhn_poker")
    table = policy_tables.to_open_spiel_table(tree, random_policies(tree, 0))
    with pytest.raises(tabular_policies.PolicyError, match="player0, '0': the policy does not contain"):
        policy_tables.from_open_spiel(tree, {state: own for state, own in table.items() if state != "0"})
    with pytest.raises(
        tabular_policies.PolicyError, match=r"player0, '0': action 7 has probability 0\.5, but is not legal"
    ):
        policy_tables.from_open_spiel(tree, table | {"0": [(0, 0.5), (7, 0.5)]})
    with pytest.raises(tabular_policies.PolicyError, match=r"add up to 0\.5, not 1"):
        policy_tables.from_open_spiel(tree, table | {"0": {0: 0.5}})
    with pytest.raises(tabular_policies.PolicyError, match="has no information state"):
        policy_tables.to_open_spiel(tree, random_policies(tree, 0), pyspiel.load_game("tiny_hanabi"))
    zumo = open_spiel_tree.build_tree("oshi_zumo(coins=2,size=1,horizon=3)")
    with pytest.raises(tabular_policies.PolicyError, match="cannot tell them apart"):
        policy_tables.to_open_spiel_table(zumo, random_policies(zumo, 0))
