"""A network of what views at public states are worth, given the players' ranges there.

It does not care for the order of views, nor for how many a public state has: a view is what its encoding says, and a
player's range in a public state is the mean of its views' embeddings. One network serves all public states and all
depths of a game.
"""

import dataclasses
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from gdlx.envs.trees import game_tree
from gdlx.nets.models import encoders
from gdlx.nets.values import public_states


class RangeValueNetwork(nn.Module):
    """Values in units of the game's payoffs: -1 the lowest and 1 the highest."""

    embedding: int = 64
    widths: tuple[int, ...] = (128, 128)

    @nn.compact
    def __call__(self, place: "EncodedPublicStates", ranges: jax.Array) -> jax.Array:
        """[V, B] values from ranges [V, B] of any scale."""
        public = place.public
        seen = nn.relu(nn.Dense(self.embedding)(jnp.asarray(place.seen)))
        seen = nn.Dense(self.embedding)(seen)  # [V, E]
        share = public_states.normalize_by_state(public, ranges)
        states = public.states * public.players
        pool = jax.ops.segment_sum(
            share[:, :, None] * seen[:, None], public.state_of_player, num_segments=states
        )  # [C, B, E]
        # The first layer of the head on [own view, pools of all players, own one first], with each part where it is
        # smallest: it is linear, and there are far fewer pools than views.
        hidden = nn.Dense(self.widths[0])(seen)[:, None]
        for turn in range(public.players):
            told = nn.Dense(self.widths[0], use_bias=False)(pool)
            other = public.state * public.players + (public.player + turn) % public.players
            hidden = hidden + told[other]
        for about in opponent_beliefs(public, share, seen):
            hidden = hidden + nn.Dense(self.widths[0], use_bias=False)(about)
        hidden = nn.relu(hidden)
        for width in self.widths[1:]:
            hidden = nn.relu(nn.Dense(width)(hidden))
        value: jax.Array = nn.Dense(1)(hidden)[..., 0]
        return value


@dataclasses.dataclass(frozen=True, eq=False)
class EncodedPublicStates:
    """Public states of one depth as the network sees them. Axes: V views, F numbers of an encoding."""

    public: public_states.PublicStates
    seen: encoders.Floats  # [V, F]


def encode_public_states(
    encoder: encoders.Encoder, tree: game_tree.GameTree, public: public_states.PublicStates
) -> EncodedPublicStates:
    rows = [
        encoder.encode_views(tree, number, public.view[public.of_player(number)]) for number in range(public.players)
    ]
    return EncodedPublicStates(public, np.concatenate(rows))


def init_params(network: RangeValueNetwork, where: EncodedPublicStates, key: jax.Array) -> Any:
    return network.init(key, where, jnp.ones((where.public.views, 1)))


def opponent_beliefs(public: public_states.PublicStates, share: jax.Array, seen: jax.Array) -> list[jax.Array]:
    """(P - 1) x [V, B, E] the mean of another player's embeddings [V, E], as likely as the owner of a view thinks them.

    The next player's come first, then those of the one after it.
    """
    arriving = public_states.counterfactual_reach(public, share)
    scale = jnp.where(arriving > 0, 1 / jnp.where(arriving > 0, arriving, 1), 0)[..., None]
    players = range(public.players)
    found = []
    for turn in players[1:]:
        total = jnp.zeros((*share.shape, seen.shape[1]))
        for number in players:
            likely = jnp.asarray(public.weight, share.dtype)[:, None]
            for other in players:
                if other != number:
                    likely = likely * share[public.node[:, other]]
            about = seen[public.node[:, (number + turn) % public.players]]
            total = total.at[public.node[:, number]].add(likely[..., None] * about[:, None])
        found.append(total * scale)
    return found


def enforce_zero_sum(public: public_states.PublicStates, ranges: jax.Array, values: jax.Array) -> jax.Array:
    """Values [V, B] of a zero-sum game, moved by one number for each public state so that its players' add up to 0."""
    mass = ranges * public_states.counterfactual_reach(public, ranges)
    total, weight = (jax.ops.segment_sum(x, public.state, num_segments=public.states) for x in (mass * values, mass))
    # Every player has the whole mass of the public state: the excess is what all have too much together.
    excess = jnp.where(weight > 0, total / jnp.where(weight > 0, weight, 1), 0)
    return values - excess[public.state]
