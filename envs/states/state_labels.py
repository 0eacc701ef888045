"""Readable labels of states, made when they are read: the fluents that are true."""

import copy
from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from gdlx.propnet.circuits import propnet

Bools = npt.NDArray[np.bool_]
Words = npt.NDArray[np.uint64]

EMPTY = "(no fluents)"  # the label of a state in which none is true
SEPARATOR = "; "
_CHUNK = 4_096


def pack_columns(states: Bools) -> Words:
    """Packs states [R, S] to words [S, W], a row for each state."""
    packed = np.packbits(states, axis=0)
    words = max(1, -(-len(packed) // 8))
    padded = np.zeros((states.shape[1], 8 * words), np.uint8)
    padded[:, : len(packed)] = packed.T
    return padded.view(np.uint64)


def unpack_columns(words: Words, registers: int) -> Bools:
    """Inverts `pack_columns`.

    >>> states = np.array([[True, False], [False, False], [True, True]])
    >>> bool((unpack_columns(pack_columns(states), 3) == states).all())
    True
    """
    rows = np.unpackbits(np.ascontiguousarray(words).view(np.uint8), axis=1, count=registers)
    return np.ascontiguousarray(rows.T).view(np.bool_)


class StateLabels(Sequence[str]):
    """The text of every state: `(cell 1 1 x); (control o)`. States differ in their fluents, so labels are distinct."""

    def __init__(self, game: propnet.PropNet, words: Words) -> None:
        self._words, self._registers = words, len(game.initial)
        varying = [(text, int(literal)) for text, literal in zip(game.fluents, game.fluent_literals, strict=True)]
        varying = [(text, literal) for text, literal in varying if literal > 1]
        self._fluents = np.array([text for text, _ in varying], np.object_)
        self._nodes = np.array([literal >> 1 for _, literal in varying], np.int64) - 1
        self._inverted = np.array([literal & 1 for _, literal in varying], np.bool_)

    def __len__(self) -> int:
        return len(self._words)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        if isinstance(index, slice):
            return self.texts(np.arange(len(self))[index])
        return self.texts(np.array([index]))[0]

    def __iter__(self) -> Iterator[str]:
        for begin in range(0, len(self), _CHUNK):
            yield from self[begin : begin + _CHUNK]

    def at(self, states: npt.NDArray[np.integer[Any]]) -> "StateLabels":
        """The labels of some states."""
        chosen = copy.copy(self)
        chosen._words = self._words[states]
        return chosen

    def texts(self, states: npt.NDArray[np.int64]) -> list[str]:
        """The labels of some states."""
        texts = []
        for begin in range(0, len(states), _CHUNK):
            registers = unpack_columns(self._words[states[begin : begin + _CHUNK]], self._registers)
            holds = (registers[self._nodes] ^ self._inverted[:, None]).T
            texts += [SEPARATOR.join(self._fluents[row].tolist()) or EMPTY for row in holds]
        return texts
