"""Small trees below given states, as deep as there is room, and regret matching+ on them.

    grow(game, active, weights, depth, room)   a tree of joint moves; its open ends are valued by random play,
                                              or by what the room says
    Solver(tree).iterate()                    one alternating iteration of CFR+ (Tammelin 2014), linear averages

Nodes that a player cannot tell apart share its policy: information sets are exact, by `Env.info_key`. The weights of
the first level are probabilities of chance and of whoever played before, as if nobody could have changed them: where
the first states are not all that anybody may think possible, this is no equilibrium (docs/search.md).
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


# Registers [R, N] and joint moves made [N] of states -> payoffs [P, N] that they are worth.
ValueFn = Callable[[npt.NDArray[np.bool_], npt.NDArray[np.int32]], Floats]


class Level(NamedTuple):
    """Nodes after the same number of joint moves. Axes: N nodes, P players."""

    parent: enumeration.Ints  # [N], in the level before
    actions: enumeration.Ints  # [P, N], the joint move that leads here
    share: Floats  # [N], probability of the outcome of chance; of first nodes their weight
    infosets: Ints  # [P, N], information sets of those who have a choice and make it in the tree; -1 elsewhere
    payoff: Floats  # [P, N], where nothing follows: exact, or by random play


class PlayerInfosets(NamedTuple):
    """Information sets of one player. Axes: I sets, A moves."""

    key: npt.NDArray[np.uint64]  # [I]
    legal: npt.NDArray[np.bool_]  # [I, A]


class Subtree(NamedTuple):
    levels: tuple[Level, ...]
    infosets: tuple[PlayerInfosets, ...]  # of every player
    is_complete: bool  # all its ends are ends of the game

    @property
    def nodes(self) -> int:
        return sum(len(level.parent) for level in self.levels)


@dataclasses.dataclass(frozen=True)
class SubtreeLimits:
    """`steps` is that of a random match; `rounds` so many value an open end, unless there are `values`."""

    nodes: int
    rounds: int
    steps: int
    values: ValueFn | None = None


def build_subtree(
    game: packed_env.PackedEnv,
    active: enumeration.ActiveGames,
    weights: Floats,
    depth: int,
    room: SubtreeLimits,
    key: jax.Array,
) -> Subtree | None:
    """At most `depth` joint moves deep, and less where there is no room; None if there is none for one."""
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
        number = int(enumeration.count_joint_actions(seen, {}).sum())
        nodes += number
        if not number or len(grown) > depth or nodes > room.nodes:
            break
        moves = enumeration.enumerate_joint_actions(seen, {})
        active = enumeration.apply_joint_actions(game, active, moves)
    if len(grown) == 1 and number:
        return None
    sets, in_sets = _numbered(grown)
    payoff = _values(game, active, grown[-1][1], room, key)
    levels = tuple(
        Level(moves.parent, moves.actions, moves.share, own, seen.payoff.astype(np.float64))
        for (moves, seen), own in zip(grown, in_sets, strict=True)
    )
    return Subtree((*levels[:-1], levels[-1]._replace(payoff=payoff)), sets, not number)


def _values(
    game: packed_env.PackedEnv,
    active: enumeration.ActiveGames,
    seen: enumeration.Snapshot,
    room: SubtreeLimits,
    key: jax.Array,
) -> Floats:
    """float64[P, N] payoffs of the last level."""
    if seen.ended.all():
        return seen.payoff.astype(np.float64)
    if room.values is not None:
        told = room.values(game.registers(seen.rows), game.steps(seen.rows))
        return np.where(seen.ended, seen.payoff.astype(np.float64), told)
    with jax.enable_x64(False):
        found = rollouts.mean_payoffs(game, active.games, key, np.int32(room.rounds), steps=room.steps)
    return np.asarray(found, np.float64)[:, active.lanes]


def _numbered(
    grown: list[tuple[enumeration.JointActions, enumeration.Snapshot]],
) -> tuple[tuple[PlayerInfosets, ...], list[Ints]]:
    """The sets of all levels but the last, in which nobody chooses, and for each level their numbers [P, N]."""
    every = [seen for _, seen in grown]
    bounds = np.cumsum([0, *(len(seen.ended) for seen in every)])
    numbers = np.full((every[0].legal.shape[0], bounds[-1]), -1, np.int64)
    sets = []
    for player in range(len(numbers)):
        legal = np.concatenate([seen.legal[player] for seen in every], axis=1)
        high, low = np.concatenate([seen.keys[:, player] for seen in every], axis=1).astype(np.uint64)
        key = high << np.uint64(32) | low
        chooses = np.flatnonzero(legal[:, : bounds[-2]].sum(axis=0) > 1)
        words = [(key[chooses] >> np.uint64(32)).astype(np.int64), low[chooses].astype(np.int64)]
        same = unique_rows.number_rows(words, [2**32, 2**32])
        numbers[player, chooses] = same.number
        example = chooses[same.example]
        sets.append(PlayerInfosets(key[example], legal[:, example].T))
    return tuple(sets), [numbers[:, a:b] for a, b in itertools.pairwise(bounds)]


class SubtreeSolver:
    """Regrets and averages on a tree. Axes: I sets of a player, A moves."""

    def __init__(self, tree: Subtree) -> None:
        self.tree = tree
        self.iterations = 0
        self.regret = [np.zeros(own.legal.shape) for own in tree.infosets]  # P x [I, A]
        self.cumulative_policy = [np.zeros(own.legal.shape) for own in tree.infosets]  # P x [I, A], of the average

    def iterate(self) -> None:
        self.iterations += 1
        for player in range(len(self.tree.infosets)):
            self._update(player)

    def average_policy(self, player: int, key: int) -> Floats | None:
        """[A] at the set with this key; the policy of now where the average never came; None if there is no set."""
        found = np.flatnonzero(self.tree.infosets[player].key == np.uint64(key))
        if not len(found):
            return None
        weight: Floats = self.cumulative_policy[player][found[0]]
        now: Floats = self._policy(player)[found[0]]
        return weight / weight.sum() if weight.sum() > 0 else now

    def _policy(self, player: int) -> Floats:
        return match_regrets(self.regret[player], self.tree.infosets[player].legal)

    def _update(self, player: int) -> None:
        """Counterfactual values of one player, its regrets and its average."""
        levels, legal = self.tree.levels, self.tree.infosets[player].legal
        policies = [self._policy(number) for number in range(len(self.tree.infosets))]
        flat = [np.append(policy.ravel(), 1.0) for policy in policies]
        own, others = [np.ones(len(levels[0].parent))], [levels[0].share]  # probabilities to come to each node
        taken = []
        for level, places in zip(levels[1:], self._places, strict=True):
            chosen = [policy[place] for policy, place in zip(flat, places, strict=True)]
            taken.append(chosen.pop(player))
            own.append(own[-1][level.parent] * taken[-1])
            others.append(functools.reduce(np.multiply, chosen, others[-1][level.parent] * level.share))
        gained, expected = np.zeros(legal.size + 1), np.zeros(len(legal))
        value = levels[-1].payoff[player] * others[-1]  # of every node, times the probability that others come to it
        for number in reversed(range(len(levels) - 1)):
            above, below = levels[number], levels[number + 1]
            gained += np.bincount(self._places[number][player], value, len(gained))
            mean = np.bincount(below.parent, value * taken[number], len(above.parent))
            value = np.where(self._has_children[number], mean, above.payoff[player] * others[number])
            at = np.flatnonzero(above.infosets[player] >= 0)
            sets = above.infosets[player][at]
            expected += np.bincount(sets, value[at], len(expected))
            reach = np.zeros(len(legal))
            reach[sets] = own[number][at]  # which is the same at all nodes of a set
            self.cumulative_policy[player] += self.iterations * reach[:, None] * policies[player]
        regret = self.regret[player] + gained[:-1].reshape(legal.shape) - expected[:, None]
        self.regret[player] = np.where(legal, np.maximum(regret, 0), 0)

    @functools.cached_property
    def _places(self) -> list[list[Ints]]:
        """For each level after the first and each player [N]: where the probability of its move is in its policy as one
        row, behind which there is a 1 for those without a choice.
        """
        found = []
        for above, below in itertools.pairwise(self.tree.levels):
            places = []
            for player, own in enumerate(self.tree.infosets):
                sets = above.infosets[player][below.parent]
                place = sets * own.legal.shape[1] + below.actions[player]
                places.append(np.where(sets >= 0, place, own.legal.size))
            found.append(places)
        return found

    @functools.cached_property
    def _has_children(self) -> list[npt.NDArray[np.bool_]]:
        """[N] of each level but the last."""
        return [
            np.bincount(below.parent, minlength=len(above.parent)) > 0
            for above, below in itertools.pairwise(self.tree.levels)
        ]


def match_regrets(regret: Floats, legal: npt.NDArray[np.bool_]) -> Floats:
    """[I, A] in proportion to positive regrets; uniform where there are none."""
    total = regret.sum(axis=1, keepdims=True)
    even: Floats = legal / np.maximum(legal.sum(axis=1, keepdims=True), 1)
    return np.where(total > 0, regret / np.where(total > 0, total, 1), even)
