"""Baselines for sampling into a hash table: estimated values of actions in game states, in a separate hash table.

A state is what the rules compute from a history, whatever the players know of it. There are often far fewer states than
information sets, so that each has more samples; and it is more informative, because nothing is hidden. A player that
acts simultaneously with others is treated as acting after the players before it: its baselines are keyed by the state
and their actions.

The baseline of an action tracks the values backed up through it, b <- b + decay (v' - b) at each visit, all visits of a
batch at once. v' is the value that `outcome_sampling` backs up, except that the ratio policy / xi of the updated player
is clipped at 1 (Munos et al. 2016): a baseline may be biased, but should have low variance. An action without a
baseline uses that of the previous action.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from gdlx.envs.views import info_key
from gdlx.solvers.mccfr import hash_table, table_rows

Keys = tuple[jax.Array, jax.Array]  # uint32[B] twice


class StateBaselines(NamedTuple):
    """Axes: R rows, the last one a dummy for states that are not in the table; A actions; P players."""

    table: hash_table.Table
    value: tuple[jax.Array, ...]  # P x [R, A] float32, value to each player; NaN where unknown
    representative: jax.Array  # [R] int32, scratch: representative lane of each row


def init(players: int, moves: int, bits: int) -> StateBaselines:
    """Returns an empty table of 2^bits rows, for `moves` actions."""
    size = 2**bits + 1
    unknown = tuple(jnp.full((size, moves), jnp.nan, jnp.float32) for _ in range(players))
    return StateBaselines(hash_table.init(bits), unknown, jnp.zeros(size, jnp.int32))


def row_bytes(players: int, moves: int) -> int:
    """Returns the memory of one row."""
    return 4 * (players * moves + 3)


def keys_for_player(keys: Keys, number: int) -> Keys:
    """Returns the key of a state where a player acts."""
    high, low = info_key.extend_words(keys, (jnp.uint32(number + 1), jnp.uint32(0)))
    return high, low


def keys_after_action(keys: Keys, action: jax.Array) -> Keys:
    """Returns the key of a state after one more of its simultaneous actions."""
    high, low = info_key.extend_words(keys, (action.astype(jnp.uint32), jnp.uint32(0)))
    return high, low


def find_or_insert(
    values: StateBaselines, keys: Keys, to_insert: jax.Array, axis: str | None
) -> tuple[StateBaselines, jax.Array]:
    """Adds the states of all devices' lanes; returns the rows [B] of this device's, -1 where there is none."""
    is_open = hash_table.has_capacity(values.table)
    high, low, adding = (
        table_rows.all_gather_lanes(part, axis)
        for part in (*(jnp.where(to_insert, word, 0) for word in keys), to_insert & is_open)
    )
    table, rows, _ = hash_table.insert(values.table, (high, low), adding)
    return values._replace(table=table), jnp.where(
        to_insert, table_rows.local_shard(rows, to_insert.shape[0], axis), -1
    )


def lookup(values: StateBaselines, player: int, row: jax.Array, guess: jax.Array) -> jax.Array:
    """Returns the baselines [A, B]; `guess` [B] where there is none."""
    known = table_rows.gather(values.value[player], row)
    return jnp.where((row < 0) | jnp.isnan(known), guess, known)


def update(
    values: StateBaselines,
    player: int,
    visit: tuple[jax.Array, jax.Array, jax.Array],
    decay: jax.Array,
    axis: str | None,
) -> StateBaselines:
    """Updates the baselines. A visit is a row, an action and the value backed up through it, [B] each."""
    row, action, value = (table_rows.all_gather_lanes(part, axis) for part in visit)
    table = values.value[player]
    moves = table.shape[1]
    representative, lane = table_rows.elect_representatives(values.representative, row)
    counts, total = (
        table_rows.sum_over_same_action(lane, action, part, moves) for part in (jnp.ones_like(value), value)
    )
    mean = total / counts
    old = table_rows.gather_action(table, row, action)
    new = jnp.where(jnp.isnan(old), mean, old + (1 - (1 - decay) ** counts) * (mean - old))
    after = table_rows.scatter_action(table, row, action, new)
    return values._replace(
        value=(*values.value[:player], after, *values.value[player + 1 :]), representative=representative
    )
