"""External and average-strategy sampling: unbiased against full CFR, with and without capacity for all lanes."""

import functools
from typing import Any
from unittest import mock

import hypothesis
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies

import gdlx
from gdlx.envs.trees import sampling_form, sequence_form
from gdlx.solvers import tabular_policies
from gdlx.solvers.exact import best_response
from gdlx.solvers.mccfr import external_sampling, lane_packing, mccfr
from gdlx.solvers.runs import tree_solvers
from gdlx.tests.helpers import samples

AMPLE, NARROW = 1_000.0, 0.7  # lanes per traversal
SOME = external_sampling.AverageStrategy(epsilon=0.3, tau=1.5, beta=0.2)  # traverses about half of the actions


_sample = jax.jit(external_sampling.sample, static_argnames=("player", "capacities", "batch"))
_packed = jax.jit(lane_packing.pack_children, static_argnames=("most", "slots"))


def random_state(form: sampling_form.SamplingForm, rng: np.random.Generator) -> mccfr.MccfrState:
    return mccfr.init(form)._replace(
        policy=samples.random_tables(form, rng), cumulative_policy=samples.random_tables(form, rng)
    )


Values = tuple[jax.Array, list[jax.Array]]


def sampled_values(
    form: sampling_form.SamplingForm,
    state: mccfr.MccfrState,
    settings: external_sampling.AverageStrategy | None,
    key: jax.Array,
    player: int,
    **sizes: Any,
) -> Values:
    """Returns the estimates of a batch, and for every level with packing whether there were too few slots."""
    is_short: list[jax.Array] = []

    def packed(counts: jax.Array, most: int, slots: int, draw: jax.Array) -> lane_packing.Children:
        children = plain(counts, most, slots, draw)
        is_short.append(children.total > slots)
        return children

    plain = lane_packing.pack_children
    with mock.patch.object(lane_packing, "pack_children", packed):
        return external_sampling.sample(form, state, settings, key, player, **sizes).values, is_short


@pytest.mark.parametrize(
    ("game", "width", "settings"),
    [
        *((game, width, settings) for game in samples.GAMES for width, settings in ((AMPLE, None), (NARROW, SOME))),
        ("kuhn_poker", AMPLE, SOME),
        ("smallest:numbers=3,steps=1", AMPLE, SOME),
        ("kuhn_poker", NARROW, None),
        ("simple_poker", NARROW, None),
    ],
)
def test_sampled_values_are_unbiased(
    game: str, width: float, settings: external_sampling.AverageStrategy | None
) -> None:
    """The mean of Q over many batches is the exact counterfactual value, for every action of every information set."""
    tree = samples.load_tree(game)
    form = sampling_form.sampling_form(tree)
    exact, layouts = sequence_form.sequence_form(tree)
    state = random_state(form, np.random.default_rng(3))
    policies = tabular_policies.to_levels(tree, layouts, samples.policies_from_tables(tree, state.policy))
    batches, size = 400, 64
    capacities = external_sampling.compute_capacities(form, width=width)
    is_short = []
    for number, player in enumerate(tree.players):

        def one(key: jax.Array, number: int = number) -> Values:
            return sampled_values(form, state, settings, key, number, capacities=capacities, batch=size)

        values, short = jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(number), batches))
        drawn = np.asarray(values, float)
        levels = best_response.counterfactual_values(exact, policies, number)
        expected = tabular_policies.player_from_levels(layouts[number], levels)
        for decision in range(player.sets):
            first, end = player.first[decision], player.first[decision + 1]
            samples_of_infoset = drawn[:, : end - first, decision]
            error = samples_of_infoset.std(axis=0) / np.sqrt(batches)
            # 4 standard errors, for some hundred numbers with fixed seeds.
            assert (np.abs(samples_of_infoset.mean(axis=0) - expected[first:end]) <= 4 * error + 1e-4).all(), (
                number,
                decision,
            )
        if player.sets:
            is_short.append(bool(np.any(short)))
    assert all(is_short) if width == NARROW else not any(is_short)


@pytest.mark.parametrize("game", samples.GAMES)
@pytest.mark.parametrize(("width", "settings"), [(AMPLE, None), (NARROW, SOME)], ids=["external", "average-narrow"])
def test_average_weights_are_unbiased(
    game: str, width: float, settings: external_sampling.AverageStrategy | None
) -> None:
    """They are proportional to a player's own reach, by a factor that does not depend on the policies."""
    tree = samples.load_tree(game)
    form = sampling_form.sampling_form(tree)
    capacities = external_sampling.compute_capacities(form, width=width)
    rng = np.random.default_rng(5)
    states = [random_state(form, rng) for _ in range(2)]
    keys = jax.random.split(jax.random.key(7), 400)
    for number in range(form.players):
        updated = mccfr.averaged_player(form.players, number)

        @jax.jit
        def weights(state: mccfr.MccfrState, updated: int = updated) -> jax.Array:
            one = functools.partial(
                external_sampling.sample, form, state, settings, player=updated, capacities=capacities, batch=64
            )
            return jax.vmap(lambda key: one(key).average_reach)(keys)

        estimates = []
        for state in states:
            policy = samples.policies_from_tables(tree, state.policy)[number]
            reach = tabular_policies.realization_plan(tree.players[number], policy)[tree.players[number].parent]
            ratio = np.asarray(weights(state), float) / reach
            estimates.append((ratio.mean(axis=0), ratio.std(axis=0) / np.sqrt(len(keys))))
        (first, first_error), (second, second_error) = estimates
        assert (first > 0).all()
        assert (np.abs(first - second) <= 4 * np.hypot(first_error, second_error) + 1e-6).all()


def test_average_strategy_sampling_with_rho_one_is_external_sampling() -> None:
    """With rho = 1 everywhere average-strategy sampling traverses the same lanes with the same draws."""
    form = sampling_form.sampling_form(samples.load_tree("kuhn_poker"))
    state = random_state(form, np.random.default_rng(1))
    capacities = external_sampling.compute_capacities(form, width=AMPLE)
    estimates = [
        _sample(form, state, settings, jax.random.key(4), player=0, capacities=capacities, batch=32)
        for settings in (None, external_sampling.AverageStrategy(epsilon=1.0))
    ]
    np.testing.assert_allclose(estimates[0].values, estimates[1].values, rtol=1e-5)
    np.testing.assert_allclose(estimates[0].average_reach, estimates[1].average_reach, rtol=1e-5)


def test_settings_and_seeds_are_batched() -> None:
    form = sampling_form.sampling_form(samples.load_tree("kuhn_poker"))
    state = random_state(form, np.random.default_rng(1))
    capacities = external_sampling.compute_capacities(form, width=NARROW)

    def one(epsilon: jax.Array, key: jax.Array) -> jax.Array:
        settings = SOME._replace(epsilon=epsilon)
        means: mccfr.BatchEstimates = _sample(form, state, settings, key, player=1, capacities=capacities, batch=16)
        return means.values

    epsilons, keys = jnp.array([0.1, 0.5, 1.0]), jax.random.split(jax.random.key(2), 3)
    together = jax.vmap(one)(epsilons, keys)
    alone = [one(epsilon, key) for epsilon, key in zip(epsilons, keys, strict=True)]
    np.testing.assert_allclose(together, jnp.stack(alone), rtol=1e-4, atol=1e-5)


def test_capacities_bound_the_lanes() -> None:
    form = sampling_form.sampling_form(samples.load_tree("goofspiel:cards=3"))
    for wide, narrow in zip(
        external_sampling.compute_capacities(form, width=100),
        external_sampling.compute_capacities(form, width=2),
        strict=True,
    ):
        for more, less in zip(wide, narrow, strict=True):
            assert less.lanes == min(more.lanes, 2)


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
def test_lowers_for_accelerators(platform: str) -> None:
    form = sampling_form.sampling_form(samples.load_tree("kuhn_poker"))
    capacities = external_sampling.compute_capacities(form, width=NARROW)

    def run(form: sampling_form.SamplingForm, state: mccfr.MccfrState, key: jax.Array) -> mccfr.BatchEstimates:
        return external_sampling.sample(
            form, state, SOME, jax.random.wrap_key_data(key), 0, capacities=capacities, batch=64
        )

    lowered = jax.export.export(jax.jit(run), platforms=[platform])(
        form, mccfr.init(form), jax.random.key_data(jax.random.key(0))
    )
    assert lowered.platforms == (platform,)


def children_of(counts: list[int]) -> list[tuple[int, int]]:
    return [(lane, rank) for lane, count in enumerate(counts) for rank in range(count)]


def children_in_slots(children: lane_packing.Children, lanes: int) -> list[tuple[int, int]]:
    """Returns lane and rank of the children in active slots."""
    parent = lane_packing.gather_from_parents(children, jnp.arange(lanes))
    pairs = zip(np.asarray(parent).tolist(), np.asarray(children.rank).tolist(), strict=True)
    return [pair for pair, is_active in zip(pairs, np.asarray(children.is_active), strict=True) if is_active]


LANES = 24


@hypothesis.given(
    strategies.lists(strategies.integers(0, 5), min_size=LANES, max_size=LANES),
    strategies.sampled_from([1, 7, 16, 40, 120]),
    strategies.floats(0, 1, exclude_max=True, width=32),
)
def test_packed_against_a_list(counts: list[int], slots: int, draw: float) -> None:
    packed = _packed(jnp.array(counts), most=5, slots=slots, draw=jnp.float32(draw))
    children, held_children = children_of(counts), children_in_slots(packed, LANES)
    assert int(packed.total) == len(children)
    assert packed.factor is not None
    if len(children) <= slots:
        assert held_children == children
        assert float(packed.factor) == 1
    else:
        assert held_children == sorted(set(held_children))
        assert set(held_children) <= set(children)
        ratio = len(children) / slots
        assert ratio * (1 - 1e-6) <= float(packed.factor) < ratio * 1.001
        assert slots - 1 <= len(held_children) <= slots
    ones = jnp.where(packed.is_active, 1.0, 0.0)
    sums = np.asarray(lane_packing.sum_to_parents(packed, ones, LANES)) / float(packed.factor)
    np.testing.assert_allclose(
        sums, [sum(lane == parent for parent, _ in held_children) for lane in range(LANES)], atol=1e-5
    )


@pytest.mark.parametrize("slots", [5, 16, 31])
def test_all_children_are_kept_equally_often(slots: int) -> None:
    """Over evenly spaced draws the fraction that keeps a child is 1 / factor, up to the spacing of the draws."""
    counts = np.random.default_rng(slots).integers(0, 6, LANES)
    draws = (jnp.arange(4_000) + 0.5) / 4_000
    packed = jax.vmap(lambda draw: _packed(jnp.asarray(counts), most=5, slots=slots, draw=draw))(draws)
    times = np.zeros((LANES, 5))
    np.add.at(times, (np.asarray(packed.parent), np.asarray(packed.rank)), np.asarray(packed.is_active))
    expected = (np.arange(5) < counts[:, None]) / np.asarray(packed.factor)[0]
    np.testing.assert_allclose(times / len(draws), expected, atol=1e-3)


def test_packed_is_exact_for_many_lanes() -> None:
    lanes, slots = 400_000, 150_000
    counts = np.random.default_rng(0).integers(0, 13, lanes)
    packed = _packed(jnp.asarray(counts), most=12, slots=slots, draw=jnp.float32(0.37))
    is_active, parent, rank = (np.asarray(x) for x in (packed.is_active, packed.parent, packed.rank))
    start = np.cumsum(counts) - counts
    child = (start[parent] + rank)[is_active]
    assert (rank[is_active] < counts[parent[is_active]]).all()
    assert (np.diff(child) >= counts.sum() // slots).all()
    assert len(child) >= slots * 0.99
    assert child[-1] < counts.sum()


@hypothesis.given(strategies.lists(strategies.integers(0, 3), min_size=LANES, max_size=LANES))
def test_spread_against_a_list(counts: list[int]) -> None:
    spread = lane_packing.spread_children(jnp.array(counts), 3)
    assert sorted(children_in_slots(spread, LANES)) == children_of(counts)
    sums = lane_packing.sum_to_parents(spread, jnp.where(spread.is_active, 1.0, 0.0), LANES)
    np.testing.assert_array_equal(sums, counts)


def test_too_many_slots_are_refused() -> None:
    with pytest.raises(ValueError, match="smaller batch"):
        lane_packing.pack_children(jnp.ones(2**20, jnp.int32), 4, 2**21, jnp.float32(0))


_EIGHT = """
import jax
import gdlx
solutions = [gdlx.solve("kuhn_poker", name, iterations=300, batch=64) for name in ("es-mccfr", "as-mccfr")]
print(len(jax.devices()), *(solution.exploitability for solution in solutions))
"""


@pytest.mark.slow
def test_eight_devices_solve_kuhn() -> None:
    """Each device has separate lanes."""
    assert max(samples.run_with_devices(_EIGHT, 8)) < 0.03


@pytest.mark.parametrize(
    ("batch", "width"),
    [pytest.param(7, 8.0, marks=pytest.mark.slow), (8, 1.0), pytest.param(64, 0.3, marks=pytest.mark.slow)],
)
def test_small_capacity_costs_only_precision(batch: int, width: float) -> None:
    """In a game of many levels, where factors multiply."""
    solution = gdlx.solve("leduc_poker", "es-mccfr", iterations=400, batch=batch, width=width)
    assert solution.exploitability is not None
    assert solution.exploitability < 1.9  # the uniform policy has 2.37; nine runs gave 0.56 to 1.49


def test_more_lanes_than_can_be_packed() -> None:
    with pytest.raises(tree_solvers.BatchSizeError, match="smaller `batch=`"):
        gdlx.solve("leduc_poker", "es-mccfr", iterations=1, batch=400_000)
