"""How strong networks are: exploitability where the game can be unrolled, matches against random play anywhere."""

from typing import Any, NamedTuple

import jax
import numpy as np

from gdlx.nets import learners, lockstep, tables
from gdlx.solvers import problems


class Against(NamedTuple):
    """Mean goals against players who draw every legal move alike, one for each role. Axes: P players."""

    goal: tuple[float, ...]  # [P]
    error: tuple[float, ...]  # [P] 95 %
    games: int  # of each role


def exploitability(learner: learners.Learner, parameters: Any, task: problems.Problem) -> tuple[float, ...]:
    """What each player could gain."""
    gain: tuple[float, ...] = task.metrics(tables.policies(learner, parameters, task.tree)).gain
    return gain


def against_random(learner: learners.Learner, parameters: Any, *, games: int, seed: int = 0) -> Against:
    env, network = learner.encoder.env, lockstep.of_network(learner.encoder, learner.network)
    goal, error = [], []
    for role in range(env.num_players):
        is_own = [number == role for number in range(env.num_players)]
        played = lockstep.play(
            env,
            tuple(network if own else lockstep.even for own in is_own),
            tuple(parameters if own else None for own in is_own),
            jax.random.fold_in(jax.random.key(seed), role),
            matches=games,
            steps=env.max_steps,
            window=learner.encoder.steps,
        )
        lost = np.asarray(played.unplayable) | ~np.asarray(played.ended)
        own_goal = np.where(lost, 0.0, np.asarray(played.payoff[role], np.float64) + env.payoffs.offset)
        goal.append(float(own_goal.mean()))
        error.append(float(1.96 * own_goal.std() / np.sqrt(games)))
    return Against(tuple(goal), tuple(error), games)
