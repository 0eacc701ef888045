"""Finds a state that repeats within a match. Play then need not end, and the tree of the game is infinite."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gdlx.propnet.circuits import propnet
from gdlx.propnet.simulate import machine, random_play

_COPIES, _MAX_STEPS = 64, 1_000
_MAX_GATES = 200_000  # evaluated in all steps together: about half a second
_SHOWN_STEPS = 12

# Rules that end any game: state numbers up to the last one with `succ`.
STEP_COUNTER = (
    "(init (step 0)) (<= (next (step ?n)) (true (step ?m)) (succ ?m ?n)) (succ 0 1) (succ 1 2) .. "
    "(<= terminal (true (step 20)))"
)

JointActions = tuple[tuple[str, ...], ...]  # the moves of all roles, step by step


class Repetition(NamedTuple):
    """A state that a match reaches twice."""

    before: JointActions  # until the first time
    between: JointActions  # from then until the second time

    def in_words(self) -> str:
        """Describes when the state is reached.

        >>> Repetition((), (("stay", "noop"),)).in_words()
        'the initial state is reached again after [stay noop]'
        """
        state = f"the state after {_words(self.before)}" if self.before else "the initial state"
        return f"{state} is reached again after {'another ' if self.before else ''}{_words(self.between)}"


def find_repetition(propnet: propnet.PropNet, seed: int = 0) -> Repetition | None:
    """Plays random matches until a state repeats within one; None if none does."""
    steps = int(np.clip(_MAX_GATES // max(1, propnet.gates), 20, _MAX_STEPS))
    sizes = [len(role.moves) for role in propnet.roles]
    begun = [0] * _COPIES  # the step in which the match of each copy began
    seen: list[dict[bytes, int]] = [{} for _ in range(_COPIES)]  # states of the match, and when
    chosen: list[list[npt.NDArray[np.intp]]] = []  # the moves of every role [copies], step by step
    for number, step in enumerate(random_play.random_steps(propnet, _COPIES, seed)):
        if number == steps:
            return None
        states = np.packbits(step.state, axis=0).T
        for copy in range(_COPIES):
            if step.terminal[copy] or step.unplayable[copy]:
                begun[copy], seen[copy] = number + 1, {}
                continue
            first = seen[copy].setdefault(states[copy].tobytes(), number)
            if first < number:
                actions = tuple(
                    tuple(role.moves[moves[copy]] for role, moves in zip(propnet.roles, joint, strict=True))
                    for joint in chosen[begun[copy] :]
                )
                return Repetition(actions[: first - begun[copy]], actions[first - begun[copy] :])
        chosen.append([_chosen_moves(rows) for rows in machine.split_rows(step.does, sizes)])
    return None


def _chosen_moves(rows: npt.NDArray[np.bool_]) -> npt.NDArray[np.intp]:
    """The move of one role in every copy; 0 for a role without moves, all of whose states are unplayable."""
    return rows.argmax(axis=0) if len(rows) else np.zeros(rows.shape[1], np.intp)


def _words(actions: JointActions) -> str:
    if len(actions) > _SHOWN_STEPS:
        return f"{len(actions)} joint actions"
    return ", ".join(f"[{' '.join(moves)}]" for moves in actions)
