"""Games of OpenSpiel as trees, against a plain recursion through their states."""

import sys

import numpy as np
import pytest

from gdlx.envs.bridges import open_spiel_game, open_spiel_tree
from gdlx.envs.trees import game_tree
from gdlx.propnet.common import errors
from gdlx.solvers.exact import lp
from gdlx.tests.envs.trees.test_unroll import assert_edges_lead_to_ends, assert_same_ends, net_of
from gdlx.tests.helpers import explicit

pyspiel = pytest.importorskip("pyspiel")

GOOFSPIEL = "goofspiel(num_cards=3,imp_info=True,points_order=ascending)"
EFG = """EFG 2 R "unequal chance" { "first" "second" } ""
c "" 1 "" { "left" 1/4 "right" 3/4 } 0
p "" 1 1 "seen" { "stay" "go" } 0
t "" 1 "" { 3 -3 }
p "" 2 1 "met" { "yes" "no" } 0
t "" 2 "" { 1 -1 }
t "" 3 "" { -2 2 }
p "" 1 2 "other" { "stay" "go" } 0
t "" 4 "" { 0 0 }
p "" 2 1 "met" { "yes" "no" } 0
t "" 5 "" { -1 1 }
t "" 6 "" { 4 -4 }
"""


@pytest.mark.parametrize(
    "name",
    [
        "kuhn_poker",
        "kuhn_poker(players=3)",
        "liars_dice(dice_sides=2)",
        "tiny_hanabi",  # one payoff for both
        "dark_hex(board_size=2)",  # information sets that come at several depths
        "matrix_sh",
        "matching_pennies_3p",
        "oshi_zumo(coins=3,size=1,horizon=4)",  # simultaneous, and perfect information
        "first_sealed_auction(max_value=3)",
        GOOFSPIEL,
        f"turn_based_simultaneous_game(game={GOOFSPIEL})",
    ],
)
def test_the_same_ends_as_recursion(name: str) -> None:
    game = pyspiel.load_game(name)
    tree = open_spiel_tree.build_tree(game, keep_edges=True)
    root = explicit.from_open_spiel(game.new_initial_state())
    assert_same_ends(tree, root)
    assert_edges_lead_to_ends(tree)
    assert tree.name == str(game)
    assert sum(p.sets for p in tree.players) == len(explicit.legal_actions(root))
    for player in tree.players:
        assert len(set(player.labels)) == player.sets
        assert not any("\n" in label for label in player.labels)


def test_games_of_the_library_through_the_bridge() -> None:
    """A rulesheet unrolled, and walked through as a game of OpenSpiel: the same ends."""
    for spec in ("kuhn_poker", "goofspiel:cards=3", "monty_hall", "smallest:numbers=2,steps=2"):
        propnet = net_of(spec)
        assert_same_ends(open_spiel_tree.build_tree(open_spiel_game.load_game(spec)), explicit.from_propnet(propnet))


@pytest.mark.parametrize(
    ("name", "information_sets", "with_choice", "terminals", "histories"),
    [
        ("kuhn_poker", 12, 12, 30, 58),
        ("leduc_poker", 936, 936, 5_520, 9_457),
        ("goofspiel(num_cards=5,imp_info=True,points_order=ascending)", 2_124, 2_124, 14_400, None),
        pytest.param("liars_dice", 24_576, 12_288, 147_420, 294_883, marks=pytest.mark.slow),
    ],
)
def test_published_sizes(
    name: str, information_sets: int, with_choice: int, terminals: int, histories: int | None
) -> None:
    tree = open_spiel_tree.build_tree(name)
    assert sum(map(sum, tree.counts.information_sets)) == information_sets
    assert sum(player.sets for player in tree.players) == with_choice
    assert tree.terminals.histories.sum() == terminals
    assert histories is None or sum(tree.counts.histories) == histories
    assert tree.zero_sum
    assert tree.offset == 0


def test_unequal_chance() -> None:
    tree = open_spiel_tree.build_tree(pyspiel.load_efg_game(EFG))
    assert sorted(tree.terminals.weight.tolist()) == pytest.approx([0.25] * 3 + [0.75] * 3)
    assert tree.information_sets == {"player0": 2, "player1": 1}
    # If the second player says yes with probability q, the first goes left for 1 - 3(1 - q) and right for 4 - 5q.
    best = [0.25 * max(3, 3 * q - 2) + 0.75 * max(0, 4 - 5 * q) for q in np.linspace(0, 1, 100_001)]
    assert lp.solve(tree).value[0] == pytest.approx(min(best), abs=1e-4)


def test_constant_sums_are_shifted() -> None:
    tree = open_spiel_tree.build_tree(pyspiel.create_matrix_game([[3, 1], [0, 2]], [[1, 3], [4, 2]]))
    assert tree.zero_sum
    assert tree.offset == 2
    assert sorted(tree.terminals.payoff.tolist()) == [[-2, 2], [-1, 1], [0, 0], [1, -1]]
    assert lp.solve(tree).value[0] + tree.offset == pytest.approx(1.5)
    assert not open_spiel_tree.build_tree("matrix_pd").zero_sum
    assert not open_spiel_tree.build_tree("matching_pennies_3p").zero_sum


def test_names_of_options_and_sets() -> None:
    tree = open_spiel_tree.build_tree("kuhn_poker")
    assert tree.players[0].options(0) == ["Pass", "Bet"]
    assert set(tree.players[0].labels) == {"0", "1", "2", "0pb", "1pb", "2pb"}
    assert tree.players[0].action.tolist() == [-1, *[0, 1] * 6]
    goofspiel = open_spiel_tree.build_tree(GOOFSPIEL)
    assert goofspiel.players[0].labels[0].startswith("P0 hand: 1 2 3; P0 action sequence:")


def test_perfect_information_needs_no_strings() -> None:
    """markov_soccer has none; it ends here, because it is long."""
    game = pyspiel.load_game("markov_soccer")
    assert not game.get_type().provides_information_state_string
    with pytest.raises(game_tree.TooLargeError, match="histories or more, and 5,000 are allowed"):
        open_spiel_tree.build_tree(game, max_nodes=5_000)


def test_imperfect_recall_is_refused() -> None:
    with pytest.raises(
        open_spiel_tree.UnsupportedGameError, match=r"imperfect recall: player1 reaches .* 'P1 xo; ..' by different"
    ):
        open_spiel_tree.build_tree("dark_hex_ir(board_size=2)")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no_such_game", "has no game called 'no_such_game'"),
        ("mfg_crowd_modelling", "mean-field"),
        ("coop_box_pushing", "no information_state_string"),
    ],
)
def test_games_without_a_tree(name: str, message: str) -> None:
    with pytest.raises(open_spiel_tree.UnsupportedGameError, match=message):
        open_spiel_tree.build_tree(name)


def test_without_open_spiel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspiel", None)
    with pytest.raises(errors.UserError, match=r"pip install 'gdlx\[peers\]'"):
        open_spiel_tree.build_tree("kuhn_poker")
