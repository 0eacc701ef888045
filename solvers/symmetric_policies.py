"""Policies of trees without symmetric information sets, in the whole game and back."""

import numpy as np

from gdlx.envs.trees.factored import unroll_blocks
from gdlx.propnet.common import errors
from gdlx.solvers import tabular_policies

_ROUNDING = 1e-4  # of probabilities in files and in float32


class NotInvariantError(errors.UserError, ValueError):
    """A policy that symmetries of the game change."""


def to_whole(whole: unroll_blocks.WholeTree, policies: tabular_policies.Policies) -> tabular_policies.Policies:
    """Returns policies of the tree without symmetric information sets, for the whole tree.

    Args:
      whole: the whole tree.
      policies: for every player the probability of each sequence of the other tree.

    Returns:
      The probability of each sequence of the whole tree. Actions that one stood for share its probability.
    """
    lifted = []
    for player, of, policy in zip(whole.players, whole.representative, policies, strict=True):
        assert player.orbits is not None
        each = tabular_policies.validate_shape(player, policy) / player.orbits.copies
        lifted.append(each[of])
    return tuple(lifted)


def from_whole(whole: unroll_blocks.WholeTree, policies: tabular_policies.Policies) -> tabular_policies.Policies:
    """Returns policies of the whole tree for the tree without symmetric information sets.

    Args:
      whole: the whole tree.
      policies: for every player the probability of each of its sequences.

    Returns:
      The probability of each sequence of the other tree.

    Raises:
      NotInvariantError: a policy is not the same wherever symmetries exchange information sets; the other tree would
        not say how good it is.
    """
    reduced = []
    for number, (player, of, policy) in enumerate(zip(whole.players, whole.representative, policies, strict=True)):
        assert player.orbits is not None
        numbers = tabular_policies.validate_shape(whole.tree.players[number], policy)
        first = np.full(player.sequences, -1, np.int64)
        first[of[::-1]] = np.arange(len(of))[::-1]
        differs = np.abs(numbers - numbers[first[of]]) > _ROUNDING
        if differs.any():
            sequence = int(np.argmax(differs))
            tree = whole.tree.players[number]
            infoset = int(np.searchsorted(tree.first, sequence, side="right")) - 1
            raise NotInvariantError(
                f"the policy of {player.name} is not symmetric: {tree.action_names[tree.action_name[sequence]]} has "
                f"probability {numbers[sequence]:g} at {tree.labels[infoset]}, and {numbers[first[of[sequence]]]:g} in "
                "the same situation elsewhere; evaluate it on the whole game"
            )
        mean = np.bincount(of, numbers, minlength=player.sequences) / np.bincount(of, minlength=player.sequences)
        reduced.append(tabular_policies.normalise(player, mean * player.orbits.copies))
    return tuple(reduced)
