"""Sampling from tables of policies, for the samplers of unrolled games. Indices must be in bounds."""

import jax
import jax.numpy as jnp

from gdlx.envs.trees import sampling_form


def take(table: jax.Array, index: jax.Array) -> jax.Array:
    return table.at[index].get(mode="promise_in_bounds")


def scatter_add(table: jax.Array, index: jax.Array, numbers: jax.Array) -> jax.Array:
    return table.at[index].add(numbers, mode="promise_in_bounds")


def cdf_thresholds(table: jax.Array) -> jax.Array:
    """[A, columns] -> [columns, W] thresholds where the next action begins, padded to a power of two for binary search.

    After the last action with positive probability all thresholds are infinite, whatever rounding does to the sums: an
    action of probability 0 must never be sampled, for its value would be 0 / 0.
    """
    infinite = jnp.full_like(table[0], jnp.inf)
    thresholds: list[jax.Array] = []
    has_later = jnp.zeros_like(table[0], jnp.bool_)
    for row, total in zip(table[:0:-1], prefix_sums(table)[-2::-1], strict=True):
        has_later |= row > 0
        thresholds.insert(0, jnp.where(has_later, total, infinite))
    return jnp.stack(thresholds + [infinite] * (2 ** (len(table) - 1).bit_length() - len(thresholds)), axis=1)


def prefix_sums(table: jax.Array) -> list[jax.Array]:
    """Returns prefix sums over the rows, unrolled: XLA's windowed sums would take longer than all the rest."""
    sums = [table[0]]
    for row in table[1:]:
        sums.append(sums[-1] + row)
    return sums


def invert_cdf(rows: jax.Array, row: jax.Array, draw: jax.Array) -> jax.Array:
    """Returns the number of thresholds of its row that each draw has reached: the sampled action."""
    width = rows.shape[1]
    flat, start = rows.reshape(-1), row * width
    reached = jnp.zeros_like(row)
    for step in reversed(range((width - 1).bit_length())):
        half = 1 << step
        reached = jnp.where(draw >= take(flat, start + reached + half - 1), reached + half, reached)
    return reached


def sample_chance_edge(slot: sampling_form.ChanceSlot, node: jax.Array, edge: jax.Array, draw: jax.Array) -> jax.Array:
    """Samples the edge of chance's outcome; `edge` is that of the first outcome."""
    count = take(slot.outcomes, node)
    scaled = draw * count
    outcome = jnp.minimum(scaled.astype(jnp.int32), count - 1)
    edge = edge + outcome
    if slot.alias_prob is None or slot.alias_offset is None:
        return edge
    fraction = scaled - outcome  # the fractional part of the draw is uniform again
    return edge + jnp.where(fraction < take(slot.alias_prob, edge), 0, take(slot.alias_offset, edge))
