"""Baselines of sampling into a hash table: what options are worth in states of the game, in a hash table of their own.

States are what the rules make of a history, whatever anybody knows of it: often far fewer than information sets, so
that more is known of each, and it says more, because nothing is hidden in it. Who chooses at the same time as others is
taken to choose after those before it: its baselines are for the state and their moves.

An option's baseline follows what came back from below it, b <- b + decay (v' - b) at each visit, all of a batch at
once. v' is the value that `outcome` carries back, but for the ratio policy / xi of the updated player, which is at most
1 here (Munos et al. 2016): a baseline may be biased, and should not be wild. Where nothing is known of an option yet,
the baseline of the choice before serves.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from gdlx.envs.views import info_key
from gdlx.solvers.mccfr import hash_table, table_rows

Keys = tuple[jax.Array, jax.Array]  # uint32[B] twice


class StateBaselines(NamedTuple):
    """Axes: R rows, the last one for what has no place; A moves; P players."""

    table: hash_table.Table
    value: tuple[jax.Array, ...]  # P x [R, A] float32, for each player; not a number where nothing is known
    representative: jax.Array  # [R] int32, scratch: which of the lanes that are at a row speaks for it


def init(players: int, moves: int, bits: int) -> StateBaselines:
    size = 2**bits + 1
    unknown = tuple(jnp.full((size, moves), jnp.nan, jnp.float32) for _ in range(players))
    return StateBaselines(hash_table.init(bits), unknown, jnp.zeros(size, jnp.int32))


def row_bytes(players: int, moves: int) -> int:
    return 4 * (players * moves + 3)


def keys_for_player(keys: Keys, number: int) -> Keys:
    """The key of a state at a player's choice."""
    high, low = info_key.extend_words(keys, (jnp.uint32(number + 1), jnp.uint32(0)))
    return high, low


def keys_after_action(keys: Keys, action: jax.Array) -> Keys:
    """The key of a state and one more of the moves that are made in it at once."""
    high, low = info_key.extend_words(keys, (action.astype(jnp.uint32), jnp.uint32(0)))
    return high, low


def find_or_insert(
    values: StateBaselines, keys: Keys, wanted: jax.Array, axis: str | None
) -> tuple[StateBaselines, jax.Array]:
    """Rows [B] of this device's lanes, once the states of all devices' lanes were added; -1 where there is none."""
    is_open = hash_table.has_capacity(values.table)
    high, low, adding = (
        table_rows.all_gather_lanes(part, axis)
        for part in (*(jnp.where(wanted, word, 0) for word in keys), wanted & is_open)
    )
    table, found, _ = hash_table.insert(values.table, (high, low), adding)
    return values._replace(table=table), jnp.where(wanted, table_rows.local_shard(found, wanted.shape[0], axis), -1)


def lookup(values: StateBaselines, player: int, row: jax.Array, guess: jax.Array) -> jax.Array:
    """[A, B] baselines; the guess [B] where there is none."""
    known = table_rows.gather(values.value[player], row)
    return jnp.where((row < 0) | jnp.isnan(known), guess, known)


def update(
    values: StateBaselines,
    player: int,
    visit: tuple[jax.Array, jax.Array, jax.Array],
    decay: jax.Array,
    axis: str | None,
) -> StateBaselines:
    """The baselines after visits: rows, actions and what came back from below, [B] each."""
    row, action, value = (table_rows.all_gather_lanes(part, axis) for part in visit)
    table = values.value[player]
    moves = table.shape[1]
    speaker, lane = table_rows.elect_representatives(values.representative, row)
    counts, total = (
        table_rows.sum_over_same_action(lane, action, part, moves) for part in (jnp.ones_like(value), value)
    )
    seen = total / counts
    old = table_rows.gather_action(table, row, action)
    learnt = jnp.where(jnp.isnan(old), seen, old + (1 - (1 - decay) ** counts) * (seen - old))
    after = table_rows.scatter_action(table, row, action, learnt)
    return values._replace(value=(*values.value[:player], after, *values.value[player + 1 :]), representative=speaker)
