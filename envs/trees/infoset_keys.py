"""Keys of the information sets of an unrolled game: the same as `Env.info_key` has in them.

They find what was learnt on the environment, in a hash table, for the sets that a tree has names for.
"""

import itertools

import numpy as np
import numpy.typing as npt

from gdlx.envs.trees import game_tree
from gdlx.envs.views import info_key

Keys = npt.NDArray[np.uint32]


def compute_infoset_keys(tree: game_tree.GameTree, number: int, moves: int) -> Keys:
    """[2, I] of the decisions of a player; `moves` is the number of moves of the player with the most."""
    player = tree.players[number]
    trail = player.views
    if not isinstance(trail, game_tree.InfosetTree):
        raise ValueError(f"{tree.name} was not unrolled from rules: its information sets have no keys")
    options, made = (info_key.hash_constants(moves, salt).T for salt in (1, 2))
    seen = np.zeros((2, len(trail.percepts) + 1), np.uint32)  # the last one for the start
    senses = info_key.hash_constants(len(trail.percept_names), 3)
    for word in range(2):
        seen[word, :-1] = (trail.percepts * senses[:, word]).sum(axis=1, dtype=np.uint32)
    event = _legal_hashes(player, trail, options)
    later = trail.parent >= 0
    event[:, later] += made[:, trail.move[later]] + seen[:, trail.percept[later]]
    keys = np.zeros_like(event)
    for begin, end in _levels(trail.parent):
        before = np.where(trail.parent[begin:end] >= 0, keys[:, trail.parent[begin:end]], np.uint32(0))
        keys[:, begin:end] = info_key.extend_words((before[0], before[1]), (event[0, begin:end], event[1, begin:end]))
    found: Keys = keys[:, player.view]
    return found


def _legal_hashes(player: game_tree.Player, trail: game_tree.InfosetTree, options: Keys) -> Keys:
    """[2, V] of the legal moves of every set: its options, or the one move that was made there."""
    found = np.zeros((2, len(trail.parent)), np.uint32)
    forced = (trail.parent >= 0) & ~trail.was_choice
    found[:, trail.parent[forced]] = options[:, trail.move[forced]]
    if player.sets:
        found[:, player.view] = np.add.reduceat(options[:, player.action[1:]], player.first[:-1] - 1, axis=1)
    return found


def _levels(parent: game_tree.Ints) -> list[tuple[int, int]]:
    """Ranges of sets after the same number of moves: sets are in order of time."""
    latest = np.maximum.accumulate(parent)
    bounds = [0, 1]
    while bounds[-1] < len(parent):
        # Those whose parents are in the level before.
        bounds.append(int(np.searchsorted(latest, bounds[-1])))
    return list(itertools.pairwise(bounds))
