"""Weighted sums of plans that stay exact over millions of iterations, in single precision too.

Policy t has weight w_t = t^gamma. Sums are compensated (Kahan 1965): `slack` is what rounding added to `total` so far.
Weights grow without bound, so that everything is divided by a power of two, which is exact, whenever they get large.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

_LARGE, _HUGE = 2.0**20, 2.0**60


class Scale(NamedTuple):
    """Of one iteration."""

    weight: jax.Array  # of the newest plan
    shrink: jax.Array  # what older sums are multiplied by: 1, or a negative power of two


def grown(weight: jax.Array, ratio: jax.Array) -> Scale:
    """The weight of the next plan, `ratio` times the last one's; kept within the range of the numbers."""
    after = weight * jnp.minimum(ratio, _HUGE)
    shrink = jnp.where(after > _HUGE, 1 / _HUGE, jnp.where(after > _LARGE, 1 / _LARGE, 1.0))
    return Scale(after * shrink, shrink.astype(after.dtype))


def add(total: jax.Array, slack: jax.Array, plan: jax.Array, by: Scale) -> tuple[jax.Array, jax.Array]:
    """The sum and its slack with one more plan."""
    old = total * by.shrink
    new = by.weight * plan - slack * by.shrink
    after = old + new
    return after, (after - old) - new
