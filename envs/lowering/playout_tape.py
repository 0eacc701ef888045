"""One step of a random playout as a tape: legal moves, a uniformly random move for every role, the next state, whether
it is terminal, its goals, and a reset of games that have ended.

Propnets with recursion through state have no single tape of this kind; `build_choice_tape` and `build_outcome_tape` are
then the parts before and after the propnet.
"""

import itertools
from collections.abc import Iterable, Sequence

import numpy as np

from gdlx.envs.lowering import random_move, tape
from gdlx.propnet.circuits import aig, propnet
from gdlx.propnet.simulate import straight_line

Literals = list[tape.Literal]

# Outcome rows, after those of the new state: see `_conclude`.
TERMINAL, UNPLAYABLE, TRUNCATED, MULTIPLE_GOALS, NO_GOAL, GOALS = range(6)


def rank_bits(propnet: propnet.PropNet) -> list[int]:
    """Bits of the rank of a move among the legal ones, for every role that ever has a choice."""
    return [len(role.moves).bit_length() for role in propnet.roles if len(role.moves) > 1]


def build_step_tape(propnet: propnet.PropNet, max_steps: int) -> tape.Tape:
    """Inputs: registers, step counter, ranks of the moves. Middle: counts of legal moves. Outputs: registers, step
    counter, outcome rows.
    """
    registers, counter_bits = len(propnet.initial), max_steps.bit_length()
    builder = tape.TapeBuilder(registers + counter_bits + sum(rank_bits(propnet)))
    state, counter, ranks = _inputs(builder, [registers, counter_bits, sum(rank_bits(propnet))])
    legal = _cone(builder, propnet, np.concatenate([role.legal for role in propnet.roles]), state)
    does, counts, stuck = _choose(builder, propnet, legal, ranks)
    following = _cone(builder, propnet, propnet.next, [*state, *does])
    judged = _cone(
        builder, propnet, [propnet.terminal, *np.concatenate([role.goal for role in propnet.roles])], following
    )
    return builder.tape(_conclude(builder, propnet, max_steps, following, counter, judged, stuck), middle=counts)


def build_choice_tape(propnet: propnet.PropNet) -> tape.Tape:
    """Inputs: legal moves, ranks. Middle: counts of legal moves. Outputs: the chosen moves, and whether a role has
    none.
    """
    moves = sum(len(role.moves) for role in propnet.roles)
    builder = tape.TapeBuilder(moves + sum(rank_bits(propnet)))
    legal, ranks = _inputs(builder, [moves, sum(rank_bits(propnet))])
    does, counts, stuck = _choose(builder, propnet, legal, ranks)
    return builder.tape([*does, stuck], middle=counts)


def build_outcome_tape(propnet: propnet.PropNet, max_steps: int) -> tape.Tape:
    """Inputs: next registers, step counter, whether that state is terminal, its goals, whether a role had no move.
    Outputs: as in `build_step_tape`.
    """
    sizes = [len(propnet.initial), max_steps.bit_length(), 1 + sum(len(role.goal) for role in propnet.roles), 1]
    builder = tape.TapeBuilder(sum(sizes))
    following, counter, judged, [stuck] = _inputs(builder, sizes)
    return builder.tape(_conclude(builder, propnet, max_steps, following, counter, judged, stuck))


def _inputs(builder: tape.TapeBuilder, sizes: Sequence[int]) -> list[Literals]:
    numbers = iter(range(builder.inputs))
    return [[builder.input(number) for number in itertools.islice(numbers, size)] for size in sizes]


def _cone(
    builder: tape.TapeBuilder, propnet: propnet.PropNet, outputs: Iterable[tape.Literal], inputs: Sequence[tape.Literal]
) -> Literals:
    gates = propnet.as_circuit()
    gates = straight_line.share_operations(aig.prune(aig.Circuit(gates.inputs, gates.gates, tuple(map(int, outputs)))))
    return builder.add_circuit(gates, dict(enumerate(inputs, 1)))


def _choose(
    builder: tape.TapeBuilder, propnet: propnet.PropNet, legal: Literals, ranks: Literals
) -> tuple[Literals, Literals, tape.Literal]:
    """Chosen moves, counts of legal moves, and whether some role has none."""
    options, rank = iter(legal), iter(ranks)
    does: Literals = []
    counts: Literals = []
    stuck = tape.FALSE
    for role in propnet.roles:
        moves = list(itertools.islice(options, len(role.moves)))
        stuck = builder.disjunction(stuck, builder.any_of(moves) ^ 1)
        if len(moves) > 1:
            tree = random_move.count_legal(builder, moves)
            counts += tree.count
            moves = random_move.select_by_rank(builder, tree, list(itertools.islice(rank, len(tree.count))), moves)
        does += moves
    return does, counts, stuck


def _conclude(
    builder: tape.TapeBuilder,
    propnet: propnet.PropNet,
    max_steps: int,
    following: Literals,
    counter: Literals,
    judged: Literals,
    stuck: tape.Literal,
) -> Literals:
    """Registers and step counter, reset if the game has ended; then terminal, unplayable, truncated, several goals, no
    goal; then the goal rows in a terminal state, of which only a player's highest is true.
    """
    playable = stuck ^ 1
    terminal = builder.conjunction(judged[0], playable)
    counted = builder.increment(counter)
    full = builder.all_of(bit ^ (not max_steps >> n & 1) for n, bit in enumerate(counted))
    truncated = builder.all_of([full, terminal ^ 1, playable])
    ended = builder.any_of([terminal, stuck, truncated])
    fresh = [
        builder.disjunction(bit, ended) if start else builder.conjunction(bit, ended ^ 1)
        for bit, start in zip(following, propnet.initial.tolist(), strict=True)
    ]
    counter = [builder.conjunction(bit, ended ^ 1) for bit in counted]
    goals = [builder.conjunction(goal, terminal) for goal in judged[1:]]
    goals, several, none = _highest(builder, propnet, goals, terminal)
    return [*fresh, *counter, terminal, stuck, truncated, several, none, *goals]


def _highest(
    builder: tape.TapeBuilder, propnet: propnet.PropNet, goals: Literals, terminal: tape.Literal
) -> tuple[Literals, tape.Literal, tape.Literal]:
    """The highest of each role's goals in a terminal state; whether some player has several there, or none."""
    rows = iter(goals)
    highest: Literals = []
    several = none = tape.FALSE
    for role in propnet.roles:
        seen = tape.FALSE
        top: Literals = []
        for goal in reversed(list(itertools.islice(rows, len(role.goal_values)))):
            if not role.is_random:
                several = builder.disjunction(several, builder.conjunction(seen, goal))
            top.append(builder.conjunction(goal, seen ^ 1))
            seen = builder.disjunction(seen, goal)
        if not role.is_random:
            none = builder.disjunction(none, builder.conjunction(terminal, seen ^ 1))
        highest += reversed(top)
    return highest, several, none
