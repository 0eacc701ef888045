"""The contract of `Env`, over every game of the library, and what it does with wrong calls and odd games."""

import functools
import itertools
import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

import gdlx
from gdlx.envs import env as envs
from gdlx.envs import game_facts, host, payoffs
from gdlx.envs.lowering import lower
from gdlx.envs.packed import packed_env, sharded_playouts
from gdlx.envs.views import public
from gdlx.propnet import games, library
from gdlx.propnet.common import errors
from gdlx.propnet.syntax import diagnostics
from gdlx.tests.helpers import matches, sheets, support

STEPS = {"battleship": 36, "connect_four": 44, "smallest": 26, "simultaneous_breakthrough": 30, "krieg_tictactoe": 26}
DOZEN = (
    "blind_tictactoe",
    "connect_four",
    "goofspiel",
    "kuhn_poker",
    "leduc_poker",
    "meier",
    "monty_hall",
    "phantom_tictactoe",
    "princess_and_monster",
    "rps",
    "smallest",
    "tictactoe",
)
IN_DEFAULT = ("kuhn_poker", "monty_hall", "smallest")

made = functools.cache(functools.partial(gdlx.make, track=matches.TRACKED))


def steps_of(game: str) -> int:
    return STEPS.get(game, 16)


def same(left: envs.State, right: envs.State, *, but: tuple[str, ...] = ()) -> bool:
    names = [name for name in matches.FIELDS if name not in but]
    return all(np.array_equal(np.asarray(getattr(left, name)), np.asarray(getattr(right, name))) for name in names)


@pytest.mark.parametrize("game", library.names())
def test_the_contract(game: str) -> None:
    env = made(game)
    played = matches.play_random(env, matches=40, steps=steps_of(game))
    states = played.states
    players, actions = env.num_players, env.num_actions
    shapes = {
        "registers": ((len(env.propnet.initial),), np.bool_),
        "legal_mask": ((players, actions), np.bool_),
        "chance_mask": ((env.num_chance_actions,), np.bool_),
        "percepts": ((players, env.num_percepts), np.bool_),
        "actions": ((players,), np.int32),
        "rewards": ((players,), np.float32),
        "goals": ((players,), np.int32),
        "terminated": ((), np.bool_),
        "unplayable": ((), np.bool_),
        "goal_conflict": ((), np.bool_),
        "illegal": ((players,), np.bool_),
        "illegal_chance": ((), np.bool_),
        "info_key": ((players, 2), np.uint32),
        "step": ((), np.int32),
    }
    assert tuple(shapes) == matches.FIELDS
    for name, (shape, dtype) in shapes.items():
        field = getattr(states, name)
        assert (field.shape, field.dtype) == ((steps_of(game) + 1, 40, *shape), dtype), name

    for name in ("illegal", "illegal_chance", "unplayable", "goal_conflict"):
        assert not getattr(states, name).any(), name
    assert (states.actions[0] == -1).all()
    assert not states.percepts[0].any()
    over = states.terminated
    assert over.any()
    assert not states.legal_mask[over].any()
    assert not states.chance_mask[over].any()
    assert states.legal_mask[~over].any(axis=2).all()

    ends = over[1:] & ~over[:-1]
    assert np.array_equal(states.rewards[1:][ends], states.goals[1:][ends] - np.float32(env.payoffs.offset))
    assert not states.rewards[1:][~ends].any()
    assert not states.goals[~over].any()
    if env.payoffs.zero_sum:
        assert not states.rewards.sum(axis=2).any()

    moved = ~over[:-1]
    assert (states.step[1:] == states.step[:-1] + moved).all()
    for name in matches.FIELDS:
        if name != "rewards":
            assert np.array_equal(getattr(states, name)[1:][~moved], getattr(states, name)[:-1][~moved]), name
    assert (states.info_key[1:][moved] != states.info_key[:-1][moved]).any(axis=-1).all()

    compared = matches.compare_with_rules(env, games.load_rulesheet(game), played, range(3))
    assert compared >= 6
    for role in env.propnet.roles:
        for names in (role.moves, role.percepts, role.goal_values):
            assert list(names) == sorted(names)


@pytest.mark.parametrize(
    "game", [game if game in IN_DEFAULT else pytest.param(game, marks=pytest.mark.slow) for game in DOZEN]
)
def test_every_form_plays_the_same(game: str) -> None:
    auto = made(game)
    expected = matches.play_random(auto, matches=40, steps=steps_of(game))
    on_cpu = jax.default_backend() == "cpu"  # where auto is rolled
    forms: list[lower.LoweringMode] = ["rolled", "levelled", "straight"]
    if on_cpu and game in IN_DEFAULT:
        forms.remove("rolled")
    for form in forms:
        played = matches.play_random(envs.Env(auto.propnet, auto.payoffs, form), matches=40, steps=steps_of(game))
        assert same(played.states, expected.states), form


@functools.cache
def kuhn() -> tuple[envs.Env, "jax.stages.Wrapped"]:
    env = made("kuhn_poker")
    return env, jax.jit(env.step)


def dealt() -> envs.State:
    """Kuhn poker after the deal: the first player may bet or check, the second may do nothing."""
    env, step = kuhn()
    state = env.init()
    for deal in (0, 2):
        state = step(state, jnp.array([4, 4]), None, jnp.asarray(deal))
    return state


def test_vmap_is_a_loop_and_jit_changes_nothing() -> None:
    env, step = kuhn()
    played = matches.play_random(env, matches=6, steps=5)
    for match in range(6):
        states = played.states_of(match)
        for t, (before, after) in enumerate(itertools.pairwise(states)):
            chance = jnp.asarray(played.chance[t, match])
            assert same(step(before, jnp.asarray(after.actions), None, chance), after)
    rps = made("rps")
    start, end = matches.play_random(rps, matches=1, steps=1).states_of(0)
    assert same(rps.init(), start)
    assert same(rps.step(start, jnp.asarray(end.actions), None), end)


@pytest.mark.parametrize("batch", [1, 31, 128, 130, 1_000])
def test_batches_of_any_size(batch: int) -> None:
    """Whatever the words are that games share, each is stepped as if alone."""
    env, step = kuhn()
    states = jax.tree.map(lambda x: jnp.broadcast_to(x, (batch, *x.shape)), env.init())
    deals, deal = np.arange(batch) % 3, jnp.broadcast_to(jnp.array([4, 4]), (batch, 2))
    after = jax.jit(jax.vmap(lambda state, actions, card: env.step(state, actions, None, card)))(states, deal, deals)
    alone = [step(env.init(), jnp.array([4, 4]), None, jnp.asarray(card)) for card in range(3)]
    expected = jax.tree.map(lambda *fields: jnp.stack(fields)[deals], *alone)
    assert same(after, expected)


def test_states_are_lean() -> None:
    """What is not tracked is not there, and tracking changes nothing else."""
    lean, full = gdlx.make("kuhn_poker"), made("kuhn_poker")
    assert len(jax.tree.leaves(lean.init())) == 2
    assert lean.init().words.shape == (2,)
    assert len(jax.tree.leaves(full.init())) == 4
    assert lean.tracking() is lean
    assert lean.tracking("percepts") is lean.tracking("percepts")
    only = lean.tracking("info_key")
    step = [jax.jit(env.step) for env in (lean, full, only)]
    states = [env.init() for env in (lean, full, only)]
    for number, actions in enumerate(([4, 4], [4, 4], [0, 4], [4, 1])):
        key = jax.random.key(number)
        states = [one(state, jnp.array(actions), key) for one, state in zip(step, states, strict=True)]
        assert same(states[0], states[1], but=matches.TRACKED)
        assert np.array_equal(states[2].info_key, states[1].info_key)
        with pytest.raises(envs.EnvError, match="track="):
            _ = states[2].percepts
    assert bool(states[0].terminated)


def test_vmaps_may_be_nested() -> None:
    env, _ = kuhn()
    keys = jax.random.split(jax.random.key(0), (3, 5))
    state = env.init()
    deal = jnp.array([4, 4])
    once = jax.vmap(env.step, in_axes=(None, None, 0))
    flat = jax.jit(once)(state, deal, keys.reshape(15))
    nested = jax.jit(jax.vmap(once, in_axes=(None, None, 0)))(state, deal, keys)
    assert same(jax.tree.map(lambda field: field.reshape(15, *field.shape[2:]), nested), flat)


def test_a_reset_in_a_vmapped_cond() -> None:
    """As loops for training have it, and as jax's own custom_vmap would not allow."""
    env = made("rps")

    @jax.jit
    @jax.vmap
    def step(state: envs.State, actions: jax.Array) -> envs.State:
        after = env.step(state, actions, None)
        chosen: envs.State = jax.lax.cond(state.terminated, lambda: env.init(), lambda: after)
        return chosen

    start = jax.jit(jax.vmap(lambda _: env.init()))(jnp.arange(3))
    over = step(start, jnp.zeros((3, 2), jnp.int32))
    assert over.terminated.all()
    assert same(step(over, jnp.zeros((3, 2), jnp.int32)), start)


def test_the_first_use_may_be_inside_a_jit() -> None:
    """Nothing that was computed while tracing may stay behind in the environment."""
    env = gdlx.make("rps")
    state = jax.jit(env.init)(jax.random.key(0))
    assert int(jax.jit(env.step)(state, jnp.array([0, 1]), jax.random.key(0)).step) == 1


def test_a_policy_can_be_differentiated_through_a_match() -> None:
    env = made("rps")

    def loss(logits: jax.Array, key: jax.Array) -> jax.Array:
        actions = jax.random.categorical(key, logits, axis=-1)
        after = env.step(env.init(), actions, None)
        chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), actions[:, None], axis=1)[:, 0]
        return jnp.sum(chosen * after.rewards)

    keys = jax.random.split(jax.random.key(0), 64)
    mean = jax.grad(lambda logits: jax.vmap(loss, in_axes=(None, 0))(logits, keys).mean())
    actual = jax.jit(mean)(jnp.zeros((2, 3)))
    assert actual.shape == (2, 3)
    assert np.isfinite(actual).all()
    assert np.abs(actual).max() > 0


@pytest.mark.parametrize(
    ("actions", "whose"),
    [
        ([3, 4], [True, False]),
        ([0, 0], [False, True]),
        ([5, 4], [True, False]),
        ([-1, 99], [True, True]),
        (np.array([2**32 - 1, 4], np.uint32), [True, False]),
        (np.array([-128, 4], np.int8), [True, False]),
    ],
)
def test_illegal_actions_are_told_and_not_made(actions: "list[int] | np.ndarray", whose: list[bool]) -> None:
    _, step = kuhn()
    before = dealt()
    after = step(before, jnp.asarray(actions), jax.random.key(0), None)
    assert after.illegal.tolist() == whose
    assert same(after, before, but=("illegal",))
    mended = step(after, jnp.array([0, 4], jnp.uint8), jax.random.key(0), None)
    assert not mended.illegal.any()
    assert int(mended.step) == int(before.step) + 1


def test_an_illegal_move_of_chance_is_told_and_not_made() -> None:
    env, step = kuhn()
    first = env.init()
    once = step(first, jnp.array([4, 4]), None, jnp.asarray(0))
    again = step(once, jnp.array([4, 4]), None, jnp.asarray(0))  # the same card
    assert bool(again.illegal_chance)
    assert not again.illegal.any()
    assert same(again, once, but=("illegal_chance",))
    for wild in (-1, 99):
        assert bool(step(first, jnp.array([4, 4]), None, jnp.asarray(wild)).illegal_chance)


def test_a_finished_game_takes_any_action() -> None:
    env = made("rps")
    over = env.step(env.init(), jnp.array([0, 1]), None)
    assert over.rewards.tolist() == [50.0, -50.0]
    after = env.step(over, jnp.array([77, -3]), None)
    assert not after.illegal.any()
    assert after.rewards.tolist() == [0.0, 0.0]
    assert same(after, over, but=("rewards",))


@pytest.mark.parametrize(
    ("actions", "words"),
    [
        ([0], r"int32 of shape \(1,\)"),
        ([[0, 1]], r"shape \(1, 2\).*jax.vmap"),
        (0, r"shape \(\)"),
        ([0.0, 1.0], "float32"),
        ([True, False], "bool"),
    ],
)
def test_a_joint_action_of_the_wrong_kind(actions: object, words: str) -> None:
    env = made("rps")
    with pytest.raises(envs.EnvError, match=f"(?s)joint_action of rps.*player1, player2.*{words}"):
        env.step(env.init(), jnp.asarray(actions), None)


def test_chance_of_the_wrong_kind() -> None:
    env, _ = kuhn()
    deal = jnp.array([4, 4])
    with pytest.raises(envs.EnvError, match="pass `key=` or `chance_action=` to step"):
        env.step(env.init(), deal, None)
    with pytest.raises(envs.EnvError, match="chance_action of kuhn_poker must be one integer"):
        env.step(env.init(), deal, None, jnp.array([0]))
    with pytest.raises(envs.EnvError, match="chance_action of kuhn_poker must be one integer"):
        env.step(env.init(), deal, None, jnp.asarray(0.5))
    rps = made("rps")
    with pytest.raises(envs.EnvError, match="no random role"):
        rps.step(rps.init(), jnp.array([0, 0]), None, jnp.asarray(0))


def test_what_cannot_be_made() -> None:
    with pytest.raises(library.LibraryError, match="no game 'tictacto'"):
        gdlx.make("tictacto")
    with pytest.raises(library.LibraryError, match="cards must be"):
        gdlx.make("goofspiel:cards=0")
    with pytest.raises(FileNotFoundError):
        gdlx.make("nowhere/nothing.gdl")
    with pytest.raises(envs.EnvError, match="max_steps"):
        gdlx.make("rps", max_steps=-1)
    with pytest.raises(envs.EnvError, match="auto, rolled, levelled"):
        gdlx.make("rps", form="curly")  # type: ignore[arg-type]
    with pytest.raises(diagnostics.GdlError):
        support.read("(role a)")


def test_chance_is_drawn_uniformly_from_the_key() -> None:
    env = made("kuhn_poker")
    start = env.init()
    draw = jax.jit(jax.vmap(lambda key: env.step(start, jnp.array([4, 4]), key)))
    keys = jax.random.split(jax.random.key(0), 3_000)
    states = jax.device_get(draw(keys))
    _, step = kuhn()
    given = [step(env.init(), jnp.array([4, 4]), None, jnp.asarray(n)) for n in range(3)]
    matching = np.array([(states.registers == np.asarray(state.registers)).all(axis=1) for state in given])
    assert (matching.sum(axis=0) == 1).all()
    assert scipy.stats.chisquare(matching.sum(axis=1)).pvalue > 1e-4
    assert same(jax.device_get(draw(keys)), states)  # the same key, the same result


def test_rewards_are_payoffs_or_goals() -> None:
    chips, goals = made("kuhn_poker"), gdlx.make("kuhn_poker", payoff="goal")
    assert (chips.payoffs.offset, goals.payoffs.offset) == (50.0, 0.0)
    _, step = kuhn()
    state = dealt()
    for actions in ([2, 4], [4, 2]):  # check, check: jack against queen loses the ante
        state = step(state, jnp.array(actions), None, jnp.asarray(3))
    assert state.rewards.tolist() == [-1.0, 1.0]
    assert state.goals.tolist() == [49, 51]
    state = goals.init()
    for actions, chance in (([4, 4], 0), ([4, 4], 2), ([2, 4], 3), ([4, 2], 3)):
        state = goals.step(state, jnp.array(actions), None, jnp.asarray(chance))
    assert state.rewards.tolist() == [49.0, 51.0]


def test_the_step_limit() -> None:
    env = sheets.make_env(sheets.ENDLESS, max_steps=3)
    step = jax.jit(env.step)
    go, stop, off, on = 0, 1, 0, 1
    assert (env.propnet.roles[0].moves, env.propnet.roles[1].moves) == (("go", "stop"), ("off", "on"))
    state = env.init()
    for number in range(3):
        assert not bool(state.terminated), number
        state = step(state, jnp.array([go]), None, jnp.asarray(off))
    assert (bool(state.terminated), bool(state.unplayable), state.rewards.tolist()) == (True, True, [0.0])
    state = env.init()
    for actions, chance in ((go, off), (go, off), (stop, on)):
        state = step(state, jnp.array([actions]), None, jnp.asarray(chance))
    assert (bool(state.terminated), bool(state.unplayable), state.goals.tolist()) == (True, False, [50])


def test_a_state_without_a_legal_move_ends_as_unplayable() -> None:
    env = sheets.make_env(sheets.DEAD_END)
    hole = env.propnet.roles[0].moves.index("(go hole)")
    state = jax.jit(lambda: env.step(env.init(), jnp.array([hole, 0]), None))()
    assert (bool(state.terminated), bool(state.unplayable)) == (True, True)
    assert not state.legal_mask.any()
    assert state.rewards.tolist() == [0.0, 0.0]


def test_the_highest_goal_counts_and_a_conflict_is_told() -> None:
    env = sheets.make_env(sheets.CONFLICTS)
    actual = jax.jit(jax.vmap(lambda first: env.step(env.init(), jnp.stack([first, 0]), None)))(jnp.arange(4))
    assert actual.goals.tolist() == [[20, 80], [100, 10], [0, 10], [30, 70]]
    assert actual.goal_conflict.tolist() == [False, True, True, True]


def test_a_game_that_is_over_at_once() -> None:
    state = sheets.make_env(sheets.OVER_AT_ONCE).init()
    assert (bool(state.terminated), state.goals.tolist(), state.rewards.tolist()) == (True, [100], [100.0])
    assert not state.legal_mask.any()


def test_a_game_without_moves_of_chance() -> None:
    idle = sheets.make_env(
        "(role a) (role random) (legal a x) (legal a y) (<= (legal random z) (true never)) "
        "(<= (next done) (does a x)) (<= terminal (true done)) (goal a 50)"
    )
    assert (idle.num_chance_actions, bool(idle.init().unplayable)) == (0, True)
    assert bool(jax.jit(idle.step)(idle.init(), jnp.array([0]), None).unplayable)


@pytest.mark.parametrize("iterated", [False, True])
def test_recursion_through_state(iterated: bool) -> None:
    env = sheets.make_env(sheets.MAZE, iterated=iterated)
    played = matches.play_random(env, matches=10, steps=7)
    assert matches.compare_with_rules(env, support.read(sheets.MAZE), played, range(10)) > 30
    assert played.states.goals.max() == 100  # somebody got through


def test_players_and_chance_at_the_same_time() -> None:
    env = sheets.make_env(sheets.COINS)
    assert env.players == ("odd", "even")
    played = matches.play_random(env, matches=10, steps=3)
    assert matches.compare_with_rules(env, support.read(sheets.COINS), played, range(10)) == 30


def test_an_environment_says_what_it_is() -> None:
    env = made("monty_hall")
    assert (env.name, env.players, env.num_players) == ("monty_hall", ("candidate",), 1)
    assert (env.num_actions, env.num_percepts, env.num_chance_actions) == (6, 3, 7)
    assert env.payoffs == payoffs.Payoffs(0.0, False, True)


def test_objects_print_in_one_line() -> None:
    env = made("kuhn_poker")
    assert repr(env) == "Env(kuhn_poker: players player1, player2; 5 actions, zero-sum)"
    assert repr(made("monty_hall")) == "Env(monty_hall: players candidate; 6 actions, general-sum)"
    assert repr(packed_env.PackedEnv(env)) == "PackedEnv(kuhn_poker: players player1, player2; 5 actions, zero-sum)"
    with_keys = packed_env.PackedEnv(env, public.find_public_info(env.propnet))
    assert repr(with_keys).endswith("zero-sum, public state keys)")
    nodes = host.HostEnv(env.propnet, env.payoffs, 1_000)
    assert repr(nodes) == "HostEnv(kuhn_poker: players player1, player2; at most 1,000 steps)"
    playout = sharded_playouts.ShardedPlayout(env.propnet, 1_000, 64)
    assert repr(playout) == "ShardedPlayout(kuhn_poker: at least 2,048 games, at most 1,000 steps)"
    assert repr(game_facts.probe(env.propnet, 3)) == "GameFacts(kuhn_poker: seed 3)"


def test_states_print_their_shapes_whatever_their_leaves_are() -> None:
    env = made("rps")
    state = env.init()
    sizes = f"{len(env.propnet.initial)} registers, 2 players, 3 actions"
    assert repr(state) == f"State({sizes})"
    shown = []
    jax.jit(lambda traced: shown.append(repr(traced)))(state)
    jax.vmap(lambda traced: shown.append(repr(traced)))(jax.tree.map(lambda x: x[None], state))
    assert shown == [f"State({sizes})"] * 2
    assert repr(jax.tree.map(lambda x: jnp.stack([x] * 4), state)) == f"State({sizes}, batch (4,))"
    assert repr(jax.eval_shape(env.init)) == f"State({sizes})"
    spec: Any = jax.sharding.PartitionSpec
    leaves: list[Any] = [None, 0, "text", object(), spec("games")]
    for leaf in leaves:
        text = repr(jax.tree.map(lambda _, leaf=leaf: leaf, state))
        assert text == f"State({type(leaf).__name__} leaves)"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [({"payoff": "x"}, "zero-sum"), ({"gdl": 3}, "GDL-II"), ({"max_steps": 2.5}, "max_steps"), ({"form": "x"}, "form")],
)
def test_wrong_options_of_make(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(errors.UserError, match=message):
        gdlx.make("kuhn_poker", **wrong)


def test_games_that_are_none(tmp_path: pathlib.Path) -> None:
    with pytest.raises(errors.UserError, match="not a int"):
        gdlx.make(3)  # type: ignore[arg-type]
    with pytest.raises(errors.UserError, match="is a folder"):
        gdlx.make(str(tmp_path))
