"""Restricted Nash responses: play against an opponent that is believed to follow a model, but may not.

With probability p the opponent is bound to the model, else it is free to do its worst (Johanson, Zinkevich & Bowling
2007). That is a game like any other: chance tosses a coin that the responder never sees, and where the opponent is
bound, its choices are chance's. With m the plan of the model, every end of the game at sequences (s, t) of responder
and opponent, of weight w, becomes two:

    (s, t)  of weight  (1 - p) w         the opponent was free
    (s, -)  of weight  p w m(t)          it was bound; - is the empty sequence, and such ends of the same s are one

Nothing else changes. Both games have the same players, information sets and sequences, a policy of one is a policy of
the other, and whatever solves unrolled games solves this one too. Its value to the responder is

    max over x of   p u(x, m) + (1 - p) min over y of u(x, y)

so with p = 0 the responder has an equilibrium policy, with p = 1 a best response to the model. In between nobody who
gets as much from the model loses less in the worst case. Two players, zero-sum.
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
from gdlx.solvers import algorithms, tabular_policies, tasks
from gdlx.solvers.exact import batch, lp
from gdlx.solvers.runs import result_folder

Floats = npt.NDArray[np.float64]
_MAX_QUICK_LP_ENTRIES = 20_000  # payoffs of a game whose value a linear program tells in about a second


class RestrictionError(errors.UserError, ValueError):
    """A game, a player, a probability or an algorithm that cannot be."""


@dataclasses.dataclass(frozen=True, eq=False)
class Restriction:
    """Who is modelled, how, and how far the model is trusted."""

    player: int
    model: tabular_policies.Policy  # [S] of that player
    p: float

    def __post_init__(self) -> None:
        require_probability(self.p)

    @property
    def responder(self) -> int:
        return 1 - self.player

    @functools.cached_property
    def digest(self) -> str:
        """Tells models apart."""
        return hashlib.sha256(np.ascontiguousarray(self.model, np.float64).tobytes()).hexdigest()[:16]


def require_probability(p: float) -> None:
    if not 0 <= p <= 1:
        raise RestrictionError(
            f"p is the probability that the opponent plays as its model does, from 0 to 1; it cannot be {p:g}"
        )


def restricted_tree(tree: game_tree.GameTree, restriction: Restriction) -> game_tree.GameTree:
    """The game in which the opponent is bound with probability p."""
    p, bound = restriction.p, model_terminals(tree, restriction.player, restriction.model)
    free = tree.terminals._replace(weight=(1 - p) * tree.terminals.weight)
    players = list(tree.players)
    modelled = players[restriction.player]
    players[restriction.player] = dataclasses.replace(modelled, chance=(1 - p) * modelled.chance)
    ends = _together(free, bound._replace(weight=p * bound.weight))
    return dataclasses.replace(tree, players=tuple(players), terminals=ends, levels=None)


def model_terminals(tree: game_tree.GameTree, player: int, model: tabular_policies.Policy) -> game_tree.Terminals:
    """Ends of the game in which a player's choices are chance's, by the model: one for each sequence of the other."""
    require_two_player_zero_sum(tree)
    policy = tabular_policies.validate(tree.players[player], model)
    ends = tree.terminals
    weight = ends.weight * tabular_policies.realization_plan(tree.players[player], policy)[ends.sequence[:, player]]
    happens = np.flatnonzero(weight > 0)
    own, group = np.unique(ends.sequence[happens, 1 - player], return_inverse=True)

    def summed(what: Floats) -> Floats:
        return np.bincount(group, what[happens], len(own)).astype(np.float64)

    total = summed(weight)
    paid = [summed(weight * payoff) for payoff in ends.payoff.T]
    sequence = np.zeros((len(own), 2), ends.sequence.dtype)
    sequence[:, 1 - player] = own
    return game_tree.Terminals(sequence, np.stack(paid, axis=1) / total[:, None], total, summed(ends.histories))


def _together(*parts: game_tree.Terminals) -> game_tree.Terminals:
    return game_tree.Terminals(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def require_two_player_zero_sum(tree: game_tree.GameTree) -> None:
    if len(tree.players) != 2 or not tree.zero_sum:
        what = "other sums" if len(tree.players) == 2 else f"{len(tree.players)} player{'s' * (len(tree.players) > 1)}"
        raise RestrictionError(
            f"an opponent can be restricted in zero-sum games of two players; {tree.name} has {what}"
        )


def require_non_sampling(algorithm: algorithms.Algorithm) -> None:
    if algorithm.is_sampled:
        raise RestrictionError(
            f"{algorithm.name} samples play, and a restricted game has no play to sample; take cfr+, dcfr or another "
            "algorithm that looks at every information set, or lp"
        )


@dataclasses.dataclass(frozen=True)
class RestrictedTask(tasks.TreeTask):
    """A restricted game made ready for solvers. What is measured of its policies holds in it, not in the original."""

    original: tasks.TreeTask
    restriction: Restriction

    @functools.cached_property
    def digest(self) -> str:
        """Of the original: its policies are kept, and played there."""
        return self.original.digest

    @property
    def modelled(self) -> result_folder.OpponentModelConfig:
        bound = self.restriction
        return result_folder.OpponentModelConfig(self.players[bound.player], bound.p, bound.digest)

    def write_inputs(self, folder: pathlib.Path) -> None:
        result_folder.write_model(folder, self.restriction.model)

    def facts(self, policies: tabular_policies.Policies) -> dict[str, Any]:
        """Payoffs of the responder in the game as it is, and goals."""
        bound, original = self.restriction, self.original
        got = evaluate_trade_off(original, bound.player, bound.model, policies[bound.responder])
        game_value = exact_game_value(original, bound.responder)
        exploitation, worst = float(got.exploitation), float(got.worst_case)
        offset = original.tree.offset
        return {
            "restricted": {
                "model": self.players[bound.player],
                "responder": self.players[bound.responder],
                "p": bound.p,
                "exploitation": exploitation,
                "exploitation_goal": exploitation + offset,
                "worst": worst,
                "worst_goal": worst + offset,
                "game_value": game_value,
                "exploitability": None if game_value is None else max(0.0, game_value - worst),
            }
        }


def make_restricted_task(original: tasks.TreeTask, restriction: Restriction) -> RestrictedTask:
    tree = restricted_tree(original.tree, restriction)
    return RestrictedTask(original.game, tree, *sequence_form.sequence_form(tree), original, restriction)


def load_restricted_task(
    original: tasks.TreeTask, modelled: result_folder.OpponentModelConfig, folder: pathlib.Path
) -> RestrictedTask:
    """The game that a result is of."""
    player = player_index(original, modelled.player)
    model = result_folder.read_model(folder, original.tree.players[player])
    restriction = Restriction(player, model, modelled.p)
    if restriction.digest != modelled.model:
        raise result_folder.ResultError(
            f"{folder / result_folder.MODEL} is another model than {result_folder.CONFIG} says; solve anew"
        )
    return make_restricted_task(original, restriction)


def player_index(task: tasks.TreeTask, name: str | None) -> int:
    """The number of a player; without a name, of the last."""
    if name is None:
        return len(task.players) - 1
    if name not in task.players:
        raise RestrictionError(f"{task.game.spec} has no player {name!r} to model; it has {' and '.join(task.players)}")
    return task.players.index(name)


class TradeOff(NamedTuple):
    """Payoffs of the responder. Any axes, those of a batch."""

    exploitation: Floats  # against the model
    worst_case: Floats  # against a best response to it


def evaluate_trade_off(
    task: tasks.TreeTask, player: int, model: tabular_policies.Policy, responses: tabular_policies.Policy
) -> TradeOff:
    """Of policies [S, ...] of the responder, in the game as it is: what each gets from the model, and at worst."""
    spread = np.broadcast_to(model.reshape(-1, *[1] * (responses.ndim - 1)), (len(model), *responses.shape[1:]))
    both = (responses, spread) if player == 1 else (spread, responses)
    found = tasks.evaluate(task.form, tabular_policies.to_levels(task.tree, task.layouts, both))
    value, best = (np.asarray(part, np.float64) for part in (found.value, found.best))
    return TradeOff(value[1 - player], -best[player])


def exact_game_value(task: tasks.TreeTask, player: int) -> float | None:
    """Of the game to a player, exactly; None where that would take long."""
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
    """[S, B] the responder's policies for B values of p, solved side by side in one program."""
    require_non_sampling(algorithm)
    p = np.atleast_1d(np.asarray(probabilities, np.float64))
    for each in p:
        require_probability(each)
    bound = model_terminals(task.tree, player, model)
    tree = dataclasses.replace(task.tree, terminals=_together(task.tree.terminals, bound), levels=None)
    is_bound = np.arange(len(tree.terminals.weight)) >= len(task.tree.terminals.weight)
    share = np.where(is_bound[:, None], p, 1 - p)
    form, layouts = sequence_form.sequence_form(tree, tree.terminals.payoff[:, :, None] * share[:, None, :])
    found = batch.solve(form, algorithm, algorithm.settings, iterations)
    own = 1 - player
    return tabular_policies.from_realization_plan(tree.players[own], found.cumulative_policy[own][layouts[own].place])


def mix_policies(
    player: game_tree.Player, first: tabular_policies.Policy, second: tabular_policies.Policy, p: npt.ArrayLike
) -> tabular_policies.Policy:
    """One policy that does what drawing one of two before the game would do: the second with probability p.

    Plans are mixed, not choices: at every set the weights are how likely each of the two is to have come there. With an
    equilibrium first and a best response second, payoffs against anybody lie on the line between theirs. [S] twice and
    [...] -> [S, ...]
    """
    part = np.asarray(p, np.float64)
    plans = (
        tabular_policies.realization_plan(player, policy).reshape(-1, *[1] * part.ndim) for policy in (first, second)
    )
    earlier, later = plans
    return tabular_policies.from_realization_plan(player, (1 - part) * earlier + part * later)
