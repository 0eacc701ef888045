"""Tabular policies: a probability for every sequence, and conversion to and from the levels that solvers use.

A policy here is float64[S, ...]: the probability of every action at its information set, 1 for the empty sequence.
Further axes are a batch. Such a policy does not depend on how `sequence_form` lays out its tables.
"""

import itertools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from gdlx.envs.trees import device_arrays, game_tree, sequence_form
from gdlx.propnet.common import errors

Policy = npt.NDArray[np.float64]  # [S, ...]
Policies = tuple[Policy, ...]  # one for every player
Profile = tuple[tuple[jax.Array, ...], ...]  # P x L x [w, n, ...], as CFR stores it

_ROUNDING = 1e-4  # tolerance of sums of probabilities: those in files and in float32 are rounded


class PolicyError(errors.UserError, ValueError):
    """Numbers that are not a policy of the game."""


def to_levels(
    tree: game_tree.GameTree, layouts: Sequence[sequence_form.SequenceLayout], policies: Sequence[npt.ArrayLike]
) -> Profile:
    """Converts policies [S, ...] of all players to levels, in the default precision of jax."""
    return tuple(
        tuple(
            device_arrays.to_device(np.asarray(level, jnp.result_type(float)))
            for level in player_to_levels(layout, validate_shape(player, policy))
        )
        for player, layout, policy in zip(tree.players, layouts, policies, strict=True)
    )


def from_levels(
    tree: game_tree.GameTree, layouts: Sequence[sequence_form.SequenceLayout], profile: Profile
) -> Policies:
    """Converts levels to policies [S, ...] of all players, normalised again because float32 rounds."""
    batch = next((level.shape[2:] for levels in profile for level in levels), ())
    return tuple(
        normalise(player, player_from_levels(layout, levels, batch))
        for player, layout, levels in zip(tree.players, layouts, profile, strict=True)
    )


def player_to_levels(layout: sequence_form.SequenceLayout, vector: Policy) -> tuple[Policy, ...]:
    """Scatter numbers of a player's sequences [S, ...] into its tables [w, n, ...]; 0 where there is no action."""
    bounds = np.cumsum([1, *(width * sets for width, sets in layout.shapes)]).tolist()
    flat = np.zeros((bounds[-1], *vector.shape[1:]), vector.dtype)
    flat[layout.place] = vector
    return tuple(
        flat[begin:end].reshape(*shape, *vector.shape[1:])
        for begin, end, shape in zip(bounds, bounds[1:], layout.shapes, strict=False)
    )


def player_from_levels(
    layout: sequence_form.SequenceLayout, levels: Sequence[npt.ArrayLike], batch: tuple[int, ...] | None = None
) -> Policy:
    """The inverse: [S, ...], with 1 for the empty sequence. Pass `batch` for players that may have no tables."""
    tables = [np.asarray(level, np.float64) for level in levels]
    if batch is None:
        batch = tables[0].shape[2:] if tables else ()
    flat = np.concatenate([np.ones((1, *batch)), *(table.reshape(-1, *batch) for table in tables)])
    policy: Policy = flat[layout.place]
    return policy


def uniform(player: game_tree.Player) -> Policy:
    """Returns the uniform policy [S]."""
    return normalise(player, np.zeros(player.sequences))


def from_table(player: game_tree.Player, table: Policy) -> Policy:
    """Normalises cumulative policies in a table [A, I, ...], as samplers of unrolled games store them."""
    widths = np.diff(player.first)
    infoset = np.repeat(np.arange(player.sets), widths)
    action = np.arange(player.sequences - 1) - np.repeat(player.first[:-1] - 1, widths)
    return normalise(player, np.concatenate([np.ones((1, *table.shape[2:])), table[action, infoset]]))


def normalise(player: game_tree.Player, weights: npt.ArrayLike) -> Policy:
    """Returns the policy in proportion to weights [S, ...] >= 0; uniform at information sets where all are 0."""
    numbers = np.asarray(weights, np.float64)
    policy = np.ones_like(numbers)
    if player.sets:
        widths = np.diff(player.first)
        total = np.repeat(np.add.reduceat(numbers[1:], player.first[:-1] - 1, axis=0), widths, axis=0)
        copies = np.ones(player.sequences - 1) if player.orbits is None else player.orbits.copies[1:]
        even = copies / np.repeat(np.add.reduceat(copies, player.first[:-1] - 1), widths)
        even = even.reshape(-1, *[1] * (numbers.ndim - 1))
        policy[1:] = np.where(total > 0, numbers[1:] / np.where(total > 0, total, 1), even)
    return policy


def realization_plan(player: game_tree.Player, policy: Policy) -> Policy:
    """Returns the realization plan [S, ...]: the probability that a player takes all actions of a sequence."""
    reach = policy.copy()
    # Information sets are sorted by time step, so that the plan of every parent is computed before.
    for begin, end in step_ranges(player):
        first, last = player.first[begin], player.first[end]
        parent = np.repeat(player.parent[begin:end], np.diff(player.first[begin : end + 1]))
        reach[first:last] *= reach[parent]
    return reach


def step_ranges(player: game_tree.Player) -> list[tuple[int, int]]:
    """Returns the range of information sets of each time step, in order."""
    bounds = [*np.flatnonzero(np.diff(player.step, prepend=-1)).tolist(), player.sets]
    return list(itertools.pairwise(bounds))


def from_realization_plan(player: game_tree.Player, reach: npt.ArrayLike) -> Policy:
    """Returns the policy of a realization plan [S, ...]; uniform where the player's own plan never leads."""
    return normalise(player, reach)


def validate(player: game_tree.Player, policy: npt.ArrayLike) -> Policy:
    """Checks that a policy adds up to 1 at every information set, and removes rounding errors.

    Raises:
      PolicyError: the array has another shape, or its numbers are not probabilities.
    """
    numbers = validate_shape(player, policy)
    wrong = ~((numbers >= -_ROUNDING) & (numbers <= 1 + _ROUNDING))
    if wrong[1:].any():
        sequence = int(np.argwhere(wrong[1:])[0][0]) + 1
        infoset = int(np.searchsorted(player.first, sequence, side="right")) - 1
        number = numbers[sequence][wrong[sequence]].flat[0]
        action = player.action_names[player.action_name[sequence]]
        raise PolicyError(f"{player.name}, {player.labels[infoset]}: the probability of {action} is {number:g}")
    if player.sets:
        total = np.add.reduceat(numbers[1:], player.first[:-1] - 1, axis=0)
        off = np.abs(total - 1) > _ROUNDING
        if off.any():
            infoset = int(np.argwhere(off)[0][0])
            raise PolicyError(
                f"{player.name}, {player.labels[infoset]}: the probabilities of its actions "
                f"({', '.join(player.options(infoset))}) add up to {total[infoset][off[infoset]].flat[0]:g}, not 1"
            )
    return normalise(player, np.maximum(numbers, 0))


def validate_shape(player: game_tree.Player, policy: npt.ArrayLike) -> Policy:
    """Returns the policy as an array; raises PolicyError unless it has one number for each sequence."""
    numbers = np.asarray(policy, np.float64)
    if not numbers.ndim or len(numbers) != player.sequences:
        raise PolicyError(
            f"a policy of {player.name} is one probability for each of its {player.sequences} sequences, "
            f"not an array of shape {numbers.shape}"
        )
    return numbers
