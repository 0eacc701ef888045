"""Values, best responses and exploitability against brute force and against OpenSpiel, in float64."""

from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
import pytest

from gdlx.envs.bridges import open_spiel_game, open_spiel_tree
from gdlx.envs.trees import game_tree, sequence_form
from gdlx.solvers import tabular_policies
from gdlx.solvers.exact import best_response, cfr, regret_matching
from gdlx.solvers.runs import policy_tables
from gdlx.tests.helpers import explicit, sheets

GAMES = {
    "kuhn_poker": "kuhn_poker",
    "goofspiel": "goofspiel:cards=3",
    "smallest": "smallest:numbers=2,steps=2",
    "monty_hall": "monty_hall",
    "coins": sheets.COINS,
    "dead_end": sheets.DEAD_END,
    "over_at_once": sheets.OVER_AT_ONCE,
}
evaluate = jax.jit(best_response.evaluate)
counterfactual_values = jax.jit(best_response.counterfactual_values, static_argnums=2)
jitted_best_response = jax.jit(best_response.best_response, static_argnums=2)
step = jax.jit(cfr.step)
average = jax.jit(cfr.average_policies)


@pytest.fixture(autouse=True)
def _x64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def random_policies(tree: game_tree.GameTree, seed: int) -> tabular_policies.Policies:
    """Some actions have probability 0, so that parts of the tree are never reached."""
    rng = np.random.default_rng(seed)
    weights = [rng.random(player.sequences) for player in tree.players]
    return tuple(
        tabular_policies.normalise(player, np.where(policy < 0.3, 0, policy))
        for player, policy in zip(tree.players, weights, strict=True)
    )


def own_part(policy: explicit.Policy, player: int) -> explicit.Policy:
    return {key: chosen for key, chosen in policy.items() if key[0] == player}


@pytest.mark.parametrize("name", GAMES)
def test_values(name: str) -> None:
    tree, root = explicit.load_game(GAMES[name])
    game, layouts = sequence_form.sequence_form(tree)
    for seed in range(3):
        policies = random_policies(tree, seed)
        evaluation = evaluate(game, tabular_policies.to_levels(tree, layouts, policies))
        value = explicit.expected(root, explicit.from_arrays(tree, policies))
        np.testing.assert_allclose(evaluation.value, value, atol=1e-12)
        assert (np.asarray(evaluation.improvements) > -1e-12).all()
        assert float(evaluation.nash_conv) == pytest.approx(float(np.sum(evaluation.improvements)))


@pytest.mark.parametrize("name", ["kuhn_poker", "goofspiel", "monty_hall", "dead_end", "smallest"])
def test_best_responses(name: str) -> None:
    """No pure policy is better than the best response, and it is one itself."""
    tree, root = explicit.load_game(GAMES[name])
    game, layouts = sequence_form.sequence_form(tree)
    policies = random_policies(tree, 0)
    profile = tabular_policies.to_levels(tree, layouts, policies)
    slow = explicit.from_arrays(tree, policies)
    evaluation = evaluate(game, profile)
    for player in range(len(tree.players)):
        response, worth = jitted_best_response(game, profile, player)
        assert float(worth) == pytest.approx(float(evaluation.best_response_value[player]))
        mixed = tabular_policies.from_levels(tree, layouts, (*profile[:player], response, *profile[player + 1 :]))
        assert set(np.unique(mixed[player])) <= {0.0, 1.0}
        assert explicit.expected(root, explicit.from_arrays(tree, mixed))[player] == pytest.approx(float(worth))
        if name in ("kuhn_poker", "dead_end"):
            pure = explicit.pure_policies(root, player)
            assert max(explicit.expected(root, slow | own)[player] for own in pure) == pytest.approx(float(worth))


@pytest.mark.parametrize("name", ["kuhn_poker", "goofspiel", "smallest", "monty_hall", "coins"])
def test_counterfactual_values(name: str) -> None:
    """Minus the value of their information set they are the regrets of the recursive implementation."""
    tree, root = explicit.load_game(GAMES[name])
    game, layouts = sequence_form.sequence_form(tree)
    policies = random_policies(tree, 1)
    profile = tabular_policies.to_levels(tree, layouts, policies)
    slow = explicit.ReferenceCfr(root, len(tree.players))
    slow.policy = explicit.from_arrays(tree, policies)
    slow.iterate(regret_matching.Settings(), alternating=False)
    regrets = explicit.to_arrays(tree, slow.regret)
    for number, player in enumerate(tree.players):
        actual = counterfactual_values(game, profile, number)
        values = tabular_policies.player_from_levels(layouts[number], actual)[1:]
        mean = np.add.reduceat(values * policies[number][1:], player.first[:-1] - 1)
        np.testing.assert_allclose(values - np.repeat(mean, np.diff(player.first)), regrets[number][1:], atol=1e-12)


@pytest.mark.parametrize("name", ["kuhn_poker", "smallest"])
def test_head_to_head(name: str) -> None:
    tree, root = explicit.load_game(GAMES[name])
    game, layouts = sequence_form.sequence_form(tree)
    first, second = random_policies(tree, 0), random_policies(tree, 1)
    levels = [tabular_policies.to_levels(tree, layouts, own) for own in (first, second)]
    actual = jax.jit(best_response.head_to_head)(game, levels[0], levels[1])
    slow = [explicit.from_arrays(tree, own) for own in (first, second)]
    for player in range(len(tree.players)):
        np.testing.assert_allclose(actual[player], explicit.expected(root, slow[1] | own_part(slow[0], player)))


def test_a_batch_of_profiles() -> None:
    tree, _ = explicit.load_game("kuhn_poker")
    game, layouts = sequence_form.sequence_form(tree)
    several = [random_policies(tree, seed) for seed in range(3)]
    stacked = [np.stack(policy, axis=-1) for policy in zip(*several, strict=True)]
    evaluation = evaluate(game, tabular_policies.to_levels(tree, layouts, stacked))
    for number, policies in enumerate(several):
        alone = evaluate(game, tabular_policies.to_levels(tree, layouts, policies))
        np.testing.assert_allclose(evaluation.best_response_value[:, number], alone.best_response_value)
        np.testing.assert_allclose(evaluation.value[:, number], alone.value)


def test_payoff_variants_are_a_batch() -> None:
    """A form with variants of payoffs equals one form for each variant."""
    for name in ("kuhn_poker", "smallest"):
        tree, _ = explicit.load_game(GAMES[name])
        rng = np.random.default_rng(0)
        variants = rng.normal(size=(*tree.terminals.payoff.shape, 2))
        game, layouts = sequence_form.sequence_form(tree, variants)
        policies = random_policies(tree, 0)
        profile = tabular_policies.to_levels(
            tree, layouts, [np.stack([policy, policy], axis=-1) for policy in policies]
        )
        evaluation = evaluate(game, profile)
        for number in range(2):
            alone, _ = sequence_form.sequence_form(tree, variants[..., number])
            single = evaluate(alone, tabular_policies.to_levels(tree, layouts, policies))
            np.testing.assert_allclose(
                evaluation.best_response_value[:, number], single.best_response_value, atol=1e-12
            )
            np.testing.assert_allclose(evaluation.value[:, number], single.value, atol=1e-12)


def test_a_batch_with_a_player_without_a_choice() -> None:
    tree, _ = explicit.load_game(sheets.DEAD_END)
    game, _ = sequence_form.sequence_form(tree)
    state = step(game, cfr.init(game, (3,)), regret_matching.Settings())
    assert best_response.average_regret_bound(state).shape == (2, 3)
    assert evaluate(game, state.policy).value.shape == (2, 3)


# ---- OpenSpiel


def nash_conv(tree: game_tree.GameTree, policies: tabular_policies.Policies) -> float:
    game, layouts = sequence_form.sequence_form(tree)
    return float(evaluate(game, tabular_policies.to_levels(tree, layouts, policies)).nash_conv)


def averages(tree: game_tree.GameTree, iterations: int) -> tabular_policies.Policies:
    game, layouts = sequence_form.sequence_form(tree)
    state = cfr.init(game)
    for _ in range(iterations):
        state = step(game, state, regret_matching.Settings())
    return tabular_policies.from_levels(tree, layouts, average(game, state))


@pytest.mark.parametrize("name", ["kuhn_poker", "leduc_poker", "liars_dice(dice_sides=3)"])
def test_exploitability_of_open_spiels_games(name: str) -> None:
    pyspiel = pytest.importorskip("pyspiel")
    theirs = pyspiel.load_game(name)
    tree = open_spiel_tree.build_tree(theirs)
    for policies in [random_policies(tree, 0), *([averages(tree, 10)] if name == "kuhn_poker" else [])]:
        table = policy_tables.to_open_spiel(tree, policies, theirs).to_dict()
        actual = pyspiel.nash_conv(theirs, pyspiel.TabularPolicy(table), use_state_get_policy=True)
        assert nash_conv(tree, policies) == pytest.approx(actual, abs=1e-6)
        assert nash_conv(tree, policies) / 2 == pytest.approx(
            pyspiel.exploitability(theirs, pyspiel.TabularPolicy(table)), abs=1e-6
        )


@pytest.mark.parametrize("spec", ["kuhn_poker", "simple_poker"])
def test_exploitability_through_the_bridge(spec: str) -> None:
    pytest.importorskip("pyspiel")
    exploitability: Any = pytest.importorskip("open_spiel.python.algorithms.exploitability")
    tree, _ = explicit.load_game(spec)
    theirs = open_spiel_game.load_game(spec)
    policies = random_policies(tree, 3)
    tabular = policy_tables.to_open_spiel(tree, policies, theirs)
    assert nash_conv(tree, policies) == pytest.approx(exploitability.nash_conv(theirs, tabular), abs=1e-6)


def test_serialised_goofspiel_is_worth_the_same() -> None:
    """OpenSpiel's version with turns, in which the second player does not see the first one's bid."""
    pyspiel = pytest.importorskip("pyspiel")
    name = "goofspiel(num_cards=4,imp_info=True,points_order=ascending)"
    together = open_spiel_tree.build_tree(name)
    turns = open_spiel_tree.build_tree(f"turn_based_simultaneous_game(game={name})")
    ours, _ = explicit.load_game("goofspiel:cards=4")
    assert together.information_sets == turns.information_sets
    assert list(together.information_sets.values()) == list(ours.information_sets.values())
    for iterations in (1, 10):
        actual = [nash_conv(tree, averages(tree, iterations)) for tree in (together, turns, ours)]
        assert actual[0] == pytest.approx(actual[1], abs=1e-9)
        assert 50 * actual[0] == pytest.approx(actual[2], abs=1e-7)  # a win is 1 there, 100 against 0 here
    policies = random_policies(turns, 0)
    table = policy_tables.to_open_spiel_table(turns, policies)
    theirs = pyspiel.load_game(f"turn_based_simultaneous_game(game={name})")
    full = policy_tables.to_open_spiel(turns, policies, theirs).to_dict()
    assert table.keys() <= full.keys()
    actual = pyspiel.nash_conv(theirs, pyspiel.TabularPolicy(full), use_state_get_policy=True)
    assert nash_conv(turns, policies) == pytest.approx(actual, abs=1e-6)
