"""All joint moves of many states at once."""

import numpy as np
import numpy.typing as npt

from gdlx.propnet.simulate import machine

Bools = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.int64]


def enumerate_joint_actions(legal: Bools, sizes: list[int]) -> tuple[Indices, list[Indices]]:
    """Every joint move of every column of legal rows (all roles one after the other, `sizes` rows each).

    Returns the column of each joint move, and for every role the move it makes there, counted from its first.
    Columns in which a role has no legal move have no joint move.
    """
    columns = np.arange(legal.shape[1])
    chosen: list[Indices] = []
    for rows in machine.split_rows(legal, sizes):
        options = rows[:, columns]
        counts = options.sum(axis=0)
        spread = np.repeat(np.arange(len(columns)), counts)
        chosen = [moves[spread] for moves in chosen]
        chosen.append(np.nonzero(options.T)[1])
        columns = columns[spread]
    return columns, chosen


def count_joint_actions(legal: Bools, sizes: list[int]) -> float:
    """How many `joint_moves` would return; a float, because it may be astronomical."""
    counts = [rows.sum(axis=0, dtype=np.float64) for rows in machine.split_rows(legal, sizes)]
    return float(np.prod(counts, axis=0).sum()) if counts else 0.0


def one_hot_rows(chosen: list[Indices], sizes: list[int]) -> Bools:
    """Moves by number -> rows with one true per role and column."""
    count = len(chosen[0]) if chosen else 0
    rows = np.zeros((sum(sizes), count), np.bool_)
    first = 0
    for moves, size in zip(chosen, sizes, strict=True):
        rows[first + moves, np.arange(count)] = True
        first += size
    return rows
