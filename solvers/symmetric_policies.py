"""Policies of trees without symmetric information sets, in the whole game and back."""

import dataclasses
from collections.abc import Iterable, Iterator

import numpy as np

from gdlx.envs import env
from gdlx.envs.trees import game_tree
from gdlx.envs.trees.factored import symmetry_group, unroll_blocks
from gdlx.propnet.common import errors
from gdlx.solvers import tabular_policies
from gdlx.solvers.mccfr import table_policy

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


def to_table(
    tree: game_tree.GameTree, policies: tabular_policies.Policies, group: symmetry_group.Group, game: env.Env
) -> table_policy.TablePolicy:
    """Returns policies of a tree without symmetric information sets as a table of all that the whole game has.

    Args:
      tree: the tree.
      policies: for every player the probability of each of its sequences.
      group: the symmetries that were left out.
      game: the environment of the game.
    """
    spread = []
    for player, policy in zip(tree.players, policies, strict=True):
        assert player.orbits is not None
        copies = player.orbits.copies
        spread.append(np.concatenate([[1.0], np.repeat(policy[1:] / copies[1:], copies[1:])]))
    keys, probabilities = [], []
    for image in images(tree, group):
        part = table_policy.tabular_rows(tuple(spread), game, image)
        keys.append(part[0])
        probabilities.append(part[1])
    joined = np.concatenate(keys, axis=1)
    # What symmetries keep has several equal images.
    _, first = np.unique(joined[0].astype(np.uint64) << np.uint64(32) | joined[1], return_index=True)
    return table_policy.from_arrays(joined[:, first], np.concatenate(probabilities)[first])


def images(tree: game_tree.GameTree, group: symmetry_group.Group) -> Iterator[game_tree.GameTree]:
    """Yields the images of the information sets of a tree without symmetric ones, with all actions that are alike.

    Together they are all information sets of the whole game; a place in one image corresponds to the same place in
    the others. The first image is that of the identity. Terminals are those of the tree, whose sequences are others.
    """
    for element in range(group.order):
        players = (
            _image(player, group.moves[number][element], group.percepts[number][element])
            for number, player in enumerate(tree.players)
        )
        yield dataclasses.replace(tree, players=tuple(players))


def from_images(tree: game_tree.GameTree, policies: Iterable[tabular_policies.Policies]) -> tabular_policies.Policies:
    """Returns policies of a tree without symmetric information sets from those of all its `images`.

    Args:
      tree: the tree.
      policies: for every image, in order, the probability of each sequence of every player.

    Raises:
      NotInvariantError: they are not the same in all images, so that the tree does not say how good they are.
    """
    first: tabular_policies.Policies = ()
    for image in policies:
        first = first or image
        for player, policy, other in zip(tree.players, first, image, strict=True):
            differs = np.abs(policy - other) > _ROUNDING
            if differs.any():
                assert player.orbits is not None
                place = int(np.argmax(differs))
                sequence = int(np.searchsorted(np.cumsum(player.orbits.copies), place, side="right"))
                infoset = int(np.searchsorted(player.first, sequence, side="right")) - 1
                raise NotInvariantError(
                    f"the policy of {player.name} is not symmetric: it plays with probability {policy[place]:g} at "
                    f"{player.labels[infoset]}, and with {other[place]:g} where symmetries lead from there; "
                    "evaluate it on the whole game"
                )
    reduced = []
    for player, policy in zip(tree.players, first, strict=True):
        assert player.orbits is not None
        starts = np.cumsum(player.orbits.copies) - player.orbits.copies
        reduced.append(tabular_policies.normalise(player, np.add.reduceat(policy, starts)))
    return tuple(reduced)


def _image(player: game_tree.Player, moves: symmetry_group.Longs, percepts: symmetry_group.Longs) -> game_tree.Player:
    """The information sets of a player with other moves and percepts, and all actions that are alike."""
    views, orbits = player.views, player.orbits
    assert isinstance(views, game_tree.InfosetTree)
    assert orbits is not None
    seen = np.empty_like(views.percepts)
    seen[:, percepts] = views.percepts

    def renamed(numbers: game_tree.Ints) -> game_tree.Ints:
        return np.where(numbers < 0, numbers, moves[numbers]).astype(np.int32)

    widths = np.add.reduceat(orbits.copies[1:], player.first[:-1] - 1) if player.sets else np.zeros(0, np.int32)
    action = np.concatenate([[-1], renamed(orbits.actions)]).astype(np.int32)
    return dataclasses.replace(
        player,
        first=np.concatenate([[1], 1 + np.cumsum(widths)]).astype(np.int32),
        action=action,
        action_name=action,
        action_names=player.action_names[: len(moves)],
        views=views._replace(move=renamed(views.move), percepts=seen, forced=renamed(views.forced)),
        orbits=None,
    )
