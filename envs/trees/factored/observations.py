"""One joint action in every world of a level: what follows, what each player perceives, and which actions are alike.

Two actions of a player are alike in a world if, whatever the others do, they lead to the same world, and every other
player perceives the same and keeps the same private registers. Histories that differ in actions that are alike stay in
one block.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from gdlx.envs.packed import words
from gdlx.envs.trees import unique_rows
from gdlx.envs.trees.factored import blocks, ragged
from gdlx.propnet.simulate import joint_actions

Bools = blocks.Bools
Longs = blocks.Longs

_STATES_PER_BATCH = 2**18  # on which the propnet is evaluated at once


class JointActions(NamedTuple):
    """Every joint action that is legal for some private states of the players. Axes: J joint actions, W worlds."""

    world: Longs  # [J] the world before; ascending
    moves: list[Longs]  # of every role [J]
    code: Longs  # [J] world and moves as one number; ascending
    radix: list[int]  # of every role
    following: Longs  # [J] column of `worlds`
    worlds: Bools  # [registers of the world, W'] distinct worlds afterwards
    chance: blocks.Floats  # [W] probability of each action of chance
    possible: list[Bools]  # of every role [moves, W], legal for some private state

    def find(self, world: Longs, moves: list[Longs]) -> Longs:
        """The number of each joint action."""
        places: Longs = np.searchsorted(self.code, encode(world, moves, self.radix))
        return places


class Views(NamedTuple):
    """One player's side of every joint action, for each of its private states. Axes: N pairs, R rows."""

    pair_world: Longs  # [N] pairs of a world and a private state that occur together
    pair_private: Longs  # [N]
    legal: Bools  # [moves, N]
    pair: Longs  # [R]
    moves: list[Longs]  # of every role [R]
    percept: unique_rows.Numbering  # [R]
    percept_rows: Bools  # [distinct, Q]
    following: Longs  # [R] column of `private_states`
    private_states: Bools  # [r, Q'] distinct ones afterwards

    @property
    def world(self) -> Longs:
        """[R] the world of each row."""
        return self.pair_world[self.pair]


def encode(world: Longs, moves: list[Longs], radix: list[int]) -> Longs:
    code = world
    for move, size in zip(moves, radix, strict=True):
        code = code * size + move
    return code


def observe(
    game: blocks.FactoredGame, level: blocks.Level, limit: Callable[[float], None] = lambda actions: None
) -> tuple[JointActions, list[Views]]:
    """Evaluates the propnet on all worlds of a level, together with the private states of one player at a time.

    `limit` is called with the number of joint actions before these are listed, and raises if they are too many.
    """
    pairs = [_pairs(level, player) for player in range(len(game.players))]
    legal = []
    possible = [np.zeros((size, level.worlds.shape[1]), np.bool_) for size in game.sizes]
    for role in game.chance:
        possible[role] = game.legal(game.states(level.worlds), role)
    for player, (role, (world, private)) in enumerate(zip(game.players, pairs, strict=True)):
        states = game.states(level.worlds[:, world], player, level.sides[player].private_states[:, private])
        legal.append(game.legal(states, role))
        np.logical_or.at(possible[role].T, world, legal[player].T)
    limit(joint_actions.count_joint_actions(np.concatenate(possible), game.sizes))
    joint = _joint_actions(game, level, possible)
    views = []
    for player, ((world, private), moves) in enumerate(zip(pairs, legal, strict=True)):
        rows = [moves if n == game.players[player] else every[:, world] for n, every in enumerate(possible)]
        limit(joint_actions.count_joint_actions(np.concatenate(rows), game.sizes))
        views.append(_views(game, level, player, world, private, moves, np.concatenate(rows)))
    return joint, views


def _pairs(level: blocks.Level, player: int) -> tuple[Longs, Longs]:
    """The pairs of a world and a private state of a player that occur, in order."""
    side = level.sides[player]
    half = unique_rows.number_rows([level.world, level.sets[player]], [level.worlds.shape[1], side.sets.rows]).example
    world, sets = level.world[half], level.sets[player][half]
    states = side.private_states.shape[1]
    of_set = ragged.distinct_in_rows(ragged.Ragged(side.sets.starts, side.private[side.sets.items]), states)
    lengths = of_set.lengths[sets]
    occurs = np.zeros(level.worlds.shape[1] * states, np.bool_)
    for part in ragged.chunks(lengths, 2**22):
        members = of_set.take(sets[part]).items
        occurs[np.repeat(world[part], lengths[part]) * states + members] = True
    pairs = np.flatnonzero(occurs)
    return pairs // states, pairs % states


def _joint_actions(game: blocks.FactoredGame, level: blocks.Level, possible: list[Bools]) -> JointActions:
    world, moves = joint_actions.enumerate_joint_actions(np.concatenate(possible), game.sizes)
    after = np.zeros((len(game.world), len(world)), np.bool_)
    for part in _batches(len(world)):
        states = game.states(level.worlds[:, world[part]])
        following, _ = _step(game, states, [move[part] for move in moves])
        after[:, part] = following[game.world]
    distinct = unique_rows.number_bit_columns(after)
    options = [possible[role].sum(axis=0) for role in game.chance]
    chance = 1.0 / np.prod([np.ones(level.worlds.shape[1]), *options], axis=0)
    radix = game.sizes
    return JointActions(
        world,
        moves,
        encode(world, moves, radix),
        radix,
        distinct.number.astype(np.int64),
        after[:, distinct.example],
        chance,
        possible,
    )


def _views(
    game: blocks.FactoredGame,
    level: blocks.Level,
    player: int,
    world: Longs,
    private: Longs,
    legal: Bools,
    options: Bools,
) -> Views:
    """`legal` are the player's moves in every pair of a world and a private state, `options` those of all roles."""
    role = game.players[player]
    pair, moves = joint_actions.enumerate_joint_actions(options, game.sizes)
    percepts = np.zeros((len(game.propnet.roles[role].percepts), len(pair)), np.bool_)
    after = np.zeros((len(game.private[player]), len(pair)), np.bool_)
    bounds = np.cumsum([0, *(len(each.percepts) for each in game.propnet.roles)])
    for part in _batches(len(pair)):
        states = game.states(
            level.worlds[:, world[pair[part]]], player, level.sides[player].private_states[:, private[pair[part]]]
        )
        following, sees = _step(game, states, [move[part] for move in moves])
        percepts[:, part] = sees[bounds[role] : bounds[role + 1]]
        after[:, part] = following[game.private[player]]
    percept = unique_rows.number_bit_columns(percepts)
    distinct = unique_rows.number_bit_columns(after)
    return Views(
        world,
        private,
        legal,
        pair,
        moves,
        percept,
        percepts[:, percept.example].T,
        distinct.number.astype(np.int64),
        after[:, distinct.example],
    )


def _step(game: blocks.FactoredGame, states: Bools, moves: list[Longs]) -> tuple[Bools, Bools]:
    return words.move_packed(game.machine, states, joint_actions.one_hot_rows(moves, game.sizes))


def _batches(count: int) -> Iterator[slice]:
    for begin in range(0, count, _STATES_PER_BATCH):
        yield slice(begin, min(count, begin + _STATES_PER_BATCH))


def representatives(game: blocks.FactoredGame, joint: JointActions, views: list[Views]) -> list[Longs]:
    """Returns for every player and world which of the actions that are alike stands for each: P x [W * moves]."""
    return [_representatives(game, joint, views, player) for player in range(len(game.players))]


def _representatives(game: blocks.FactoredGame, joint: JointActions, views: list[Views], player: int) -> Longs:
    role = game.players[player]
    worlds, size = len(joint.chance), game.sizes[role]

    def rest(moves: list[Longs]) -> list[Longs]:
        return [np.zeros_like(move) if n == role else move for n, move in enumerate(moves)]

    # A fact is what the others do and, of one of them, its private state before; and what follows from that.
    tables = [(joint.world, joint.moves, np.zeros_like(joint.world), np.zeros_like(joint.world), [joint.following])]
    for number, view in enumerate(views):
        if number != player:
            tables.append(
                (
                    view.world,
                    view.moves,
                    np.full(len(view.pair), 1 + number),
                    view.pair_private[view.pair],
                    [view.percept.number.astype(np.int64), view.following],
                )
            )
    groups, facts = [], []
    first = 0
    for world, moves, about, private, outcome in tables:
        columns = [encode(world * 0, rest(moves), joint.radix), about, private, *outcome]
        fact = unique_rows.number_rows(columns, [int(c.max(initial=0)) + 1 for c in columns])
        groups.append(world * size + moves[role])
        facts.append(first + fact.number.astype(np.int64))
        first += fact.size
    alike = ragged.from_groups(np.concatenate(groups), np.concatenate(facts), worlds * size)
    actions = np.flatnonzero(alike.lengths)  # of every world
    kinds = ragged.number_rows(alike.take(actions))
    both = unique_rows.number_rows([actions // size, kinds.number], [worlds, kinds.size])
    chosen = np.full(worlds * size, -1, np.int64)
    chosen[actions] = (actions % size)[both.example[both.number]]
    return chosen
