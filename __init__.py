"""gdlx compiles the rules of any GDL-II game to a boolean network, and runs and solves it with JAX.

`gdlx.make(game)` gives an environment. Everything else is in the rooms (`from gdlx.propnet import library`): this
module itself imports nothing heavy.
"""

import importlib.metadata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gdlx.envs.make import make as make

__version__ = importlib.metadata.version("gdlx")


def __getattr__(name: str) -> Any:
    """`gdlx.make` on first use: it needs jax, which takes half a second to import."""
    if name == "make":
        from gdlx.envs.make import make

        return make
    raise AttributeError(f"module 'gdlx' has no attribute {name!r}")
