"""Average policies kept in a hash table: read off a state, at the sets of a tree, in files, and played."""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from gdlx.envs import env
from gdlx.envs.lowering import rng
from gdlx.envs.packed import packed_env
from gdlx.envs.trees import game_tree, infoset_keys
from gdlx.solvers import tabular_policies
from gdlx.solvers.exact import regret_matching
from gdlx.solvers.mccfr import hash_table, table_rows, table_state


class TablePolicy(NamedTuple):
    """Axes: C rows, A moves. Rows of sets that were never weighed are 0: there policies are uniform."""

    table: hash_table.Table
    cumulative_policy: jax.Array  # [C + 1, A] float32


TablePolicies = TablePolicy | Sequence[TablePolicy]  # everybody's, or one for each player


def uniform_table_policy(moves: int) -> TablePolicy:
    """Knows no set; `moves` is the number of moves of the player with the most."""
    with jax.enable_x64(False):
        return TablePolicy(hash_table.init(4), jnp.zeros((2**4 + 1, max(1, moves)), jnp.float32))


def player_policy(policies: TablePolicies, games: packed_env.PackedState, number: int) -> jax.Array:
    """float32[A, B] the policy of a player in every game; 0 where it has no move."""
    own = policies if isinstance(policies, TablePolicy) else policies[number]
    high, low = games.keys
    row = hash_table.lookup(own.table, table_rows.player_keys(high[number], low[number], number))
    return table_rows.proportional_policy(own.cumulative_policy, row, games.legal[number])


def all_player_policies(policies: TablePolicies, games: packed_env.PackedState) -> jax.Array:
    """float32[P, A, B] of all players; only those are looked up who have a choice in some game."""
    found = []
    for number, legal in enumerate(games.legal):
        found.append(
            jax.lax.cond(
                (jnp.sum(legal, axis=0) > 1).any(),
                functools.partial(player_policy, policies, games, number),
                functools.partial(table_rows.uniform_policy, legal),
            )
        )
    return jnp.stack(found)


def average_policy(state: table_state.TableState, settings: regret_matching.Settings) -> TablePolicy:
    with jax.enable_x64(False):
        return TablePolicy(state.table, _cumulative_policy(state.averages, settings, state.t))


@jax.jit
def _cumulative_policy(
    averages: table_state.AveragePolicies, settings: regret_matching.Settings, t: jax.Array
) -> jax.Array:
    """What all devices have summed up, as if they had been at all sets just now."""
    made = table_state.cumulative_discounts(settings, t // table_state.FOLD_INTERVAL * table_state.FOLD_INTERVAL)
    since = made.average[t % table_state.FOLD_INTERVAL] - made.average[averages.stamp]
    return jnp.sum(averages.cumulative_policy * jnp.exp(since)[..., None], axis=0)


_lookup = jax.jit(hash_table.lookup)


def to_tabular(policy: TablePolicy, game: env.Env, tree: game_tree.GameTree) -> tuple[tabular_policies.Policies, int]:
    """The policies at the information sets of a tree, and how many of those are in the table."""
    found, known = [], 0
    for number, player in enumerate(tree.players):
        with jax.enable_x64(False):
            row = np.asarray(_lookup(policy.table, _keys(game, tree, number)))
        known += int((row >= 0).sum())
        weight = np.asarray(
            policy.cumulative_policy[np.where(row >= 0, row, len(policy.cumulative_policy) - 1)], np.float64
        )
        weight[row < 0] = 0  # the last row is everybody's scratch
        found.append(tabular_policies.normalise(player, np.concatenate([[1.0], weight[_places(player)]])))
    return tuple(found), known


def from_tabular(policies: tabular_policies.Policies, game: env.Env, tree: game_tree.GameTree) -> TablePolicy:
    """The inverse: policies at the information sets of a tree as a table, for what plays without the tree."""
    keys, probability = [], []
    for number, (player, policy) in enumerate(zip(tree.players, policies, strict=True)):
        with jax.enable_x64(False):
            keys.append(np.stack([np.asarray(word) for word in _keys(game, tree, number)]))
        own = np.zeros((player.sets, max(1, game.num_actions)), np.float32)
        own[_places(player)] = policy[1:]
        probability.append(own)
    return from_arrays(np.concatenate(keys, axis=1), np.concatenate(probability))


def _keys(game: env.Env, tree: game_tree.GameTree, number: int) -> tuple[jax.Array, jax.Array]:
    """Under which the sets of a player of a tree are in tables."""
    high, low = infoset_keys.compute_infoset_keys(tree, number, game.num_actions)
    return table_rows.player_keys(jnp.asarray(high), jnp.asarray(low), number)


def _places(player: game_tree.Player) -> tuple[npt.NDArray[np.int64], game_tree.Ints]:
    """Sets and moves of all options but the empty sequence."""
    return np.repeat(np.arange(player.sets), np.diff(player.first)), player.action[1:]


def to_arrays(policy: TablePolicy) -> list[npt.NDArray[Any]]:
    """Keys [2, N] and probabilities [N, A] of the sets that were weighed."""
    high, low, weight = (np.asarray(part) for part in (*policy.table, policy.cumulative_policy[:-1]))
    total = weight.sum(axis=1)
    used = np.flatnonzero(((high | low) != 0) & (total > 0))
    return [np.stack([high[used], low[used]]), weight[used] / total[used, None]]


def from_arrays(keys: npt.NDArray[np.uint32], probability: npt.NDArray[np.float32]) -> TablePolicy:
    with jax.enable_x64(False):
        return _inserted(keys, probability)


def _inserted(keys: npt.NDArray[np.uint32], probability: npt.NDArray[np.float32]) -> TablePolicy:
    bits = max(4, (2 * keys.shape[1]).bit_length())
    table, row, _ = hash_table.insert(hash_table.init(bits), jnp.asarray(keys), jnp.ones(keys.shape[1], jnp.bool_))
    weight = jnp.zeros((2**bits + 1, probability.shape[1]), jnp.float32)
    return TablePolicy(table, weight.at[row].set(probability))


class MatchScores(NamedTuple):
    """Of matches. Axes: P players."""

    mean: tuple[float, ...]  # payoffs
    error: tuple[float, ...]  # standard errors of the means
    unfinished: int


class MatchOutcomes(NamedTuple):
    """Matches where they stopped. Axes: P players, B matches."""

    payoff: jax.Array  # [P, B] float32; 0 where unplayable or not ended
    length: jax.Array  # [B] int32, joint moves
    ended: jax.Array  # [B] bool
    unplayable: jax.Array  # [B] bool
    goal_conflict: jax.Array  # [B] bool


def score_matches(
    game: packed_env.PackedEnv, policies: TablePolicies, key: jax.Array, *, matches: int, steps: int
) -> MatchScores:
    """Let everybody play its policy."""
    found = play_matches(game, policies, key, matches=matches, steps=steps)
    payoff = np.asarray(found.payoff, np.float64)
    error = payoff.std(axis=1) / np.sqrt(matches)
    return MatchScores(
        tuple(payoff.mean(axis=1).tolist()), tuple(error.tolist()), int((~np.asarray(found.ended)).sum())
    )


def play_matches(
    game: packed_env.PackedEnv, policies: TablePolicies, key: jax.Array, *, matches: int, steps: int, first: int = 0
) -> MatchOutcomes:
    """Matches number first, first + 1, ..: what happens in one does not depend on how many are played at once."""
    with jax.enable_x64(False):
        found: MatchOutcomes = _play_matches(game, policies, key, first, matches=matches, steps=steps)
    return found


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

    def goes_on(now: _Playing) -> jax.Array:
        return (now.step < steps) & ~now.games.terminated.all()

    nothing = jnp.zeros(matches, jnp.int32)
    start = _Playing(jnp.zeros((), jnp.int32), nothing, game.start(matches), rng.make_streams(key, first, matches))
    done = jax.lax.while_loop(goes_on, move, start)
    games = done.games
    return MatchOutcomes(games.payoff, done.length, games.terminated, games.unplayable, games.goal_conflict)
