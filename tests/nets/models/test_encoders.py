"""Encoders: features agree between matches and unrolled games, and differ between information sets."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gdlx
from gdlx.envs import game_spec
from gdlx.envs.trees import infoset_keys, unroll
from gdlx.envs.trees.factored import unroll_blocks
from gdlx.envs.views import observation_window
from gdlx.nets.models import encoders, networks
from gdlx.propnet import games, library
from gdlx.solvers.policy_sources import function_policies
from gdlx.tests.helpers import samples

GAMES = ("kuhn_poker", "smallest:numbers=3,steps=1", "goofspiel:cards=3", "monty_hall")


@pytest.mark.parametrize("steps", [1, 3, 40])
@pytest.mark.parametrize("game", ["leduc_poker", "goofspiel:cards=3,order=random"])
def test_what_functions_are_asked_is_encoded_alike(game: str, steps: int) -> None:
    tree, encoder = samples.load_tree(game), encoders.Encoder(gdlx.make(game), steps)
    for number, player in enumerate(tree.players):
        infosets = function_policies.TreeInformationSets(tree, number, 0, player.sets)
        np.testing.assert_array_equal(encoder.encode(infosets), encoder.encode_infosets(tree, number))


def test_steps_that_blocks_leave_out_are_encoded() -> None:
    """As in the tree that lists every step: the same features, in another order."""
    spec = "phantom_ttt:width=2,height=2,line=2"
    compiled, encoder = games.compile_game(spec), encoders.Encoder(gdlx.make(spec), 5)
    listed, blocks = unroll.unroll(compiled), unroll_blocks.unroll(compiled)
    for number, player in enumerate(listed.players):
        infosets = function_policies.TreeInformationSets(blocks, number, 0, blocks.players[number].sets)
        in_blocks = sorted(encoder.encode(infosets).tolist())
        assert in_blocks == sorted(encoder.encode_infosets(listed, number).tolist())
        assert len(in_blocks) == player.sets


@pytest.mark.parametrize("is_narrow", [False, True])
@pytest.mark.parametrize("game", GAMES)
def test_matches_and_trees_agree(game: str, is_narrow: bool) -> None:
    env = gdlx.make(game, track=("info_key", "percepts", "actions"))
    tree = game_spec.unroll_game(game_spec.GameSpec(game))
    encoder = encoders.Encoder(env, steps=len(tree.counts.nodes))
    if is_narrow:
        whole, encoder = encoder, encoders.drop_unused_features(encoder, tree)
        assert encoder.width < whole.width
        for number in range(env.num_players):
            narrow, wide = (each.encode_infosets(tree, number).sum(axis=1) for each in (encoder, whole))
            np.testing.assert_allclose(narrow, wide, rtol=1e-6)  # dropped features are 0
    known: dict[tuple[int, int, int], Any] = {}
    for number in range(env.num_players):
        rows = encoder.encode_infosets(tree, number)
        assert rows.shape == (tree.players[number].sets, encoder.width)
        keys = infoset_keys.compute_infoset_keys(tree, number, env.num_actions)
        known |= {(number, int(high), int(low)): row for high, low, row in zip(*keys, rows, strict=True)}
        assert len(np.unique(rows, axis=0)) == len(rows)  # the window covers the whole match

    lanes = 64

    def match(key: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        state = env.init()

        def step(carry: Any, own: jax.Array) -> Any:
            state, window = carry
            seen = (encoder.information_state(window), state.info_key, state.legal_mask.sum(axis=1) > 1)
            moves, chance = jax.random.split(own)
            action = jax.random.categorical(moves, jnp.where(state.legal_mask, 0.0, -jnp.inf))
            state = env.step(state, action, chance)
            return (state, observation_window.update(window, state)), seen

        keys = jax.random.split(key, len(tree.counts.nodes))
        seen: tuple[jax.Array, jax.Array, jax.Array] = jax.lax.scan(step, (state, encoder.window(state)), keys)[1]
        return seen

    rows, keys, choices = map(np.asarray, jax.jit(jax.vmap(match))(jax.random.split(jax.random.key(0), lanes)))
    met = set()
    for lane, step, number in np.argwhere(choices):
        high, low = map(int, keys[lane, step, number])
        name = (int(number), high, low)
        np.testing.assert_array_equal(rows[lane, step, number], known[name])
        met.add(name)
    assert len(met) >= len(known) / 3


@pytest.mark.parametrize("game", library.names())
def test_every_game_of_the_library(game: str) -> None:
    """Only shapes: nothing is compiled."""
    env = gdlx.make(game, track=("info_key", "percepts", "actions"))
    encoder = encoders.Encoder(env, steps=4)

    def seen() -> Any:
        state = env.init()
        window = encoder.window(state)
        return encoder.information_state(window), encoder.state(state)

    information, state = jax.eval_shape(seen)
    assert information.shape == (env.num_players, encoder.width)
    assert state.shape == (encoder.state_width,)


class RandomState(NamedTuple):
    """The fields of `State` that encoders read."""

    legal_mask: np.ndarray
    percepts: np.ndarray
    actions: np.ndarray
    registers: np.ndarray
    step: np.int32


@pytest.mark.parametrize(
    "game", ["kuhn_poker", "monty_hall", "smallest", "princess_and_monster", "connect_four", "goofspiel"]
)
def test_numbers(game: str) -> None:
    """Of random states, which no match has: the last action and percepts come last, and each has its own feature."""
    env, rng, steps = gdlx.make(game), np.random.default_rng(len(game)), 3
    encoder = encoders.Encoder(env, steps)
    registers = len(env.propnet.initial)
    count, moves, percepts = env.num_players, env.num_actions, env.num_percepts
    history = [np.zeros((count, moves + percepts), np.float32)] * steps
    states: list[Any] = []
    for step in range(5):
        states.append(
            RandomState(
                legal_mask=rng.random((count, moves)) < 0.5,
                percepts=rng.random((count, percepts)) < 0.5,
                actions=rng.integers(0, moves, count).astype(np.int32),
                registers=rng.random(registers) < 0.5,
                step=np.int32(step),
            )
        )
    window = encoder.window(states[0])
    for step, state in enumerate(states):
        if step:
            window = observation_window.update(window, state)
            history.append(np.concatenate([np.eye(moves)[state.actions], state.percepts], axis=1).astype(np.float32))
        actual = np.asarray(encoder.information_state(window))
        for player in range(count):
            last = np.concatenate([row[player] for row in history[-steps:]])
            who = np.arange(count) == player
            expected = np.concatenate([last, state.legal_mask[player], who, [step / steps]])
            np.testing.assert_allclose(actual[player], expected, rtol=1e-6)
        np.testing.assert_allclose(encoder.state(state), [*state.registers, step / steps], rtol=1e-6)


def test_a_window_forgets() -> None:
    tree = game_spec.unroll_game(game_spec.GameSpec("kuhn_poker"))
    rows = encoders.Encoder(gdlx.make("kuhn_poker"), steps=1).encode_infosets(tree, 0)
    assert len(np.unique(rows, axis=0)) < len(rows)
    with pytest.raises(encoders.EncoderError, match="1 step or more"):
        encoders.Encoder(gdlx.make("kuhn_poker"), steps=0)


@pytest.mark.parametrize("kind", ["mlp", "residual"])
def test_networks(kind: networks.NetworkKind) -> None:
    network = networks.Network(players=2, moves=3, widths=(16, 16), kind=kind)
    variables = networks.init_params(network, 5, jax.random.key(0))
    body = 5 * 16 + 16 + 16 * 16 + 16 + (2 * 2 * 16 if kind == "residual" else 0)
    assert networks.num_params(variables) == body + 16 * 6 + 6 + 16 * 2 + 2
    seen = jax.random.normal(jax.random.key(1), (7, 5))
    reported: networks.NetworkOutput = network.apply(variables, seen)  # type: ignore[assignment]
    assert reported.logits.shape == (7, 2, 3)
    assert reported.value.shape == (7, 2)
    logits, value = networks.select_player(reported, jnp.array([0, 1, 0, 1, 0, 1, 0]))
    np.testing.assert_array_equal(logits[1], reported.logits[1, 1])
    np.testing.assert_array_equal(value[2], reported.value[2, 0])


def test_policies_of_logits() -> None:
    logits = jnp.array([[1.0, 2.0, 3.0], [500.0, -500.0, 0.0], [0.0, 0.0, 0.0]])
    legal = jnp.array([[True, False, True], [True, True, False], [False, False, False]])
    actual = np.asarray(networks.masked_softmax(logits, legal))
    np.testing.assert_allclose(actual[0], [1 / (1 + np.e**2), 0, np.e**2 / (1 + np.e**2)], rtol=1e-6)
    np.testing.assert_allclose(actual[1], [1, 0, 0])
    np.testing.assert_array_equal(actual[2], [0, 0, 0])
