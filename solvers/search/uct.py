"""UCT for simultaneous moves, many trees in lockstep: Algorithm 1 of Shafiei Khadem (2010).

M. Shafiei Khadem, Simultaneous Move Games in General Game Playing, University of Alberta 2010.

One iteration of a tree is one match from its root. At a node of n earlier visits with J joint moves of the players,

    n < J:   the n-th joint move in a pseudo-random order, so that each is made once before any is preferred;
    else:    each player p takes the move a that maximises  Q_p(a) + C_p sqrt(ln n / n_p(a)),

where n_p(a) counts how often p took a here and Q_p(a) is its mean payoff then. Statistics are everybody's own, of its
own moves ("decoupled"), and everybody explores. Where one player alone has a choice this is UCT as usual. The first
state that is not in the tree is added to it; from there on everybody plays at random, and chance is drawn everywhere.
States in which nobody has a choice are no nodes.

A node is a state of the game, however it was reached, so that trees are graphs: it is found in a hash table by a hash
of the tree's number and the state's bits. A table that is full takes no more nodes; the rest goes on.

Trees find equilibria in games of perfect information with alternating moves. Where moves are simultaneous, visits may
settle far from any (docs/search.md).
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
    """Axes: R rows of nodes, the last one for none; A moves; P players."""

    table: hash_table.Table
    num_nodes: jax.Array  # [] int32, nodes
    counts: tuple[jax.Array, ...]  # P x [R, A] int32, n_p(a)
    totals: tuple[jax.Array, ...]  # P x [R, A] float32, n_p(a) Q_p(a)


class RootStatistics(NamedTuple):
    """Statistics at the roots of trees, of one player. Axes: A moves, K trees."""

    counts: jax.Array  # [A, K] int32
    totals: jax.Array  # [A, K] float32


class _Path(NamedTuple):
    """Axes: T steps, P players, K trees."""

    row: jax.Array  # [T, K] int32, -1 where there is no node
    action: jax.Array  # [T, P, K] int32


class _Descent(NamedTuple):
    step: jax.Array  # [] int32
    games: packed_env.PackedState
    streams: rng.Streams
    inside: jax.Array  # [K] bool, all states so far are in the tree
    table: hash_table.Table
    num_nodes: jax.Array
    path: _Path


def init(game: packed_env.PackedEnv, bits: int) -> Trees:
    """2^bits nodes have room, in all trees together."""
    players, shape = range(game.env.num_players), (2**bits + 1, max(1, game.env.num_actions))
    return Trees(
        hash_table.init(bits),
        jnp.zeros((), jnp.int32),
        tuple(jnp.zeros(shape, jnp.int32) for _ in players),
        tuple(jnp.zeros(shape, jnp.float32) for _ in players),
    )


def node_bytes(game: packed_env.PackedEnv) -> int:
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
    """So many iterations of every tree; tree k is rooted in game k. `exploration` is C, float32[P].

    `steps` is the room for joint moves of a match; one that is longer counts as payoff 0.
    """

    def iterate(_: jax.Array, carry: tuple[Trees, rng.Streams]) -> tuple[Trees, rng.Streams]:
        trees, streams = carry
        down = _descend(game, trees, roots, streams, exploration, steps)
        games, streams = rollouts.play_to_end(game, (down.step, down.games, down.streams), steps)
        counts, totals = _updated(trees, down, jnp.where(games.terminated, games.payoff, 0))
        return Trees(down.table, down.num_nodes, counts, totals), streams

    start = (trees, rng.make_streams(key, 0, roots.batch))
    found: tuple[Trees, rng.Streams] = jax.lax.fori_loop(0, iterations, iterate, start)
    return found[0]


@functools.partial(jax.jit, static_argnames=("game", "player"))
def root_statistics(
    game: packed_env.PackedEnv, trees: Trees, roots: packed_env.PackedState, *, player: int
) -> RootStatistics:
    row = hash_table.lookup(trees.table, node_keys(game, roots))
    found = (table_rows.gather(part[player], row) for part in (trees.counts, trees.totals))
    return RootStatistics(*(jnp.where(row >= 0, part, 0) for part in found))


def node_keys(game: packed_env.PackedEnv, games: packed_env.PackedState) -> tuple[jax.Array, jax.Array]:
    """uint32[K] twice: of the state of game k as a node of tree k."""
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
    """Matches until all have left their trees, or ended."""
    players, size = game.env.num_players, roots.batch

    def move(now: _Descent) -> _Descent:
        legal = now.games.legal
        streams, words = rng.draw_rows(now.streams, players + 1)
        draws = table_rows.uniform_from_bits(words)
        keys = node_keys(game, now.games)
        is_node = now.inside & (jnp.sum(legal, axis=1) > 1).any(axis=0)
        has_room = now.num_nodes + size < hash_table.MAX_LOAD_FACTOR * trees.table.high.shape[0]
        table, row, new = hash_table.insert(now.table, keys, is_node & has_room)
        known = is_node & (row >= 0) & (~new | (now.step == 0))  # the root is in its tree from the beginning
        row = jnp.where(known, row, -1)
        chosen = _chosen(trees, row, keys, legal, exploration)
        actions = []
        for player in range(players):
            at_random = table_rows.sample_actions(table_rows.uniform_policy(legal[player]), draws[player])
            actions.append(jnp.where(known, chosen[player], at_random))
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

    def goes_on(now: _Descent) -> jax.Array:
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
    found: _Descent = jax.lax.while_loop(goes_on, move, start)
    return found


def _chosen(
    trees: Trees, row: jax.Array, keys: tuple[jax.Array, jax.Array], legal: jax.Array, exploration: jax.Array
) -> jax.Array:
    """int32[P, K] what the players do at these nodes: bool[P, A, K] are their legal moves."""
    counts = [table_rows.gather(own, row) for own in trees.counts]
    visits = jnp.sum(counts[0], axis=0)
    joint, in_turn = uct_order.nth_joint_action(legal, visits, keys)
    logarithm = jnp.log(jnp.maximum(visits, 1).astype(jnp.float32))
    best = []
    for player, count in enumerate(counts):
        often = jnp.maximum(count, 1).astype(jnp.float32)
        mean = table_rows.gather(trees.totals[player], row) / often
        bound = mean + exploration[player] * jnp.sqrt(logarithm / often)
        # A move that was never made comes first. There is one only where joint moves are too many to be made in turn.
        bound = jnp.where(count > 0, bound, jnp.inf)
        best.append(jnp.argmax(jnp.where(legal[player], bound, -jnp.inf), axis=0).astype(jnp.int32))
    return jnp.where(visits < joint, in_turn, jnp.stack(best))


def _updated(trees: Trees, down: _Descent, payoff: jax.Array) -> tuple[tuple[jax.Array, ...], tuple[jax.Array, ...]]:
    """Counts and totals with what all nodes of the paths have learnt: float32[P, K] payoffs."""
    Tables = tuple[tuple[jax.Array, ...], tuple[jax.Array, ...]]

    def learn(step: jax.Array, tables: Tables) -> Tables:
        row = down.path.row[step]
        row = jnp.where(row >= 0, row, trees.counts[0].shape[0] - 1)
        after: tuple[list[jax.Array], list[jax.Array]] = ([], [])
        for player, (count, total) in enumerate(zip(*tables, strict=True)):
            at = (row, down.path.action[step, player])
            after[0].append(count.at[at].add(1))
            after[1].append(total.at[at].add(payoff[player]))
        return tuple(after[0]), tuple(after[1])

    found: Tables = jax.lax.fori_loop(0, down.step, learn, (trees.counts, trees.totals))
    return found
