"""Functions of one game's bits that, vmapped, run on 32 games a word.

A caller writes and vmaps an unbatched function bool[N] -> bool[U]. Under vmap the batch is packed into words, goes
through the tape as rows, and is unpacked again, inside whatever jit, scan or further vmap the caller has built.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import custom_batching

from gdlx.envs import lowering, tape

WORD = 32
Bits = jax.Array


def pack(bits: Bits) -> jax.Array:
    """bool[B, N] -> uint32[N, W] with W = ceil(B / 32); missing games are zeros."""
    games, width = bits.shape
    words = -(-games // WORD)
    padded = jnp.pad(bits, ((0, words * WORD - games), (0, 0))).reshape(words, WORD, width)
    lanes = jnp.arange(WORD, dtype=jnp.uint32)[None, :, None]
    return jnp.sum(padded.astype(jnp.uint32) << lanes, axis=1, dtype=jnp.uint32).T


def unpack(rows: jax.Array, games: int) -> Bits:
    """uint32[U, W] -> bool[B, U]."""
    lanes = jnp.arange(WORD, dtype=jnp.uint32)[None, :, None]
    bits = (rows.T[:, None, :] >> lanes) & jnp.uint32(1)
    return jnp.asarray(bits.reshape(-1, rows.shape[0])[:games], jnp.bool_)


def packed_function(program: tape.Tape, form: lowering.Form) -> Callable[[Bits], Bits]:
    """The function of a tape, from bool[N] to bool[U]."""

    @custom_batching.custom_vmap
    def many(bits: Bits) -> Bits:
        return unpack(lowering.run(program, pack(bits), form), bits.shape[0])

    @many.def_vmap
    def _(axis_size: int, is_batched: list[bool], bits: Bits) -> tuple[Bits, bool]:
        found: Bits = many(bits.reshape(-1, bits.shape[-1]))
        return found.reshape(*bits.shape[:-1], found.shape[-1]), True

    @custom_batching.custom_vmap
    def one(bits: Bits) -> Bits:
        found: Bits = many(bits[None])[0]
        return found

    @one.def_vmap
    def _(axis_size: int, is_batched: list[bool], bits: Bits) -> tuple[Bits, bool]:
        return many(bits), True

    function: Callable[[Bits], Bits] = one
    return function
