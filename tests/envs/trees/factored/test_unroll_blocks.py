"""Trees in blocks against trees of single terminals: the same information sets, terminals and values."""

import functools
from collections.abc import Iterator

import hypothesis
import hypothesis.strategies as st
import jax
import numpy as np
import pytest

from gdlx.envs.bridges import open_spiel_tree
from gdlx.envs.trees import game_tree, infoset_keys, sequence_form, unroll
from gdlx.envs.trees.factored import private_registers, unroll_blocks
from gdlx.propnet import games
from gdlx.propnet.circuits import propnet
from gdlx.solvers import infoset_values, tabular_policies
from gdlx.solvers.exact import best_response, cfr, regret_matching
from gdlx.tests.helpers import compare_trees, sheets

# Each player tries cells of its own in secret; what happens to the world depends on both, and on chance.
SECRETS = """
(role left)
(role right)
(role random)
(opponent left right)
(opponent right left)
(cell 1)
(cell 2)
(cell 3)
(init (step 0))
(then 0 1)
(then 1 2)
(then 2 3)
(<= (next (step ?t)) (true (step ?s)) (then ?s ?t))
(<= (legal ?p (try ?c)) (opponent ?p ?q) (cell ?c) (not (true (tried ?p ?c))))
(<= (legal random (wind ?c)) (cell ?c))
(<= (next (tried ?p ?c)) (does ?p (try ?c)))
(<= (next (tried ?p ?c)) (true (tried ?p ?c)))
(<= (hits ?p) (does ?p (try ?c)) (does random (wind ?c)))
(<= (sees ?p hit) (hits ?p))
(<= (next (score ?p)) (hits ?p) (opponent ?p ?q) (not (hits ?q)))
(<= (next (score ?p)) (true (score ?p)))
(<= terminal (true (step 3)))
(<= terminal (true (score ?p)))
(<= (goal ?p 100) (opponent ?p ?q) (true (score ?p)) (not (true (score ?q))))
(<= (goal ?p 0) (opponent ?p ?q) (true (score ?q)) (not (true (score ?p))))
(<= (goal ?p 50) (opponent ?p ?q) (true (score ?p)) (true (score ?q)))
(<= (goal ?p 50) (opponent ?p ?q) (not (true (score ?p))) (not (true (score ?q))))
"""
# A mark that looks like the first player's own, but shows to the other two steps later.
LEAK = """
(role a)
(role b)
(init (step 0))
(then 0 1)
(then 1 2)
(then 2 3)
(<= (next (step ?t)) (true (step ?s)) (then ?s ?t))
(<= (legal a (mark ?x)) (true (step 0)) (side ?x))
(<= (legal b (mark ?x)) (true (step 3)) (side ?x))
(<= (legal a noop) (not (true (step 0))) (true (step ?s)))
(<= (legal b noop) (not (true (step 3))) (true (step ?s)))
(side 0)
(side 1)
(<= (next (mark1 ?x)) (does a (mark ?x)))
(<= (next (mark2 ?x)) (true (mark1 ?x)))
(<= (sees b (seen ?x)) (true (mark2 ?x)))
(<= (next done) (true (step 3)))
(<= terminal (true done))
(<= (next (guess ?x)) (does b (mark ?x)))
(<= (goal a 100) (true (guess 0)))
(<= (goal a 0) (not (true (guess 0))))
(<= (goal b 0) (true (guess 0)))
(<= (goal b 100) (not (true (guess 0))))
"""
GAMES = {
    "kuhn": "kuhn_poker",
    "goofspiel": "goofspiel:cards=3",
    "three players": "smallest:players=3,numbers=3,steps=2",
    "phantom": "phantom_ttt:width=2,height=3,line=2",
    "abrupt phantom": "phantom_ttt:width=2,height=2,line=2,tries=abrupt",
    "hex": "dark_hex:columns=2,rows=2",
    "blind": "krieg_tictactoe:size=2,line=2",
    "secrets": SECRETS,
    "leak": LEAK,
    "over at once": sheets.OVER_AT_ONCE,
}


@functools.cache
def propnet_of(name: str) -> propnet.PropNet:
    spec = GAMES[name]
    return sheets.compile_text(spec) if "(" in spec else games.compile_game(spec)


@functools.cache
def both(name: str) -> tuple[game_tree.GameTree, game_tree.GameTree]:
    return unroll_blocks.unroll(propnet_of(name)), unroll.unroll(propnet_of(name))


@pytest.fixture(autouse=True)
def _x64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize("name", GAMES)
def test_the_same_information_sets_and_terminals(name: str) -> None:
    blocks, plain = both(name)
    assert blocks.counts.histories == plain.counts.histories
    assert blocks.counts.information_sets == plain.counts.information_sets
    assert blocks.payoff_range == plain.payoff_range
    assert blocks.summary()["terminals"] == plain.summary()["terminals"]
    moves = max(len(role.moves) for role in propnet_of(name).roles)
    for number, (ours, theirs) in enumerate(zip(blocks.players, plain.players, strict=True)):
        assert sorted(ours.labels) == sorted(theirs.labels)
        chances = [dict(zip(p.labels, p.chance.tolist(), strict=True)) for p in (ours, theirs)]
        assert chances[0] == pytest.approx(chances[1])
        keys = [
            {label: tuple(key) for label, key in zip(tree.players[number].labels, array.T.tolist(), strict=True)}
            for tree in (blocks, plain)
            for array in [infoset_keys.compute_infoset_keys(tree, number, moves)]
        ]
        assert keys[0] == keys[1]


@pytest.mark.parametrize("name", [name for name in GAMES if name != "over at once"])
def test_the_same_values_and_best_responses(name: str) -> None:
    blocks, plain = both(name)
    pairs = [
        compare_trees.same_policy(*players, seed=n)
        for n, players in enumerate(zip(blocks.players, plain.players, strict=True))
    ]
    values = []
    for tree, policies in ((blocks, [a for a, _ in pairs]), (plain, [b for _, b in pairs])):
        form, layouts = sequence_form.sequence_form(tree)
        values.append(best_response.evaluate(form, tabular_policies.to_levels(tree, layouts, policies)))
    for ours, theirs in zip(*values, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", ["phantom", "secrets", "three players"])
@pytest.mark.parametrize("alternating", [True, False])
def test_cfr_is_the_same_iteration_by_iteration(name: str, alternating: bool) -> None:
    settings = regret_matching.Settings(alpha=1.5, beta=0.0, gamma=2.0)
    step = jax.jit(functools.partial(cfr.step, settings=settings, alternating=alternating))
    evaluate = jax.jit(best_response.evaluate_average)
    results = []
    for tree in both(name):
        form, _ = sequence_form.sequence_form(tree)
        state = cfr.init(form)
        steps = []
        for _ in range(12):
            state = step(form, state)
            evaluation = evaluate(form, state)
            steps.append(np.concatenate([evaluation.value, evaluation.improvements]))
        results.append(np.stack(steps))
    np.testing.assert_allclose(results[0], results[1], rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", ["phantom", "secrets", "three players"])
def test_the_same_values_of_information_sets(name: str) -> None:
    blocks, plain = both(name)
    pairs = [
        compare_trees.same_policy(*players, seed=n)
        for n, players in enumerate(zip(blocks.players, plain.players, strict=True))
    ]
    for number, (ours, theirs) in enumerate(zip(blocks.players, plain.players, strict=True)):
        tables = []
        for tree, player, policies in ((blocks, ours, [a for a, _ in pairs]), (plain, theirs, [b for _, b in pairs])):
            actual = infoset_values.infoset_values(tree, tuple(policies), number)
            tables.append(dict(zip(player.labels, zip(actual.reach, actual.value, strict=True), strict=True)))
        for label, facts in tables[0].items():
            assert facts == pytest.approx(tables[1][label], abs=1e-9), label


def test_labels_on_demand_are_the_short_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = both("phantom")[1]
    tree = unroll_blocks.unroll(propnet_of("phantom"))
    monkeypatch.setattr(game_tree, "_MANY_VIEWS", 0)
    for ours, theirs in zip(tree.players, plain.players, strict=True):
        assert not isinstance(ours.labels, tuple)
        assert sorted(ours.labels) == sorted(theirs.labels)
        assert ours.labels[:2] == [ours.labels[0], ours.labels[1]]


def test_blocks_are_fewer_than_terminals_where_players_try_in_private() -> None:
    blocks, plain = both("phantom")
    assert blocks.blocks is not None
    assert len(blocks.blocks.weight) < len(plain.terminals.weight) / 5


def test_private_registers_are_found() -> None:
    owners = private_registers.find_owners(propnet_of("phantom"))
    names = dict(zip(propnet_of("phantom").fluents, propnet_of("phantom").fluent_literals.tolist(), strict=True))
    assert owners[(names["(hit x 1 1)"] >> 1) - 1] == 0
    assert owners[(names["(hit o 1 1)"] >> 1) - 1] == 1
    assert owners[(names["(cell 1 1 x)"] >> 1) - 1] == private_registers.WORLD


def test_a_register_that_another_player_perceives_two_steps_later_is_not_private() -> None:
    owners = private_registers.find_owners(propnet_of("leak"))
    assert not (
        owners == 0
    ).any()  # what a marks may only be b's, which reads it: a's choice is no longer a secret of a


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("dark_hex:columns=2,rows=2,tries=abrupt", "dark_hex(num_cols=2,num_rows=2,gameversion=adh)"),
        pytest.param(
            "dark_hex:columns=3,rows=2,tries=abrupt",
            "dark_hex(num_cols=3,num_rows=2,gameversion=adh)",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_dark_hex_is_that_of_open_spiel(ours: str, theirs: str) -> None:
    pytest.importorskip("pyspiel")
    tree, other = unroll_blocks.unroll(games.compile_game(ours)), open_spiel_tree.build_tree(theirs)
    assert tree.summary()["terminals"] == other.summary()["terminals"]
    assert [p.sets for p in tree.players] == [p.sets for p in other.players]
    assert [p.sequences for p in tree.players] == [p.sequences for p in other.players]
    values = []
    for each in (tree, other):
        form, layouts = sequence_form.sequence_form(each)
        uniform = [tabular_policies.uniform(player) for player in each.players]
        evaluation = best_response.evaluate(form, tabular_policies.to_levels(each, layouts, uniform))
        low, high = each.payoff_range
        values.append(np.concatenate([evaluation.value, evaluation.improvements]) / (high - low))
    np.testing.assert_allclose(values[0], values[1], atol=1e-9)


def test_classical_dark_hex_has_the_terminals_of_open_spiel() -> None:
    # Not the information sets: those of OpenSpiel's classical version tell how many tries there were in all.
    pytest.importorskip("pyspiel")
    tree = unroll_blocks.unroll(games.compile_game("dark_hex:columns=2,rows=2"))
    other = open_spiel_tree.build_tree("dark_hex(num_cols=2,num_rows=2,gameversion=cdh)")
    assert tree.summary()["terminals"] == other.summary()["terminals"]


def test_unplayable_states_are_refused() -> None:
    with pytest.raises(game_tree.UnplayableError, match="second has no legal move"):
        unroll_blocks.unroll(sheets.compile_text(sheets.DEAD_END))


def test_too_many_blocks_or_members_are_refused_by_name() -> None:
    with pytest.raises(game_tree.TooLargeError, match=r"needs the memory of [\d,]+ blocks"):
        unroll_blocks.unroll(propnet_of("phantom"), max_blocks=30)
    with pytest.raises(game_tree.TooLargeError, match=r"needs the memory of [\d,]+ members"):
        unroll_blocks.unroll(propnet_of("phantom"), max_members=5)


def test_endless_games_are_refused() -> None:
    with pytest.raises(game_tree.TooLargeError, match=r"continues after|needs the memory of"):
        unroll_blocks.unroll(sheets.compile_text(sheets.ENDLESS), max_members=20_000)


_PERCEPTS = ("(hits ?p)", "(true (score ?p))", "(does ?p (try 1))", "(true (step 1))")
_NEXT_SCORE = ("(hits ?p) (opponent ?p ?q) (not (hits ?q))", "(does ?p (try 2)) (true (tried ?p 1))", "(hits ?p)")
_LEGAL = ("(not (true (tried ?p ?c)))", "(true (step ?s))", "(not (true (luck ?p)))")


@pytest.mark.parametrize(
    "compare",
    ["values", pytest.param("best responses", marks=pytest.mark.slow)],  # which compile for every game
)
@hypothesis.settings(max_examples=6)
@hypothesis.given(st.sampled_from(_PERCEPTS), st.sampled_from(_NEXT_SCORE), st.sampled_from(_LEGAL), st.booleans())
def test_random_rules(compare: str, percept: str, score: str, legal: str, is_lucky: bool) -> None:
    """Secret tries with hidden counters, percepts, chance and simultaneous moves in many combinations."""
    text = SECRETS.replace("(sees ?p hit) (hits ?p)", f"(sees ?p hit) (opponent ?p ?r) {percept}")
    rule = "(next (score ?p)) (hits ?p) (opponent ?p ?q) (not (hits ?q))"
    text = text.replace(rule, f"(next (score ?p)) (opponent ?p ?r) {score}")
    text = text.replace("(cell ?c) (not (true (tried ?p ?c)))", f"(cell ?c) {legal}")
    text += "(<= (legal ?p (try 1)) (opponent ?p ?q))\n"
    text += "(<= (next (luck ?p)) (does ?p (try 3)) (opponent ?p ?q))\n"
    text += "(<= (next (luck ?p)) (true (luck ?p)) (does ?p (try 1)))\n" if is_lucky else ""
    propnet = sheets.compile_text(text)
    blocks, plain = unroll_blocks.unroll(propnet), unroll.unroll(propnet)
    assert blocks.counts.histories == plain.counts.histories
    assert blocks.counts.information_sets == plain.counts.information_sets
    facts = [_best_responses(tree) if compare == "best responses" else _values(tree) for tree in (blocks, plain)]
    assert facts[0].keys() == facts[1].keys()
    for key, numbers in facts[0].items():
        assert numbers == pytest.approx(facts[1][key], abs=1e-9, nan_ok=True), key


def _values(tree: game_tree.GameTree) -> dict[str, tuple[float, ...]]:
    """Reach and value of every information set under uniform play."""
    uniform = tuple(map(tabular_policies.uniform, tree.players))
    facts: dict[str, tuple[float, ...]] = {}
    for number, player in enumerate(tree.players):
        exact = infoset_values.infoset_values(tree, uniform, number)
        labels = [f"{player.name}: {label}" for label in player.labels]
        facts |= zip(labels, zip(exact.reach.tolist(), exact.value.tolist(), strict=True), strict=True)
    return facts


def _best_responses(tree: game_tree.GameTree) -> dict[str, tuple[float, ...]]:
    form, layouts = sequence_form.sequence_form(tree)
    uniform = [tabular_policies.uniform(player) for player in tree.players]
    evaluation = best_response.evaluate(form, tabular_policies.to_levels(tree, layouts, uniform))
    return {"value": tuple(evaluation.value.tolist()), "improvements": tuple(evaluation.improvements.tolist())}
