"""Limits on the resources of compiling and unrolling a game."""

import dataclasses

BLOCKS = 700_000  # of one step; phantom_ttt has 300,672. More mean that a game does not come in large blocks
SYMMETRIC_BLOCKS = 12_000_000  # of one step, where symmetric ones are left out; the abrupt phantom_ttt has 7.3 million
MEMBERS = 400_000_000  # of the sets in blocks that one step may extend; bounds the memory that they take
STEPS = 1_000  # joint actions after which unrolling considers a game endless
NODES = 60_000_000  # joint actions of one step that may be unrolled; bounds the memory that they take


@dataclasses.dataclass(frozen=True)
class Limits:
    """Limits on all of compiling a rulesheet: grounding it, building the propnet and simplifying it.

    Attributes:
      seconds: of all stages together.
      memory_mb: megabytes of the grounder's process, and of this one in addition to what it had.
      rules: ground rules; bounds the memory of building a propnet from them.

    >>> Limits(seconds=10.0)
    Limits(seconds=10.0, memory_mb=12000, rules=12000000)
    """

    seconds: float = 600.0
    memory_mb: int = 12_000
    rules: int = 12_000_000
