"""Average policies in a hash table: read from a solver state, converted to and from tabular policies, and played."""

import functools
import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from gdlx.envs import env
from gdlx.envs.lowering import rng
from gdlx.envs.packed import packed_env
from gdlx.envs.states import state_graph, state_labels
from gdlx.envs.trees import game_tree, infoset_keys
from gdlx.envs.views import info_key
from gdlx.solvers import tabular_policies
from gdlx.solvers.exact import regret_matching
from gdlx.solvers.mccfr import hash_table, table_rows, table_state

_FIRST_SALT = 100  # of the hashes of states


class TablePolicy(NamedTuple):
    """A policy by information set key, or by the state in games of states. Axes: C rows, A actions, R registers.

    Information sets without weight, or not in the table, have a uniform policy.
    """

    table: hash_table.Table
    cumulative_policy: jax.Array  # [C + 1, A] float32
    state_constants: jax.Array | None = None  # [R, 2] uint32: keys are hashes of the registers; None: of histories


TablePolicies = TablePolicy | Sequence[TablePolicy]  # one for all players, or one for each


def uniform_table_policy(moves: int) -> TablePolicy:
    """Returns a policy without entries, uniform everywhere; `moves` is the largest number of actions of a player."""
    with jax.enable_x64(False):
        return TablePolicy(hash_table.init(4), jnp.zeros((2**4 + 1, max(1, moves)), jnp.float32))


def player_policy(policies: TablePolicies, games: packed_env.PackedState, number: int) -> jax.Array:
    """Returns a player's policy float32[A, B] in every game; 0 where it has no legal action."""
    policy = policies if isinstance(policies, TablePolicy) else policies[number]
    if policy.state_constants is None:
        high, low = (key[number] for key in games.keys)
    else:
        high, low = packed_env.register_keys(games, policy.state_constants)
    row = hash_table.lookup(policy.table, table_rows.player_keys(high, low, number))
    return table_rows.proportional_policy(policy.cumulative_policy, row, games.legal[number])


def all_player_policies(policies: TablePolicies, games: packed_env.PackedState) -> jax.Array:
    """Returns the policies float32[P, A, B] of all players; looks up only those who have a choice in some game."""
    policies_by_player = []
    for number, legal in enumerate(games.legal):
        policies_by_player.append(
            jax.lax.cond(
                (jnp.sum(legal, axis=0) > 1).any(),
                functools.partial(player_policy, policies, games, number),
                functools.partial(table_rows.uniform_policy, legal),
            )
        )
    return jnp.stack(policies_by_player)


def average_policy(state: table_state.TableState, settings: regret_matching.Settings) -> TablePolicy:
    """Returns the average policy of a solver state."""
    with jax.enable_x64(False):
        return TablePolicy(state.table, _cumulative_policy(state.averages, settings, state.t))


@jax.jit
def _cumulative_policy(
    averages: table_state.AveragePolicies, settings: regret_matching.Settings, t: jax.Array
) -> jax.Array:
    """Sum over all devices, with pending discounts applied."""
    discounts = table_state.cumulative_discounts(settings, t // table_state.FOLD_INTERVAL * table_state.FOLD_INTERVAL)
    pending = discounts.average[t % table_state.FOLD_INTERVAL] - discounts.average[averages.stamp]
    return jnp.sum(averages.cumulative_policy * jnp.exp(pending)[..., None], axis=0)


_lookup = jax.jit(hash_table.lookup)


def to_tabular(policy: TablePolicy, game: env.Env, tree: game_tree.GameTree) -> tuple[tabular_policies.Policies, int]:
    """Returns the policies at the information sets of a tree, and how many of these are in the table."""
    policies, num_known = [], 0
    for number, player in enumerate(tree.players):
        with jax.enable_x64(False):
            row = np.asarray(_lookup(policy.table, _keys(game, tree, number)))
        num_known += int((row >= 0).sum())
        weight = np.asarray(
            policy.cumulative_policy[np.where(row >= 0, row, len(policy.cumulative_policy) - 1)], np.float64
        )
        weight[row < 0] = 0  # the last row is scratch
        policies.append(
            tabular_policies.normalise(player, np.concatenate([[1.0], weight[_infosets_and_actions(player)]]))
        )
    return tuple(policies), num_known


def find_missing(policy: TablePolicy, game: env.Env, tree: game_tree.GameTree) -> tuple[npt.NDArray[np.int64], ...]:
    """Returns the information sets of each player that are not in the table, or have no weight there."""
    has_weight = np.asarray((policy.cumulative_policy > 0).any(axis=1))
    missing = []
    for number in range(len(tree.players)):
        with jax.enable_x64(False):
            row = np.asarray(_lookup(policy.table, _keys(game, tree, number)))
        missing.append(np.flatnonzero((row < 0) | ~has_weight[row]))
    return tuple(missing)


def from_tabular(policies: tabular_policies.Policies, game: env.Env, tree: game_tree.GameTree) -> TablePolicy:
    """Converts policies at the information sets of a tree to a table, for play without the tree."""
    return from_arrays(*tabular_rows(policies, game, tree))


def tabular_rows(
    policies: tabular_policies.Policies, game: env.Env, tree: game_tree.GameTree
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.float32]]:
    """Returns the keys [2, N] of all information sets of a tree, and the probabilities [N, A] of their actions."""
    keys, probability = [], []
    for number, (player, policy) in enumerate(zip(tree.players, policies, strict=True)):
        with jax.enable_x64(False):
            keys.append(np.stack([np.asarray(word) for word in _keys(game, tree, number)]))
        table = np.zeros((player.sets, max(1, game.num_actions)), np.float32)
        table[_infosets_and_actions(player)] = policy[1:]
        probability.append(table)
    return np.concatenate(keys, axis=1), np.concatenate(probability)


def from_states(policies: tabular_policies.Policies, graph: state_graph.StateGraph, game: env.Env) -> TablePolicy:
    """Converts policies of a graph of states to a table by state, for play without the graph."""
    registers = state_labels.unpack_columns(graph.words, len(game.propnet.initial))
    constants = _distinct_constants(registers)
    hashes = _sum_constants(registers, constants)
    keys, probability = [], []
    for number, (player, policy) in enumerate(zip(graph.players, policies, strict=True)):
        high, low = hashes[:, player.view]
        keys.append(np.stack([high ^ table_rows.player_salt(number), low]))
        table = np.zeros((player.sets, max(1, game.num_actions)), np.float32)
        table[_infosets_and_actions(player)] = policy[1:]
        probability.append(table)
    by_state = from_arrays(np.concatenate(keys, axis=1), np.concatenate(probability))
    with jax.enable_x64(False):
        return by_state._replace(state_constants=jnp.asarray(constants))


def _distinct_constants(registers: npt.NDArray[np.bool_]) -> info_key.HashConstants:
    """Constants for which no two states [R, S] have the same key."""
    for salt in itertools.count(_FIRST_SALT):
        constants = info_key.hash_constants(len(registers), salt)
        high, low = _sum_constants(registers, constants).astype(np.uint64)
        if len(np.unique(high << np.uint64(32) | low)) == registers.shape[1]:
            return constants
    raise AssertionError("unreachable")


def _sum_constants(registers: npt.NDArray[np.bool_], constants: info_key.HashConstants) -> npt.NDArray[np.uint32]:
    """[2, S] the keys of states [R, S], as `packed_env.register_keys` computes them."""
    total = np.zeros((2, registers.shape[1]), np.uint32)
    for row, constant in zip(registers, constants, strict=True):
        total += row * constant[:, None]
    return total


def state_key(registers: npt.NDArray[np.bool_], constants: info_key.HashConstants) -> tuple[int, int]:
    """The key of one state [R]."""
    high, low = _sum_constants(registers[:, None], constants)[:, 0].tolist()
    return high, low


def _keys(game: env.Env, tree: game_tree.GameTree, number: int) -> tuple[jax.Array, jax.Array]:
    """Returns the table keys of a player's information sets."""
    high, low = infoset_keys.compute_infoset_keys(tree, number, game.num_actions)
    return table_rows.player_keys(jnp.asarray(high), jnp.asarray(low), number)


def _infosets_and_actions(player: game_tree.Player) -> tuple[npt.NDArray[np.int64], game_tree.Ints]:
    """Returns the information set and the action of every sequence but the empty one."""
    return np.repeat(np.arange(player.sets), np.diff(player.first)), player.action[1:]


def to_arrays(policy: TablePolicy) -> list[npt.NDArray[Any]]:
    """Returns the keys [2, N] and probabilities [N, A] of all information sets with weight."""
    high, low, weight = (np.asarray(part) for part in (*policy.table, policy.cumulative_policy[:-1]))
    total = weight.sum(axis=1)
    used = np.flatnonzero(((high | low) != 0) & (total > 0))
    return [np.stack([high[used], low[used]]), weight[used] / total[used, None]]


def from_arrays(keys: npt.NDArray[np.uint32], probability: npt.NDArray[np.float32]) -> TablePolicy:
    """Builds a policy from keys [2, N] and probabilities [N, A]. Inverts `to_arrays`."""
    with jax.enable_x64(False):
        return _insert(keys, probability)


def _insert(keys: npt.NDArray[np.uint32], probability: npt.NDArray[np.float32]) -> TablePolicy:
    bits = max(4, (2 * keys.shape[1]).bit_length())
    table, row, _ = hash_table.insert(hash_table.init(bits), jnp.asarray(keys), jnp.ones(keys.shape[1], jnp.bool_))
    weight = jnp.zeros((2**bits + 1, probability.shape[1]), jnp.float32)
    return TablePolicy(table, weight.at[row].set(probability))


class MatchScores(NamedTuple):
    """Summary of matches. Axes: P players."""

    mean: tuple[float, ...]  # mean payoffs
    error: tuple[float, ...]  # standard errors of the means
    unfinished: int


class MatchOutcomes(NamedTuple):
    """Final states of matches. Axes: P players, B matches."""

    payoff: jax.Array  # [P, B] float32; 0 where unplayable or unfinished
    length: jax.Array  # [B] int32, joint actions
    ended: jax.Array  # [B] bool
    unplayable: jax.Array  # [B] bool
    goal_conflict: jax.Array  # [B] bool


def score_matches(
    game: packed_env.PackedEnv, policies: TablePolicies, key: jax.Array, *, matches: int, steps: int
) -> MatchScores:
    """Play matches between the policies, and return mean payoffs with standard errors."""
    outcomes = play_matches(game, policies, key, matches=matches, steps=steps)
    payoff = np.asarray(outcomes.payoff, np.float64)
    error = payoff.std(axis=1) / np.sqrt(matches)
    return MatchScores(
        tuple(payoff.mean(axis=1).tolist()), tuple(error.tolist()), int((~np.asarray(outcomes.ended)).sum())
    )


def play_matches(
    game: packed_env.PackedEnv, policies: TablePolicies, key: jax.Array, *, matches: int, steps: int, first: int = 0
) -> MatchOutcomes:
    """Play matches number first, first + 1, ..; the outcome of one does not depend on how many are played at once."""
    with jax.enable_x64(False):
        outcomes: MatchOutcomes = _play_matches(game, policies, key, first, matches=matches, steps=steps)
    return outcomes


class _Playing(NamedTuple):
    step: jax.Array  # [] int32
    length: jax.Array  # [B] int32
    games: packed_env.PackedState
    streams: rng.Streams


@functools.partial(jax.jit, static_argnames=("game", "matches", "steps"))
def _play_matches(
    game: packed_env.PackedEnv,
    policies: TablePolicies,
    key: jax.Array,
    first: jax.Array | int,
    *,
    matches: int,
    steps: int,
) -> MatchOutcomes:
    players = game.env.num_players

    def move(now: _Playing) -> _Playing:
        streams, words = rng.draw_rows(now.streams, players + 1)
        draws = table_rows.uniform_from_bits(words)
        actions = [
            table_rows.sample_actions(player_policy(policies, now.games, number), draws[number])
            for number in range(players)
        ]
        after = game.step(now.games, jnp.stack(actions), draws[players])
        return _Playing(now.step + 1, now.length + ~now.games.terminated, after, streams)

    def in_progress(now: _Playing) -> jax.Array:
        return (now.step < steps) & ~now.games.terminated.all()

    zeros = jnp.zeros(matches, jnp.int32)
    start = _Playing(jnp.zeros((), jnp.int32), zeros, game.start(matches), rng.make_streams(key, first, matches))
    final = jax.lax.while_loop(in_progress, move, start)
    games = final.games
    return MatchOutcomes(games.payoff, final.length, games.terminated, games.unplayable, games.goal_conflict)
