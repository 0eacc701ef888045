"""The number of a player's information sets, from random walks in the tree that they form: Knuth's estimate again.

A walk is at an information set, and knows all states in which the player may be there. It takes one of the player's
actions, applies it to all of these with everything that the others may do, and continues at one of the information sets
that follow. A walk with k1, k2, .. ways to continue represents k1 k2 .. information sets, so that the mean over many is
an unbiased estimate of the number of information sets, however many histories each of them has.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gdlx.envs.packed import words
from gdlx.envs.trees import unique_rows
from gdlx.envs.trees.estimates import size_estimate
from gdlx.propnet.circuits import propnet
from gdlx.propnet.common import seeds
from gdlx.propnet.simulate import joint_actions, machine

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]

_WALKS = 256  # at once
_MAX_WALKS = 2**14
_STEPS = 500
_MAX_JOINT_ACTIONS = 2**17  # of all walks in one step; beyond that some walks are given up, and others count for them
_MIN_JOINT_ACTIONS = 2**9  # the same for propnets with so many gates that fewer are evaluated
_LENGTH = 64  # steps that walks take, for those
_WORK = 2**28  # joint actions times gates of a propnet, after which no further walks begin: about a second
_OVERHEAD = 2_000  # joint actions whose evaluation takes as long as that of none


class InfosetEstimate(NamedTuple):
    """Numbers of information sets of one player."""

    choices: size_estimate.Interval  # with several legal actions
    all: size_estimate.Interval  # those with one included


def estimate_infosets(propnet: propnet.PropNet, player: int, seed: int = 0, *, work: float = _WORK) -> InfosetEstimate:
    """Estimates how many information sets a player has in the whole game.

    Args:
      propnet: the compiled rules.
      player: number among the players.
      seed: of the walks.
      work: joint actions times gates that are evaluated, approximately.

    >>> from gdlx.propnet import games
    >>> print(estimate_infosets(games.compile_game("kuhn_poker"), 0).choices.low < 6)
    True
    """
    walks = _Walks(propnet, player, np.random.default_rng(seeds.non_negative(seed)), work)
    samples: list[Floats] = []
    while not samples or (walks.work < work and len(samples) * _WALKS < _MAX_WALKS and not walks.is_long):
        samples.append(walks.count(_WALKS))
    counts = np.concatenate(samples, axis=1)
    choices, everything = map(size_estimate.Interval.of_mean, counts)
    if walks.is_cut:  # parts of the game were not seen
        choices, everything = (interval._replace(high=np.inf) for interval in (choices, everything))
    return InfosetEstimate(choices, everything)


class _Walks:
    def __init__(self, propnet: propnet.PropNet, player: int, rng: np.random.Generator, work: float) -> None:
        self.machine, self.rng = machine.for_propnet(propnet), rng
        self.sizes = [len(role.moves) for role in propnet.roles]
        self.percept_sizes = [len(role.percepts) for role in propnet.roles]
        self.role = [n for n, role in enumerate(propnet.roles) if not role.is_random][player]
        self.gates = max(1, propnet.gates)
        self.enough = 4 * work  # after which walks end, wherever they are
        self.most = min(_MAX_JOINT_ACTIONS, max(_MIN_JOINT_ACTIONS, work / self.gates / _LENGTH))  # of a step
        self.work = 0.0
        self.is_cut = self.is_long = False

    def count(self, walks: int) -> Floats:
        """[2, walks] information sets with a choice, and all, that each of so many walks stands for."""
        counts = np.zeros((2, walks))
        weight = np.ones(walks)
        owner = np.arange(walks)
        states, owner = self._alive(self.machine.initial(walks), owner)
        for _ in range(_STEPS):
            if not len(owner):
                return counts
            if self.work > self.enough:
                break
            legal = words.unpack(self.machine.legal(words.pack(states)), len(owner))
            owner, states, legal = self._thin(owner, states, legal, weight)
            role_legal = machine.split_rows(legal, self.sizes)[self.role]
            present, first = np.unique(owner, return_index=True)
            width = role_legal[:, first].sum(axis=0)
            counts[0, present] += np.where(width > 1, weight[present], 0)
            counts[1, present] += weight[present]
            states, owner, children = self._continue(owner, states, legal, present, first)
            with np.errstate(over="ignore"):
                weight[present] *= width * children
        self.is_cut = self.is_long = True
        return counts

    def _thin(self, owner: Longs, states: Bools, legal: Bools, weight: Floats) -> tuple[Longs, Bools, Bools]:
        """Gives up walks, or else states of a walk, where all together have too many joint actions."""
        actions = np.prod(
            [rows.sum(axis=0, dtype=np.float64) for rows in machine.split_rows(legal, self.sizes)], axis=0
        )
        actions /= np.maximum(1, machine.split_rows(legal, self.sizes)[self.role].sum(axis=0))
        self.work += (_OVERHEAD + min(float(actions.sum()), self.most)) * self.gates
        kept = np.ones(len(owner), np.bool_)
        excess = float(actions.sum()) / self.most
        if excess > 1:
            present = np.unique(owner)
            survivors = self.rng.permutation(present)[: max(1, int(len(present) / excess))]
            weight[survivors] *= len(present) / len(survivors)
            kept = np.isin(owner, survivors)
            if float(actions[kept].sum()) > 2 * self.most and len(survivors) == 1:
                places = np.flatnonzero(kept)
                kept = np.zeros(len(owner), np.bool_)
                kept[places[: max(1, int(len(places) * self.most / actions[places].sum()))]] = True
                self.is_cut = True
        return owner[kept], states[:, kept], legal[:, kept]

    def _continue(
        self, owner: Longs, states: Bools, legal: Bools, present: Longs, first: Longs
    ) -> tuple[Bools, Longs, Longs]:
        """The states and walks after one action of the player in each, and how many information sets follow it."""
        role_legal = machine.split_rows(legal, self.sizes)[self.role]
        options = role_legal[:, first]
        chosen = np.where(options, self.rng.random(options.shape), -1.0).argmax(axis=0)
        walk = np.searchsorted(present, owner)
        limited = list(machine.split_rows(legal, self.sizes))
        limited[self.role] = np.arange(len(options))[:, None] == chosen[walk]
        column, moves = joint_actions.enumerate_joint_actions(np.concatenate(limited), self.sizes)
        after, sees = words.move_packed(self.machine, states[:, column], joint_actions.one_hot_rows(moves, self.sizes))
        (places,) = np.nonzero(self._is_alive(after))
        after, walk = after[:, places], walk[column[places]]
        if not len(places):
            return after, walk, np.zeros(len(present), np.int64)
        percepts = machine.split_rows(sees[:, places], self.percept_sizes)[self.role]
        rows = machine.split_rows(words.unpack(self.machine.legal(words.pack(after)), len(places)), self.sizes)
        views = [unique_rows.number_bit_columns(bits) for bits in (percepts, rows[self.role])]
        child = unique_rows.number_rows(
            [walk, *(view.number for view in views)], [len(present), *(max(1, view.size) for view in views)]
        )
        of_walk = walk[child.example]  # ascending, because children are numbered in this order
        counts = np.bincount(of_walk, minlength=len(present))
        begin = np.searchsorted(of_walk, np.arange(len(present)))
        taken = begin + np.floor(self.rng.random(len(present)) * counts).astype(np.int64)
        kept = np.flatnonzero(child.number == taken[walk])
        after, walk = after[:, kept], walk[kept]
        state = unique_rows.number_bit_columns(after)
        distinct = unique_rows.number_rows([walk, state.number], [len(present), max(1, state.size)]).example
        return after[:, distinct], present[walk[distinct]], counts

    def _alive(self, states: Bools, owner: Longs) -> tuple[Bools, Longs]:
        alive = self._is_alive(states)
        return states[:, alive], owner[alive]

    def _is_alive(self, states: Bools) -> Bools:
        """Whether the game goes on: states are not terminal, and every role has a legal move."""
        packed = words.pack(states)
        terminal, _ = self.machine.terminal_and_goals(packed)
        legal = machine.split_rows(words.unpack(self.machine.legal(packed), states.shape[1]), self.sizes)
        playable: Bools = np.all([rows.any(axis=0) for rows in legal], axis=0)
        goes_on: Bools = playable & ~words.unpack(np.asarray(terminal)[None], states.shape[1])[0]
        return goes_on
