"""A network of what views at a frontier are worth, given the players' ranges there.

It does not care for the order of views, nor for how many a group has: a view is what its encoding says, and a player's
range in a group is the mean of its views' embeddings. One network serves all groups and all depths of a game.
"""

import dataclasses
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from gdlx.envs import game_tree
from gdlx.nets import encoders, frontiers


class RangeValues(nn.Module):
    """Values in units of the game's payoffs: -1 the lowest and 1 the highest."""

    embedding: int = 64
    widths: tuple[int, ...] = (128, 128)

    @nn.compact
    def __call__(self, place: "Place", ranges: jax.Array) -> jax.Array:
        """[V, B] values from ranges [V, B] of any scale."""
        frontier = place.frontier
        seen = nn.relu(nn.Dense(self.embedding)(jnp.asarray(place.seen)))
        seen = nn.Dense(self.embedding)(seen)  # [V, E]
        share = frontiers.shares(frontier, ranges)
        camps = frontier.groups * frontier.players
        pool = jax.ops.segment_sum(share[:, :, None] * seen[:, None], frontier.camp, num_segments=camps)  # [C, B, E]
        # The first layer of the head on [own view, pools of all players, own one first], with each part where it is
        # smallest: it is linear, and there are far fewer pools than views.
        hidden = nn.Dense(self.widths[0])(seen)[:, None]
        for turn in range(frontier.players):
            told = nn.Dense(self.widths[0], use_bias=False)(pool)
            other = frontier.group * frontier.players + (frontier.player + turn) % frontier.players
            hidden = hidden + told[other]
        for about in beliefs(frontier, share, seen):
            hidden = hidden + nn.Dense(self.widths[0], use_bias=False)(about)
        hidden = nn.relu(hidden)
        for width in self.widths[1:]:
            hidden = nn.relu(nn.Dense(width)(hidden))
        value: jax.Array = nn.Dense(1)(hidden)[..., 0]
        return value


@dataclasses.dataclass(frozen=True, eq=False)
class Place:
    """A frontier as the network sees it. Axes: V views, F numbers of an encoding."""

    frontier: frontiers.Frontier
    seen: encoders.Floats  # [V, F]


def place(encoder: encoders.Encoder, tree: game_tree.GameTree, frontier: frontiers.Frontier) -> Place:
    rows = [
        encoder.of_views(tree, number, frontier.view[frontier.of_player(number)]) for number in range(frontier.players)
    ]
    return Place(frontier, np.concatenate(rows))


def parameters(network: RangeValues, where: Place, key: jax.Array) -> Any:
    return network.init(key, where, jnp.ones((where.frontier.views, 1)))


def beliefs(frontier: frontiers.Frontier, share: jax.Array, seen: jax.Array) -> list[jax.Array]:
    """(P - 1) x [V, B, E] the mean of another player's embeddings [V, E], as likely as the owner of a view thinks them.

    The next player's come first, then those of the one after it.
    """
    arriving = frontiers.arrivals(frontier, share)
    scale = jnp.where(arriving > 0, 1 / jnp.where(arriving > 0, arriving, 1), 0)[..., None]
    players = range(frontier.players)
    found = []
    for turn in players[1:]:
        total = jnp.zeros((*share.shape, seen.shape[1]))
        for number in players:
            likely = jnp.asarray(frontier.weight, share.dtype)[:, None]
            for other in players:
                if other != number:
                    likely = likely * share[frontier.node[:, other]]
            about = seen[frontier.node[:, (number + turn) % frontier.players]]
            total = total.at[frontier.node[:, number]].add(likely[..., None] * about[:, None])
        found.append(total * scale)
    return found


def balanced(frontier: frontiers.Frontier, ranges: jax.Array, values: jax.Array) -> jax.Array:
    """Values [V, B] of a zero-sum game, moved by one number for each group so that its players' add up to 0 there."""
    mass = ranges * frontiers.arrivals(frontier, ranges)
    total, weight = (
        jax.ops.segment_sum(x, frontier.group, num_segments=frontier.groups) for x in (mass * values, mass)
    )
    # Every player has the whole mass of the group: the excess is what all have too much together.
    excess = jnp.where(weight > 0, total / jnp.where(weight > 0, weight, 1), 0)
    return values - excess[frontier.group]
