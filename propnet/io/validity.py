"""Validates propnets, so that code that plays them needs no checks of its own."""

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from gdlx.propnet.circuits import propnet
from gdlx.propnet.common import graphs
from gdlx.propnet.io import checked_fields
from gdlx.propnet.syntax import diagnostics

PropNetFileError = checked_fields.PropNetFileError


def validate(propnet: propnet.PropNet) -> None:
    """Raises PropNetFileError at the first problem; a valid propnet can be evaluated, and evaluation terminates."""
    _check_names(propnet)
    _check_arrays(propnet)
    _check_literals(propnet)
    _check_gates(propnet)
    _check_recursion(propnet)


def _check_names(propnet: propnet.PropNet) -> None:
    if not propnet.roles:
        raise PropNetFileError("it has no roles")
    _check_texts([propnet.name], "the name of the game")
    _check_texts([role.name for role in propnet.roles], "role names")
    if len({role.name for role in propnet.roles}) < len(propnet.roles):
        raise PropNetFileError("two roles have the same name")
    _check_ascending(propnet.fluents, "fluents")
    for role in propnet.roles:
        shown = diagnostics.shorten(role.name)
        _check_ascending(role.moves, f"moves of {shown}")
        _check_ascending(role.percepts, f"percepts of {shown}")
        if any(type(value) is not int or abs(value) >= 2**31 for value in role.goal_values):
            raise PropNetFileError(f"a goal value of {shown} is not an integer of 32 bits")
        if any(a >= b for a, b in itertools.pairwise(role.goal_values)):
            raise PropNetFileError(f"the goal values of {shown} are not sorted, or have a duplicate")


def _check_texts(names: Iterable[str], what: str) -> None:
    for name in names:
        if not isinstance(name, str) or not name or name.encode("utf-8", "ignore").decode() != name:
            raise PropNetFileError(f"{what}: {diagnostics.shorten(repr(name))} is not a name")


def _check_ascending(names: Sequence[str], what: str) -> None:
    _check_texts(names, what)
    for first, second in itertools.pairwise(names):
        if first >= second:
            shown = diagnostics.shorten(second)
            raise PropNetFileError(f"{what} are not sorted by their text, or have a duplicate: {shown}")


def _check_arrays(propnet: propnet.PropNet) -> None:
    expected: list[tuple[str, Any, type, int]] = [
        ("fluent_literals", propnet.fluent_literals, np.int32, len(propnet.fluents)),
        ("initial", propnet.initial, np.bool_, len(propnet.initial)),
        ("next", propnet.next, np.int32, len(propnet.initial)),
        ("feedback", propnet.feedback, np.int32, len(propnet.feedback)),
        ("gate_starts", propnet.gate_starts, np.int32, max(1, len(propnet.gate_starts))),
        ("gate_inputs", propnet.gate_inputs, np.int32, len(propnet.gate_inputs)),
    ]
    for role in propnet.roles:
        expected += [
            ("legal", role.legal, np.int32, len(role.moves)),
            ("sees", role.sees, np.int32, len(role.percepts)),
            ("goal", role.goal, np.int32, len(role.goal_values)),
        ]
    for name, array, kind, size in expected:
        if array.dtype != kind or array.shape != (size,):
            actual = f"{array.dtype}{list(array.shape)}"
            raise PropNetFileError(f"{name!r} is {actual}, not {np.dtype(kind)}[{size}]")


def _check_literals(propnet: propnet.PropNet) -> None:
    bound = 2 * (1 + propnet.inputs + propnet.gates)
    _check_range("'fluent_literals'", propnet.fluent_literals, 2 * (1 + len(propnet.initial)))
    _check_range("'next'", propnet.next, bound)
    _check_range("'feedback'", propnet.feedback, bound)
    _check_range("the gates", propnet.gate_inputs, bound)
    for role in propnet.roles:
        shown = diagnostics.shorten(role.name)
        for name, literals in (("legal", role.legal), ("sees", role.sees), ("goal", role.goal)):
            _check_range(f"{name!r} of {shown}", literals, bound)
    if type(propnet.terminal) is not int or not 0 <= propnet.terminal < bound:
        raise PropNetFileError(f"'terminal' is not a literal of 0..{bound - 1}")


def _check_range(what: str, literals: propnet.Ints, bound: int) -> None:
    if len(literals) and (literals.min() < 0 or literals.max() >= bound):
        raise PropNetFileError(f"{what}: a literal is outside of 0..{bound - 1}")


def _check_gates(propnet: propnet.PropNet) -> None:
    starts = propnet.gate_starts.astype(np.int64)
    sizes = starts[1:] - starts[:-1]
    if starts[0] != 0 or (sizes < 2).any() or starts[-1] != len(propnet.gate_inputs):
        raise PropNetFileError("the gates do not split `gate_inputs` into two or more literals each")
    gate, nodes = np.repeat(np.arange(propnet.gates), sizes), propnet.gate_inputs >> 1
    if (nodes > propnet.inputs + gate).any():
        raise PropNetFileError("a gate uses itself or a later gate", "put each gate after those it uses")
    # As aig.Builder creates them: passes rely on gates that need no folding.
    if (nodes == 0).any() or ((nodes[1:] <= nodes[:-1]) & (gate[1:] == gate[:-1])).any():
        raise PropNetFileError("a gate uses a constant, or a node twice, or its literals are not sorted")


def _check_recursion(propnet: propnet.PropNet) -> None:
    """Requires that feedbacks are monotone within each strongly connected component: otherwise iteration may not end.

    So every path from one feedback to another within a component must have an even number of inversions.
    """
    if not len(propnet.feedback):
        return
    first = 1 + propnet.inputs - len(propnet.feedback)
    edges = {first + n: [lit] for n, lit in enumerate(propnet.feedback.tolist())}
    bounds, inputs = propnet.gate_starts.tolist(), propnet.gate_inputs.tolist()
    edges |= {1 + propnet.inputs + g: inputs[a:b] for g, (a, b) in enumerate(itertools.pairwise(bounds))}
    for group in graphs.strongly_connected_components(
        {node: [lit >> 1 for lit in used] for node, used in edges.items()}
    ):
        members = set(group)
        uses = {node: [lit for lit in edges.get(node, ()) if lit >> 1 in members] for node in sorted(group)}
        inverted: dict[int, int] = {}  # relative to the feedbacks
        for node, used in uses.items():  # gates come after what they use
            is_gate = node > propnet.inputs and used
            inverted[node] = inverted[used[0] >> 1] ^ used[0] & 1 if is_gate else 0
        if any(inverted[node] != inverted[lit >> 1] ^ lit & 1 for node, used in uses.items() for lit in used):
            raise PropNetFileError("a feedback depends on its own negation, so it may never reach a fixpoint")
