"""How strong networks are: exploitability where the game can be unrolled, matches against random play anywhere."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from gdlx.envs.trees import game_tree
from gdlx.nets import vectorised_play
from gdlx.nets.learners import protocol, self_play
from gdlx.nets.models import networks
from gdlx.nets.values import infoset_tables
from gdlx.solvers import tabular_policies, tasks

_MOST_STEPS = 1_000  # of matches that nothing else ends
_Floats = npt.NDArray[np.float64]


class RandomOpponentResult(NamedTuple):
    """Mean goals against players who draw every legal move alike, one for each role. Axes: P players."""

    goal: tuple[float, ...]  # [P]
    error: tuple[float, ...]  # [P] 95 %
    games: int  # of each role


def improvements(learner: protocol.Learner, parameters: Any, task: tasks.TreeTask) -> tuple[float, ...]:
    """Best-response improvement of every player."""
    return task.metrics(infoset_tables.network_policies(learner, parameters, task.tree)).improvements


def evaluate_against_random(
    learner: protocol.Learner, parameters: Any, *, games: int, seed: int = 0
) -> RandomOpponentResult:
    env, network = learner.encoder.env, vectorised_play.network_policy(learner.encoder, learner.network)
    goal, error = [], []
    for role in range(env.num_players):
        is_own = [number == role for number in range(env.num_players)]
        played = vectorised_play.play(
            env,
            tuple(network if own else vectorised_play.uniform_policy for own in is_own),
            tuple(parameters if own else None for own in is_own),
            jax.random.fold_in(jax.random.key(seed), role),
            matches=games,
            steps=env.max_steps or _MOST_STEPS,
            window=learner.encoder.steps,
        )
        lost = np.asarray(played.unplayable) | ~np.asarray(played.ended)
        own_goal = np.where(lost, 0.0, np.asarray(played.payoff[role], np.float64) + env.payoffs.offset)
        goal.append(float(own_goal.mean()))
        error.append(float(1.96 * own_goal.std() / np.sqrt(games)))
    return RandomOpponentResult(tuple(goal), tuple(error), games)


class ValueAccuracy(NamedTuple):
    """What a network tells of the payoff of whoever chooses at an information set, against what its policies give."""

    error: float  # root of the mean square, in parts of the payoff range, sets as often as play comes to them
    correlation: float


def value_accuracy(learner: self_play.SelfPlay, parameters: Any, task: tasks.TreeTask) -> ValueAccuracy:
    policies = infoset_tables.network_policies(learner, parameters, task.tree)
    told, exact, weight = [], [], []
    for number in range(len(task.tree.players)):
        seen = jnp.asarray(learner.encoder.encode_infosets(task.tree, number))
        value = networks.apply_network(learner.network, parameters, seen).value[:, number] * learner.scale
        told.append(np.asarray(value, np.float64))
        of_sets, reach = infoset_values(task.tree, policies, number)
        exact.append(of_sets)
        weight.append(reach)
    x, y, w = (np.concatenate(parts) for parts in (told, exact, weight))
    w = w / w.sum()
    low, high = task.payoff_range
    error = float(np.sqrt(w @ (x - y) ** 2)) / max(high - low, 1e-9)
    x, y = x - w @ x, y - w @ y
    spread = float(np.sqrt((w @ x**2) * (w @ y**2)))
    return ValueAccuracy(error, float(w @ (x * y)) / spread if spread > 0 else 0.0)


def infoset_values(
    tree: game_tree.GameTree, policies: tabular_policies.Policies, number: int
) -> tuple[_Floats, _Floats]:
    """[I] what a player gets from each of its information sets on, and how often play comes there."""
    player, policy = tree.players[number], policies[number]
    reach = [tabular_policies.realization_plan(own, chosen) for own, chosen in zip(tree.players, policies, strict=True)]
    mass = tree.terminals.weight.copy()
    for other, own in enumerate(reach):
        if other != number:
            mass *= own[tree.terminals.sequence[:, other]]
    sequence = tree.terminals.sequence[:, number]
    payoff = tree.terminals.payoff[:, number]
    of_payoff, of_mass = (np.bincount(sequence, part, player.sequences) for part in (mass * payoff, mass))
    value, there = np.zeros(player.sets), np.zeros(player.sets)
    for decision in reversed(range(player.sets)):  # later sets come after those that lead to them
        here = slice(player.first[decision], player.first[decision + 1])
        total, often = policy[here] @ of_payoff[here], policy[here] @ of_mass[here]
        of_payoff[player.parent[decision]] += total
        of_mass[player.parent[decision]] += often
        value[decision] = total / often if often > 0 else 0.0
        there[decision] = often * reach[number][player.parent[decision]]
    return value, there
