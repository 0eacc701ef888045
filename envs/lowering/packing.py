"""Functions of one game's words that run on rows of 32 games per word when vmapped.

A caller writes and vmaps an unbatched function uint32[K] -> uint32[M] of words with the bits of one game. Under vmap
the bits are transposed, so that a row has one bit of 32 games in each word; the rows go through tapes, and come back,
inside any jit, scan, cond or further vmap of the caller. It is a separate primitive, because
jax.custom_batching.custom_vmap fails under a vmapped cond if its function has constants, as every tape has.
"""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.extend
import jax.numpy as jnp
from jax.interpreters import batching, mlir

GAMES_PER_WORD = 32
_CHUNK = 4  # words of a row that are next to each other in memory, and so the inner loop of a transposition
_barrier: Any = jax.lax.optimization_barrier

Rows = Callable[[jax.Array], jax.Array]  # uint32[32 K, W] -> uint32[32 M, W], the same in every word


def packed_call(function: Rows, words: jax.Array, outputs: int) -> jax.Array:
    """Calls a function of rows on uint32[K] words of one game. Returns uint32[outputs]."""
    found: jax.Array = _packed_call_p.bind(words, function=function, outputs=outputs)
    return found


def to_rows(words: jax.Array) -> jax.Array:
    """uint32[B, K] words of games -> uint32[32 K, W] rows, W a multiple of ceil(B / 32); missing games are zeros."""
    games, count = words.shape
    chunk = min(_CHUNK, -(-games // GAMES_PER_WORD))
    chunks = -(-games // (GAMES_PER_WORD * chunk))
    padded = jnp.pad(words, ((0, chunks * chunk * GAMES_PER_WORD - games), (0, 0)))
    lanes = padded.reshape(chunks, GAMES_PER_WORD, chunk, count).transpose(3, 1, 0, 2)
    return transpose_bits(lanes.reshape(count, GAMES_PER_WORD, chunks * chunk)).reshape(-1, chunks * chunk)


def to_words(rows: jax.Array, games: int) -> jax.Array:
    """uint32[32 K, W] rows -> uint32[B, K] words of games: the inverse of `to_rows`."""
    width = rows.shape[1]
    chunk = min(_CHUNK, width)
    lanes = transpose_bits(rows.reshape(-1, GAMES_PER_WORD, width))
    of_game = lanes.reshape(-1, GAMES_PER_WORD, width // chunk, chunk).transpose(2, 1, 3, 0)
    return of_game.reshape(GAMES_PER_WORD * width, -1)[:games]


def transpose_bits(squares: jax.Array) -> jax.Array:
    """uint32[.., 32, W] -> the same shape: bit b of row r becomes bit r of row b."""
    shape = squares.shape
    for width, mask in ((16, 0x0000FFFF), (8, 0x00FF00FF), (4, 0x0F0F0F0F), (2, 0x33333333), (1, 0x55555555)):
        pairs = squares.reshape(*shape[:-2], 16 // width, 2, width, shape[-1])
        low, high = pairs[..., 0, :, :], pairs[..., 1, :, :]
        moved = ((low >> jnp.uint32(width)) ^ high) & jnp.uint32(mask)
        exchanged = jnp.stack([low ^ (moved << jnp.uint32(width)), high ^ moved], axis=-3)
        squares = _barrier(exchanged).reshape(shape)  # else XLA computes every stage again for each of its uses
    return squares


def _evaluate(words: jax.Array, *, function: Rows, outputs: int) -> jax.Array:
    """uint32[.., K] -> uint32[.., outputs]"""
    games = math.prod(words.shape[:-1])
    rows = function(to_rows(words.reshape(games, words.shape[-1])))
    return to_words(rows, games).reshape(*words.shape[:-1], outputs)


def _shape(words: Any, *, function: Rows, outputs: int) -> Any:
    return words.update(shape=(*words.shape[:-1], outputs))


def _batch(values: tuple[jax.Array], axes: tuple[int], **params: Any) -> tuple[jax.Array, int]:
    (words,), (axis,) = values, axes
    return _packed_call_p.bind(jnp.moveaxis(words, axis, 0), **params), 0


_packed_call_p: Any = jax.extend.core.Primitive("packed_call")
_packed_call_p.def_impl(jax.jit(_evaluate, static_argnames=("function", "outputs")))
_packed_call_p.def_abstract_eval(_shape)
batching.primitive_batchers[_packed_call_p] = _batch
mlir.register_lowering(_packed_call_p, mlir.lower_fun(_evaluate, multiple_results=False))
