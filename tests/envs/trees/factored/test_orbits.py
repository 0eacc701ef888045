"""Trees without symmetric information sets against whole trees: sizes, policies, values, and the iterates of CFR."""

import functools
from collections.abc import Iterator

import jax
import numpy as np
import pytest

from gdlx.envs.trees import game_tree, sequence_form
from gdlx.envs.trees.factored import private_registers, symmetry_group, unroll_blocks
from gdlx.propnet import games
from gdlx.propnet.circuits import propnet
from gdlx.propnet.symmetries import symmetries
from gdlx.solvers import algorithms, symmetric_policies, tabular_policies, tasks
from gdlx.solvers.exact import best_response, cfr
from gdlx.solvers.runs import tree_solvers

# Each player tries doors of its own in secret, at once, and chance opens one: all doors are alike.
DOORS = """
(role left) (role right) (role random) (opponent left right) (opponent right left)
(door 1) (door 2) (door 3) (init (step 0)) (then 0 1) (then 1 2) (then 2 3)
(<= (next (step ?t)) (true (step ?s)) (then ?s ?t))
(<= (legal ?p (try ?d)) (opponent ?p ?q) (door ?d) (not (true (tried ?p ?d))))
(<= (legal random (open ?d)) (door ?d))
(<= (next (tried ?p ?d)) (does ?p (try ?d)))
(<= (next (tried ?p ?d)) (true (tried ?p ?d)))
(<= (enters ?p) (does ?p (try ?d)) (does random (open ?d)))
(<= (sees ?p inside) (enters ?p))
(<= (next (score ?p)) (enters ?p) (opponent ?p ?q) (not (enters ?q)))
(<= (next (score ?p)) (true (score ?p)))
(<= terminal (true (step 3)))
(<= terminal (true (score ?p)))
(<= (goal ?p 100) (opponent ?p ?q) (true (score ?p)) (not (true (score ?q))))
(<= (goal ?p 0) (opponent ?p ?q) (true (score ?q)) (not (true (score ?p))))
(<= (goal ?p 50) (opponent ?p ?q) (true (score ?p)) (true (score ?q)))
(<= (goal ?p 50) (opponent ?p ?q) (not (true (score ?p))) (not (true (score ?q))))
"""
# With the number of symmetries that are used.
GAMES = {
    DOORS: 6,
    "leduc_poker": 8,
    "rps": 3,
    "monty_hall": 6,  # one player
    "dark_hex:columns=2,rows=2": 2,
    "dark_hex:columns=2,rows=3": 2,
    "phantom_ttt:width=2,height=2,line=2": 24,
    "phantom_ttt:width=2,height=3": 36,  # half of them
    "phantom_ttt:width=2,height=3,line=2,tries=abrupt": 16,
    "krieg_tictactoe:size=2,line=2": 24,  # simultaneous
    "princess_and_monster:turns=2": 2,
}


EVALUATE_AVERAGE = jax.jit(best_response.evaluate_average)


@functools.cache
def propnet_of(game: str) -> propnet.PropNet:
    return games.compile_game(rules=game) if game == DOORS else games.compile_game(game)


@functools.cache
def group_of(game: str) -> symmetry_group.Group:
    group = symmetry_group.build(propnet_of(game))
    assert group is not None
    return group


@functools.cache
def whole_of(game: str) -> unroll_blocks.WholeTree:
    return unroll_blocks.unroll_whole(propnet_of(game), group_of(game))


@functools.cache
def quotient_of(game: str) -> game_tree.GameTree:
    return unroll_blocks.unroll(propnet_of(game), group=group_of(game))


@functools.cache
def forms_of(game: str) -> tuple[sequence_form.SequenceForm, sequence_form.SequenceForm]:
    whole, quotient = whole_of(game).tree, quotient_of(game)
    return sequence_form.sequence_form(whole)[0], sequence_form.sequence_form(quotient)[0]


@pytest.fixture(autouse=True)
def _x64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize("game", GAMES, ids=lambda game: "doors" if game == DOORS else game)
def test_every_information_set_and_history_is_counted(game: str) -> None:
    whole, quotient = whole_of(game).tree, quotient_of(game)
    plain = unroll_blocks.unroll(propnet_of(game))
    assert whole.summary() == plain.summary()
    assert group_of(game).order == GAMES[game]
    assert quotient.counts.histories == whole.counts.histories
    assert quotient.summary()["terminals"] == whole.summary()["terminals"]
    assert sum(quotient.counts.nodes) <= sum(whole.counts.nodes)
    for small, large in zip(quotient.players, whole.players, strict=True):
        assert small.orbits is not None
        assert small.sequences < large.sequences
        assert small.orbits.infosets.sum() == large.sets
        assert small.orbits.infosets.max() <= GAMES[game]


@pytest.mark.parametrize("game", GAMES, ids=lambda game: "doors" if game == DOORS else game)
def test_the_whole_tree_finds_the_same_representatives(game: str) -> None:
    whole, quotient = whole_of(game), quotient_of(game)
    for actual, small, large, of in zip(
        whole.players, quotient.players, whole.tree.players, whole.representative, strict=True
    ):
        for name in ("parent", "first", "step", "action"):
            np.testing.assert_array_equal(getattr(actual, name), getattr(small, name))
        assert actual.orbits is not None
        assert small.orbits is not None
        np.testing.assert_array_equal(actual.orbits.copies, small.orbits.copies)
        # A sequence of the whole game and its representative have representatives as parents.
        owner = np.repeat(np.arange(large.sets), np.diff(large.first))
        small_owner = np.repeat(np.arange(small.sets), np.diff(small.first))
        np.testing.assert_array_equal(of[large.parent[owner]], small.parent[small_owner[of[1:] - 1]])


def random_policies(game: str, seed: int) -> tabular_policies.Policies:
    rng = np.random.default_rng(seed)
    return tuple(tabular_policies.normalise(p, rng.random(p.sequences)) for p in quotient_of(game).players)


def evaluate(tree: game_tree.GameTree, policies: tabular_policies.Policies) -> best_response.Evaluation:
    form, layouts = sequence_form.sequence_form(tree)
    measured: best_response.Evaluation = tasks.evaluate(form, tabular_policies.to_levels(tree, layouts, policies))
    return measured


@pytest.mark.parametrize("game", GAMES, ids=lambda game: "doors" if game == DOORS else game)
def test_invariant_policies_have_the_same_value_and_exploitability(game: str) -> None:
    policies = random_policies(game, 0)
    lifted = symmetric_policies.to_whole(whole_of(game), policies)
    for player, policy in zip(whole_of(game).tree.players, lifted, strict=True):
        tabular_policies.validate(player, policy)
    small, large = evaluate(quotient_of(game), policies), evaluate(whole_of(game).tree, lifted)
    np.testing.assert_allclose(small.value, large.value, rtol=0, atol=1e-11)
    np.testing.assert_allclose(small.best_response_value, large.best_response_value, rtol=0, atol=1e-11)
    for before, after in zip(policies, symmetric_policies.from_whole(whole_of(game), lifted), strict=True):
        np.testing.assert_allclose(before, after, rtol=0, atol=1e-12)


@pytest.mark.parametrize("alternating", [True, False])
@pytest.mark.parametrize(
    "game", [DOORS, "leduc_poker", "phantom_ttt:width=2,height=3"], ids=["doors", "suits", "cells"]
)
def test_cfr_is_the_same_at_every_iteration(game: str, alternating: bool) -> None:
    for name in ("cfr", "cfr+", "dcfr", "pcfr+"):
        algorithm = algorithms.find(name)
        assert algorithm.step is not None
        states = [cfr.init(form) for form in forms_of(game)]
        for _ in range(8):
            states = [
                tree_solvers.advance(algorithm.step, form, state, algorithm.settings, 1, alternating=alternating)
                for form, state in zip(forms_of(game), states, strict=True)
            ]
            whole, quotient = map(EVALUATE_AVERAGE, forms_of(game), states)
            np.testing.assert_allclose(whole.value, quotient.value, rtol=0, atol=1e-9)
            np.testing.assert_allclose(whole.best_response_value, quotient.best_response_value, rtol=0, atol=1e-9)


@pytest.mark.parametrize("game", ["leduc_poker", "phantom_ttt:width=2,height=2,line=2"])
def test_a_policy_that_is_not_symmetric_is_refused(game: str) -> None:
    whole = whole_of(game)
    policies = tuple(map(tabular_policies.uniform, whole.tree.players))
    symmetric_policies.from_whole(whole, policies)
    player = whole.tree.players[0]
    changed = policies[0].copy()
    changed[player.first[0] : player.first[1]] = np.eye(player.first[1] - player.first[0])[0]
    with pytest.raises(symmetric_policies.NotInvariantError, match=r"is not symmetric: .* elsewhere"):
        symmetric_policies.from_whole(whole, (changed, *policies[1:]))


def test_the_first_player_of_a_small_square_board_has_one_move() -> None:
    start = quotient_of("phantom_ttt:width=2,height=2,line=2").players[0]
    assert start.options(0) == ["(mark 1 1) or (mark 1 2) or (mark 2 1) or (mark 2 2)"]  # all corners are alike
    assert start.orbits is not None
    assert start.orbits.copies[1] == 4


def test_exchanged_registers_have_one_owner() -> None:
    compiled = propnet_of("phantom_ttt:width=2,height=2,line=2")
    owners = private_registers.find_owners(compiled)
    group = group_of("phantom_ttt:width=2,height=2,line=2")
    assert (private_registers.find_owners(compiled, list(group.registers.image)) == owners).all()
    assert (owners >= 0).any()
    first = int(np.flatnonzero(owners >= 0)[0])
    swap = np.arange(len(owners))
    world = int(np.flatnonzero(owners == private_registers.WORLD)[0])
    swap[[first, world]] = world, first
    assert private_registers.find_owners(compiled, [swap])[first] == private_registers.WORLD


def test_products_and_stabilisers() -> None:
    group = group_of("leduc_poker")
    elements = np.arange(group.order)
    assert (group.multiply[elements, group.inverse] == 0).all()
    assert (group.multiply[0] == elements).all()
    associated = group.multiply[group.multiply[:, :, None], elements], group.multiply[:, group.multiply]
    np.testing.assert_array_equal(associated[0], associated[1])
    everything = np.full(group.order, group.everything, np.uint64)
    assert not group.smallest_equal(elements, everything).any()
    only_identity = np.ones(group.order, np.uint64)
    np.testing.assert_array_equal(group.smallest_equal(elements, only_identity), elements)


def test_large_groups_are_replaced_by_a_part() -> None:
    compiled = games.compile_game("meier")
    assert symmetries.find_symmetries(compiled).order > symmetry_group.MOST_ELEMENTS
    group = symmetry_group.build(compiled)
    assert group is not None
    assert 2 <= group.order <= symmetry_group.MOST_ELEMENTS
    assert symmetry_group.build(games.compile_game("kuhn_poker")) is None
