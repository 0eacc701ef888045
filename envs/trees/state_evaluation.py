"""Evaluates states of games that are unrolled: legal moves, terminal or not, goals, payoffs; refuses invalid states."""

from typing import Literal

import numpy as np

from gdlx.envs import game_facts, payoffs
from gdlx.envs.trees import game_tree
from gdlx.propnet.checks import unplayable
from gdlx.propnet.circuits import propnet
from gdlx.propnet.simulate import machine

Bools = game_tree.Bools
Floats = game_tree.Floats
GoalConflictMode = Literal["refuse", "max"]
UnplayableMode = Literal["refuse", "end"]


class StateEvaluator:
    """Evaluates legal moves, termination and goals of states; refuses states that a game must not have.

    States in which some role has no legal move are refused, or end the game if `unplayable_mode="end"`; terminal
    states in which a player has several goal values or none are refused, or count with the highest if
    `goal_conflict="max"`.
    """

    def __init__(
        self,
        propnet: propnet.PropNet,
        mode: payoffs.PayoffMode,
        goal_conflict: GoalConflictMode = "refuse",
        unplayable_mode: UnplayableMode = "refuse",
    ) -> None:
        self.propnet, self.mode, self.goal_conflict, self.unplayable_mode = (
            propnet,
            mode,
            goal_conflict,
            unplayable_mode,
        )
        self.machine = machine.for_propnet(propnet)
        self.sizes = [len(role.moves) for role in propnet.roles]

    def evaluate(self, states: Bools) -> tuple[Bools, Bools, Bools, Floats]:
        """Legal moves (none in terminals), whether states are terminal and unplayable, and goals in terminals."""
        terminal, goals = self.goals(states)
        legal = self.machine.legal(states) & ~terminal
        stuck = ~np.all([rows.any(axis=0) for rows in machine.split_rows(legal, self.sizes)], axis=0) & ~terminal
        if stuck.any() and self.unplayable_mode == "refuse":
            column = int(np.argmax(stuck))
            raise game_tree.UnplayableError(unplayable.explain(self.propnet, legal[:, column], states[:, column]))
        return legal & ~stuck, terminal | stuck, stuck, goals

    def goals(self, states: Bools) -> tuple[Bools, Floats]:
        """Whether states are terminal, and the goal values [states, players] in those that are."""
        terminal, rows = self.machine.terminal_and_goals(states)
        goals = np.zeros((states.shape[1], len(self.propnet.players)))
        held_by_role = machine.split_rows(rows, [len(role.goal_values) for role in self.propnet.roles])
        held_by_player = [
            held for held, role in zip(held_by_role, self.propnet.roles, strict=True) if not role.is_random
        ]
        for n, (role, held) in enumerate(zip(self.propnet.players, held_by_player, strict=True)):
            wrong = terminal & (held.sum(axis=0) != 1)
            if wrong.any() and self.goal_conflict == "refuse":
                column = int(np.argmax(wrong))
                raise self._goal_conflict_error(role, held[:, column], states[:, column])
            goals[terminal, n] = payoffs.highest_goals(role, held)[terminal]
        return terminal, goals

    def _goal_conflict_error(self, role: propnet.Role, held: Bools, state: Bools) -> game_tree.GoalConflictError:
        values = [str(value) for value, holds in zip(role.goal_values, held, strict=True) if holds]
        what = f"the goal values {' and '.join(values)}" if values else "no goal value"
        fix = "Make its goal rules exclude each other" if values else f"Add a goal rule for {role.name} there"
        return game_tree.GoalConflictError(
            f"{role.name} has {what} in a terminal state of {self.propnet.name}: {self._text(state)}. {fix}, or take "
            f"{'the highest' if values else '0'} with `goal_conflict='max'`; `gdlx check --play {self.propnet.name}` "
            "shows the moves that lead there"
        )

    def payoffs(self, goals: Floats, *, is_complete: bool) -> payoffs.Payoffs:
        """How goal values become payoffs, from those of all terminals [T, players], or of some if not complete."""
        sums = np.unique(goals.sum(axis=1))
        if not is_complete:
            units = game_facts.probe(self.propnet).payoffs(self.mode)
            if units.zero_sum and len(sums) and (sums != 2 * units.offset).any():
                raise payoffs.PayoffError(
                    f"the goals of {self.propnet.name} had the sum {2 * units.offset:g} in sampled play, but not in "
                    "the unrolled game; use `payoff='goal'`"
                )
            return units
        return payoffs.payoffs_from_goal_sums(self.propnet, set(sums.astype(int).tolist()), self.mode)

    def _text(self, state: Bools) -> str:
        return " ".join(unplayable.fluents(self.propnet, state)) or "(nothing true)"
