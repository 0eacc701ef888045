"""Networks of policies and values: a body that all players share, and heads for each of them."""

from typing import Any, Literal, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp

from gdlx.propnet.common import errors

NetworkKind = Literal["mlp", "residual"]


class NetworkError(errors.UserError, ValueError):
    pass


class NetworkOutput(NamedTuple):
    """Axes: any of a batch, then P players, A moves."""

    logits: jax.Array  # [.., P, A] of policies, or whatever is told of moves (advantages)
    value: jax.Array  # [.., P] of payoffs


class Network(nn.Module):
    """Of F numbers. With `residual`, layers of one width add to what came before them, and see it normalised."""

    players: int
    moves: int
    widths: tuple[int, ...] = (128, 128)
    kind: NetworkKind = "mlp"

    @nn.compact
    def __call__(self, seen: jax.Array) -> NetworkOutput:
        hidden = nn.relu(nn.Dense(self.widths[0])(seen))
        is_residual = self.kind == "residual"
        for width in self.widths[1:]:
            layer = nn.relu(nn.Dense(width)(nn.LayerNorm()(hidden) if is_residual else hidden))
            hidden = hidden + layer if is_residual and hidden.shape[-1] == width else layer
        if is_residual:
            hidden = nn.LayerNorm()(hidden)
        logits = nn.Dense(self.players * self.moves, kernel_init=nn.initializers.zeros_init())(hidden)
        value = nn.Dense(self.players, kernel_init=nn.initializers.zeros_init())(hidden)
        return NetworkOutput(logits.reshape(*seen.shape[:-1], self.players, self.moves), value)


def require_widths(widths: tuple[int, ...]) -> None:
    if not widths or min(widths) < 1:
        raise NetworkError(f"widths are one or more sizes of layers, as 128,128; not {','.join(map(str, widths))}")


def init_params(network: Network, inputs: int, key: jax.Array) -> Any:
    return network.init(key, jnp.zeros((1, inputs)))


def num_params(tree: Any) -> int:
    """Of parameters."""
    return sum(leaf.size for leaf in jax.tree.leaves(tree))


def select_player(told: NetworkOutput, player: jax.Array) -> tuple[jax.Array, jax.Array]:
    """What is told of one player [B]: logits [B, A] and value [B]."""
    logits = jnp.take_along_axis(told.logits, player[:, None, None], axis=1)[:, 0]
    return logits, jnp.take_along_axis(told.value, player[:, None], axis=1)[:, 0]


def apply_network(network: Network, variables: Any, seen: jax.Array) -> NetworkOutput:
    """What a network tells of [.., F]."""
    found: NetworkOutput = network.apply(variables, seen)  # type: ignore[assignment]
    return found


def diagonal_outputs(told: NetworkOutput) -> NetworkOutput:
    """What each player is told of itself, where the last axis of the batch is players: [.., P, A] and [.., P]."""
    return NetworkOutput(jnp.einsum("...ppa->...pa", told.logits), jnp.einsum("...pp->...p", told.value))


def uniform_policy(legal: jax.Array) -> jax.Array:
    """[.., A] all legal moves alike; 0 where nothing is legal."""
    return legal / jnp.maximum(legal.sum(axis=-1, keepdims=True), 1)


def masked_softmax(logits: jax.Array, legal: jax.Array) -> jax.Array:
    """[.., A] probabilities of legal moves; 0 where nothing is legal."""
    masked = jnp.where(legal, logits, -jnp.inf)
    highest = jnp.max(masked, axis=-1, keepdims=True, where=legal, initial=-jnp.inf)
    weight = jnp.where(legal, jnp.exp(masked - jnp.where(jnp.isfinite(highest), highest, 0)), 0)
    total = weight.sum(axis=-1, keepdims=True)
    return weight / jnp.where(total > 0, total, 1)
