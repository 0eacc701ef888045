"""Lane packing: lanes have children, and this says which slot of the next level holds which child.

The shapes are fixed. A lane may have any number of children up to a bound, none if it is inactive. There are two ways
to hand out slots: `spread_children` has one for every possible child and needs no sums; `pack_children` leaves no
gaps, and where there are more children than slots it keeps a random part of them, every child with the same
probability.

One prefix sum is all that `pack_children` needs. `jnp.cumsum` does it: on a CPU an associative scan is faster alone,
but whole traversals with it take a tenth longer to run and half as long again to compile. Parents are found by
writing every lane's number to its first slot and taking the largest number of the slots before, as many as a lane may
have children: few passes over neighbours, where a search would gather once for every halving.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from gdlx.solvers.mccfr import categorical

MAX_SLOTS = 1 << 20


class Children(NamedTuple):
    """Axes: L lanes, S slots for their children."""

    parent: jax.Array | None  # [S] int32, lane; None: lane s modulo L of slot s
    rank: jax.Array  # [S] int32, which one of its parent's children, from 0 on
    is_active: jax.Array  # [S] bool, whether there is a child in the slot
    factor: jax.Array | None  # [] float, 1 / the probability with which each child was kept; None: all were
    total: jax.Array  # [] int32, children there were


def spread_children(counts: jax.Array, most: int) -> Children:
    """Slots for `most` children of each lane [L], the first children of all lanes first."""
    rank = jnp.repeat(jnp.arange(most, dtype=jnp.int32), len(counts))
    return Children(None, rank, rank < jnp.tile(counts, most), None, jnp.sum(counts))


def can_pack(lanes: int, most: int, slots: int) -> bool:
    """Whether so many lanes with up to `most` children each can be packed into slots."""
    return _digits(lanes, most, slots) >= 4 and slots <= MAX_SLOTS


def _digits(lanes: int, most: int, slots: int) -> int:
    """After the point, which leave room for all children."""
    return 30 - max(lanes * most, slots).bit_length()


def pack_children(counts: jax.Array, most: int, slots: int, draw: jax.Array) -> Children:
    """Children of all lanes [L] side by side; `most` bounds the counts, draw is uniform in [0, 1).

    With N > S children, slot s takes child floor(s d + r), d at least N / S and r uniform in [0, d): systematic
    resampling, which keeps every child with probability exactly 1 / d. d and r are multiples of a unit which is a
    power of two, small enough for d to be hardly more than N / S, and large enough for exact integers.
    """
    digits = _digits(len(counts), most, slots)
    if not can_pack(len(counts), most, slots):
        raise ValueError(f"{slots} slots for up to {most} children of {len(counts)} lanes: take a smaller batch")
    unit = 1 << digits
    end = jnp.cumsum(counts, dtype=jnp.int32)
    start, total = end - counts, end[-1]
    stride = jnp.maximum(unit, -(-(total << digits) // slots))
    shift = jnp.where(stride > unit, jnp.minimum((draw * stride).astype(jnp.int32), stride - 1), 0)
    first = _divided_up((start << digits) - shift, stride)
    # Of lanes that begin at the same slot only the last one has children there.
    lane = jnp.arange(len(counts), dtype=jnp.int32)
    begins = jnp.zeros(slots + 1, jnp.int32).at[first].max(lane, mode="promise_in_bounds")
    parent = _latest(begins[:-1], most)
    child = (jnp.arange(slots, dtype=jnp.int32) * stride + shift) >> digits
    is_active = child < total
    rank = jnp.where(is_active, child - categorical.take(start, parent), 0)
    # The barrier keeps XLA from multiplying up all strides of many levels before it divides, which overflows.
    factor: jax.Array = jax.lax.optimization_barrier(  # type: ignore[no-untyped-call]
        stride.astype(draw.dtype) / unit
    )
    return Children(parent, rank, is_active, factor, total)


def gather_from_parents(children: Children, numbers: jax.Array) -> jax.Array:
    """What the parent of each slot has: [L] to [S]."""
    if children.parent is None:
        return jnp.tile(numbers, len(children.rank) // len(numbers))
    return categorical.take(numbers, children.parent)


def sum_to_parents(children: Children, numbers: jax.Array, lanes: int) -> jax.Array:
    """Unbiased sums over the children of each lane: [S] to [L]. Numbers of empty slots have to be 0."""
    if children.parent is None:
        parts = numbers.reshape(-1, lanes)
        return sum(parts[1:], start=parts[0])
    sums = jnp.zeros(lanes, numbers.dtype).at[children.parent].add(numbers, mode="promise_in_bounds")
    return sums if children.factor is None else sums * children.factor


def _latest(numbers: jax.Array, window: int) -> jax.Array:
    """The largest of so many numbers up to each one, or of some more."""
    reach = 1
    while reach < window:
        numbers = jnp.maximum(numbers, jnp.pad(numbers[:-reach], (reach, 0))) if reach < len(numbers) else numbers
        reach *= 2
    return numbers


def _divided_up(number: jax.Array, by: jax.Array) -> jax.Array:
    """Integers divided and rounded up, without the slow division of integers.

    The quotient in floats is off by less than a half, as quotients are below 2^20.
    """
    near = jnp.round(number * (1 / by.astype(jnp.float32))).astype(jnp.int32)
    return near + (near * by < number)
