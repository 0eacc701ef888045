"""The observations of one player as a circuit over the moves of everybody else.

The propnet is unrolled over the joint actions of a match. Its inputs are the moves of all roles but the player's own;
registers start as constants, and the player's own moves are constants too. An assignment of the inputs is a history
that agrees with the observations if and only if

- all literals of `required` are true: no state before the last joint action is terminal, every move is legal, and the
  player's percepts and legal moves are those that were observed;
- in every group of `groups` exactly one literal is true: every role makes one move at a time.

Other modules count these histories, list them, or infer which moves occur in none.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from gdlx.propnet.circuits import aig, memo, propnet
from gdlx.propnet.common import deadlines, errors
from gdlx.propnet.common.text import plurals

MAX_GATES = 5_000_000  # bounds the memory, at some 250 bytes a gate


class ObservationTooLargeError(errors.UserError, RuntimeError):
    """The observations of a match do not fit a circuit."""


class Observation(Protocol):
    """One joint action as a player observes it; `positions.Event` is one."""

    @property
    def move(self) -> int:
        """The player's own move."""
        ...

    @property
    def percepts(self) -> tuple[int, ...]:
        """Its percepts."""
        ...

    @property
    def legal(self) -> tuple[int, ...]:
        """Its legal moves afterwards; none once the match is over."""
        ...


class _Builder(aig.Builder):
    """A builder whose inputs are made one by one, as gates without literals."""

    def variable(self) -> aig.Literal:
        self.gates.append(())
        return 2 * len(self.gates)


class _Cone(NamedTuple):
    """The part of a propnet that some groups of outputs depend on."""

    gates: tuple[aig.Gate, ...]
    inputs: int
    outputs: list[list[aig.Literal]]
    feedback: list[aig.Literal]


class _Cones(NamedTuple):
    """What is unrolled."""

    state: _Cone  # legal moves of each role, and in the end one more output, terminal
    step: _Cone  # the percepts of the player, and the registers' next values


class ObservationCircuit:
    """The circuit of one player's observations; `extend` adds those of one more joint action.

    `known` may give values of nodes (0, 1, or -1 if unknown) that hold in all histories that agree, as unit propagation
    infers them: they are constants in what is built afterwards, which keeps the circuit small.

    Attributes:
      propnet: the propnet.
      role: the number of the player's role, in file order.
      gates: the gates made so far; node n is gate n - 1, and an input is a gate without literals.
      required: literals that are true in all histories that agree.
      groups: sets of literals of which exactly one is true.
      moves: for every joint action and every role, the literals of its moves.
      legal: before every joint action, for every role, the literals that say which moves are legal.

    >>> from gdlx.propnet.observations import positions
    >>> from gdlx.propnet import games
    >>> kuhn = games.compile_game("kuhn_poker")
    >>> circuit = ObservationCircuit(kuhn, player=0, legal=(4,))
    >>> circuit.extend(positions.Event(4, (2,), (4,)))
    >>> circuit
    ObservationCircuit(kuhn_poker: 1 joint action, 3 inputs, 1 gate, 5 constraints)
    """

    def __init__(
        self, propnet: propnet.PropNet, player: int, legal: Sequence[int], known: Sequence[int] | None = None
    ) -> None:
        """Starts in the initial state, in which the player has these legal moves."""
        self.propnet = propnet
        self.role = [number for number, role in enumerate(propnet.roles) if not role.is_random][player]
        self.known = known
        self._builder = _Builder(0)
        self._cones = _cones(propnet, self.role)
        self.gates = self._builder.gates
        self.required: list[aig.Literal] = []
        self.groups: list[list[aig.Literal]] = []
        self.moves: list[list[list[aig.Literal]]] = []
        self.legal: list[list[list[aig.Literal]]] = []
        self._registers: list[aig.Literal] = [int(value) for value in propnet.initial]
        self._legal: list[list[aig.Literal]] = []
        self._observe_state(legal)

    def __repr__(self) -> str:
        inputs = sum(not gate for gate in self.gates)
        sizes = (
            (len(self.moves), "joint action"),
            (inputs, "input"),
            (len(self.gates) - inputs, "gate"),
            (len(self.required) + len(self.groups), "constraint"),
        )
        return f"ObservationCircuit({self.propnet.name}: {', '.join(plurals.count(*size) for size in sizes)})"

    def extend(self, event: Observation, *, is_last: bool = False) -> None:
        """Adds a joint action.

        Args:
          event: What the player did and perceived.
          is_last: Whether the match was stopped after it by a limit on its steps: then nothing is known of its legal
            moves.
        """
        self.legal.append(self._legal)
        self.moves.append(
            [
                self._own_move(options, event.move) if role == self.role else self._free_move(options)
                for role, options in enumerate(self._legal)
            ]
        )
        percepts, following = self._evaluate(self._cones.step, [literal for role in self.moves[-1] for literal in role])
        self._require_rows(percepts, event.percepts)
        self._registers = following
        if not is_last:
            self._observe_state(event.legal)

    def circuit(self) -> aig.Circuit:
        """Returns the gates that the constraints depend on; the outputs are `required`, then all groups.

        Its inputs are those of `inputs`, in that order.
        """
        inputs = self.inputs()
        first = len(inputs) + 1
        number = {node: place for place, node in enumerate(inputs, 1)}
        number[0] = 0
        gates: list[aig.Gate] = []
        for node, gate in enumerate(self.gates, 1):
            if gate:
                number[node] = first + len(gates)
                gates.append(tuple(2 * number[literal >> 1] + (literal & 1) for literal in gate))
        outputs = [*self.required, *(literal for group in self.groups for literal in group)]
        return aig.prune(
            aig.Circuit(len(inputs), tuple(gates), tuple(2 * number[lit >> 1] + (lit & 1) for lit in outputs))
        )

    def inputs(self) -> list[int]:
        """Returns the nodes that are inputs: moves that are not known."""
        return [node for node, gate in enumerate(self.gates, 1) if not gate]

    def _observe_state(self, legal: Sequence[int]) -> None:
        """Requires the player's legal moves in the present state; it has none only if the match is over."""
        none = [aig.FALSE] * sum(len(role.moves) for role in self.propnet.roles)
        *self._legal, (terminal,) = self._evaluate(self._cones.state, none)
        if legal:
            self._require(terminal ^ 1)
            self._require_rows(self._legal[self.role], legal)
            for row in self._legal:
                self._require(self._builder.disjunction(row))
        else:
            stuck = [self._builder.conjunction([literal ^ 1 for literal in row]) for row in self._legal]
            self._require(self._builder.disjunction([terminal, *stuck]))

    def _require_rows(self, literals: Sequence[aig.Literal], true: Sequence[int]) -> None:
        expected = set(true)
        for number, literal in enumerate(literals):
            self._require(literal if number in expected else literal ^ 1)

    def _own_move(self, legal: list[aig.Literal], move: int) -> list[aig.Literal]:
        self._require(legal[move])
        return [aig.TRUE if number == move else aig.FALSE for number in range(len(legal))]

    def _free_move(self, legal: list[aig.Literal]) -> list[aig.Literal]:
        """The literals of a role's moves: a new input for each that may be legal."""
        possible = [literal for literal in legal if literal != aig.FALSE]
        if len(possible) == 1:
            self._require(possible[0])
            return [aig.FALSE if literal == aig.FALSE else aig.TRUE for literal in legal]
        moves = [aig.FALSE if literal == aig.FALSE else self._builder.variable() for literal in legal]
        self.groups.append([move for move in moves if move != aig.FALSE])
        for move, literal in zip(moves, legal, strict=True):
            if literal > aig.TRUE:
                self._require(self._builder.conjunction([move, literal ^ 1]) ^ 1)
        return moves

    def _require(self, literal: aig.Literal) -> None:
        literal = self._constant(literal)
        if literal != aig.TRUE:
            self.required.append(literal)

    def _constant(self, literal: aig.Literal) -> aig.Literal:
        """The literal, or its value where that is known."""
        if self.known is not None and 1 < literal < 2 * len(self.known):
            value = self.known[literal >> 1]
            if value >= 0:
                return value ^ (literal & 1)
        return literal

    def _evaluate(self, cone: _Cone, moves: Sequence[aig.Literal]) -> list[list[aig.Literal]]:
        """Builds the gates of a cone in the present state and returns its outputs."""
        inputs = [*map(self._constant, self._registers), *moves]
        feedback = [aig.FALSE] * len(cone.feedback)
        # A recursion derives at least one new fact in every round, until it derives none.
        for _ in range(len(feedback) + 1):
            values = [aig.FALSE, *inputs, *feedback]
            self._build_gates(cone.gates, values)
            after = [self._constant(values[literal >> 1] ^ (literal & 1)) for literal in cone.feedback]
            if after == feedback:
                break
            feedback = after
        return [[self._constant(values[lit >> 1] ^ (lit & 1)) for lit in part] for part in cone.outputs]

    def _build_gates(self, gates: Sequence[aig.Gate], values: list[aig.Literal]) -> None:
        """Appends the literals of gates to those of the nodes before them."""
        conjunction, constant = self._builder.conjunction, self._constant
        for gate in deadlines.watched(gates):
            values.append(constant(conjunction([values[literal >> 1] ^ (literal & 1) for literal in gate])))
        if len(self.gates) > MAX_GATES:
            name = self.propnet.name
            recursion = "recursion through the state is unrolled too; " if len(self.propnet.feedback) else ""
            raise ObservationTooLargeError(
                f"the observations of {self.propnet.roles[self.role].name} in {name} after "
                f"{plurals.count(len(self.moves), 'joint action')} need more than {MAX_GATES:,} gates ({recursion}the "
                f"propnet has {self.propnet.gates:,}); sample particles or reject instead"
            )


@memo.per_propnet
def _cones(propnet: propnet.PropNet, role: int) -> _Cones:
    """Returns the parts of a propnet that one role's observations depend on."""
    state = _cone(propnet, [*(r.legal.tolist() for r in propnet.roles), [propnet.terminal]])
    return _Cones(state, _cone(propnet, [propnet.roles[role].sees.tolist(), propnet.next.tolist()]))


def _cone(propnet: propnet.PropNet, outputs: list[list[aig.Literal]]) -> _Cone:
    circuit, parts = propnet.as_circuit(), [*outputs, propnet.feedback.tolist()]
    pruned = aig.prune(aig.Circuit(circuit.inputs, circuit.gates, tuple(lit for part in parts for lit in part)))
    literals = iter(pruned.outputs)
    *outputs, feedback = ([next(literals) for _ in part] for part in parts)
    return _Cone(pruned.gates, pruned.inputs, outputs, feedback)
