"""Writes a propnet in the JSON layout of `gdlx.propnet.io.ggp_json`."""

import enum
import json
from collections.abc import Iterable
from typing import Any

from gdlx.propnet.circuits import aig, propnet
from gdlx.propnet.io import checked_fields, validity
from gdlx.propnet.syntax import diagnostics, ground_terms


class NodeType(enum.IntEnum):
    """The type of an entry, numbered as in ggp-cpp."""

    AND = 1
    OR = 2
    PROPOSITION = 3
    TRANSITION = 4  # both halves in one
    NOT = 5
    CONSTANT = 6
    PRE_TRANSITION = 8
    POST_TRANSITION = 9


def to_json(propnet: propnet.PropNet) -> str:
    """Returns JSON with one entry per line; raises PropNetFileError if the layout cannot express the propnet."""
    validity.validate(propnet)
    if len(propnet.feedback):
        problem = "this layout has no way to express recursion through the state"
        raise checked_fields.PropNetFileError(problem, "save the propnet with gdlx.propnet.save_propnet")
    writer = _Writer(propnet)
    roles, order = writer.write()
    parts = (
        '"gdl": 2',  # the percepts are complete, even if there are none
        f'"roles": {json.dumps(roles)}',
        '"entries": [\n' + ",\n".join(map(json.dumps, writer.entries)) + "\n]",
        f'"topologically_sorted": {json.dumps(order)}',
    )
    return "{\n" + ",\n".join(parts) + "\n}\n"


class _Writer:
    """Creates entries in topological order, except that a POST half comes before its PRE half."""

    def __init__(self, propnet: propnet.PropNet) -> None:
        self.entries: list[dict[str, Any]] = []
        self._propnet = propnet
        self._id_of: dict[aig.Literal, int] = {}

    def write(self) -> tuple[list[dict[str, Any]], list[int]]:
        """Fills `entries`; returns the roles, and the ids of the entries in evaluation order."""
        propnet = self._propnet
        init = self._proposition("init", "init")
        for number, role in enumerate(propnet.roles):
            for node, move in enumerate(role.moves, propnet.first_move_node(number)):
                self._id_of[2 * node] = self._proposition("input", ("does", _term(role.name), _term(move)))
        posts = [self._add(NodeType.POST_TRANSITION) for _ in propnet.initial]
        self._id_of |= {2 * node: post for node, post in enumerate(posts, 1)}
        self._fluents()
        for node, gate in enumerate(propnet.as_circuit().gates, propnet.inputs + 1):
            self._gate(node, gate)
        self._transitions(init, posts)
        roles = [self._role(number) for number in range(len(propnet.roles))]
        self._proposition("terminal", "terminal", self._id(propnet.terminal))
        first = set(posts)
        return roles, [*posts, *(n for n in range(len(self.entries)) if n not in first)]

    def _add(self, kind: NodeType, **fields: Any) -> int:
        number = len(self.entries)
        self.entries.append({"id": number, "type": int(kind), "type_name": kind.name.replace("_", " "), **fields})
        return number

    def _proposition(self, kind: str, gdl: ground_terms.GroundTerm, source: int | None = None) -> int:
        fields: dict[str, Any] = {"proposition_type": kind, "gdl": _spaced(gdl)}
        if source is not None:
            fields["in"] = source
        shown = gdl[-1] if kind in ("legal", "sees") else gdl  # as ggp-cpp displays it to a player
        return self._add(NodeType.PROPOSITION, **fields, display=_spaced(shown))

    def _not(self, number: int) -> int:
        return self._add(NodeType.NOT, **{"in": number})

    def _id(self, literal: aig.Literal) -> int:
        if literal not in self._id_of:
            is_true = literal == aig.TRUE
            self._id_of[literal] = self._add(NodeType.CONSTANT) if is_true else self._not(self._id(literal ^ 1))
        return self._id_of[literal]

    def _fluents(self) -> None:
        id_of_literal: dict[aig.Literal, int] = {}
        for fluent, literal in zip(self._propnet.fluents, self._propnet.fluent_literals.tolist(), strict=True):
            proposition = self._proposition("base", ("true", _term(fluent)), self._id(literal))
            id_of_literal.setdefault(literal, proposition)
        self._id_of |= id_of_literal  # gates refer to the propositions, whose names make the file readable

    def _gate(self, node: int, gate: aig.Gate) -> None:
        """Adds a gate; an AND of inverted literals becomes an inverted OR, which needs no NOT entries."""
        invert = all(literal & 1 for literal in gate)
        ids = [self._id(literal ^ invert) for literal in gate]
        self._id_of[2 * node + invert] = self._add(NodeType.OR if invert else NodeType.AND, ins=ids)

    def _transitions(self, init: int, posts: list[int]) -> None:
        holds = _at_zero(self._propnet)
        for post, initial, literal in zip(posts, self._propnet.initial, self._propnet.next.tolist(), strict=True):
            following = self._id(literal)
            if initial:
                following = self._add(NodeType.OR, ins=[init, following])
            elif holds[literal >> 1] ^ (literal & 1):
                # In the step into the initial state, where all registers are false, it must not become true.
                following = self._add(NodeType.AND, ins=[self._not(init), following])
            self.entries[post]["in"] = self._add(NodeType.PRE_TRANSITION, **{"in": following})

    def _role(self, number: int) -> dict[str, Any]:
        role = self._propnet.roles[number]
        name, first = _term(role.name), self._propnet.first_move_node(number)

        def named(relation: str, names: Iterable[object], literals: propnet.Ints) -> list[int]:
            pairs = [(_term(str(n)), literal) for n, literal in zip(names, literals.tolist(), strict=True)]
            return [self._proposition(relation, (relation, name, n), self._id(lit)) for n, lit in pairs]

        goals = named("goal", role.goal_values, role.goal)
        legal = named("legal", role.moves, role.legal)
        return {
            "role": role.name,
            "goals": [{"goal": n, "value": v} for n, v in zip(goals, role.goal_values, strict=True)],
            "sees": named("sees", role.percepts, role.sees),
            "legal_to_input": [{"legal": n, "input": self._id(2 * (first + k))} for k, n in enumerate(legal)],
        }


def _term(name: str) -> ground_terms.GroundTerm:
    """Parses a name as a term, so that it can be recovered from the text of a proposition."""
    try:
        parsed = ground_terms.from_text(name)
    except diagnostics.GdlError:
        parsed = ()
    if len(parsed) != 1 or ground_terms.to_text(parsed[0]) != name:
        problem = f"in this layout {diagnostics.shorten(name)!r} cannot be a name, because it is not a term"
        raise checked_fields.PropNetFileError(problem, "save the propnet with gdlx.propnet.save_propnet")
    return parsed[0]


def _spaced(value: ground_terms.GroundTerm) -> str:
    return value if isinstance(value, str) else f"( {' '.join(map(_spaced, value))} )"


def _at_zero(propnet: propnet.PropNet) -> list[bool]:
    """Returns whether each node holds if all registers and moves are false."""
    holds = [False] * (propnet.inputs + 1)
    for gate in propnet.as_circuit().gates:
        holds.append(all(holds[literal >> 1] ^ bool(literal & 1) for literal in gate))
    return holds
