"""Restricted Nash responses: play against an opponent that is believed to follow a model, but may not.

With probability p the opponent must follow the model, else it is free to play anything (Johanson, Zinkevich & Bowling
2007). That is an ordinary game: chance tosses a coin that the responder never observes, and the actions of a restricted
opponent are chance's. With m the realization plan of the model, every terminal at sequences (s, t) of responder and
opponent, of weight w, becomes two:

    (s, t)  of weight  (1 - p) w         the opponent was free
    (s, -)  of weight  p w m(t)          it was restricted; - is the empty sequence, and terminals of the same s merge

Nothing else changes. Both games have the same players, information sets and sequences, a policy of one is a policy of
the other, and every solver of unrolled games solves this one too. Its value to the responder is

    max over x of   p u(x, m) + (1 - p) min over y of u(x, y)

With p = 0 the responder plays an equilibrium policy, with p = 1 a best response to the model. In between, no policy
that gets as much from the model loses less in the worst case. Needs two players and zero-sum payoffs.
"""

import dataclasses
import functools
import hashlib
import pathlib
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gdlx.envs.trees import game_tree, sequence_form
from gdlx.propnet.common import errors
from gdlx.propnet.common.text import plurals
from gdlx.solvers import algorithms, tabular_policies, tasks
from gdlx.solvers.exact import batch, lp
from gdlx.solvers.runs import result_folder

Floats = npt.NDArray[np.float64]
_MAX_QUICK_LP_ENTRIES = 20_000  # payoffs of a game that a linear program solves in about a second


class RestrictionError(errors.UserError, ValueError):
    """A game, a player, a probability or an algorithm that a restricted game cannot use."""


@dataclasses.dataclass(frozen=True, eq=False)
class Restriction:
    """An opponent model, and the probability p that the opponent must follow it."""

    player: int  # index of the opponent
    model: tabular_policies.Policy  # [S] the opponent's policy
    p: float

    def __post_init__(self) -> None:
        require_probability(self.p)

    @property
    def responder(self) -> int:
        return 1 - self.player

    @functools.cached_property
    def digest(self) -> str:
        """A hash of the model."""
        return hashlib.sha256(np.ascontiguousarray(self.model, np.float64).tobytes()).hexdigest()[:16]


def require_probability(p: float) -> None:
    if not 0 <= p <= 1:
        raise RestrictionError(
            f"p is the probability that the opponent follows its model, from 0 to 1; it cannot be {p:g}"
        )


def restricted_tree(tree: game_tree.GameTree, restriction: Restriction) -> game_tree.GameTree:
    """Returns the game in which the opponent follows its model with probability p."""
    p, restricted = restriction.p, model_terminals(tree, restriction.player, restriction.model)
    free = tree.listed_terminals._replace(weight=(1 - p) * tree.listed_terminals.weight)
    players = list(tree.players)
    opponent = players[restriction.player]
    players[restriction.player] = dataclasses.replace(opponent, chance=(1 - p) * opponent.chance)
    terminals = _concatenate(free, restricted._replace(weight=p * restricted.weight))
    return dataclasses.replace(tree, players=tuple(players), terminals=terminals, levels=None)


def model_terminals(tree: game_tree.GameTree, player: int, model: tabular_policies.Policy) -> game_tree.Terminals:
    """Returns the terminals of the game in which a player follows the model: one for each sequence of the other."""
    require_two_player_zero_sum(tree)
    policy = tabular_policies.validate(tree.players[player], model)
    terminals = tree.listed_terminals
    plan = tabular_policies.realization_plan(tree.players[player], policy)
    weight = terminals.weight * plan[terminals.sequence[:, player]]
    reached = np.flatnonzero(weight > 0)
    responder, group = np.unique(terminals.sequence[reached, 1 - player], return_inverse=True)

    def sum_by_sequence(numbers: Floats) -> Floats:
        return np.bincount(group, numbers[reached], len(responder)).astype(np.float64)

    total = sum_by_sequence(weight)
    paid = [sum_by_sequence(weight * payoff) for payoff in terminals.payoff.T]
    sequence = np.zeros((len(responder), 2), terminals.sequence.dtype)
    sequence[:, 1 - player] = responder
    payoff = np.stack(paid, axis=1) / total[:, None]
    return game_tree.Terminals(sequence, payoff, total, sum_by_sequence(terminals.histories))


def _concatenate(*parts: game_tree.Terminals) -> game_tree.Terminals:
    return game_tree.Terminals(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def require_two_player_zero_sum(tree: game_tree.GameTree) -> None:
    if len(tree.players) != 2 or not tree.zero_sum:
        count = len(tree.players)
        what = "is not zero-sum" if count == 2 else f"has {plurals.count(count, 'player')}"
        raise RestrictionError(f"an opponent can be restricted in zero-sum games of two players; {tree.name} {what}")


def require_non_sampling(algorithm: algorithms.Algorithm) -> None:
    if algorithm.is_sampled:
        raise RestrictionError(
            f"{algorithm.name} samples play, which a restricted game does not support; use cfr+, dcfr or another "
            "algorithm that visits every information set, or lp"
        )


@dataclasses.dataclass(frozen=True)
class RestrictedTask(tasks.TreeTask):
    """A restricted game prepared for solvers. Metrics of its policies are those of this game, not of the original."""

    original: tasks.TreeTask
    restriction: Restriction

    def __repr__(self) -> str:
        opponent = self.players[self.restriction.player]
        return f"RestrictedTask({self.game.spec}: {opponent} follows its model with probability {self.restriction.p:g})"

    @functools.cached_property
    def digest(self) -> str:
        """That of the original game, where its policies are stored and played."""
        return self.original.digest

    @property
    def opponent_model(self) -> result_folder.OpponentModelConfig:
        restriction = self.restriction
        return result_folder.OpponentModelConfig(self.players[restriction.player], restriction.p, restriction.digest)

    def write_inputs(self, folder: pathlib.Path) -> None:
        result_folder.write_model(folder, self.restriction.model)

    def facts(self, policies: tabular_policies.Policies) -> dict[str, Any]:
        """Returns payoffs and goals of the responder in the original game."""
        restriction, original = self.restriction, self.original
        responses = policies[restriction.responder]
        trade_off = evaluate_trade_off(original, restriction.player, restriction.model, responses)
        game_value = exact_game_value(original, restriction.responder)
        exploitation, worst = float(trade_off.exploitation), float(trade_off.worst_case)
        offset = original.tree.offset
        return {
            "restricted": {
                "model": self.players[restriction.player],
                "responder": self.players[restriction.responder],
                "p": restriction.p,
                "exploitation": exploitation,
                "exploitation_goal": exploitation + offset,
                "worst": worst,
                "worst_goal": worst + offset,
                "game_value": game_value,
                "exploitability": None if game_value is None else max(0.0, game_value - worst),
            }
        }


def make_restricted_task(original: tasks.TreeTask, restriction: Restriction) -> RestrictedTask:
    """Prepares the restricted game for solvers."""
    tree = restricted_tree(original.tree, restriction)
    return RestrictedTask(original.game, tree, *sequence_form.sequence_form(tree), original, restriction)


def load_restricted_task(
    original: tasks.TreeTask, modelled: result_folder.OpponentModelConfig, folder: pathlib.Path
) -> RestrictedTask:
    """Prepares the restricted game of a result folder.

    Raises:
      ResultError: the model in the folder is not the one that its config records.
    """
    player = player_index(original, modelled.player)
    model = result_folder.read_model(folder, original.tree.players[player])
    restriction = Restriction(player, model, modelled.p)
    if restriction.digest != modelled.model:
        raise result_folder.ResultError(
            f"{folder / result_folder.MODEL} is another model than {result_folder.CONFIG} says; solve again"
        )
    return make_restricted_task(original, restriction)


def player_index(task: tasks.TreeTask, name: str | None) -> int:
    """Returns the index of a player; without a name, that of the last."""
    if name is None:
        return len(task.players) - 1
    if name not in task.players:
        raise RestrictionError(f"{task.game.spec} has no player {name!r} to model; it has {' and '.join(task.players)}")
    return task.players.index(name)


class TradeOff(NamedTuple):
    """Payoffs of the responder. All axes are those of a batch."""

    exploitation: Floats  # against the model
    worst_case: Floats  # against a best response to the responder


def evaluate_trade_off(
    task: tasks.TreeTask, player: int, model: tabular_policies.Policy, responses: tabular_policies.Policy
) -> TradeOff:
    """Evaluates policies [S, ...] of the responder in the original game: against the model, and in the worst case."""
    models = np.broadcast_to(model.reshape(-1, *[1] * (responses.ndim - 1)), (len(model), *responses.shape[1:]))
    both = (responses, models) if player == 1 else (models, responses)
    evaluation = tasks.evaluate(task.form, tabular_policies.to_levels(task.tree, task.layouts, both))
    value = np.asarray(evaluation.value, np.float64)
    best = np.asarray(evaluation.best_response_value, np.float64)
    return TradeOff(value[1 - player], -best[player])


def exact_game_value(task: tasks.TreeTask, player: int) -> float | None:
    """Returns the exact value of the game to a player; None where computing it would take long."""
    if lp.payoff_matrix(task.tree).nnz > _MAX_QUICK_LP_ENTRIES:
        return None
    return lp.solve(task.tree).value[player]


def sweep_probabilities(
    task: tasks.TreeTask,
    player: int,
    model: tabular_policies.Policy,
    probabilities: npt.ArrayLike,
    algorithm: algorithms.Algorithm,
    iterations: int,
) -> tabular_policies.Policy:
    """Returns the responder's policies [S, B] for B values of p, solved as one batch."""
    require_non_sampling(algorithm)
    p = np.atleast_1d(np.asarray(probabilities, np.float64))
    for each in p:
        require_probability(each)
    restricted = model_terminals(task.tree, player, model)
    tree = dataclasses.replace(task.tree, terminals=_concatenate(task.tree.listed_terminals, restricted), levels=None)
    is_restricted = np.arange(len(tree.terminals.weight)) >= len(task.tree.listed_terminals.weight)
    share = np.where(is_restricted[:, None], p, 1 - p)
    form, layouts = sequence_form.sequence_form(tree, tree.terminals.payoff[:, :, None] * share[:, None, :])
    result = batch.solve(form, algorithm, algorithm.settings, iterations)
    responder = 1 - player
    plans = result.cumulative_policy[responder][layouts[responder].place]
    return tabular_policies.from_realization_plan(tree.players[responder], plans)


def mix_policies(
    player: game_tree.Player, first: tabular_policies.Policy, second: tabular_policies.Policy, p: npt.ArrayLike
) -> tabular_policies.Policy:
    """Returns the policy that is equivalent to drawing one of two before the game: the second with probability p.

    Mixes realization plans, not action probabilities: at every information set each policy counts by its own reach
    probability. With an equilibrium first and a best response second, payoffs against any policy lie on the line
    between theirs. [S], [S] and [...] -> [S, ...]
    """
    share = np.asarray(p, np.float64)
    plans = (
        tabular_policies.realization_plan(player, policy).reshape(-1, *[1] * share.ndim) for policy in (first, second)
    )
    first_plan, second_plan = plans
    return tabular_policies.from_realization_plan(player, (1 - share) * first_plan + share * second_plan)
