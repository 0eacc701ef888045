"""The state of every information set of an unrolled game of states."""

import numpy as np

from gdlx.envs.states import known_state, state_index, state_labels, transitions
from gdlx.envs.trees import game_tree, unique_rows
from gdlx.propnet.circuits import propnet
from gdlx.propnet.simulate import machine

Words = state_labels.Words


def infoset_states(game: propnet.PropNet, tree: game_tree.GameTree, player: int) -> Words:
    """Returns the packed registers [I, W] of the states in which a player has a choice.

    Args:
      game: the rules that the tree was unrolled from.
      tree: a game of states, unrolled.
      player: index of the player.

    Raises:
      UnknownStateError: the player does not know the state somewhere.

    >>> from gdlx.envs.trees import unroll
    >>> from gdlx.propnet import games
    >>> rps = games.compile_game("rps")
    >>> infoset_states(rps, unroll.unroll(rps), 0).shape
    (1, 1)
    """
    views = tree.players[player].views
    if not isinstance(views, game_tree.InfosetTree) or views.waits is not None:
        raise known_state.UnknownStateError(f"{tree.name} was not unrolled step by step from rules")
    start = state_labels.pack_columns(machine.for_propnet(game).initial(1))
    words = np.zeros((len(views.parent), start.shape[1]), np.uint64)
    level = np.flatnonzero(views.parent < 0)
    words[level] = start
    children_order = np.argsort(views.parent, kind="stable")
    parents = views.parent[children_order]
    while len(level):
        begin, end = np.searchsorted(parents, level), np.searchsorted(parents, level, side="right")
        children = children_order[np.concatenate([np.arange(a, b) for a, b in zip(begin, end, strict=True)])]
        if len(children):
            words[children] = _following(game, tree, player, views, words, children)
        level = np.sort(children)
    return words[tree.players[player].view]


def _following(
    game: propnet.PropNet,
    tree: game_tree.GameTree,
    player: int,
    views: game_tree.InfosetTree,
    words: Words,
    children: game_tree.Longs,
) -> Words:
    """The states of information sets whose parents' states are known."""
    before = state_index.number_words(words[views.parent[children]])
    states = state_labels.unpack_columns(words[views.parent[children]][before.example], len(game.initial))
    judge = machine.for_propnet(game)
    role = [n for n, other in enumerate(game.roles) if not other.is_random][player]
    moves = len(game.roles[role].moves)
    following = np.zeros((len(children), words.shape[1]), np.uint64)
    reached = np.zeros(len(children), np.bool_)
    for part in transitions.expand(game, states, judge.legal(states), percepts_of=(player,)):
        percepts = np.concatenate([part.percepts[player], views.percepts[views.percept[children]].T], axis=1)
        rows = unique_rows.number_rows(
            [
                np.concatenate([part.state, before.number]),
                np.concatenate([part.moves[role], views.move[children]]),
                unique_rows.number_bit_columns(percepts).number,
            ],
            [before.size, moves, percepts.shape[1]],
        )
        edges = len(part.state)
        after = state_labels.pack_columns(part.following)
        by_row = np.full(rows.size, -1)
        by_row[rows.number[:edges]] = np.arange(edges)
        alive = ~judge.terminal_and_goals(part.following)[0]
        same = (after == after[by_row[rows.number[:edges]]]).all(axis=1)
        if (alive & ~same).any():
            raise known_state.UnknownStateError(
                f"{game.players[player].name} does not know the state everywhere in {tree.name}"
            )
        edge = by_row[rows.number[edges:]]
        following[edge >= 0] = after[edge[edge >= 0]]
        reached |= edge >= 0
    if not reached.all():
        raise known_state.UnknownStateError(f"the tree of {tree.name} was unrolled from other rules")
    return following
