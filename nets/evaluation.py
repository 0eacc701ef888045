"""The strength of networks: exploitability if the game can be unrolled, matches against uniform play for any game."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from gdlx.nets import vectorised_play
from gdlx.nets.learners import protocol, self_play
from gdlx.nets.models import networks
from gdlx.nets.values import infoset_tables
from gdlx.solvers import infoset_values, tasks

_MAX_STEPS = 1_000  # of matches in environments without a limit


class RandomOpponentResult(NamedTuple):
    """Mean goals in each role against uniform players. Axes: P players."""

    goal: tuple[float, ...]  # [P]
    error: tuple[float, ...]  # [P] half width of the 95 % confidence interval
    games: int  # in each role


def improvements(learner: protocol.Learner, parameters: Any, task: tasks.TreeTask) -> tuple[float, ...]:
    """Best-response improvement of every player."""
    return task.metrics(infoset_tables.network_policies(learner, parameters, task.tree)).improvements


def evaluate_against_random(
    learner: protocol.Learner, parameters: Any, *, games: int, seed: int = 0
) -> RandomOpponentResult:
    """Plays matches of a network in each role against uniform players; matches without an end have goal 0."""
    env, network = learner.encoder.env, vectorised_play.network_policy(learner.encoder, learner.network)
    goal, error = [], []
    for role in range(env.num_players):
        is_network = [number == role for number in range(env.num_players)]
        outcomes = vectorised_play.play(
            env,
            tuple(network if trained else vectorised_play.uniform_policy for trained in is_network),
            tuple(parameters if trained else None for trained in is_network),
            jax.random.fold_in(jax.random.key(seed), role),
            matches=games,
            steps=env.max_steps or _MAX_STEPS,
            window=learner.encoder.steps,
        )
        has_no_goal = np.asarray(outcomes.unplayable) | ~np.asarray(outcomes.ended)
        goals = np.where(has_no_goal, 0.0, np.asarray(outcomes.payoff[role], np.float64) + env.payoffs.offset)
        goal.append(float(goals.mean()))
        error.append(float(1.96 * goals.std() / np.sqrt(games)))
    return RandomOpponentResult(tuple(goal), tuple(error), games)


class ValueAccuracy(NamedTuple):
    """Predicted values of information sets, for the player who chooses there, against exact ones of the policies.

    Information sets are weighted by their reach probability.
    """

    error: float  # root mean square, as a fraction of the payoff range
    correlation: float


def value_accuracy(learner: self_play.SelfPlay, parameters: Any, task: tasks.TreeTask) -> ValueAccuracy:
    """Compares the values that the policy network predicts with exact ones."""
    policies = infoset_tables.network_policies(learner, parameters, task.tree)
    predicted, exact, weight = [], [], []
    for number in range(len(task.tree.players)):
        features = jnp.asarray(learner.encoder.encode_infosets(task.tree, number))
        value = networks.apply_network(learner.network, parameters, features).value[:, number] * learner.scale
        predicted.append(np.asarray(value, np.float64))
        values_of_sets = infoset_values.infoset_values(task.tree, policies, number)
        exact.append(np.nan_to_num(values_of_sets.value))
        weight.append(values_of_sets.reach)
    x, y, w = (np.concatenate(parts) for parts in (predicted, exact, weight))
    w = w / w.sum()
    low, high = task.payoff_range
    error = float(np.sqrt(w @ (x - y) ** 2)) / max(high - low, 1e-9)
    x, y = x - w @ x, y - w @ y
    spread = float(np.sqrt((w @ x**2) * (w @ y**2)))
    return ValueAccuracy(error, float(w @ (x * y)) / spread if spread > 0 else 0.0)
