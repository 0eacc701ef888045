"""Where the games of a batch lie in words, and their conversion to arrays with one entry for each game.

Chunks of K words come one after the other, and within a chunk lanes: game g is in chunk g // (32 K), in its word g % K,
lane g // K % 32. So a shard of whole chunks has consecutive games, and inner loops of packing and unpacking run over
the words of a chunk.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from gdlx.envs.lowering import packing

GAMES_PER_WORD = packing.GAMES_PER_WORD
CHUNK_WORDS = 16
CHUNK_GAMES = GAMES_PER_WORD * CHUNK_WORDS


def words_for(batch: int) -> int:
    """The number of words of a batch: whole chunks, the last one perhaps with unused lanes.

    >>> words_for(32), words_for(100), words_for(513)
    (1, 4, 32)
    """
    words = -(-batch // GAMES_PER_WORD)
    return words if words <= CHUNK_WORDS else -(-words // CHUNK_WORDS) * CHUNK_WORDS


def split(rows: jax.Array) -> jax.Array:
    """[.., W] -> [.., C, K] words of each chunk."""
    size = min(rows.shape[-1], CHUNK_WORDS)
    return rows.reshape(*rows.shape[:-1], rows.shape[-1] // size, size)


def unpack(rows: jax.Array) -> jax.Array:
    """uint32[.., W] -> uint32[.., 32 W], 0 or 1 for each game.

    >>> unpack(jnp.array([5], jnp.uint32))[:4].tolist()
    [1, 0, 1, 0]
    """
    lanes = np.arange(GAMES_PER_WORD, dtype=np.uint32)[:, None]
    bits: jax.Array = (split(rows)[..., None, :] >> lanes) & jnp.uint32(1)
    return bits.reshape(*rows.shape[:-1], GAMES_PER_WORD * rows.shape[-1])


def pack(bits: jax.Array, words: int) -> jax.Array:
    """uint32[.., B] of 0 or 1 -> uint32[.., W]; unused lanes are zeros."""
    missing = GAMES_PER_WORD * words - bits.shape[-1]
    padded = jnp.pad(bits, [(0, 0)] * (bits.ndim - 1) + [(0, missing)])
    size = min(words, CHUNK_WORDS)
    chunks = padded.reshape(*bits.shape[:-1], words // size, GAMES_PER_WORD, size)
    lanes = (chunks[..., lane, :] << jnp.uint32(lane) for lane in range(GAMES_PER_WORD))
    packed: jax.Array = functools.reduce(jnp.bitwise_or, lanes)
    return packed.reshape(*bits.shape[:-1], words)


def pack_numbers(numbers: jax.Array, bits: int, words: int) -> jax.Array:
    """integers[B] -> uint32[bits, W], the lowest bit first."""
    places = np.arange(bits, dtype=np.uint32)[:, None]
    return pack((numbers.astype(jnp.uint32) >> places) & jnp.uint32(1), words)


def unpack_numbers(rows: jax.Array) -> jax.Array:
    """uint32[.., bits, W] -> int32[.., 32 W], the lowest bit first."""
    places = np.arange(rows.shape[-2], dtype=np.uint32)[:, None]
    return jnp.sum(unpack(rows) << places, axis=-2, dtype=jnp.uint32).astype(jnp.int32)


def unpack_games(rows: jax.Array) -> jax.Array:
    """uint32[F, W] -> bool[32 W, F]: the bits of each game side by side.

    Squares of 32 rows and 32 lanes are transposed within words, so that what remains is to spread words of 32 features.
    """
    features, words = rows.shape
    groups = -(-features // 32)
    padded = jnp.pad(rows, ((0, 32 * groups - features), (0, 0)))
    of_lane = packing.transpose_bits(padded.reshape(groups, 32, words))  # [G, 32 lanes, W], feature f is bit f % 32
    size = min(words, CHUNK_WORDS)
    of_game = of_lane.reshape(groups, 32, words // size, size).transpose(2, 1, 3, 0)  # [C, 32, K, G]
    bits = (of_game[..., None] >> np.arange(32, dtype=np.uint32)) & jnp.uint32(1)
    games: jax.Array = bits.reshape(32 * words, 32 * groups)[:, :features] != 0
    return games
