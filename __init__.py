"""gdlx compiles the rules of any GDL-II game to a boolean network, and runs and solves it with JAX.

`gdlx.make(game)` gives an environment, `gdlx.solve(game)` a solution. Everything else is in the rooms
(`from gdlx.propnet import library`): this module itself imports nothing heavy.
"""

import importlib.metadata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gdlx.envs.make import make as make
    from gdlx.solvers.solve import solve as solve

__version__ = importlib.metadata.version("gdlx")


def __getattr__(name: str) -> Any:
    """`gdlx.make` and `gdlx.solve` on first use: they need jax, which takes half a second to import."""
    if name == "make":
        from gdlx.envs.make import make

        return make
    if name == "solve":
        from gdlx.solvers.solve import solve

        return solve
    raise AttributeError(f"module 'gdlx' has no attribute {name!r}")
