"""Predictions of networks at all information sets of an unrolled game, as tables for solvers."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from gdlx.envs.trees import device_arrays, game_tree
from gdlx.nets.learners import protocol
from gdlx.nets.models import encoders, networks
from gdlx.solvers import tabular_policies
from gdlx.solvers.policy_sources import function_policies


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


def policy_function(learner: protocol.Learner, variables: Any) -> function_policies.PolicyFunction:
    """The policy of a learner's network as a function, which the judge asks in trees and in matches."""

    def policy(infosets: function_policies.InformationSets) -> np.ndarray[Any, Any]:
        count = 1 << max(0, len(infosets) - 1).bit_length()  # few shapes, and so few programs

        def padded(rows: np.ndarray[Any, Any]) -> jax.Array:
            return jnp.asarray(np.pad(rows, ((0, count - len(rows)), *[(0, 0)] * (rows.ndim - 1))))

        legal = infosets.legal
        move = np.broadcast_to(np.arange(legal.shape[1], dtype=np.int32), legal.shape)
        number = np.full(len(infosets), infosets.player, np.int32)
        features = learner.encoder.encode(infosets)
        sets = EncodedInfosets(padded(features), padded(number), padded(move), padded(legal))
        return np.asarray(_probabilities(learner.network, variables, sets), np.float64)[: len(infosets)]

    return policy


@jax.jit(static_argnames="network")
def _probabilities(network: networks.Network, variables: Any, sets: EncodedInfosets) -> jax.Array:
    return networks.masked_softmax(apply_to_infosets(network, variables, sets), sets.is_legal)
