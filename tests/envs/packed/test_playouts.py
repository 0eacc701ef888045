"""Packed playouts: the same games however they are divided, true to the rules, with all that happens counted."""

import dataclasses
import functools
import itertools
import json
import math
import random
import subprocess
import sys
from collections.abc import Iterator

import jax
import numpy as np
import pytest

from gdlx.envs import payoffs
from gdlx.envs.packed import playouts, sharded_playouts
from gdlx.propnet import games, library
from gdlx.propnet.circuits import propnet
from gdlx.propnet.datalog import interpreter
from gdlx.propnet.syntax import ground_terms, rulesheet
from gdlx.tests.helpers import sheets, support, xla_flags

GOALS = payoffs.Payoffs(0.0, False, True)


@functools.cache
def play_of(game: str, max_steps: int = 10_000, iterated: bool = False) -> playouts.Playout:
    """The playout program of a library game or of a text, made once."""
    is_text = "(role" in game
    propnet = sheets.compile_text(game, iterated=iterated) if is_text else games.compile_game(game)
    return playouts.Playout(propnet, max_steps)


@functools.cache
def compiled(play: playouts.Playout) -> "jax.stages.Wrapped":
    return jax.jit(play.run)


def played(play: playouts.Playout, words: int, steps: int, seed: int = 0) -> sharded_playouts.PlayoutStats:
    games, totals = compiled(play)(play.init(jax.random.key(seed), words), steps)
    return sharded_playouts.PlayoutStats(
        games=games,
        states=32 * words * steps,
        terminals=int(totals.terminals),
        unplayable=int(totals.unplayable),
        truncated=int(totals.truncated),
        multiple_goals=int(totals.multiple_goals),
        no_goal=int(totals.no_goal),
        goals=tuple(np.asarray(totals.goals).tolist()),
    )


def counts(stats: sharded_playouts.PlayoutStats) -> dict[str, object]:
    return {f.name: getattr(stats, f.name) for f in dataclasses.fields(stats) if f.name != "games"}


def test_the_same_seed_gives_the_same_games() -> None:
    play = play_of("tictactoe")
    first, again, other = (played(play, 8, 40, seed) for seed in (1, 1, 2))
    assert counts(first) == counts(again)
    assert np.array_equal(first.games.state, again.games.state)
    assert counts(first) != counts(other)


def test_groups_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    play = play_of("tictactoe")
    whole = played(play, 8, 40)
    parts = [play.init(jax.random.key(0), size, first) for first, size in ((0, 3), (3, 5))]
    after = [compiled(play)(part, 40) for part in parts]
    assert np.array_equal(np.concatenate([games.state for games, _ in after], axis=1), whole.games.state)
    assert sum(int(totals.terminals) for _, totals in after) == whole.terminals
    monkeypatch.setattr(playouts, "WORDS_PER_GROUP", 3)  # two whole groups and a rest
    grouped = playouts.Playout(play.propnet)
    assert counts(played(grouped, 8, 40)) == counts(whole)
    assert np.array_equal(played(grouped, 8, 40).games.state, whole.games.state)


DEVICES = """
import json, sys
import jax
from gdlx.envs.packed import sharded_playouts
from gdlx.propnet import games
for game in sys.argv[1:]:
    play = sharded_playouts.ShardedPlayout(games.compile_game(game), 1000, 16)
    stats = play.advance(play.advance(play.start(3, steps=2), 20), 30)
    counts = [stats.states, stats.terminals, stats.goals, stats.games.state[:, 5].tolist()]
    print(json.dumps([jax.device_count(), *counts]))
"""


def on_devices(count: int, *games: str) -> list[list[object]]:
    flags = xla_flags.environment_with_devices(count) | {"JAX_PLATFORMS": "cpu"}
    ran = subprocess.run([sys.executable, "-c", DEVICES, *games], env=flags, capture_output=True, text=True, check=True)
    actual = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [line[0] for line in actual] == [count] * len(games)
    return [line[1:] for line in actual]


def test_devices_change_nothing() -> None:
    games = ("tictactoe", "meier")
    assert on_devices(8, *games) == on_devices(1, *games)


def state_of(propnet: propnet.PropNet, bits: np.ndarray) -> interpreter.State:
    """The state of registers as the interpreter has it."""
    held = np.concatenate([[False], bits])[propnet.fluent_literals >> 1] ^ (propnet.fluent_literals & 1).astype(bool)
    return frozenset(ground_terms.from_text(" ".join(itertools.compress(propnet.fluents, held.tolist()))))


@pytest.mark.parametrize("game", ["kuhn_poker", "maze"])
def test_every_step_is_one_of_the_rules(game: str) -> None:
    """From each state to one of its successors, or to the start where a successor is terminal."""
    sheet = support.read(sheets.MAZE) if game == "maze" else games.load_rulesheet(game)
    play = play_of(sheets.MAZE, iterated=True) if game == "maze" else play_of(game)
    rules = interpreter.Interpreter(sheet)
    batch = play.init(jax.random.key(0), 1)
    before = [rules.initial] * 32
    checked = set()
    for _ in range(7):
        batch, _ = compiled(play)(batch, 1)
        rows = np.asarray(batch.state[: len(play.propnet.initial)])
        bits = (rows.T[:, None] >> np.arange(32, dtype=np.uint32)[:, None] & 1).reshape(-1, len(rows))[:32] != 0
        after = [state_of(play.propnet, row) for row in bits]
        for pair in zip(before, after, strict=True):
            if pair not in checked:
                checked.add(pair)
                possible = list(successors(rules, pair[0]))
                going = {state for state in possible if not rules.is_terminal(state)}
                ends = {rules.initial} if len(going) < len(set(possible)) else set()
                assert pair[1] in going | ends
        before = after
    assert len(checked) > 20


def successors(rules: interpreter.Interpreter, state: interpreter.State) -> Iterator[interpreter.State]:
    legal = rules.legal(state)
    for moves in itertools.product(*legal.values()):
        yield rules.next(state, dict(zip(legal, moves, strict=True)))


def test_iterated_and_unrolled_recursion_play_the_same() -> None:
    unrolled, iterated = (played(play_of(sheets.MAZE, iterated=iterated), 4, 60) for iterated in (False, True))
    assert counts(unrolled) == counts(iterated)
    assert all(iterated.goals[:2])


def by_rules(sheet: rulesheet.Rulesheet, matches: int, seed: int) -> list[tuple[int, tuple[int, ...]]]:
    """Length and goals of random matches played by the interpreter."""
    rules = interpreter.Interpreter(sheet)
    rng = random.Random(seed)
    collected = []
    for _ in range(matches):
        state, length = rules.initial, 0
        while not rules.is_terminal(state):
            state = rules.next(state, {role: rng.choice(moves) for role, moves in rules.legal(state).items()})
            length += 1
        collected.append((length, tuple(goals[0] for goals in rules.goals(state).values())))
    return collected


@pytest.mark.parametrize("game", ["kuhn_poker", "three_card_poker"])
def test_random_play_agrees_with_the_rules(game: str) -> None:
    matches = by_rules(games.load_rulesheet(game), 400, seed=1)
    play = play_of(game)
    stats = played(play, 32, 400)
    means = stats.mean_goals(play.propnet)
    for player, role in enumerate(play.propnet.players):
        goals = [goal[player] for _, goal in matches]
        error = np.std(goals) / math.sqrt(len(goals))
        mean = means[role.name]
        assert mean is not None
        assert abs(mean - np.mean(goals)) < 4 * error
    lengths = [length for length, _ in matches]
    mean_length = stats.mean_length()
    assert mean_length is not None
    assert abs(mean_length - np.mean(lengths)) < 4 * np.std(lengths) / math.sqrt(len(lengths)) + 0.02


def test_random_tictactoe() -> None:
    """Of the 255 168 games 1440, 5328, 47952, 72576 and 127872 have 5..9 moves, each with probability 1/9!*(9-n)!.

    In all, the first player wins with probability 0.5849 and loses with 0.2881.
    """
    play = play_of("tictactoe")
    stats = played(play, 32, 600)
    games = {5: 1440, 6: 5328, 7: 47_952, 8: 72_576, 9: 127_872}
    weight = {n: count * math.factorial(9 - n) / math.factorial(9) for n, count in games.items()}
    assert math.isclose(sum(weight.values()), 1)
    length = sum(n * w for n, w in weight.items())
    assert stats.mean_length() == pytest.approx(length, rel=0.01)  # games cut at the end make it a little longer
    reward = 50 * (0.584921 - 0.288095)
    rewards = stats.rewards(play.propnet, payoffs.infer_payoffs(play.propnet))
    error = 50 / math.sqrt(stats.terminals)
    assert rewards["x"] == pytest.approx(reward, abs=5 * error)
    assert rewards["o"] == pytest.approx(-reward, abs=5 * error)
    assert (stats.unplayable, stats.truncated, stats.multiple_goals, stats.no_goal) == (0, 0, 0, 0)


def near(part: int, whole: int, probability: float) -> bool:
    """Within five standard errors."""
    return abs(part - whole * probability) < 5 * math.sqrt(whole * probability * (1 - probability))


def test_the_step_limit() -> None:
    stats = played(play_of(sheets.ENDLESS, max_steps=5), 16, 300)
    assert near(stats.truncated, stats.terminals + stats.truncated, 0.75**5)
    limited = played(play_of(sheets.ENDLESS, max_steps=1), 4, 20)
    assert limited.terminals + limited.truncated == limited.states


def test_states_without_a_move_are_counted() -> None:
    stats = played(play_of(sheets.DEAD_END), 16, 200)
    assert near(stats.unplayable, stats.unplayable + stats.terminals, 1 / 3)
    assert stats.mean_goals(play_of(sheets.DEAD_END).propnet) == {"first": 100.0, "second": 0.0}


def test_the_highest_goal_counts_and_conflicts_are_told() -> None:
    play = play_of(sheets.CONFLICTS)
    stats = played(play, 16, 50)
    assert stats.terminals == stats.states  # every game is one move
    by_value = dict(zip(play.propnet.roles[0].goal_values, stats.goals, strict=False))
    assert by_value[70] == 0  # always beaten by 100
    first, second = (sum(stats.goals[a:b]) for a, b in ((0, 4), (4, 8)))
    assert (second, stats.terminals - first) == (stats.terminals, stats.no_goal)
    assert near(stats.no_goal, stats.terminals, 1 / 4)
    assert near(stats.multiple_goals, stats.terminals, 1 / 2)
    assert stats.mean_goals(play.propnet)["first"] == pytest.approx((20 + 100 + 0 + 30) / 4, abs=2)
    assert stats.mean_goals(play.propnet)["second"] == pytest.approx((80 + 10 + 10 + 70) / 4, abs=2)
    assert stats.summary(play.propnet, GOALS)["goal_conflicts"] == stats.multiple_goals + stats.no_goal


def test_goals_that_contradict_the_payoffs_are_noticed() -> None:
    play = play_of(sheets.CONFLICTS)
    stats = played(play, 16, 50)
    assert not stats.contradicts_zero_sum(play.propnet, GOALS)
    assert stats.contradicts_zero_sum(play.propnet, payoffs.Payoffs(50.0, True, False))
    fair = played(play_of("tictactoe"), 8, 40)
    assert not fair.contradicts_zero_sum(play_of("tictactoe").propnet, payoffs.Payoffs(50.0, True, False))


def test_nothing_has_ended_yet() -> None:
    play = play_of("tictactoe")
    stats = played(play, 8, 2)
    assert stats.mean_length() is None
    assert stats.rewards(play.propnet, GOALS) == {"x": None, "o": None}


def test_what_cannot_be_played() -> None:
    with pytest.raises(playouts.PlayoutError, match="over before the first move"):
        play_of(sheets.OVER_AT_ONCE)
    with pytest.raises(playouts.PlayoutError, match="max_steps"):
        play_of(sheets.ENDLESS, max_steps=0)


@pytest.mark.parametrize("game", library.names())
def test_a_game_takes_little_memory(game: str) -> None:
    play = play_of(game)
    assert play.bytes_per_game <= 300
    assert play.step_tape.rows < 2_000  # 1024 words of each row: 8 MB
