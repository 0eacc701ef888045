"""Linear algebra on the sequence form: realization plans, utilities, and backward induction of values.

All functions take arrays with any number of batch axes at the end: a batch of solvers is the same program on longer
rows, which suits memory and vector units. A vector of a player is a tuple of its levels [w, n, ...].
"""

import functools
import operator
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp

from gdlx.envs.trees import block_payoffs, sequence_form

Levels = tuple[jax.Array, ...]  # L x [w, n, ...]
InfosetValueFn = Callable[[int, jax.Array], jax.Array]  # (level, action values) -> value of each information set

_FEW = 16  # actions


def expand_like(array: jax.Array, like: jax.Array) -> jax.Array:
    """Appends axes of length 1 to an array of the game, for the batch axes of `like`."""
    return array.reshape(array.shape + (1,) * (like.ndim - array.ndim))


def sum_over_actions(options: jax.Array) -> jax.Array:
    """Sum over the actions of every information set, [w, n, ...] -> [n, ...].

    Few actions are added one by one, which XLA fuses with the operations before and after.
    """
    return _add(list(options)) if len(options) <= _FEW else options.sum(axis=0)


def max_over_actions(options: jax.Array) -> jax.Array:
    """Maximise over the actions of every information set, [w, n, ...] -> [n, ...]."""
    return functools.reduce(jnp.maximum, list(options)) if len(options) <= _FEW else options.max(axis=0)


def to_realization_plan(player: sequence_form.PlayerForm, policy: Levels) -> Levels:
    """Converts a policy to the probability that the player takes all actions of each sequence."""
    plan: list[jax.Array] = []
    for parent, choice in zip(player.parent, policy, strict=True):
        if plan:
            above = plan[-1].reshape(-1, *plan[-1].shape[2:])
            plan.append(above.at[parent].get(mode="promise_in_bounds") * choice)
        else:
            plan.append(choice)
    return tuple(plan)


def flatten(plan: Levels, batch: tuple[int, ...] = ()) -> jax.Array:
    """Concatenates levels to the flat vector of a player, the empty sequence first."""
    if not plan:
        return jnp.ones((1, *batch))
    one = jnp.ones((1, *plan[0].shape[2:]), plan[0].dtype)
    return jnp.concatenate([one, *(level.reshape(-1, *level.shape[2:]) for level in plan)])


def unflatten(player: sequence_form.PlayerForm, vector: jax.Array) -> Levels:
    """Splits a flat vector into levels, without the empty sequence."""
    levels = []
    start = 1
    for uniform in player.uniform:
        size = uniform.shape[0] * uniform.shape[1]  # fixed policies add batch axes
        levels.append(vector[start : start + size].reshape(*uniform.shape[:2], *vector.shape[1:]))
        start += size
    return tuple(levels)


def utilities(
    player: sequence_form.PlayerForm, others: Sequence[jax.Array], batch: tuple[int, ...] = ()
) -> tuple[jax.Array, Levels]:
    """Returns the expected payoff at the terminals of the empty sequence and of every other one.

    Args:
      player: the player.
      others: the flat realization plans of the other players.
      batch: the batch axes of plans, which a single player cannot infer from `others`.
    """
    sums = []
    for block in player.blocks:
        (plan,) = others
        sums.append(_product(block, plan.at[block.other].get(mode="promise_in_bounds")).reshape(-1, *batch))
    if len(player.entries.sequence):
        sums.append(_with_batch(_sum_entries(player.entries, others), batch))
    if player.factored is not None:
        sums.append(_with_batch(block_payoffs.add_up(player.factored, others), batch))
    every = jnp.concatenate([*sums, jnp.zeros((1, *batch), player.entries.payoff.dtype)])
    levels = tuple(every.at[source].get(mode="promise_in_bounds") for source in player.source)
    return every[player.root], levels


def _with_batch(sums: jax.Array, batch: tuple[int, ...]) -> jax.Array:
    """Adds the batch axes, which sums lack if there are no other players."""
    missing = len(batch) + 1 - sums.ndim
    return jnp.broadcast_to(sums.reshape(*sums.shape, *[1] * missing), (len(sums), *batch))


def _product(block: sequence_form.Block, reach: jax.Array) -> jax.Array:
    """Sum over the other player's sequences of every table."""
    match block:
        case sequence_form.WideBlock():
            return jnp.einsum("bmk...,bk...->bm...", block.payoff, reach)
        case sequence_form.TallBlock():
            return jnp.einsum("bkm...,bk...->bm...", block.payoff, reach)
        case sequence_form.SmallBlock():
            cells = [expand_like(p, r[None]) * r for p, r in zip(block.payoff, reach, strict=True)]
            return _add(cells)


def _add(arrays: Sequence[jax.Array]) -> jax.Array:
    return functools.reduce(operator.add, arrays)


def _sum_entries(entries: sequence_form.SparseEntries, others: Sequence[jax.Array]) -> jax.Array:
    reach = entries.payoff
    for places, plan in zip(entries.others, others, strict=True):
        factor = plan.at[places].get(mode="promise_in_bounds")
        reach = expand_like(reach, factor) * factor
    rows = len(entries.rows)
    return jax.ops.segment_sum(
        reach, entries.sequence, num_segments=rows, indices_are_sorted=True, mode="promise_in_bounds"
    )


def backup_values(
    player: sequence_form.PlayerForm,
    utility: tuple[jax.Array, Levels],
    value_of: InfosetValueFn,
) -> tuple[Levels, jax.Array]:
    """Returns the counterfactual values of all actions [w, n, ...] of every level, and the value of the game.

    `value_of(level, actions)` returns the value of each information set [n, ...]: the mean under a policy, or the best.
    """
    root, terminals = utility
    values: list[jax.Array] = []
    below: jax.Array | None = None
    for number in reversed(range(len(terminals))):
        actions = terminals[number] if below is None else terminals[number] + below.reshape(terminals[number].shape)
        values.insert(0, actions)
        infosets = value_of(number, actions)
        if number:
            above = terminals[number - 1].shape
            below = jax.ops.segment_sum(
                infosets,
                player.parent[number],
                num_segments=above[0] * above[1],
                indices_are_sorted=True,
                mode="promise_in_bounds",
            )
        else:
            root = root + infosets.sum(axis=0)
    return tuple(values), root
