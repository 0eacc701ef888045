"""What everybody knows of a joint move: the percepts and own moves of one player that all others have as well.

Two percepts, or a percept and a move, tell the same if the network has one literal for both: `(opponent_did raise)` of
one player in a poker is the move `raise` of the other. Literals that are equal in every play but not in the network
are not found: then less is taken to be public than is, never more.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gdlx.envs.views import info_key
from gdlx.propnet.circuits import propnet

Keys = npt.NDArray[np.uint32]


class PublicInfo(NamedTuple):
    """Hashes of what is public of each player's moves and percepts, 0 where it is not. Axes: P players.

    The same thing has the same hash for all: the constant that the first player's key has for it.
    """

    moves: tuple[Keys, ...]  # P x [moves of the player, 2] uint32
    percepts: tuple[Keys, ...]  # P x [percepts of the player, 2] uint32

    @property
    def is_empty(self) -> bool:
        return not any(part.any() for part in (*self.moves, *self.percepts))


def find_public_info(net: propnet.PropNet) -> PublicInfo:
    players = [number for number, role in enumerate(net.roles) if not role.is_random]
    known = [_observed_literals(net, number) for number in players]
    shared = set.intersection(*({*moves, *percepts} for moves, percepts in known)) if known else set()
    shared -= {0, 1}  # what never or always holds tells nothing
    hashes: dict[int, Keys] = {}
    for part, salt in zip(known[0] if known else (), (2, 3), strict=False):
        for literal, constant in zip(part, info_key.hash_constants(len(part), salt), strict=True):
            if literal in shared:
                hashes.setdefault(literal, constant)
    told = [_public_hashes(own, hashes) for own in known]
    return PublicInfo(tuple(own[0] for own in told), tuple(own[1] for own in told))


def _public_hashes(known: tuple[list[int], list[int]], hashes: dict[int, Keys]) -> tuple[Keys, Keys]:
    """Of moves and percepts: the hash where a literal comes first, since a player may know it twice."""
    left = dict(hashes)
    none = np.zeros(2, np.uint32)
    moves, percepts = (np.array([left.pop(literal, none) for literal in part], np.uint32) for part in known)
    return moves.reshape(-1, 2), percepts.reshape(-1, 2)


def _observed_literals(net: propnet.PropNet, number: int) -> tuple[list[int], list[int]]:
    """Literals of a role's moves and of its percepts."""
    role, first = net.roles[number], net.first_move_node(number)
    return [2 * (first + n) for n in range(len(role.moves))], [int(literal) for literal in role.sees]
