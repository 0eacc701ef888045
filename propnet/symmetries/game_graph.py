"""A propnet as a coloured graph, whose automorphisms are candidates for symmetries of the game.

Literals of registers, moves and percepts are vertices; functions are given by their prime implicants, or by their gates
where they have too many.
"""

import dataclasses
from collections.abc import Hashable

import numpy as np
import numpy.typing as npt

from gdlx.propnet.circuits import aig, propnet
from gdlx.propnet.symmetries import graph_automorphisms, normal_forms

Longs = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True)
class GameGraph:
    """The graph of a propnet, and where its parts are in it. Axes: N inputs, P roles, Q percepts of a role."""

    graph: graph_automorphisms.Graph
    literals: Longs  # [2 * N + 2] vertex of each literal of an input; -1 for the constants
    roles: Longs  # [P]
    percepts: tuple[Longs, ...]  # P x [Q]


def build(propnet: propnet.PropNet) -> GameGraph:
    """Builds the graph of a propnet."""
    return _Builder(propnet).build()


class _Builder:
    def __init__(self, propnet: propnet.PropNet) -> None:
        self._propnet = propnet
        self._circuit = propnet.as_circuit()
        self._forms = normal_forms.find_normal_forms(self._circuit)
        self._colours: list[Hashable] = []
        self._edges: list[tuple[int, int, str]] = []
        self._known: dict[Hashable, int] = {}
        self._literals = np.full(2 * self._circuit.inputs + 2, -1, np.int64)

    def build(self) -> GameGraph:
        propnet = self._propnet
        registers = len(propnet.initial)
        self._add_inputs()
        for register, literal in enumerate(propnet.next.tolist()):
            self._feeds(2 * (1 + register), literal)
        first_feedback = 1 + propnet.inputs - len(propnet.feedback)
        for number, literal in enumerate(propnet.feedback.tolist()):
            self._feeds(2 * (first_feedback + number), literal)
        self._edges.append((self._vertex("terminal"), self._function(propnet.terminal), "is"))
        roles, percepts = [], []
        node = 1 + registers
        for role in propnet.roles:
            person = self._vertex("random" if role.is_random else "player")
            roles.append(person)
            for legal in role.legal.tolist():
                self._edges.append((person, int(self._literals[2 * node]), "moves"))
                self._edges.append((int(self._literals[2 * node]), self._function(legal), "legal"))
                node += 1
            percepts.append(self._add_outputs(person, [self._percept_colour(n, role) for n in role.sees], role.sees))
            self._add_outputs(person, [("goal", value) for value in role.goal_values], role.goal)
        return GameGraph(
            graph_automorphisms.Graph(tuple(self._colours), tuple(self._edges)),
            self._literals,
            np.array(roles, np.int64),
            tuple(percepts),
        )

    def _percept_colour(self, literal: int, role: propnet.Role) -> Hashable:
        # Percepts that never occur, or always, could be exchanged in many ways that mean nothing.
        return ("percept", role.name, len(self._colours)) if literal <= aig.TRUE else "percept"

    def _add_inputs(self) -> None:
        propnet = self._propnet
        registers, inputs = len(propnet.initial), propnet.inputs
        first_feedback = 1 + inputs - len(propnet.feedback)
        for node in range(1, inputs + 1):
            if node <= registers:
                value = bool(propnet.initial[node - 1])
                colours: tuple[Hashable, Hashable] = ("register", value), ("register", not value)
            else:
                kind = "move" if node < first_feedback else "feedback"
                colours = (kind, True), (kind, False)
            self._literals[2 * node], self._literals[2 * node + 1] = self._pair(*colours)

    def _feeds(self, literal: int, following: int) -> None:
        for inverted in (0, 1):
            vertex = int(self._literals[literal + inverted])
            self._edges.append((vertex, self._function(following ^ inverted), "next"))

    def _add_outputs(self, person: int, colours: list[Hashable], literals: propnet.Ints) -> Longs:
        vertices = []
        for colour, literal in zip(colours, literals.tolist(), strict=True):
            vertices.append(self._vertex(colour))
            self._edges += [(person, vertices[-1], "has"), (vertices[-1], self._function(literal), "is")]
        return np.array(vertices, np.int64)

    def _vertex(self, colour: Hashable) -> int:
        self._colours.append(colour)
        return len(self._colours) - 1

    def _pair(self, colour: Hashable, inverted: Hashable) -> tuple[int, int]:
        pair = self._vertex(colour), self._vertex(inverted)
        self._edges += [(pair[0], pair[1], "not"), (pair[1], pair[0], "not")]
        return pair

    def _function(self, literal: int) -> int:
        """The vertex of a function. Equal functions share one if their prime implicants are known."""
        if literal <= 2 * self._circuit.inputs + 1 and literal > aig.TRUE:
            return int(self._literals[literal])
        forms = self._forms[literal], self._forms[literal ^ 1]
        cost = [float("inf") if form is None else _size(form) for form in forms]
        if min(cost) == float("inf"):
            return self._gate(literal)
        if min(cost) == 0:
            return self._once("false" if cost[0] == 0 and not forms[0] else "true")
        for form in forms:
            if form is not None and len(form) == 1 and (cube := next(iter(form))).bit_count() == 1:
                of = cube.bit_length() - 1
                return int(self._literals[of if form is forms[0] else of ^ 1])
        used = tuple(form if size == min(cost) else None for form, size in zip(forms, cost, strict=True))
        if used not in self._known:
            pair = self._pair("function", "function")
            self._known[used], self._known[used[::-1]] = pair
            for vertex, form in zip(pair, used, strict=True):
                for cube in form or ():
                    self._edges.append((vertex, self._cube(cube), "or"))
        return self._known[used]

    def _once(self, name: str) -> int:
        if name not in self._known:
            self._known[name] = self._vertex(name)
        return self._known[name]

    def _cube(self, cube: normal_forms.Cube) -> int:
        if cube not in self._known:
            vertex = self._known[cube] = self._vertex("cube")
            rest = cube
            while rest:
                lowest = rest & -rest
                self._edges.append((vertex, int(self._literals[lowest.bit_length() - 1]), "and"))
                rest ^= lowest
        return self._known[cube]

    def _gate(self, literal: int) -> int:
        key = ("gate", literal)
        if key not in self._known:
            pair = self._pair("function", "function")
            self._known[("gate", literal & ~1)], self._known[("gate", literal | 1)] = pair
            for child in self._circuit.gates[(literal >> 1) - self._circuit.inputs - 1]:
                self._edges.append((pair[0], self._function(child), "all"))
        return self._known[key]


def _size(form: normal_forms.Form) -> float:
    """Fewer and shorter implicants first."""
    return sum(1_000 + cube.bit_count() for cube in form) if form != {0} else 0
