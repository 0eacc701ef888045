"""Policy and value networks: a torso that all players share, and heads for each of them."""

from typing import Any, Literal, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp

from gdlx.propnet.common import errors

NetworkKind = Literal["mlp", "residual"]


class NetworkError(errors.UserError, ValueError):
    """A network that cannot be built."""


class NetworkOutput(NamedTuple):
    """Axes: those of the batch, then P players, A actions."""

    logits: jax.Array  # [.., P, A] of policies, or another prediction per action (advantages)
    value: jax.Array  # [.., P] predicted payoffs


class Network(nn.Module):
    """An MLP on F features with a policy and a value head for every player.

    With `kind="residual"`, layers of equal width have skip connections, and their inputs are normalised (pre-norm).
    The heads are initialised with zeros: an untrained network plays uniformly.

    Attributes:
      players: P.
      moves: A, actions of each player.
      widths: of the hidden layers.
      kind: "mlp" or "residual".

    >>> network = Network(players=2, moves=3, widths=(8, 8))
    >>> params = init_params(network, 5, jax.random.key(0))
    >>> apply_network(network, params, jnp.zeros((4, 5))).logits.shape
    (4, 2, 3)
    """

    players: int
    moves: int
    widths: tuple[int, ...] = (128, 128)
    kind: NetworkKind = "mlp"

    def __repr__(self) -> str:
        return f"Network({self.players} players, {self.moves} moves, widths {self.widths}, {self.kind})"

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
    """Initial parameters for `inputs` features."""
    return network.init(key, jnp.zeros((1, inputs)))


def num_params(tree: Any) -> int:
    """The number of parameters in a pytree."""
    return sum(leaf.size for leaf in jax.tree.leaves(tree))


def select_player(outputs: NetworkOutput, player: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The logits [B, A] and values [B] of one player [B] in each row."""
    logits = jnp.take_along_axis(outputs.logits, player[:, None, None], axis=1)[:, 0]
    return logits, jnp.take_along_axis(outputs.value, player[:, None], axis=1)[:, 0]


def apply_network(network: Network, variables: Any, seen: jax.Array) -> NetworkOutput:
    """The outputs for features [.., F]."""
    output: NetworkOutput = network.apply(variables, seen)  # type: ignore[assignment]
    return output


def diagonal_outputs(outputs: NetworkOutput) -> NetworkOutput:
    """Each player's outputs for itself, where the last axis of the batch is players: [.., P, A] and [.., P]."""
    return NetworkOutput(jnp.einsum("...ppa->...pa", outputs.logits), jnp.einsum("...pp->...p", outputs.value))


def uniform_policy(legal: jax.Array) -> jax.Array:
    """[.., A] uniform over legal actions; 0 where nothing is legal."""
    return legal / jnp.maximum(legal.sum(axis=-1, keepdims=True), 1)


def masked_softmax(logits: jax.Array, legal: jax.Array) -> jax.Array:
    """[.., A] softmax over legal actions; 0 where nothing is legal."""
    masked = jnp.where(legal, logits, -jnp.inf)
    highest = jnp.max(masked, axis=-1, keepdims=True, where=legal, initial=-jnp.inf)
    weight = jnp.where(legal, jnp.exp(masked - jnp.where(jnp.isfinite(highest), highest, 0)), 0)
    total = weight.sum(axis=-1, keepdims=True)
    return weight / jnp.where(total > 0, total, 1)
