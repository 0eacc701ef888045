"""Batches divided among all devices: what is computed of a part is computed where it is, and means over a batch, such
as gradients, are put together by XLA. Results are those of one device but for rounding."""

from typing import Any, TypeVar

import jax
import numpy as np

T = TypeVar("T")


def shard(batch: T, axis: int = 0) -> T:
    """Arrays, whose axis is that of the batch, an equal part on each device; as they are where that cannot be."""
    count = jax.tree.leaves(batch)[0].shape[axis]
    return batch if count % len(jax.devices()) else _placed(batch, axis)


def replicate(state: T) -> T:
    """Arrays, the whole of them on each device. So that a state is after an iteration where it was before it, and one
    program does for all iterations."""
    return _placed(state, None)


def _placed(tree: T, axis: int | None) -> T:
    devices = jax.devices()
    if len(devices) == 1:
        return tree
    mesh = jax.sharding.Mesh(np.array(devices), ("batch",))

    def put(x: Any) -> Any:
        spec = () if axis is None else (*[None] * (axis % x.ndim), "batch")
        place = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*spec))  # type: ignore[no-untyped-call]
        return jax.lax.with_sharding_constraint(x, place)  # type: ignore[no-untyped-call]

    found: T = jax.tree.map(put, tree)
    return found
