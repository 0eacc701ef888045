"""A network that predicts the values of views (information sets) at public states, given the players' ranges there.

It is invariant to the order of views and accepts any number of them: a view is represented by its encoding, and a
player's range in a public state by the mean of its views' embeddings. One network serves all public states and all
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
    """Predicts scaled values: -1 is the lowest payoff of the game, and 1 the highest."""

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
        # The first layer of the head on [own view, pools of all players, own one first]. It is linear, so that each
        # part is multiplied where it is smallest: there are far fewer pools than views.
        hidden = nn.Dense(self.widths[0])(seen)[:, None]
        for turn in range(public.players):
            projected = nn.Dense(self.widths[0], use_bias=False)(pool)
            other = public.state * public.players + (public.player + turn) % public.players
            hidden = hidden + projected[other]
        for belief in opponent_beliefs(public, share, seen):
            hidden = hidden + nn.Dense(self.widths[0], use_bias=False)(belief)
        hidden = nn.relu(hidden)
        for width in self.widths[1:]:
            hidden = nn.relu(nn.Dense(width)(hidden))
        value: jax.Array = nn.Dense(1)(hidden)[..., 0]
        return value


@dataclasses.dataclass(frozen=True, eq=False)
class EncodedPublicStates:
    """Public states of one depth as the network sees them. Axes: V views, F features."""

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
    """(P - 1) x [V, B, E] the mean of another player's embeddings [V, E], under the belief of the owner of a view.

    That of the next player comes first, then that of the one after it.
    """
    reach = public_states.counterfactual_reach(public, share)
    scale = jnp.where(reach > 0, 1 / jnp.where(reach > 0, reach, 1), 0)[..., None]
    players = range(public.players)
    beliefs = []
    for turn in players[1:]:
        total = jnp.zeros((*share.shape, seen.shape[1]))
        for number in players:
            probability = jnp.asarray(public.weight, share.dtype)[:, None]
            for other in players:
                if other != number:
                    probability = probability * share[public.node[:, other]]
            embedding = seen[public.node[:, (number + turn) % public.players]]
            total = total.at[public.node[:, number]].add(probability[..., None] * embedding[:, None])
        beliefs.append(total * scale)
    return beliefs


def enforce_zero_sum(public: public_states.PublicStates, ranges: jax.Array, values: jax.Array) -> jax.Array:
    """Values [V, B] of a zero-sum game, shifted by a constant in each public state so that players' values sum to 0."""
    mass = ranges * public_states.counterfactual_reach(public, ranges)
    total, weight = (jax.ops.segment_sum(x, public.state, num_segments=public.states) for x in (mass * values, mass))
    # Each player has the full mass of the public state, so that the shift is the excess of the sum, shared by all.
    excess = jnp.where(weight > 0, total / jnp.where(weight > 0, weight, 1), 0)
    return values - excess[public.state]
