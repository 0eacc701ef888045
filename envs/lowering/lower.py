"""How a tape becomes JAX operations: one interface, three forms, each fit for anybody's jit; docs/lowering.md says what
`auto` rests on.
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
WORDS_PER_GROUP = 2048  # words that go through the loop together: a turn costs a microsecond


def run(tape: tapes.Tape, inputs: jax.Array, form: LoweringMode = "auto") -> jax.Array:
    """uint32[N, W] input rows -> uint32[U, W] output rows, in any jit."""
    if form == "levelled":
        return levelled.run(tape, inputs)
    elsewhere: _Run = {"rolled": rolled.run, "straight": _run_straight}.get(form, levelled.run)
    on_cpu = _run_straight if form == "straight" else rolled.run
    found: jax.Array = jax.lax.platform_dependent(
        inputs, cpu=functools.partial(_grouped, on_cpu, tape), default=functools.partial(elsewhere, tape)
    )
    return found


def _grouped(run_group: _Run, tape: tapes.Tape, inputs: jax.Array) -> jax.Array:
    """As many words at a time as suit a CPU.

    Not as pieces of machine code, as playouts are: XLA fails on a piece in a program that it divides among devices.
    """
    words = inputs.shape[1]
    if words <= WORDS_PER_GROUP:
        return run_group(tape, inputs)
    groups = -(-words // WORDS_PER_GROUP)
    size = -(-words // groups)
    padded = jnp.pad(inputs, ((0, 0), (0, groups * size - words)))
    parts = jnp.moveaxis(padded.reshape(inputs.shape[0], groups, size), 1, 0)
    found = jax.lax.map(functools.partial(run_group, tape), parts)
    return jnp.moveaxis(found, 0, 1).reshape(found.shape[1], -1)[:, :words]


def _run_straight(tape: tapes.Tape, inputs: jax.Array) -> jax.Array:
    """Every operation by itself."""
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
        # Fusion would write a value that is used twice out twice, and so on without end.
        rows[target] = _barrier(value) if used > 1 else value
    pairs = zip(tape.outputs.tolist(), tape.output_mask.tolist(), strict=True)
    found = [~rows[row] if mask else rows[row] for row, mask in pairs]
    return jnp.stack(found) if found else jnp.zeros((0, inputs.shape[1]), jnp.uint32)


def _uses(tape: tapes.Tape) -> list[int]:
    """How often the value of each operation is read; a row holds many values, one after the other."""
    found = [0] * tape.operations
    writer: dict[int, int] = {}
    for number, (left, right, target) in enumerate(zip(tape.left, tape.right, tape.target, strict=True)):
        for row in (left, right):
            if row in writer:
                found[writer[row]] += 1
        writer[target] = number
    for row in tape.outputs:
        if row in writer:
            found[writer[row]] += 1
    return found
