"""Arrays of a tree as jax arrays, in its default precision."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt


def ints(values: npt.ArrayLike) -> jax.Array:
    return to_device(np.asarray(values, np.int32))


def floats(values: npt.ArrayLike) -> jax.Array:
    return to_device(np.asarray(values, jnp.result_type(float)))


def to_device(values: npt.NDArray[Any]) -> jax.Array:
    """Transfers an array without compiling; `jnp.asarray` would compile a program for every shape."""
    array: jax.Array = jax.device_put(values)
    return array
