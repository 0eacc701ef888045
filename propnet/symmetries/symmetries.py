"""The symmetries of a game: which permutations of moves, percepts, registers and players keep its rules.

Found as automorphisms of the graph of the propnet, and each proved on the propnet itself. Every generator is verified,
so whatever is reported is a symmetry; there may be others that this search does not see.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gdlx.propnet.circuits import memo, propnet
from gdlx.propnet.common.text import plurals
from gdlx.propnet.symmetries import game_graph, graph_automorphisms, proof

Longs = npt.NDArray[np.int64]

_MOST_GATES = 20_000
_MOST_ELEMENTS = 10_000
_MOST_LISTED = 256


@dataclasses.dataclass(frozen=True)
class Symmetry:
    """A permutation that keeps the rules. Axes: P roles, M moves and Q percepts of a role, R registers.

    A state becomes the one whose register `registers[r] >> 1` has the value of register r before, inverted if
    `registers[r] & 1`. Whatever is legal, perceived or gained in one is so in the other, after renaming.
    """

    roles: tuple[int, ...]  # [P]
    moves: tuple[Longs, ...]  # P x [M] the number of each move's image, of the image of the role
    percepts: tuple[Longs, ...]  # P x [Q]
    registers: Longs  # [R] 2 * register + inverted

    @property
    def exchanges_players(self) -> bool:
        """Whether some player takes the part of another."""
        return self.roles != tuple(range(len(self.roles)))

    @property
    def key(self) -> bytes:
        """Equal for equal symmetries of one game."""
        roles = np.array(self.roles, np.int64)
        return b"".join(part.tobytes() for part in (roles, *self.moves, *self.percepts, self.registers))

    def then(self, other: "Symmetry") -> "Symmetry":
        """This symmetry, followed by another one."""
        return Symmetry(
            tuple(other.roles[role] for role in self.roles),
            tuple(other.moves[self.roles[n]][moves] for n, moves in enumerate(self.moves)),
            tuple(other.percepts[self.roles[n]][percepts] for n, percepts in enumerate(self.percepts)),
            other.registers[self.registers >> 1] ^ (self.registers & 1),
        )


@dataclasses.dataclass(frozen=True)
class Renaming:
    """What a symmetry makes of one role: the role whose part it takes, and the new names of its moves and percepts."""

    role: str
    moves: dict[str, str]
    percepts: dict[str, str]


@dataclasses.dataclass(frozen=True)
class Symmetries:
    """A group of symmetries, given by generators.

    Attributes:
      identity: the symmetry that changes nothing.
      generators: symmetries of which all others are products.
      order: the number of symmetries in the group, the identity included.
      unproved: candidates that could not be verified, and are not part of the group.
      complete: False if the search was given up.

    >>> import gdlx
    >>> group = find_symmetries(gdlx.compile("blind_tictactoe"))
    >>> group, group.order_fixing_players
    (Symmetries(order 16, 3 generators), 8)
    """

    identity: Symmetry
    generators: tuple[Symmetry, ...] = ()
    order: int = 1
    unproved: int = 0
    complete: bool = True

    def __repr__(self) -> str:
        return f"Symmetries(order {self.order:,}, {plurals.count(len(self.generators), 'generator')})"

    @property
    def player_orders(self) -> int:
        """The number of ways in which symmetries permute the players."""
        roles = {self.identity.roles}
        while True:
            more = {tuple(by.roles[role] for role in one) for one in roles for by in self.generators} | roles
            if more == roles:
                return len(roles)
            roles = more

    @property
    def order_fixing_players(self) -> int:
        """The number of symmetries in which every player keeps its part."""
        return self.order // self.player_orders

    def elements(self, most: int = 4_096) -> tuple[Symmetry, ...] | None:
        """All symmetries, the identity first; None if there are more than `most`."""
        return None if self.order > most else close(self.identity, self.generators, most)


@memo.per_propnet
def find_symmetries(propnet: propnet.PropNet) -> Symmetries:
    """Finds the symmetries of a game.

    Args:
      propnet: the propnet of the game.

    Returns:
      Verified generators of a group, and its order.

    >>> import gdlx
    >>> find_symmetries(gdlx.compile("phantom_ttt"))
    Symmetries(order 8, 2 generators)
    """
    identity = _identity(propnet)
    if propnet.gates > _MOST_GATES:
        return Symmetries(identity, complete=False)
    built = game_graph.build(propnet)
    try:
        group = graph_automorphisms.find_automorphisms(built.graph)
    except graph_automorphisms.TooManyError:
        return Symmetries(identity, complete=False)
    candidates = [_decode(propnet, built, mapping) for mapping in group.generators]
    proved = tuple(symmetry for symmetry in candidates if is_proved(propnet, symmetry))
    unproved = len(candidates) - len(proved)
    if not unproved:
        return Symmetries(identity, _without_products(identity, proved, group.order), group.order)
    elements = close(identity, proved, _MOST_ELEMENTS)
    if elements is None:
        return Symmetries(identity, unproved=unproved, complete=False)
    return Symmetries(identity, proved, len(elements), unproved)


def is_proved(propnet: propnet.PropNet, symmetry: Symmetry) -> bool:
    """Whether it is proved that a permutation keeps the initial state, moves, percepts, goals and the end."""
    registers = symmetry.registers
    image = registers >> 1
    if not np.array_equal(propnet.initial[image] ^ (registers & 1).astype(np.bool_), propnet.initial):
        return False
    if len(propnet.feedback):  # a least fixpoint, which gates do not show
        return False
    inputs = [int(2 * (1 + (literal >> 1)) + (literal & 1)) for literal in registers]
    outputs = [(int(a), int(b)) for a, b in zip(propnet.next, propnet.next[image] ^ (registers & 1), strict=True)]
    outputs.append((propnet.terminal, propnet.terminal))
    for number, role in enumerate(propnet.roles):
        other = propnet.roles[symmetry.roles[number]]
        if role.goal_values != other.goal_values or role.is_random != other.is_random:
            return False
        moves, percepts = symmetry.moves[number], symmetry.percepts[number]
        first = propnet.first_move_node(symmetry.roles[number])
        inputs += [2 * (first + int(move)) for move in moves]
        for mine, theirs in (
            (role.legal, other.legal[moves]),
            (role.sees, other.sees[percepts]),
            (role.goal, other.goal),
        ):
            outputs += list(zip(mine.tolist(), theirs.tolist(), strict=True))
    return proof.is_symmetry(propnet, inputs, outputs)


def _identity(propnet: propnet.PropNet) -> Symmetry:
    return Symmetry(
        tuple(range(len(propnet.roles))),
        tuple(np.arange(len(role.moves)) for role in propnet.roles),
        tuple(np.arange(len(role.percepts)) for role in propnet.roles),
        2 * np.arange(len(propnet.initial)),
    )


def _decode(propnet: propnet.PropNet, built: game_graph.GameGraph, mapping: Longs) -> Symmetry:
    """The permutation of the parts of a game that an automorphism of its graph describes."""
    of_literal = {int(vertex): literal for literal, vertex in enumerate(built.literals.tolist())}
    of_role = {int(vertex): number for number, vertex in enumerate(built.roles.tolist())}
    roles = tuple(of_role[int(mapping[vertex])] for vertex in built.roles)
    registers = [of_literal[int(mapping[built.literals[2 * (1 + n)]])] - 2 for n in range(len(propnet.initial))]
    moves, percepts = [], []
    for number, role in enumerate(propnet.roles):
        first, image = propnet.first_move_node(number), propnet.first_move_node(roles[number])
        nodes = [of_literal[int(mapping[built.literals[2 * (first + n)]])] >> 1 for n in range(len(role.moves))]
        moves.append(np.array(nodes, np.int64) - image)
        place = {int(vertex): n for n, vertex in enumerate(built.percepts[roles[number]].tolist())}
        percepts.append(np.array([place[int(mapping[vertex])] for vertex in built.percepts[number]], np.int64))
    return Symmetry(roles, tuple(moves), tuple(percepts), np.array(registers, np.int64))


def _without_products(identity: Symmetry, generators: tuple[Symmetry, ...], order: int) -> tuple[Symmetry, ...]:
    """Leaves out generators that are products of others, in small groups."""
    if order > _MOST_LISTED:
        return generators
    kept: list[Symmetry] = []
    size = 1
    for generator in reversed(generators):
        more = close(identity, [*kept, generator], order)
        if more is not None and len(more) > size:
            kept.append(generator)
            size = len(more)
    return tuple(kept)


def renamings(propnet: propnet.PropNet, symmetry: Symmetry) -> dict[str, Renaming]:
    """Returns for every role what a symmetry makes of it, by name; only what changes.

    >>> import gdlx
    >>> connect_four = gdlx.compile("connect_four:width=3,height=3,line=3")
    >>> (mirror,) = find_symmetries(connect_four).generators
    >>> renamings(connect_four, mirror)["red"].moves
    {'(drop 1)': '(drop 3)', '(drop 3)': '(drop 1)'}
    """
    renamed = {}
    for number, role in enumerate(propnet.roles):
        image = propnet.roles[symmetry.roles[number]]
        renamed[role.name] = Renaming(
            image.name,
            _changes(role.moves, image.moves, symmetry.moves[number]),
            _changes(role.percepts, image.percepts, symmetry.percepts[number]),
        )
    return renamed


def _changes(before: tuple[str, ...], after: tuple[str, ...], images: Longs) -> dict[str, str]:
    pairs = zip(before, (after[image] for image in images.tolist()), strict=True)
    return {name: image for name, image in pairs if name != image}


def close(identity: Symmetry, generators: Sequence[Symmetry], most: int) -> tuple[Symmetry, ...] | None:
    """Returns all products of generators, the identity first; None if there are more than `most`."""
    elements = [identity]
    known = {identity.key}
    for element in elements:  # grows
        for generator in generators:
            product = element.then(generator)
            if product.key not in known:
                if len(elements) == most:
                    return None
                known.add(product.key)
                elements.append(product)
    return tuple(elements)
