"""Bits of games in words as arrays: 32 games in a word, which are unpacked along the last axis; numbers and hashes."""

import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from gdlx.envs.lowering import packing
from gdlx.envs.views import info_key

GAMES_PER_WORD = packing.GAMES_PER_WORD
_UNROLLED_ROWS = 128  # of a hash, at most
_ROWS_OF_PART = 8  # of a hash of more rows


def to_words(values: jax.Array, words: int) -> jax.Array:
    """[.., B] -> [.., 32, W]"""
    missing = words * GAMES_PER_WORD - values.shape[-1]
    padded = jnp.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, missing)])
    return padded.reshape(*values.shape[:-1], GAMES_PER_WORD, words)


def flatten(values: jax.Array, batch: int) -> jax.Array:
    """[.., 32, W] -> [.., B]"""
    return values.reshape(*values.shape[:-2], values.shape[-2] * values.shape[-1])[..., :batch]


def stack_players(parts: Sequence[jax.Array], width: int, like: jax.Array) -> jax.Array:
    """uint32[n, W] of each player -> uint32[P, width, W], padded with zeros."""
    padded = [jnp.pad(part, ((0, width - part.shape[0]), (0, 0))) for part in parts]
    return jnp.stack(padded) if padded else jnp.zeros((0, width, like.shape[1]), like.dtype)


def unpack_bits(rows: jax.Array) -> jax.Array:
    """uint32[.., W] -> uint32[.., 32, W], 0 or 1"""
    bits: jax.Array = (rows[..., None, :] >> np.arange(GAMES_PER_WORD, dtype=np.uint32)[:, None]) & jnp.uint32(1)
    return bits


def pack_number(numbers: jax.Array, bits: int, words: int) -> jax.Array:
    """int32[B] -> uint32[bits, W], the lowest bit first."""
    lanes = to_words(numbers.astype(jnp.uint32), words)
    places = np.arange(bits, dtype=np.uint32)[:, None]
    return pack_lanes([(lanes[n] >> places) & jnp.uint32(1) for n in range(GAMES_PER_WORD)])


def pack_lanes(bits: Sequence[jax.Array]) -> jax.Array:
    """Packs 32 arrays of 0 or 1 into the bits of one."""
    joined: jax.Array = functools.reduce(jnp.bitwise_or, (bit << jnp.uint32(n) for n, bit in enumerate(bits)))
    return joined


def unpack_number(rows: jax.Array, batch: int) -> jax.Array:
    """uint32[bits, W] -> int32[B]"""
    total = jnp.zeros((GAMES_PER_WORD, rows.shape[1]), jnp.uint32)
    for place, row in enumerate(rows):
        total |= unpack_bits(row) << jnp.uint32(place)
    return flatten(total.astype(jnp.int32), batch)


def hash_rows(events: jax.Array, table: info_key.HashConstants | jax.Array) -> tuple[jax.Array, jax.Array]:
    """uint32[P, E, .., W], uint32[E, 2] -> uint32[P, .., 32, W] twice: `info_key.hash_bits`, in few loops over words.

    A single loop is the fastest, but takes long to compile for many rows; those are added in parts.
    """
    if len(table) <= _UNROLLED_ROWS:
        zeros = jnp.zeros((events.shape[0], *events.shape[2:-1], GAMES_PER_WORD, events.shape[-1]), jnp.uint32)
        return _add_hashes((zeros, zeros), events, table)
    zeros = unpack_bits(events[:, 0]) & jnp.uint32(0)  # which varies over the same devices as the events
    missing = -len(table) % _ROWS_OF_PART
    parts = (len(table) + missing) // _ROWS_OF_PART
    padded = jnp.pad(events, ((0, 0), (0, missing), *((0, 0),) * (events.ndim - 2)))
    rows = jnp.moveaxis(padded.reshape(events.shape[0], parts, _ROWS_OF_PART, *events.shape[2:]), 1, 0)
    constants = jnp.pad(jnp.asarray(table), ((0, missing), (0, 0))).reshape(parts, _ROWS_OF_PART, 2)
    total, _ = jax.lax.scan(lambda total, part: (_add_hashes(total, *part), None), (zeros, zeros), (rows, constants))
    return total


def _add_hashes(
    total: tuple[jax.Array, jax.Array], events: jax.Array, table: jax.Array | info_key.HashConstants
) -> tuple[jax.Array, jax.Array]:
    """Adds uint32[P, E, .., W] events, each with its row of uint32[E, 2], to uint32[P, .., 32, W] twice."""
    first, second = total
    for number in range(events.shape[1]):
        mask = jnp.uint32(0) - unpack_bits(events[:, number])
        first, second = first + (mask & table[number, 0]), second + (mask & table[number, 1])
    return first, second
