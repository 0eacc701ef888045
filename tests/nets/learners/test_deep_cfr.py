"""Deep CFR: visits are unbiased against exact regrets, and the loop learns, purely and on any device."""

import dataclasses
import functools
import pathlib
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest

import gdlx
from gdlx.envs import game_spec
from gdlx.envs.trees import sampling_form, sequence_form
from gdlx.experiments.bench.training import deep_cfr_figures
from gdlx.nets import checkpoints
from gdlx.nets.learners import deep_cfr, protocol, traversals
from gdlx.nets.models import encoders
from gdlx.nets.values import infoset_tables
from gdlx.propnet.common import errors
from gdlx.solvers import tabular_policies, tasks
from gdlx.solvers.exact import best_response
from gdlx.tests.helpers import samples

SMALL = deep_cfr.Settings(traversals=32, capacity=8_192, steps=200, policy_steps=1_000, batch=64, widths=(16,))


@functools.cache
def learner(game: str = "kuhn_poker", **changes: Any) -> deep_cfr.DeepCfr:
    task = tasks.make_tree_task(game_spec.GameSpec(game), samples.load_tree(game))
    encoder = encoders.Encoder(gdlx.make(game), steps=len(task.tree.counts.nodes) - 1)
    return deep_cfr.make(encoder, dataclasses.replace(SMALL, **changes), task)


@functools.cache
def after(iterations: int, seed: int = 0, **changes: Any) -> tuple[deep_cfr.State, Any]:
    one = learner(**changes)
    state, metrics = one.init(jax.random.key(seed)), None
    for _ in range(iterations):
        state, metrics = one.iterate(state)
    return state, metrics


def nash_conv(one: deep_cfr.DeepCfr, state: deep_cfr.State) -> float:
    task = tasks.make_tree_task(game_spec.GameSpec("kuhn_poker"), one.tree)
    actual = task.metrics(infoset_tables.network_policies(one, one.policy_params(state), one.tree)).exploitability
    assert actual is not None
    return 2 * actual


def drawn_by(key: jax.Array, table: traversals.TraversalTable, size: traversals.TraversalSize) -> jax.Array:
    return jax.random.uniform(key, traversals.draws_shape(table, size))


@pytest.mark.parametrize("game", samples.GAMES[:4])
@pytest.mark.parametrize("width", [1_000.0, 0.5], ids=["ample", "narrow"])
def test_visits_are_unbiased(game: str, width: float) -> None:
    """Summed over the visits of a traversal, advantages are expected to be exact counterfactual regrets."""
    tree = samples.load_tree(game)
    form = sampling_form.sampling_form(tree)
    own = samples.random_tables(form, np.random.default_rng(3))
    policies = samples.policies_from_tables(tree, own)
    exact, layouts = sequence_form.sequence_form(tree)
    profile = tabular_policies.to_levels(tree, layouts, policies)
    table, size = traversals.make_traversal_table(form), traversals.traversal_size(form, batch=64, width=width)
    if width < 1:
        size = size._replace(lanes=64)

    @jax.jit
    def sums(key: jax.Array, player: jax.Array) -> tuple[jax.Array, jax.Array]:
        met = traversals.sample_visits(table, form.join_players(own), drawn_by(key, table, size), player, size=size)
        empty = jnp.zeros(form.shape[::-1])
        regrets = empty.at[met.column].add(met.weight[:, None] * met.advantage)
        return regrets / size.batch, empty[:, 0].at[met.opponent_column].add(met.opponent_weight) / size.batch

    batches = 400
    for number, player in enumerate(tree.players):
        keys = jax.random.split(jax.random.key(number), batches)
        regrets, others = (np.asarray(x, float) for x in jax.vmap(sums, (0, None))(keys, jnp.int32(number)))
        levels = best_response.counterfactual_values(exact, profile, number)
        values = tabular_policies.player_from_levels(layouts[number], levels)
        for decision in range(player.sets):
            first, end = player.first[decision], player.first[decision + 1]
            expected = values[first:end] - policies[number][first:end] @ values[first:end]
            actual = regrets[:, form.player_columns(number)][:, decision, : end - first]
            error = actual.std(axis=0) / np.sqrt(batches)
            # 4.5 standard errors, for some hundred numbers with fixed seeds.
            assert (np.abs(actual.mean(axis=0) - expected) <= 4.5 * error + 1e-4).all(), (number, decision)
        assert (others[:, form.player_columns(number)] == 0).all()


def test_others_are_visited_in_proportion_to_their_reach() -> None:
    """Up to a factor that does not depend on the policies: it is the same for two of them."""
    tree = samples.load_tree("kuhn_poker")
    form = sampling_form.sampling_form(tree)
    table, size = traversals.make_traversal_table(form), traversals.traversal_size(form, batch=64, width=8.0)

    @jax.jit
    def visits(policy: jax.Array, key: jax.Array, player: jax.Array) -> jax.Array:
        met = traversals.sample_visits(table, policy, drawn_by(key, table, size), player, size=size)
        return jnp.zeros(form.shape[1]).at[met.opponent_column].add(met.opponent_weight) / size.batch

    keys, rng = jax.random.split(jax.random.key(7), 400), np.random.default_rng(5)
    given = [samples.random_tables(form, rng) for _ in range(2)]
    for number, player in enumerate(tree.players):
        collected = []
        for chosen in given:
            drawn = jax.vmap(visits, (None, 0, None))(form.join_players(chosen), keys, jnp.int32(1 - number))
            reach = tabular_policies.realization_plan(player, samples.policies_from_tables(tree, chosen)[number])[
                player.parent
            ]
            part = np.asarray(drawn, float)[:, form.player_columns(number)] / reach
            collected.append((part.mean(axis=0), part.std(axis=0) / np.sqrt(len(keys))))
        (first, first_error), (second, second_error) = collected
        assert (first > 0).all()
        assert (np.abs(first - second) <= 4.5 * np.hypot(first_error, second_error) + 1e-6).all()


def test_weights_make_up_for_dropped_lanes() -> None:
    """Over many batches of few lanes, weighted visits to every information set are as many as with all lanes."""
    form = sampling_form.sampling_form(samples.load_tree("kuhn_poker"))
    table, policy = traversals.make_traversal_table(form), form.uniform
    collected = []
    for lanes in (256, 64):
        size = traversals.TraversalSize(64, lanes, len(form.levels))

        @jax.jit
        def counts(key: jax.Array, size: traversals.TraversalSize = size) -> tuple[jax.Array, jax.Array]:
            met = traversals.sample_visits(table, policy, drawn_by(key, table, size), 0, size=size)
            there = jnp.zeros(form.shape[1])
            return there.at[met.column].add(met.weight), there.at[met.opponent_column].add(met.opponent_weight)

        drawn = [np.asarray(x)[:, :-1] for x in jax.vmap(counts)(jax.random.split(jax.random.key(1), 400))]
        collected.append([(x.mean(axis=0), x.std(axis=0) / 20) for x in drawn])
    for (ample, error), (narrow, more) in zip(*collected, strict=True):
        assert (np.abs(ample - narrow) <= 4.5 * np.hypot(error, more) + 1e-3).all()
    assert collected[1][1][1].sum() > collected[0][1][1].sum()  # and more noise


def test_networks_are_applied_to_infosets_or_to_visits() -> None:
    """With fewer information sets than visits in a batch, a network is applied to information sets, and learns the
    same. Information sets without visits are added to have more of them."""
    one, (state, _) = learner(), after(2)
    more = jax.tree.map(lambda x: jnp.concatenate([x] * 10), one.game.sets)
    assert len(one.game.sets.player) < SMALL.batch < len(more.player)
    reservoir = jax.tree.map(lambda x: x[0], state.advantages)
    bits = jax.random.bits(jax.random.key(1), (20 * SMALL.batch,), jnp.uint32)
    by_set, by_visit = (
        one._fit(sets, state.start, reservoir, bits, deep_cfr._squared_error) for sets in (one.game.sets, more)
    )
    for actual, expected in zip(jax.tree.leaves(by_set), jax.tree.leaves(by_visit), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-3, atol=1e-5)
    assert by_set[1][-1] != by_set[1][0]


def test_matching() -> None:
    advantage = jnp.array([[1.0, 3.0, -2.0], [-1.0, -3.0, 5.0], [0.0, 0.0, 0.0], [-2.0, -1.0, -1.0]])
    is_option = jnp.array([[True, True, True], [True, True, False], [True, True, False], [True, True, True]])
    expected = np.array([[0.25, 0.75, 0], [1, 0, 0], [0.5, 0.5, 0], [0, 0.5, 0.5]])
    np.testing.assert_allclose(deep_cfr.regret_matching(advantage, is_option), expected)


def test_it_learns() -> None:
    state, metrics = after(25)
    assert int(metrics["visits"]) > 1_000
    assert float(metrics["loss"]) < 0.9 * float(metrics["loss_before"])
    # The uniform policies have 0.917.
    assert nash_conv(learner(), state) < 0.25


def test_the_policy_network_is_the_average_of_its_reservoir() -> None:
    """The weighted mean of the visited policies at every information set, in numpy."""
    one: protocol.Learner = learner()
    state, _ = after(25)
    tree = samples.load_tree("kuhn_poker")
    actual = infoset_tables.network_policies(one, one.policy_params(state), tree)
    filled = int(state.policies.filled)
    assert filled == int(state.policies.num_added)  # all visits are still there
    column, weight, target = (np.asarray(x)[:filled] for x in state.policies.items)
    start, seen = 0, 0
    for player, policy in zip(tree.players, actual, strict=True):
        for decision in range(player.sets):
            here = column == start + decision
            if weight[here].sum() > 0.02 * weight.sum():
                first, end = player.first[decision], player.first[decision + 1]
                mean = weight[here] @ target[here] / weight[here].sum()
                np.testing.assert_allclose(policy[first:end], mean, atol=0.1)
                seen += 1
        start += player.sets
    assert seen >= 8


def test_networks_may_continue() -> None:
    """With `fresh=False` a network continues from its parameters and optimiser state."""
    state, metrics = after(2, fresh=False)
    fresh, fresh_metrics = after(2)
    counts = [jax.tree.leaves(s.advantage_train_states.opt_state)[0].tolist() for s in (state, fresh)]
    assert counts == [[2 * SMALL.steps] * 2, [SMALL.steps] * 2]
    assert float(metrics["loss_before"]) != float(fresh_metrics["loss_before"])


def test_the_same_key_gives_the_same() -> None:
    one = learner()
    state, metrics = after(2)
    again, _ = one.iterate(one.init(jax.random.key(0)))
    # States are arrays: they can be taken apart and put together, as checkpoints do.
    leaves, structure = jax.tree.flatten(again)
    assert all(isinstance(leaf, jax.Array) for leaf in leaves)
    again, metrics_again = one.iterate(jax.tree.unflatten(structure, leaves))
    assert {name: float(x) for name, x in metrics.items()} == {name: float(x) for name, x in metrics_again.items()}
    for x, y in zip(jax.tree.leaves(one.policy_params(state)), jax.tree.leaves(one.policy_params(again)), strict=True):
        np.testing.assert_array_equal(x, y)
    other, _ = one.iterate(one.init(jax.random.key(1)))
    assert not np.array_equal(state.policies.items.column, other.policies.items.column)


def test_lowers_for_accelerators() -> None:
    one = learner()
    state = jax.eval_shape(one.init, jax.random.key(0))
    for function in (one.iterate, one.policy_params):
        lowered = jax.export.export(jax.jit(function), platforms=["cuda", "tpu"])(state)
        assert lowered.platforms == ("cuda", "tpu")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"traversals": 0}, "traversals must be 1 or more"),
        ({"batch": -1}, "batch must be 1 or more"),
        ({"rate": 2.0}, "between 0 and 1"),
        ({"rate": float("nan")}, "between 0 and 1"),
        ({"width": 0.0}, "more than 0"),
        ({"widths": ()}, "sizes of layers"),
    ],
)
def test_wrong_settings(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(errors.UserError, match=words):
        deep_cfr.Settings(**changes)


@pytest.mark.parametrize("game", ["smallest:numbers=3,steps=1", "monty_hall"])
def test_two_players_are_needed(game: str) -> None:
    with pytest.raises(deep_cfr.SettingsError, match="games of two players"):
        learner(game)


def test_figures_without_the_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deep_cfr_figures, "_has", lambda module: False)
    monkeypatch.setattr(
        deep_cfr_figures, "_run_ours", lambda game, contest, seed, twice: deep_cfr_figures._Run(2.0 + seed, None, 0.1)
    )
    actual = list(deep_cfr_figures.figures(deep_cfr_figures.ComparisonConfig(seeds=(0, 2))))
    assert [figure.value for figure in actual] == [3.0, 0.1] * 2
    assert all(figure.note == "peer open_spiel.python.jax.deep_cfr is not installed: skipped" for figure in actual)


@pytest.mark.slow
def test_figures_beside_the_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the settings of the benchmark but for their size; numbers of so short runs say nothing."""
    pytest.importorskip("open_spiel.python.jax.deep_cfr")
    monkeypatch.setattr(deep_cfr_figures, "_GAMES", deep_cfr_figures._GAMES[:1])
    tiny = deep_cfr_figures.ComparisonConfig(
        iterations=1, traversals=8, widths=(8,), steps=2, batch=4, capacity=64, seeds=(0,)
    )
    timed, kept, again, error = deep_cfr_figures.figures(tiny)
    assert timed.target_text() == ">= 5x"
    assert again.ratio is not None
    assert kept.value is not None
    assert again.value is not None
    assert kept.value > again.value
    assert error.value is not None
    assert error.peer_value is not None
    # After two steps networks are still nearly uniform, whose NashConv is 11/12 of a payoff range of 4.
    assert error.value == pytest.approx(11 / 48, abs=0.03)
    assert 0.1 < error.peer_value < 0.4


def test_resuming_from_a_checkpoint(tmp_path: pathlib.Path) -> None:
    """As if it had never stopped: reservoirs, networks, optimisers and keys are all there."""
    one = learner()
    checkpoints.write_state(tmp_path, 1, 0.0, after(1)[0])
    actual, _, _ = checkpoints.read_state(tmp_path, jax.eval_shape(one.init, jax.random.key(0)))
    again, never = one.iterate(actual)[0], after(2)[0]
    for resumed, whole in zip(jax.tree.leaves(again), jax.tree.leaves(never), strict=True):
        assert bool((resumed == whole).all())
