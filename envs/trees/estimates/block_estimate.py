"""The number of blocks of a game: counted for its first steps, and projected from these to the others."""

from typing import NamedTuple

import numpy as np

from gdlx.envs.trees import game_tree
from gdlx.envs.trees.estimates import size_estimate
from gdlx.envs.trees.factored import unroll_blocks
from gdlx.propnet.circuits import memo, propnet

_MAX_BLOCKS, _MAX_MEMBERS = 200_000, 4_000_000  # which take about a second
_FACTOR = 10.0  # within which a projection to as many steps as were counted is expected to be right


class BlockEstimate(NamedTuple):
    """Attributes:
    counted: blocks after one joint action, two, .., as far as they were counted.
    widest: blocks of the step that has the most.
    """

    counted: tuple[int, ...]
    widest: size_estimate.Interval


@memo.per_propnet
def estimate_blocks(propnet: propnet.PropNet, histories: tuple[float, ...]) -> BlockEstimate:
    """Unrolls the first steps of a game in blocks, and projects how many blocks the widest step has.

    Args:
      propnet: the compiled rules.
      histories: their estimated number after no joint action, one, .. to the end of the game.

    >>> from gdlx.envs import game_facts
    >>> from gdlx.propnet import games
    >>> propnet = games.compile_game("dark_hex:columns=2,rows=2")
    >>> print(estimate_blocks(propnet, game_facts.probe(propnet).histories().histories).widest)
    36
    """
    counted: list[int] = []
    try:
        unroll_blocks.unroll(
            propnet,
            "goal",
            max_blocks=_MAX_BLOCKS,
            max_members=_MAX_MEMBERS,
            goal_conflict="max",
            report=lambda step, blocks: counted.append(blocks),
        )
        return BlockEstimate(tuple(counted), size_estimate.Interval.exact(max(counted)))
    except (game_tree.TooLargeError, game_tree.UnplayableError):
        return BlockEstimate(tuple(counted), _project(counted or [1], histories))


def require_fit(propnet: propnet.PropNet, histories: tuple[float, ...], max_blocks: int) -> None:
    """Raises TooManyBlocksError if the first steps show that a later one has more blocks than allowed."""
    estimate = estimate_blocks(propnet, histories)
    if estimate.widest.low > max_blocks:
        counted = f"{len(estimate.counted)} joint actions, with up to {max(estimate.counted, default=1):,} blocks"
        raise game_tree.TooManyBlocksError(
            f"{propnet.name} is too large to unroll, also in blocks: the first {counted}, show that there will be "
            f"about {estimate.widest.estimate:.0e} in a step; allowed are {max_blocks:,}",
            "Allow more with `max_nodes=`, or make the game smaller",
        )


def _project(counted: list[int], histories: tuple[float, ...]) -> size_estimate.Interval:
    """Continues the logarithms by a parabola: blocks grow at a rate that falls about evenly."""
    steps = len(histories) - 1
    low, high = float(max(counted)), max(*map(float, counted), *histories)
    logarithms = np.log(np.maximum.accumulate(counted))
    first = len(counted) // 3
    if len(counted) - first < 3:
        return size_estimate.Interval(min(high, low * _FACTOR), low, high)
    parabola = np.polyfit(np.arange(first, len(counted)), logarithms[first:], 2)
    path = np.polyval(parabola, np.arange(len(counted) - 1, max(steps, len(counted))))
    estimate = float(np.clip(np.exp(min(700.0, float((path - path[0]).max()))) * low, low, high))
    factor = _FACTOR ** max(1.0, (steps - len(counted)) / len(counted))
    return size_estimate.Interval(estimate, max(low, estimate / factor), min(high, estimate * factor))
