"""Depth-limited subtrees from a set of root states, and CFR+ on them.

    build_subtree(game, active, weights, depth, limits, key)   a tree of joint actions; leaves that are not terminal
                                                               are valued by random rollouts, or by `limits.values`
    SubtreeSolver(tree).iterate()                              one alternating iteration of CFR+ (Tammelin 2014), with
                                                               linear averaging

Nodes that a player cannot distinguish share its policy: information sets are distinguished by `State.info_key`, a
hash of 64 bits. The weights of the root states are treated as fixed chance probabilities, as if no player could have
influenced them: if the roots are not all states that some player considers possible, the solution is not an equilibrium
(docs/concepts/online-search.md).
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np
import numpy.typing as npt

from gdlx.envs.packed import packed_env
from gdlx.envs.trees import unique_rows
from gdlx.solvers.search import enumeration, rollouts

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

# Registers [R, N] and steps so far [N] of states -> their values [P, N].
ValueFn = Callable[[npt.NDArray[np.bool_], npt.NDArray[np.int32]], Floats]


class Level(NamedTuple):
    """Nodes at the same depth. Axes: N nodes, P players."""

    parent: enumeration.Ints  # [N], in the previous level
    actions: enumeration.Ints  # [P, N], the joint action that leads here
    share: Floats  # [N], probability of the outcome of chance; in the first level the weight of the root
    infosets: Ints  # [P, N], information sets of players who have a choice within the tree; -1 elsewhere
    payoff: Floats  # [P, N], of leaves: exact at terminals, else estimated


class PlayerInfosets(NamedTuple):
    """Information sets of one player. Axes: I information sets, A actions."""

    key: npt.NDArray[np.uint64]  # [I]
    legal: npt.NDArray[np.bool_]  # [I, A]


class Subtree(NamedTuple):
    """A depth-limited game tree."""

    levels: tuple[Level, ...]
    infosets: tuple[PlayerInfosets, ...]  # of every player
    is_complete: bool  # whether all leaves are terminal

    @property
    def nodes(self) -> int:
        return sum(len(level.parent) for level in self.levels)


@dataclasses.dataclass(frozen=True)
class SubtreeLimits:
    """Limits of a subtree. Leaves are valued by `values`, or else by `rounds` rollouts of at most `steps` steps."""

    nodes: int
    rounds: int
    steps: int
    values: ValueFn | None = None


def build_subtree(
    game: packed_env.PackedEnv,
    active: enumeration.ActiveGames,
    weights: Floats,
    depth: int,
    limits: SubtreeLimits,
    key: jax.Array,
) -> Subtree | None:
    """Builds a tree of at most `depth` joint actions and `limits.nodes` nodes; None if not one joint action fits."""
    players = game.env.num_players
    first = np.zeros((players, len(weights)), np.int32)
    moves = enumeration.JointActions(
        np.zeros(len(weights), np.int32), first, np.zeros(len(weights), np.float32), weights
    )
    grown: list[tuple[enumeration.JointActions, enumeration.Snapshot]] = []
    nodes = len(weights)
    while True:
        seen = enumeration.take_snapshot(game, active)
        grown.append((moves, seen))
        count = int(enumeration.count_joint_actions(seen, {}).sum())
        nodes += count
        if not count or len(grown) > depth or nodes > limits.nodes:
            break
        moves = enumeration.enumerate_joint_actions(seen, {})
        active = enumeration.apply_joint_actions(game, active, moves)
    if len(grown) == 1 and count:
        return None
    player_infosets, infosets_by_level = _number_infosets(grown)
    payoff = _leaf_values(game, active, grown[-1][1], limits, key)
    levels = tuple(
        Level(moves.parent, moves.actions, moves.share, infosets, seen.payoff.astype(np.float64))
        for (moves, seen), infosets in zip(grown, infosets_by_level, strict=True)
    )
    return Subtree((*levels[:-1], levels[-1]._replace(payoff=payoff)), player_infosets, not count)


def _leaf_values(
    game: packed_env.PackedEnv,
    active: enumeration.ActiveGames,
    seen: enumeration.Snapshot,
    limits: SubtreeLimits,
    key: jax.Array,
) -> Floats:
    """Returns the payoffs float64[P, N] of the last level: exact at terminals, else estimated."""
    if seen.ended.all():
        return seen.payoff.astype(np.float64)
    if limits.values is not None:
        values = limits.values(game.registers(seen.rows), game.steps(seen.rows))
        return np.where(seen.ended, seen.payoff.astype(np.float64), values)
    with jax.enable_x64(False):
        means = rollouts.mean_payoffs(game, active.games, key, np.int32(limits.rounds), steps=limits.steps)
    return np.asarray(means, np.float64)[:, active.lanes]


def _number_infosets(
    grown: list[tuple[enumeration.JointActions, enumeration.Snapshot]],
) -> tuple[tuple[PlayerInfosets, ...], list[Ints]]:
    """Number the information sets of all levels but the last, where nobody acts; also return them by level, [P, N]."""
    snapshots = [seen for _, seen in grown]
    bounds = np.cumsum([0, *(len(seen.ended) for seen in snapshots)])
    numbers = np.full((snapshots[0].legal.shape[0], bounds[-1]), -1, np.int64)
    infosets = []
    for player in range(len(numbers)):
        legal = np.concatenate([seen.legal[player] for seen in snapshots], axis=1)
        high, low = np.concatenate([seen.keys[:, player] for seen in snapshots], axis=1).astype(np.uint64)
        key = high << np.uint64(32) | low
        with_choice = np.flatnonzero(legal[:, : bounds[-2]].sum(axis=0) > 1)
        words = [(key[with_choice] >> np.uint64(32)).astype(np.int64), low[with_choice].astype(np.int64)]
        same = unique_rows.number_rows(words, [2**32, 2**32])
        numbers[player, with_choice] = same.number
        example = with_choice[same.example]
        infosets.append(PlayerInfosets(key[example], legal[:, example].T))
    return tuple(infosets), [numbers[:, a:b] for a, b in itertools.pairwise(bounds)]


class SubtreeSolver:
    """CFR+ on a subtree. Axes: I information sets of a player, A actions."""

    def __init__(self, tree: Subtree) -> None:
        self.tree = tree
        self.iterations = 0
        self.regret = [np.zeros(infosets.legal.shape) for infosets in tree.infosets]  # P x [I, A]
        self.cumulative_policy = [np.zeros(infosets.legal.shape) for infosets in tree.infosets]  # P x [I, A]

    def iterate(self) -> None:
        """Runs one alternating iteration."""
        self.iterations += 1
        for player in range(len(self.tree.infosets)):
            self._update(player)

    def average_policy(self, player: int, key: int) -> Floats | None:
        """Returns the policy [A] at the information set with this key, or None if it is not in the tree.

        This is the current policy where the average has no weight.
        """
        index = np.flatnonzero(self.tree.infosets[player].key == np.uint64(key))
        if not len(index):
            return None
        weight: Floats = self.cumulative_policy[player][index[0]]
        current: Floats = self._policy(player)[index[0]]
        return weight / weight.sum() if weight.sum() > 0 else current

    def _policy(self, player: int) -> Floats:
        return match_regrets(self.regret[player], self.tree.infosets[player].legal)

    def _update(self, player: int) -> None:
        """Computes the counterfactual values of one player, and updates its regrets and average."""
        levels, legal = self.tree.levels, self.tree.infosets[player].legal
        policies = [self._policy(number) for number in range(len(self.tree.infosets))]
        flat = [np.append(policy.ravel(), 1.0) for policy in policies]
        own_reach, other_reach = [np.ones(len(levels[0].parent))], [levels[0].share]  # reach probabilities of each node
        own_probs = []
        for level, places in zip(levels[1:], self._places, strict=True):
            chosen = [policy[place] for policy, place in zip(flat, places, strict=True)]
            own_probs.append(chosen.pop(player))
            own_reach.append(own_reach[-1][level.parent] * own_probs[-1])
            other_reach.append(functools.reduce(np.multiply, chosen, other_reach[-1][level.parent] * level.share))
        action_values, expected = np.zeros(legal.size + 1), np.zeros(len(legal))
        value = levels[-1].payoff[player] * other_reach[-1]  # of every node, times the reach of the others
        for depth in reversed(range(len(levels) - 1)):
            above, below = levels[depth], levels[depth + 1]
            action_values += np.bincount(self._places[depth][player], value, len(action_values))
            mean = np.bincount(below.parent, value * own_probs[depth], len(above.parent))
            value = np.where(self._has_children[depth], mean, above.payoff[player] * other_reach[depth])
            nodes = np.flatnonzero(above.infosets[player] >= 0)
            infosets = above.infosets[player][nodes]
            expected += np.bincount(infosets, value[nodes], len(expected))
            reach = np.zeros(len(legal))
            reach[infosets] = own_reach[depth][nodes]  # equal at all nodes of an information set
            self.cumulative_policy[player] += self.iterations * reach[:, None] * policies[player]
        regret = self.regret[player] + action_values[:-1].reshape(legal.shape) - expected[:, None]
        self.regret[player] = np.where(legal, np.maximum(regret, 0), 0)

    @functools.cached_property
    def _places(self) -> list[list[Ints]]:
        """For each level after the first and each player [N]: index of its action's probability in the flat policy.

        Players without a choice have the index after the last, where the probability is 1.
        """
        places_by_level = []
        for above, below in itertools.pairwise(self.tree.levels):
            places = []
            for player, player_infosets in enumerate(self.tree.infosets):
                infosets = above.infosets[player][below.parent]
                place = infosets * player_infosets.legal.shape[1] + below.actions[player]
                places.append(np.where(infosets >= 0, place, player_infosets.legal.size))
            places_by_level.append(places)
        return places_by_level

    @functools.cached_property
    def _has_children(self) -> list[npt.NDArray[np.bool_]]:
        """For each level but the last [N]: whether a node has children."""
        return [
            np.bincount(below.parent, minlength=len(above.parent)) > 0
            for above, below in itertools.pairwise(self.tree.levels)
        ]


def match_regrets(regret: Floats, legal: npt.NDArray[np.bool_]) -> Floats:
    """Returns policies [I, A] in proportion to regrets, which must not be negative; uniform where all are 0."""
    total = regret.sum(axis=1, keepdims=True)
    uniform: Floats = legal / np.maximum(legal.sum(axis=1, keepdims=True), 1)
    return np.where(total > 0, regret / np.where(total > 0, total, 1), uniform)
