"""Functions compiled to one piece of machine code on CPUs.

XLA runs a program on a CPU operation by operation, and every turn of a loop costs it up to a microsecond. It does
otherwise with a call that is marked as small: then all of it, loops included, becomes a single function, and a turn
costs nanoseconds. Where XLA does not know the mark it does no harm. docs/lowering.md has the figures.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax.experimental import xla_metadata

_Result = TypeVar("_Result")
_mark: Any = xla_metadata.set_xla_metadata
_barrier: Any = jax.lax.optimization_barrier
# Larger operations XLA divides among threads, and a piece is for one.
_MAX_WORDS = 2**16
MIN_WIDTH = 80  # words in a row; LLVM makes no vector code of fewer
_WIDTHS = (256, 128, 96, MIN_WIDTH)


def run_fused(function: Callable[..., _Result], *arguments: Any) -> _Result:
    """function(*arguments), for arrays of less than 256 KB and in the CPU branch of a platform_dependent.

    The function must not scatter, which XLA does not know how to put into a piece.
    """

    def marked(*given: Any) -> tuple[_Result, jax.Array]:
        # XLA has aborted on a program in which a piece did not look at its argument: docs/lowering.md.
        looked_at = [x.reshape(-1)[:1].astype(jnp.uint32).sum(dtype=jnp.uint32) for x in jax.tree.leaves(given)]
        return function(*given), sum(looked_at, jnp.zeros((), jnp.uint32))

    call: Callable[..., tuple[_Result, jax.Array]] = jax.jit(marked)
    with _mark(xla_cpu_small_call="true", inlineable="false"):
        pair = call(*arguments)
    # The barrier keeps the pair a pair: XLA fails on a call that returns a single array, if it divides that one.
    kept: tuple[_Result, jax.Array] = _barrier(pair)
    return kept[0]


def choose_width(rows: int) -> int | None:
    """How many words of so many rows go through together; None if the rows are too many for one piece."""
    return next((words for words in _WIDTHS if rows * words <= _MAX_WORDS), None)
