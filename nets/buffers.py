"""Memories on the device for what networks learn from: the last C items, or a fair sample of all there ever were.

Both are pure functions of fixed shapes. Items come in batches, of which `wanted` says which count.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp


class Buffer(NamedTuple):
    """Axes: C places."""

    items: Any  # a pytree of arrays [C, ..]
    seen: jax.Array  # [] int32, items that ever came

    @property
    def capacity(self) -> int:
        found: int = jax.tree.leaves(self.items)[0].shape[0]
        return found

    @property
    def filled(self) -> jax.Array:
        """[] int32, places in use: the first ones."""
        return jnp.minimum(self.seen, self.capacity)


def init(like: Any, capacity: int) -> Buffer:
    """Room for so many items of the shapes and types of `like`."""
    items = jax.tree.map(lambda x: jnp.zeros((capacity, *jnp.shape(x)), jnp.result_type(x)), like)
    return Buffer(items, jnp.zeros((), jnp.int32))


def add_last(buffer: Buffer, items: Any, wanted: jax.Array) -> Buffer:
    """Keep the last C: [B, ..] items, bool[B]."""
    number = _numbers(buffer, wanted)
    return _put(buffer, items, number % buffer.capacity, wanted)


def add_fairly(buffer: Buffer, items: Any, wanted: jax.Array, key: jax.Array) -> Buffer:
    """Keep C of all, each with the same probability (reservoir sampling, Vitter 1985).

    Item n takes the place of a random one of the n there were with itself, if that is among the C places.
    """
    number = _numbers(buffer, wanted)
    draw = jax.random.uniform(key, number.shape)
    drawn = jnp.minimum((draw * (number + 1)).astype(jnp.int32), number)
    return _put(buffer, items, jnp.where(number < buffer.capacity, number, drawn), wanted)


def sample(buffer: Buffer, key: jax.Array, count: int) -> Any:
    """So many items [count, ..], drawn with replacement; zeros while there is none."""
    place = jax.random.randint(key, (count,), 0, jnp.maximum(buffer.filled, 1))
    return jax.tree.map(lambda x: x[place], buffer.items)


def _numbers(buffer: Buffer, wanted: jax.Array) -> jax.Array:
    """[B] what number each item has among all that ever came."""
    return buffer.seen + jnp.cumsum(wanted.astype(jnp.int32)) - 1


def _put(buffer: Buffer, items: Any, place: jax.Array, wanted: jax.Array) -> Buffer:
    """Items at their places; of several at one place the last."""
    capacity = buffer.capacity
    order = jnp.arange(place.shape[0])
    at = jnp.where(wanted & (place < capacity), place, capacity)
    last = jnp.full(capacity + 1, -1, jnp.int32).at[at].max(order)
    keeps = (at < capacity) & (last[at] == order)
    target = jnp.where(keeps, at, capacity)
    kept = jax.tree.map(lambda old, new: old.at[target].set(new, mode="drop"), buffer.items, items)
    return Buffer(kept, buffer.seen + jnp.sum(wanted, dtype=jnp.int32))
