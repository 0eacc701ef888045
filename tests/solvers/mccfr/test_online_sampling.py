"""Online outcome sampling: unbiased, more precise at the target, and convergent."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from gdlx.envs import env
from gdlx.envs.views import history
from gdlx.solvers.exact import regret_matching
from gdlx.solvers.mccfr import mccfr, online_sampling, table_sampler, table_state
from gdlx.tests.helpers import tables

SETTINGS = mccfr.MccfrSettings(*jax.tree.map(np.float32, (tables.DEFAULT_SETTINGS, 0.5)))


def true(row: Any) -> tuple[int, ...]:
    return tuple(np.flatnonzero(np.asarray(row)).tolist())


@functools.cache
def _step(game: env.Env) -> Any:
    return jax.jit(game.step)


def view_of(game: env.Env, player: int, steps: int, seed: int = 0) -> history.ActionObservationHistory:
    """Returns a player's view of a random match after `steps` steps that is not over."""
    rng, game = np.random.default_rng(seed), game.tracking("percepts")
    step = _step(game)
    for _ in range(500):
        key = jax.random.key(int(rng.integers(2**31)))
        state = game.init(key)
        view = history.ActionObservationHistory(game, player, true(state.legal_mask[player]))
        for count in range(steps):
            moves = [int(rng.choice(true(mask))) for mask in state.legal_mask]
            state = step(state, jnp.array(moves), jax.random.fold_in(key, count))
            seen, legal = true(state.percepts[player]), true(state.legal_mask[player])
            view = view.after(history.Event(moves[player], seen, legal))
            if bool(state.terminated):
                break
        if not bool(state.terminated) and len(view.legal) > 1:
            return view
    raise AssertionError("no such match")


@pytest.mark.parametrize(
    ("game", "searcher", "steps", "aim"),
    [
        pytest.param("kuhn_poker", 0, 4, "information set", marks=pytest.mark.slow),
        pytest.param("kuhn_poker", 1, 3, "public subgame", marks=pytest.mark.slow),
        pytest.param("goofspiel:cards=3", 0, 1, "information set", marks=pytest.mark.slow),
        ("goofspiel:cards=3", 1, 1, "public subgame"),
        pytest.param("smallest:numbers=3,steps=1", 1, 0, "information set", marks=pytest.mark.slow),
    ],
)
def test_targeting_leaves_regrets_unbiased(
    game: str, searcher: int, steps: int, aim: online_sampling.Targeting
) -> None:
    known = tables.make_random_table(game, with_public=True)
    view = view_of(known.packed.env, searcher, steps)
    config = table_state.SamplerConfig(256, 16)
    search = online_sampling.SearchConfig(config, 128, aim)
    target = online_sampling.make_target(known.packed, view, 16, aim)
    here = int(tables.lookup_history(known.state, view)) if aim == "information set" else -1
    for number in range(len(known.task.tree.players)):
        batch = online_sampling.TargetedBatch(
            known.packed, SETTINGS, tables.first_iteration_discounts(), config, None, number, search, target
        )
        errors = tables.assert_unbiased(known, known.state, jax.jit(batch.update), number, 150)
        if number == searcher and here >= 0 and steps:
            plain = table_sampler.TrajectoryBatch(
                known.packed, SETTINGS, tables.first_iteration_discounts(), config, None, number
            )
            plain_errors = tables.assert_unbiased(known, known.state, jax.jit(plain.update), number, 150)
            decision = list(known.rows[number]).index(here)
            assert errors[decision] < plain_errors[decision]


@pytest.mark.slow  # the test above covers that regrets are unbiased
@pytest.mark.parametrize(("card", "share"), [("queen", 1 / 3), ("jack", 0.0)])
def test_search_finds_the_equilibrium_at_the_infoset_of_a_match(card: str, share: float) -> None:
    # Kuhn (1950): the second player calls with a queen a third of the time, and never with a jack.
    game = tables.make_random_table("kuhn_poker").packed
    config = table_state.SamplerConfig(256, 16)
    search = online_sampling.SearchConfig(config, 128)
    settings = mccfr.MccfrSettings(
        *jax.tree.map(np.float32, (regret_matching.Settings(1.0, 1.0, 1.0, exploration=0.01), 0.4))
    )
    view = facing_a_bet(game.env, card)
    target = online_sampling.make_target(game, view, 16, "information set")
    state = table_state.init(game, config, 8, 1)
    state = online_sampling.advance(game, state, settings, target, jax.random.key(0), 2_000, search=search)
    legal = jnp.zeros(game.env.num_actions, jnp.bool_).at[jnp.array(view.legal)].set(True)
    policy, is_known = online_sampling.average_policy_at(state, tables.table_key(view), legal)
    assert bool(is_known)
    assert abs(float(policy[game.env.propnet.players[1].moves.index("call")]) - share) < 0.06


def facing_a_bet(game: env.Env, card: str) -> history.ActionObservationHistory:
    """Returns a view of the second player of kuhn_poker with this card, after the first player has bet."""
    for seed in range(500):
        view = view_of(game, 1, 3, seed)
        text = " ".join(view.step_texts())
        if card in text and "bet" in text:
            return view
    raise AssertionError(f"no such match with a {card}")
