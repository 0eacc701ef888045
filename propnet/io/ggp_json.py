"""Reads the JSON layout of ggp-cpp's propositional networks: one entry per node, AND, OR, NOT or proposition.

Propnets of ggp-base are published in this layout; docs/reference/file-formats.md has the details. A transition is a
register: its PRE half takes the next value, its POST half has the current value. The initial state is the value of the
PRE halves if all POST halves and all moves are false and `init` is true.
"""

import dataclasses
import pathlib
from collections.abc import Iterable, Mapping
from typing import TypeVar

import numpy as np

from gdlx.propnet.circuits import aig, propnet
from gdlx.propnet.common import atomic_files, bounded_files, graphs
from gdlx.propnet.io import checked_fields, ggp_json_writer, validity
from gdlx.propnet.syntax import diagnostics, ground_terms, terms

NodeType = ggp_json_writer.NodeType

_KINDS = ("init", "base", "input", "legal", "goal", "sees", "terminal", "other")  # of propositions
_INSTEAD = "compile the game's rulesheet with gdlx instead"

K = TypeVar("K", str, int)
V = TypeVar("V")


def load_ggp_json(path: checked_fields.Path, *, max_bytes: int = checked_fields.MAX_BYTES) -> propnet.PropNet:
    """Loads a propnet in this layout; the game is named after the file."""
    with checked_fields.name_file_in_errors(path):
        data = checked_fields.parse_json(bounded_files.read_bytes(path, max_bytes))
        return propnet_from_json(data, pathlib.Path(path).stem)


def save_ggp_json(propnet: propnet.PropNet, path: checked_fields.Path) -> None:
    """Saves a propnet in this layout to a .json file; raises PropNetFileError if the layout cannot express it."""
    with checked_fields.name_file_in_errors(path):
        if pathlib.PurePath(path).suffix.lower() != ".json":
            raise checked_fields.PropNetFileError("this layout is JSON", "name the file .json")
        atomic_files.write_atomically(path, ggp_json_writer.to_json(propnet).encode("ascii"))


def is_ggp_json(data: object) -> bool:
    return isinstance(data, dict) and "format" not in data and "entries" in data


def propnet_from_json(data: object, name: str) -> propnet.PropNet:
    """Builds the propnet that parsed JSON describes, folded but not simplified further."""
    file = checked_fields.Fields(data, "the file")
    nodes = _nodes(file)
    order = _topological(nodes)
    bases = (node for node in nodes.values() if node.kind == "base")
    fluents = _unique("fluent", ((_argument(node, "true"), node.id) for node in bases))
    terminal = [node.id for node in nodes.values() if node.kind == "terminal"]
    if len(terminal) != 1:
        raise _error(f"it has {len(terminal)} terminal propositions, not 1")
    roles = [_read_role(item, nodes) for item in file.objects("roles")]
    if _is_first_language(file, nodes, roles):
        roles = _with_joint_percepts(roles)
    _check_state_only(nodes, terminal[0], roles)
    propnet = _propnet(name, nodes, order, fluents, roles, terminal[0])
    validity.validate(propnet)
    return propnet


def _error(problem: str) -> checked_fields.PropNetFileError:
    return checked_fields.PropNetFileError(problem, f"fix it, or {_INSTEAD}")


@dataclasses.dataclass(frozen=True)
class _Node:
    """One entry of a file."""

    id: int
    type: int
    kind: str  # of a proposition, else empty
    ins: tuple[int, ...]  # ids
    gdl: ground_terms.GroundTerm  # of propositions whose name matters
    constant: bool

    @property
    def is_register(self) -> bool:
        return self.type in (NodeType.TRANSITION, NodeType.POST_TRANSITION)

    @property
    def uses(self) -> tuple[int, ...]:
        """The ids of the entries that its value depends on in the same step."""
        return () if self.is_register else self.ins


def _nodes(file: checked_fields.Fields) -> dict[int, _Node]:
    nodes = _unique("id", ((node.id, node) for node in map(_node, file.objects("entries"))))
    if list(nodes) != list(range(len(nodes))):
        raise _error(f"the ids of its {len(nodes)} entries are not 0, 1, 2, ..")
    for node in nodes.values():
        for used in node.ins:
            if used not in nodes:
                raise _error(f"entry {node.id} uses an entry that does not exist")
        if node.type == NodeType.POST_TRANSITION and nodes[node.ins[0]].type != NodeType.PRE_TRANSITION:
            raise _error(f"entry {node.id}, a POST TRANSITION, does not use a PRE TRANSITION")
    return nodes


def _node(entry: checked_fields.Fields) -> _Node:
    node_type, kind, constant = entry.value("type", int), "", True
    if node_type not in {int(known) for known in NodeType}:
        raise _error(f"{entry.where} has an unknown type")
    if node_type == NodeType.CONSTANT and "value" in entry:
        constant = entry.value("value", bool)
    if node_type == NodeType.PROPOSITION:
        kind = entry.value("proposition_type", str)
        if kind not in _KINDS:
            raise _error(f"{entry.where} has the unknown proposition_type {diagnostics.shorten(kind)!r}")
    named = kind in ("base", "input", "legal", "goal", "sees")
    return _Node(
        id=entry.value("id", int),
        type=node_type,
        kind=kind,
        ins=_ins(entry, node_type, kind),
        gdl=_term(entry.value("gdl", str), f"the gdl of {entry.where}") if named else "",
        constant=constant,
    )


def _ins(entry: checked_fields.Fields, node_type: int, kind: str) -> tuple[int, ...]:
    """Returns the ids that an entry uses: the list `ins`, or the single id `in`."""
    if node_type in (NodeType.AND, NodeType.OR):
        return tuple(entry.values("ins", int))
    if node_type == NodeType.CONSTANT or kind in ("init", "input"):
        return ()
    ids = [entry.value("in", int)] if "in" in entry else entry.values("ins", int)
    if len(ids) != 1:
        raise _error(f"{entry.where} has {len(ids)} inputs, not 1")
    return tuple(ids)


def _term(text: str, what: str) -> ground_terms.GroundTerm:
    try:
        parsed = ground_terms.from_text(text)
    except diagnostics.GdlError:
        parsed = ()
    if len(parsed) != 1:
        raise _error(f"{what} is not a term: {diagnostics.shorten(text)!r}")
    return parsed[0]


def _argument(node: _Node, relation: str, role: str | None = None) -> str:
    """Returns the text of the last argument of a proposition: its fluent, move or percept."""
    prefix = [relation] if role is None else [relation, role]
    gdl = node.gdl
    texts = [ground_terms.to_text(part) for part in gdl] if isinstance(gdl, tuple) else []
    if len(texts) != len(prefix) + 1 or [texts[0].lower(), *texts[1:-1]] != prefix:
        shown = diagnostics.shorten(" ".join(prefix))
        raise _error(f"entry {node.id} is {diagnostics.shorten(ground_terms.to_text(gdl))}, not ({shown} ..)")
    return texts[-1]


def _unique(what: str, pairs: Iterable[tuple[K, V]]) -> dict[K, V]:
    unique: dict[K, V] = {}
    for key, value in pairs:
        if key in unique:
            raise _error(f"two entries have the same {what}: {diagnostics.shorten(key)}")
        unique[key] = value
    return {key: unique[key] for key in sorted(unique)}


def _topological(nodes: Mapping[int, _Node]) -> list[_Node]:
    groups = graphs.strongly_connected_components({number: node.uses for number, node in nodes.items()})
    for group in groups:
        if len(group) > 1 or group[0] in nodes[group[0]].uses:
            shown = ", ".join(map(str, sorted(group)[:8])) + (", .." if len(group) > 8 else "")
            problem = f"entries {shown} depend on each other in a cycle without a transition"
            raise checked_fields.PropNetFileError(problem, _INSTEAD)
    return [nodes[number] for group in groups for number in group]


@dataclasses.dataclass(frozen=True)
class _Role:
    """The ids of the entries of a role, by the name of the move, percept or goal value."""

    name: str
    inputs: dict[str, int]  # move -> does
    legal: dict[str, int]  # move -> legal
    sees: dict[str, int]
    goals: dict[int, int]


def _read_role(fields: checked_fields.Fields, nodes: Mapping[int, _Node]) -> _Role:
    name = ground_terms.to_text(_term(fields.value("role", str), "the name of a role"))

    def named(number: int, kind: str, relation: str) -> tuple[str, int]:
        if number not in nodes or nodes[number].kind != kind:
            raise _error(f"role {diagnostics.shorten(name)} lists an entry as {kind} that is not one")
        return _argument(nodes[number], relation, name), number

    pairs = fields.objects("legal_to_input")
    legal = [named(pair.value("legal", int), "legal", "legal") for pair in pairs]
    inputs = [named(pair.value("input", int), "input", "does") for pair in pairs]
    if [move for move, _ in legal] != [move for move, _ in inputs]:
        raise _error(f"role {diagnostics.shorten(name)} pairs a legal with the input of another move")
    if name == terms.RANDOM:  # chance has no percepts and no goals
        return _Role(name, _unique("move", inputs), _unique("move", legal), {}, {})
    sees = [named(number, "sees", "sees") for number in fields.values("sees", int)]
    goals = [(goal.value("value", int), goal.value("goal", int)) for goal in fields.objects("goals")]
    for _, number in goals:
        named(number, "goal", "goal")
    return _Role(
        name=name,
        inputs=_unique("move", inputs),
        legal=_unique("move", legal),
        sees=_unique("percept", sees),
        goals=_unique("goal value", goals),
    )


def _is_first_language(file: checked_fields.Fields, nodes: Mapping[int, _Node], roles: list[_Role]) -> bool:
    """Whether the game is GDL-I: it has neither `sees` nor chance, and the file does not have `"gdl": 2`."""
    if "gdl" in file and file.value("gdl", int) == 2:
        return False
    has_sees = any(node.kind == "sees" for node in nodes.values())
    return not has_sees and all(role.name != terms.RANDOM for role in roles)


def _with_joint_percepts(roles: list[_Role]) -> list[_Role]:
    """Adds the percepts of GDL-I, where every player perceives the joint action."""
    joint = {f"(does {role.name} {move})": number for role in roles for move, number in role.inputs.items()}
    return [dataclasses.replace(role, sees=dict(sorted(joint.items()))) for role in roles]


def _check_state_only(nodes: Mapping[int, _Node], terminal: int, roles: list[_Role]) -> None:
    """Requires that legal, goal and terminal depend only on the state: not on a move, and not on `init`."""
    outputs = [
        terminal,
        *(number for role in roles for number in (*role.legal.values(), *role.goals.values())),
    ]
    cone = graphs.reachable({number: node.uses for number, node in nodes.items()}, outputs)
    for number in sorted(cone):
        if nodes[number].kind in ("init", "input"):
            raise _error(f"legal, goal or terminal depends on entry {number}, which is {nodes[number].kind}")


def _propnet(
    name: str,
    nodes: Mapping[int, _Node],
    order: list[_Node],
    fluents: Mapping[str, int],
    roles: list[_Role],
    terminal: int,
) -> propnet.PropNet:
    registers = _registers(nodes, fluents)
    source = {r: nodes[r].ins[0] for r in registers}
    inputs = [*registers, *(number for role in roles for number in role.inputs.values())]
    initial_literal = _literals(order, {n.id: aig.TRUE for n in order if n.kind == "init"}, aig.Builder(0))
    builder = aig.Builder(len(inputs))
    literal = _literals(order, {number: builder.input(n) for n, number in enumerate(inputs)}, builder)

    def literals(ids: Iterable[int]) -> propnet.Ints:
        return np.array([literal[number] for number in ids], np.int32)

    for fluent, number in fluents.items():
        if literal[number] >> 1 > len(registers):
            raise _error(f"fluent {diagnostics.shorten(fluent)} does not come from a transition")
    unconnected = propnet.PropNet(
        name=name,
        roles=tuple(
            propnet.Role(
                name=role.name,
                moves=tuple(role.legal),
                legal=literals(role.legal.values()),
                percepts=tuple(role.sees),
                sees=literals(role.sees.values()),
                goal_values=tuple(role.goals),
                goal=literals(role.goals.values()),
            )
            for role in roles
        ),
        fluents=tuple(fluents),
        fluent_literals=literals(fluents.values()),
        initial=np.array([initial_literal[source[r]] == aig.TRUE for r in registers], np.bool_),
        next=literals(source.values()),
        terminal=literal[terminal],
        feedback=np.zeros(0, np.int32),
        gate_starts=np.zeros(1, np.int32),
        gate_inputs=np.zeros(0, np.int32),
    )
    return unconnected.with_circuit(builder.circuit(unconnected.as_circuit().outputs))


def _registers(nodes: Mapping[int, _Node], fluents: Mapping[str, int]) -> list[int]:
    """Returns transitions in the order of their fluents; those without a fluent come last."""
    named = [nodes[number].ins[0] for number in fluents.values()]
    return [n for n in dict.fromkeys([*named, *sorted(nodes)]) if nodes[n].is_register]


def _literals(order: list[_Node], inputs: Mapping[int, int], builder: aig.Builder) -> dict[int, int]:
    """Returns the literal of every node; registers, moves and init that are not in `inputs` are false."""
    literal: dict[int, int] = {}
    for node in order:
        used = [literal[number] for number in node.uses]
        if node.id in inputs:
            value = inputs[node.id]
        elif node.type == NodeType.CONSTANT:
            value = aig.TRUE if node.constant else aig.FALSE
        elif node.type == NodeType.AND:
            value = builder.conjunction(used)
        elif node.type == NodeType.OR:
            value = builder.disjunction(used)
        elif not used:
            value = aig.FALSE
        else:
            value = used[0] ^ (node.type == NodeType.NOT)
        literal[node.id] = value
    return literal
