"""Replay buffers on the device: the last C items, or a uniform sample of all items ever added (a reservoir).

Both are pure functions of fixed shapes. Items are added in batches, with a mask `to_add` of those that count.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

MAX_COUNT = 1 << 30  # so that numbers stay within 32 bits


class ReplayBuffer(NamedTuple):
    """Storage for C items, as a pytree.

    Attributes:
      items: a pytree of arrays [C, ..].
      num_added: items ever added; past MAX_COUNT the count is no longer exact.

    >>> buffer = ReplayBuffer(items=jnp.zeros(4), num_added=jnp.int32(3))
    >>> buffer.capacity, int(buffer.filled)
    (4, 3)
    """

    items: Any
    num_added: jax.Array  # [] int32

    def __repr__(self) -> str:
        try:  # leaves of a pytree need not be arrays
            return f"ReplayBuffer(capacity {self.capacity:,})"
        except (AttributeError, IndexError):
            return "ReplayBuffer()"

    @property
    def capacity(self) -> int:
        """C"""
        capacity: int = jax.tree.leaves(self.items)[0].shape[0]
        return capacity

    @property
    def filled(self) -> jax.Array:
        """[] int32, slots in use: the first ones."""
        return jnp.minimum(self.num_added, self.capacity)


def init(like: Any, capacity: int) -> ReplayBuffer:
    """An empty buffer for `capacity` items of the shapes and dtypes of `like`."""
    items = jax.tree.map(lambda x: jnp.zeros((capacity, *jnp.shape(x)), jnp.result_type(x)), like)
    return ReplayBuffer(items, jnp.zeros((), jnp.int32))


def add_fifo(buffer: ReplayBuffer, items: Any, to_add: jax.Array) -> ReplayBuffer:
    """Adds items [B, ..] where `to_add` [B], and keeps the last C."""
    after = _put(buffer, items, _numbers(buffer, to_add) % buffer.capacity, to_add)
    # A smaller count that means the same: a full buffer, and the same slot for the next item.
    wrapped = buffer.capacity + after.num_added % buffer.capacity
    return after._replace(num_added=jnp.where(after.num_added < MAX_COUNT, after.num_added, wrapped))


def add_reservoir(buffer: ReplayBuffer, items: Any, to_add: jax.Array, bits: jax.Array) -> ReplayBuffer:
    """Adds items [B, ..] where `to_add` [B], and keeps C of all, each with the same probability (Vitter 1985).

    Item n replaces a uniformly drawn one of the first n items, itself included, if that is among the C slots. After
    MAX_COUNT items n no longer grows: later items are then more likely to be kept than earlier ones.

    Args:
      buffer: the reservoir.
      items: a pytree of arrays [B, ..].
      to_add: bool[B].
      bits: random, uint32[B].
    """
    number = _numbers(buffer, to_add)
    drawn = _scale_bits(bits, number + 1)
    after = _put(buffer, items, jnp.where(number < buffer.capacity, number, drawn), to_add)
    return after._replace(num_added=jnp.minimum(after.num_added, MAX_COUNT))


def _scale_bits(bits: jax.Array, count: jax.Array) -> jax.Array:
    """int32: floor(bits count / 2^32), in words of 32 bits. A float has too few bits to address each of many slots."""
    bits_high, bits_low = bits >> 16, bits & 0xFFFF
    count = count.astype(jnp.uint32)
    count_high, count_low = count >> 16, count & 0xFFFF
    middle = ((bits_low * count_low) >> 16) + (bits_high * count_low & 0xFFFF) + (bits_low * count_high & 0xFFFF)
    high = bits_high * count_high + (bits_high * count_low >> 16) + (bits_low * count_high >> 16) + (middle >> 16)
    return high.astype(jnp.int32)


def sample(buffer: ReplayBuffer, key: jax.Array, count: int) -> Any:
    """Items [count, ..], drawn with replacement; zeros while the buffer is empty."""
    slot = jax.random.randint(key, (count,), 0, jnp.maximum(buffer.filled, 1))
    return jax.tree.map(lambda x: x[slot], buffer.items)


def _numbers(buffer: ReplayBuffer, to_add: jax.Array) -> jax.Array:
    """[B] the index of each item among all ever added."""
    return buffer.num_added + jnp.cumsum(to_add.astype(jnp.int32)) - 1


def _put(buffer: ReplayBuffer, items: Any, slot: jax.Array, to_add: jax.Array) -> ReplayBuffer:
    """Stores items in their slots; the last of several in one slot."""
    capacity = buffer.capacity
    order = jnp.arange(slot.shape[0])
    at = jnp.where(to_add & (slot < capacity), slot, capacity)
    last = jnp.full(capacity + 1, -1, jnp.int32).at[at].max(order)
    is_stored = (at < capacity) & (last[at] == order)
    target = jnp.where(is_stored, at, capacity)
    stored = jax.tree.map(lambda old, new: old.at[target].set(new, mode="drop"), buffer.items, items)
    return ReplayBuffer(stored, buffer.num_added + jnp.sum(to_add, dtype=jnp.int32))
