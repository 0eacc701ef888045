"""UCT in lockstep against a dictionary implementation, visit for visit; what it does and does not converge to."""

import functools
import itertools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gdlx
from gdlx.envs import host
from gdlx.envs.lowering import rng
from gdlx.envs.packed import packed_env
from gdlx.envs.views import info_key
from gdlx.solvers.mccfr import hash_table
from gdlx.solvers.search import uct, uct_order

C = 30.0
Counts = dict[bytes, list[dict[int, list[float]]]]  # by state and player: visits and payoffs of every move


def test_every_joint_action_comes_once() -> None:
    random = np.random.default_rng(0)
    legal = random.random((3, 5, 40)) < 0.6
    legal[:, 0] |= ~legal.any(axis=1)
    high, low = random.integers(0, 2**32, (2, 40), np.uint32)
    nth = jax.jit(lambda n: uct_order.nth_joint_action(jnp.asarray(legal), jnp.full(40, n), (high, low)))
    joint = np.asarray(nth(0)[0])
    actions_by_visit = np.stack([np.asarray(nth(n)[1]) for n in range(joint.max())])
    orders = set()
    for lane in range(40):
        legal_actions = [np.flatnonzero(mask[:, lane]).tolist() for mask in legal]
        tried = [tuple(one) for one in actions_by_visit[: int(joint[lane]), :, lane].tolist()]
        assert sorted(tried) == list(itertools.product(*legal_actions))
        orders.add(tuple(tried))
    assert len(orders) == 40


def test_too_many_joint_actions_to_enumerate_are_legal() -> None:
    legal = np.zeros((4, 20, 3), np.bool_)
    legal[:, ::2] = True
    legal[:, 1::2, 0] = True
    key = jnp.arange(3, dtype=jnp.uint32)
    nth = jax.jit(lambda n: uct_order.nth_joint_action(jnp.asarray(legal), jnp.full(3, n), (key, key)))
    tried = []
    for n in range(50):
        joint, actions = nth(n)
        assert np.take_along_axis(legal, np.asarray(actions)[:, None], axis=1).all()
        tried.append(tuple(np.asarray(actions)[:, 0].tolist()))
    assert joint.tolist() == [160_000, 10_000, 10_000]
    assert len(set(tried)) > 45


class Plain:
    """The same algorithm for one tree on single games, with dictionaries."""

    def __init__(self, game: packed_env.PackedEnv, number: int) -> None:
        self.env, self.number = game.env, number
        self.nodes = host.HostEnv(game.env.propnet, game.env.payoffs, 1_000)
        self.seen: Counts = {}

    def play(self, draws: Any, most: int) -> int:
        """Runs one iteration with the random numbers [T, P + 1]; returns its number of steps."""
        registers, path, inside = self.env.propnet.initial.tobytes(), [], True
        for step in range(most):
            position = self.nodes.position(registers)
            if position.terminal:
                break
            joint = tuple(
                by_player[int(draw * len(by_player))]
                for by_player, draw in zip(position.legal, draws[step], strict=False)
            )
            if inside and any(len(by_player) > 1 for by_player in position.legal):
                inside = not step or registers in self.seen
                self.seen.setdefault(registers, [{a: [0, 0.0] for a in by_player} for by_player in position.legal])
                if inside:
                    joint = self.chosen(registers, position.legal)
                    path.append((registers, joint))
            outcomes = position.chance or (0,)
            chance = outcomes[int(draws[step][-1] * len(outcomes))]
            registers, _ = self.nodes.transition(registers, joint, chance)
        goals = self.nodes.position(registers).goals
        for state, joint in path:
            for by_player, action, goal in zip(self.seen[state], joint, goals, strict=True):
                by_player[action][0] += 1
                by_player[action][1] += goal - self.env.payoffs.offset
        return step

    def chosen(self, registers: bytes, legal: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
        visits = sum(int(n) for n, _ in self.seen[registers][0].values())
        if visits < math.prod(map(len, legal)):
            return self.in_turn(registers, legal, visits)
        best = []
        for statistics in self.seen[registers]:
            bounds = [
                np.float32(total) / np.float32(n) + np.float32(C) * np.sqrt(np.log(np.float32(visits)) / np.float32(n))
                for n, total in statistics.values()
            ]
            best.append(list(statistics)[int(np.argmax(bounds))])
        return tuple(best)

    def key(self, registers: bytes) -> tuple[int, int]:
        bits, tree = np.frombuffer(registers, np.bool_), np.uint32(self.number)
        key = info_key.hash_constants(len(bits), 4)[bits].sum(axis=0, dtype=np.uint32)
        with np.errstate(over="ignore"):
            high, low = info_key.extend_words((key[0], key[1]), (tree, tree ^ np.uint32(0x85EBCA6B)))
        return int(high), int(low)

    def in_turn(self, registers: bytes, legal: tuple[tuple[int, ...], ...], visits: int) -> tuple[int, ...]:
        high, low = self.key(registers)
        number = (visits * int(uct_order.PRIMES[high >> 27]) + low) % math.prod(map(len, legal))
        joint = []
        for actions in legal:
            number, digit = divmod(number, len(actions))
            joint.append(actions[digit])
        return tuple(joint)


@functools.cache
def lanes_of(name: str) -> packed_env.PackedEnv:
    return packed_env.PackedEnv(gdlx.make(name))


def searched(
    name: str, count: int, iterations: int, steps: int, exploration: tuple[float, ...], bits: int = 12
) -> tuple[uct.Trees, packed_env.PackedState]:
    game = lanes_of(name)
    roots = jax.jit(lambda: game.start(count))()
    constants = jnp.array(exploration, jnp.float32)
    trees = uct.search(game, uct.init(game, bits), roots, jax.random.key(3), iterations, constants, steps=steps)
    return trees, roots


@pytest.mark.parametrize(("name", "steps"), [("goofspiel:cards=3", 8), ("kuhn_poker", 8)])
def test_trees_equal_those_of_dictionaries(name: str, steps: int) -> None:
    """A game of simultaneous moves, and a turn-taking one with chance."""
    game, count, iterations = lanes_of(name), 3, 120
    trees, _ = searched(name, count, iterations, steps, (C, C))
    plain = [Plain(game, number) for number in range(count)]
    streams = rng.make_streams(jax.random.key(3), 0, count)
    draw = jax.jit(lambda streams: rng.draw_rows(streams, 3))
    for _ in range(iterations):
        words, states = [], [streams]
        for _ in range(steps):
            after, drawn = draw(states[-1])
            states.append(after)
            words.append((np.asarray(drawn) >> 8).astype(np.float32) * np.float32(2.0**-24))
        lengths = [tree.play(np.stack(words)[:, :, n], steps) for n, tree in enumerate(plain)]
        streams = states[max(lengths)]
    assert int(trees.num_nodes) == sum(len(tree.seen) for tree in plain) >= 30
    rows = {key: n for n, key in enumerate(zip(*(part.tolist() for part in trees.table), strict=True)) if any(key)}
    assert len(rows) == int(trees.num_nodes)
    for tree in plain:
        for registers, node in tree.seen.items():
            row = rows[tree.key(registers)]
            for expected, counts, totals in zip(node, trees.counts, trees.totals, strict=True):
                actual = {
                    a: [n, t] for a, (n, t) in enumerate(zip(counts[row].tolist(), totals[row].tolist(), strict=True))
                }
                assert {a: actual.pop(a) for a in expected} == expected
                assert all(rest == [0, 0] for rest in actual.values())


def test_a_full_table_takes_no_more_nodes() -> None:
    trees, _ = searched("kuhn_poker", 3, 200, 8, (C, C), bits=5)
    assert 20 <= int(trees.num_nodes) <= hash_table.MAX_LOAD_FACTOR * 32
    assert int(trees.counts[0][:-1].sum()) > 600


RPS = {"paper": 0, "rock": 1, "scissors": 2}
# Table 3.4 of Shafiei Khadem (2010): the moves that both players take after 9, 10, .. visits with C = 40.
TRACE = "rprprprprprprpsrps"


def shares(trees: uct.Trees, roots: packed_env.PackedState) -> list[list[float]]:
    """Returns the visit percentages of rock, paper and scissors for both players."""
    game = lanes_of("biased_rps")
    percentages = []
    for player in range(2):
        counts = np.asarray(uct.root_statistics(game, trees, roots, player=player).counts)[:, 0]
        percentages.append([100 * counts[RPS[sign]] / counts.sum() for sign in ("rock", "paper", "scissors")])
    return percentages


def test_the_published_trace_of_the_balanced_situation() -> None:
    game = lanes_of("biased_rps")
    assert game.env.propnet.players[0].moves == tuple(RPS)
    roots = jax.jit(lambda: game.start(1))()
    trees, taken = uct.init(game, 4), []
    before = [[0] * 3] * 2
    for number in range(9 + len(TRACE)):
        constants = jnp.array([40.0, 40.0])
        trees = uct.search(game, trees, roots, jax.random.key(number), 1, constants, steps=2)
        counts = [np.asarray(uct.root_statistics(game, trees, roots, player=n).counts)[:, 0].tolist() for n in range(2)]
        taken.append([[b - a for a, b in zip(*pair, strict=True)] for pair in zip(before, counts, strict=True)])
        before = counts
        if number == 8:
            totals = np.asarray(uct.root_statistics(game, trees, roots, player=0).totals)[:, 0]
            assert 50 + totals / 3 == pytest.approx([56.67, 58.33, 35.0], abs=0.005)
    signs = [["prs"[counts_of_player.index(1)] for counts_of_player in joint] for joint in taken[9:]]
    assert signs == [[sign, sign] for sign in TRACE]


def test_visits_do_not_converge_to_the_equilibrium() -> None:
    """Equal constants give a third each, as published; different ones end far apart and far from the equilibrium."""
    trees, roots = searched("biased_rps", 1, 30_000, 2, (40.0, 40.0), bits=4)
    for percentages in shares(trees, roots):
        assert percentages == pytest.approx([33.3, 33.3, 33.3], abs=0.5)
    trees, roots = searched("biased_rps", 1, 30_000, 2, (100.0, 50.0), bits=4)
    first, second = shares(trees, roots)
    assert first[2] > 60 > 40 > second[2]  # scissors; 81 and 51 are published for a million iterations
    solved = gdlx.solve("biased_rps", "cfr+", iterations=2_000)
    assert solved.policy("player1") == pytest.approx({"rock": 1 / 16, "paper": 10 / 16, "scissors": 5 / 16}, abs=0.02)
