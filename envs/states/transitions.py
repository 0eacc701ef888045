"""All joint actions of many states at once, with the states that follow and what every player perceives."""

from collections.abc import Collection, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gdlx.envs.packed import words
from gdlx.envs.trees import unique_rows
from gdlx.propnet.circuits import memo, propnet
from gdlx.propnet.simulate import joint_actions, machine, straight_line

Bools = npt.NDArray[np.bool_]
Longs = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

JOINT_ACTIONS_PER_BLOCK = 2**18  # on which the propnet is evaluated at once


class Transitions(NamedTuple):
    """Joint actions of a block of states, ordered by state, then by the moves of the players in file order; chance's
    moves change fastest. Axes: J joint actions, R registers, Q percepts of a player.
    """

    state: Longs  # [J] column of `states` in the call of `expand`
    moves: tuple[Longs, ...]  # of every role in file order, chance included [J]
    following: Bools  # [R, J] the states afterwards
    percepts: dict[int, Bools]  # [Q, J] of the players that were asked for, by index


class Ambiguity(NamedTuple):
    """Two joint actions after which a player does not know the state, though it knew it before."""

    player: str
    state: Bools  # [R] before
    first: tuple[str, ...]  # the moves of all roles
    second: tuple[str, ...]

    def in_words(self) -> str:
        """Describes what the player cannot tell apart.

        >>> Ambiguity("x", np.zeros(0, bool), ("noop", "a"), ("noop", "b")).in_words()
        'x cannot tell the states after [noop a] and [noop b] apart'
        """
        return (
            f"{self.player} cannot tell the states after [{' '.join(self.first)}] and [{' '.join(self.second)}] apart"
        )


def role_order(game: propnet.PropNet) -> list[int]:
    """Roles in the order of `Transitions`: players in file order, then chance."""
    return sorted(range(len(game.roles)), key=lambda n: game.roles[n].is_random)


def expand(
    game: propnet.PropNet,
    states: Bools,
    legal: Bools,
    *,
    percepts_of: Collection[int] = (),
    block: int = JOINT_ACTIONS_PER_BLOCK,
) -> Iterator[Transitions]:
    """Yields the transitions of states [R, S] with legal moves [M, S], in blocks of whole states.

    Args:
      game: the compiled rules.
      states: the states.
      legal: their legal moves, none in terminal states.
      percepts_of: indices of players whose percepts are needed.
      block: joint actions of a block; a single state may have more.

    >>> from gdlx.propnet import games
    >>> rps = games.compile_game("rps")
    >>> start = machine.for_propnet(rps).initial(1)
    >>> [part.following.shape[1] for part in expand(rps, start, machine.for_propnet(rps).legal(start))]
    [9]
    """
    sizes = [len(role.moves) for role in game.roles]
    order = role_order(game)
    rows = machine.split_rows(legal, sizes)
    counts = np.prod([part.sum(axis=0, dtype=np.float64) for part in rows], axis=0)
    sums = np.cumsum(counts)
    begin = 0
    while begin < states.shape[1]:
        before = sums[begin - 1] if begin else 0.0
        end = max(begin + 1, int(np.searchsorted(sums, before + block, side="right")))
        here = slice(begin, end)
        column, chosen = joint_actions.enumerate_joint_actions(
            np.concatenate([rows[n][:, here] for n in order]), [sizes[n] for n in order]
        )
        column += begin
        moves = tuple(chosen[order.index(n)] for n in range(len(rows)))
        does = joint_actions.one_hot_rows(list(moves), sizes)
        following, percepts = _step(game, states[:, column], does, percepts_of)
        yield Transitions(column, moves, following, percepts)
        begin = end


def _step(
    game: propnet.PropNet, states: Bools, does: Bools, percepts_of: Collection[int]
) -> tuple[Bools, dict[int, Bools]]:
    count = states.shape[1]
    program = _program(game, tuple(sorted(percepts_of)))
    packed_states, packed_does = words.pack(states), words.pack(does)
    registers = len(game.initial)
    inputs = [
        packed_states[node - 1] if node <= registers else packed_does[node - 1 - registers] for node in program.inputs
    ]
    false = np.zeros(packed_states.shape[1] if registers else -(-count // 64), np.uint64)
    outputs = straight_line.run(program, inputs, false)
    every = words.unpack(np.stack(outputs), count) if outputs else np.zeros((0, count), np.bool_)
    percepts, first = {}, registers
    for player in sorted(percepts_of):
        size = len(game.players[player].percepts)
        percepts[player] = every[first : first + size]
        first += size
    return every[:registers], percepts


@memo.per_propnet
def _program(game: propnet.PropNet, percepts_of: tuple[int, ...]) -> straight_line.StraightLineProgram:
    """Computes the registers afterwards and the percepts of some players: nothing that is not needed."""
    sees = [game.players[player].sees for player in percepts_of]
    return straight_line.compile_cone(game, np.concatenate([game.next, *sees]))


def find_ambiguity(game: propnet.PropNet, states: Bools, part: Transitions) -> Ambiguity | None:
    """Returns joint actions that a player whose percepts are in `part` cannot tell apart, if it knows the state before.

    Its own legal moves are a part of what it perceives. States that end the game need not be told apart.
    """
    if not part.percepts or not len(part.state):
        return None
    judge = machine.for_propnet(game)
    number = unique_rows.number_bit_columns(part.following)
    distinct = part.following[:, number.example]
    terminal, _ = judge.terminal_and_goals(distinct)
    goes_on = np.flatnonzero(~terminal[number.number])
    if not len(goes_on):
        return None
    legal = machine.split_rows(judge.legal(distinct), [len(role.moves) for role in game.roles])
    roles = [n for n, role in enumerate(game.roles) if not role.is_random]
    following = number.number[goes_on]
    for player, percepts in part.percepts.items():
        role = roles[player]
        seen = unique_rows.number_bit_columns(percepts[:, goes_on])
        may = unique_rows.number_bit_columns(legal[role])
        known = unique_rows.number_rows(
            [part.state[goes_on] - part.state[0], part.moves[role][goes_on], seen.number, may.number[following]],
            [int(part.state[-1] - part.state[0]) + 1, len(game.roles[role].moves), seen.size, may.size],
        )
        differs = following != following[known.example][known.number]
        if differs.any():
            second = int(np.argmax(differs))
            first = int(known.example[known.number[second]])
            return Ambiguity(
                game.players[player].name,
                states[:, part.state[goes_on[second]]],
                _names(game, part, int(goes_on[first])),
                _names(game, part, int(goes_on[second])),
            )
    return None


def _names(game: propnet.PropNet, part: Transitions, row: int) -> tuple[str, ...]:
    return tuple(role.moves[moves[row]] for role, moves in zip(game.roles, part.moves, strict=True))
