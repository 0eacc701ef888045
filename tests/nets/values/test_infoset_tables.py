"""Policies of networks at the information sets of a tree: as tables, and one by one."""

import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gdlx
from gdlx.nets.models import encoders, networks
from gdlx.nets.values import infoset_tables
from gdlx.solvers import tabular_policies
from gdlx.tests.helpers import samples


@pytest.mark.parametrize("game", ["kuhn_poker", "goofspiel:cards=3", "smallest:numbers=3,steps=1", "monty_hall"])
def test_policies_set_by_set(game: str) -> None:
    tree = samples.load_tree(game)
    env = gdlx.make(game)
    encoder = encoders.Encoder(env, steps=len(tree.counts.nodes))
    network = networks.Network(env.num_players, env.num_actions, widths=(8,))
    start = networks.init_params(network, encoder.width, jax.random.key(0))
    # The heads of an untrained network are 0, so that all actions would look the same.
    variables = jax.tree.map(lambda x: jax.random.normal(jax.random.key(x.size), x.shape), start)
    learner = types.SimpleNamespace(encoder=encoder, network=network)
    actual = infoset_tables.network_policies(learner, variables, tree)
    for number, player in enumerate(tree.players):
        rows = encoder.encode_infosets(tree, number)
        np.testing.assert_allclose(tabular_policies.validate(player, actual[number]), actual[number])
        for decision in range(player.sets):
            reported: networks.NetworkOutput = network.apply(variables, jnp.asarray(rows[decision]))  # type: ignore[assignment]
            first, end = player.first[decision], player.first[decision + 1]
            weight = np.exp(np.asarray(reported.logits, float)[number][player.action[first:end]])
            np.testing.assert_allclose(actual[number][first:end], weight / weight.sum(), rtol=1e-4)
    assert any(np.ptp(policy[1:]) > 0.05 for policy in actual if len(policy) > 1)
