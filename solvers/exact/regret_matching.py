"""Regret minimisers as pure functions of traced settings: one program for the whole family.

With R the cumulative and r the instantaneous regret of an action at iteration t,

    R  <-  d(R + r),      d multiplies by t^alpha / (t^alpha + 1) where positive, by t^beta / (t^beta + 1) elsewhere
    policy  ~  max(0, R + optimism * r),      uniform where that is zero

alpha = inf means no discount and beta = -inf a floor at zero, so that regret matching is (inf, inf), regret matching+
is (inf, -inf), and discounted variants (Brown & Sandholm 2019) lie between. optimism = 1 is the predictive form with
the last regret as the prediction (Farina, Kroer & Sandholm 2021). `exploration` mixes the policy with a uniform one.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from gdlx.solvers.exact import realization_plans

Scalar = Any  # a number, or an array of one for each run of a batch


class Settings(NamedTuple):
    """Settings of regret minimisers, all traced. Exponents may change over a horizon."""

    alpha: Scalar = jnp.inf  # exponent of the discount of positive regret
    beta: Scalar = jnp.inf  # and of other regret
    gamma: Scalar = 0.0  # policy t has weight t^gamma in the average
    optimism: Scalar | None = None  # None: 0, and a program without it
    exploration: Scalar | None = None
    alpha_change: Scalar = 0.0  # of alpha, linearly from iteration 0 to the horizon
    beta_change: Scalar = 0.0
    gamma_change: Scalar = 0.0
    horizon: Scalar = 1_000.0  # the last iteration of the schedule; exponents are constant afterwards


class Discounts(NamedTuple):
    """Factors of one iteration for positive regret, other regret and the average; and the other settings.

    Regrets are discounted after those of the iteration are added, the average before: the newest policy has weight 1.
    """

    positive: jax.Array
    negative: jax.Array
    average: jax.Array
    optimism: Scalar | None
    exploration: Scalar | None


def discounts(settings: Settings, t: jax.Array) -> Discounts:
    """Returns those of iteration t = 1, 2, ..: t^alpha / (t^alpha + 1), t^beta / (t^beta + 1) and ((t - 1) / t)^gamma.

    The last is the weight of policy t - 1 relative to policy t, with gamma of iteration t - 1. Computed as one array,
    because in small games every operation counts.
    """
    t = jnp.asarray(t, jnp.result_type(float))
    done = jnp.minimum(t / settings.horizon, 1)
    before = jnp.minimum((t - 1) / settings.horizon, 1)
    exponent = jnp.stack(
        jnp.broadcast_arrays(
            settings.alpha + settings.alpha_change * done,
            settings.beta + settings.beta_change * done,
            settings.gamma + settings.gamma_change * before,
        )
    )
    is_average = realization_plans.expand_like(jnp.arange(3) == 2, exponent)
    is_finite = jnp.isfinite(exponent)
    power = jnp.where(is_average, (t - 1) / t, t) ** jnp.where(is_finite, exponent, 0)
    by = jnp.where(is_finite, jnp.where(is_average, power, power / (power + 1)), exponent > 0)
    return Discounts(by[0], by[1], by[2], settings.optimism, settings.exploration)


def match_regrets(regret: jax.Array, uniform: jax.Array, copies: jax.Array | None = None) -> jax.Array:
    """Returns the policy in proportion to positive regret [w, n, ...]; uniform where there is none.

    An action that stands for several with the same regret (`copies` [w, n]) gets the probability of all.
    """
    positive = jnp.maximum(regret, 0)
    if copies is not None:
        positive = positive * realization_plans.expand_like(copies, positive)
    scale = realization_plans.sum_over_actions(positive)
    return jnp.where(
        scale > 0, positive / jnp.where(scale > 0, scale, 1), realization_plans.expand_like(uniform, regret)
    )


def update(
    regret: jax.Array,
    new: jax.Array,
    uniform: jax.Array,
    noise: jax.Array,
    by: Discounts,
    copies: jax.Array | None = None,
) -> tuple[jax.Array, jax.Array]:
    """Returns the cumulative regret and the policy after an iteration; all arrays are [w, n, ...].

    New regrets up to `noise` count as zero: between equal actions rounding errors would decide, and regret matching
    would turn them into an arbitrary policy. Padding, which is not an action, has infinite noise.
    """
    new = jnp.where(jnp.abs(new) > realization_plans.expand_like(noise, new), new, 0)
    total = regret + new
    total = total * jnp.where(total > 0, by.positive, by.negative)
    policy = match_regrets(total if by.optimism is None else total + by.optimism * new, uniform, copies)
    if by.exploration is not None:
        policy = policy + by.exploration * (realization_plans.expand_like(uniform, policy) - policy)
    return total, policy
