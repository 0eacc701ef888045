"""What networks tell of the information sets of an unrolled game: of all of them at once, as tables for solvers."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from gdlx.envs.trees import game_tree, sequence_form
from gdlx.nets.learners import protocol
from gdlx.nets.models import encoders, networks
from gdlx.solvers import tabular_policies


class EncodedInfosets(NamedTuple):
    """Sets with a choice, one player's after the other's: the columns of a sampling form, without its last one.

    Axes: I sets, F numbers of an encoding, W options of the widest choice.
    """

    seen: jax.Array  # [I, F] float32
    player: jax.Array  # [I] int32
    move: jax.Array  # [I, W] int32, the option's number among the moves of the game
    is_legal: jax.Array  # [I, W] bool; where there is none, the move is 0


def encode_infosets(encoder: encoders.Encoder, tree: game_tree.GameTree) -> EncodedInfosets:
    widths = np.concatenate([np.diff(player.first) for player in tree.players])
    is_option = np.arange(widths.max(initial=1)) < widths[:, None]
    move = np.zeros(is_option.shape, np.int32)
    move[is_option] = np.concatenate([player.action[1:] for player in tree.players])
    seen = np.concatenate([encoder.encode_infosets(tree, number) for number in range(len(tree.players))])
    who = np.repeat(np.arange(len(tree.players), dtype=np.int32), [player.sets for player in tree.players])
    return EncodedInfosets(*map(sequence_form.to_device, (seen, who, move, is_option)))


def apply_to_infosets(network: networks.Network, variables: Any, sets: EncodedInfosets) -> jax.Array:
    """[I, W] what a network tells of every option of whoever chooses; 0 where there is none."""
    found: networks.NetworkOutput = network.apply(variables, sets.seen)  # type: ignore[assignment]
    of_moves, _ = networks.select_player(found, sets.player)
    return jnp.where(sets.is_legal, jnp.take_along_axis(of_moves, sets.move, axis=1), 0)


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
