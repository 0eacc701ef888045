"""Lowers tapes to JAX operations: one interface, three forms, each usable inside any jit.

With `auto` the platform decides when the program is compiled: `rolled` on CPUs, `levelled` on accelerators.
docs/development/results-log.md has the measurements behind `auto`.
"""

import functools
from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp

from gdlx.envs.lowering import levelled, rolled
from gdlx.envs.lowering import tape as tapes

LoweringMode = Literal["auto", "rolled", "levelled", "straight"]
_barrier: Any = jax.lax.optimization_barrier
_Run = Callable[[tapes.Tape, jax.Array], jax.Array]
WORDS_PER_GROUP = 2048  # words that go through the loop together, to amortise the fixed cost of an iteration


def run(tape: tapes.Tape, inputs: jax.Array, form: LoweringMode = "auto") -> jax.Array:
    """uint32[N, W] input rows -> uint32[U, W] output rows, inside any jit."""
    if form == "levelled":
        return levelled.run(tape, inputs)
    elsewhere: _Run = {"rolled": rolled.run, "straight": _run_straight}.get(form, levelled.run)
    on_cpu = _run_straight if form == "straight" else rolled.run
    outputs: jax.Array = jax.lax.platform_dependent(
        inputs, cpu=functools.partial(_grouped, on_cpu, tape), default=functools.partial(elsewhere, tape)
    )
    return outputs


def _grouped(run_group: _Run, tape: tapes.Tape, inputs: jax.Array) -> jax.Array:
    """Runs groups of as many words as suit a CPU.

    Not as fused kernels, which playouts use: XLA fails on one in a program that it partitions among devices.
    """
    words = inputs.shape[1]
    if words <= WORDS_PER_GROUP:
        return run_group(tape, inputs)
    groups = -(-words // WORDS_PER_GROUP)
    size = -(-words // groups)
    padded = jnp.pad(inputs, ((0, 0), (0, groups * size - words)))
    parts = jnp.moveaxis(padded.reshape(inputs.shape[0], groups, size), 1, 0)
    outputs = jax.lax.map(functools.partial(run_group, tape), parts)
    return jnp.moveaxis(outputs, 0, 1).reshape(outputs.shape[1], groups * size)[:, :words]  # perhaps no row at all


def _run_straight(tape: tapes.Tape, inputs: jax.Array) -> jax.Array:
    """Traces every operation separately."""
    if any(segment.feedback for segment in tape.segments):
        return rolled.run(tape, inputs)
    uses = _uses(tape)
    rows = [jnp.zeros(inputs.shape[1], jnp.uint32), *inputs, *[inputs[:0]] * (tape.rows - tape.inputs - 1)]
    table = (tape.left, tape.right, tape.target, tape.left_mask, tape.right_mask, tape.xor_mask)
    columns = (column.tolist() for column in table)
    for used, (left, right, target, left_mask, right_mask, xor) in zip(uses, zip(*columns, strict=True), strict=True):
        a = ~rows[left] if left_mask else rows[left]
        b = ~rows[right] if right_mask else rows[right]
        value = a ^ b if xor else a & b
        # Fusion would duplicate a value that is used twice, and in turn all that it depends on.
        rows[target] = _barrier(value) if used > 1 else value
    pairs = zip(tape.outputs.tolist(), tape.output_mask.tolist(), strict=True)
    outputs = [~rows[row] if mask else rows[row] for row, mask in pairs]
    return jnp.stack(outputs) if outputs else jnp.zeros((0, inputs.shape[1]), jnp.uint32)


def _uses(tape: tapes.Tape) -> list[int]:
    """How often the value of each operation is read; a row holds many values, one after the other."""
    uses = [0] * tape.operations
    writer: dict[int, int] = {}
    for number, (left, right, target) in enumerate(zip(tape.left, tape.right, tape.target, strict=True)):
        for row in (left, right):
            if row in writer:
                uses[writer[row]] += 1
        writer[target] = number
    for row in tape.outputs:
        if row in writer:
            uses[writer[row]] += 1
    return uses
