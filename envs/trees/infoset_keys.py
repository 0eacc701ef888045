"""Keys of the information sets of an unrolled game: the same as `State.info_key`, by the hash of `views/info_key.py`.

They look up the policies learned on the environment, which are in a hash table, for the information sets of a tree.
"""

import itertools

import numpy as np
import numpy.typing as npt

from gdlx.envs.trees import game_tree
from gdlx.envs.views import info_key

Keys = npt.NDArray[np.uint32]


def compute_infoset_keys(tree: game_tree.GameTree, number: int, moves: int) -> Keys:
    """[2, I] keys of the information sets of a player; `moves` is the number of moves of the player with the most."""
    player = tree.players[number]
    infosets = player.views
    if not isinstance(infosets, game_tree.InfosetTree):
        raise ValueError(f"{tree.name} was not unrolled from rules: its information sets have no keys")
    options, chosen = (info_key.hash_constants(moves, salt).T for salt in (1, 2))
    seen = np.zeros((2, len(infosets.percepts) + 1), np.uint32)  # the last column is for the start
    senses = info_key.hash_constants(len(infosets.percept_names), 3)
    for word in range(2):
        seen[word, :-1] = (infosets.percepts * senses[:, word]).sum(axis=1, dtype=np.uint32)
    event = _legal_hashes(player, infosets, options)
    later = infosets.parent >= 0
    event[:, later] += chosen[:, infosets.move[later]] + seen[:, infosets.percept[later]]
    waiting = options[:, infosets.forced] + chosen[:, infosets.forced]  # read only where a move is forced
    keys = np.zeros_like(event)
    for begin, end in _levels(infosets.parent):
        parent = infosets.parent[begin:end]
        before = np.where(parent >= 0, keys[:, parent], np.uint32(0))
        if infosets.waits is not None:
            waits = infosets.waits[begin:end]
            for step in range(int(waits.max(initial=0))):
                longer = info_key.extend_words((before[0], before[1]), (waiting[0, parent], waiting[1, parent]))
                before = np.where(waits > step, np.stack(longer), before)
        keys[:, begin:end] = info_key.extend_words((before[0], before[1]), (event[0, begin:end], event[1, begin:end]))
    decisions: Keys = keys[:, player.view]
    return decisions


def _legal_hashes(player: game_tree.Player, infosets: game_tree.InfosetTree, options: Keys) -> Keys:
    """[2, V] hashes of the legal moves of every information set: its actions, or the only move."""
    hashes = np.zeros((2, len(infosets.parent)), np.uint32)
    forced = infosets.forced >= 0
    hashes[:, forced] = options[:, infosets.forced[forced]]
    if player.sets:
        hashes[:, player.view] = np.add.reduceat(options[:, player.action[1:]], player.first[:-1] - 1, axis=1)
    return hashes


def _levels(parent: game_tree.Ints) -> list[tuple[int, int]]:
    """Ranges of information sets after the same number of moves; they are in order of time."""
    latest = np.maximum.accumulate(parent)
    bounds = [0, 1]
    while bounds[-1] < len(parent):
        # Information sets whose parents are in the level before.
        bounds.append(int(np.searchsorted(latest, bounds[-1])))
    return list(itertools.pairwise(bounds))
