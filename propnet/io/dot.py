"""Draws a propnet: text for Graphviz (`dot -Tsvg`)."""

from collections.abc import Iterator

from gdlx.propnet.circuits import aig, propnet
from gdlx.propnet.common import errors
from gdlx.propnet.syntax import diagnostics

LIMIT = 2_000  # nodes; a larger drawing takes Graphviz minutes and shows nothing
_FLUENTS_SHOWN = 3  # of those that share one register

_HEAD = """digraph {
  rankdir=LR; ranksep=1.2; nodesep=0.12;
  node [fontname="Helvetica", fontsize=11, height=0.3, margin="0.1,0.04"];
  edge [arrowsize=0.6, color="#555555"];
"""
_REGISTER = 'shape=box, style=filled, fillcolor="#cfe2f3"'
_MOVE = 'shape=box, style="filled,rounded", fillcolor="#fff2cc"'
_FEEDBACK = 'shape=diamond, style=filled, fillcolor="#ead1dc"'
_CONSTANT = "shape=plaintext"
_CONSTANTS = {aig.FALSE: "false", aig.TRUE: "true"}
_GATE = "shape=circle, margin=0, width=0.4, fixedsize=true"
_OUTPUT = 'shape=box, style=filled, fillcolor="#d9ead3"'
_NEXT = 'shape=box, style="filled,dashed", fillcolor="#cfe2f3"'


class TooLargeToDrawError(errors.UserError, ValueError):
    """Raised if a propnet has more nodes than the limit of a drawing."""


def to_dot(propnet: propnet.PropNet, *, limit: int = LIMIT) -> str:
    """Draws registers (double-framed if initially true), moves, gates and outputs from left to right.

    A circle at the end of an arrow inverts. A gate whose inputs and uses are all inverted is drawn as OR.
    """
    gates = propnet.as_circuit()
    nodes = 1 + gates.inputs + len(gates.gates) + len(gates.outputs)
    if nodes > limit:
        problem = f"{diagnostics.shorten(propnet.name)} has {nodes:,} nodes, too many to draw"
        raise TooLargeToDrawError(f"{problem}; raise the limit (now {limit:,}) to draw it anyway")
    used = used_literals(gates)
    is_or = or_gates(gates)
    lines = [*_inputs(propnet, used), *_gates(gates, is_or), *_outputs(propnet, is_or)]
    return _HEAD + "".join(f"  {line};\n" for line in lines) + "}\n"


def used_literals(gates: aig.Circuit) -> set[aig.Literal]:
    """The literals that some gate or output reads."""
    return {literal for gate in gates.gates for literal in gate} | set(gates.outputs)


def or_gates(gates: aig.Circuit) -> set[int]:
    """The nodes of gates that read better as OR: all their inputs and uses are inverted."""
    used = used_literals(gates)
    return {
        node
        for node, gate in enumerate(gates.gates, gates.inputs + 1)
        if 2 * node not in used and all(literal & 1 for literal in gate)
    }


def quoted(*lines: str) -> str:
    r"""Quotes lines of text as one label; escapes what Graphviz would expand, backslashes and entities.

    >>> print(quoted('say "hi"', r"to \N & co"))
    "say \"hi\"\nto \\N &amp; co"
    """
    shown = (diagnostics.shorten(line).replace("&", "&amp;") for line in lines)
    return '"' + r"\n".join(line.replace("\\", r"\\").replace('"', r"\"") for line in shown) + '"'


def _inputs(propnet: propnet.PropNet, used: set[aig.Literal]) -> Iterator[str]:
    for name in (_CONSTANTS[literal] for literal in sorted(used & _CONSTANTS.keys())):
        yield f'{name} [label="{name}", {_CONSTANT}]'
    first_move, first_feedback = 1 + len(propnet.initial), 1 + propnet.inputs - len(propnet.feedback)
    for node, lines in input_names(propnet).items():
        style = _REGISTER if node < first_move else _MOVE if node < first_feedback else _FEEDBACK
        frames = f", peripheries={2 if propnet.initial[node - 1] else 1}" if node < first_move else ""
        yield f"n{node} [label={quoted(*lines)}, {style}{frames}]"


def input_names(propnet: propnet.PropNet) -> dict[int, list[str]]:
    """Returns lines of text for every register, move and feedback, by their nodes."""
    names = _register_names(propnet)
    for number, role in enumerate(propnet.roles):
        for node, move in enumerate(role.moves, propnet.first_move_node(number)):
            names[node] = [f"does {role.name} {move}"]
    for node in range(1 + propnet.inputs - len(propnet.feedback), 1 + propnet.inputs):
        names[node] = [_feedback(propnet, node)]
    return names


def _register_names(propnet: propnet.PropNet) -> dict[int, list[str]]:
    """Returns the fluents of each register: after simplification there may be several, some inverted."""
    names_of: dict[int, list[str]] = {node: [] for node in range(1, 1 + len(propnet.initial))}
    for fluent, literal in zip(propnet.fluents, propnet.fluent_literals.tolist(), strict=True):
        if literal > aig.TRUE:
            names_of[literal >> 1].append(f"not {fluent}" if literal & 1 else fluent)
    for node, names in names_of.items():
        if len(names) > _FLUENTS_SHOWN:
            names[_FLUENTS_SHOWN:] = [f"and {len(names) - _FLUENTS_SHOWN} more"]
        elif not names:
            names.append(f"register {node}")
    return names_of


def _feedback(propnet: propnet.PropNet, node: int) -> str:
    return f"feedback {node - propnet.inputs + len(propnet.feedback)}"


def _gates(gates: aig.Circuit, is_or: set[int]) -> Iterator[str]:
    for node, gate in enumerate(gates.gates, gates.inputs + 1):
        invert = node in is_or
        yield f'n{node} [label="{"or" if invert else "and"}", {_GATE}]'
        for literal in gate:
            yield _edge(literal ^ invert, f"n{node}", is_or)


def _edge(literal: aig.Literal, target: str, is_or: set[int]) -> str:
    if literal in _CONSTANTS:
        return f"{_CONSTANTS[literal]} -> {target}"
    inverted = (literal & 1) ^ (literal >> 1 in is_or)
    return f"n{literal >> 1} -> {target}" + (" [arrowhead=odot]" if inverted else "")


def _outputs(propnet: propnet.PropNet, is_or: set[int]) -> Iterator[str]:
    styles = {"next": _NEXT, "again": _FEEDBACK}
    for number, (label, literal) in enumerate(named_outputs(propnet)):
        yield f"o{number} [label={quoted(label)}, {styles.get(label.partition(' ')[0], _OUTPUT)}]"
        yield _edge(literal, f"o{number}", is_or)


def named_outputs(propnet: propnet.PropNet) -> Iterator[tuple[str, aig.Literal]]:
    """Yields the name of every output, which begins with its kind, and its literal."""
    names = _register_names(propnet)
    for node, literal in enumerate(propnet.next.tolist(), 1):
        yield f"next {names[node][0]}", literal
    for node, literal in enumerate(propnet.feedback.tolist(), 1 + propnet.inputs - len(propnet.feedback)):
        yield f"again {_feedback(propnet, node)}", literal
    for role in propnet.roles:
        rows = (
            *((f"legal {role.name} {move}", role.legal[n]) for n, move in enumerate(role.moves)),
            *((f"sees {role.name} {percept}", role.sees[n]) for n, percept in enumerate(role.percepts)),
            *((f"goal {role.name} {value}", role.goal[n]) for n, value in enumerate(role.goal_values)),
        )
        for text, literal in rows:
            yield text, int(literal)
    yield "terminal", propnet.terminal
