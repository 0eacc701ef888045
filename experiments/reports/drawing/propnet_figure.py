"""A small propnet as inline SVG: registers and moves on the left, gates by their depth, outputs on the right."""

import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gdlx.experiments.reports.drawing import markup
from gdlx.propnet.circuits import aig, propnet
from gdlx.propnet.io import dot

LIMIT = 400  # nodes; larger pictures show nothing
_ROW, _COLUMN, _TEXT, _MARGIN = 16, 54, 260, 14  # distances; the width of names; pixels
_SHOWN = 36  # characters of a name

element = markup.element


class _Node(NamedTuple):
    name: str
    style: str
    column: int
    inputs: tuple[aig.Literal, ...]


class _Place(NamedTuple):
    x: float
    y: float


def draw(propnet: propnet.PropNet) -> markup.Markup | None:
    """Draws a propnet; None if it has more than `LIMIT` nodes."""
    circuit = propnet.as_circuit()
    if circuit.inputs + len(circuit.gates) + len(circuit.outputs) > LIMIT:
        return None
    is_or = dot.or_gates(circuit)
    nodes = _nodes(propnet, circuit, is_or)
    places = _places(nodes)
    wires = [
        _wire(places[literal >> 1], places[key], inverted=bool(literal & 1) ^ (literal >> 1 in is_or) ^ (key in is_or))
        for key, node in nodes.items()
        for literal in node.inputs
        if literal >> 1 in places
    ]
    last = max(node.column for node in nodes.values())
    shapes = [_shape(node, places[key], last) for key, node in nodes.items()]
    width = 2 * _TEXT + last * _COLUMN
    height = max(place.y for place in places.values()) + _MARGIN
    title = element("title", f"propnet of {propnet.name}")
    drawing = element(
        "svg",
        title,
        *wires,
        *shapes,
        class_="propnet",
        viewBox=f"0 0 {width:g} {height:g}",
        style=f"max-width:{1.2 * width:.0f}px",
        role="img",
    )
    return element("div", drawing, class_="wide", tabindex=0, role="region", aria_label="drawing of the propnet")


def _nodes(propnet: propnet.PropNet, circuit: aig.Circuit, is_or: set[int]) -> dict[int, _Node]:
    """All nodes that something reads, in topological order; outputs have negative keys."""
    used = {literal >> 1 for literal in dot.used_literals(circuit)}
    nodes = {0: _Node("false", "input", 0, ())} if 0 in used else {}
    for key, lines in dot.input_names(propnet).items():
        style = "register" if key <= len(propnet.initial) else "move"
        nodes[key] = _Node(", ".join(lines), style, 0, ())
    for key, gate in enumerate(circuit.gates, circuit.inputs + 1):
        column = 1 + max((nodes[literal >> 1].column for literal in gate if literal >> 1 in nodes), default=0)
        nodes[key] = _Node("or" if key in is_or else "and", "gate", column, gate)
    last = 1 + max(node.column for node in nodes.values())
    for number, (name, literal) in enumerate(dot.named_outputs(propnet), 1):
        nodes[-number] = _Node(name, "output", last, (literal,))
    return nodes


def _places(nodes: Mapping[int, _Node]) -> dict[int, _Place]:
    """Spreads every column over the height, each node near the mean of its inputs."""
    columns: dict[int, list[int]] = {}
    for key, node in nodes.items():
        columns.setdefault(node.column, []).append(key)
    height = _ROW * max(map(len, columns.values()))
    places: dict[int, _Place] = {}
    for column in sorted(columns):
        keys = sorted(columns[column], key=lambda key: _height(nodes[key].inputs, places)) if column else columns[0]
        step = height / len(keys)
        for number, key in enumerate(keys):
            places[key] = _Place(_TEXT + column * _COLUMN, _MARGIN + step * (number + 0.5))
    return places


def _height(inputs: Sequence[aig.Literal], places: Mapping[int, _Place]) -> float:
    return statistics.fmean([places[literal >> 1].y for literal in inputs if literal >> 1 in places] or [0.0])


def _wire(start: _Place, end: _Place, *, inverted: bool) -> markup.Markup:
    middle = (start.x + end.x) / 2
    path = f"M{start.x:.1f},{start.y:.1f}C{middle:.1f},{start.y:.1f} {middle:.1f},{end.y:.1f} {end.x:.1f},{end.y:.1f}"
    return element("path", d=path, class_="wire inverted" if inverted else "wire")


def _shape(node: _Node, place: _Place, last: int) -> markup.Markup:
    title = element("title", node.name)
    dot_ = element("circle", title, cx=f"{place.x:.1f}", cy=f"{place.y:.1f}", r=5, class_=node.style)
    if node.style == "gate":
        return dot_
    is_output = node.column == last
    x, anchor = (place.x + 9, "start") if is_output else (place.x - 9, "end")
    shown = node.name if len(node.name) <= _SHOWN else f"{node.name[: _SHOWN - 2]} .."
    text = element("text", shown, x=f"{x:.1f}", y=f"{place.y + 4:.1f}", text_anchor=anchor)
    return element("g", dot_, text)
