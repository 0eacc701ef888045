"""Sizes of a network, and what it took to make it."""

import resource
import sys

from gdlx.propnet.circuits import propnet
from gdlx.propnet.simulate import straight_line


def sizes(net: propnet.PropNet) -> dict[str, object]:
    """Names and numbers as `gdlx info --json` gives them.

    Gates are the n-ary AND gates of the network; operations the two-input operations of the code emitted for it,
    in which factors and pairs of literals are shared.
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
    """The most memory this process and its children have used at once, as far as the system tells."""
    unit = 2**20 if sys.platform == "darwin" else 2**10
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return max(own, children) / unit
