"""The order in which the joint moves of a node are made for the first time: pseudo-random, and kept in no table.

The n-th of J joint moves has the number (a n + b) mod J, where b and the prime a > J depend on the node. As a is prime
to J, every number comes once. Numbers are read as digits, the first player's the lowest, each of which is the rank of
a legal move.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np

MAX_JOINT_ACTIONS = (
    2**16
)  # joint moves that are made in turn, so that products are uint32; of more, any is taken at each visit


def _primes(count: int) -> list[int]:
    """Above MOST, far from one another."""
    numbers = itertools.count(MAX_JOINT_ACTIONS + 1, 2)
    found: list[int] = []
    for number in numbers:
        if len(found) == count:
            break
        if number > MAX_JOINT_ACTIONS * (1 + len(found)) and all(number % d for d in range(3, int(number**0.5) + 1, 2)):
            found.append(number)
    return found


PRIMES = np.array(_primes(32), np.uint32)


def nth_joint_action(legal: jax.Array, n: jax.Array, keys: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
    """int32[K] how many joint moves there are, and int32[P, K] the n-th of them, n int32[K].

    bool[P, A, K] are legal moves, uint32[K] twice the keys of nodes.
    """
    counts = jnp.maximum(jnp.sum(legal, axis=1, dtype=jnp.int32), 1)
    joint = jnp.minimum(jnp.prod(counts.astype(jnp.float32), axis=0), 2.0**30).astype(jnp.int32)
    within = jnp.minimum(joint, MAX_JOINT_ACTIONS).astype(jnp.uint32)
    factor = jnp.asarray(PRIMES)[keys[0] >> 27] % within
    number = (n.astype(jnp.uint32) * factor + keys[1] % within) % within
    # Too many to be counted: digits from a hash of the visit and the node.
    wild = (n.astype(jnp.uint32) * np.uint32(0x9E3779B1)) ^ keys[1]
    is_wild = joint > MAX_JOINT_ACTIONS
    actions = []
    for player, count in enumerate(counts.astype(jnp.uint32)):
        wild = (wild ^ (wild >> 15)) * np.uint32(0x85EBCA77) + np.uint32(player)
        digit = jnp.where(is_wild, (wild >> 8) % count, number % count).astype(jnp.int32)
        number = number // count
        rank = jnp.cumsum(legal[player], axis=0) - 1
        actions.append(jnp.argmax(legal[player] & (rank == digit), axis=0).astype(jnp.int32))
    return joint, jnp.stack(actions)
