"""Games of perfect information and simultaneous moves as graphs of states, and CFR on them.

A state is reached by many histories, and knows none of them: what is to come depends on it alone. With r_i(s) the sum
over all ways to s of the product of player i's own choices, an iteration adds at every state

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

# Where all moves are equal, as in a game that is decided, rounding would choose, and regret matching be firm about it.
_NOISE = 1e-9


class GraphLevel(NamedTuple):
    """States after the same number of joint moves. Axes: N states, A options of the state with the most, K ways to the
    state with the most; both players' moves are numbered by their order among the legal ones."""

    legal: Any  # [2, N, A] bool; none where the game is over
    child: Any  # [N, A, A] int32, of both players' moves, in the next level; one beyond it where they are not legal
    incoming_edges: Any  # [N, K] int32, places in the last level's `child`, flat; one beyond it where there are fewer
    payoff: Any  # [N] of the first player, 0 where the game goes on


class StateGraph(NamedTuple):
    levels: tuple[GraphLevel, ...]

    @property
    def nodes(self) -> int:
        return sum(len(level.payoff) for level in self.levels)

    @property
    def terminals(self) -> int:
        return sum(int((~np.asarray(level.legal[0]).any(axis=1)).sum()) for level in self.levels)


def build_graph(net: propnet.PropNet) -> StateGraph:
    """All states of a game of two players without chance, whose goals add up to 100."""
    game = machine.for_propnet(net)
    assert len(net.roles) == 2, "two players, and no chance"
    sizes = [len(role.moves) for role in net.roles]
    levels = []
    states = game.initial(1)
    ways = np.zeros((1, 0), np.int32)
    while states.shape[1]:
        ended, goals = game.terminal_and_goals(states)
        own_goals = machine.split_rows(goals, [len(role.goal_values) for role in net.roles])[0]
        payoff = np.where(ended, np.asarray(net.roles[0].goal_values) @ own_goals - 50.0, 0.0)
        rows = game.legal(states) & ~ended
        options = [own.sum(axis=0) for own in machine.split_rows(rows, sizes)]
        most = max(1, *(int(own.max()) for own in options))
        legal = np.array([np.arange(most) < own[:, None] for own in options])
        parents, chosen = joint_actions.enumerate_joint_actions(rows, sizes)
        after = game.step(states[:, parents], joint_actions.one_hot_rows(chosen, sizes))[0]
        following, number = np.unique(after, axis=1, return_inverse=True)
        child = np.full((states.shape[1], most, most), following.shape[1], np.int32)
        child[legal[0][:, :, None] & legal[1][:, None, :]] = number.reshape(-1)  # joint moves come in this order
        levels.append(GraphLevel(legal, child, ways, payoff))
        states, ways = following, _incoming_edges(child.reshape(-1), following.shape[1])
    return StateGraph(tuple(levels))


def _incoming_edges(child: npt.NDArray[np.int32], size: int) -> npt.NDArray[np.int32]:
    """[size, K] the places of every number in `child`. To gather from them is many times faster than to scatter."""
    order = np.argsort(child, kind="stable")
    counts = np.bincount(child, minlength=size + 1)[:size]
    column = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    found = np.full((size, max(1, int(counts.max(initial=0)))), len(child), np.int32)
    found[np.repeat(np.arange(size), counts), column] = order[: counts.sum()]
    return found


class GraphCfrState(NamedTuple):
    """Axes: L levels, of N states with A moves each."""

    regret: tuple[jax.Array, ...]  # L x [2, N, A]
    cumulative_policy: tuple[jax.Array, ...]  # L x [2, N, A], of the average
    policy: tuple[jax.Array, ...]  # L x [2, N, A]


def init(game: StateGraph, *, first: bool = False) -> GraphCfrState:
    """Uniform policies, or always the first move."""
    none = tuple(jnp.zeros(level.legal.shape) for level in game.levels)
    return GraphCfrState(none, none, tuple(_first(level) if first else _uniform(level) for level in game.levels))


def _uniform(level: GraphLevel) -> jax.Array:
    options = jnp.asarray(level.legal, jnp.result_type(float))
    return options / jnp.maximum(options.sum(axis=2, keepdims=True), 1)


def _first(level: GraphLevel) -> jax.Array:
    legal = np.asarray(level.legal)
    return jnp.asarray(legal & (np.cumsum(legal, axis=2) == 1), jnp.result_type(float))


def _normalize_or_uniform(level: GraphLevel, weights: jax.Array) -> jax.Array:
    """[2, N, A] in proportion to what is positive; uniform where nothing is."""
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
    for level, regret, weight, policy, own in reversed(rows):
        options = _options(level, value, policy)
        mean = (options * policy).sum(axis=2)
        value = mean[0] + level.payoff
        new = jnp.where(level.legal, options - mean[:, :, None], 0)
        regret = regret + own[::-1, :, None] * jnp.where(jnp.abs(new) > _NOISE, new, 0)
        regrets.append(regret)
        weights.append(weight + own[:, :, None] * policy)
        policies.append(_normalize_or_uniform(level, regret))
    return GraphCfrState(tuple(regrets[::-1]), tuple(weights[::-1]), tuple(policies[::-1]))


def _reach(game: StateGraph, policy: tuple[jax.Array, ...]) -> list[jax.Array]:
    """L x [2, N]: sums over all ways to a state of the product of each player's choices."""
    found = [jnp.ones((2, 1))]
    for level, following, own in zip(game.levels, game.levels[1:], policy, strict=False):
        made = found[-1][:, :, None] * own
        after = jnp.stack(
            [jnp.broadcast_to(way, level.child.shape) for way in (made[0][:, :, None], made[1][:, None, :])]
        )
        ways = jnp.pad(after.reshape(2, -1), ((0, 0), (0, 1)))
        found.append(ways[:, following.incoming_edges].sum(axis=2))
    return found


def _options(level: GraphLevel, value: jax.Array, policy: jax.Array) -> jax.Array:
    """[2, N, A] what each move is worth to who makes it, if the other plays its policy."""
    after = jnp.append(value, 0.0)[level.child]
    return jnp.stack([(after * policy[1][:, None, :]).sum(axis=2), -(after * policy[0][:, :, None]).sum(axis=1)])


@jax.jit
def average_policy(game: StateGraph, state: GraphCfrState) -> tuple[jax.Array, ...]:
    """L x [2, N, A]; uniform where a player never comes."""
    return tuple(
        _normalize_or_uniform(level, weight) for level, weight in zip(game.levels, state.cumulative_policy, strict=True)
    )


@jax.jit
def exploitability(game: StateGraph, policy: tuple[jax.Array, ...]) -> jax.Array:
    """The mean of what the two players get by best responses: states are public, so each can be answered by itself."""
    best = [jnp.zeros(0), jnp.zeros(0)]
    for level, own in zip(reversed(game.levels), reversed(policy), strict=True):
        for player, sign in enumerate((1.0, -1.0)):
            options = _options(level, best[player], own)[player]
            most = jnp.where(level.legal[player], options, -jnp.inf).max(axis=1)
            best[player] = level.payoff + sign * jnp.where(jnp.isfinite(most), most, 0)
    return (best[0][0] - best[1][0]) / 2
