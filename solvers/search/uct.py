"""UCT for games with simultaneous moves, many trees in lockstep: Algorithm 1 of Shafiei Khadem (2010).

M. Shafiei Khadem, Simultaneous Move Games in General Game Playing, University of Alberta 2010.

One iteration of a tree is one simulation from its root. At a node with n previous visits and J joint actions,

    n < J:   the n-th joint action in a pseudo-random order, so that each is taken once before any is preferred;
    else:    each player p takes the action a that maximises  Q_p(a) + C_p sqrt(ln n / n_p(a)),

where n_p(a) counts how often p took a here and Q_p(a) is the mean of its payoffs then. Each player has separate
statistics of its own actions ("decoupled" UCT), and all players explore. Where only one player has a choice this is
standard UCT. The first state that is not in the tree is added to it; from there on all players act at random. Chance is
sampled everywhere. States in which no player has a choice are not nodes.

A node is a state of the game, however it was reached, so that trees are graphs: nodes are in a hash table, keyed by a
hash of the tree's number and the state's bits. A full table accepts no more nodes; the search continues without them.

UCT finds equilibria in games of perfect information with alternating moves. With simultaneous moves, visit frequencies
may settle far from any equilibrium (docs/concepts/online-search.md).
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from gdlx.envs.lowering import rng
from gdlx.envs.packed import packed_env
from gdlx.envs.views import info_key
from gdlx.solvers.mccfr import hash_table, table_rows
from gdlx.solvers.search import rollouts, uct_order

_SALT = np.uint32(0x85EBCA6B)


class Trees(NamedTuple):
    """Statistics of all trees. Axes: R rows of nodes, the last one a dummy; A actions; P players."""

    table: hash_table.Table
    num_nodes: jax.Array  # [] int32
    counts: tuple[jax.Array, ...]  # P x [R, A] int32, n_p(a)
    totals: tuple[jax.Array, ...]  # P x [R, A] float32, n_p(a) Q_p(a)


class RootStatistics(NamedTuple):
    """Statistics of one player at the roots. Axes: A actions, K trees."""

    counts: jax.Array  # [A, K] int32
    totals: jax.Array  # [A, K] float32


class _Path(NamedTuple):
    """Axes: T steps, P players, K trees."""

    row: jax.Array  # [T, K] int32, row of the node; -1 where there is none
    action: jax.Array  # [T, P, K] int32


class _Descent(NamedTuple):
    """Simulations in progress, until they leave their trees."""

    step: jax.Array  # [] int32
    games: packed_env.PackedState
    streams: rng.Streams
    inside: jax.Array  # [K] bool, whether all states so far are in the tree
    table: hash_table.Table
    num_nodes: jax.Array
    path: _Path


def init(game: packed_env.PackedEnv, bits: int) -> Trees:
    """Returns empty trees; 2^bits is the capacity for nodes of all trees together."""
    players, shape = range(game.env.num_players), (2**bits + 1, max(1, game.env.num_actions))
    return Trees(
        hash_table.init(bits),
        jnp.zeros((), jnp.int32),
        tuple(jnp.zeros(shape, jnp.int32) for _ in players),
        tuple(jnp.zeros(shape, jnp.float32) for _ in players),
    )


def node_bytes(game: packed_env.PackedEnv) -> int:
    """Returns the memory of one node."""
    return 8 * (1 + game.env.num_players * max(1, game.env.num_actions))


@functools.partial(jax.jit, static_argnames=("game", "steps"), donate_argnames="trees")
def search(
    game: packed_env.PackedEnv,
    trees: Trees,
    roots: packed_env.PackedState,
    key: jax.Array,
    iterations: jax.Array,
    exploration: jax.Array,
    *,
    steps: int,
) -> Trees:
    """Run iterations of every tree; tree k is rooted in game k. `trees` is donated.

    `exploration` is C, float32[P]. `steps` is the maximal length of a simulation in joint actions; longer ones have
    payoff 0.
    """

    def iterate(_: jax.Array, carry: tuple[Trees, rng.Streams]) -> tuple[Trees, rng.Streams]:
        trees, streams = carry
        descent = _descend(game, trees, roots, streams, exploration, steps)
        games, streams = rollouts.play_to_end(game, (descent.step, descent.games, descent.streams), steps)
        counts, totals = _back_up(trees, descent, jnp.where(games.terminated, games.payoff, 0))
        return Trees(descent.table, descent.num_nodes, counts, totals), streams

    start = (trees, rng.make_streams(key, 0, roots.batch))
    final: tuple[Trees, rng.Streams] = jax.lax.fori_loop(0, iterations, iterate, start)
    return final[0]


def root_statistics(
    game: packed_env.PackedEnv, trees: Trees, roots: packed_env.PackedState, *, player: int
) -> RootStatistics:
    """Returns a player's statistics at the roots; 0 where the root is not in the table."""
    statistics: RootStatistics = _root_statistics(game, trees, roots)[player]
    return statistics


@functools.partial(jax.jit, static_argnames="game")
def _root_statistics(
    game: packed_env.PackedEnv, trees: Trees, roots: packed_env.PackedState
) -> tuple[RootStatistics, ...]:
    """Returns the statistics of all players, so that one program serves all of them."""
    row = hash_table.lookup(trees.table, node_keys(game, roots))
    parts = zip(trees.counts, trees.totals, strict=True)
    return tuple(
        RootStatistics(*(jnp.where(row >= 0, table_rows.gather(part, row), 0) for part in player)) for player in parts
    )


def node_keys(game: packed_env.PackedEnv, games: packed_env.PackedState) -> tuple[jax.Array, jax.Array]:
    """Returns two words uint32[K]: the key of game k's state as a node of tree k."""
    tree = jnp.arange(games.batch, dtype=jnp.uint32)
    return info_key.extend_words(game.state_keys(games), (tree, tree ^ _SALT))


def _descend(
    game: packed_env.PackedEnv,
    trees: Trees,
    roots: packed_env.PackedState,
    streams: rng.Streams,
    exploration: jax.Array,
    steps: int,
) -> _Descent:
    """Run simulations until all have left their trees or terminated."""
    players, size = game.env.num_players, roots.batch

    def move(now: _Descent) -> _Descent:
        legal = now.games.legal
        streams, words = rng.draw_rows(now.streams, players + 1)
        draws = table_rows.uniform_from_bits(words)
        keys = node_keys(game, now.games)
        is_node = now.inside & (jnp.sum(legal, axis=1) > 1).any(axis=0)
        has_capacity = now.num_nodes + size < hash_table.MAX_LOAD_FACTOR * trees.table.high.shape[0]
        table, row, new = hash_table.insert(now.table, keys, is_node & has_capacity)
        known = is_node & (row >= 0) & (~new | (now.step == 0))  # the root counts as known at its first visit
        row = jnp.where(known, row, -1)
        chosen = _select_actions(trees, row, keys, legal, exploration)
        actions = []
        for player in range(players):
            random_action = table_rows.sample_actions(table_rows.uniform_policy(legal[player]), draws[player])
            actions.append(jnp.where(known, chosen[player], random_action))
        joint = jnp.stack(actions)
        return _Descent(
            step=now.step + 1,
            games=game.step(now.games, joint, draws[players]),
            streams=streams,
            inside=now.inside & (known | ~is_node),
            table=table,
            num_nodes=now.num_nodes + jnp.sum(new & is_node, dtype=jnp.int32),
            path=_Path(now.path.row.at[now.step].set(row), now.path.action.at[now.step].set(joint)),
        )

    def in_progress(now: _Descent) -> jax.Array:
        return (now.step < steps) & (now.inside & ~now.games.terminated).any()

    start = _Descent(
        step=jnp.zeros((), jnp.int32),
        games=roots,
        streams=streams,
        inside=jnp.ones(size, jnp.bool_),
        table=trees.table,
        num_nodes=trees.num_nodes,
        path=_Path(jnp.zeros((steps, size), jnp.int32), jnp.zeros((steps, players, size), jnp.int32)),
    )
    final: _Descent = jax.lax.while_loop(in_progress, move, start)
    return final


def _select_actions(
    trees: Trees, row: jax.Array, keys: tuple[jax.Array, jax.Array], legal: jax.Array, exploration: jax.Array
) -> jax.Array:
    """Returns the actions int32[P, K] of all players at these nodes; `legal` is bool[P, A, K]."""
    counts = [table_rows.gather(table, row) for table in trees.counts]
    visits = jnp.sum(counts[0], axis=0)
    joint, in_turn = uct_order.nth_joint_action(legal, visits, keys)
    logarithm = jnp.log(jnp.maximum(visits, 1).astype(jnp.float32))
    best = []
    for player, count in enumerate(counts):
        visits_of_action = jnp.maximum(count, 1).astype(jnp.float32)
        mean = table_rows.gather(trees.totals[player], row) / visits_of_action
        bound = mean + exploration[player] * jnp.sqrt(logarithm / visits_of_action)
        # Untried actions come first. There are some only where joint actions are too many to be enumerated.
        bound = jnp.where(count > 0, bound, jnp.inf)
        best.append(jnp.argmax(jnp.where(legal[player], bound, -jnp.inf), axis=0).astype(jnp.int32))
    return jnp.where(visits < joint, in_turn, jnp.stack(best))


def _back_up(trees: Trees, descent: _Descent, payoff: jax.Array) -> tuple[tuple[jax.Array, ...], tuple[jax.Array, ...]]:
    """Back up payoffs float32[P, K] along the paths; return the new counts and totals."""
    Tables = tuple[tuple[jax.Array, ...], tuple[jax.Array, ...]]

    def add_step(step: jax.Array, tables: Tables) -> Tables:
        row = descent.path.row[step]
        row = jnp.where(row >= 0, row, trees.counts[0].shape[0] - 1)
        after: tuple[list[jax.Array], list[jax.Array]] = ([], [])
        for player, (count, total) in enumerate(zip(*tables, strict=True)):
            at = (row, descent.path.action[step, player])
            after[0].append(count.at[at].add(1))
            after[1].append(total.at[at].add(payoff[player]))
        return tuple(after[0]), tuple(after[1])

    updated: Tables = jax.lax.fori_loop(0, descent.step, add_step, (trees.counts, trees.totals))
    return updated
