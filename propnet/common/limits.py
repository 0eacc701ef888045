"""What compiling and unrolling a game may use."""

import dataclasses

NODES = 60_000_000  # joint moves of one step that may be unrolled: about 100 bytes each are in memory at once


@dataclasses.dataclass(frozen=True)
class Limits:
    seconds: float = 600.0
    memory_mb: int = 12_000
    rules: int = 12_000_000  # the network of so many takes about 8 GB to make
