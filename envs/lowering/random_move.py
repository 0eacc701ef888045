"""Uniformly random legal moves of every role, without unpacking: bit-sliced arithmetic on many games at once.

A binary tree of ripple adders counts the legal bits; r = floor(u * count / 2^k) for k random bits u; then r descends
the tree, to the left where it is less than the left count. The result is one true bit per game. Counting and descending
are part of a tape. The product is not: as a loop over the bits of u, each adding the count and halving, it stays in the
registers of the processor and is many times faster.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from gdlx.envs.lowering import rng, tape

EXTRA_BITS = 16  # beyond those of the largest count: the relative error of a probability is at most 2^-16

_UNROLLED_BITS, _FUSED_ROUNDS = 4, 3
_barrier: Any = jax.lax.optimization_barrier

Number = list[tape.Literal]  # bits, the lowest first


class CountTree:
    """Counts of legal moves below a node; leaves are single moves."""

    def __init__(
        self, count: Number, size: int, left: "CountTree | None" = None, right: "CountTree | None" = None
    ) -> None:
        self.count, self.size, self.left, self.right = count, size, left, right


def count_legal(builder: tape.TapeBuilder, legal: Sequence[tape.Literal]) -> CountTree:
    """Counts the true literals, in a balanced tree."""
    if len(legal) == 1:
        return CountTree([legal[0]], 1)
    half = (len(legal) + 1) // 2
    left, right = count_legal(builder, legal[:half]), count_legal(builder, legal[half:])
    total = _add(builder, left.count, right.count)[: len(legal).bit_length()]
    return CountTree(total, len(legal), left, right)


def select_by_rank(
    builder: tape.TapeBuilder, tree: CountTree, rank: Number, legal: Sequence[tape.Literal]
) -> list[tape.Literal]:
    """The legal move of a rank, one-hot; all false if no move is legal."""
    chosen = [tape.FALSE] * len(legal)
    _descend(builder, tree, rank, tape.TRUE, 0, chosen)
    # If nothing is legal, the descent still ends at some move.
    return [builder.conjunction(bit, option) for bit, option in zip(chosen, legal, strict=True)]


def draw_ranks(streams: rng.Streams, counts: Sequence[jax.Array]) -> tuple[rng.Streams, list[jax.Array]]:
    """For each count (uint32[m, W], bits of one number per game), a uniformly random number below it, likewise."""
    rounds = EXTRA_BITS + max((count.shape[0] for count in counts), default=0)

    def halve(_: jax.Array, carry: tuple[rng.Streams, list[jax.Array]]) -> tuple[rng.Streams, list[jax.Array]]:
        streams, ranks = carry
        following = []
        for rank, count in zip(ranks, counts, strict=True):
            streams, word = rng.draw(streams)
            following.append(_add_and_halve(rank, count & word))
        return streams, following

    zeros = [jnp.zeros_like(count) for count in counts]
    return jax.lax.fori_loop(0, rounds, halve, (streams, zeros)) if counts else (streams, [])


def scale_count(drawn: jax.Array, count: jax.Array) -> jax.Array:
    """A number below uint32[m, W] counts, likewise, from uint32[k, W] random words: floor(drawn * count / 2^k)."""

    def halve(number: int | jax.Array, rank: jax.Array) -> jax.Array:
        return _add_and_halve(rank, count & drawn[number])

    rank = jnp.zeros_like(count)
    if len(count) > _UNROLLED_BITS:
        looped: jax.Array = jax.lax.fori_loop(0, len(drawn), halve, rank)
        return looped
    for number in range(len(drawn)):  # several times faster than the loop, if XLA does not fuse too many rounds
        rank = halve(number, rank) if number % _FUSED_ROUNDS else _barrier(halve(number, rank))
    return rank


def _add_and_halve(a: jax.Array, b: jax.Array) -> jax.Array:
    """floor((a + b) / 2) of bit-sliced numbers. floor((floor(x) + n) / 2) = floor((x + n) / 2) makes rounds exact."""
    carry = jnp.zeros_like(a[0])
    total = []
    for x, y in zip(a, b, strict=True):
        either = x ^ y
        total.append(either ^ carry)
        carry = (x & y) | (either & carry)
    return jnp.stack([*total[1:], carry])


def _add(builder: tape.TapeBuilder, a: Number, b: Number) -> Number:
    carry = tape.FALSE
    total = []
    for number in range(max(len(a), len(b))):
        x = a[number] if number < len(a) else tape.FALSE
        y = b[number] if number < len(b) else tape.FALSE
        either = builder.xor(x, y)
        total.append(builder.xor(either, carry))
        carry = builder.disjunction(builder.conjunction(x, y), builder.conjunction(either, carry))
    return [*total, carry]


def _descend(
    builder: tape.TapeBuilder, tree: CountTree, rank: Number, here: tape.Literal, first: int, chosen: list[tape.Literal]
) -> None:
    if tree.left is None or tree.right is None:
        chosen[first] = here
        return
    difference, less = _subtract(builder, rank, tree.left.count)
    left_bits, right_bits = tree.left.size.bit_length(), tree.right.size.bit_length()
    _descend(builder, tree.left, rank[:left_bits], builder.conjunction(here, less), first, chosen)
    there = builder.conjunction(here, less ^ 1)
    _descend(builder, tree.right, difference[:right_bits], there, first + tree.left.size, chosen)


def _subtract(builder: tape.TapeBuilder, a: Number, b: Number) -> tuple[Number, tape.Literal]:
    """a - b and whether a < b."""
    borrow = tape.FALSE
    difference = []
    for number in range(max(len(a), len(b))):
        x = a[number] if number < len(a) else tape.FALSE
        y = b[number] if number < len(b) else tape.FALSE
        either = builder.xor(x, y)
        difference.append(builder.xor(either, borrow))
        borrow = builder.disjunction(builder.conjunction(x ^ 1, y), builder.conjunction(either ^ 1, borrow))
    return difference, borrow
