"""Steps batches of states with a propnet in numpy: one row per bit, one column per state, or 64 states per word."""

import dataclasses
import functools
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gdlx.propnet.circuits import memo, propnet
from gdlx.propnet.simulate import straight_line

Rows = npt.NDArray[Any]  # bool[rows, states], or unsigned words [rows, words]


@dataclasses.dataclass(frozen=True)
class StateMachine:
    """The functions of a game on batches of states: legal moves, the step, and terminal with goals."""

    propnet: propnet.PropNet

    def initial(self, columns: int, dtype: npt.DTypeLike = np.bool_) -> Rows:
        """Returns the initial state in every column; rows are registers."""
        ones = _ones(dtype)
        column = np.where(self.propnet.initial, ones, ~ones).astype(dtype)
        return np.repeat(column[:, None], columns, axis=1)

    def legal(self, state: Rows) -> Rows:
        """Returns legal moves; rows are the moves of all roles, concatenated."""
        return self._run(self._legal, state, None)

    def step(self, state: Rows, does: Rows) -> tuple[Rows, Rows]:
        """Returns next state and percepts (rows of all roles, concatenated) of joint actions (rows as in `legal`)."""
        both = self._run(self._move, state, does)
        return both[: len(self.propnet.initial)], both[len(self.propnet.initial) :]

    def terminal_and_goals(self, state: Rows) -> tuple[Rows, Rows]:
        """Returns whether the state is terminal, and the goal rows of all roles, concatenated."""
        both = self._run(self._judge, state, None)
        return both[0], both[1:]

    @functools.cached_property
    def _legal(self) -> straight_line.StraightLineProgram:
        return straight_line.compile_cone(self.propnet, np.concatenate([role.legal for role in self.propnet.roles]))

    @functools.cached_property
    def _move(self) -> straight_line.StraightLineProgram:
        return straight_line.compile_cone(
            self.propnet, np.concatenate([self.propnet.next, *(role.sees for role in self.propnet.roles)])
        )

    @functools.cached_property
    def _judge(self) -> straight_line.StraightLineProgram:
        return straight_line.compile_cone(
            self.propnet, np.concatenate([[self.propnet.terminal], *(role.goal for role in self.propnet.roles)])
        )

    def _run(self, program: straight_line.StraightLineProgram, state: Rows, does: Rows | None) -> Rows:
        false = np.zeros(state.shape[1:], state.dtype)
        registers = len(self.propnet.initial)
        inputs = []
        for node in program.inputs:
            if node <= registers:
                inputs.append(state[node - 1])
            else:
                # Outputs of a state are evaluated with all `does` false.
                inputs.append(false if does is None else does[node - 1 - registers])
        rows = straight_line.run(program, inputs, false)
        return np.stack(rows) if rows else np.zeros((0, *state.shape[1:]), state.dtype)


@memo.per_propnet
def for_propnet(propnet: propnet.PropNet) -> StateMachine:
    """Returns the machine of a propnet, shared by all its users, so that each function is compiled once."""
    return StateMachine(propnet)


def _ones(dtype: npt.DTypeLike) -> Any:
    return ~np.zeros((), dtype)


def split_rows(rows: Rows, sizes: Sequence[int]) -> list[Rows]:
    """Splits the rows of all roles into the rows of each role."""
    bounds = np.cumsum([0, *sizes])
    return [rows[a:b] for a, b in itertools.pairwise(bounds)]
