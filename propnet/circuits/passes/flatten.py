"""Merges a gate into its only user if that uses it uninverted: a & (b & c) = a & b & c."""

import collections

from gdlx.propnet.circuits import aig
from gdlx.propnet.common import deadlines


def use_counts(gates: aig.Circuit) -> collections.Counter[int]:
    """Counts how often each node is used, by gates and as an output."""
    counts = collections.Counter(literal >> 1 for gate in gates.gates for literal in gate)
    counts.update(literal >> 1 for literal in gates.outputs)
    return counts


def flatten(gates: aig.Circuit) -> aig.Circuit:
    counts = use_counts(gates)
    first = gates.inputs + 1
    single = {
        lit >> 1 for gate in gates.gates for lit in gate if lit >> 1 >= first and not lit & 1 and counts[lit >> 1] == 1
    }
    builder = aig.Builder(gates.inputs)
    literal_of = [aig.FALSE, *(builder.input(n) for n in range(gates.inputs))]
    waiting: dict[int, list[aig.Literal]] = {}  # gates that become part of their only user
    for node, gate in enumerate(deadlines.watched(gates.gates), first):
        parts: list[aig.Literal] = []
        for literal in gate:
            inner = waiting.pop(literal >> 1, None)
            parts += [literal_of[literal >> 1] ^ (literal & 1)] if inner is None else inner
        if node in single:
            waiting[node] = parts
            literal_of.append(aig.FALSE)
        else:
            literal_of.append(builder.conjunction(parts))
    return builder.circuit(literal_of[lit >> 1] ^ (lit & 1) for lit in gates.outputs)
