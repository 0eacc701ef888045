"""Draws from tables of policies, for all samplers of unrolled games. Indices are always in bounds."""

import jax
import jax.numpy as jnp

from gdlx.envs.trees import sampling_form


def take(table: jax.Array, index: jax.Array) -> jax.Array:
    return table.at[index].get(mode="promise_in_bounds")


def scatter_add(table: jax.Array, index: jax.Array, numbers: jax.Array) -> jax.Array:
    return table.at[index].add(numbers, mode="promise_in_bounds")


def cdf_thresholds(table: jax.Array) -> jax.Array:
    """[A, columns] -> [columns, W] where the next option begins; W is the power of two from A on, to search by halves.

    Beyond the last option with any probability there is nothing, whatever rounding does to the sums: an option that
    has none must never be drawn, for its value would be 0 / 0.
    """
    never = jnp.full_like(table[0], jnp.inf)
    found: list[jax.Array] = []
    goes_on = jnp.zeros_like(table[0], jnp.bool_)
    for row, total in zip(table[:0:-1], prefix_sums(table)[-2::-1], strict=True):
        goes_on |= row > 0
        found.insert(0, jnp.where(goes_on, total, never))
    return jnp.stack(found + [never] * (2 ** (len(table) - 1).bit_length() - len(found)), axis=1)


def prefix_sums(table: jax.Array) -> list[jax.Array]:
    """Sums of the rows up to each one, written out: XLA's sums over windows take longer than all the rest."""
    sums = [table[0]]
    for row in table[1:]:
        sums.append(sums[-1] + row)
    return sums


def invert_cdf(rows: jax.Array, row: jax.Array, draw: jax.Array) -> jax.Array:
    """How many bounds of its row each draw has reached."""
    width = rows.shape[1]
    flat, start = rows.reshape(-1), row * width
    reached = jnp.zeros_like(row)
    for step in reversed(range((width - 1).bit_length())):
        half = 1 << step
        reached = jnp.where(draw >= take(flat, start + reached + half - 1), reached + half, reached)
    return reached


def sample_chance_edge(slot: sampling_form.ChanceSlot, node: jax.Array, edge: jax.Array, draw: jax.Array) -> jax.Array:
    """The edge of chance's move; `edge` is that of its first one."""
    count = take(slot.outcomes, node)
    scaled = draw * count
    outcome = jnp.minimum(scaled.astype(jnp.int32), count - 1)
    edge = edge + outcome
    if slot.alias_prob is None or slot.alias_offset is None:
        return edge
    fraction = scaled - outcome  # what is left of the draw is uniform again
    return edge + jnp.where(fraction < take(slot.alias_prob, edge), 0, take(slot.alias_offset, edge))
