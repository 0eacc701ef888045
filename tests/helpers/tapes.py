"""An interpreter of tapes, and columns of bits packed into words."""

from collections.abc import Sequence

import numpy as np

from gdlx.envs.lowering import tape
from gdlx.tests.helpers import support


def interpret_tape(program: tape.Tape, inputs: tape.Words, late: tuple[int, tape.Words] | None = None) -> tape.Words:
    """Executes a tape operation by operation. `late` rows are written after the first segment."""
    rows = np.zeros((program.rows, inputs.shape[1]), np.uint32)
    rows[1 : 1 + len(inputs)] = inputs
    for number, segment in enumerate(program.segments):
        if number == 1 and late is not None:
            rows[late[0] : late[0] + len(late[1])] = late[1]
        while True:
            for k in range(segment.start, segment.end):
                a = rows[program.left[k]] ^ program.left_mask[k]
                b = rows[program.right[k]] ^ program.right_mask[k]
                rows[program.target[k]] = a ^ b if program.xor_mask[k] else a & b
            following = [rows[source] ^ np.uint32(-inverted & 0xFFFFFFFF) for _, source, inverted in segment.feedback]
            before = [rows[row].copy() for row, _, _ in segment.feedback]
            for (row, _, _), value in zip(segment.feedback, following, strict=True):
                rows[row] = value
            if all(np.array_equal(a, b) for a, b in zip(before, following, strict=True)):
                break
    outputs: tape.Words = rows[program.outputs] ^ program.output_mask[:, None]
    return outputs


def pack_columns(columns: Sequence[support.Column]) -> tape.Words:
    """One word per input, with a column in each of its lowest bits."""
    assert len(columns) <= 64
    bits = np.array(columns, np.uint64).reshape(len(columns), -1).T
    wide = (bits << np.arange(len(columns), dtype=np.uint64)).sum(axis=1, dtype=np.uint64)
    return np.stack([wide & 0xFFFFFFFF, wide >> 32], axis=1).astype(np.uint32)


def unpack_columns(rows: tape.Words, columns: int) -> list[tuple[bool, ...]]:
    wide = rows.astype(np.uint64)[:, 0] | rows.astype(np.uint64)[:, 1] << np.uint64(32)
    return [tuple(bool(word >> np.uint64(n) & np.uint64(1)) for word in wide) for n in range(columns)]
