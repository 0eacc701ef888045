"""Fictitious play in sequence form: best responses to the average policies of the others (Heinrich et al. 2015)."""

import jax.numpy as jnp

from gdlx.envs.trees import sequence_form
from gdlx.solvers.exact import best_response, cfr, realization_plans, regret_matching


def step(
    game: sequence_form.SequenceForm,
    state: cfr.CfrState,
    settings: regret_matching.Settings,
    *,
    alternating: bool = True,
) -> cfr.CfrState:
    """Runs one iteration: each player in turn adds a best response to the others' average plans to its own average.

    The first iteration adds uniform plans, to have averages to respond to. `settings.gamma` weighs the t-th response by
    t^gamma, as in CFR; the other settings are ignored.
    """
    t = state.t + 1
    by = regret_matching.discounts(settings, t)
    recent, before = list(state.recent_sum), list(cfr.cumulative_plans(state))
    policies, reach = list(state.policy), list(state.realization_plan)
    for number, player in enumerate(game.players):
        seen = before if alternating else cfr.cumulative_plans(state)
        # Discounts change the scale of sums; the empty sequence has reach 1, so its sum is the scale.
        others = [w / jnp.maximum(w[0], 1e-30) for n, w in enumerate(seen) if n != number]
        others = [
            jnp.where(w[0] > 0, w, plan)
            for w, plan in zip(others, _except(state.realization_plan, number), strict=True)
        ]
        values, _ = realization_plans.backup_values(
            player,
            realization_plans.utilities(player, others, state.realization_plan[number].shape[1:]),
            best_response.best_action_value(player),
        )
        chosen = best_response.greedy_policy(player, values)
        policy = tuple(jnp.where(t > 1, best, old) for best, old in zip(chosen, policies[number], strict=True))
        policies[number] = policy
        reach[number] = realization_plans.flatten(
            realization_plans.to_realization_plan(player, policy), state.realization_plan[number].shape[1:]
        )
        recent[number] = recent[number] * by.average + reach[number]
        before[number] = before[number] * by.average + reach[number]
    pending = state.pending_discount * by.average
    return cfr.CfrState(state.regret, state.cumulative_plan, tuple(recent), pending, tuple(policies), tuple(reach), t)


def _except(items: tuple[jnp.ndarray, ...], number: int) -> list[jnp.ndarray]:
    return [item for n, item in enumerate(items) if n != number]
