"""Particle filters: beliefs and evidence against enumerated histories."""

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
# A turn-taking game, and one with simultaneous choices of which not all is seen.
GAMES = ("kuhn_poker", pytest.param("simple_poker", marks=pytest.mark.slow))

Key = tuple[int, int]
Path = tuple[tuple[int, Key], ...]  # the player's move of every step, and its info key after it


class Known(NamedTuple):
    game: env.Env
    policies: table_policy.TablePolicy
    beliefs: dict[Path, dict[tuple[Key, ...], float]]  # weight of histories, by what everybody knows


@functools.cache
def known(name: str, player: int) -> Known:
    """Random policies, and all histories under them."""
    game, tree = gdlx.make(name), samples.load_tree(name)
    rng = np.random.default_rng(1)
    policies = tuple(tabular_policies.normalise(own, rng.uniform(0.1, 1, own.sequences)) for own in tree.players)
    chosen: dict[tuple[int, Key], dict[int, float]] = {}
    for number, own in enumerate(tree.players):
        for decision, (high, low) in enumerate(
            infoset_keys.compute_infoset_keys(tree, number, game.num_actions).T.tolist()
        ):
            span = slice(own.first[decision], own.first[decision + 1])
            chosen[number, (high, low)] = dict(zip(own.action[span], policies[number][span], strict=True))
    beliefs: dict[Path, dict[tuple[Key, ...], float]] = collections.defaultdict(lambda: collections.defaultdict(float))
    step = jax.jit(lambda state, joint, chance: game.step(state, joint, None, chance))

    def walk_on(state: env.State, path: Path, weight: float) -> None:
        keys = tuple((int(high), int(low)) for high, low in np.asarray(state.info_key))
        if path:
            beliefs[path][keys] += weight
        if bool(state.terminated):
            return
        legal = [np.flatnonzero(own).tolist() for own in np.asarray(state.legal_mask)]
        chance: list[int | None] = [*np.flatnonzero(np.asarray(state.chance_mask)).tolist()] or [None]
        for joint in itertools.product(*legal):
            part = weight / len(chance)
            for number, move in enumerate(joint):
                if number != player and len(legal[number]) > 1:
                    part *= chosen[number, keys[number]][move]
            for outcome in chance:
                after = step(state, jnp.array(joint, jnp.int32), None if outcome is None else jnp.int32(outcome))
                high, low = np.asarray(after.info_key[player]).tolist()
                walk_on(after, (*path, (joint[player], (high, low))), part)

    walk_on(game.init(), (), 1.0)
    return Known(game, table_policy.from_tabular(policies, game, tree), dict(beliefs))


@functools.lru_cache
def stepping(game: env.Env, player: int) -> tuple[packed_env.PackedEnv, Any]:
    lanes = packed_env.PackedEnv(game)
    return lanes, jax.jit(functools.partial(particle_filter.step, lanes, player=player))


def filtered(
    found: Known, player: int, path: Path, groups: int = GROUPS, size: int = SIZE
) -> particle_filter.Particles:
    """Groups that all have seen the same."""
    lanes, step = stepping(found.game, player)
    now = particle_filter.start(lanes, groups, size)
    for number, (move, key) in enumerate(path):
        words = tuple(jnp.full(groups, word, jnp.uint32) for word in key)
        actions = jnp.full(groups, move, jnp.int32)
        now, accepted = step(now, found.policies, jax.random.key(number), actions=actions, keys=words)
        assert accepted.shape == (groups,)
    return now


def telling(found: Known) -> list[Path]:
    """Paths with something to tell apart, the longest first."""
    paths = [path for path, belief in found.beliefs.items() if len({round(w, 9) for w in belief.values()}) > 1]
    return sorted(paths, key=lambda path: (len(path), len(found.beliefs[path])), reverse=True)


@pytest.mark.parametrize("name", GAMES)
def test_beliefs_are_the_posterior(name: str) -> None:
    player = 1
    found = known(name, player)
    for path in telling(found)[:2]:
        exact = found.beliefs[path]
        total = sum(exact.values())
        now = filtered(found, player, path)
        # One game of each group: groups are independent, games of a group are not.
        high, low = (np.asarray(word)[: found.game.num_players, ::SIZE].T.tolist() for word in now.games.keys)
        told = [tuple(zip(*pair, strict=True)) for pair in zip(high, low, strict=True)]
        counts = collections.Counter(told)
        assert counts.keys() <= exact.keys()
        expected = [GROUPS * weight / total for weight in exact.values()]
        assert scipy.stats.chisquare([counts[keys] for keys in exact], expected).pvalue > 1e-4
        evidence = np.exp(np.asarray(now.log_likelihood, np.float64))
        error = evidence.std() / np.sqrt(GROUPS)
        assert abs(evidence.mean() - total) < 4 * error + 1e-6


def test_other_policies_give_other_beliefs() -> None:
    """So that the test above can fail."""
    found = known("kuhn_poker", 1)
    path = telling(found)[0]
    uniform = found._replace(
        policies=found.policies._replace(cumulative_policy=jnp.ones_like(found.policies.cumulative_policy))
    )
    now = filtered(uniform, 1, path)
    evidence = np.exp(np.asarray(now.log_likelihood, np.float64))
    assert abs(evidence.mean() - sum(found.beliefs[path].values())) > 8 * evidence.std() / np.sqrt(GROUPS)


def test_groups_have_their_own_path() -> None:
    """Two halves of the groups make different moves and see different things."""
    found = known("kuhn_poker", 1)
    lanes, step = stepping(found.game, 1)
    by_moves = {tuple(move for move, _ in path): path for path in telling(found)}
    length = max(len(moves) for moves in by_moves if sum(len(own) == len(moves) for own in by_moves) > 1)
    first, last, *_ = (path for path in by_moves.values() if len(path) == length)
    now = particle_filter.start(lanes, GROUPS, SIZE)
    half = np.arange(GROUPS) < GROUPS // 2
    for number, ((move, key), (other_move, other_key)) in enumerate(zip(first, last, strict=True)):
        words = tuple(jnp.asarray(np.where(half, *pair), jnp.uint32) for pair in zip(key, other_key, strict=True))
        actions = jnp.asarray(np.where(half, move, other_move), jnp.int32)
        now, _ = step(now, found.policies, jax.random.key(number), actions=actions, keys=words)
    evidence = np.exp(np.asarray(now.log_likelihood, np.float64))
    for part, path in ((half, first), (~half, last)):
        exact = sum(found.beliefs[path].values())
        assert abs(evidence[part].mean() - exact) < 4 * evidence[part].std() / np.sqrt(part.sum()) + 1e-6


def test_nothing_agrees() -> None:
    found = known("kuhn_poker", 1)
    (move, key), *rest = max(found.beliefs, key=len)
    lost = filtered(found, 1, ((move, (key[0] ^ 1, key[1])), *rest))
    assert np.isneginf(np.asarray(lost.log_likelihood)).all()
    assert lost.games.batch == GROUPS * SIZE


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
        with pytest.raises(ValueError, match="a group has 1 to"):
            particle_filter.start(lanes, 1, size)
