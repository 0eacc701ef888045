"""Evaluates a propnet on 64 games in a word, for arrays with a bool for each game."""

import numpy as np
import numpy.typing as npt

from gdlx.propnet.simulate import machine

Bools = npt.NDArray[np.bool_]
Words = npt.NDArray[np.uint64]


def move_packed(game: machine.StateMachine, state: Bools, does: Bools) -> tuple[Bools, Bools]:
    """`StateMachine.step` on 64 games per word."""
    count = state.shape[1]
    after, sees = game.step(pack(state), pack(does))
    return unpack(after, count), unpack(sees, count)


def pack(rows: Bools) -> Words:
    packed = np.packbits(rows, axis=1, bitorder="little")
    padded = np.zeros((len(rows), -(-packed.shape[1] // 8) * 8), np.uint8)
    padded[:, : packed.shape[1]] = packed
    return padded.view(np.uint64)


def unpack(words: Words, count: int) -> Bools:
    bits = np.unpackbits(np.ascontiguousarray(words).view(np.uint8), axis=1, count=count, bitorder="little")
    return bits.view(np.bool_)
