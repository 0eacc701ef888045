"""64-bit keys of information sets: equal for equal action-observation histories, and almost never otherwise.

An event (a player's action, percepts and legal actions) is hashed to two words by adding random constants of its true
bits; rounds of an invertible cipher mix it into the key (Speck 64, Beaulieu et al. 2013). Two different histories get
the same key with probability about 2^-64. `extend_words` is the one place where keys are made: `Env`, `PackedEnv` and
`BatchedEnv` call it at every step, `ActionObservationHistory` for one player, `envs/trees/infoset_keys.py` for a tree.
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
    """Random constants, the same in every run and version: saved tables are indexed by these keys."""
    # The raw stream is stable across numpy versions, unlike the distributions built on it.
    raw = np.asarray(np.random.Philox(key=salt).random_raw(width), np.uint64)
    return np.stack([raw >> np.uint64(32), raw & np.uint64(0xFFFFFFFF)], axis=1).astype(np.uint32)


def hash_bits(bits: jax.Array, table: HashConstants | jax.Array) -> Key:
    """bool[N], uint32[N, 2] -> uint32[2]"""
    return jnp.sum(jnp.where(bits[:, None], table, jnp.uint32(0)), axis=0, dtype=jnp.uint32)


def extend(key: Key, event: Key) -> Key:
    """The key of a history extended by an event."""
    return jnp.stack(extend_words((key[0], key[1]), (event[0], event[1])))


def extend_words(key: tuple[Any, Any], event: tuple[Any, Any]) -> tuple[Any, Any]:
    """The same, word by word, for arrays of any shape, in jax or numpy."""
    x, y = key[0] ^ event[0], key[1] ^ event[1]
    for number in range(_ROUNDS):
        constant = np.uint32(0x9E3779B9 * (number + 1) & 0xFFFFFFFF)
        x = (((x >> 8) | (x << 24)) + y) ^ (constant + event[number % 2])
        y = ((y << 3) | (y >> 29)) ^ x
    return x, y
