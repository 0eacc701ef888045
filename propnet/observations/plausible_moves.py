"""Which moves of the others are plausible: those that unit propagation cannot exclude, given what one player saw.

What is seen late says much about what happened early: a card that is turned up at the end was dealt to nobody. So the
moves of all earlier joint actions are inferred again with every observation, at the cost of what changes only.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from gdlx.propnet.circuits import propnet
from gdlx.propnet.observations import observation_circuit, unit_propagation

Bools = npt.NDArray[np.bool_]


class PlausibleMoves:
    """Infers from one player's observations which moves may have been made; `extend` adds a joint action.

    No move of a history that agrees with the observations is ever excluded. The converse does not hold: unit
    propagation looks at one gate at a time.

    Attributes:
      circuit: the observations, in which inferred values are constants.
      values: for every node of the circuit 0, 1, or -1 if it is not known.

    >>> from gdlx.propnet import games
    >>> from gdlx.propnet.observations import positions
    >>> kuhn = games.compile_game("kuhn_poker")
    >>> plausible = PlausibleMoves(kuhn, player=0, legal=(4,))
    >>> king = kuhn.players[0].percepts.index("(dealt king)")
    >>> plausible.extend(positions.Event(4, (king,), (4,)))
    >>> cards = plausible.moves[0, 2]  # of the role `random`
    >>> [name for name, possible in zip(kuhn.roles[2].moves, cards) if possible]
    ['(deal king)']
    """

    def __init__(self, propnet: propnet.PropNet, player: int, legal: Sequence[int]) -> None:
        """Starts in the initial state, in which the player has these legal moves.

        Raises:
          ContradictionError: If it has not.
        """
        self._propagation = unit_propagation.UnitPropagation()
        self.values = self._propagation.values
        self.circuit = observation_circuit.ObservationCircuit(propnet, player, legal, self.values)
        self._gates = self._required = self._groups = 0  # of the circuit that are propagated
        self._propagate()

    def extend(self, event: observation_circuit.Observation, *, is_last: bool = False) -> None:
        """Adds a joint action; see `ObservationCircuit.extend`.

        Raises:
          ContradictionError: If no history agrees. The object is then of no use.
        """
        self.circuit.extend(event, is_last=is_last)
        self._propagate()

    def extend_all(self, events: Iterable[observation_circuit.Observation]) -> None:
        """Adds several joint actions."""
        for event in events:
            self.extend(event)

    @property
    def moves(self) -> Bools:
        """bool[T, N, M] for every joint action, role and move, whether it is plausible."""
        most = max((len(role.moves) for role in self.circuit.propnet.roles), default=0)
        plausible = np.zeros((len(self.circuit.moves), len(self.circuit.propnet.roles), most), np.bool_)
        for step, roles in enumerate(self.circuit.moves):
            for role, literals in enumerate(roles):
                nodes = [self.values[literal >> 1] ^ (literal & 1) for literal in literals]
                plausible[step, role, : len(nodes)] = np.array(nodes) != 0
        return plausible

    def _propagate(self) -> None:
        circuit, propagation = self.circuit, self._propagation
        propagation.add_gates(circuit.gates[self._gates :])
        for group in circuit.groups[self._groups :]:
            propagation.add_group(group)
        propagation.require(circuit.required[self._required :])
        self._gates, self._groups, self._required = len(circuit.gates), len(circuit.groups), len(circuit.required)
