"""Counterfactual regret minimisation on a graph of states.

Where histories merge to states, players forget how they came there. A state's counterfactual reach is the sum of that
of its histories, so that on a graph in which nothing merges this is CFR on the tree. Elsewhere the convergence theorem
does not hold, whose players have perfect recall: the exact NashConv of the policies tells how good they are.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from gdlx.envs.states import state_graph
from gdlx.envs.trees import game_tree
from gdlx.solvers import tabular_policies
from gdlx.solvers.exact import backward_induction, regret_matching

Floats = npt.NDArray[np.floating]
Tables = tuple[Floats, ...]  # P x [w, n]

_ROUNDING = 8  # regrets up to so many units in the last place of the largest payoff, in double precision, are 0


class StateCfrState(NamedTuple):
    """Axes: P players, each with n information sets of at most w actions."""

    regret: Tables  # P x [w, n], cumulative counterfactual regret
    cumulative_policy: Tables  # P x [w, n], weighted by the player's own reach
    policy: Tables  # P x [w, n], of the next iteration
    t: jax.Array  # [] int32, iterations done


class _Arrays(NamedTuple):
    """The information sets of a player. Axes: as above, S sequences."""

    uniform: Floats  # [w, n] 1 / number of actions; 0 where there is no action
    tolerance: Floats  # [w, n] 0; inf where there is no action
    places: npt.NDArray[np.int64]  # [S - 1] of every sequence in a flat table


class StateCfr:
    """Full iterations of the CFR family on a graph, as functions of a state; see the module."""

    def __init__(self, graph: state_graph.StateGraph) -> None:
        self.graph = graph
        self._dtype = np.dtype(jnp.result_type(float))
        largest = float(np.abs(graph.payoff).max(initial=0.0))
        self._noise = _ROUNDING * float(np.finfo(np.float64).eps) * largest
        self._players = [_arrays(player, self._dtype) for player in graph.players]

    def init(self) -> StateCfrState:
        """Returns the state with zero regrets and uniform policies."""
        uniform = tuple(player.uniform for player in self._players)
        zero = tuple(map(np.zeros_like, uniform))
        return StateCfrState(zero, zero, uniform, jnp.zeros((), jnp.int32))

    def step(
        self, state: StateCfrState, settings: regret_matching.Settings, *, alternating: bool = True
    ) -> StateCfrState:
        """Runs one iteration: every player in turn adds its policy to its average, then updates regrets and policy.

        With Q(s, a) the expected payoff of action a in state s, and c(s) the sum over the histories that lead to s of
        the probability that the others and chance play them,

            r(s, a) = c(s) (Q(s, a) - sum_b policy(s, b) Q(s, b))
        """
        t = state.t + 1
        regrets, averages, policies = list(state.regret), list(state.cumulative_policy), list(state.policy)
        for player, arrays in enumerate(self._players):
            seen = policies if alternating else state.policy
            played = self._sequences(seen)
            values, others, own_reach = self._pass(played, player)
            new = np.zeros_like(arrays.uniform)
            new.reshape(-1)[arrays.places] = values
            regret, average, policy = _update(
                regrets[player],
                averages[player],
                state.policy[player],
                new * others.astype(self._dtype),
                own_reach.astype(self._dtype),
                arrays.uniform,
                arrays.tolerance,
                settings,
                t,
            )
            regrets[player], averages[player], policies[player] = map(np.asarray, (regret, average, policy))
        return StateCfrState(tuple(regrets), tuple(averages), tuple(policies), t)

    def average_policies(self, state: StateCfrState) -> tabular_policies.Policies:
        """Returns the average policies; uniform in states that the player's own policies never reached."""
        return tuple(
            tabular_policies.normalise(player, policy)
            for player, policy in zip(self.graph.players, self._sequences(state.cumulative_policy), strict=True)
        )

    def _sequences(self, tables: "Tables | list[Floats]") -> tabular_policies.Policies:
        """Tables as policies [S]."""
        return tuple(
            np.concatenate([[1.0], table.reshape(-1)[arrays.places]])
            for table, arrays in zip(tables, self._players, strict=True)
        )

    def _pass(
        self, policies: tabular_policies.Policies, player: int
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Regrets of a player's actions before they are weighted [S - 1], and its states' reaches [n] of the others and
        of the player.
        """
        graph = self.graph
        values = graph.payoff[:, player].copy()
        regrets = np.zeros(graph.players[player].sequences)
        strategies = [backward_induction.strategies(graph, policies, batch) for batch in graph.batches]
        for batch, played in zip(graph.batches, strategies, strict=True):
            options = backward_induction.expect(values[graph.successors(batch)].mean(axis=-1), played, keep=player)
            mean = (options * played[player]).sum(axis=1)
            values[batch.states] = mean
            if batch.widths[player] > 1:
                regrets[backward_induction.sequences(graph, batch, player)] = options - mean[:, None]
        regrets[np.abs(regrets) <= self._noise] = 0.0
        others, own_reach = np.zeros(graph.states), np.zeros(graph.states)
        others[0] = own_reach[0] = 1.0
        for batch, played in zip(reversed(graph.batches), reversed(strategies), strict=True):
            after = graph.successors(batch).reshape(-1)
            first = int(after.min())
            for reach, by_player in ((others, False), (own_reach, True)):
                # The others' moves have weight in `others`; in `own` they are uniform, which in a tree does not matter.
                weights = [
                    strategy
                    if (number == player) == by_player
                    else np.full_like(strategy, 1 / strategy.shape[1] if by_player else 1.0)
                    for number, strategy in enumerate(played)
                ]
                mass = _joint(reach[batch.states] / batch.chance, weights, batch.chance)
                counts = np.bincount(after - first, weights=mass)
                reach[first : first + len(counts)] += counts
        chosen = graph.players[player].view
        return regrets[1:], others[chosen], own_reach[chosen]


def _joint(mass: npt.NDArray[np.float64], strategies: Sequence[Floats], chance: int) -> npt.NDArray[np.float64]:
    """The mass [B] of states, divided among their joint actions, as a flat array in the order of successors."""
    for strategy in strategies:
        mass = mass[..., None] * strategy.reshape(len(strategy), *[1] * (mass.ndim - 1), -1)
    return np.repeat(mass.reshape(-1), chance)


@jax.jit
def _update(
    regret: jax.Array,
    average: jax.Array,
    policy: jax.Array,
    new: jax.Array,
    own_reach: jax.Array,
    uniform: jax.Array,
    tolerance: jax.Array,
    settings: regret_matching.Settings,
    t: jax.Array,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    by = regret_matching.discounts(settings, t)
    average = average * by.average + policy * own_reach
    regret, policy = regret_matching.update(regret, new, uniform, tolerance, by)
    return regret, average, policy


def _arrays(player: game_tree.Player, dtype: np.dtype[np.floating]) -> _Arrays:
    widths = np.diff(player.first)
    most = int(widths.max(initial=1))
    action = np.arange(player.sequences - 1) - np.repeat(player.first[:-1] - 1, widths)
    infoset = np.repeat(np.arange(player.sets), widths)
    exists = np.arange(most)[:, None] < widths
    uniform = np.where(exists, 1 / np.maximum(widths, 1), 0.0).astype(dtype)
    tolerance = np.where(exists, 0.0, np.inf).astype(dtype)
    return _Arrays(uniform, tolerance, action * player.sets + infoset)
