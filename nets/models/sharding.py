"""Data parallelism: batches are sharded over all devices, and XLA reduces means over a batch, such as gradients.

Results equal those of one device up to rounding.
"""

from typing import Any, TypeVar

import jax
import numpy as np

T = TypeVar("T")


def shard(batch: T, axis: int = 0) -> T:
    """Shards arrays along `axis`; leaves them as they are if the number of devices does not divide it."""
    count = jax.tree.leaves(batch)[0].shape[axis]
    return batch if count % len(jax.devices()) else _placed(batch, axis)


def replicate(state: T) -> T:
    """Replicates arrays on all devices.

    A state is then placed alike before and after an iteration, so that one program serves all iterations.
    """
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

    placed: T = jax.tree.map(put, tree)
    return placed
