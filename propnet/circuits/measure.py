"""Sizes of a propnet, and the memory that compiling it took."""

import resource
import sys

from gdlx.propnet.circuits import propnet
from gdlx.propnet.simulate import straight_line

_MOST_EDGES = 20_000  # above it counting operations takes longer than loading the propnet


def sizes(propnet: propnet.PropNet, *, always_count: bool = False) -> dict[str, object]:
    """Returns the sizes of a propnet, as `gdlx info --json` prints them.

    `gates` counts the n-ary AND gates of the propnet; `operations` counts the two-input operations of the code emitted
    for it, in which common factors and pairs of literals are shared. Sharing takes long in a large propnet, where it is
    None unless `always_count`.
    """
    counted = always_count or len(propnet.gate_inputs) <= _MOST_EDGES
    return {
        "roles": [role.name for role in propnet.roles],
        "moves": {role.name: len(role.moves) for role in propnet.roles},
        "percepts": {role.name: len(role.percepts) for role in propnet.players},
        "gates": propnet.gates,
        "operations": straight_line.share_operations(propnet.as_circuit()).operations if counted else None,
        "depth": propnet.depth,
        "registers": len(propnet.initial),
        "feedbacks": len(propnet.feedback),
    }


def peak_mb() -> float:
    """Returns the peak memory of this process or of one of its children, as the system reports it."""
    unit = 2**20 if sys.platform == "darwin" else 2**10
    process = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return max(process, children) / unit
