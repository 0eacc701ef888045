"""Policies as one number for every sequence, as people and files have them, and as levels, as solvers have them.

A policy here is float64[S, ...]: the probability of every option at its information set, 1 for the empty sequence.
Further axes are a batch. Such a policy does not depend on how `sequence_form` lays out its tables.
"""

import itertools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from gdlx.envs.trees import game_tree, sequence_form
from gdlx.propnet.common import errors

Policy = npt.NDArray[np.float64]  # [S, ...]
Policies = tuple[Policy, ...]  # one for every player
Profile = tuple[tuple[jax.Array, ...], ...]  # P x L x [w, n, ...], as CFR keeps it

_ROUNDING = 1e-4  # by which probabilities may miss 1: those of files are rounded, those of float32 nearly so


class PolicyError(errors.UserError, ValueError):
    """Numbers that are no policy of the game."""


def to_levels(
    tree: game_tree.GameTree, layouts: Sequence[sequence_form.SequenceLayout], policies: Sequence[npt.ArrayLike]
) -> Profile:
    """[S, ...] of every player -> levels, in the precision that jax is set to."""
    return tuple(
        tuple(
            sequence_form.to_device(np.asarray(level, jnp.result_type(float)))
            for level in player_to_levels(own, validate_shape(player, policy))
        )
        for player, own, policy in zip(tree.players, layouts, policies, strict=True)
    )


def from_levels(
    tree: game_tree.GameTree, layouts: Sequence[sequence_form.SequenceLayout], profile: Profile
) -> Policies:
    """Levels -> [S, ...] of every player, which add up to 1 also after float32."""
    batch = next((level.shape[2:] for levels in profile for level in levels), ())
    return tuple(
        normalise(player, player_from_levels(own, levels, batch))
        for player, own, levels in zip(tree.players, layouts, profile, strict=True)
    )


def player_to_levels(own: sequence_form.SequenceLayout, vector: Policy) -> tuple[Policy, ...]:
    """What is given for every sequence [S, ...], in the tables [w, n, ...] of a player; 0 where there is no option."""
    bounds = np.cumsum([1, *(width * sets for width, sets in own.shapes)]).tolist()
    flat = np.zeros((bounds[-1], *vector.shape[1:]), vector.dtype)
    flat[own.place] = vector
    return tuple(
        flat[begin:end].reshape(*shape, *vector.shape[1:])
        for begin, end, shape in zip(bounds, bounds[1:], own.shapes, strict=False)
    )


def player_from_levels(
    own: sequence_form.SequenceLayout, levels: Sequence[npt.ArrayLike], batch: tuple[int, ...] | None = None
) -> Policy:
    """The inverse: [S, ...], with 1 for the empty sequence. Who never has a choice cannot tell the batch axes."""
    tables = [np.asarray(level, np.float64) for level in levels]
    if batch is None:
        batch = tables[0].shape[2:] if tables else ()
    flat = np.concatenate([np.ones((1, *batch)), *(table.reshape(-1, *batch) for table in tables)])
    found: Policy = flat[own.place]
    return found


def uniform(player: game_tree.Player) -> Policy:
    return normalise(player, np.zeros(player.sequences))


def from_table(player: game_tree.Player, table: Policy) -> Policy:
    """Of weights in a table [options, sets, ...], as samplers of unrolled games keep them."""
    widths = np.diff(player.first)
    column = np.repeat(np.arange(player.sets), widths)
    option = np.arange(player.sequences - 1) - np.repeat(player.first[:-1] - 1, widths)
    return normalise(player, np.concatenate([np.ones((1, *table.shape[2:])), table[option, column]]))


def normalise(player: game_tree.Player, weights: npt.ArrayLike) -> Policy:
    """Choices in proportion to weights [S, ...] that are 0 or more; uniform at sets where all are 0."""
    given = np.asarray(weights, np.float64)
    policy = np.ones_like(given)
    if player.sets:
        widths = np.diff(player.first)
        total = np.repeat(np.add.reduceat(given[1:], player.first[:-1] - 1, axis=0), widths, axis=0)
        even = np.repeat(1 / widths, widths).reshape(-1, *[1] * (given.ndim - 1))
        policy[1:] = np.where(total > 0, given[1:] / np.where(total > 0, total, 1), even)
    return policy


def realization_plan(player: game_tree.Player, policy: Policy) -> Policy:
    """[S, ...] the probability that a player makes all its choices up to each sequence."""
    reach = policy.copy()
    # Sets are in order of time, those of one step side by side: what leads to them is known by then.
    for begin, end in step_ranges(player):
        first, last = player.first[begin], player.first[end]
        parent = np.repeat(player.parent[begin:end], np.diff(player.first[begin : end + 1]))
        reach[first:last] *= reach[parent]
    return reach


def step_ranges(player: game_tree.Player) -> list[tuple[int, int]]:
    """The bounds of sets at the same time step, in order."""
    bounds = [*np.flatnonzero(np.diff(player.step, prepend=-1)).tolist(), player.sets]
    return list(itertools.pairwise(bounds))


def from_realization_plan(player: game_tree.Player, reach: npt.ArrayLike) -> Policy:
    """The policy of a plan [S, ...]; uniform at sets where the player itself never comes."""
    return normalise(player, reach)


def validate(player: game_tree.Player, policy: npt.ArrayLike) -> Policy:
    """A policy from outside: probabilities that add up to 1 at every set but for rounding, which is mended."""
    given = validate_shape(player, policy)
    wrong = ~((given >= -_ROUNDING) & (given <= 1 + _ROUNDING))
    if wrong[1:].any():
        sequence = int(np.argwhere(wrong[1:])[0][0]) + 1
        decision = int(np.searchsorted(player.first, sequence, side="right")) - 1
        number = given[sequence][wrong[sequence]].flat[0]
        option = player.action_names[player.action_name[sequence]]
        raise PolicyError(f"{player.name}, {player.labels[decision]}: the probability of {option} is {number:g}")
    if player.sets:
        total = np.add.reduceat(given[1:], player.first[:-1] - 1, axis=0)
        off = np.abs(total - 1) > _ROUNDING
        if off.any():
            decision = int(np.argwhere(off)[0][0])
            raise PolicyError(
                f"{player.name}, {player.labels[decision]}: the probabilities of its options "
                f"({', '.join(player.options(decision))}) add up to {total[decision][off[decision]].flat[0]:g}, not 1"
            )
    return normalise(player, np.maximum(given, 0))


def validate_shape(player: game_tree.Player, policy: npt.ArrayLike) -> Policy:
    given = np.asarray(policy, np.float64)
    if not given.ndim or len(given) != player.sequences:
        raise PolicyError(
            f"a policy of {player.name} is one probability for each of its {player.sequences} sequences; "
            f"given was an array of shape {given.shape}"
        )
    return given
