"""Backward induction on a graph of states: equilibria that are optimal in every state; exact NashConv of policies."""

import string
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gdlx.envs.states import state_graph
from gdlx.propnet.common import deadlines, errors
from gdlx.solvers import infoset_values, tabular_policies
from gdlx.solvers.exact import best_response, matrix_games

Floats = npt.NDArray[np.float64]


class NotSolvableError(errors.UserError, ValueError):
    """A game of states for which backward induction computes no equilibrium."""


class Equilibrium(NamedTuple):
    """A subgame-perfect equilibrium. Axes: S states, P players."""

    policies: tabular_policies.Policies
    values: Floats  # [S, P]
    seconds: float
    matrix_games: int  # states in which both players choose at once
    mixed: int  # of these, how many have no saddle point in pure strategies
    rational: int  # of these, how many needed rational arithmetic
    tolerance: float  # the largest gap of a matrix game
    error_bound: float  # on NashConv in the first state: gaps, added up on the worst way through the game


def solve(graph: state_graph.StateGraph, report: Callable[[int, int], None] | None = None) -> Equilibrium:
    """Solves a game of states from its end.

    In a state in which one player chooses, it takes the action with the largest value; of equal ones the first. Where
    two players of a zero-sum game choose at once, they play an equilibrium of the matrix game of the values of the next
    states. Every state is the root of a subgame, so that the policies are optimal from every state on, also from those
    that they never reach. If every matrix game is solved up to a gap, the gaps along a match add up:

        bound(s) = gap(s) + max bound(s') over the states s' that can follow s

    Args:
      graph: the game. Two-player zero-sum, or turn-taking with any number of players.
      report: called as `report(states, all states)` as the states are solved.

    Returns:
      The policies and the values of all states.

    Raises:
      NotSolvableError: several players choose at once, and the game is not two-player zero-sum.

    >>> from gdlx.propnet import games
    >>> equilibrium = solve(state_graph.build(games.compile_game("repeated_rps:rounds=3")))
    >>> bool(abs(equilibrium.values[0, 0]) < 1e-9), equilibrium.matrix_games, equilibrium.error_bound < 1e-9
    (True, 9, True)
    """
    _require_solvable(graph)
    begun = time.perf_counter()
    values = graph.payoff.copy()
    bound = np.zeros(graph.states)
    policies = tuple(np.zeros(player.sequences) for player in graph.players)
    for policy in policies:
        policy[0] = 1.0
    games = mixed = rational = done = 0
    tolerance = 0.0
    for batch in graph.batches:
        deadlines.check()
        after = graph.successors(batch)
        expected = values[after].mean(axis=-2)  # over chance
        gap = np.zeros(len(batch.states))
        deciders = [n for n, width in enumerate(batch.widths) if width > 1]
        if len(deciders) == 2:
            solved = matrix_games.solve(expected[..., 0])
            values[batch.states] = np.stack([solved.value, -solved.value], axis=1)
            _store(graph, policies, batch, 0, solved.row)
            _store(graph, policies, batch, 1, solved.column)
            games, mixed, rational = games + len(batch.states), mixed + solved.mixed, rational + solved.rational
            gap = solved.gap
            tolerance = max(tolerance, float(solved.gap.max()))
        else:
            options = expected.reshape(len(batch.states), -1, len(graph.players))  # of the only decider, if any
            player = deciders[0] if deciders else 0
            best = options[:, :, player].argmax(axis=1)
            values[batch.states] = options[np.arange(len(best)), best]
            if deciders:
                _store(graph, policies, batch, player, np.eye(batch.widths[player])[best])
        bound[batch.states] = gap + bound[after].reshape(len(batch.states), -1).max(axis=1)
        done += len(batch.states)
        if report:
            report(done, graph.states)
    return Equilibrium(
        policies, values, time.perf_counter() - begun, games, mixed, rational, tolerance, float(bound[0])
    )


def decision_values(
    graph: state_graph.StateGraph, policies: tabular_policies.Policies, player: int
) -> infoset_values.InfosetValues:
    """What the states in which a player chooses are worth to it when everybody plays these policies."""
    values, reach = graph.payoff[:, player].copy(), np.zeros(graph.states)
    action_value = np.full(graph.players[player].sequences, np.nan)
    for batch in graph.batches:
        expected = values[graph.successors(batch)].mean(axis=-1)
        played = strategies(graph, policies, batch)
        values[batch.states] = expect(expected, played)
        if batch.widths[player] > 1:
            action_value[sequences(graph, batch, player)] = expect(expected, played, keep=player)
    reach[0] = 1.0
    for batch in reversed(graph.batches):
        mass = reach[batch.states]
        for strategy in strategies(graph, policies, batch):
            mass = mass[..., None] * strategy.reshape(len(strategy), *[1] * (mass.ndim - 1), -1)
        after = graph.successors(batch)
        np.add.at(reach, after, np.broadcast_to(mass[..., None] / batch.chance, after.shape))
    chosen = graph.players[player].view
    return infoset_values.InfosetValues(reach[chosen], values[chosen], action_value)


def _require_solvable(graph: state_graph.StateGraph) -> None:
    if graph.is_turn_taking or (graph.zero_sum and len(graph.players) == 2):
        return
    what = "has more than two players" if len(graph.players) > 2 else "is not zero-sum"
    raise NotSolvableError(
        f"{graph.name} {what}, and several players choose at once: backward induction computes no equilibrium of such "
        "games. Approximate one on the same states with an algorithm of the CFR family and `states=True`"
    )


def _store(
    graph: state_graph.StateGraph,
    policies: tabular_policies.Policies,
    batch: state_graph.Batch,
    player: int,
    strategy: Floats,
) -> None:
    policies[player][sequences(graph, batch, player)] = strategy


def sequences(graph: state_graph.StateGraph, batch: state_graph.Batch, player: int) -> npt.NDArray[np.int64]:
    """[B, width] where the policies of a batch have a player's actions."""
    first = graph.players[player].first[graph.decision[batch.states, player]].astype(np.int64)
    places: npt.NDArray[np.int64] = first[:, None] + np.arange(batch.widths[player])
    return places


def strategies(
    graph: state_graph.StateGraph, policies: tabular_policies.Policies, batch: state_graph.Batch
) -> list[Floats]:
    """The probabilities [B, width] of every player's actions in the states of a batch."""
    return [
        policies[player][sequences(graph, batch, player)] if width > 1 else np.ones((len(batch.states), 1))
        for player, width in enumerate(batch.widths)
    ]


def expect(values: Floats, strategies: Sequence[Floats], keep: int | None = None) -> Floats:
    """The mean of values [B, width 0, .., width P - 1] over all players' actions, those of `keep` excepted.

    >>> expect(np.array([[[4.0, 0.0], [2.0, 2.0]]]), [np.array([[1.0, 0.0]]), np.array([[0.5, 0.5]])], keep=0).tolist()
    [[2.0, 2.0]]
    """
    for player in reversed(range(len(strategies))):
        if player == keep:
            continue
        if strategies[player].shape[1] == 1:
            values = np.take(values, 0, axis=1 + player)
        else:
            letters = string.ascii_lowercase[: values.ndim - 1]
            axis = letters[player]
            subscripts = f"Z{letters},Z{axis}->Z{letters.replace(axis, '')}"
            values = np.asarray(np.einsum(subscripts, values, strategies[player]))
    return values


def evaluate(graph: state_graph.StateGraph, policies: tabular_policies.Policies) -> best_response.Evaluation:
    """Measures policies exactly: expected payoffs, and what each player gains by a best response.

    The others' actions depend on the state only, so that a best response is found state by state from the end. It is
    one in the whole game: a player that also remembered how the state was reached could gain no more.

    >>> from gdlx.propnet import games
    >>> graph = state_graph.build(games.compile_game("rps"))
    >>> first = np.array([1.0, 1.0, 0.0, 0.0])  # always the first move
    >>> evaluation = evaluate(graph, (first, first))
    >>> evaluation.value.tolist(), evaluation.improvements.tolist()
    ([0.0, 0.0], [50.0, 50.0])
    """
    values, best = graph.payoff.copy(), graph.payoff.copy()
    for batch in graph.batches:
        deadlines.check()
        after = graph.successors(batch)
        played = strategies(graph, policies, batch)
        for player in range(len(graph.players)):
            values[batch.states, player] = expect(values[:, player][after].mean(axis=-1), played)
            responses = expect(best[:, player][after].mean(axis=-1), played, keep=player)
            best[batch.states, player] = responses.max(axis=1)
    return best_response.Evaluation(values[0], best[0])
