"""Refuses games that are too large to unroll node by node: before it begins, and at every level."""

import itertools
import math

from gdlx.envs import game_facts
from gdlx.envs.trees import game_tree
from gdlx.envs.trees.estimates import size_estimate
from gdlx.propnet.circuits import propnet
from gdlx.propnet.common import limits

MAX_NODES = limits.NODES
_MAX_BYTES = 10 * 2**30
_MAX_HISTORIES_PER_NODE = 100_000  # histories per allowed node
# Random matches that show whether a game is too large: the root of so many times the allowed joint actions.
_MATCHES_SQUARED, _MAX_MATCHES = 400, 2**18


def require_fit(propnet: propnet.PropNet, max_nodes: int = MAX_NODES, depth: int | None = None) -> None:
    """Raises TooLargeError if random play shows that a step has too many nodes, however many histories merge.

    >>> from gdlx.propnet import games
    >>> require_fit(games.compile_game("kuhn_poker"))
    """
    bound = _MAX_HISTORIES_PER_NODE * max_nodes
    guess = game_facts.probe(propnet).histories(bound, depth)
    widest = max(guess.histories)
    suggestion = _suggest(guess.max_depth_within(max_nodes))
    if widest > bound:  # every node would have to merge a hundred thousand histories
        raise game_tree.TooLargeError(
            f"{propnet.name} is too large to unroll: random play shows more than {widest:.0e} histories "
            f"after {len(guess.histories) - 1} joint actions",
            suggestion,
        )
    allowed = min(max_nodes, _MAX_BYTES // size_estimate.BYTES_PER_EDGE)
    if widest <= allowed:
        return
    matches = min(_MAX_MATCHES, math.isqrt(_MATCHES_SQUARED * allowed) + 1)
    steps = itertools.islice(size_estimate.node_count_lower_bounds(propnet, matches=matches), len(guess.histories) - 1)
    for step, nodes in enumerate(steps, 1):
        if nodes > allowed:
            raise game_tree.TooLargeError(
                f"{propnet.name} is too large to unroll: random play shows about {guess.total:.1e} histories, "
                f"which lead to more than {nodes:.1e} distinct nodes after {step} joint actions; allowed are "
                f"{allowed:,} joint actions that lead to a step",
                suggestion,
            )


def require_level(propnet: propnet.PropNet, edges: float, size: float, max_nodes: int, step: int) -> None:
    """Raises TooLargeError if the joint actions that lead to a step exceed a limit; `size` is additional bytes."""
    needed = size + size_estimate.BYTES_PER_EDGE * edges
    if edges > max_nodes or needed > _MAX_BYTES:
        guess = game_facts.probe(propnet).histories(1e30)
        raise game_tree.TooLargeError(
            f"{propnet.name} is too large to unroll: {edges:,.0f} joint actions lead to step "
            f"{step}, which need about {needed / 2**30:,.1f} GiB; allowed are {max_nodes:,} joint "
            f"actions and {_MAX_BYTES / 2**30:.0f} GiB. Random play shows about "
            f"{guess.total:.1e} histories in total",
            _suggest(step - 1),
        )


def _suggest(depth: int) -> str:
    """Names the number of steps that fit, but not `depth=`, which solving does not take."""
    fewer = f"Unroll fewer steps (at most {depth})" if depth > 0 else "Allow more nodes with `max_nodes=`"
    return f"{fewer}, or make the game smaller"
