"""What compiling a game may use."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Limits:
    seconds: float = 600.0
    memory_mb: int = 12_000
    rules: int = 12_000_000  # the network of so many takes about 8 GB to make
