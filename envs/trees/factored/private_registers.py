"""Which registers of a propnet are private to a player: nobody else's observations, moves or goals depend on them.

What is read off the wiring is an upper bound of what matters, so a register that is called private is private. One that
two players' rules read in the same gate counts as the world's, even where the value makes no difference.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from gdlx.propnet.circuits import memo, propnet

WORLD: Final = -1
UNUSED: Final = -2  # nothing that anybody perceives, does or gets depends on it


def find_owners(propnet: propnet.PropNet, permutations: Sequence[npt.NDArray[np.int64]] = ()) -> npt.NDArray[np.int64]:
    """Returns the owner of every register: the index of a role, `WORLD` or `UNUSED`.

    A register may belong to a player only if it is in the cones of that player's legal moves, percepts and private
    registers alone. Goals, the end of the game and the moves of chance belong to the world. Registers that
    `permutations` (register n becomes permutation[n]) exchange have the same owner.

    >>> from gdlx.propnet import games
    >>> find_owners(games.compile_game("rps")).tolist()
    [-1, -1, -1, -1, -1, -1, -1]
    """
    return _find_owners(propnet, tuple(tuple(permutation.tolist()) for permutation in permutations))


@memo.per_propnet
def _find_owners(propnet: propnet.PropNet, permutations: tuple[tuple[int, ...], ...]) -> npt.NDArray[np.int64]:
    support = _support_function(propnet)
    registers = len(propnet.initial)
    players = frozenset(n for n, role in enumerate(propnet.roles) if not role.is_random)
    possible = dict.fromkeys(players, (1 << registers) - 1)  # registers, as bits

    def restrict(literals: Iterable[int], users: frozenset[int]) -> None:
        cone = support(literals) >> 1
        for player in players - users:
            possible[player] &= ~cone

    restrict([propnet.terminal], frozenset())
    for number, role in enumerate(propnet.roles):
        restrict(role.goal.tolist(), frozenset())
        restrict(role.legal.tolist(), players & {number})
        restrict(role.sees.tolist(), players & {number})
    cones = [support([literal]) >> 1 for literal in propnet.next.tolist()]
    for player in players:
        before = -1
        while possible[player] not in (0, before):
            before = possible[player]
            for user, cone in enumerate(cones):
                if not possible[player] >> user & 1:
                    possible[player] &= ~cone
            for permutation in permutations:
                for register, image in enumerate(permutation):
                    if not possible[player] >> register & 1:
                        possible[player] &= ~(1 << image)
    return np.array(
        [
            _owner({player for player in players if possible[player] >> register & 1}, players)
            for register in range(registers)
        ],
        np.int64,
    )


def _owner(candidates: set[int], players: frozenset[int]) -> int:
    if not candidates:
        return WORLD
    return UNUSED if len(candidates) == len(players) and len(players) > 1 else min(candidates)


def _support_function(propnet: propnet.PropNet) -> Callable[[Iterable[int]], int]:
    """Returns the function from literals to the inputs they depend on, as bits of an integer."""
    circuit = propnet.as_circuit()
    supports = [0, *(1 << node for node in range(1, circuit.inputs + 1))]
    for gate in circuit.gates:
        joined = 0
        for literal in gate:
            joined |= supports[literal >> 1]
        supports.append(joined)
    first_feedback = 1 + circuit.inputs - len(propnet.feedback)

    def support(literals: Iterable[int]) -> int:
        joined = 0
        for literal in literals:
            joined |= supports[literal >> 1]
        while True:  # a feedback depends on what its literal depends on
            more = joined
            for number, literal in enumerate(propnet.feedback.tolist()):
                if joined >> (first_feedback + number) & 1:
                    more |= supports[literal >> 1]
            if more == joined:
                return joined
            joined = more

    return support
