"""Makes one choice in many histories at once: 64 of them in a word, one program for each move.

A program is what follows a choice with one of its moves as a constant: most gates fold away.
"""

import functools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gdlx.propnet.circuits import aig
from gdlx.propnet.observations import choices as choosing

Words = npt.NDArray[np.uint64]
Bits = npt.NDArray[np.uint8]
Codes = npt.NDArray[np.uint16]
Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

_ALL = ~np.uint64(0)


class Program(NamedTuple):
    """What is left to evaluate after a choice if one move is made; FALSE and TRUE are possible in `live` only."""

    gates: list[tuple[int, aig.Gate]]
    clauses: list[aig.Gate]
    shares: list[choosing.Share]
    live: list[aig.Literal]


class Programs:
    """The programs of all moves of all choices, compiled on first use."""

    def __init__(self, left: choosing.Choices) -> None:
        self.left = left
        self.of = functools.cache(self._compile)

    def __len__(self) -> int:
        return len(self.left.choices)

    def live_before(self, number: int) -> tuple[int, ...]:
        """The nodes that are live before a choice."""
        return self.left.choices[number - 1].live if number else ()

    def _compile(self, number: int) -> list[Program | None]:
        """The program of every move; None if the move agrees with no history."""
        choice = self.left.choices[number]
        return [_fold(choice, node) for node in choice.nodes]


def _fold(choice: choosing.Choice, chosen: int) -> Program | None:
    literal_of: dict[int, aig.Literal] = {node: int(node == chosen) for node in choice.nodes}

    def read(literal: aig.Literal) -> aig.Literal:
        return literal_of.get(literal >> 1, literal & ~1) ^ (literal & 1)

    program = Program([], [], [], [])
    for node, gate in choice.gates:
        folded = _conjunction(map(read, gate))
        if len(folded) <= 1:
            literal_of[node] = folded[0] if folded else aig.TRUE
        else:
            program.gates.append((node, folded))
    for clause in choice.clauses:
        folded = _conjunction(map(read, clause))
        if not folded:
            return None
        if folded != (aig.FALSE,):
            program.clauses.append(folded)
    for share in choice.shares:
        literals = [read(literal) for literal in share.literals]
        unknown = tuple(literal for literal in literals if literal > aig.TRUE)
        program.shares.append(choosing.Share(share.certain + literals.count(aig.TRUE), unknown))
    program.clauses.sort(key=len)
    program.live.extend(read(2 * node) for node in choice.live)
    return program


def _conjunction(literals: Iterator[aig.Literal]) -> aig.Gate:
    """The literals of a conjunction that are not constant: none if it is true, FALSE alone if it is false."""
    kept = set(literals)
    if aig.FALSE in kept or any(literal ^ 1 in kept for literal in kept):
        return (aig.FALSE,)
    return tuple(sorted(kept - {aig.TRUE}))


class Piece:
    """Some of the histories before a choice. Axes: N histories, W words."""

    def __init__(self, rows: Words, live: Sequence[int], begin: int, end: int) -> None:
        """Takes histories `begin` to `end` of the rows [L, ..] of live nodes; `begin` is a multiple of 64."""
        self.begin, self.size = begin, end - begin
        words = rows[:, begin // 64 : -(-end // 64)]
        self.words = {2 * node: row for node, row in zip(live, words, strict=True)}
        self.all = np.full(-(-self.size // 64), _ALL)
        if self.size % 64:
            self.all[-1] = (np.uint64(1) << np.uint64(self.size % 64)) - np.uint64(1)
        self._bits: dict[aig.Literal, Bits] = {}

    def bits(self, literal: aig.Literal) -> Bits:
        """The bits of a positive literal of a live node, unpacked once."""
        if literal not in self._bits:
            self._bits[literal] = unpack(self.words[literal], self.size)
        return self._bits[literal]


class Evaluation:
    """A program run on a piece.

    Attributes:
      agree: [W] the histories that no clause rejects.
    """

    def __init__(self, program: Program, piece: Piece) -> None:
        self._program, self._piece = program, piece
        self._words = dict(piece.words)
        for node, gate in program.gates:
            self._words[2 * node] = self._conjunction(gate)
        self.agree = piece.all
        for clause in program.clauses:
            self.agree = self.agree & ~self._conjunction(clause)

    def indices(self) -> Indices:
        """The histories that agree."""
        return np.flatnonzero(unpack(self.agree, self._piece.size))

    def select(self, literal: aig.Literal, indices: Indices) -> Bits:
        """The bits of a literal in some histories."""
        even = literal & ~1
        known = even in self._piece.words
        bits = self._piece.bits(even) if known else unpack(self._words[even], self._piece.size)
        chosen: Bits = bits[indices] ^ np.uint8(literal & 1)
        return chosen

    def live(self, indices: Indices) -> list[Bits]:
        """The bits of all live nodes after the choice."""
        size = len(indices)
        return [
            np.full(size, literal, np.uint8) if literal <= aig.TRUE else self.select(literal, indices)
            for literal in self._program.live
        ]

    def log_share(self, indices: Indices) -> Floats:
        """The sum of log(1 / number of legal moves), where that is known from now on."""
        total = np.zeros(len(indices))
        for share in self._program.shares:
            legal = np.full(len(indices), share.certain, np.float64)
            for literal in share.literals:
                legal += self.select(literal, indices)
            total -= np.log(legal)
        return total

    def _conjunction(self, literals: aig.Gate) -> Words:
        words = self._words
        total: Words | None = None
        for literal in literals:
            row = words.get(literal)
            if row is None:
                row = words[literal] = ~words[literal ^ 1]
            total = row if total is None else total & row
        assert total is not None
        return total


def unpack(words: Words, count: int) -> Bits:
    """uint64[W] -> uint8[count], 0 or 1."""
    return np.unpackbits(np.ascontiguousarray(words).view(np.uint8), count=count, bitorder="little")


def pack(rows: Sequence[Bits], count: int) -> Words:
    """uint8[L][count] -> uint64[L, W]."""
    packed = np.zeros((len(rows), -(-count // 64) * 8), np.uint8)
    for number, bits in enumerate(rows):
        packed[number, : -(-count // 8)] = np.packbits(bits, bitorder="little")
    words: Words = packed.view(np.uint64)
    return words
