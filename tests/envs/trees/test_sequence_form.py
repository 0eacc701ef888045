"""The flat arrays of a game against sums over its terminals, and policies in both layouts."""

from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
import pytest

from gdlx.envs.trees import dense_blocks, game_tree, sampling_form, sequence_form, unique_rows, unroll
from gdlx.solvers import tabular_policies
from gdlx.solvers.exact import best_response, realization_plans
from gdlx.tests.envs.trees.test_unroll import THREE, net_of
from gdlx.tests.helpers import sheets

SPECS = {
    "kuhn_poker": "kuhn_poker",
    "leduc_poker": "leduc_poker",
    "goofspiel": "goofspiel:cards=4",
    "liars_dice": "liars_dice:sides=3",
    "smallest": "smallest:numbers=2,steps=2",
    "monty_hall": "monty_hall",
    "three": THREE,
    "dead_end": sheets.DEAD_END,
    "over_at_once": sheets.OVER_AT_ONCE,
}
utilities = jax.jit(realization_plans.utilities)


@pytest.fixture(autouse=True)
def _x64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def random_policies(tree: game_tree.GameTree, seed: int = 0) -> tabular_policies.Policies:
    rng = np.random.default_rng(seed)
    return tuple(tabular_policies.normalise(player, rng.random(player.sequences)) for player in tree.players)


@pytest.mark.parametrize("name", SPECS)
def test_utilities_are_sums_over_ends(name: str) -> None:
    """Tables, thin tables and single entries together are the sum of all ends, by own sequence."""
    tree = unroll.unroll(net_of(SPECS[name]), unplayable="end")
    game, layouts = sequence_form.sequence_form(tree)
    policies = random_policies(tree)
    reach = [
        tabular_policies.realization_plan(player, policy) for player, policy in zip(tree.players, policies, strict=True)
    ]
    flat = best_response.flat_realization_plans(game, tabular_policies.to_levels(tree, layouts, policies))
    for number, player in enumerate(tree.players):
        np.testing.assert_allclose(np.asarray(flat[number])[layouts[number].place], reach[number], atol=1e-15)
        expected = np.zeros(player.sequences)
        others = [policy[tree.terminals.sequence[:, n]] for n, policy in enumerate(reach) if n != number]
        worth = (
            tree.terminals.payoff[:, number]
            * tree.terminals.weight
            * np.prod([np.ones(len(tree.terminals.weight)), *others], axis=0)
        )
        np.add.at(expected, tree.terminals.sequence[:, number], worth)
        root, levels = utilities(game.players[number], [policy for n, policy in enumerate(flat) if n != number])
        assert float(root) == pytest.approx(expected[0])
        actual = tabular_policies.player_from_levels(layouts[number], levels)
        np.testing.assert_allclose(actual[1:], expected[1:], atol=1e-12)


@pytest.mark.parametrize("name", SPECS)
def test_levels(name: str) -> None:
    """What leads to a set is in the level above; sets are sorted by it; every sequence has a place of its own."""
    tree = unroll.unroll(net_of(SPECS[name]), unplayable="end")
    game, layouts = sequence_form.sequence_form(tree)
    for player, own, form in zip(tree.players, layouts, game.players, strict=True):
        assert len(np.unique(own.place)) == player.sequences
        assert own.place[0] == 0
        owner = np.repeat(np.arange(player.sets), np.diff(player.first))
        for decision, parent in enumerate(player.parent.tolist()):
            assert own.level[decision] == (own.level[owner[parent - 1]] + 1 if parent else 0)
        for parents, uniform in zip(form.parent, form.uniform, strict=True):
            assert (np.diff(parents) >= 0).all()
            np.testing.assert_allclose(np.asarray(uniform).sum(axis=0), 1)


@pytest.mark.parametrize("name", SPECS)
def test_policies_in_both_layouts(name: str) -> None:
    tree = unroll.unroll(net_of(SPECS[name]), unplayable="end")
    _, layouts = sequence_form.sequence_form(tree)
    policies = random_policies(tree)
    levels = tabular_policies.to_levels(tree, layouts, policies)
    for policy, other in zip(tabular_policies.from_levels(tree, layouts, levels), policies, strict=True):
        np.testing.assert_allclose(policy, other, atol=1e-15)
    batch = [np.stack(pair, axis=-1) for pair in zip(policies, random_policies(tree, 1), strict=True)]
    if name == "over_at_once":  # there is nothing that could have a batch axis
        return
    for policy, other in zip(
        tabular_policies.from_levels(tree, layouts, tabular_policies.to_levels(tree, layouts, batch)),
        batch,
        strict=True,
    ):
        np.testing.assert_allclose(policy, other, atol=1e-15)
    for player, policy in zip(tree.players, policies, strict=True):
        reach = tabular_policies.realization_plan(player, policy)
        np.testing.assert_allclose(tabular_policies.from_realization_plan(player, reach), policy)
        # A plan: the options of a set have together what leads to it.
        sums = np.add.reduceat(reach[1:], player.first[:-1] - 1) if player.sets else np.zeros(0)
        np.testing.assert_allclose(sums, reach[player.parent])


def test_policies_are_completed_and_checked() -> None:
    player = unroll.unroll(net_of("kuhn_poker")).players[0]
    assert np.array_equal(tabular_policies.normalise(player, np.zeros(13)), [1, *[0.5] * 12])
    assert np.array_equal(tabular_policies.uniform(player), [1, *[0.5] * 12])
    weights = np.array([1, 3, 1, 0, 0, *[1] * 8])
    assert tabular_policies.normalise(player, weights)[:5].tolist() == [1, 0.75, 0.25, 0.5, 0.5]
    assert tabular_policies.validate(player, tabular_policies.uniform(player) + 1e-6).sum() == pytest.approx(
        7, abs=1e-12
    )
    for wrong, reported in [
        (np.ones(12), "each of its 13 sequences"),
        (np.ones(()), "each of its 13 sequences"),
        (np.ones(13), "add up to 2, not 1"),
        (np.where(np.arange(13) == 3, np.nan, 0.5), r"the probability of bet is nan"),
        (np.where(np.arange(13) == 4, -0.5, 0.5), r"the probability of check is -0\.5"),
    ]:
        with pytest.raises(tabular_policies.PolicyError, match=reported):
            tabular_policies.validate(player, wrong)


# ---- what it is made of


def test_numbers_tell_rows_apart() -> None:
    rng = np.random.default_rng(0)
    for size, ranges in [(1, [1]), (50, [3, 4]), (300, [2**40, 2**40, 5]), (500, [7, 1, 2, 9]), (0, [4])]:
        columns = [rng.integers(0, min(bound, 6), size) * (bound // 6 if bound > 6 else 1) for bound in ranges]
        actual = unique_rows.number_rows(columns, ranges)
        rows = list(zip(*(column.tolist() for column in columns), strict=True))
        assert actual.size == len(set(rows))
        assert len({(n, row) for n, row in zip(actual.number.tolist(), rows, strict=True)}) == actual.size
        assert [actual.number[n] for n in actual.example.tolist()] == list(range(actual.size))
        by_row = sorted(set(rows))  # numbers are ranks
        assert [rows[n] for n in actual.example.tolist()] == by_row
        values = rng.random(size)
        expected = [sum(v for v, r in zip(values.tolist(), rows, strict=True) if r == row) for row in by_row]
        np.testing.assert_allclose(actual.sums(values), expected)


def test_numbers_of_bits() -> None:
    rng = np.random.default_rng(0)
    for rows, columns in [(0, 4), (1, 9), (40, 200), (70, 64)]:
        bits = rng.random((rows, columns)) < 0.03
        actual = unique_rows.number_bit_columns(bits)
        assert actual.size == len({tuple(column) for column in bits.T.tolist()})
        assert np.array_equal(bits[:, actual.example][:, actual.number], bits)


def test_forms_print_their_shapes_whatever_their_leaves_are() -> None:
    tree = unroll.unroll(net_of("kuhn_poker"), keep_edges=True)
    exact, sampled = sequence_form.sequence_form(tree)[0], sampling_form.sampling_form(tree)
    spec: Any = jax.sharding.PartitionSpec
    shape: Any = jax.ShapeDtypeStruct
    forms: list[tuple[Any, str]] = [
        (exact, "SequenceForm(2 players; information sets 6, 6)"),
        (sampled, "SamplingForm(2 players; 12 information sets, 5 levels, 30 terminals)"),
    ]
    for form, text in forms:
        assert repr(form) == text
        shown: list[str] = []
        jax.jit(lambda traced, shown=shown: shown.append(repr(traced)))(form)
        assert shown == [text]
        assert repr(jax.tree.map(lambda x: shape(x.shape, x.dtype), form)) == text
        for leaf in (None, 0, "text", object(), spec("games")):
            changed = jax.tree.map(lambda _, leaf=leaf: leaf, form)
            prefix = type(form)(*[leaf] * len(form))
            for other in (changed, prefix):
                assert repr(other).startswith(type(form).__name__)
                assert "\n" not in repr(other)


@pytest.mark.parametrize("density", [0.02, 0.3, 1.0])
def test_every_end_is_in_one_table_or_the_rest(density: float) -> None:
    rng = np.random.default_rng(0)
    cells = [
        (10 * table + row, 7 * table + column)
        for table in range(12)
        for row in range(1 + table % 10)
        for column in range(1 + table % 7)
        if rng.random() < density
    ]
    first, second = (np.array(side) for side in zip(*cells, strict=True))
    tables = dense_blocks.find_dense_blocks(first, second)
    covered = [*tables.rest.tolist(), *(end for group in tables.groups for end in group.ends.tolist())]
    assert sorted(covered) == list(range(len(cells)))
    for group in tables.groups:
        places = set(zip(group.table.tolist(), group.row.tolist(), group.column.tolist(), strict=True))
        assert len(places) == len(group.ends)
        for side, place in ((first, group.row), (second, group.column)):
            # A row of a table is always the same sequence.
            owners = {(t, p): s for t, p, s in zip(group.table, place, side[group.ends], strict=True)}
            assert all(owners[t, p] == s for t, p, s in zip(group.table, place, side[group.ends], strict=True))
        turned = group.transposed()
        assert turned.shape == (group.shape[1], group.shape[0], group.shape[2])
