"""The order in which a node first tries its joint actions: pseudo-random, computed without a table.

The n-th of J joint actions has the number (a n + b) mod J, where b and the prime a > J depend on the node. As a is
prime to J, every number occurs once. Numbers are read in mixed radix, the first player's digit the lowest; each digit
is the rank of a legal action.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np

# If there are more joint actions, each visit takes a pseudo-random one, as products must fit uint32.
MAX_JOINT_ACTIONS = 2**16


def _primes(count: int) -> list[int]:
    """Returns primes above MAX_JOINT_ACTIONS, far apart."""
    numbers = itertools.count(MAX_JOINT_ACTIONS + 1, 2)
    primes: list[int] = []
    for number in numbers:
        if len(primes) == count:
            break
        if number > MAX_JOINT_ACTIONS * (1 + len(primes)) and all(
            number % d for d in range(3, int(number**0.5) + 1, 2)
        ):
            primes.append(number)
    return primes


PRIMES = np.array(_primes(32), np.uint32)


def nth_joint_action(legal: jax.Array, n: jax.Array, keys: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
    """Returns the number of joint actions int32[K], and the n-th of them int32[P, K].

    `legal` is bool[P, A, K], `n` is int32[K], `keys` are two words uint32[K] of the nodes.
    """
    counts = jnp.maximum(jnp.sum(legal, axis=1, dtype=jnp.int32), 1)
    joint = jnp.minimum(jnp.prod(counts.astype(jnp.float32), axis=0), 2.0**30).astype(jnp.int32)
    within = jnp.minimum(joint, MAX_JOINT_ACTIONS).astype(jnp.uint32)
    factor = jnp.asarray(PRIMES)[keys[0] >> 27] % within
    number = (n.astype(jnp.uint32) * factor + keys[1] % within) % within
    # Too many to be enumerated: take digits from a hash of the visit and the node.
    hashed = (n.astype(jnp.uint32) * np.uint32(0x9E3779B1)) ^ keys[1]
    is_hashed = joint > MAX_JOINT_ACTIONS
    actions = []
    for player, count in enumerate(counts.astype(jnp.uint32)):
        hashed = (hashed ^ (hashed >> 15)) * np.uint32(0x85EBCA77) + np.uint32(player)
        digit = jnp.where(is_hashed, (hashed >> 8) % count, number % count).astype(jnp.int32)
        number = number // count
        rank = jnp.cumsum(legal[player], axis=0) - 1
        actions.append(jnp.argmax(legal[player] & (rank == digit), axis=0).astype(jnp.int32))
    return joint, jnp.stack(actions)
