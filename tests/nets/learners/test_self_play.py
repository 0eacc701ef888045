"""Self-play: searches against exact values, returns against a loop, learning, devices, and what goes wrong."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from gdlx.envs.views import observation_window
from gdlx.nets import evaluation, vectorised_play
from gdlx.nets.learners import self_play
from gdlx.nets.models import encoders, networks
from gdlx.solvers import tasks
from gdlx.solvers.mccfr import table_policy
from gdlx.tests.helpers import players, samples

_SMALL: dict[str, Any] = {"games": 32, "steps": 4, "capacity": 1_024, "batch": 64, "updates": 2, "widths": (16, 16)}


@functools.cache
def learner_of(game: str, **changes: Any) -> self_play.SelfPlay:
    env = players.load_arena(game).env
    return self_play.make(encoders.Encoder(env, 6), self_play.Settings(**(_SMALL | changes)))


def searched(learner: self_play.SelfPlay, game: self_play.SelfPlayGames, key: int) -> Any:
    """[P, A] of one game, while all networks are new: policies are uniform and values 0."""
    state = learner.init(jax.random.key(0))
    one = jax.tree.map(lambda x: x[None], game)
    policy = learner._policy(state.parameters, one)
    return np.asarray(learner._search(state.parameters, one, policy, jax.random.key(key)))[0] * learner.scale


def test_search_to_the_end_tells_the_values_of_uniform_play() -> None:
    learner = learner_of("kuhn_poker", depth=5, draws=2_000)
    env = learner.encoder.env
    start = env.init()
    after = env.step(start, jnp.argmax(start.legal_mask, axis=1), jax.random.key(1))
    windows = learner.encoder.window(start)
    game = self_play.SelfPlayGames(after, observation_window.update(windows, after), jnp.zeros(2, jnp.bool_))
    found = searched(learner, game, 0)
    for player in range(env.num_players):
        for move in np.flatnonzero(np.asarray(after.legal_mask[player])):
            exact = _uniform_value(env, after, player, {player: int(move)})
            assert found[player, move] == pytest.approx(exact, abs=0.12), (player, move)


def _uniform_value(env: Any, state: Any, player: int, given: dict[int, int]) -> float:
    """By walking through everything that can happen."""
    if bool(state.terminated):
        return float(state.rewards[player])
    options = [
        [given[n]] if n in given else np.flatnonzero(np.asarray(state.legal_mask[n])).tolist()
        for n in range(env.num_players)
    ]
    chances = np.flatnonzero(np.asarray(state.chance_mask)).tolist()
    found = [
        _uniform_value(env, _stepper(env)(state, jnp.array((a, b), jnp.int32), jnp.int32(c)), player, {})
        for a in options[0]
        for b in options[1]
        for c in chances
    ]
    return float(np.mean(found))


@functools.cache
def _stepper(env: Any) -> Any:
    return jax.jit(lambda state, actions, chance: env.step(state, actions, None, chance))


def test_returns_are_those_of_a_loop() -> None:
    learner = learner_of("kuhn_poker")
    rng = np.random.default_rng(0)
    steps, games, count = 5, 3, 2
    value, reward, guess = (rng.normal(size=(steps, games, count)) for _ in range(3))
    ended, trust = rng.random((steps, games)) < 0.4, rng.random((steps, games))
    seen = self_play._Step(*map(jnp.asarray, (reward, guess, ended, trust)))
    found = np.asarray(learner._returns(jnp.asarray(value), seen))
    for game in range(games):
        later = guess[-1, game]
        for step in reversed(range(steps)):
            surprise = 0.0 if ended[step, game] else later - guess[step, game]
            later = value[step, game] + learner.settings.trace * trust[step, game] * surprise
            np.testing.assert_allclose(found[step, game], later, rtol=1e-4, atol=1e-5)


def test_learns_kuhn_poker() -> None:
    learner = learner_of("kuhn_poker", games=64, steps=8, capacity=8_192, batch=512, updates=8, widths=(64, 64))
    task = tasks.make_tree_task(players.load_arena("kuhn_poker").game, samples.load_tree("kuhn_poker"))
    state = learner.init(jax.random.key(0))
    before = sum(evaluation.improvements(learner, learner.policy_params(state), task)) / 2
    losses = []
    for _ in range(60):
        state, told = learner.iterate(state)
        losses.append(float(told["value_error"]))
    after = sum(evaluation.improvements(learner, learner.policy_params(state), task)) / 2
    assert before > 0.4
    assert after < 0.2
    assert np.mean(losses[-10:]) < 0.95 * losses[0]  # play becomes more various, so that there is more to tell


def test_strangers_play_uniformly_and_are_as_many_as_asked_for() -> None:
    learner = learner_of("kuhn_poker", strangers=0.5)
    who = np.asarray(learner._strangers(jax.random.key(0), 4_000))
    assert who.sum(axis=1).max() == 1
    assert who.any(axis=1).mean() == pytest.approx(0.5, abs=0.04)
    assert who[:, 0].sum() == pytest.approx(who[:, 1].sum(), rel=0.15)
    state, _ = learner.iterate(learner.init(jax.random.key(0)))
    sharp = jax.tree.map(lambda x: jax.random.normal(jax.random.key(1), x.shape), state.parameters)
    legal = np.asarray(state.games.states.legal_mask)
    policy = np.asarray(learner._policy(sharp, state.games))
    stranger = np.asarray(state.games.stranger)
    assert stranger.any()
    np.testing.assert_allclose(policy[stranger], (legal / legal.sum(-1, keepdims=True))[stranger], rtol=1e-6)
    assert np.abs(policy - legal / legal.sum(-1, keepdims=True))[~stranger].max() > 0.1


def test_against_random_counts_goals_of_each_role() -> None:
    learner = learner_of("kuhn_poker")
    parameters = learner.policy_params(learner.init(jax.random.key(0)))
    found = evaluation.evaluate_against_random(learner, parameters, games=20_000)
    # A new network plays uniformly: both roles get what uniform play gives, which is 1/8 chip for the first.
    assert max(found.error) < 0.03
    assert found.goal == pytest.approx((50 + 1 / 8, 50 - 1 / 8), abs=2.5 * max(found.error))


def test_lockstep_plays_as_words_do() -> None:
    """What is played game by game and 32 at a time agrees on the mean."""
    arena = players.load_arena("goofspiel:cards=3")
    table = table_policy.uniform_table_policy(arena.env.num_actions)
    both = (vectorised_play.hash_table_policy, vectorised_play.uniform_policy)
    found = vectorised_play.play(
        arena.env, both, (table, None), jax.random.key(0), matches=4_000, steps=arena.steps, window=1
    )
    score = table_policy.score_matches(arena.packed, table, jax.random.key(1), matches=4_000, steps=arena.steps)
    assert bool(found.ended.all())
    error = np.hypot(score.error[0], np.asarray(found.payoff[0]).std() / np.sqrt(4_000))
    assert float(found.payoff[0].mean()) == pytest.approx(score.mean[0], abs=4 * error)
    few = vectorised_play.play(
        arena.env, both, (table, None), jax.random.key(0), matches=8, steps=arena.steps, window=1, first=16
    )
    np.testing.assert_array_equal(few.payoff, found.payoff[:, 16:24])


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
def test_an_iteration_and_inference_lower_for_accelerators(platform: str) -> None:
    learner = learner_of("kuhn_poker")
    state = learner.init(jax.random.key(0))
    seen = jnp.zeros((8, learner.encoder.width))
    apply = jax.jit(lambda parameters, seen: networks.apply_network(learner.network, parameters, seen))
    inference = jax.export.export(apply, platforms=[platform])(state.smooth, seen)
    assert inference.platforms == (platform,)
    lowered = jax.jit(learner.iterate).trace(state).lower(lowering_platforms=(platform,))
    assert "stablehlo" in lowered.as_text() or "func.func" in lowered.as_text()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"games": 0}, "above 0"),
        ({"exploration": 1.5}, "from 0 to 1"),
        ({"temperature": 0.0}, "above 0"),
        ({"coldest": 0.5}, "above the first"),
        ({"capacity": 16}, "make the capacity 128 or more"),
        ({"widths": ()}, "sizes of layers"),
    ],
)
def test_wrong_settings_are_named(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        self_play.Settings(**(_SMALL | changes))
