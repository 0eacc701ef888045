"""PropNet: a game as a boolean circuit with registers and named inputs and outputs, in int32 arrays."""

import dataclasses
import itertools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gdlx.propnet.circuits import aig
from gdlx.propnet.common.text import plurals
from gdlx.propnet.syntax import diagnostics, terms

Ints = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]


@dataclasses.dataclass(frozen=True)
class Role:
    """One role: the names of its moves, percepts and goal values, and the literal that computes each of them.

    Axes: M moves, P percepts (both sorted by their text), V goal values (sorted).

    >>> import gdlx
    >>> gdlx.compile("rps").roles[0].moves
    ('paper', 'rock', 'scissors')
    """

    name: str
    moves: tuple[str, ...]  # [M]
    legal: Ints  # [M] literals: whether each move is legal
    percepts: tuple[str, ...]  # [P]
    sees: Ints  # [P] literals: whether the role perceives each percept
    goal_values: tuple[int, ...]  # [V]
    goal: Ints  # [V] literals: whether each goal value holds

    def __repr__(self) -> str:
        counts = ", ".join(
            plurals.count(len(names), noun) for names, noun in ((self.moves, "move"), (self.percepts, "percept"))
        )
        return f"Role({diagnostics.shorten(self.name)}: {counts})"

    @property
    def is_random(self) -> bool:
        return self.name == terms.RANDOM


@dataclasses.dataclass(frozen=True)
class PropNet:
    """A game as a propositional network: an and-inverter graph with registers for the state.

    Axes: U fluents, R registers, F feedbacks, G gates, E edges.

    Nodes: 0 is false; 1..R are the registers; then the moves of the roles in order, one input each; then the
    feedbacks; then the gates in topological order. A literal is 2 * node + inverted. Feedbacks express recursion
    through the state: they start false and take the values of their literals until a fixpoint is reached.

    >>> import gdlx
    >>> gdlx.compile("kuhn_poker")
    PropNet(kuhn_poker: 2 players, 17 registers, 42 gates)
    """

    name: str
    roles: tuple[Role, ...]
    fluents: tuple[str, ...]  # [U] sorted by their text
    fluent_literals: Ints  # [U] constants or literals of registers that hold the value of each fluent
    initial: Bools  # [R]
    next: Ints  # [R] literals of the registers' next values
    terminal: int  # literal
    feedback: Ints  # [F] literals of the feedbacks' next values
    gate_starts: Ints  # [G + 1] index in `gate_inputs` of each gate's first literal
    gate_inputs: Ints  # [E] literals that the gates join by AND

    def __repr__(self) -> str:
        sizes = ((len(self.players), "player"), (len(self.initial), "register"), (self.gates, "gate"))
        counts = ", ".join(plurals.count(count, noun) for count, noun in sizes)
        return f"PropNet({diagnostics.shorten(self.name)}: {counts})"

    @property
    def inputs(self) -> int:
        """Number of input nodes: registers, moves and feedbacks."""
        return len(self.initial) + sum(len(role.moves) for role in self.roles) + len(self.feedback)

    @property
    def gates(self) -> int:
        """Number of n-ary AND gates."""
        return len(self.gate_starts) - 1

    @property
    def operations(self) -> int:
        """Number of two-input operations that evaluate all gates."""
        return len(self.gate_inputs) - self.gates

    @property
    def depth(self) -> int:
        """Number of gates on the longest path."""
        return self.as_circuit().depth

    @property
    def players(self) -> tuple[Role, ...]:
        """The roles without `random`."""
        return tuple(role for role in self.roles if not role.is_random)

    def first_move_node(self, role: int) -> int:
        """The node of a role's first move."""
        return 1 + len(self.initial) + sum(len(r.moves) for r in self.roles[:role])

    def as_circuit(self) -> aig.Circuit:
        """Returns the gates with all outputs concatenated, in the order that `with_circuit` expects."""
        bounds = self.gate_starts.tolist()
        edges = self.gate_inputs.tolist()
        gates = tuple(tuple(edges[a:b]) for a, b in itertools.pairwise(bounds))
        outputs = [self.next, np.array([self.terminal], np.int32), self.feedback]
        for role in self.roles:
            outputs += [role.legal, role.sees, role.goal]
        return aig.Circuit(self.inputs, gates, tuple(np.concatenate(outputs).tolist()))

    def with_circuit(self, gates: aig.Circuit) -> "PropNet":
        """Returns the same game, computed by another circuit with the same inputs and outputs."""
        outputs = np.array(gates.outputs, np.int32)
        position = 0

        def take(count: int) -> Ints:
            nonlocal position
            position += count
            return outputs[position - count : position]

        following, terminal, feedback = take(len(self.next)), take(1), take(len(self.feedback))
        roles = tuple(
            dataclasses.replace(role, legal=take(len(role.legal)), sees=take(len(role.sees)), goal=take(len(role.goal)))
            for role in self.roles
        )
        starts, edges = gate_arrays(gates.gates)
        return dataclasses.replace(
            self,
            roles=roles,
            next=following,
            terminal=int(terminal[0]),
            feedback=feedback,
            gate_starts=starts,
            gate_inputs=edges,
        )


def gate_arrays(gates: Sequence[aig.Gate]) -> tuple[Ints, Ints]:
    starts = np.zeros(len(gates) + 1, np.int32)
    np.cumsum([len(gate) for gate in gates], out=starts[1:])
    return starts, np.fromiter((lit for gate in gates for lit in gate), np.int32, int(starts[-1]))
