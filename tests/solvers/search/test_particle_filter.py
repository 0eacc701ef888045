"""Particle filters: beliefs and likelihoods against enumerated histories."""

import collections
import functools
import itertools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import gdlx
from gdlx.envs import env
from gdlx.envs.packed import packed_env
from gdlx.envs.trees import infoset_keys
from gdlx.solvers import tabular_policies
from gdlx.solvers.mccfr import table_policy
from gdlx.solvers.search import particle_filter
from gdlx.tests.helpers import samples

GROUPS, SIZE = 1_024, 64
# A turn-taking game, and one with simultaneous and partly hidden actions.
GAMES = ("kuhn_poker", pytest.param("simple_poker", marks=pytest.mark.slow))

Key = tuple[int, int]
Path = tuple[tuple[int, Key], ...]  # the player's action in every step, and its info key after it


class Known(NamedTuple):
    game: env.Env
    policies: table_policy.TablePolicy
    beliefs: dict[Path, dict[tuple[Key, ...], float]]  # weight of histories, by the info keys of all players


@functools.cache
def known(name: str, player: int) -> Known:
    """Returns random policies, and the weights of all histories under them."""
    game, tree = gdlx.make(name, track="info_key"), samples.load_tree(name)
    rng = np.random.default_rng(1)
    policies = tuple(
        tabular_policies.normalise(tree_player, rng.uniform(0.1, 1, tree_player.sequences))
        for tree_player in tree.players
    )
    chosen: dict[tuple[int, Key], dict[int, float]] = {}
    for number, tree_player in enumerate(tree.players):
        for decision, (high, low) in enumerate(
            infoset_keys.compute_infoset_keys(tree, number, game.num_actions).T.tolist()
        ):
            span = slice(tree_player.first[decision], tree_player.first[decision + 1])
            chosen[number, (high, low)] = dict(zip(tree_player.action[span], policies[number][span], strict=True))
    beliefs: dict[Path, dict[tuple[Key, ...], float]] = collections.defaultdict(lambda: collections.defaultdict(float))
    step = jax.jit(lambda state, joint, chance: game.step(state, joint, None, chance))

    def visit(state: env.State, path: Path, weight: float) -> None:
        keys = tuple((int(high), int(low)) for high, low in np.asarray(state.info_key))
        if path:
            beliefs[path][keys] += weight
        if bool(state.terminated):
            return
        legal = [np.flatnonzero(tree_player).tolist() for tree_player in np.asarray(state.legal_mask)]
        chance: list[int | None] = [*np.flatnonzero(np.asarray(state.chance_mask)).tolist()] or [None]
        for joint in itertools.product(*legal):
            part = weight / len(chance)
            for number, move in enumerate(joint):
                if number != player and len(legal[number]) > 1:
                    part *= chosen[number, keys[number]][move]
            for outcome in chance:
                after = step(state, jnp.array(joint, jnp.int32), None if outcome is None else jnp.int32(outcome))
                high, low = np.asarray(after.info_key[player]).tolist()
                visit(after, (*path, (joint[player], (high, low))), part)

    visit(game.init(), (), 1.0)
    return Known(game, table_policy.from_tabular(policies, game, tree), dict(beliefs))


@functools.lru_cache
def stepping(game: env.Env, player: int) -> tuple[packed_env.PackedEnv, Any]:
    lanes = packed_env.PackedEnv(game)
    return lanes, jax.jit(functools.partial(particle_filter.step, lanes, player=player))


def filtered(
    game_beliefs: Known, player: int, path: Path, groups: int = GROUPS, size: int = SIZE
) -> particle_filter.Particles:
    """Filter groups that all have the same observations."""
    lanes, step = stepping(game_beliefs.game, player)
    particles = particle_filter.start(lanes, groups, size)
    for number, (move, key) in enumerate(path):
        words = tuple(jnp.full(groups, word, jnp.uint32) for word in key)
        actions = jnp.full(groups, move, jnp.int32)
        particles, accepted = step(
            particles, game_beliefs.policies, jax.random.key(number), actions=actions, keys=words
        )
        assert accepted.shape == (groups,)
    return particles


def informative_paths(game_beliefs: Known) -> list[Path]:
    """Returns paths with histories of different weight, the longest first."""
    paths = [path for path, belief in game_beliefs.beliefs.items() if len({round(w, 9) for w in belief.values()}) > 1]
    return sorted(paths, key=lambda path: (len(path), len(game_beliefs.beliefs[path])), reverse=True)


@pytest.mark.parametrize("name", GAMES)
def test_beliefs_are_the_posterior(name: str) -> None:
    player = 1
    game_beliefs = known(name, player)
    for path in informative_paths(game_beliefs)[:2]:
        exact = game_beliefs.beliefs[path]
        total = sum(exact.values())
        particles = filtered(game_beliefs, player, path)
        # One game of each group: groups are independent, games of a group are not.
        high, low = (
            np.asarray(word)[: game_beliefs.game.num_players, ::SIZE].T.tolist() for word in particles.games.keys
        )
        info_keys = [tuple(zip(*pair, strict=True)) for pair in zip(high, low, strict=True)]
        counts = collections.Counter(info_keys)
        assert counts.keys() <= exact.keys()
        expected = [GROUPS * weight / total for weight in exact.values()]
        assert scipy.stats.chisquare([counts[keys] for keys in exact], expected).pvalue > 1e-4
        likelihood = np.exp(np.asarray(particles.log_likelihood, np.float64))
        error = likelihood.std() / np.sqrt(GROUPS)
        assert abs(likelihood.mean() - total) < 4 * error + 1e-6


def test_other_policies_give_other_beliefs() -> None:
    """This shows that the test above can fail."""
    game_beliefs = known("kuhn_poker", 1)
    path = informative_paths(game_beliefs)[0]
    uniform = game_beliefs._replace(
        policies=game_beliefs.policies._replace(
            cumulative_policy=jnp.ones_like(game_beliefs.policies.cumulative_policy)
        )
    )
    particles = filtered(uniform, 1, path)
    likelihood = np.exp(np.asarray(particles.log_likelihood, np.float64))
    assert abs(likelihood.mean() - sum(game_beliefs.beliefs[path].values())) > 8 * likelihood.std() / np.sqrt(GROUPS)


def test_groups_have_separate_paths() -> None:
    """Two halves of the groups have different actions and observations."""
    game_beliefs = known("kuhn_poker", 1)
    lanes, step = stepping(game_beliefs.game, 1)
    by_moves = {tuple(move for move, _ in path): path for path in informative_paths(game_beliefs)}
    length = max(
        len(moves) for moves in by_moves if sum(len(other_moves) == len(moves) for other_moves in by_moves) > 1
    )
    first, last, *_ = (path for path in by_moves.values() if len(path) == length)
    particles = particle_filter.start(lanes, GROUPS, SIZE)
    half = np.arange(GROUPS) < GROUPS // 2
    for number, ((move, key), (other_move, other_key)) in enumerate(zip(first, last, strict=True)):
        words = tuple(jnp.asarray(np.where(half, *pair), jnp.uint32) for pair in zip(key, other_key, strict=True))
        actions = jnp.asarray(np.where(half, move, other_move), jnp.int32)
        particles, _ = step(particles, game_beliefs.policies, jax.random.key(number), actions=actions, keys=words)
    likelihood = np.exp(np.asarray(particles.log_likelihood, np.float64))
    for part, path in ((half, first), (~half, last)):
        exact = sum(game_beliefs.beliefs[path].values())
        assert abs(likelihood[part].mean() - exact) < 4 * likelihood[part].std() / np.sqrt(part.sum()) + 1e-6


def test_no_game_is_consistent() -> None:
    game_beliefs = known("kuhn_poker", 1)
    (move, key), *rest = max(game_beliefs.beliefs, key=len)
    particles = filtered(game_beliefs, 1, ((move, (key[0] ^ 1, key[1])), *rest))
    assert np.isneginf(np.asarray(particles.log_likelihood)).all()
    assert particles.games.batch == GROUPS * SIZE


def test_copies_are_even() -> None:
    rng = np.random.default_rng(0)
    size = 48
    agrees = rng.random((64, size)) < rng.random((64, 1))
    agrees[:, 0] |= ~agrees.any(axis=1)
    agrees[0] = False
    agrees[1] = True
    agrees[2] = np.arange(size) == 7
    resample = jax.jit(particle_filter.resample_lanes)
    totals = np.zeros(agrees.shape)
    times = 200
    for _ in range(times):
        lanes = np.asarray(resample(agrees, *rng.random((2, 64), np.float32)))
        np.testing.assert_array_equal(lanes[0], np.arange(size))
        np.testing.assert_array_equal(np.sort(lanes[1]), np.arange(size) + size)
        for group in range(2, 64):
            counts = np.bincount(lanes[group] - group * size, minlength=size)
            copies = size / max(1, agrees[group].sum())
            assert (counts[~agrees[group]] == 0).all()
            assert (np.abs(counts[agrees[group]] - copies) < 1).all()
            totals[group] += counts
    means = size / agrees[2:].sum(axis=1, keepdims=True) * agrees[2:]
    assert np.abs(totals[2:] / times - means).max() < 5 * 0.5 / np.sqrt(times)


def test_wrong_sizes() -> None:
    lanes, _ = stepping(known("kuhn_poker", 1).game, 1)
    for size in (0, particle_filter.MAX_PARTICLES + 1):
        with pytest.raises(ValueError, match="`size=` must be 1 to"):
            particle_filter.start(lanes, 1, size)
