"""Sizes of a propnet, and the memory that compiling it took."""

import resource
import sys

from gdlx.propnet.circuits import propnet
from gdlx.propnet.simulate import straight_line


def sizes(net: propnet.PropNet) -> dict[str, object]:
    """Returns the sizes of a propnet, as `gdlx info --json` prints them.

    `gates` counts the n-ary AND gates of the propnet; `operations` counts the two-input operations of the code emitted
    for it, in which common factors and pairs of literals are shared.
    """
    return {
        "roles": [role.name for role in net.roles],
        "moves": {role.name: len(role.moves) for role in net.roles},
        "percepts": {role.name: len(role.percepts) for role in net.players},
        "gates": net.gates,
        "operations": straight_line.share_operations(net.as_circuit()).operations,
        "depth": net.depth,
        "registers": len(net.initial),
        "feedbacks": len(net.feedback),
    }


def peak_mb() -> float:
    """Returns the peak memory of this process or of one of its children, as the system reports it."""
    unit = 2**20 if sys.platform == "darwin" else 2**10
    process = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return max(process, children) / unit
