"""Evaluates a circuit level by level in numpy: for large circuits and few columns, where a call per gate is slow."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from gdlx.propnet.circuits import aig

Rows = npt.NDArray[Any]


class LevelizedCircuit:
    """The gates of a circuit in groups that depend only on earlier groups."""

    def __init__(self, gates: aig.Circuit) -> None:
        first = gates.inputs + 1
        depth = [0] * first
        for gate in gates.gates:
            depth.append(1 + max(depth[literal >> 1] for literal in gate))
        self._nodes = len(depth)
        self._outputs = np.array(gates.outputs, np.int64)
        self._groups: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]] = []
        levels = np.array(depth[first:], np.int64)
        order = np.argsort(levels, kind="stable")
        for numbers in np.split(order, np.flatnonzero(np.diff(levels[order])) + 1) if len(order) else []:
            members = [gates.gates[number] for number in numbers.tolist()]
            starts = np.cumsum([0, *map(len, members)])[:-1]
            literals = np.fromiter((literal for gate in members for literal in gate), np.int64)
            self._groups.append((first + numbers, starts, literals))

    def run(self, inputs: Rows) -> Rows:
        """Maps input rows to output rows; a column is one bool or one word."""
        rows = np.zeros((self._nodes, inputs.shape[1]), inputs.dtype)
        rows[1 : len(inputs) + 1] = inputs
        for nodes, starts, literals in self._groups:
            rows[nodes] = np.bitwise_and.reduceat(_read(rows, literals), starts, axis=0)
        return _read(rows, self._outputs)


def _read(rows: Rows, literals: npt.NDArray[np.int64]) -> Rows:
    inverted = (literals & 1).astype(bool)
    values: Rows = rows[literals >> 1]
    values[inverted] = ~values[inverted]
    return values


def extract_cone(gates: aig.Circuit, outputs: Iterable[aig.Literal]) -> aig.Circuit:
    """Returns the part of a circuit that the outputs depend on."""
    return aig.prune(aig.Circuit(gates.inputs, gates.gates, tuple(outputs)))
