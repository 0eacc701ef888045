"""A key of 64 bits for what a player knows: equal for equal histories, and for unequal ones practically never.

An event (own move, percepts, own legal moves) is hashed to two words by adding random constants of its true bits; the
key is mixed with it by rounds of an invertible cipher (Speck 64, Beaulieu et al. 2013). Two histories that differ get
the same key with probability about 2^-64.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

Key = jax.Array  # [2] uint32
HashConstants = npt.NDArray[np.uint32]  # [width, 2]
_ROUNDS = 6


def hash_constants(width: int, salt: int) -> HashConstants:
    """The same in every run and version: saved tables are found by these keys."""
    raw = np.asarray(
        np.random.Philox(key=salt).random_raw(width), np.uint64
    )  # unlike its users, numpy never changes it
    return np.stack([raw >> np.uint64(32), raw & np.uint64(0xFFFFFFFF)], axis=1).astype(np.uint32)


def hash_bits(bits: jax.Array, table: HashConstants) -> Key:
    """bool[N], uint32[N, 2] -> uint32[2]"""
    return jnp.sum(jnp.where(bits[:, None], table, jnp.uint32(0)), axis=0, dtype=jnp.uint32)


def extend(key: Key, event: Key) -> Key:
    """The key of a history made longer by an event."""
    return jnp.stack(extend_words((key[0], key[1]), (event[0], event[1])))


def extend_words(key: tuple[Any, Any], event: tuple[Any, Any]) -> tuple[Any, Any]:
    """The same, word by word, of arrays of any shape, in jax or numpy."""
    x, y = key[0] ^ event[0], key[1] ^ event[1]
    for number in range(_ROUNDS):
        constant = np.uint32(0x9E3779B9 * (number + 1) & 0xFFFFFFFF)
        x = (((x >> 8) | (x << 24)) + y) ^ (constant + event[number % 2])
        y = ((y << 3) | (y >> 29)) ^ x
    return x, y
