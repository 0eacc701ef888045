"""Games of perfect information with simultaneous moves as graphs of states, and CFR on them.

Many histories lead to the same state, and the rest of the game depends on the state alone. With r_i(s) the sum over all
paths to s of the product of player i's own probabilities, an iteration adds at every state

    r_j(s) (u_i(s, a) - v_i(s))    to the regret of i's move a, with j the other player,
    r_i(s) policy_i(s, a)          to its average,

for both players at once: Algorithms 2 to 5 of M. Shafiei Khadem, Simultaneous Move Games in General Game
Playing, University of Alberta 2010. Where no two histories meet, this is CFR with simultaneous updates on the tree.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from gdlx.propnet.circuits import propnet
from gdlx.propnet.simulate import joint_actions, machine

# Where all moves are equal, as in a game that is decided, regret matching would otherwise follow rounding errors.
_NOISE = 1e-9


class GraphLevel(NamedTuple):
    """States after the same number of joint actions. Axes: N states, A most actions of a player at a state, K most
    edges into a state. The actions of a player are numbered by their order among the legal ones.
    """

    legal: Any  # [2, N, A] bool; all false at terminals
    child: Any  # [N, A, A] int32, of a joint action, in the next level; one past its end for illegal ones
    incoming_edges: (
        Any  # [N, K] int32, indices into the flat `child` of the previous level; one past its end for padding
    )
    payoff: Any  # [N] of the first player, 0 at states that are not terminal


class StateGraph(NamedTuple):
    levels: tuple[GraphLevel, ...]

    @property
    def nodes(self) -> int:
        return sum(len(level.payoff) for level in self.levels)

    @property
    def terminals(self) -> int:
        return sum(int((~np.asarray(level.legal[0]).any(axis=1)).sum()) for level in self.levels)


def build_graph(propnet: propnet.PropNet) -> StateGraph:
    """Enumerates the states of a two-player game without chance, whose goals add up to 100."""
    game = machine.for_propnet(propnet)
    assert len(propnet.roles) == 2, "two players, and no chance"
    sizes = [len(role.moves) for role in propnet.roles]
    levels = []
    states = game.initial(1)
    edges = np.zeros((1, 0), np.int32)
    while states.shape[1]:
        terminal, goals = game.terminal_and_goals(states)
        first_goals = machine.split_rows(goals, [len(role.goal_values) for role in propnet.roles])[0]
        payoff = np.where(terminal, np.asarray(propnet.roles[0].goal_values) @ first_goals - 50.0, 0.0)
        rows = game.legal(states) & ~terminal
        counts = [legal_rows.sum(axis=0) for legal_rows in machine.split_rows(rows, sizes)]
        most = max(1, *(int(count.max()) for count in counts))
        legal = np.array([np.arange(most) < count[:, None] for count in counts])
        parents, chosen = joint_actions.enumerate_joint_actions(rows, sizes)
        after = game.step(states[:, parents], joint_actions.one_hot_rows(chosen, sizes))[0]
        following, number = np.unique(after, axis=1, return_inverse=True)
        child = np.full((states.shape[1], most, most), following.shape[1], np.int32)
        child[legal[0][:, :, None] & legal[1][:, None, :]] = number.reshape(-1)  # joint actions are in this order
        levels.append(GraphLevel(legal, child, edges, payoff))
        states, edges = following, _incoming_edges(child.reshape(-1), following.shape[1])
    return StateGraph(tuple(levels))


def _incoming_edges(child: npt.NDArray[np.int32], size: int) -> npt.NDArray[np.int32]:
    """[size, K] the positions of every number in `child`. Gathering from them is many times faster than scattering."""
    order = np.argsort(child, kind="stable")
    counts = np.bincount(child, minlength=size + 1)[:size]
    column = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    edges = np.full((size, max(1, int(counts.max(initial=0)))), len(child), np.int32)
    edges[np.repeat(np.arange(size), counts), column] = order[: counts.sum()]
    return edges


class GraphCfrState(NamedTuple):
    """Axes: L levels, of N states with A actions each."""

    regret: tuple[jax.Array, ...]  # L x [2, N, A]
    cumulative_policy: tuple[jax.Array, ...]  # L x [2, N, A]
    policy: tuple[jax.Array, ...]  # L x [2, N, A]


def init(game: StateGraph, *, first: bool = False) -> GraphCfrState:
    """Starts with uniform policies, or with those that always play the first action."""
    zeros = tuple(jnp.zeros(level.legal.shape) for level in game.levels)
    return GraphCfrState(zeros, zeros, tuple(_first(level) if first else _uniform(level) for level in game.levels))


def _uniform(level: GraphLevel) -> jax.Array:
    legal = jnp.asarray(level.legal, jnp.result_type(float))
    return legal / jnp.maximum(legal.sum(axis=2, keepdims=True), 1)


def _first(level: GraphLevel) -> jax.Array:
    legal = np.asarray(level.legal)
    return jnp.asarray(legal & (np.cumsum(legal, axis=2) == 1), jnp.result_type(float))


def _normalize_or_uniform(level: GraphLevel, weights: jax.Array) -> jax.Array:
    """[2, N, A] in proportion to the positive parts; uniform where there are none."""
    positive = jnp.maximum(weights, 0)
    total = positive.sum(axis=2, keepdims=True)
    return jnp.where(total > 0, positive / jnp.where(total > 0, total, 1), _uniform(level))


@jax.jit
def advance(game: StateGraph, state: GraphCfrState, count: int) -> GraphCfrState:
    done: GraphCfrState = jax.lax.fori_loop(0, count, lambda _, s: step(game, s), state)
    return done


def step(game: StateGraph, state: GraphCfrState) -> GraphCfrState:
    reach = _reach(game, state.policy)
    regrets, weights, policies = [], [], []
    value = jnp.zeros(0)
    rows = list(zip(game.levels, state.regret, state.cumulative_policy, state.policy, reach, strict=True))
    for level, regret, weight, policy, level_reach in reversed(rows):
        action_values = _action_values(level, value, policy)
        mean = (action_values * policy).sum(axis=2)
        value = mean[0] + level.payoff
        new = jnp.where(level.legal, action_values - mean[:, :, None], 0)
        regret = regret + level_reach[::-1, :, None] * jnp.where(jnp.abs(new) > _NOISE, new, 0)
        regrets.append(regret)
        weights.append(weight + level_reach[:, :, None] * policy)
        policies.append(_normalize_or_uniform(level, regret))
    return GraphCfrState(tuple(regrets[::-1]), tuple(weights[::-1]), tuple(policies[::-1]))


def _reach(game: StateGraph, policy: tuple[jax.Array, ...]) -> list[jax.Array]:
    """L x [2, N]: sums over all paths to a state of the product of each player's probabilities."""
    reach = [jnp.ones((2, 1))]
    for level, following, level_policy in zip(game.levels, game.levels[1:], policy, strict=False):
        by_action = reach[-1][:, :, None] * level_policy
        by_joint_action = jnp.stack(
            [jnp.broadcast_to(x, level.child.shape) for x in (by_action[0][:, :, None], by_action[1][:, None, :])]
        )
        padded = jnp.pad(by_joint_action.reshape(2, -1), ((0, 0), (0, 1)))
        reach.append(padded[:, following.incoming_edges].sum(axis=2))
    return reach


def _action_values(level: GraphLevel, value: jax.Array, policy: jax.Array) -> jax.Array:
    """[2, N, A] the value of each action to its player, if the other follows its policy."""
    after = jnp.append(value, 0.0)[level.child]
    return jnp.stack([(after * policy[1][:, None, :]).sum(axis=2), -(after * policy[0][:, :, None]).sum(axis=1)])


@jax.jit
def average_policy(game: StateGraph, state: GraphCfrState) -> tuple[jax.Array, ...]:
    """L x [2, N, A]; uniform at states that a player never reaches."""
    return tuple(
        _normalize_or_uniform(level, weight) for level, weight in zip(game.levels, state.cumulative_policy, strict=True)
    )


@jax.jit
def exploitability(game: StateGraph, policy: tuple[jax.Array, ...]) -> jax.Array:
    """The mean value of best responses of both players: states are public, so each is maximised by itself."""
    best = [jnp.zeros(0), jnp.zeros(0)]
    for level, level_policy in zip(reversed(game.levels), reversed(policy), strict=True):
        for player, sign in enumerate((1.0, -1.0)):
            action_values = _action_values(level, best[player], level_policy)[player]
            most = jnp.where(level.legal[player], action_values, -jnp.inf).max(axis=1)
            best[player] = level.payoff + sign * jnp.where(jnp.isfinite(most), most, 0)
    return (best[0][0] - best[1][0]) / 2
