"""Enumerates the joint actions of a batch of states; `random_play` draws random ones instead."""

import numpy as np
import numpy.typing as npt

from gdlx.propnet.simulate import machine

Bools = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.int64]


def enumerate_joint_actions(legal: Bools, sizes: list[int]) -> tuple[Indices, list[Indices]]:
    """Enumerates the joint actions of every column of `legal`, which has the rows of all roles, `sizes` rows each.

    Returns the column of each joint action, and for every role the index of its move. Columns in which a role has no
    legal move have no joint action.
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
    """Counts what `enumerate_joint_actions` would return; a float, because the number may be astronomical."""
    counts = [rows.sum(axis=0, dtype=np.float64) for rows in machine.split_rows(legal, sizes)]
    return float(np.prod(counts, axis=0).sum()) if counts else 0.0


def one_hot_rows(chosen: list[Indices], sizes: list[int]) -> Bools:
    """Converts moves by index to rows with one true value per role and column."""
    count = len(chosen[0]) if chosen else 0
    rows = np.zeros((sum(sizes), count), np.bool_)
    first = 0
    for moves, size in zip(chosen, sizes, strict=True):
        rows[first + moves, np.arange(count)] = True
        first += size
    return rows
