"""How a tape becomes JAX operations: one interface, three forms; docs/lowering.md says what `auto` rests on."""

import functools
from collections.abc import Callable
from typing import Literal

import jax
import jax.numpy as jnp

from gdlx.envs import levelled, rolled
from gdlx.envs import tape as tapes

Form = Literal["auto", "rolled", "levelled"]  # those that run inside any jit
GROUP = 2048  # words that go through the loop together: their rows fit the second-level cache of common CPUs


def run(tape: tapes.Tape, inputs: jax.Array, form: Form = "auto") -> jax.Array:
    """uint32[N, W] input rows -> uint32[U, W] output rows, in any jit."""
    if form == "rolled":
        return _grouped(tape, inputs)
    if form == "levelled":
        return levelled.run(tape, inputs)
    by_level = functools.partial(levelled.run, tape)
    found: jax.Array = jax.lax.platform_dependent(inputs, cpu=functools.partial(_grouped, tape), default=by_level)
    return found


def _grouped(tape: tapes.Tape, inputs: jax.Array) -> jax.Array:
    words = inputs.shape[1]
    if words <= GROUP:
        return rolled.run(tape, inputs)
    groups = -(-words // GROUP)
    padded = jnp.pad(inputs, ((0, 0), (0, groups * GROUP - words)))
    parts = jnp.moveaxis(padded.reshape(inputs.shape[0], groups, GROUP), 1, 0)
    found = jax.lax.map(functools.partial(rolled.run, tape), parts)
    return jnp.moveaxis(found, 0, 1).reshape(found.shape[1], -1)[:, :words]


@functools.cache
def straight(tape: tapes.Tape) -> Callable[[jax.Array], jax.Array]:
    """A function in a jit of its own, every operation written out.

    On a CPU fusion is off: it would write shared subexpressions out again and again. Such a jit cannot be called from
    inside another one there, so this form is for loops driven from Python.
    """
    options = {"xla_disable_hlo_passes": "fusion"} if jax.default_backend() == "cpu" else {}
    compiled: Callable[[jax.Array], jax.Array] = jax.jit(
        functools.partial(_written_out, tape), compiler_options=options
    )
    return compiled


def _written_out(tape: tapes.Tape, inputs: jax.Array) -> jax.Array:
    if any(segment.feedback for segment in tape.segments):
        return rolled.run(tape, inputs)
    rows: dict[int, jax.Array] = {0: jnp.zeros(inputs.shape[1], jnp.uint32)}
    rows.update({number + 1: inputs[number] for number in range(tape.inputs)})
    table = (tape.left, tape.right, tape.target, tape.left_mask, tape.right_mask, tape.xor_mask)
    for left, right, target, left_mask, right_mask, xor in zip(*(column.tolist() for column in table), strict=True):
        a = ~rows[left] if left_mask else rows[left]
        b = ~rows[right] if right_mask else rows[right]
        rows[target] = a ^ b if xor else a & b
    pairs = zip(tape.outputs.tolist(), tape.output_mask.tolist(), strict=True)
    found = [~rows[row] if mask else rows[row] for row, mask in pairs]
    return jnp.stack(found) if found else jnp.zeros((0, inputs.shape[1]), jnp.uint32)
