"""Benchmark `step`: environments in a program of a user, beside pgx: a scan that reads rewards, ends and masks.

Both sides play the same games. Our deals of cards are steps, those of pgx belong to its `init`: so decisions are
counted, and games that have ended. Compile times are left out, and are separate figures.
"""

import importlib.util
import itertools
import os
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from gdlx.envs import devices
from gdlx.experiments.bench import harness, playout_bench
from gdlx.experiments.bench.measuring import children

_BATCHES = (1_024, 16_384, 131_072)
_STEPS = 32  # of a scan
_LEAST_OF_DEVICE = 4_096  # games; fewer are faster on one
_LONGEST_COMPILE = 5.0


class _Pair(NamedTuple):
    """A game, the one of pgx, and the least ratio that is wanted of the batched environment."""

    ours: str
    theirs: str
    times: float


_GAMES = (
    _Pair("tictactoe", "tic_tac_toe", 3.0),
    _Pair("connect_four", "connect_four", 10.0),
    _Pair("kuhn_poker", "kuhn_poker", 3.0),
    _Pair("leduc_poker", "leduc_holdem", 3.0),
)
_OBSERVED = ("kuhn_poker", "leduc_poker")


class Speed(NamedTuple):
    """Per second, in millions."""

    decisions: float
    games: float


Program = Callable[[Any, Any], tuple[Any, Any]]  # from a state and a key to the next state, and what is read of it


def figures() -> Iterator[harness.Figure]:
    devices.use_one_device_per_core()
    has_pgx = importlib.util.find_spec("pgx") is not None
    for game, batch, policy in itertools.product(_GAMES, _BATCHES, ("first", "random")):
        theirs = children.call(pgx_speed, game.theirs, batch, policy) if has_pgx else None
        ours = batched_speed(game.ours, batch, policy)
        yield from _compared(f"{game.ours}: batched, {_words(policy)}", batch, ours, theirs, game.times)
        ours = vmapped_speed(game.ours, batch, policy)
        yield from _compared(f"{game.ours}: under vmap, {_words(policy)}", batch, ours, theirs, 1.0)
    for game in _GAMES:
        if game.ours in _OBSERVED:
            batch = _BATCHES[1]
            theirs = children.call(pgx_speed, game.theirs, batch, "random") if has_pgx else None
            ours = batched_speed(game.ours, batch, "random", observed=True)
            yield from _compared(f"{game.ours}: batched, random, with infostate", batch, ours, theirs, 2.0)
    yield from _compile_figures()


def _words(policy: str) -> str:
    return {"first": "first legal action", "random": "random"}[policy]


def _compared(name: str, batch: int, ours: Speed, theirs: Speed | None, least: float) -> Iterator[harness.Figure]:
    target = harness.Target(least, of="ratio")
    for unit, value, peer in zip(("M decisions/s", "M games/s"), ours, theirs or (None, None), strict=True):
        full = f"{name}, {batch:,} games: {unit.split()[1].partition('/')[0]}"
        if peer is None:
            yield harness.missing_peer(full, "pgx", value, unit, better="higher", target=target)
        else:
            yield harness.Figure(full, value, unit, "higher", "pgx", peer, target)


def batched_speed(game: str, batch: int, policy: str, *, observed: bool = False) -> Speed:
    """Of `Env.batched`, on one device for each core."""
    import jax

    import gdlx

    fitting = (n for n in range(1, jax.device_count() + 1) if batch % (512 * n) == 0 and batch >= _LEAST_OF_DEVICE * n)
    count = max(fitting, default=1)
    mesh = jax.make_mesh((count,), ("games",), axis_types=(jax.sharding.AxisType.Auto,), devices=jax.devices()[:count])
    env = gdlx.make(game).batched(batch, track=("infostate",) if observed else (), mesh=mesh)
    turns = env.turn_based() if observed else None

    def step(carry: Any, key: Any) -> tuple[Any, Any]:
        states, _ = carry
        choose, move = jax.random.split(key)
        legal = env.legal(states)
        actions = legal.first() if policy == "first" else gdlx.random_actions(choose, legal)
        after, timestep = env.step(states, actions, move)
        read = [timestep.rewards.sum(), timestep.terminated.sum()]
        return (after, observe(after)), read

    def observe(states: Any) -> Any:
        return None if turns is None else turns.observe(states, "infostate")  # written to memory in every step

    def count_events(carry: Any, key: Any) -> tuple[Any, Any]:
        decisions = (env.legal(carry[0]).mask.sum(axis=2) > 1).sum()
        after, (_, ended) = step(carry, key)
        return after, (decisions, ended)

    start = jax.jit(env.reset)()
    return _speed(step, count_events, (start, jax.jit(observe)(start)))


def vmapped_speed(game: str, batch: int, policy: str) -> Speed:
    """Of `Env.init` and `Env.step` under vmap, on one device for each core."""
    import jax
    import jax.numpy as jnp

    import gdlx

    env = gdlx.make(game)
    first = jax.tree.map(lambda x: jnp.broadcast_to(x, (batch, *x.shape)), env.init())
    mesh = jax.make_mesh((jax.device_count(),), ("games",), axis_types=(jax.sharding.AxisType.Auto,))
    split = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("games"))  # type: ignore[no-untyped-call]

    def step(states: Any, key: Any) -> tuple[Any, Any]:
        choose, move = jax.random.split(key)
        mask = states.legal_mask
        actions = jnp.argmax(mask, axis=2) if policy == "first" else gdlx.random_actions(choose, mask)
        keys = jax.random.split(move, batch) if env.num_chance_actions else None
        after = jax.vmap(env.step, in_axes=(0, 0, None if keys is None else 0))(states, actions, keys)
        read = [after.rewards.sum(), after.terminated.sum()]

        def restart(old: Any, new: Any) -> Any:
            return jnp.where(after.terminated.reshape(-1, *(1,) * (new.ndim - 1)), old, new)

        return jax.tree.map(restart, first, after), read

    def count_events(states: Any, key: Any) -> tuple[Any, Any]:
        decisions = (states.legal_mask.sum(axis=2) > 1).sum()
        after, (_, ended) = step(states, key)
        return after, (decisions, ended)

    return _speed(step, count_events, jax.device_put(first, split))


def pgx_speed(name: str, batch: int, policy: str) -> Speed:
    """Of pgx, with one device, where XLA uses all cores; call it in a process of its own."""
    os.environ.pop("XLA_FLAGS", None)

    import jax
    import jax.numpy as jnp
    import pgx
    from pgx.experimental import auto_reset

    import gdlx

    env = pgx.make(name)
    forward = jax.vmap(auto_reset(env.step, env.init))

    def step(state: Any, key: Any) -> tuple[Any, Any]:
        choose, move = jax.random.split(key)
        mask = state.legal_action_mask
        actions = jnp.argmax(mask, axis=1) if policy == "first" else gdlx.random_actions(choose, mask)
        after = forward(state, actions, jax.random.split(move, batch))
        read = [after.rewards.sum(), after.terminated.sum()]
        return after, read  # observations are part of its states

    def count_events(state: Any, key: Any) -> tuple[Any, Any]:
        after, (_, ended) = step(state, key)
        return after, (jnp.asarray(batch), ended)

    state = jax.jit(jax.vmap(env.init))(jax.random.split(jax.random.key(0), batch))
    return _speed(step, count_events, state)


def _speed(step: Program, count_events: Program, state: Any) -> Speed:
    """Times scans of `step`, and counts what happens in one of them."""
    import jax

    keys = jax.random.split(jax.random.key(1), _STEPS)

    def total(of: Program) -> Any:
        def run(state: Any, keys: Any) -> tuple[Any, Any]:
            after, read = jax.lax.scan(of, state, keys)
            return after, jax.tree.map(lambda x: x.sum(), read)

        return jax.jit(run)

    run = total(step)
    held = [state]

    def advance(scans: int) -> None:
        for _ in range(scans):
            held[0], read = run(held[0], keys)
        jax.block_until_ready((held[0], read))  # type: ignore[no-untyped-call]

    scans = playout_bench.measure_rate(advance, 1, seconds=1.0)
    _, (decisions, ended) = total(count_events)(held[0], keys)
    return Speed(scans * float(decisions) / 1e6, scans * float(ended) / 1e6)


def _compile_figures() -> Iterator[harness.Figure]:
    """A user's scan over the batched step of every game of the library."""
    import jax

    import gdlx

    for game in gdlx.games():
        env = gdlx.make(game).batched(1_024)

        def step(states: Any, key: Any, env: Any = env) -> tuple[Any, Any]:
            choose, move = jax.random.split(key)
            states, timestep = env.step(states, gdlx.random_actions(choose, env.legal(states)), move)
            return states, timestep.rewards.sum()

        states, keys = env.reset(), jax.random.split(jax.random.key(0), _STEPS)
        started = time.process_time()
        jax.jit(lambda states, keys, step=step: jax.lax.scan(step, states, keys)).lower(states, keys).compile()
        seconds = time.process_time() - started
        yield harness.Figure(f"{game}: compiling a scan", seconds, "s", target=harness.Target(_LONGEST_COMPILE))
