"""Trees in blocks beside trees of single terminals: the same sizes, and the same metrics of the same policies."""

import functools

import numpy as np

from gdlx.envs.trees import game_tree, sequence_form
from gdlx.solvers import tabular_policies
from gdlx.solvers.exact import best_response, cfr, regret_matching


def same_policy(blocks: game_tree.Player, plain: game_tree.Player, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A random policy of a player of the plain tree, and the same one with the numbers of the tree in blocks."""
    rng = np.random.default_rng(seed)
    policy = tabular_policies.normalise(plain, rng.random(plain.sequences))
    number = {label: n for n, label in enumerate(plain.labels)}
    moved = np.ones(blocks.sequences)
    for infoset, label in enumerate(blocks.labels):
        there = number[label]
        assert blocks.options(infoset) == plain.options(there)
        moved[blocks.first[infoset] : blocks.first[infoset + 1]] = policy[plain.first[there] : plain.first[there + 1]]
    return moved, policy


def assert_same_solving(
    blocks: game_tree.GameTree, plain: game_tree.GameTree, *, iterations: int, seed: int = 0
) -> None:
    """Compares sizes, the value and best responses of random policies, and of CFR at every iteration."""
    assert blocks.counts.histories == plain.counts.histories
    assert blocks.counts.information_sets == plain.counts.information_sets
    pairs = [
        same_policy(*players, seed=seed + n)
        for n, players in enumerate(zip(blocks.players, plain.players, strict=True))
    ]
    step = functools.partial(cfr.step, settings=regret_matching.Settings(beta=-np.inf, gamma=1.0))
    results = []
    for tree, policies in ((blocks, [a for a, _ in pairs]), (plain, [b for _, b in pairs])):
        form, layouts = sequence_form.sequence_form(tree)
        evaluations = [best_response.evaluate(form, tabular_policies.to_levels(tree, layouts, policies))]
        state = cfr.init(form)
        for _ in range(iterations):
            state = step(form, state)
            evaluations.append(best_response.evaluate_average(form, state))
        results.append([np.concatenate([each.value, each.improvements]) for each in evaluations])
    scale = max(1.0, *map(abs, plain.payoff_range))
    np.testing.assert_allclose(results[0], results[1], rtol=0, atol=1e-9 * scale)
