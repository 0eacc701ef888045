"""Self-play: searches against exact values, returns against a loop, learning, devices, and errors."""

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

    @jax.jit
    def search(parameters: self_play.Parameters, key: jax.Array) -> jax.Array:
        return learner._search(parameters, one, learner._policy(parameters, one), key)

    return np.asarray(search(state.parameters, jax.random.key(key)))[0] * learner.scale


def test_search_to_the_end_returns_the_values_of_uniform_play() -> None:
    learner = learner_of("kuhn_poker", depth=5, draws=2_000)
    env = learner.encoder.env
    start = env.init()
    after = jax.jit(env.step)(start, jnp.argmax(start.legal_mask, axis=1), jax.random.key(1))
    windows = learner.encoder.window(start)
    game = self_play.SelfPlayGames(after, observation_window.update(windows, after), jnp.zeros(2, jnp.bool_))
    q_values = searched(learner, game, 0)
    for player in range(env.num_players):
        for move in np.flatnonzero(np.asarray(after.legal_mask[player])):
            exact = _uniform_value(env, after, player, {player: int(move)})
            assert q_values[player, move] == pytest.approx(exact, abs=0.12), (player, move)


def _uniform_value(env: Any, state: Any, player: int, fixed: dict[int, int]) -> float:
    """By enumerating the game tree."""
    if bool(state.terminated):
        return float(state.rewards[player])
    options = [
        [fixed[n]] if n in fixed else np.flatnonzero(np.asarray(state.legal_mask[n])).tolist()
        for n in range(env.num_players)
    ]
    chances = np.flatnonzero(np.asarray(state.chance_mask)).tolist()
    values = [
        _uniform_value(env, _stepper(env)(state, jnp.array((a, b), jnp.int32), jnp.int32(c)), player, {})
        for a in options[0]
        for b in options[1]
        for c in chances
    ]
    return float(np.mean(values))


@functools.cache
def _stepper(env: Any) -> Any:
    return jax.jit(lambda state, actions, chance: env.step(state, actions, None, chance))


def test_returns_are_those_of_a_loop() -> None:
    learner = learner_of("kuhn_poker")
    rng = np.random.default_rng(0)
    steps, games, count = 5, 3, 2
    value, reward, bootstrap = (rng.normal(size=(steps, games, count)) for _ in range(3))
    ended, trust = rng.random((steps, games)) < 0.4, rng.random((steps, games))
    outcomes = self_play._Step(*map(jnp.asarray, (reward, bootstrap, ended, trust)))
    returns = np.asarray(learner._returns(jnp.asarray(value), outcomes))
    for game in range(games):
        later = bootstrap[-1, game]
        for step in reversed(range(steps)):
            error = 0.0 if ended[step, game] else later - bootstrap[step, game]
            later = value[step, game] + learner.settings.trace * trust[step, game] * error
            np.testing.assert_allclose(returns[step, game], later, rtol=1e-4, atol=1e-5)


def test_learns_kuhn_poker() -> None:
    learner = learner_of("kuhn_poker", games=64, steps=8, capacity=8_192, batch=512, updates=8, widths=(64, 64))
    task = tasks.make_tree_task(players.load_arena("kuhn_poker").game, samples.load_tree("kuhn_poker"))
    state = learner.init(jax.random.key(0))
    before = sum(evaluation.improvements(learner, learner.policy_params(state), task)) / 2
    losses = []
    for _ in range(60):
        state, metrics = learner.iterate(state)
        losses.append(float(metrics["value_error"]))
    after = sum(evaluation.improvements(learner, learner.policy_params(state), task)) / 2
    assert before > 0.4
    assert after < 0.2
    assert np.mean(losses[-10:]) < 0.95 * losses[0]  # play becomes more varied, so there is more to predict


@pytest.mark.slow
def test_uniform_opponents_play_uniformly_in_the_fraction_of_games_that_was_set() -> None:
    learner = learner_of("kuhn_poker", uniform_opponent_fraction=0.5)
    who = np.asarray(learner._uniform_opponents(jax.random.key(0), 4_000))
    assert who.sum(axis=1).max() == 1
    assert who.any(axis=1).mean() == pytest.approx(0.5, abs=0.04)
    assert who[:, 0].sum() == pytest.approx(who[:, 1].sum(), rel=0.15)
    state, _ = learner.iterate(learner.init(jax.random.key(0)))
    sharp = jax.tree.map(lambda x: jax.random.normal(jax.random.key(1), x.shape), state.parameters)
    legal = np.asarray(state.games.states.legal_mask)
    policy = np.asarray(learner._policy(sharp, state.games))
    is_uniform = np.asarray(state.games.is_uniform)
    assert is_uniform.any()
    np.testing.assert_allclose(policy[is_uniform], (legal / legal.sum(-1, keepdims=True))[is_uniform], rtol=1e-6)
    assert np.abs(policy - legal / legal.sum(-1, keepdims=True))[~is_uniform].max() > 0.1


def test_against_random_counts_goals_of_each_role() -> None:
    learner = learner_of("kuhn_poker")
    parameters = learner.policy_params(learner.init(jax.random.key(0)))
    result = evaluation.evaluate_against_random(learner, parameters, games=20_000)
    # A new network plays uniformly: both roles get what uniform play gives, which is 1/8 chip for the first.
    assert max(result.error) < 0.03
    assert result.goal == pytest.approx((50 + 1 / 8, 50 - 1 / 8), abs=2.5 * max(result.error))


def test_vectorised_and_packed_play_agree_on_the_mean() -> None:
    """Games are played one per lane, and packed 32 to a word."""
    arena = players.load_arena("goofspiel:cards=3")
    table = table_policy.uniform_table_policy(arena.env.num_actions)
    both = (vectorised_play.hash_table_policy, vectorised_play.uniform_policy)
    outcomes = vectorised_play.play(
        arena.env, both, (table, None), jax.random.key(0), matches=4_000, steps=arena.steps, window=1
    )
    score = table_policy.score_matches(arena.packed, table, jax.random.key(1), matches=4_000, steps=arena.steps)
    assert bool(outcomes.ended.all())
    error = np.hypot(score.error[0], np.asarray(outcomes.payoff[0]).std() / np.sqrt(4_000))
    assert float(outcomes.payoff[0].mean()) == pytest.approx(score.mean[0], abs=4 * error)
    few = vectorised_play.play(
        arena.env, both, (table, None), jax.random.key(0), matches=8, steps=arena.steps, window=1, first=16
    )
    np.testing.assert_array_equal(few.payoff, outcomes.payoff[:, 16:24])


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
def test_an_iteration_and_inference_lower_for_accelerators(platform: str) -> None:
    learner = learner_of("kuhn_poker")
    state = learner.init(jax.random.key(0))
    seen = jnp.zeros((8, learner.encoder.width))
    apply = jax.jit(lambda parameters, seen: networks.apply_network(learner.network, parameters, seen))
    inference = jax.export.export(apply, platforms=[platform])(state.ema_policy_params, seen)
    assert inference.platforms == (platform,)
    lowered = jax.jit(learner.iterate).trace(state).lower(lowering_platforms=(platform,))
    assert "stablehlo" in lowered.as_text() or "func.func" in lowered.as_text()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"games": 0}, "above 0"),
        ({"exploration": 1.5}, "from 0 to 1"),
        ({"temperature": 0.0}, "above 0"),
        ({"min_temperature": 0.5}, "above the initial temperature"),
        ({"capacity": 16}, "make the capacity 128 or more"),
        ({"widths": ()}, "sizes of layers"),
    ],
)
def test_wrong_settings_are_named(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        self_play.Settings(**(_SMALL | changes))
