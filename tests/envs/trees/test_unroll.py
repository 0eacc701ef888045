"""Unrolled games against a traversal of all histories, node by node."""

import functools
from typing import Any

import numpy as np
import pytest

import gdlx
from gdlx.envs import game_spec, payoffs
from gdlx.envs.trees import game_tree, unroll
from gdlx.propnet import games, library
from gdlx.propnet.circuits import propnet
from gdlx.solvers import tabular_policies
from gdlx.solvers.exact import lp
from gdlx.solvers.runs import policy_tables
from gdlx.tests.helpers import explicit, random_games, sheets

# One choice for each of three players, not in the order of their names, between two moves of chance.
THREE = """
(role b) (role random) (role a) (role c)
(init (step 0)) (succ 0 1) (succ 1 2) (succ 2 3)
(<= (next (step ?n)) (true (step ?m)) (succ ?m ?n))
(side 1) (side 2) (side 3)
(<= (legal random (roll ?s)) (side ?s) (not (true (step 1))))
(<= (legal random wait) (true (step 1)))
(<= (legal ?r (say ?s)) (player ?r) (side ?s) (distinct ?s 3) (true (step 1)))
(<= (legal a (say 3)) (true (step 1)))
(<= (legal ?r wait) (player ?r) (not (true (step 1))))
(<= (legal b rest) (true (step 2)))
(player a) (player b) (player c)
(<= (next (rolled ?s)) (does random (roll ?s)))
(<= (next (said ?r ?s)) (does ?r (say ?s)))
(<= (next (said ?r ?s)) (true (said ?r ?s)))
(<= (sees b (rolled ?s)) (does random (roll ?s)) (distinct ?s 2))
(<= (sees c ?m) (does b ?m))
(<= terminal (true (step 3)))
(<= hit (true (rolled ?s)) (true (said b ?s)))
(<= (goal b 100) hit) (<= (goal b 20) (not hit))
(<= (goal ?r 70) (distinct ?r b) (true (rolled ?s)) (true (said ?r ?s)))
(<= (goal ?r 0) (distinct ?r b) (player ?r) (true (rolled ?s)) (not (true (said ?r ?s))))
"""


@functools.cache
def net_of(spec: str) -> propnet.PropNet:
    return sheets.compile_text(spec) if "(" in spec else games.compile_game(spec)


def ends_of(tree: game_tree.GameTree) -> dict[explicit.TerminalClass, tuple[float, int]]:
    """Ends and leaves of a tree, with sequences written as choices at information states."""
    words = []
    for player in tree.players:
        own: list[tuple[tuple[str, int], ...]] = [()]
        for number, state in enumerate(policy_tables.information_state_strings(player)):
            for sequence in range(player.first[number], player.first[number + 1]):
                own.append((*own[player.parent[number]], (state, int(player.action[sequence]))))
        words.append(own)
    collected: dict[explicit.TerminalClass, tuple[float, int]] = {}

    def add(sequences: game_tree.Ints, paid: list[float], is_leaf: bool, weight: float, count: float) -> None:
        choices = tuple(own[s] for own, s in zip(words, sequences.tolist(), strict=True))
        kind = explicit.TerminalClass(choices, tuple(paid), is_leaf)
        before, histories = collected.get(kind, (0.0, 0))
        collected[kind] = before + weight, histories + int(count)

    for sequences, paid, weight, count in zip(*tree.terminals, strict=True):
        add(sequences, paid.tolist(), False, weight, count)
    if tree.leaves is not None:
        nothing = [0.0] * len(tree.players)
        leaves = tree.leaves
        for sequences, weight, count in zip(leaves.sequence, leaves.weight, leaves.histories, strict=True):
            add(sequences, nothing, True, weight, count)
    return collected


def assert_same_ends(tree: game_tree.GameTree, root: explicit.Node) -> None:
    ours, theirs = ends_of(tree), explicit.terminal_classes(root, len(tree.players))
    assert ours.keys() == theirs.keys()
    for kind, (weight, histories) in theirs.items():
        assert ours[kind][0] == pytest.approx(weight, abs=1e-12)
        assert ours[kind][1] == histories
    chance = explicit.infoset_chance_reach(root)
    for number, player in enumerate(tree.players):
        for state, weight in zip(policy_tables.information_state_strings(player), player.chance.tolist(), strict=True):
            # Sets at the leaves of a limited depth are nobody's choice in a walk that ends there.
            assert (number, state) in chance or tree.leaves is not None
            assert chance.get((number, state), weight) == pytest.approx(weight)


@pytest.mark.parametrize(
    ("spec", "information_sets", "terminals", "histories"),
    [
        ("kuhn_poker", 12, 30, 58),
        ("leduc_poker", 936, 5_520, 9_457),
        ("goofspiel:cards=4", 162, 576, None),
        ("goofspiel:cards=5", 2_124, 14_400, None),
        ("liars_dice", 12_288, 147_420, 294_883),  # and as many sets again in which the only move is to doubt
    ],
)
def test_published_sizes(spec: str, information_sets: int, terminals: int, histories: int | None) -> None:
    tree = unroll.unroll(net_of(spec))
    assert sum(player.sets for player in tree.players) == information_sets
    assert tree.summary()["terminals"] == terminals
    assert histories is None or tree.summary()["histories"] == histories
    assert tree.zero_sum
    assert tree.leaves is None
    assert sum(tree.counts.nodes) <= sum(tree.counts.histories)


@pytest.mark.parametrize(
    "spec",
    [
        "kuhn_poker",
        "monty_hall",
        "simple_poker",
        "three_card_poker",
        "biased_rps",
        "goofspiel:cards=3",
        "goofspiel:cards=3,info=perfect",
        "liars_dice:sides=2",
        "smallest:numbers=3,steps=1",
        "smallest:numbers=2,steps=2",
        pytest.param(sheets.COINS, id="coins"),
        pytest.param(THREE, id="three"),
        pytest.param(sheets.DEAD_END, id="dead_end"),
        pytest.param(sheets.OVER_AT_ONCE, id="over_at_once"),
    ],
)
@pytest.mark.parametrize("merge", [True, False])
def test_the_same_ends_as_a_walk(spec: str, merge: bool) -> None:
    propnet = net_of(spec)
    tree = unroll.unroll(propnet, merge=merge, unplayable="end")
    assert_same_ends(tree, explicit.from_propnet(propnet, payoffs.Payoffs(tree.offset, tree.zero_sum, True)))
    assert (tree.counts.nodes == tree.counts.histories) or merge


@pytest.mark.parametrize(
    ("spec", "depth"), [("leduc_poker", 5), ("tictactoe", 3), ("blind_tictactoe", 1), (sheets.MAZE, 2)]
)
def test_a_limited_depth(spec: str, depth: int) -> None:
    """tictactoe and the maze are not over by then; the former is GDL-I, where everybody sees all moves."""
    propnet = net_of(spec)
    tree = unroll.unroll(propnet, depth=depth)
    assert tree.leaves is not None
    assert_same_ends(tree, explicit.from_propnet(propnet, payoffs.infer_payoffs(propnet), depth))
    assert tree.leaves.state.max() < len(tree.leaves.states)
    assert len(tree.counts.nodes) == depth + 1
    whole = unroll.unroll(net_of("kuhn_poker"), depth=50)
    assert whole.leaves is None


def test_leaves_are_states_of_the_game() -> None:
    """Players decide at leaves as they do in the whole game, though nothing comes of it."""
    propnet = net_of("leduc_poker")
    part, whole = unroll.unroll(propnet, depth=4), unroll.unroll(propnet)
    assert part.leaves is not None
    for number, (player, longer) in enumerate(zip(part.players, whole.players, strict=True)):
        assert player.sets == (longer.step <= 4).sum()
        at_leaves = part.leaves.information[:, number]
        assert at_leaves.max() + 1 == len(np.unique(at_leaves)) == whole.counts.information_sets[4][number]


@pytest.mark.parametrize("seed", range(10))
def test_random_games(seed: int) -> None:
    propnet = sheets.compile_text(random_games.generate_sheet(seed))
    try:
        tree = unroll.unroll(propnet, "goal", depth=3, max_nodes=4_000, goal_conflict="max", keep_edges=True)
    except game_tree.TooLargeError:
        tree = unroll.unroll(propnet, "goal", depth=1, goal_conflict="max", keep_edges=True)
    assert_same_ends(
        tree, explicit.from_propnet(propnet, payoffs.Payoffs(0.0, False, True), len(tree.counts.nodes) - 1)
    )
    assert_edges_lead_to_ends(tree)


def assert_edges_lead_to_ends(tree: game_tree.GameTree) -> None:
    """Follow the edges from the start: they give the sequences, weights and numbers of histories of all ends."""
    assert tree.levels is not None
    weight, histories = np.zeros(len(tree.terminals.weight)), np.zeros(len(tree.terminals.weight))
    nodes = {0: ((0,) * len(tree.players), 1.0, 1.0)} if tree.levels else {}
    for depth, level in enumerate(tree.levels):
        assert len(level.first_edge) == len(level.decision) + 1
        following: dict[int, tuple[tuple[int, ...], float, float]] = {}
        for node, (sequences, reached, count) in nodes.items():
            begin, end = level.first_edge[node : node + 2].tolist()
            options = [
                [sequences[p]]
                if decision < 0
                else list(range(*tree.players[p].first[decision : decision + 2].tolist()))
                for p, decision in enumerate(level.decision[node].tolist())
            ]
            chances = (end - begin) // int(np.prod([len(own) for own in options]))
            joint = [c for c in np.ndindex(*map(len, options)) for _ in range(chances)]
            assert len(joint) == end - begin
            assert level.chance[begin:end].sum() == pytest.approx(len(joint) / chances)
            for player, decision in enumerate(level.decision[node].tolist()):
                assert decision < 0 or tree.players[player].parent[decision] == sequences[player]
            for choice, chance, child in zip(joint, level.chance[begin:end], level.child[begin:end], strict=True):
                after = tuple(own[c] for own, c in zip(options, choice, strict=True))
                if child < 0:
                    assert tuple(tree.terminals.sequence[-1 - child]) == after
                    weight[-1 - child] += reached * chance
                    histories[-1 - child] += count
                else:
                    known, more, others = following.get(int(child), (after, 0.0, 0.0))
                    assert known == after
                    following[int(child)] = after, more + reached * chance, others + count
        nodes = following
        if depth + 1 < len(tree.levels):
            assert sorted(nodes) == list(range(len(tree.levels[depth + 1].decision)))
    if tree.levels:
        assert weight == pytest.approx(tree.terminals.weight)
        assert np.array_equal(histories, tree.terminals.histories)
    if tree.leaves is not None:
        assert [nodes[n][0] for n in range(len(nodes))] == [tuple(row) for row in tree.leaves.sequence.tolist()]
        assert [nodes[n][1] for n in range(len(nodes))] == pytest.approx(tree.leaves.weight.tolist())


@pytest.mark.parametrize(
    "spec",
    [
        "kuhn_poker",
        "monty_hall",
        "goofspiel:cards=3",
        "liars_dice:sides=2",
        "smallest:numbers=2,steps=2",
        pytest.param(sheets.COINS, id="coins"),
        pytest.param(THREE, id="three"),
        pytest.param(sheets.OVER_AT_ONCE, id="over_at_once"),
    ],
)
@pytest.mark.parametrize("merge", [True, False])
def test_kept_edges(spec: str, merge: bool) -> None:
    assert_edges_lead_to_ends(unroll.unroll(net_of(spec), keep_edges=True, merge=merge))


@pytest.mark.parametrize("spec", ["leduc_poker", "liars_dice:sides=3", "goofspiel:cards=4", "gops:rounds=2"])
def test_merged_and_unmerged_have_the_same_payoffs(spec: str) -> None:
    merged, unmerged = (unroll.unroll(net_of(spec), merge=merge) for merge in (True, False))
    assert [p.labels for p in merged.players] == [p.labels for p in unmerged.players]
    assert merged.counts.histories == unmerged.counts.histories
    for first, second in zip(merged.players, unmerged.players, strict=True):
        for name in ("parent", "first", "step", "action"):
            assert np.array_equal(getattr(first, name), getattr(second, name))
    assert abs(lp.payoff_matrix(merged) - lp.payoff_matrix(unmerged)).max() < 1e-12


def test_chance_in_the_middle_of_the_roles() -> None:
    """Edges are in the order of the players' options, chance last, wherever the role random stands in the sheet."""
    tree = unroll.unroll(net_of(sheets.COINS), keep_edges=True)
    assert tree.levels is not None
    assert [player.name for player in tree.players] == ["odd", "even"]
    first = tree.levels[0]
    assert len(first.child) == 2 * 2 * 3
    # odd sees the coin's side or its edge, even does not: six information sets of odd, in the order of its moves.
    second = tree.levels[1]
    assert [len(set(second.decision[first.child[n : n + 3], 1].tolist())) for n in (0, 3, 6, 9)] == [1, 1, 1, 1]
    assert [len(set(second.decision[first.child[n : n + 3], 0].tolist())) for n in (0, 3, 6, 9)] == [3, 3, 3, 3]


def test_labels_say_what_a_player_did_and_saw() -> None:
    kuhn, goofspiel = (unroll.unroll(net_of(spec)) for spec in ("kuhn_poker", "goofspiel:cards=3"))
    assert set(kuhn.players[0].labels) >= {"(dealt king)", "(dealt king); check; (opponent_did bet)"}
    assert goofspiel.players[0].labels[0] == "start"
    for spec in ("leduc_poker", "liars_dice:sides=3", "smallest:numbers=2,steps=2", "monty_hall"):
        for player in unroll.unroll(net_of(spec)).players:
            assert len(set(player.labels)) == player.sets


def test_goal_conflicts_are_refused_or_settled() -> None:
    propnet = net_of(sheets.CONFLICTS)
    with pytest.raises(
        game_tree.GoalConflictError, match=r"first has (the goal values 20 and 70 and 100|no goal value)"
    ):
        unroll.unroll(propnet)
    tree = unroll.unroll(propnet, goal_conflict="max")
    assert sorted(tree.terminals.payoff.tolist()) == [[0.0, 10.0], [20.0, 80.0], [30.0, 70.0], [100.0, 10.0]]
    assert not tree.zero_sum


def test_a_terminal_without_a_goal_needs_a_goal_rule() -> None:
    text = (
        "(role x) (legal x go) (init on) (<= (next over) (true on)) (<= terminal (true over)) (<= (goal x 1) (true on))"
    )
    with pytest.raises(
        game_tree.GoalConflictError, match=r"x has no goal value .* Add a goal rule for x there, or take 0"
    ):
        unroll.unroll(sheets.compile_text(text))


def test_unplayable_ends_are_counted_and_pay_nothing() -> None:
    with pytest.raises(game_tree.UnplayableError, match=r"has no legal move in a state .* that is not terminal"):
        unroll.unroll(net_of(sheets.DEAD_END))
    tree = unroll.unroll(net_of(sheets.DEAD_END), unplayable="end")
    assert tree.unplayable == 1
    assert tree.zero_sum
    assert sorted(tree.terminals.payoff.tolist()) == [[0.0, 0.0], [50.0, -50.0], [50.0, -50.0]]


def test_too_large_or_endless() -> None:
    with pytest.raises(game_tree.TooLargeError, match=r"allowed are 1,000 joint actions.* Unroll fewer steps"):
        unroll.unroll(net_of("leduc_poker"), max_nodes=1_000)
    with pytest.raises(game_tree.TooLargeError, match=r"more than 1e\+12 histories after 4 joint actions"):
        unroll.unroll(net_of("smallest"), max_nodes=100_000)
    with pytest.raises(game_tree.TooLargeError, match="needs a game that ends"):
        unroll.unroll(
            sheets.compile_text(
                "(role x) (legal x go) (init on) (<= (next on) (true on)) (<= terminal (not (true on)))(goal x 0)"
            )
        )


def test_a_game_may_be_named_by_a_string() -> None:
    by_name = game_spec.unroll_game("kuhn_poker", depth=3)
    by_spec = game_spec.unroll_game(game_spec.GameSpec("kuhn_poker"), depth=3)
    assert by_name.summary() == by_spec.summary()
    package: Any = gdlx  # its names are imported on first use
    assert package.unroll("rps").summary() == game_spec.unroll_game(game_spec.GameSpec("rps")).summary()
    with pytest.raises(library.LibraryError, match="no game 'tictacto'"):
        package.unroll("tictacto")


def test_trees_print_in_one_line() -> None:
    assert repr(unroll.unroll(net_of("kuhn_poker"))) == "GameTree(kuhn_poker: 58 nodes, 12 information sets)"
    assert repr(unroll.unroll(net_of("leduc_poker"))).endswith("936 information sets)")


def test_payoff_modes() -> None:
    propnet = net_of("kuhn_poker")
    goals, shifted = unroll.unroll(propnet, "goal"), unroll.unroll(propnet, "zero-sum")
    assert not goals.zero_sum
    assert shifted.zero_sum
    assert np.array_equal(goals.terminals.payoff - 50, shifted.terminals.payoff)
    with pytest.raises(payoffs.PayoffError, match="two players"):
        unroll.unroll(net_of("monty_hall"), "zero-sum")


def test_information_sets_in_order_of_time() -> None:
    for player in unroll.unroll(net_of("leduc_poker")).players:
        assert (np.diff(player.step) >= 0).all()
        owner = np.repeat(np.arange(player.sets), np.diff(player.first))
        later = np.flatnonzero(player.parent > 0)
        assert (player.step[owner[player.parent[later] - 1]] < player.step[later]).all()
        assert np.isclose(tabular_policies.realization_plan(player, tabular_policies.uniform(player)).max(), 1)
