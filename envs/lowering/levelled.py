"""Runs tapes level by level: all operations that depend on earlier levels only, as one gather and one AND.

Few large steps suit accelerators, where every iteration of a loop is a kernel launch; on a CPU the loop of `rolled` is
faster.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from gdlx.envs.lowering import rolled
from gdlx.envs.lowering import tape as tapes


class _Level(NamedTuple):
    left: tapes.Ints
    right: tapes.Ints
    left_mask: tapes.Words
    right_mask: tapes.Words
    xor_mask: tapes.Words


class _LevelSchedule(NamedTuple):
    levels: list[_Level]
    outputs: tapes.Ints


def run(tape: tapes.Tape, inputs: jax.Array) -> jax.Array:
    """uint32[N, W] input rows -> uint32[U, W] output rows."""
    if any(segment.feedback for segment in tape.segments):
        return rolled.run(tape, inputs)  # a fixpoint needs a loop anyway
    schedule = _schedule(tape)
    false = jnp.zeros((1, inputs.shape[1]), jnp.uint32)
    rows = jnp.concatenate([false, inputs])
    for level in schedule.levels:
        a = rows[level.left] ^ level.left_mask[:, None]
        b = rows[level.right] ^ level.right_mask[:, None]
        xor = level.xor_mask[:, None]
        value = (a & b & ~xor) | ((a ^ b) & xor) if level.xor_mask.any() else a & b
        rows = jnp.concatenate([rows, value])
    return rows[schedule.outputs] ^ tape.output_mask[:, None]


@functools.cache
def _schedule(tape: tapes.Tape) -> _LevelSchedule:
    """Operations by level; every value has a separate row, inputs first, then the levels in order."""
    value_of = {row: row for row in range(tape.inputs + 1)}  # row of the tape -> the value it currently holds
    depth = [0] * (tape.inputs + 1)
    operands = []
    for left, right, target in zip(tape.left.tolist(), tape.right.tolist(), tape.target.tolist(), strict=True):
        a, b = value_of[left], value_of[right]
        value_of[target] = len(depth)
        depth.append(1 + max(depth[a], depth[b]))
        operands.append((a, b))
    order = np.argsort(depth, kind="stable")
    row_of = np.empty(len(depth), np.int32)
    row_of[order] = np.arange(len(depth), dtype=np.int32)
    pairs = row_of[np.array(operands, np.int64).reshape(-1, 2)]
    levels = []
    operation_depth = np.array(depth[tape.inputs + 1 :], np.int64)
    for level in range(1, int(operation_depth.max(initial=0)) + 1):
        at = np.flatnonzero(operation_depth == level)
        masks = (tape.left_mask[at], tape.right_mask[at], tape.xor_mask[at])
        levels.append(_Level(pairs[at, 0], pairs[at, 1], *masks))
    return _LevelSchedule(levels, row_of[[value_of[row] for row in tape.outputs.tolist()]])
