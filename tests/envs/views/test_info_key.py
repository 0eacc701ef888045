"""Information-state keys: equal for equal histories of own moves, percepts and legal moves, and for no others."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gdlx
from gdlx.envs import env as envs
from gdlx.envs.views import info_key
from gdlx.tests.helpers import matches, sheets

BATCH = 512  # all calls have this shape, so that one compilation does


class Histories:
    """Exact histories of one player, numbered, with the key that each was seen with."""

    def __init__(self) -> None:
        self.numbers: dict[tuple[int, int, bytes, bytes], int] = {}
        self.key_of: dict[int, tuple[int, ...]] = {}
        self.of_key: dict[tuple[int, ...], int] = {}

    def extend(self, before: int, state: envs.State, player: int) -> int:
        """The number of a history made longer by what a state shows of its last step; -1 is the empty one."""
        event = (
            before,
            int(state.actions[player]),
            state.percepts[player].tobytes(),
            state.legal_mask[player].tobytes(),
        )
        number = self.numbers.setdefault(event, len(self.numbers))
        key = tuple(state.info_key[player].tolist())
        assert self.key_of.setdefault(number, key) == key
        assert self.of_key.setdefault(key, number) == number
        return number


@pytest.mark.parametrize("game", ["meier", "phantom_tictactoe", "smallest", "maze"])
def test_keys_along_random_matches(game: str) -> None:
    env = sheets.make_env(sheets.MAZE) if game == "maze" else gdlx.make(game)
    played = matches.play_random(env, matches=300, steps=12)
    players = [Histories() for _ in env.players]
    for match in range(300):
        numbers = [-1] * len(players)
        for state in played.states_of(match):
            numbers = [own.extend(n, state, p) for p, (own, n) in enumerate(zip(players, numbers, strict=True))]
    for own in players:
        assert len(own.numbers) == len(own.of_key) > 60


@pytest.mark.parametrize(("game", "decisions"), [("kuhn_poker", [6, 6]), ("leduc_poker", [468, 468])])
def test_keys_of_all_histories(game: str, decisions: list[int]) -> None:
    """Every history of the game; the information sets with a choice are as many as published."""
    env = gdlx.make(game, track=matches.TRACKED)
    step = jax.jit(jax.vmap(lambda state, actions, chance: env.step(state, actions, None, chance)))
    players = [Histories() for _ in env.players]
    first = jax.device_get(env.init())
    level = [(first, tuple(own.extend(-1, first, p) for p, own in enumerate(players)))]
    with_choice: list[set[int]] = [set() for _ in players]
    seen = 0
    while level:
        edges = []
        for state, numbers in level:
            for p, number in enumerate(numbers):
                if state.legal_mask[p].sum() > 1:
                    with_choice[p].add(number)
            options = [np.flatnonzero(mask).tolist() for mask in (*state.legal_mask, state.chance_mask)]
            edges += [(state, numbers, joint) for joint in itertools.product(*options)]
        level = []
        for start in range(0, len(edges), BATCH):
            part = edges[start : start + BATCH]
            padded = part + [part[0]] * (BATCH - len(part))
            before = jax.tree.map(lambda *fields: np.stack(fields), *(edge[0] for edge in padded))
            joints = np.array([edge[2] for edge in padded], np.int32)
            after = jax.device_get(step(before, joints[:, :-1], joints[:, -1]))
            for place, (_, numbers, _) in enumerate(part):
                state = jax.tree.map(lambda field, place=place: field[place], after)
                longer = tuple(own.extend(numbers[p], state, p) for p, own in enumerate(players))
                seen += 1
                if not state.terminated:
                    level.append((state, longer))
    assert [len(own) for own in with_choice] == decisions
    assert all(len(own.numbers) == len(own.of_key) for own in players)
    assert seen > sum(decisions)


def test_a_change_anywhere_changes_half_of_the_key() -> None:
    """Of 64 bits of the key and 64 of the event, each flips every bit of the new key about half of the time."""
    samples = 256
    words = jnp.asarray(np.random.default_rng(0).integers(0, 2**32, (samples, 4), np.uint32))
    extend = jax.jit(jax.vmap(lambda pair: info_key.extend(pair[:2], pair[2:])))
    base = np.asarray(extend(words))
    for bit in range(128):
        flipped = words.at[:, bit // 32].set(words[:, bit // 32] ^ np.uint32(1 << bit % 32))
        changed = np.asarray(extend(flipped)) ^ base
        bits = np.unpackbits(changed.view(np.uint8).reshape(samples, -1), axis=1)
        assert 0.45 < bits.mean() < 0.55
        assert (bits.mean(axis=0) > 0.2).all()
        assert (bits.mean(axis=0) < 0.8).all()


def test_the_order_of_events_counts() -> None:
    a, b = (jnp.asarray(row) for row in info_key.hash_constants(2, 9))
    start = jnp.zeros(2, jnp.uint32)
    assert (
        info_key.extend(info_key.extend(start, a), b).tolist() != info_key.extend(info_key.extend(start, b), a).tolist()
    )


def test_keys_are_the_same_in_every_version() -> None:
    """Tables that were saved with keys are found by them: these numbers must not change."""
    constants = [[1303814779, 1969390303], [3645176323, 3133017647]]
    assert info_key.hash_constants(2, 1).tolist() == constants
    assert info_key.hash_constants(5, 1)[:2].tolist() == constants
    assert np.asarray(gdlx.make("rps", track="info_key").init().info_key).tolist() == [[3633404162, 2595625328]] * 2
