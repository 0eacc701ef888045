"""Iterations of sampling into a hash table, on one device or many. `table_sampler` has the work of one batch."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from gdlx.envs.packed import packed_env
from gdlx.solvers.exact import regret_matching
from gdlx.solvers.mccfr import mccfr, table_sampler, table_state


def step(
    game: packed_env.PackedEnv,
    state: table_state.TableState,
    settings: mccfr.MccfrSettings,
    products: table_state.CumulativeDiscounts,
    key: jax.Array,
    *,
    config: table_state.SamplerConfig,
    axis: str | None = None,
) -> table_state.TableState:
    """Runs one iteration: a batch for every player in turn. Averages are this device's, without the device axis."""
    state, by = next_iteration(state, settings.minimiser, products)
    now = jax.random.fold_in(key, state.t)
    for player in range(game.env.num_players):
        batch = table_sampler.TrajectoryBatch(game, settings, by, config, axis, player)
        state = batch.update(state, jax.random.fold_in(now, player))
    return state


def next_iteration(
    state: table_state.TableState, minimiser: regret_matching.Settings, products: table_state.CumulativeDiscounts
) -> tuple[table_state.TableState, table_state.IterationDiscounts]:
    """Increment the iteration counter; return the state and the discounts of the new iteration."""
    t = state.t + 1
    by = table_state.IterationDiscounts(
        products, regret_matching.discounts(minimiser, t), (t - 1) % table_state.FOLD_INTERVAL + 1
    )
    return state._replace(t=t, dropped_visits=jnp.zeros((), jnp.int32)), by


def advance(
    game: packed_env.PackedEnv,
    state: table_state.TableState,
    settings: mccfr.MccfrSettings,
    key: jax.Array,
    count: Any,
    *,
    config: table_state.SamplerConfig,
    axis: str | None = None,
) -> table_state.TableState:
    """Run `count` iterations."""

    def one(now: table_state.TableState, products: table_state.CumulativeDiscounts) -> table_state.TableState:
        return step(game, now, settings, products, key, config=config, axis=axis)

    return iterate(state, settings.minimiser, count, one)


def iterate(
    state: table_state.TableState,
    minimiser: regret_matching.Settings,
    count: Any,
    one: Callable[[table_state.TableState, table_state.CumulativeDiscounts], table_state.TableState],
) -> table_state.TableState:
    """Run `count` iterations of `one`.

    Folds are at multiples of FOLD_INTERVAL, so results do not depend on where a run was stopped.
    """
    end = state.t + count

    def block(before: table_state.TableState) -> table_state.TableState:
        start = before.t // table_state.FOLD_INTERVAL * table_state.FOLD_INTERVAL
        products = table_state.cumulative_discounts(minimiser, start)
        stop = jnp.minimum(end, start + table_state.FOLD_INTERVAL)
        after: table_state.TableState = jax.lax.fori_loop(before.t, stop, lambda _, s: one(s, products), before)
        folded: table_state.TableState = jax.lax.cond(
            stop == start + table_state.FOLD_INTERVAL, lambda s: table_state.fold(s, products), lambda s: s, after
        )
        return folded

    local = state._replace(averages=jax.tree.map(lambda x: x[0], state.averages))
    final: table_state.TableState = jax.lax.while_loop(lambda s: s.t < end, block, local)
    return final._replace(averages=jax.tree.map(lambda x: x[None], final.averages))


class TableLoop(NamedTuple):
    """`advance(state, settings, key, count)` donates its state; `place` puts a state on the devices."""

    advance: Callable[..., table_state.TableState]
    place: Callable[[table_state.TableState], table_state.TableState]
    devices: int


@functools.lru_cache(maxsize=8)
def make_loop(
    devices: tuple[jax.Device, ...], game: packed_env.PackedEnv, config: table_state.SamplerConfig
) -> TableLoop:
    """Returns a loop that shards the batch over the largest number of devices that divides it."""
    num_devices = next(n for n in range(len(devices), 0, -1) if config.batch % n == 0)
    if num_devices == 1:
        run = functools.partial(advance, game, config=config)
        return TableLoop(jax.jit(run, donate_argnums=0), functools.partial(jax.device_put, device=devices[0]), 1)
    mesh = jax.sharding.Mesh(np.array(devices[:num_devices]), ("batch",))
    spec: Any = jax.sharding.PartitionSpec
    specs: Any = table_state.TableState(spec(), spec(), spec("batch"), spec(), spec(), spec(), spec())
    sharded = jax.shard_map(
        functools.partial(advance, game, config=config, axis="batch"),
        mesh=mesh,
        in_specs=(specs, spec(), spec(), spec()),
        out_specs=specs,
        check_vma=False,
    )
    shardings = [jax.NamedSharding(mesh, field_spec) for field_spec in specs]

    def place(state: table_state.TableState) -> table_state.TableState:
        placed: Any = [jax.device_put(part, sharding) for part, sharding in zip(state, shardings, strict=True)]
        return table_state.TableState(*placed)

    return TableLoop(jax.jit(sharded, donate_argnums=0), place, num_devices)
