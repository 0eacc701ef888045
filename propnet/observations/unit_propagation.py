"""Unit propagation on a growing circuit: what follows from its constraints one gate or one group at a time.

Values go through AND gates in both directions: a false literal makes its gate false, and true literals alone make it
true; a true gate makes its literals true, and a false gate whose other literals are true makes the last one false. In a
group exactly one literal is true: a true one makes the others false, and the last that is not false is true.

What is inferred holds for all assignments that satisfy the constraints, so that constraints may be added at any time.
"""

from collections.abc import Sequence

from gdlx.propnet.circuits import aig
from gdlx.propnet.common import deadlines


class ContradictionError(Exception):
    """No assignment satisfies the constraints."""


class UnitPropagation:
    """The values that follow from gates, groups and required literals.

    Attributes:
      values: for every node 0, 1, or -1 if it is not known; node 0 is the constant false.

    >>> propagation = UnitPropagation()
    >>> propagation.add_gates([(), (), (2, 4)])  # two inputs, and node 3, which joins them
    >>> propagation.require([6])
    >>> propagation.values
    [0, 1, 1, 1]
    """

    def __init__(self) -> None:
        self.values: list[int] = [0]
        self._gates: list[aig.Gate] = [()]  # of every node
        self._open: list[int] = [0]  # of every gate, literals that are not known to be true
        self._uses: list[list[int]] = [[], []]  # of every literal, the gates that have it
        self._groups: list[Sequence[aig.Literal]] = []
        self._left: list[int] = []  # of every group, literals that are not known to be false
        self._memberships: dict[aig.Literal, list[int]] = {}

    def add_gates(self, gates: Sequence[aig.Gate]) -> None:
        """Adds nodes: gates, or inputs, which are gates without literals."""
        values, uses = self.values, self._uses
        for gate in deadlines.watched(gates):
            node = len(values)
            self._gates.append(gate)
            values.append(-1)
            uses += [], []
            left, is_false = len(gate), False
            for literal in gate:
                value = values[literal >> 1]
                if value < 0:
                    uses[literal].append(node)
                elif value ^ (literal & 1):
                    left -= 1
                else:
                    is_false = True
            self._open.append(left)
            if is_false:
                self._assign([2 * node + 1])
            elif gate and not left:
                self._assign([2 * node])

    def add_group(self, literals: Sequence[aig.Literal]) -> None:
        """Adds a set of literals of which exactly one is true."""
        number = len(self._groups)
        self._groups.append(literals)
        for literal in literals:
            if self._value(literal) < 0:
                self._memberships.setdefault(literal, []).append(number)
        remaining = [literal for literal in literals if self._value(literal) != 0]
        self._left.append(len(remaining))
        if len(remaining) <= 1:
            self._assign(self._last_of_group(number))
        for true in (literal for literal in remaining if self._value(literal) > 0):
            self._assign([other ^ 1 for other in literals if other != true])

    def require(self, literals: Sequence[aig.Literal]) -> None:
        """Makes literals true.

        Raises:
          ContradictionError: If no assignment satisfies the constraints; the values are then of no use.
        """
        self._assign(list(literals))

    def _value(self, literal: aig.Literal) -> int:
        value = self.values[literal >> 1]
        return value if value < 0 else value ^ (literal & 1)

    def _assign(self, pending: list[aig.Literal]) -> None:
        """Makes literals true, and everything that follows."""
        values, gates, left, uses = self.values, self._gates, self._open, self._uses
        while pending:
            literal = pending.pop()
            node, value = literal >> 1, (literal & 1) ^ 1
            known = values[node]
            if known >= 0:
                if known != value:
                    raise ContradictionError
                continue
            values[node] = value
            gate = gates[node]
            if gate:
                if value:
                    pending += gate
                elif left[node] == 1:
                    pending.append(self._last(gate) ^ 1)
            for user in uses[literal]:
                left[user] -= 1
                if not left[user]:
                    pending.append(2 * user)
                elif left[user] == 1 and values[user] == 0:
                    pending.append(self._last(gates[user]) ^ 1)
            pending += [2 * user + 1 for user in uses[literal ^ 1] if values[user]]
            if literal in self._memberships or literal ^ 1 in self._memberships:
                self._update_groups(literal, pending)

    def _last(self, gate: aig.Gate) -> aig.Literal:
        """The only literal of a gate that is not known to be true."""
        values = self.values
        return next(literal for literal in gate if values[literal >> 1] ^ (literal & 1) != 1)

    def _update_groups(self, literal: aig.Literal, pending: list[aig.Literal]) -> None:
        """Adds what follows in groups from a literal that is now true."""
        for number in self._memberships.get(literal, ()):
            pending += [other ^ 1 for other in self._groups[number] if other != literal]
        for number in self._memberships.get(literal ^ 1, ()):
            self._left[number] -= 1
            if self._left[number] <= 1:
                pending += self._last_of_group(number)

    def _last_of_group(self, number: int) -> list[aig.Literal]:
        remaining = [literal for literal in self._groups[number] if self._value(literal) != 0]
        if not remaining:
            raise ContradictionError
        return remaining
