"""The tapes of a step of a batch: actions from numbers, legality, chance, and what follows from a state's registers."""

import itertools
from collections.abc import Sequence

from gdlx.envs.lowering import random_move, tape
from gdlx.propnet.circuits import propnet

Literals = list[tape.Literal]


def slices(sizes: Sequence[int]) -> tuple[slice, ...]:
    bounds = [0, *itertools.accumulate(sizes)]
    return tuple(slice(a, b) for a, b in itertools.pairwise(bounds))


def _inputs(builder: tape.TapeBuilder, sizes: Sequence[int]) -> list[Literals]:
    return [[builder.input(n) for n in range(group.start, group.stop)] for group in slices(sizes)]


def build_decode_tape(propnet: propnet.PropNet, code_bits: Sequence[int], counter_bits: int) -> tape.Tape:
    """Inputs: the players' actions as numbers, the rank of chance's, its legal moves, steps taken.
    Outputs: one-hot moves of all roles, in file order; steps taken.
    """
    chance_moves = sum(len(role.moves) for role in propnet.roles if role.is_random)
    sizes = [*code_bits, chance_moves, counter_bits]
    builder = tape.TapeBuilder(sum(sizes))
    *codes, rank, legal, counter = _inputs(builder, sizes)
    player_codes = iter(codes)
    does: Literals = []
    for role in propnet.roles:
        if not role.is_random:
            code = next(player_codes)
            for move in range(len(role.moves)):
                does.append(_is_number(builder, code, move))
        elif legal:
            does += random_move.select_by_rank(builder, random_move.count_legal(builder, legal), rank, legal)
    return builder.tape([*does, *builder.increment(counter)])


def build_outcome_tape(propnet: propnet.PropNet, max_steps: int) -> tape.Tape:
    """Inputs: steps taken, legal moves of the players and of chance, whether the state is terminal, the players' goals.
    Outputs: the rows of a state after its counter.
    """
    players = propnet.players
    random = [role for role in propnet.roles if role.is_random]
    moves = [len(role.moves) for role in (*players, *random)]
    sizes = [max_steps.bit_length(), *moves, 1, *(len(role.goal) for role in players)]
    builder = tape.TapeBuilder(sum(sizes))
    counter, *rest = _inputs(builder, sizes)
    legal, [terminal], goals = rest[: len(moves)], rest[len(moves)], rest[len(moves) + 1 :]
    playable = builder.all_of(builder.any_of(moves) for moves in legal)
    too_long = _is_number(builder, counter, max_steps) if counter else tape.FALSE
    unplayable = builder.conjunction(terminal ^ 1, builder.disjunction(playable ^ 1, too_long))
    ended = builder.disjunction(terminal, unplayable)
    open_moves = [[builder.conjunction(bit, ended ^ 1) for bit in bits] for bits in legal]
    chance = open_moves[len(players) :]
    outcomes = [random_move.count_legal(builder, bits).count for bits in chance if bits]
    judged: Literals = []
    conflict = tape.FALSE
    for goal in goals:
        top, several = _highest(builder, goal)
        none = builder.any_of(goal) ^ 1
        judged += [builder.conjunction(bit, terminal) for bit in (*top, none)]
        conflict = builder.any_of([conflict, several, none])
    options = [bit for bits in open_moves for bit in bits]
    counts = [bit for count in outcomes for bit in count]
    return builder.tape([*options, *counts, *judged, ended, unplayable, builder.conjunction(conflict, terminal)])


def build_one_hot_tape(num_actions: int) -> tape.Tape:
    """Input: the number of an action. Output: the action, one-hot."""
    builder = tape.TapeBuilder(num_actions.bit_length())
    code = [builder.input(number) for number in range(builder.inputs)]
    return builder.tape([_is_number(builder, code, number) for number in range(num_actions)])


def build_action_tape(propnet: propnet.PropNet, code_bits: int, max_steps: int) -> tape.Tape:
    """Inputs: the players' actions as numbers, the rank of chance's, whether that is illegal, and of the state: the
    legal actions of players and chance, steps taken, whether the game is over.
    Outputs: one-hot actions of all roles, in file order; steps taken; for each player, whether its action is illegal;
    whether that of chance is; whether the game stays as it is.
    """
    players = propnet.players
    chance_moves = sum(len(role.moves) for role in propnet.roles if role.is_random)
    moves = [len(player.moves) for player in players]
    sizes = [*[code_bits] * len(players), chance_moves.bit_length(), 1, *moves, chance_moves, max_steps.bit_length(), 1]
    builder = tape.TapeBuilder(sum(sizes))
    parts = _inputs(builder, sizes)
    codes, rank, [blocked] = parts[: len(players)], parts[len(players)], parts[len(players) + 1]
    *legal, chance, counter, [over] = parts[len(players) + 2 :]
    coded = zip(codes, moves, strict=True)
    chosen = [[_is_number(builder, code, move) for move in range(size)] for code, size in coded]
    illegal = [
        builder.conjunction(over ^ 1, builder.any_of(map(builder.conjunction, one, options)) ^ 1)
        for one, options in zip(chosen, legal, strict=True)
    ]
    illegal.append(builder.conjunction(over ^ 1, blocked))
    tree = random_move.count_legal(builder, chance) if chance else None
    drawn = random_move.select_by_rank(builder, tree, rank, chance) if tree else []
    actions = iter(chosen)
    does = [bit for role in propnet.roles for bit in (drawn if role.is_random else next(actions))]
    return builder.tape([*does, *builder.increment(counter), *illegal, builder.any_of([over, *illegal])])


def build_check_tape(propnet: propnet.PropNet) -> tape.Tape:
    """Inputs: actions of the players, one-hot; their legal actions; whether the game is over.
    Outputs: for each player, whether its action is illegal; whether the game stays as it is.
    """
    moves = [len(player.moves) for player in propnet.players]
    builder = tape.TapeBuilder(2 * sum(moves) + 1)
    *parts, [over] = _inputs(builder, [*moves, *moves, 1])
    illegal = [
        builder.conjunction(over ^ 1, builder.any_of(map(builder.conjunction, chosen, legal)) ^ 1)
        for chosen, legal in zip(parts[: len(moves)], parts[len(moves) :], strict=True)
    ]
    return builder.tape([*illegal, builder.any_of([over, *illegal])])


def build_chance_tape(num_chance_actions: int, max_steps: int) -> tape.Tape:
    """Inputs: the rank of chance's action, its legal ones, steps taken. Outputs: its action, one-hot; steps taken."""
    sizes = [num_chance_actions.bit_length(), num_chance_actions, max_steps.bit_length()]
    builder = tape.TapeBuilder(sum(sizes))
    rank, legal, counter = _inputs(builder, sizes)
    chosen = random_move.select_by_rank(builder, random_move.count_legal(builder, legal), rank, legal) if legal else []
    return builder.tape([*chosen, *builder.increment(counter)])


def _is_number(builder: tape.TapeBuilder, code: Literals, number: int) -> tape.Literal:
    """Whether a binary number, the lowest bit first, is this one."""
    return builder.all_of(bit ^ (not number >> n & 1) for n, bit in enumerate(code))


def _highest(builder: tape.TapeBuilder, goals: Literals) -> tuple[Literals, tape.Literal]:
    """Keeps only the last true literal; also returns whether there are several."""
    above = several = tape.FALSE
    top: Literals = []
    for goal in reversed(goals):
        several = builder.disjunction(several, builder.conjunction(above, goal))
        top.append(builder.conjunction(goal, above ^ 1))
        above = builder.disjunction(above, goal)
    return top[::-1], several
