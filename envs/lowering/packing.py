"""Functions of one game's bits that run on 32 games per word when vmapped.

A caller writes and vmaps an unbatched function bool[N] -> bool[U]. Under vmap the batch is packed into words, goes
through the tape as rows, and is unpacked, inside any jit, scan, cond or further vmap of the caller. It is a separate
primitive, because jax.custom_batching.custom_vmap fails under a vmapped cond if its function has constants, as every
tape has.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.extend
import jax.numpy as jnp
from jax.interpreters import batching, mlir

from gdlx.envs.lowering import lower, tape

GAMES_PER_WORD = 32
Bits = jax.Array


def pack(bits: Bits) -> jax.Array:
    """bool[B, N] -> uint32[N, W] with W = ceil(B / 32); missing games are zeros."""
    games, width = bits.shape
    words = -(-games // GAMES_PER_WORD)
    padded = jnp.pad(bits, ((0, words * GAMES_PER_WORD - games), (0, 0))).reshape(words, GAMES_PER_WORD, width)
    lanes = jnp.arange(GAMES_PER_WORD, dtype=jnp.uint32)[None, :, None]
    return jnp.sum(padded.astype(jnp.uint32) << lanes, axis=1, dtype=jnp.uint32).T


def unpack(rows: jax.Array, games: int) -> Bits:
    """uint32[U, W] -> bool[B, U]."""
    lanes = jnp.arange(GAMES_PER_WORD, dtype=jnp.uint32)[None, :, None]
    bits = (rows.T[:, None, :] >> lanes) & jnp.uint32(1)
    return jnp.asarray(bits.reshape(rows.shape[1] * GAMES_PER_WORD, rows.shape[0])[:games], jnp.bool_)


def packed_function(program: tape.Tape, form: lower.LoweringMode) -> Callable[[Bits], Bits]:
    """The function of a tape, from bool[N] to bool[U]."""
    return functools.partial(_packed_tape_p.bind, program=program, form=form)


def _evaluate(bits: Bits, *, program: tape.Tape, form: lower.LoweringMode) -> Bits:
    """bool[.., N] -> bool[.., U]"""
    games = math.prod(bits.shape[:-1])
    rows = lower.run(program, pack(bits.reshape(games, program.inputs)), form)
    return unpack(rows, games).reshape(*bits.shape[:-1], len(program.outputs))


def _shape(bits: Any, *, program: tape.Tape, form: lower.LoweringMode) -> Any:
    return bits.update(shape=(*bits.shape[:-1], len(program.outputs)))


def _batch(values: tuple[Bits], axes: tuple[int], **params: Any) -> tuple[Bits, int]:
    (bits,), (axis,) = values, axes
    return _packed_tape_p.bind(jnp.moveaxis(bits, axis, 0), **params), 0


_packed_tape_p: Any = jax.extend.core.Primitive("packed_tape")
_packed_tape_p.def_impl(jax.jit(_evaluate, static_argnames=("program", "form")))
_packed_tape_p.def_abstract_eval(_shape)
batching.primitive_batchers[_packed_tape_p] = _batch
mlir.register_lowering(_packed_tape_p, mlir.lower_fun(_evaluate, multiple_results=False))
