"""Iterations of sampling into a hash table: one, many, and on many devices. What a batch does is in `hashed`."""

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
    """One iteration: a batch for every player in turn. Averages are this device's, without the axis of devices."""
    state, by = next_iteration(state, settings.minimiser, products)
    now = jax.random.fold_in(key, state.t)
    for player in range(game.env.num_players):
        batch = table_sampler.TrajectoryBatch(game, settings, by, config, axis, player)
        state = batch.update(state, jax.random.fold_in(now, player))
    return state


def next_iteration(
    state: table_state.TableState, minimiser: regret_matching.Settings, products: table_state.CumulativeDiscounts
) -> tuple[table_state.TableState, table_state.IterationDiscounts]:
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
    """So many iterations."""

    def one(now: table_state.TableState, made: table_state.CumulativeDiscounts) -> table_state.TableState:
        return step(game, now, settings, made, key, config=config, axis=axis)

    return iterate(state, settings.minimiser, count, one)


def iterate(
    state: table_state.TableState,
    minimiser: regret_matching.Settings,
    count: Any,
    one: Callable[[table_state.TableState, table_state.CumulativeDiscounts], table_state.TableState],
) -> table_state.TableState:
    """So many iterations. Folds come at multiples of FOLD, so that it does not matter where a run was stopped."""
    end = state.t + count

    def block(before: table_state.TableState) -> table_state.TableState:
        start = before.t // table_state.FOLD_INTERVAL * table_state.FOLD_INTERVAL
        made = table_state.cumulative_discounts(minimiser, start)
        stop = jnp.minimum(end, start + table_state.FOLD_INTERVAL)
        after: table_state.TableState = jax.lax.fori_loop(before.t, stop, lambda _, s: one(s, made), before)
        folded: table_state.TableState = jax.lax.cond(
            stop == start + table_state.FOLD_INTERVAL, lambda s: table_state.fold(s, made), lambda s: s, after
        )
        return folded

    own = state._replace(averages=jax.tree.map(lambda x: x[0], state.averages))
    done: table_state.TableState = jax.lax.while_loop(lambda s: s.t < end, block, own)
    return done._replace(averages=jax.tree.map(lambda x: x[None], done.averages))


class TableLoop(NamedTuple):
    """`advance(state, settings, key, count)` uses its state up; `place` puts a state where it is to be."""

    advance: Callable[..., table_state.TableState]
    place: Callable[[table_state.TableState], table_state.TableState]
    devices: int


@functools.lru_cache(maxsize=8)
def make_loop(
    devices: tuple[jax.Device, ...], game: packed_env.PackedEnv, config: table_state.SamplerConfig
) -> TableLoop:
    """Iterations with the batch divided among as many of the devices as divide it."""
    used = next(n for n in range(len(devices), 0, -1) if config.batch % n == 0)
    if used == 1:
        run = functools.partial(advance, game, config=config)
        return TableLoop(jax.jit(run, donate_argnums=0), functools.partial(jax.device_put, device=devices[0]), 1)
    mesh = jax.sharding.Mesh(np.array(devices[:used]), ("batch",))
    spec: Any = jax.sharding.PartitionSpec
    specs: Any = table_state.TableState(spec(), spec(), spec("batch"), spec(), spec(), spec(), spec())
    divided = jax.shard_map(
        functools.partial(advance, game, config=config, axis="batch"),
        mesh=mesh,
        in_specs=(specs, spec(), spec(), spec()),
        out_specs=specs,
        check_vma=False,
    )
    shardings = [jax.NamedSharding(mesh, own) for own in specs]

    def place(state: table_state.TableState) -> table_state.TableState:
        placed: Any = [jax.device_put(part, own) for part, own in zip(state, shardings, strict=True)]
        return table_state.TableState(*placed)

    return TableLoop(jax.jit(divided, donate_argnums=0), place, used)
