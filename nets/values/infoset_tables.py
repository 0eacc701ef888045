"""Predictions of networks at all information sets of an unrolled game, as tables for solvers."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from gdlx.envs.trees import device_arrays, game_tree
from gdlx.nets.learners import protocol
from gdlx.nets.models import encoders, networks
from gdlx.solvers import tabular_policies


class EncodedInfosets(NamedTuple):
    """Information sets with a choice, player by player: the columns of a sampling form, without its last one.

    Axes: I information sets, F features, W actions of the widest choice.
    """

    seen: jax.Array  # [I, F] float32, features
    player: jax.Array  # [I] int32
    move: jax.Array  # [I, W] int32, index among all actions of the player; 0 where there is none
    is_legal: jax.Array  # [I, W] bool, whether there is an action


def encode_infosets(encoder: encoders.Encoder, tree: game_tree.GameTree) -> EncodedInfosets:
    """Encodes all information sets with a choice."""
    widths = np.concatenate([np.diff(player.first) for player in tree.players])
    is_legal = np.arange(widths.max(initial=1)) < widths[:, None]
    move = np.zeros(is_legal.shape, np.int32)
    move[is_legal] = np.concatenate([player.action[1:] for player in tree.players])
    features = np.concatenate([encoder.encode_infosets(tree, number) for number in range(len(tree.players))])
    players = np.repeat(np.arange(len(tree.players), dtype=np.int32), [player.sets for player in tree.players])
    return EncodedInfosets(*map(device_arrays.to_device, (features, players, move, is_legal)))


def apply_to_infosets(network: networks.Network, variables: Any, sets: EncodedInfosets) -> jax.Array:
    """[I, W] logits (or advantages) of every action of the player who chooses; 0 where there is none."""
    output: networks.NetworkOutput = network.apply(variables, sets.seen)  # type: ignore[assignment]
    logits, _ = networks.select_player(output, sets.player)
    return jnp.where(sets.is_legal, jnp.take_along_axis(logits, sets.move, axis=1), 0)


def network_policies(learner: protocol.Learner, variables: Any, tree: game_tree.GameTree) -> tabular_policies.Policies:
    """The policies of a learner's network at all information sets of the unrolled game."""
    sets = encode_infosets(learner.encoder, tree)
    table = np.asarray(_probabilities(learner.network, variables, sets), np.float64)
    bounds = np.cumsum([0, *(player.sets for player in tree.players)])
    return tuple(
        tabular_policies.from_table(player, table[begin:end].T)
        for player, begin, end in zip(tree.players, bounds, bounds[1:], strict=False)
    )


@jax.jit(static_argnames="network")
def _probabilities(network: networks.Network, variables: Any, sets: EncodedInfosets) -> jax.Array:
    return networks.masked_softmax(apply_to_infosets(network, variables, sets), sets.is_legal)
