"""Public information of a joint action: the actions and percepts of one player that all others observe as well.

Two percepts, or a percept and a move, carry the same information if the propnet has one literal for both:
`(opponent_did raise)` of one player in a poker is the move `raise` of the other. Literals that are equal in every match
but not in the propnet are not detected, so public information may be underestimated, but never overestimated.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gdlx.envs.views import info_key
from gdlx.propnet.circuits import propnet

Keys = npt.NDArray[np.uint32]


class PublicInfo(NamedTuple):
    """Hashes of each player's public moves and percepts, 0 for private ones. Axes: P players.

    The same event has the same hash for all players: the constant for it in the first player's key.
    """

    moves: tuple[Keys, ...]  # P x [moves of the player, 2] uint32
    percepts: tuple[Keys, ...]  # P x [percepts of the player, 2] uint32

    @property
    def is_empty(self) -> bool:
        return not any(hashes.any() for hashes in (*self.moves, *self.percepts))


def find_public_info(propnet: propnet.PropNet) -> PublicInfo:
    """Finds the moves and percepts whose literals all players observe."""
    players = [number for number, role in enumerate(propnet.roles) if not role.is_random]
    known = [_observed_literals(propnet, number) for number in players]
    shared = set.intersection(*({*moves, *percepts} for moves, percepts in known)) if known else set()
    shared -= {0, 1}  # constants carry no information
    hashes: dict[int, Keys] = {}
    for literals, salt in zip(known[0] if known else (), (2, 3), strict=False):
        for literal, constant in zip(literals, info_key.hash_constants(len(literals), salt), strict=True):
            if literal in shared:
                hashes.setdefault(literal, constant)
    public = [_public_hashes(literals, hashes) for literals in known]
    return PublicInfo(tuple(moves for moves, _ in public), tuple(percepts for _, percepts in public))


def _public_hashes(known: tuple[list[int], list[int]], hashes: dict[int, Keys]) -> tuple[Keys, Keys]:
    """Hashes of moves and percepts; only the first of equal literals has one, since a player may observe it twice."""
    left = dict(hashes)
    none = np.zeros(2, np.uint32)
    moves, percepts = (np.array([left.pop(n, none) for n in literals], np.uint32) for literals in known)
    return moves.reshape(-1, 2), percepts.reshape(-1, 2)


def _observed_literals(propnet: propnet.PropNet, number: int) -> tuple[list[int], list[int]]:
    """Literals of a role's moves and of its percepts."""
    role, first = propnet.roles[number], propnet.first_move_node(number)
    return [2 * (first + n) for n in range(len(role.moves))], [int(literal) for literal in role.sees]
