"""Memories on the device for what networks learn from: the last C items, or a fair sample of all there ever were.

Both are pure functions of fixed shapes. Items come in batches, of which `wanted` says which count.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

MAX_COUNT = 1 << 30  # so that numbers stay within 32 bits


class ReplayBuffer(NamedTuple):
    """Axes: C places."""

    items: Any  # a pytree of arrays [C, ..]
    num_added: jax.Array  # [] int32, items that ever came; those beyond MANY are not counted for good

    @property
    def capacity(self) -> int:
        found: int = jax.tree.leaves(self.items)[0].shape[0]
        return found

    @property
    def filled(self) -> jax.Array:
        """[] int32, places in use: the first ones."""
        return jnp.minimum(self.num_added, self.capacity)


def init(like: Any, capacity: int) -> ReplayBuffer:
    """Room for so many items of the shapes and types of `like`."""
    items = jax.tree.map(lambda x: jnp.zeros((capacity, *jnp.shape(x)), jnp.result_type(x)), like)
    return ReplayBuffer(items, jnp.zeros((), jnp.int32))


def add_fifo(buffer: ReplayBuffer, items: Any, wanted: jax.Array) -> ReplayBuffer:
    """Keep the last C: [B, ..] items, bool[B]."""
    found = _put(buffer, items, _numbers(buffer, wanted) % buffer.capacity, wanted)
    # As if fewer had come, but as full, and with the same place for the next one.
    fewer = buffer.capacity + found.num_added % buffer.capacity
    return found._replace(num_added=jnp.where(found.num_added < MAX_COUNT, found.num_added, fewer))


def add_reservoir(buffer: ReplayBuffer, items: Any, wanted: jax.Array, bits: jax.Array) -> ReplayBuffer:
    """Keep C of all, each with the same probability (reservoir sampling, Vitter 1985). `bits` are random, uint32[B].

    Item n takes the place of a random one of the n there were with itself, if that is among the C places. After MANY
    items n no longer grows: then later ones are more likely to be kept than earlier ones.
    """
    number = _numbers(buffer, wanted)
    drawn = _part(bits, number + 1)
    found = _put(buffer, items, jnp.where(number < buffer.capacity, number, drawn), wanted)
    return found._replace(num_added=jnp.minimum(found.num_added, MAX_COUNT))


def _part(bits: jax.Array, count: jax.Array) -> jax.Array:
    """int32: floor(bits count / 2^32), in words of 32 bits. A float has too few bits to name each of many places."""
    high, low = bits >> 16, bits & 0xFFFF
    count = count.astype(jnp.uint32)
    more, less = count >> 16, count & 0xFFFF
    middle = ((low * less) >> 16) + (high * less & 0xFFFF) + (low * more & 0xFFFF)
    whole = high * more + (high * less >> 16) + (low * more >> 16) + (middle >> 16)
    return whole.astype(jnp.int32)


def sample(buffer: ReplayBuffer, key: jax.Array, count: int) -> Any:
    """So many items [count, ..], drawn with replacement; zeros while there is none."""
    place = jax.random.randint(key, (count,), 0, jnp.maximum(buffer.filled, 1))
    return jax.tree.map(lambda x: x[place], buffer.items)


def _numbers(buffer: ReplayBuffer, wanted: jax.Array) -> jax.Array:
    """[B] what number each item has among all that ever came."""
    return buffer.num_added + jnp.cumsum(wanted.astype(jnp.int32)) - 1


def _put(buffer: ReplayBuffer, items: Any, place: jax.Array, wanted: jax.Array) -> ReplayBuffer:
    """Items at their places; of several at one place the last."""
    capacity = buffer.capacity
    order = jnp.arange(place.shape[0])
    at = jnp.where(wanted & (place < capacity), place, capacity)
    last = jnp.full(capacity + 1, -1, jnp.int32).at[at].max(order)
    keeps = (at < capacity) & (last[at] == order)
    target = jnp.where(keeps, at, capacity)
    kept = jax.tree.map(lambda old, new: old.at[target].set(new, mode="drop"), buffer.items, items)
    return ReplayBuffer(kept, buffer.num_added + jnp.sum(wanted, dtype=jnp.int32))
