"""Gymnasium and PettingZoo: their own checks pass on every game that fits, and payoffs are those of the rules."""

import functools
import warnings
from typing import Any

import numpy as np
import pytest

import gdlx
from gdlx.envs import dynamics, game_facts, host
from gdlx.envs import env as envs
from gdlx.envs.bridges import gymnasium_env, host_match, pettingzoo_env
from gdlx.envs.views import observation_window
from gdlx.propnet import library
from gdlx.propnet.common import errors
from gdlx.propnet.datalog import interpreter
from gdlx.propnet.games import load_rulesheet
from gdlx.propnet.syntax import ground_terms
from gdlx.tests.helpers import matches, sheets

gymnasium = pytest.importorskip("gymnasium")
pettingzoo = pytest.importorskip("pettingzoo")
# PettingZoo advises plain arrays as observations, without a mask, and names such as player_0.
advice = pytest.mark.filterwarnings("ignore::UserWarning")
facts = functools.cache(lambda game: game_facts.probe(gdlx.make(game).propnet))


@advice
@pytest.mark.parametrize("game", library.names())
def test_pettingzoos_own_checks(game: str) -> None:
    from pettingzoo.test import api_test, parallel_api_test

    if facts(game).dynamics.turn_taking:
        api_test(pettingzoo_env.AECEnv(game), num_cycles=60)
    else:
        with pytest.raises(envs.EnvError, match="not turn-taking"):
            pettingzoo_env.AECEnv(game)
    parallel_api_test(pettingzoo_env.ParallelEnv(game), num_cycles=60)


@advice
@pytest.mark.parametrize("game", ["kuhn_poker", "goofspiel:cards=3"])
def test_matches_of_pettingzoo_are_repeated_with_their_seed(game: str) -> None:
    from pettingzoo.test import parallel_seed_test, seed_test

    if game == "kuhn_poker":
        seed_test(lambda: pettingzoo_env.AECEnv(game), num_cycles=30)
    parallel_seed_test(lambda: pettingzoo_env.ParallelEnv(game), num_cycles=30)


@pytest.mark.parametrize("game", [*library.names(), "maze"])
def test_gymnasiums_own_check(game: str) -> None:
    from gymnasium.utils import env_checker

    players = 1 if game == "maze" else len(facts(game).propnet.players)
    if players > 1:
        with pytest.raises(envs.EnvError, match=f"has {players} players, and Gymnasium is for one"):
            gymnasium_env.GymnasiumEnv(game)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # but one of logger.warn, about render modes of environments without a spec
        warnings.filterwarnings("ignore", message=".*alternative render modes.*")
        rules = sheets.MAZE if game == "maze" else None
        env_checker.check_env(gymnasium_env.GymnasiumEnv(None if rules else game, rules=rules))


def test_a_match_of_monty_hall() -> None:
    """The interpreter gives the same goal; an illegal action changes nothing."""
    rules = interpreter.Interpreter(load_rulesheet("monty_hall"))
    rewards = set()
    for seed in range(12):
        env = gymnasium_env.GymnasiumEnv("monty_hall", render_mode="ansi")
        seen, info = env.reset(seed=seed)
        rng, ended = np.random.default_rng(seed), False
        while not ended:
            illegal = int(np.argmin(info["action_mask"]))
            again, reward, ended, truncated, told = env.step(illegal)
            assert (np.array_equal(again, seen), reward, ended, truncated) == (True, 0, False, False)
            assert told["illegal"]
            action = rng.choice(np.flatnonzero(info["action_mask"]))
            seen, reward, ended, truncated, info = env.step(action)
            assert not truncated
            assert not info["illegal"]
        fluents = frozenset(ground_terms.from_text(line.strip())[0] for line in str(env.render()).splitlines()[1:])
        assert rules.is_terminal(fluents)
        assert next(goals[0] for goals in rules.goals(fluents).values()) == reward
        rewards.add(reward)
    assert len(rewards) == 2


@pytest.mark.parametrize("game", ["kuhn_poker", "liars_dice:sides=2"])
def test_an_aec_match_is_that_of_the_nodes(game: str) -> None:
    """Turns, masks, rewards; and a dead agent steps with None."""
    env = pettingzoo_env.AECEnv(game)
    for seed in range(10):
        env.reset(seed=seed)
        rng, total = np.random.default_rng(seed), dict.fromkeys(env.possible_agents, 0.0)
        nodes = env._match.nodes
        node = env._match.node
        for agent in env.agent_iter():
            seen, reward, ended, truncated, _ = env.last()
            total[agent] += reward
            if ended or truncated:
                env.step(None)
                continue
            assert env.possible_agents[node.deciders[0]] == agent
            legal = np.flatnonzero(seen["action_mask"])
            assert tuple(legal) == node.position.legal[node.deciders[0]]
            action = int(rng.choice(legal))
            following = nodes.apply_actions(node, (action,) * 2)
            env.step(action)
            node = env._match.node
            assert node.step >= following.step
        assert node.position.terminal
        assert list(total.values()) == nodes.returns(node)
        assert any(total.values())


def test_observations_on_the_host_are_those_of_a_window() -> None:
    env = gdlx.make("leduc_poker")
    nodes = host.HostEnv(env.propnet, env.payoffs, 100)
    found = matches.play_random(env, matches=20, steps=10)
    compared = 0
    for match in range(20):
        states = found.states_of(match)
        window: Any = observation_window.init(env, states[0], steps=4)
        tensors = [observation_window.to_tensor(window)]
        for state in states[1:]:
            window = observation_window.update(window, state)
            tensors.append(observation_window.to_tensor(window))
        node = nodes.start
        while not node.is_over:
            for player in range(2):
                assert np.array_equal(
                    observation_window.of_node(env, node, player, steps=4), tensors[node.step][player]
                )
                compared += 1
            if node.deciders:
                node = nodes.apply_actions(node, tuple(states[node.step + 1].actions.tolist()))
            else:
                node = nodes.apply_chance(node, int(found.chance[node.step, match]))
    assert compared > 100


def test_hidden_state_and_windows() -> None:
    env = pettingzoo_env.ParallelEnv("kuhn_poker", observation="state")
    seen, _ = env.reset(seed=3)
    registers = env.state()
    assert registers.shape == (len(env._match.env.propnet.initial),)
    assert all(np.array_equal(own["observation"], registers) for own in seen.values())
    short = pettingzoo_env.ParallelEnv("kuhn_poker", observation="window:1")
    assert short.observation_space("player1")["observation"].shape == (2 * 5 + short._match.env.num_percepts,)


@pytest.mark.parametrize(
    ("act", "told"),
    [
        (lambda: pettingzoo_env.AECEnv("kuhn_poker", observation="pixels"), "'pixels' is no encoder of observations"),
        (lambda: pettingzoo_env.ParallelEnv("rps", max_steps=0), "`max_steps=` must be 1 or more"),
        (lambda: pettingzoo_env.ParallelEnv("rps", render_mode="human"), "`render_mode=` must be 'ansi' or None"),  # type: ignore[arg-type]
        (lambda: played(pettingzoo_env.AECEnv("kuhn_poker"), 4), "action 4 of player1 is illegal in kuhn_poker"),
        (lambda: played(pettingzoo_env.ParallelEnv("rps"), {"player1": 0}), "actions of rps lack player2"),
        (lambda: played(pettingzoo_env.ParallelEnv("rps"), *[{"player1": 0, "player2": 0}] * 2), "over: call reset"),
    ],
)
def test_mistakes(act: Any, told: str) -> None:
    with pytest.raises(envs.EnvError) as error:
        act()
    assert told in str(error.value)


def played(env: Any, *steps: Any) -> None:
    env.reset(seed=0)
    for actions in steps:
        env.step(actions)


def test_a_game_that_was_taken_for_turn_taking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dynamics, "infer_dynamics", lambda propnet, seed: dynamics.Dynamics(True, False))
    env = pettingzoo_env.AECEnv(rules=sheets.COINS + "(role nobody) (legal nobody nothing) (goal nobody 0)")
    with pytest.raises(envs.EnvError, match="have a choice at the same time"):
        env.reset()


def test_without_the_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gymnasium_env, "gymnasium", None)
    monkeypatch.setattr(pettingzoo_env, "pettingzoo", None)
    for make in (gymnasium_env.GymnasiumEnv, pettingzoo_env.AECEnv, pettingzoo_env.ParallelEnv):
        with pytest.raises(errors.MissingPackageError, match=r"pip install 'gdlx\[gym\]'"):
            make("monty_hall")


def test_a_match_that_chance_ends_is_dealt_again() -> None:
    """One deal of three leaves nothing to decide."""
    rules = """(role a) (role random) (number 0) (number 1) (number 2)
        (<= (legal random (deal ?n)) (number ?n) (not (true dealt))) (<= (legal random idle) (true dealt))
        (<= (legal a wait) (not (true dealt))) (<= (legal a stop) (true dealt)) (<= (legal a halt) (true dealt))
        (<= (next dealt) (not (true dealt))) (<= (next (card ?n)) (does random (deal ?n))) (<= (next over) (true dealt))
        (<= terminal (true (card 0))) (<= terminal (true over)) (<= (goal a 10) (true (card 0)))
        (<= (goal a 90) (true over)) (<= (goal a 0) (not (true (card 0))) (not (true over)))"""
    env = gymnasium_env.GymnasiumEnv(rules=rules)
    for seed in range(20):
        _, info = env.reset(seed=seed)
        assert info["action_mask"].sum() == 2
        assert env.step(int(np.argmax(info["action_mask"])))[1:4] == (90.0, True, False)


def test_a_match_that_is_too_long_is_truncated() -> None:
    match = host_match.HostMatch("tictactoe", max_steps=2)
    match.reset(np.random.default_rng(0))
    match.step((0, 0))
    assert not match.truncated
    match.step((1, 1))
    assert match.truncated
    assert not match.terminated
    assert match.returns() == [0.0, 0.0]
    assert not match.mask(0).any()
