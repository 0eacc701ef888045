"""What is left open by a player's observations: choices of the others, one after the other, and what they must satisfy.

Unit propagation decides most moves and most gates. The rest is a sequence of choices in the order of play. A gate is
evaluated as soon as all choices that it depends on are made, and so is a clause, which rejects a history in which all
its literals are true. The histories that agree with the observations are those that no clause rejects.
"""

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from gdlx.propnet.circuits import aig
from gdlx.propnet.observations import plausible_moves

Ints = npt.NDArray[np.int64]


@dataclasses.dataclass
class Share:
    """The number of legal moves of a role before a joint action: a constant, and one for each true literal."""

    certain: int
    literals: tuple[aig.Literal, ...]


@dataclasses.dataclass
class Choice:
    """One choice, and what can be evaluated after it.

    Attributes:
      step: the joint action that it is part of, from 0.
      role: the number of the role that chooses.
      moves: [K] the moves that are plausible.
      nodes: [K] their nodes; one of them is true.
      gates: nodes with the literals that they join, in topological order.
      clauses: sets of literals of which not all are true.
      shares: numbers of legal moves that are known from now on.
      live: nodes of this choice or of earlier ones that later ones depend on.
    """

    step: int
    role: int
    moves: tuple[int, ...]
    nodes: tuple[int, ...]
    gates: list[tuple[int, aig.Gate]] = dataclasses.field(default_factory=list)
    clauses: list[aig.Gate] = dataclasses.field(default_factory=list)
    shares: list[Share] = dataclasses.field(default_factory=list)
    live: tuple[int, ...] = ()


@dataclasses.dataclass
class Choices:
    """All choices that are left. Axes: T joint actions, N roles.

    Attributes:
      moves: int64[T, N], the moves that are known, -1 elsewhere.
      choices: in the order of play.
      log_share: the sum of the logarithms of 1 / (number of legal moves), of the others' moves where that is certain.

    >>> from gdlx.propnet.observations import positions
    >>> from gdlx.propnet import games
    >>> kuhn = games.compile_game("kuhn_poker")
    >>> plausible = plausible_moves.PlausibleMoves(kuhn, player=1, legal=(4,))
    >>> plausible.extend(positions.Event(4, (), (4,)))  # a card is dealt to the other player
    >>> left = find_choices(plausible)
    >>> [(choice.step, len(choice.moves)) for choice in left.choices]
    [(0, 3)]
    """

    moves: Ints
    choices: list[Choice]
    log_share: float


def find_choices(plausible: plausible_moves.PlausibleMoves) -> Choices:
    """Returns what the observations leave open.

    Args:
      plausible: The observations. The result does not change with them.

    Returns:
      The choices, with the gates and clauses after each.
    """
    values, circuit = plausible.values, plausible.circuit
    moves, choices = _split(plausible)
    ready = {node: number for number, choice in enumerate(choices) for node in choice.nodes}
    clauses: list[tuple[int, aig.Gate]] = []
    gates: dict[int, aig.Gate] = {}
    for node, gate in enumerate(circuit.gates, 1):
        # A gate that is true leaves nothing open; one that is false is a clause, unless a literal of it is false.
        if not gate or values[node] > 0 or any(_value(values, literal) == 0 for literal in gate):
            continue
        unknown = tuple(literal for literal in gate if values[literal >> 1] < 0)
        last = max(ready[literal >> 1] for literal in unknown)
        if values[node] == 0:
            clauses.append((last, unknown))
        else:
            ready[node], gates[node] = last, unknown
    shares, log_share = _shares(plausible, ready)
    last_use: dict[int, int] = {}
    for number, literals in [*clauses, *((number, share.literals) for number, share in shares)]:
        for literal in literals:
            last_use[literal >> 1] = max(number, last_use.get(literal >> 1, -1))
    for node in reversed(gates):
        if node in last_use:
            choices[ready[node]].gates.insert(0, (node, gates[node]))
            for literal in gates[node]:
                last_use[literal >> 1] = max(ready[node], last_use.get(literal >> 1, -1))
    for number, clause in clauses:
        choices[number].clauses.append(clause)
    for number, share in shares:
        choices[number].shares.append(share)
    for number, choice in enumerate(choices):
        choice.live = tuple(sorted(node for node, last in last_use.items() if ready[node] <= number < last))
    return Choices(moves, choices, log_share)


def _value(values: Sequence[int], literal: aig.Literal) -> int:
    value = values[literal >> 1]
    return value if value < 0 else value ^ (literal & 1)


def _split(plausible: plausible_moves.PlausibleMoves) -> tuple[Ints, list[Choice]]:
    """Returns the moves that are known, and the others as choices."""
    circuit, choices = plausible.circuit, []
    moves = np.full((len(circuit.moves), len(circuit.propnet.roles)), -1, np.int64)
    for step, roles in enumerate(circuit.moves):
        for role, literals in enumerate(roles):
            left = [number for number, literal in enumerate(literals) if _value(plausible.values, literal) != 0]
            if len(left) == 1:
                moves[step, role] = left[0]
            else:
                choices.append(Choice(step, role, tuple(left), tuple(literals[number] >> 1 for number in left)))
    return moves, choices


def _shares(plausible: plausible_moves.PlausibleMoves, ready: dict[int, int]) -> tuple[list[tuple[int, Share]], float]:
    """Returns the numbers of legal moves with the choice after which each is known, and the part that is certain."""
    shares, log_share = [], 0.0
    for certain, unknown in _legal_counts(plausible):
        if unknown:
            shares.append((max(ready[literal >> 1] for literal in unknown), Share(certain, unknown)))
        else:
            log_share -= float(np.log(certain))
    return shares, log_share


def _legal_counts(plausible: plausible_moves.PlausibleMoves) -> Iterator[tuple[int, tuple[aig.Literal, ...]]]:
    """Yields how many moves of another role are certainly legal, and the literals of those that may be."""
    circuit = plausible.circuit
    for roles in circuit.legal:
        for role, literals in enumerate(roles):
            if role != circuit.role:
                values = [_value(plausible.values, literal) for literal in literals]
                unknown = tuple(lit for lit, value in zip(literals, values, strict=True) if value < 0)
                yield sum(value > 0 for value in values), unknown
