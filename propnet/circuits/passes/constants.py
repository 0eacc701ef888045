"""Folds registers that never change, moves that are never legal, and feedbacks and percepts that never hold.

All of them are first assumed to be constant (registers at their initial value, the rest false). Whatever a three-valued
evaluation shows to change is no longer assumed, until a fixpoint: a proof by induction over the steps of play.
"""

import dataclasses

import numpy as np
import numpy.typing as npt

from gdlx.propnet.circuits import aig, propnet
from gdlx.propnet.common import deadlines

_CHANGES = 2  # third value besides 0 and 1


def fold_constants(propnet: propnet.PropNet) -> propnet.PropNet:
    gates = propnet.as_circuit()
    value = _constant_nodes(propnet, gates)
    registers = len(propnet.initial)
    inputs = [v if v != _CHANGES else 2 * n for n, v in enumerate(value[1 : gates.inputs + 1], 1)]
    folded = aig.rebuild(gates, inputs)
    kept_inputs = [literal > 1 for literal in inputs]
    return drop_inputs(propnet.with_circuit(folded), kept_inputs, [inputs[n] for n in range(registers)])


def _constant_nodes(propnet: propnet.PropNet, gates: aig.Circuit) -> list[int]:
    """Returns 0 or 1 for nodes that are constant in every reachable state, else _CHANGES."""
    first = gates.inputs + 1
    registers = len(propnet.initial)
    value = [0, *map(int, propnet.initial), *[0] * (gates.inputs - registers)]
    zeros, unknowns = [], [0] * len(gates.gates)
    users: list[list[int]] = [[] for _ in range(first + len(gates.gates))]
    for number, gate in enumerate(deadlines.watched(gates.gates)):
        count = 0
        for literal in gate:
            users[literal >> 1].append(2 * number + (literal & 1))
            count += value[literal >> 1] == literal & 1
        zeros.append(count)
        value.append(int(count == 0))
    # The literal that drives each input: the next value of a register or feedback, the legality of a move.
    drivers = [int(x) for x in propnet.next]
    for role in propnet.roles:
        drivers += map(int, role.legal)
    drivers += map(int, propnet.feedback)
    driven: dict[int, list[int]] = {}
    for number, literal in enumerate(drivers):
        driven.setdefault(literal >> 1, []).append(number)
    changed = [n + 1 for n, lit in enumerate(drivers) if value[lit >> 1] ^ (lit & 1) != value[n + 1]]
    work = list(changed)
    while work:
        node = work.pop()
        if value[node] == _CHANGES:
            continue
        was, value[node] = value[node], _CHANGES
        for number in driven.get(node, []):
            work.append(number + 1)
        for use in users[node]:
            number, inverted = use >> 1, use & 1
            zeros[number] -= was == inverted
            unknowns[number] += 1
            if zeros[number] == 0 and value[first + number] != _CHANGES:
                work.append(first + number)
    return value


def drop_inputs(propnet: propnet.PropNet, kept: list[bool], register_literals: list[int]) -> propnet.PropNet:
    """Removes inputs that no gate uses any more, and redirects their fluents to other registers.

    `register_literals` has for every register the literal of the constant or register (by old node) with its value.
    """
    registers = len(propnet.initial)
    node_of = np.zeros(propnet.inputs + 1, np.int64)
    node_of[1:][kept] = 1 + np.arange(sum(kept))
    shift = sum(kept) - propnet.inputs

    def renumbered(literals: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        nodes = literals.astype(np.int64) >> 1
        new = np.where(nodes <= propnet.inputs, node_of[np.minimum(nodes, propnet.inputs)], nodes + shift)
        return np.asarray(2 * new + (literals & 1), np.int32)

    roles = []
    position = registers
    for role in propnet.roles:
        keep = np.array(kept[position : position + len(role.moves)], bool)
        position += len(role.moves)
        seen = role.sees != aig.FALSE
        roles.append(
            dataclasses.replace(
                role,
                moves=tuple(move for move, k in zip(role.moves, keep, strict=True) if k),
                legal=renumbered(role.legal[keep]),
                percepts=tuple(percept for percept, s in zip(role.percepts, seen, strict=True) if s),
                sees=renumbered(role.sees[seen]),
                goal=renumbered(role.goal),
            )
        )
    keep = np.array(kept[:registers], bool)
    through = np.array(register_literals, np.int64)
    fluents = propnet.fluent_literals.astype(np.int64)
    is_register = fluents >> 1 > 0
    fluents = np.where(
        is_register,
        through[np.maximum(fluents >> 1, 1) - 1] ^ (fluents & 1) if registers else fluents,
        fluents,
    )
    return dataclasses.replace(
        propnet,
        roles=tuple(roles),
        fluent_literals=renumbered(fluents.astype(np.int32)),
        initial=propnet.initial[keep],
        next=renumbered(propnet.next[keep]),
        terminal=int(renumbered(np.array([propnet.terminal], np.int32))[0]),
        feedback=renumbered(propnet.feedback[np.array(kept[position:], bool)]),
        gate_inputs=renumbered(propnet.gate_inputs),
    )
