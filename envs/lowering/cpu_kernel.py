"""Fused CPU kernels: functions that XLA compiles to a single function of machine code.

XLA runs a program on a CPU operation by operation, and an iteration of a loop costs more than the work on a
short row. A call marked as small is different: all of it, loops included, becomes a single function.
If XLA does not know the mark, it ignores it. docs/development/results-log.md has the figures.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax.experimental import xla_metadata

_Result = TypeVar("_Result")
_mark: Any = xla_metadata.set_xla_metadata
_barrier: Any = jax.lax.optimization_barrier
# XLA divides larger operations among threads, and a fused kernel runs on one.
_MAX_WORDS = 2**16
MIN_WIDTH = 80  # words in a row; LLVM does not vectorise fewer
_WIDTHS = (256, 128, 96, MIN_WIDTH)


def run_fused(function: Callable[..., _Result], *arguments: Any) -> _Result:
    """Calls a function as a fused kernel, for arrays of less than 256 KB, in the CPU branch of a platform_dependent.

    The function must not scatter, which XLA cannot compile in a fused kernel.
    """

    def marked(*operands: Any) -> tuple[_Result, jax.Array]:
        # XLA has aborted on a program in which a kernel did not read its argument: docs/concepts/lowering.md.
        reads = [x.reshape(-1)[:1].astype(jnp.uint32).sum(dtype=jnp.uint32) for x in jax.tree.leaves(operands)]
        return function(*operands), sum(reads, jnp.zeros((), jnp.uint32))

    call: Callable[..., tuple[_Result, jax.Array]] = jax.jit(marked)
    with _mark(xla_cpu_small_call="true", inlineable="false"):
        pair = call(*arguments)
    # The barrier keeps both results: XLA fails on a call that returns a single array if it partitions that array.
    results: tuple[_Result, jax.Array] = _barrier(pair)
    return results[0]


def choose_width(rows: int) -> int | None:
    """The number of words per row of a fused kernel; None if there are too many rows for one."""
    return next((words for words in _WIDTHS if rows * words <= _MAX_WORDS), None)
