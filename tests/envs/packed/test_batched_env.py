"""Batches for programs of users against `Env` under vmap, step by step, which is compared with the interpreter too."""

import functools
import re
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
from gdlx.envs.packed import action_words, batched_env, lanes, turn_based
from gdlx.envs.views import observation_window
from gdlx.tests.envs.packed import test_packed_env
from gdlx.tests.helpers import matches, sheets, xla_flags

KUHN = functools.cache(lambda: gdlx.make("kuhn_poker"))
STEPS = 12
TRACKED = ("info_key", "window:3")


@functools.partial(jax.jit, static_argnames="game")
def replay(game: batched_env.BatchedEnv, actions: jax.Array, ranks: jax.Array) -> Any:
    """What is seen at first, and after each of int32[T, B, P] joint actions with int32[T, B] ranks of chance."""
    bits = game.env.num_chance_actions.bit_length()

    def view(states: batched_env.BatchedState) -> dict[str, jax.Array]:
        return {
            "legal_mask": game.legal(states).mask,
            "registers": game.observe(states, "state"),
            "info_key": game.info_key(states),
            "window": game.observe(states, "window"),
            "over": game.terminated(states),
            "payoff": game.rewards(states),
        }

    def step(states: batched_env.BatchedState, given: tuple[jax.Array, jax.Array]) -> tuple[Any, Any]:
        words = states.rows.shape[1]
        does = game.one_hot(given[0].T, words)
        after, timestep = game.advance(states, does, None, lanes.pack_numbers(given[1], bits, words))
        return after, (view(after), timestep)

    start = game.reset()
    return view(start), jax.lax.scan(step, start, (actions, ranks))[1]


@functools.partial(jax.jit, static_argnames="env")
def windows(env: envs.Env, states: envs.State) -> jax.Array:
    """bool[T + 1, B, P, O] windows along States [T + 1, B, ..]."""

    def one(states: envs.State) -> jax.Array:
        first = observation_window.init(env, jax.tree.map(lambda x: x[0], states), steps=3)

        def update(window: observation_window.Window, state: envs.State) -> tuple[observation_window.Window, jax.Array]:
            after = observation_window.update(window, state)
            return after, observation_window.to_tensor(after)

        later = jax.lax.scan(update, first, jax.tree.map(lambda x: x[1:], states))[1]
        return jnp.concatenate([observation_window.to_tensor(first)[None], later]) != 0

    return jax.vmap(one, in_axes=1, out_axes=1)(states)


def compare(env: envs.Env, *, batch: int, steps: int = STEPS, seed: int = 0) -> matches.MatchBatch:
    """Without automatic resets: states of matches that have ended stay the same."""
    played = matches.play_random(env, matches=batch, steps=steps, seed=seed)
    states: Any = played.states
    mask = states.chance_mask[:-1]
    ranks = (mask & (np.arange(mask.shape[2]) < played.chance[:, :, None])).sum(axis=2)
    game = env.batched(batch, track=TRACKED, auto_reset=False)
    first, (later, timesteps) = replay(game, np.maximum(states.actions[1:], 0), ranks)
    seen = windows(env, states)
    expected = {
        "legal_mask": states.legal_mask,
        "registers": states.registers,
        "info_key": states.info_key,
        "over": states.terminated,
        "payoff": np.cumsum(states.rewards, axis=0, dtype=np.float32),
        "window": np.asarray(seen),
    }
    live = ~states.terminated[:-1]
    for name, field in expected.items():
        assert np.array_equal(first[name], field[0]), name
        assert np.array_equal(later[name][live], field[1:][live]), name
    ended = states.terminated[1:]
    assert np.array_equal(timesteps.terminated, ended & ~states.unplayable[1:])
    assert np.array_equal(timesteps.truncated, states.unplayable[1:])
    assert np.array_equal(timesteps.discount, 1.0 - np.asarray(timesteps.terminated))
    assert np.array_equal(timesteps.rewards, states.rewards[1:])
    assert not np.asarray(timesteps.illegal)[live].any()
    return played


@pytest.mark.parametrize(
    "game",
    [
        game if game in test_packed_env.IN_DEFAULT else pytest.param(game, marks=pytest.mark.slow)
        for game in test_packed_env.GAMES
    ],
)
def test_it_plays_as_the_environment(game: str) -> None:
    assert compare(gdlx.make(game), batch=45).states.terminated[-1].any() or game not in test_packed_env.IN_DEFAULT


@pytest.mark.parametrize("odd", test_packed_env.ODD)
def test_it_plays_odd_games_as_the_environment(odd: str) -> None:
    compare(test_packed_env.ODD[odd](), batch=7, steps=7)


def test_matches_agree_with_the_rules() -> None:
    env = gdlx.make("leduc_poker")
    actual = compare(env, batch=1_100, steps=9)  # three chunks, the last one not full
    sheet = gdlx.propnet.games.load_rulesheet("leduc_poker")
    assert matches.compare_with_rules(env, sheet, actual, range(5)) > 20


@pytest.mark.parametrize("batch", [1, 33, pytest.param(512, marks=pytest.mark.slow), 513])
def test_any_batch(batch: int) -> None:
    game = gdlx.make("kuhn_poker").batched(batch, track=("info_key", "infostate"))

    @jax.jit
    def play(states: batched_env.BatchedState, key: jax.Array) -> Any:
        legal = game.legal(states)
        chosen = gdlx.random_actions(key, legal)
        by_index, _ = game.step(states, chosen.index, key)
        after, timestep = game.step(states, chosen, key)
        return after, timestep, legal.mask, chosen.index, used(game, by_index), used(game, after)

    states, key = game.reset(), jax.random.key(batch)
    for number in range(3):
        states, timestep, mask, index, *both = play(states, jax.random.fold_in(key, number))
        assert mask.shape == (batch, 2, 5)
        assert np.take_along_axis(np.asarray(mask), np.asarray(index)[:, :, None], axis=2).all()
        assert jax.tree.all(jax.tree.map(np.array_equal, *both))
        assert not timestep.illegal.any()
        assert timestep.rewards.shape == (batch, 2)
    keys, seen = jax.jit(lambda states: (game.info_key(states), game.observe(states, "infostate", player=1)))(states)
    assert keys.shape == (batch, 2, 2)
    assert seen.shape == (batch, game.observation_size("infostate"))


def used(game: batched_env.BatchedEnv, states: batched_env.BatchedState) -> Any:
    """The lanes that are games."""
    rows = lanes.unpack(states.rows)[..., : game.batch]
    return rows, states.key_words[..., : game.batch], lanes.unpack(states.window)[..., : game.batch]


def test_games_that_end_start_again() -> None:
    """And the time step still has the state in which they ended."""
    env = gdlx.make("kuhn_poker")
    game = env.batched(200, track=("info_key", "window:2"))

    @jax.jit
    def play(states: batched_env.BatchedState, key: jax.Array) -> Any:
        keys = jax.random.split(key)
        return game.step(states, gdlx.random_actions(keys[0], game.legal(states)), keys[1])

    view = jax.jit(lambda states: (game.terminated(states), game.rewards(states), used(game, states)))
    states, key, ended = game.reset(), jax.random.key(0), 0
    fresh = view(states)[2]
    for number in range(12):
        states, timestep = play(states, jax.random.fold_in(key, number))
        over = np.asarray(timestep.terminated)
        ended += over.sum()
        terminated, _, now_used = view(states)
        assert not terminated.any()
        terminated, rewards, _ = view(timestep.final)
        assert np.array_equal(terminated, over)
        assert np.array_equal(rewards, timestep.rewards)
        assert (np.asarray(timestep.rewards)[over] != 0).all()
        assert (np.asarray(timestep.rewards)[~over] == 0).all()
        for now, first in zip(now_used, fresh, strict=True):
            assert np.array_equal(np.asarray(now)[..., over], np.asarray(first)[..., over])
    assert ended > 200


def test_a_limit_on_steps_truncates() -> None:
    game = gdlx.make("tictactoe", max_steps=4).batched(40)
    states, truncated, step = game.reset(), [], jax.jit(game.step)
    for _ in range(8):
        states, timestep = step(states, game.legal(states).first())
        truncated.append(bool(timestep.truncated.all()))
        assert timestep.discount.all()
    assert truncated == [False, False, False, True] * 2


@functools.cache
def kuhn_step() -> Any:
    return jax.jit(KUHN().batched(50, track=TRACKED).step)


@pytest.mark.parametrize("wrong", [5, -1, 99, 2**31 - 1, -(2**31)])
def test_illegal_actions(wrong: int) -> None:
    """Also such as share their low bits with legal ones: the game stays, and the player is named."""
    game = KUHN().batched(50, track=TRACKED)
    states, _ = kuhn_step()(game.reset(), game.legal(game.reset()).first().index, jax.random.key(0))
    actions = np.asarray(game.legal(states).first().index).copy()
    actions[7, 1] = wrong
    after, timestep = kuhn_step()(states, jnp.asarray(actions), jax.random.key(1))
    assert np.argwhere(timestep.illegal).tolist() == [[7, 1]]
    for now, before in zip(used(game, after), used(game, states), strict=True):
        assert np.array_equal(now[..., 7], before[..., 7])
    assert (np.asarray(used(game, after)[0]) != np.asarray(used(game, states)[0])).any(axis=0).sum() == 49


def test_chance_is_uniform() -> None:
    """Three cards to each player: a chi-square test, 8 degrees of freedom, at 1e-6."""
    game = gdlx.make("kuhn_poker").batched(90_000)
    states, key, step = game.reset(), jax.random.key(3), jax.jit(game.step)
    for number in range(2):
        states, _ = step(states, game.legal(states).first(), jax.random.fold_in(key, number))
    seen = np.asarray(game.observe(states, "state"))
    _, counts = np.unique(seen, axis=0, return_counts=True)
    assert len(counts) == 6
    assert ((counts - 15_000) ** 2 / 15_000).sum() < 40


@pytest.mark.parametrize("actions", [1, 7, 65, pytest.param(300, marks=pytest.mark.slow)])
@pytest.mark.parametrize("form", ["words", "mask"])
def test_choices_are_uniform(actions: int, form: str) -> None:
    """A chi-square test over the legal actions of each of three masks, and none where nothing is legal."""
    batch, random = 60_000, np.random.default_rng(actions)
    masks = random.random((3, actions)) < 0.6
    masks[:, 0] |= ~masks.any(axis=1)
    masks[2] = False
    full = np.broadcast_to(masks, (batch, 3, actions))
    key = jax.random.key(actions)
    if form == "mask":
        chosen = np.asarray(jax.jit(gdlx.random_actions)(key, jnp.asarray(full)))
    else:
        words = np.where(masks, np.uint32(0xFFFFFFFF), np.uint32(0))[:, :, None]
        legal = action_words.LegalActions(jnp.asarray(np.repeat(words, lanes.words_for(batch), axis=2)), batch)
        mask, first = jax.jit(lambda legal: (legal.mask[:100], legal.first().index[:100]))(legal)
        assert np.array_equal(mask, full[:100])
        assert np.array_equal(first, np.broadcast_to(masks.argmax(axis=1), (100, 3)))
        chosen = np.asarray(jax.jit(gdlx.random_actions)(key, legal).index)
    for player in range(2):
        counts, legal_count = np.bincount(chosen[:, player], minlength=actions), masks[player].sum()
        assert (counts[~masks[player]] == 0).all()
        mean = batch / legal_count
        free = max(legal_count - 1, 1)
        statistic = ((counts[masks[player]] - mean) ** 2 / mean).sum()
        assert statistic < free + 6 * np.sqrt(2 * free) + 12
    assert (chosen[:, 2] == 0).all()
    if actions > 2:  # players are independent
        assert abs(np.corrcoef(chosen[:, 0], chosen[:, 1])[0, 1]) < 0.03


def test_turns() -> None:
    """The current player's views are its part of those of all; the others' actions are forced."""
    env = gdlx.make("leduc_poker")
    game = env.batched(300, track=("info_key", "infostate"))
    turns = game.turn_based()

    @jax.jit
    def play(states: batched_env.BatchedState, key: jax.Array) -> Any:
        first, second = jax.random.split(key)
        chosen = gdlx.random_actions(first, turns.legal(states))
        views = game.legal(states).mask, game.info_key(states), game.observe(states, "infostate")
        own = (
            turns.current_player(states),
            turns.legal(states).mask,
            turns.info_key(states),
            turns.observe(states, "infostate"),
        )
        deciders = views[0].sum(axis=2) > 1
        joint = jnp.where(deciders, chosen.index[:, None], views[0].argmax(axis=2))
        by_all, by_index = game.step(states, joint, second), turns.step(states, chosen.index, second)
        after, timestep = turns.step(states, chosen, second)
        others = [(used(game, other), reached.rewards) for other, reached in (by_all, by_index)]
        return after, views, own, others, (used(game, after), timestep.rewards), timestep.illegal

    states, key, seen = turns.reset(), jax.random.key(0), set()
    for number in range(15):
        states, (mask, keys, views), own, others, reached, illegal = play(states, jax.random.fold_in(key, number))
        player = np.asarray(own[0])
        seen |= set(player.tolist())
        deciders = np.asarray(mask).sum(axis=2) > 1
        assert np.array_equal(player, np.where(deciders.any(axis=1), deciders.argmax(axis=1), -1))
        assert np.array_equal(own[1], np.where(deciders[:, :, None], mask, False).any(axis=1))
        at = np.flatnonzero(player >= 0)
        assert np.array_equal(np.asarray(own[2])[at], np.asarray(keys)[at, player[at]])
        assert np.array_equal(np.asarray(own[3])[at], np.asarray(views)[at, player[at]])
        assert not np.asarray(own[3])[player < 0].any()
        for other in others:
            assert jax.tree.all(jax.tree.map(np.array_equal, other, reached))
        assert not illegal.any()
    assert seen == {-1, 0, 1}


DEVICES = """
import hashlib
import jax, jax.numpy as jnp, numpy as np
import gdlx

mesh = jax.make_mesh((jax.device_count(),), ("games",), axis_types=(jax.sharding.AxisType.Auto,))
game = gdlx.make("kuhn_poker").batched(512 * 8, track=("info_key", "window:2"), mesh=mesh).turn_based()

@jax.jit
def run(key):
    def step(states, key):
        first, second = jax.random.split(key)
        actions = gdlx.random_actions(first, game.legal(states))
        states, timestep = game.step(states, actions, second)
        seen = game.legal(states).mask, game.observe(states, "window"), game.info_key(states), actions.index
        return states, (timestep.rewards, timestep.terminated, seen)
    return jax.lax.scan(step, game.reset(), jax.random.split(key, 9))

states, seen = run(jax.random.key(0))
assert len(states.rows.sharding.device_set) == jax.device_count()
assert np.asarray(seen[1]).any()
fields = jax.tree.leaves((states, seen))
print(jax.device_count(), hashlib.sha256(b"".join(np.asarray(field).tobytes() for field in fields)).hexdigest())
"""


def test_devices_change_nothing() -> None:
    collected = []
    for count in (1, 8):
        flags = xla_flags.environment_with_devices(count) | {"JAX_PLATFORMS": "cpu"}
        ran = subprocess.run([sys.executable, "-c", DEVICES], env=flags, capture_output=True, text=True, check=True)
        collected.append(ran.stdout.split())
    assert [count for count, _ in collected] == ["1", "8"]
    assert collected[0][1] == collected[1][1]


@pytest.mark.parametrize("game", ["meier", "maze"])
def test_it_lowers_for_accelerators(game: str) -> None:
    env = test_packed_env.ODD["maze"]() if game == "maze" else gdlx.make(game)
    many = env.batched(70, track=TRACKED)

    def run(seed: jax.Array) -> Any:
        def step(states: batched_env.BatchedState, number: jax.Array) -> Any:
            key = jax.random.fold_in(jax.random.key(seed), number)
            states, timestep = many.step(states, gdlx.random_actions(key, many.legal(states)), key)
            return states, (timestep.rewards, many.observe(states, "window"), many.info_key(states))

        return jax.lax.scan(step, many.reset(), jnp.arange(3))[1]

    exported = jax.export.export(jax.jit(run), platforms=test_packed_env.PLATFORMS)(0)
    assert exported.platforms == test_packed_env.PLATFORMS
    assert not any(name in exported.mlir_module() for name in ("f64", "i64>>"))


def test_programs_hardly_grow_with_moves_and_percepts() -> None:
    def operations(sides: int) -> int:
        rolls = "".join(f"(side {n})" for n in range(sides))
        rules = """(role a) (role b) (<= (legal ?r (say ?n)) (role ?r) (side ?n)) (<= (next over) (does a (say 0)))
            (<= (sees ?r (said ?n)) (role ?r) (does b (say ?n))) (<= terminal (true over)) (goal a 1) (goal b 0)"""
        game = gdlx.make(rules=rules + rolls).batched(64, track=TRACKED)

        def play(states: batched_env.BatchedState, key: jax.Array) -> Any:
            words, mask = (gdlx.random_actions(key, legal) for legal in (game.legal(states), game.legal(states).mask))
            states, _ = game.step(states, words)
            return game.step(states, mask), game.legal(states).first().index

        return jax.jit(play).lower(game.reset(), jax.random.key(0)).as_text().count("stablehlo.")

    assert operations(320) < 1.3 * operations(80)


def test_render() -> None:
    game = gdlx.make("tictactoe").batched(1_000)
    moves = np.tile([9, 9], (1_000, 1))
    states = game.reset()
    moves[:, 0] = np.arange(1_000) % 9
    states, _ = jax.jit(game.step)(states, jnp.asarray(moves))
    masks = np.asarray(jax.jit(lambda states: game.legal(states).mask)(states))
    for number in (0, 31, 517, 999):
        mask = masks[number, 1]
        text = game.render(states, number)
        assert f"game {number:,} of 1,000" in text
        assert text.splitlines()[-1].count("(mark") == mask.sum() == 8
        played = game.env.propnet.players[0].moves[number % 9]
        assert played not in text.splitlines()[-1]


def test_a_large_batch_of_a_game_without_chance() -> None:
    """Of so many words that tapes run in groups, also one that has nothing to do."""
    game = gdlx.make("tictactoe").batched(70_000)

    @jax.jit
    def play(key: jax.Array) -> Any:
        states, timestep = game.step(game.reset(), gdlx.random_actions(key, game.legal(game.reset())))
        return game.legal(states).mask[:, 1].sum(axis=1), timestep.illegal

    options, illegal = play(jax.random.key(0))
    assert (np.asarray(options) == 8).all()
    assert not illegal.any()


def other_batch() -> tuple[batched_env.BatchedState, action_words.ActionWords]:
    game, other = KUHN().batched(8), KUHN().batched(99)
    return game.reset(), other.legal(other.reset()).first()


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: KUHN().batched(0), "a batch of kuhn_poker needs 1 or more games; got 0"),
        (lambda: KUHN().batched(True), "got True"),
        (lambda: KUHN().batched(8, track="windows:3"), "'windows:3' is no encoder of observations"),
        (lambda: KUHN().batched(8, track="window:0"), "window:T with T steps, as window:4"),
        (lambda: KUHN().batched(8, track=("window:2", "infostate")), "takes one of window:2 and infostate"),
        (lambda: KUHN().batched(8).info_key(KUHN().batched(8).reset()), 'track=("info_key",)'),
        (lambda: KUHN().batched(8).observe(KUHN().batched(8).reset(), "window:2"), "track=('window:2',)"),
        (lambda: KUHN().batched(8).step(KUHN().batched(8).reset(), jnp.zeros((8, 2), int)), "pass a key to step"),
        (
            lambda: KUHN().batched(8).step(KUHN().batched(8).reset(), jnp.zeros((8, 2)), jax.random.key(0)),
            "must be integers of shape (8, 2), one for each of player1, player2; got float32 of shape (8, 2)",
        ),
        (
            lambda: KUHN().batched(8).step(KUHN().batched(8).reset(), jnp.zeros((7, 2), int), jax.random.key(0)),
            "got int32 of shape (7, 2)",
        ),
        (
            lambda: (
                KUHN()
                .batched(8)
                .step(KUHN().batched(8).reset(), KUHN().batched(99).legal(KUHN().batched(99).reset()).first())
            ),
            "pass a key",
        ),
        (lambda: gdlx.make("rps").batched(4).turn_based(), "rps is not turn-taking"),
        (lambda: gdlx.make("rps", track="percept"), "`track=` takes info_key, percepts and actions; got 'percept'"),
        (lambda: gdlx.make("rps").tracking("keys"), "got 'keys'"),
        (lambda: gdlx.make("rps").init().info_key, 'gdlx.make(.., track=("info_key",))'),
        (
            lambda: gdlx.make("rps").step(gdlx.make("tictactoe").init(), jnp.zeros(2, int), None),
            "the state is of another game than rps",
        ),
        (lambda: gdlx.random_actions(jax.random.key(0), jnp.zeros((3, 2))), "must be bool[.., actions]"),
    ],
)
def test_mistakes(act: Any, message: str) -> None:
    with pytest.raises(envs.EnvError, match=re.escape(message)):
        act()


def test_a_mesh_needs_whole_chunks() -> None:
    mesh = jax.make_mesh((1,), ("games",), axis_types=(jax.sharding.AxisType.Auto,))
    with pytest.raises(envs.EnvError, match="must be a multiple of 512 games"):
        KUHN().batched(100, mesh=mesh)


def test_two_deciders_in_a_game_that_only_seemed_to_be_turn_taking() -> None:
    """The second one is named, and the game stays."""
    env = sheets.make_env(sheets.COINS)
    game = env.batched(5)
    turns = object.__new__(turn_based.TurnBasedBatch)
    object.__setattr__(turns, "batched", game)
    states = turns.reset()
    step = jax.jit(lambda states: turns.step(states, jnp.zeros(5, jnp.int32), jax.random.key(0)))
    after, timestep = step(states)
    assert timestep.illegal.tolist() == [[False, True]] * 5
    assert np.array_equal(used(game, after)[0], used(game, states)[0])


@functools.partial(jax.jit, static_argnames="words")
def both_ways(values: jax.Array, words: int) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Bits, the same packed again, and games side by side, as one program."""
    bits = lanes.unpack(values)
    return bits, lanes.pack(bits, words), lanes.unpack_games(values)


@pytest.mark.parametrize("rows", [1, 20, 32, 70])
@pytest.mark.parametrize("words", [1, 5, 16, 48])
def test_lanes(rows: int, words: int) -> None:
    """Packing is the inverse of unpacking, and games side by side are the transpose."""
    values = np.random.default_rng(rows).integers(0, 2**32, (rows, words), np.uint32)
    bits, packed, games = both_ways(jnp.asarray(values), words)
    assert np.array_equal(packed, values)
    assert np.array_equal(games, np.asarray(bits).T != 0)
    size = min(words, lanes.CHUNK_WORDS)
    for game in (0, 33 % (32 * words), 32 * words - 1):
        chunk, within = divmod(game, 32 * size)
        lane, word = divmod(within, size)
        assert np.array_equal(np.asarray(bits)[:, game], values[:, chunk * size + word] >> np.uint32(lane) & 1)
