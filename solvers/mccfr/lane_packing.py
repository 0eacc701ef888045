"""Lane packing: assign the children of all lanes to slots of the next level.

Shapes are fixed. A lane may have any number of children up to a bound, and none if it is inactive. There are two ways
to assign slots: `spread_children` has one for every possible child and needs no sums; `pack_children` leaves no gaps,
and where there are more children than slots it keeps a random subset, every child with the same probability.

`pack_children` needs one prefix sum, which `jnp.cumsum` computes: on a CPU an associative scan alone is faster, but
whole traversals with it take a tenth longer to run and half as long again to compile. To find parents, every lane
writes its number to its first slot, and each slot takes the maximum over as many slots before it as a lane may have
children: this takes few passes over neighbours, where a binary search would gather once per halving.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from gdlx.solvers.mccfr import categorical

MAX_SLOTS = 1 << 20


class Children(NamedTuple):
    """Axes: L lanes, S slots for their children."""

    parent: jax.Array | None  # [S] int32, lane; None: lane s modulo L of slot s
    rank: jax.Array  # [S] int32, index among its parent's children
    is_active: jax.Array  # [S] bool, whether the slot holds a child
    factor: jax.Array | None  # [] float, 1 / probability that a child is kept; None: all are
    total: jax.Array  # [] int32, number of children before any were dropped


def spread_children(counts: jax.Array, most: int) -> Children:
    """Assigns `most` slots to each lane [L], the first children of all lanes first."""
    rank = jnp.repeat(jnp.arange(most, dtype=jnp.int32), len(counts))
    return Children(None, rank, rank < jnp.tile(counts, most), None, jnp.sum(counts))


def can_pack(lanes: int, most: int, slots: int) -> bool:
    """Returns whether `lanes` lanes with up to `most` children each can be packed into `slots` slots."""
    return _fraction_bits(lanes, most, slots) >= 4 and slots <= MAX_SLOTS


def _fraction_bits(lanes: int, most: int, slots: int) -> int:
    """Returns the number of fractional bits that can be used without overflow."""
    return 30 - max(lanes * most, slots).bit_length()


def pack_children(counts: jax.Array, most: int, slots: int, draw: jax.Array) -> Children:
    """Assigns contiguous slots to the children of all lanes [L]; `most` bounds the counts, `draw` is uniform in [0, 1).

    With N > S children, slot s takes child floor(s d + r), d at least N / S and r uniform in [0, d): systematic
    resampling, which keeps every child with probability exactly 1 / d. d and r are multiples of a power of two, small
    enough that d hardly exceeds N / S, and large enough for exact integer arithmetic.

    Raises:
      ValueError: If the lanes and slots are too many for exact integers (see `can_pack`).
    """
    bits = _fraction_bits(len(counts), most, slots)
    if not can_pack(len(counts), most, slots):
        raise ValueError(
            f"cannot pack up to {most} children of {len(counts)} lanes into {slots} slots; use a smaller batch"
        )
    unit = 1 << bits
    end = jnp.cumsum(counts, dtype=jnp.int32)
    start, total = end - counts, end[-1]
    stride = jnp.maximum(unit, -(-(total << bits) // slots))
    shift = jnp.where(stride > unit, jnp.minimum((draw * stride).astype(jnp.int32), stride - 1), 0)
    first = _ceil_div((start << bits) - shift, stride)
    # Of the lanes that begin at the same slot only the last one has children there.
    lane = jnp.arange(len(counts), dtype=jnp.int32)
    begins = jnp.zeros(slots + 1, jnp.int32).at[first].max(lane, mode="promise_in_bounds")
    parent = _running_max(begins[:-1], most)
    child = (jnp.arange(slots, dtype=jnp.int32) * stride + shift) >> bits
    is_active = child < total
    rank = jnp.where(is_active, child - categorical.take(start, parent), 0)
    # The barrier stops XLA from multiplying the strides of many levels before dividing, which overflows.
    factor: jax.Array = jax.lax.optimization_barrier(  # type: ignore[no-untyped-call]
        stride.astype(draw.dtype) / unit
    )
    return Children(parent, rank, is_active, factor, total)


def gather_from_parents(children: Children, numbers: jax.Array) -> jax.Array:
    """Gathers the parent's number for each slot: [L] to [S]."""
    if children.parent is None:
        return jnp.tile(numbers, len(children.rank) // len(numbers))
    return categorical.take(numbers, children.parent)


def sum_to_parents(children: Children, numbers: jax.Array, lanes: int) -> jax.Array:
    """Returns unbiased sums over the children of each lane: [S] to [L]. Numbers of empty slots must be 0."""
    if children.parent is None:
        parts = numbers.reshape(-1, lanes)
        return sum(parts[1:], start=parts[0])
    sums = jnp.zeros(lanes, numbers.dtype).at[children.parent].add(numbers, mode="promise_in_bounds")
    return sums if children.factor is None else sums * children.factor


def _running_max(numbers: jax.Array, window: int) -> jax.Array:
    """Returns the running maximum over at least `window` numbers up to each one."""
    reach = 1
    while reach < window:
        numbers = jnp.maximum(numbers, jnp.pad(numbers[:-reach], (reach, 0))) if reach < len(numbers) else numbers
        reach *= 2
    return numbers


def _ceil_div(number: jax.Array, by: jax.Array) -> jax.Array:
    """Divides integers and rounds up, without slow integer division.

    The float quotient is off by less than a half, as quotients are below 2^20.
    """
    near = jnp.round(number * (1 / by.astype(jnp.float32))).astype(jnp.int32)
    return near + (near * by < number)
