"""How the sets of a player change: what each member becomes when the others and chance do something.

A kind is what happens to one member: its action, percept and legal moves afterwards, which decide the next information
set, and the next private state. A transition says for every private state which kinds are possible; it does not depend
on the set, so that equal sets in different worlds are extended once if they have the same transition.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gdlx.envs.trees import game_tree, unique_rows
from gdlx.envs.trees.factored import blocks, observations, ragged

Bools = blocks.Bools
Longs = blocks.Longs
# (information sets, moves) -> the sequences afterwards
SequenceAfterFn = Callable[[Longs, Longs], game_tree.Ints]

_CHUNK = 2**19  # members that are extended at once, so that intermediate results stay in the cache of a core


class Kinds(NamedTuple):
    """Axes: K kinds, L distinct rows of legal moves, S kinds of information sets."""

    move: Longs  # [K]
    is_end: Bools  # [K]
    private: Longs  # [K] private state afterwards
    infoset: Longs  # [K] which information set follows a given one
    infoset_move: Longs  # [S]
    infoset_percept: Longs  # [S]
    infoset_legal: Longs  # [S] row of `legal`
    legal: Bools  # [L, moves]


class Transitions(NamedTuple):
    """Axes: J joint actions, T transitions, Q private states."""

    kinds: Kinds
    of_joint: Longs  # [J] transition of each representative joint action, -1 for others
    is_end: Bools  # [T]
    options: ragged.Ragged  # [Q] all kinds that a private state may have at this level
    cells: ragged.Ragged  # [T * Q] those in one transition, as places in the private state's row of `options`

    @property
    def most_options(self) -> int:
        """The most kinds that a private state has."""
        return int(self.options.lengths.max(initial=1))


def find_transitions(
    game: blocks.FactoredGame,
    joint: observations.JointActions,
    views: observations.Views,
    player: int,
    chosen: list[Longs],
    terminal: Bools,
    states: int,
) -> Transitions:
    """Finds the transitions of one player.

    Args:
      game: the game.
      joint: the joint actions of the level.
      views: the player's side of them.
      player: the player.
      chosen: for every player, the actions that stand for those that are alike.
      terminal: whether each world afterwards is terminal.
      states: number of private states of the player before.
    """
    kept = np.ones(len(views.pair), np.bool_)
    canonical = list(views.moves)
    for other, role in enumerate(game.players):
        canonical[role] = chosen[other][views.world * game.sizes[role] + views.moves[role]]
        if other != player:
            kept &= canonical[role] == views.moves[role]
    world, private = views.world[kept], views.pair_private[views.pair[kept]]
    player_action = views.moves[game.players[player]][kept]
    of_row = joint.find(world, [move[kept] for move in canonical])
    following = joint.following[of_row]
    ends = terminal[following]
    kinds, kind = _kinds(game, joint, views, player, player_action, following, ends, kept)
    # The rows of a joint action are the pairs of a private state before and a kind.
    size = len(kinds.move)
    content = ragged.from_groups(of_row, private * size + kind, len(joint.world))
    rows = np.flatnonzero(content.lengths)
    content = content.take(rows)
    numbered = ragged.number_rows(content)
    of_joint = np.full(len(joint.world), -1, np.int64)
    of_joint[rows] = numbered.number
    distinct = content.take(numbered.example)
    number = np.repeat(np.arange(distinct.rows), distinct.lengths)
    before = distinct.items // size
    cell = number * states + before
    used, place = np.unique(distinct.items, return_inverse=True)  # sorted by private state
    options = ragged.Ragged(ragged.starts_of(np.bincount(used // size, minlength=states)), used % size)
    cells = ragged.Ragged(
        ragged.starts_of(np.bincount(cell, minlength=distinct.rows * states)), place - options.starts[before]
    )
    return Transitions(kinds, of_joint, terminal[joint.following[rows[numbered.example]]], options, cells)


def _kinds(
    game: blocks.FactoredGame,
    joint: observations.JointActions,
    views: observations.Views,
    player: int,
    player_action: Longs,
    following: Longs,
    ends: Bools,
    kept: Bools,
) -> tuple[Kinds, Longs]:
    """The distinct kinds, and the kind of every row that is kept."""
    percept = views.percept.number[kept].astype(np.int64)
    private = views.following[kept]
    # The legal moves afterwards belong to the information set. Nobody moves in a terminal world.
    alive = np.flatnonzero(~ends)
    after = unique_rows.number_rows(
        [following[alive], private[alive]], [joint.worlds.shape[1], views.private_states.shape[1]]
    )
    example = alive[after.example]
    rows = game.legal(
        game.states(joint.worlds[:, following[example]], player, views.private_states[:, private[example]]),
        game.players[player],
    )
    distinct = unique_rows.number_bit_columns(rows)
    legal = np.zeros(len(player_action), np.int64)
    legal[alive] = distinct.number[after.number]
    visible = [np.where(ends, 0, 1 + column) for column in (percept, legal)]
    infoset = unique_rows.number_rows(
        [player_action, *visible], [1 + int(c.max(initial=0)) for c in (player_action, *visible)]
    )
    columns = [infoset.number, ends, np.where(ends, 0, private)]
    kind = unique_rows.number_rows(columns, [infoset.size, 2, 1 + int(private.max(initial=0))])
    at, of_set = kind.example, infoset.example
    kinds = Kinds(
        player_action[at],
        ends[at],
        private[at],
        infoset.number[at].astype(np.int64),
        player_action[of_set],
        percept[of_set],
        legal[of_set],
        rows[:, distinct.example].T,
    )
    return kinds, kind.number.astype(np.int64)


class Extended(NamedTuple):
    """Sets after a joint action. Axes: C pairs of a set and a transition, S distinct sets."""

    size: Longs  # [C] members of the set afterwards
    number: Longs  # [C] row of `ends` or of `sets`
    sets: ragged.Ragged  # [S] member before * most options + place of its kind
    ends: ragged.Ragged  # sequences, where the game has ended


def extend(
    side: blocks.Side,
    transitions: Transitions,
    sequence_after: SequenceAfterFn,
    sets: Longs,
    numbers: Longs,
) -> Extended:
    """Applies transitions `numbers` [C] to the sets `sets` [C] of a player."""
    ended = transitions.is_end[numbers]
    size = np.zeros(len(sets), np.int64)
    number = np.zeros(len(sets), np.int64)
    results = []
    for which in (~ended, ended):
        places = np.flatnonzero(which)
        size[places], number[places], distinct = _extend(
            side, transitions, sequence_after, sets[places], numbers[places]
        )
        results.append(distinct)
    return Extended(size, number, *results)


def _extend(
    side: blocks.Side,
    transitions: Transitions,
    sequence_after: SequenceAfterFn,
    sets: Longs,
    numbers: Longs,
) -> tuple[Longs, Longs, ragged.Ragged]:
    """Sizes [C], numbers [C] of the distinct sets, and these."""
    sizes, parts, local = [np.zeros(0, np.int64)], [], [np.zeros(0, np.int64)]
    first = 0
    states, most = side.private_states.shape[1], transitions.most_options
    dtype = np.int32 if len(side.infoset) * most < 2**31 else np.int64
    ends = bool(len(numbers)) and bool(transitions.is_end[numbers[0]])
    for part in ragged.chunks(side.sets.lengths[sets], _CHUNK):
        before = side.sets.take(sets[part])
        cell = np.repeat(numbers[part] * states, before.lengths)
        cell += side.private[before.items]
        counts = transitions.cells.lengths[cell]
        option = transitions.cells.items[ragged.places_of(transitions.cells.starts[cell], counts)]
        member = np.repeat(before.items, counts)
        if ends:
            kind = transitions.options.items[transitions.options.starts[side.private[member]] + option]
            keys = sequence_after(side.infoset[member], transitions.kinds.move[kind])
        else:
            keys = (member.astype(np.int64) * most + option).astype(dtype)
        lengths = np.add.reduceat(np.append(counts, 0), before.starts[:-1]) * (before.lengths > 0)
        after = ragged.sort_rows(ragged.Ragged(ragged.starts_of(lengths), keys))
        distinct = ragged.number_rows(after)
        sizes.append(lengths)
        local.append(first + distinct.number)
        parts.append(after.take(distinct.example))
        first += distinct.size
    pool = ragged.concatenate(parts)
    del parts
    numbered = ragged.number_rows(pool)
    return np.concatenate(sizes), numbered.number[np.concatenate(local)].astype(np.int64), pool.take(numbered.example)
