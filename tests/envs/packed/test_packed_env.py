"""Batches in lockstep against `Env`, step by step, on every game of the library and on odd ones."""

import functools
import subprocess
import sys
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest

import gdlx
from gdlx.envs import env as envs
from gdlx.envs import make_env
from gdlx.envs.packed import packed_env, word_arrays
from gdlx.envs.views import info_key
from gdlx.propnet import library
from gdlx.solvers.mccfr import table_rows
from gdlx.tests.helpers import matches, sheets, xla_flags

PLATFORMS = ("cuda", "tpu")
SMALLER = {
    "connect_four": "connect_four:width=4,height=4,line=3",
    "goofspiel": "goofspiel:cards=4",
    "krieg_tictactoe": "krieg_tictactoe:size=3,line=3",
    "leduc_poker": "leduc_poker:ranks=2,raises=1",
    "simultaneous_breakthrough": "simultaneous_breakthrough:width=2,height=6,rows=2",
    "smallest": "smallest:players=2,numbers=3,target=30,steps=4",
}
GAMES = tuple(SMALLER.get(name, name) for name in library.names())
IN_DEFAULT = ("blind_tictactoe", "goofspiel:cards=4", "kuhn_poker", "meier", "monty_hall")
ODD = {
    "endless": lambda: sheets.make_env(sheets.ENDLESS, max_steps=3),
    "limited": lambda: gdlx.make("tictactoe", max_steps=6),
    "dead end": lambda: sheets.make_env(sheets.DEAD_END),
    "conflicts": lambda: sheets.make_env(sheets.CONFLICTS),
    "over at once": lambda: sheets.make_env(sheets.OVER_AT_ONCE),
    "maze": lambda: sheets.make_env(sheets.MAZE, iterated=True),
    "coins": lambda: sheets.make_env(sheets.COINS),
    "idle": lambda: sheets.make_env(
        "(role a) (role random) (legal a x) (legal a y) (<= (legal random z) (true never)) "
        "(<= (next done) (does a x)) (<= terminal (true done)) (goal a 50)"
    ),
}


def view(state: packed_env.PackedState) -> dict[str, jax.Array]:
    """What a sampler sees."""
    keys = jnp.stack(state.keys, axis=1)
    return {name: getattr(state, name) for name in ("legal", "outcomes", "terminated", "payoff", "unplayable")} | {
        "goal_conflict": state.goal_conflict,
        "key": keys,
    }


def expected(states: envs.State) -> dict[str, np.ndarray]:
    """The same of States [T + 1, B, ..], games last."""
    fields: dict[str, Any] = {
        "legal": states.legal_mask,
        "outcomes": states.chance_mask.sum(axis=-1),
        "terminated": states.terminated,
        "payoff": np.cumsum(states.rewards, axis=0, dtype=np.float32),
        "unplayable": states.unplayable,
        "goal_conflict": states.goal_conflict,
        "key": states.info_key,
    }
    return {name: np.moveaxis(field, 1, -1) for name, field in fields.items()}


def moves_of(actual: matches.MatchBatch) -> tuple[Any, Any]:
    """int32[T, P, B] joint actions, and float32[T, B] numbers that make chance's moves what they were."""
    states: Any = actual.states
    mask = states.chance_mask[:-1]
    before = np.arange(mask.shape[2]) < actual.chance[:, :, None]
    rank, count = (mask & before).sum(axis=2), mask.sum(axis=2)
    return np.moveaxis(states.actions[1:], 1, -1), ((rank + 0.5) / np.maximum(count, 1)).astype(np.float32)


@functools.partial(jax.jit, static_argnames=("game", "batch"))
def replay(
    game: packed_env.PackedEnv, batch: int, actions: jax.Array, chance: jax.Array
) -> tuple[Any, Any, packed_env.PackedState]:
    """What is seen before and after each of int32[T, P, B] joint actions, and the last state."""

    def step(state: packed_env.PackedState, given: tuple[jax.Array, jax.Array]) -> tuple[packed_env.PackedState, Any]:
        after = game.step(state, *given)
        return after, view(after)

    start = game.start(batch)
    last, seen = jax.lax.scan(step, start, (actions, chance))
    return view(start), seen, last


def compare(game: packed_env.PackedEnv, *, batch: int = 45, steps: int = 16, seed: int = 0) -> matches.MatchBatch:
    played = matches.play_random(game.env, matches=batch, steps=steps, seed=seed)
    first, later, _ = replay(game, batch, *moves_of(played))
    for name, field in expected(played.states).items():
        assert np.array_equal(first[name], field[0]), name
        assert np.array_equal(later[name], field[1:]), name
        assert later[name].shape == field[1:].shape, name
    return played


def test_no_game_is_missing() -> None:
    assert {name.split(":")[0] for name in GAMES} == set(library.names())


@pytest.mark.parametrize(
    "game", [game if game in IN_DEFAULT else pytest.param(game, marks=pytest.mark.slow) for game in GAMES]
)
def test_it_plays_as_the_environment(game: str) -> None:
    play = packed_env.PackedEnv(gdlx.make(game))
    for seed in range(3):
        actual = compare(play, steps=18, seed=seed)
    assert actual.states.terminated[-1].any()


@pytest.mark.parametrize("odd", ODD)
def test_it_plays_odd_games_as_the_environment(odd: str) -> None:
    states = compare(packed_env.PackedEnv(ODD[odd]()), steps=7).states
    assert states.terminated[-1].any()
    assert states.unplayable.any() == (odd in ("endless", "limited", "dead end", "idle"))
    assert states.goal_conflict.any() == (odd == "conflicts")


@functools.cache
def kuhn() -> packed_env.PackedEnv:
    return packed_env.PackedEnv(gdlx.make("kuhn_poker"))


@functools.cache
def middle() -> packed_env.PackedState:
    """Matches of Kuhn poker, 70 of them, of which some have ended."""
    game = kuhn()
    played = matches.play_random(game.env, matches=70, steps=4)
    _, _, state = replay(game, 70, *moves_of(played))
    assert 0 < int(state.terminated.sum()) < 70
    last: packed_env.PackedState = state
    return last


@functools.cache
def compiled_step() -> Any:
    return jax.jit(kuhn().step)


@functools.cache
def compiled_take() -> Any:
    return jax.jit(kuhn().take)


def test_ended_games_stay() -> None:
    state, step, take = middle(), compiled_step(), compiled_take()
    over = jnp.flatnonzero(state.terminated)
    for actions, chance in ((0, 0.0), (4, 0.99)):
        after = step(state, jnp.full((2, 70), actions), jnp.full(70, chance, jnp.float32))
        same = jax.tree.map(np.array_equal, take(after, over), take(state, over))
        assert jax.tree.all(same)


@pytest.mark.parametrize("count", [1, 70, 100])
def test_games_are_taken(count: int) -> None:
    """And play on as those that they were taken from."""
    state = middle()
    lanes = np.random.default_rng(count).integers(0, 70, count).astype(np.int32)
    taken = compiled_take()(state, jnp.asarray(lanes))
    assert taken.batch == count
    for name, field in view(state).items():
        assert np.array_equal(view(taken)[name], field[..., lanes]), name
    actions, chance = jnp.argmax(state.legal, axis=1).astype(jnp.int32), jnp.linspace(0.0, 0.999, 70)
    after = view(compiled_step()(state, actions, chance))
    for name, field in view(compiled_step()(taken, actions[:, lanes], chance[lanes])).items():
        assert np.array_equal(field, after[name][..., lanes]), name


def test_chance_takes_the_move_of_its_rank() -> None:
    """Three cards, by a number that is rounded down; the largest below 1 takes the last."""
    game = kuhn()
    numbers = np.array([0, 0.33, 0.34, 0.66, 0.67, np.nextafter(1, 0, dtype=np.float32)], np.float32)
    state = jax.jit(lambda: game.step(game.start(6), jnp.full((2, 6), 4), jnp.asarray(numbers)))()
    env = game.env.tracking("info_key")
    deal = jax.jit(jax.vmap(lambda card: env.step(env.init(), jnp.array([4, 4]), None, card).info_key))
    by_rank = jnp.moveaxis(deal(jnp.arange(3)), 0, -1)
    assert np.array_equal(jnp.stack(state.keys, axis=1), by_rank[:, :, np.array([0, 0, 1, 1, 2, 2])])


def test_the_first_use_may_be_inside_a_jit() -> None:
    """Nothing that was computed while tracing may stay behind."""
    game = packed_env.PackedEnv(gdlx.make("rps"))
    moves, chance = jnp.zeros((2, 3), jnp.int32), jnp.zeros(3)
    once = jax.jit(lambda: game.step(game.start(3), moves, chance))()
    assert once.terminated.all()
    assert jax.jit(lambda: game.step(game.start(3), moves, chance).terminated)().all()


@pytest.mark.parametrize("game", ["meier", "maze"])
def test_it_lowers_for_accelerators(game: str) -> None:
    play = packed_env.PackedEnv(ODD["maze"]() if game == "maze" else gdlx.make(game))

    def run(lanes: jax.Array) -> packed_env.PackedState:
        def step(state: packed_env.PackedState) -> packed_env.PackedState:
            return play.step(state, jnp.argmax(state.legal, axis=1).astype(jnp.int32), jnp.full(state.batch, 0.5))

        return play.take(jax.lax.while_loop(lambda state: ~jnp.all(state.terminated), step, play.start(40)), lanes)

    exported = jax.export.export(jax.jit(run), platforms=PLATFORMS)(jnp.arange(50))
    assert exported.platforms == PLATFORMS
    assert not any(name in exported.mlir_module() for name in ("f64", "i64>>"))


DEVICES = """
import hashlib
import jax, jax.numpy as jnp, numpy as np
import gdlx
from gdlx.envs.packed import packed_env

game = packed_env.PackedEnv(gdlx.make("blind_tictactoe"))
mesh = jax.make_mesh((jax.device_count(),), ("games",), axis_types=(jax.sharding.AxisType.Auto,))
split = jax.sharding.PartitionSpec(None, "games")

def part(scores, chance):
    def step(state, given):
        actions = jnp.argmax(jnp.where(state.legal, given[0], -1.0), axis=1).astype(jnp.int32)
        return game.step(state, actions, given[1]), None
    state, _ = jax.lax.scan(step, game.start(chance.shape[1]), (scores, chance))
    return jnp.concatenate([*state.keys]), state.payoff

rng = np.random.default_rng(0)
scores, chance = rng.random((9, 2, 9, 192), np.float32), rng.random((9, 192), np.float32)
specs = (jax.sharding.PartitionSpec(None, None, None, "games"), split)
run = jax.jit(jax.shard_map(part, mesh=mesh, in_specs=specs, out_specs=(split, split), check_vma=False))
found = run(scores, chance)
assert len(found[0].sharding.device_set) == jax.device_count()
assert np.asarray(found[1]).any()
print(jax.device_count(), hashlib.sha256(b"".join(np.asarray(field).tobytes() for field in found)).hexdigest())
"""


def on_devices(count: int) -> list[str]:
    flags = xla_flags.environment_with_devices(count) | {"JAX_PLATFORMS": "cpu"}
    ran = subprocess.run([sys.executable, "-c", DEVICES], env=flags, capture_output=True, text=True, check=True)
    return ran.stdout.split()


def test_devices_change_nothing() -> None:
    one, two = on_devices(1), on_devices(2)
    assert (one[0], two[0]) == ("1", "2")
    assert one[1] == two[1]


@pytest.mark.parametrize("rows", [5, 128, 129, 200])
def test_hashes_of_many_rows_are_added_in_parts(rows: int) -> None:
    """The sums are those of `info_key.hash_bits`, however many rows there are."""
    random = np.random.default_rng(rows)
    events = random.integers(0, 2**32, (2, rows, 3), np.uint32)
    constants = info_key.hash_constants(rows, 1)
    hashed = jax.jit(functools.partial(word_arrays.hash_rows, table=constants))(events)
    bits = events[:, :, None, :] >> np.arange(32, dtype=np.uint32)[:, None] & 1
    for word, column in zip(hashed, constants.T, strict=True):
        np.testing.assert_array_equal(word, (bits * column[:, None, None]).sum(axis=1, dtype=np.uint32))


def test_programs_hardly_grow_with_moves_and_percepts() -> None:
    """A step of a game with four times the moves and percepts is no longer a program, so it compiles as fast."""

    def operations(sides: int) -> int:
        rolls = "".join(f"(side {n})" for n in range(sides))
        rules = """(role a) (role b) (<= (legal ?r (say ?n)) (role ?r) (side ?n)) (<= (next over) (does a (say 0)))
            (<= (sees ?r (said ?n)) (role ?r) (does b (say ?n))) (<= terminal (true over)) (goal a 1) (goal b 0)"""
        packed = packed_env.PackedEnv(make_env.make(rules=rules + rolls))
        state, draws = packed.start(64), jnp.zeros(64)

        def play(state: packed_env.PackedState) -> packed_env.PackedState:
            chosen = [table_rows.sample_actions(table_rows.uniform_policy(legal), draws) for legal in state.legal]
            return packed.step(state, jnp.stack(chosen), draws)

        return jax.jit(play).lower(state).as_text().count("stablehlo.")

    assert operations(320) < 1.2 * operations(80)


@pytest.mark.parametrize("actions", [3, 64, 65, 100])
def test_samples_from_many_actions_are_those_of_cumulative_sums(actions: int) -> None:
    random = np.random.default_rng(actions)
    weights = random.random((actions, 500)) * (random.random((actions, 500)) < 0.3)
    weights[random.integers(actions), :] += 0.1
    probabilities = (weights / weights.sum(axis=0)).astype(np.float32)
    draws = random.random(500, np.float32)
    draws[:2] = 0, np.float32(1 - 2**-24)
    chosen = np.asarray(table_rows.sample_actions(jnp.asarray(probabilities), jnp.asarray(draws)))
    expected = (draws >= np.cumsum(probabilities, axis=0, dtype=np.float32)).sum(axis=0)
    last = actions - 1 - np.argmax(probabilities[::-1] > 0, axis=0)
    np.testing.assert_array_equal(chosen, np.minimum(expected, last))
    assert (probabilities[chosen, np.arange(500)] > 0).all()


def test_legal_actions_come_back_from_their_words() -> None:
    legal = np.random.default_rng(0).random((70, 9)) < 0.5
    words = table_rows.pack_legal_mask(jnp.asarray(legal)).T
    np.testing.assert_array_equal(table_rows.unpack_legal_mask(words, jnp.arange(9), 70), legal)
