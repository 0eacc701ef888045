"""Runs tapes by a loop over their operations: compile time hardly depends on the size of the propnet, and it is safe
inside any jit, since there is nothing for the compiler to fuse and duplicate.
"""

import jax
import jax.numpy as jnp
import numpy as np

from gdlx.envs.lowering import tape as tapes


def run(tape: tapes.Tape, inputs: jax.Array) -> jax.Array:
    """uint32[N, W] input rows -> uint32[U, W] output rows."""
    rows = load_inputs(tape, inputs)
    for segment in tape.segments:
        rows = run_segment(tape, segment, rows)
    return read_outputs(tape, rows)


def load_inputs(tape: tapes.Tape, inputs: jax.Array) -> jax.Array:
    """All rows of a tape, with its inputs set."""
    rows = jnp.zeros((tape.rows, inputs.shape[1]), jnp.uint32)
    return jax.lax.dynamic_update_slice(rows, inputs, (1, 0))


def read_outputs(tape: tapes.Tape, rows: jax.Array) -> jax.Array:
    return rows[tape.outputs] ^ tape.output_mask[:, None]


def run_segment(tape: tapes.Tape, segment: tapes.Segment, rows: jax.Array) -> jax.Array:
    return _run_to_fixpoint(tape, segment, rows) if segment.feedback else _once(tape, segment, rows)


def _once(tape: tapes.Tape, segment: tapes.Segment, rows: jax.Array) -> jax.Array:
    if segment.start == segment.end:
        return rows
    part = slice(segment.start, segment.end)
    # Unsigned, so that jax does not handle negative indices.
    left, right, target = (jnp.asarray(x[part].astype(np.uint32)) for x in (tape.left, tape.right, tape.target))
    left_mask, right_mask, xor_mask = (jnp.asarray(x[part]) for x in (tape.left_mask, tape.right_mask, tape.xor_mask))
    has_xor = bool(tape.xor_mask[part].any())
    zero, words = jnp.uint32(0), rows.shape[1]

    def step(k: jax.Array, rows: jax.Array) -> jax.Array:
        a = jax.lax.dynamic_slice(rows, (left[k], zero), (1, words)) ^ left_mask[k]
        b = jax.lax.dynamic_slice(rows, (right[k], zero), (1, words)) ^ right_mask[k]
        value = a & b
        if has_xor:
            value ^= (a | b) & xor_mask[k]
        return jax.lax.dynamic_update_slice(rows, value, (target[k], zero))

    after: jax.Array = jax.lax.fori_loop(jnp.uint32(0), jnp.uint32(segment.end - segment.start), step, rows)
    return after


def _run_to_fixpoint(tape: tapes.Tape, segment: tapes.Segment, rows: jax.Array) -> jax.Array:
    """From false, feed the next values back until none changes: a least fixpoint."""
    to = jnp.asarray([row for row, _, _ in segment.feedback], jnp.uint32)
    source = jnp.asarray([row for _, row, _ in segment.feedback])
    mask = jnp.asarray([0xFFFFFFFF if inverted else 0 for _, _, inverted in segment.feedback], jnp.uint32)[:, None]

    def again(carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        rows, _ = carry
        after = _once(tape, segment, rows)
        following = after[source] ^ mask

        def put(k: jax.Array, rows: jax.Array) -> jax.Array:  # a fused kernel must not scatter
            return jax.lax.dynamic_update_slice(rows, following[k][None], (to[k], jnp.uint32(0)))

        return jax.lax.fori_loop(0, len(to), put, after), jnp.any(following != rows[to])

    settled, _ = jax.lax.while_loop(lambda carry: carry[1], again, (rows, jnp.asarray(True)))
    return settled
