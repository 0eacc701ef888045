"""Facts of games: each found out once, and the same as without keeping them."""

import collections
import dataclasses

import numpy as np
import pytest

from gdlx.envs import dynamics, game_facts, game_spec, payoffs
from gdlx.envs.trees import unroll
from gdlx.envs.trees.estimates import size_estimate
from gdlx.propnet import games
from gdlx.propnet.simulate import machine, random_play, straight_line
from gdlx.tests.helpers import sheets


def test_one_machine_for_every_propnet() -> None:
    propnet = games.compile_game("kuhn_poker")
    other = dataclasses.replace(propnet)
    assert machine.for_propnet(propnet) is machine.for_propnet(propnet)
    assert machine.for_propnet(other) is not machine.for_propnet(propnet)
    assert machine.for_propnet(other).propnet is other


def test_facts_are_kept_for_every_propnet_and_seed() -> None:
    propnet = games.compile_game("kuhn_poker")
    assert game_facts.probe(propnet) is game_facts.probe(propnet)
    assert game_facts.probe(propnet) is not game_facts.probe(propnet, 1)
    assert game_facts.probe(propnet) is not game_facts.probe(dataclasses.replace(propnet))


def test_a_game_is_emitted_and_played_once(monkeypatch: pytest.MonkeyPatch) -> None:
    propnet = games.compile_game("leduc_poker")
    counts: collections.Counter[str] = collections.Counter()
    for module, name in ((straight_line, "compile_cone"), (random_play, "random_steps")):
        original = getattr(module, name)

        def counting(*args: object, name: str = name, original=original, **options: object) -> object:  # type: ignore[no-untyped-def]
            counts[name] += 1
            return original(*args, **options)

        monkeypatch.setattr(module, name, counting)
    facts = game_facts.probe(propnet)
    for _ in range(2):
        assert facts.payoffs().zero_sum
        assert facts.longest_match > 1
        assert facts.digest
        assert facts.histories().total > 1
        assert game_spec.unroll_game(game_spec.GameSpec("leduc_poker"), propnet=propnet).zero_sum
        unroll.unroll(propnet, depth=2)
    assert counts["compile_cone"] == 3  # what is legal, what a move does, how a state is judged
    plays = counts["random_steps"]
    assert facts.payoffs() is facts.payoffs("auto")
    assert game_facts.probe(propnet).digest == facts.digest
    assert counts["random_steps"] == plays


@pytest.mark.parametrize("game", ["kuhn_poker", "goofspiel:cards=3", "tictactoe"])
def test_facts_are_what_they_are_without_keeping_them(game: str) -> None:
    propnet, fresh = games.compile_game(game), games.compile_game(game)
    facts = game_facts.probe(propnet, 3)
    assert facts.payoffs() == payoffs.infer_payoffs(fresh, seed=3)
    assert facts.payoffs("goal") == payoffs.Payoffs(0.0, False, True)
    assert facts.dynamics == dynamics.infer_dynamics(fresh, 3)
    for enough in (10.0, 1e3, np.inf):  # in any order, from matches that were begun before
        assert facts.histories(enough) == size_estimate.estimate_size(fresh, 3, enough=enough)
    assert facts.histories(10.0) == size_estimate.estimate_size(fresh, 3, enough=10.0)
    for depth in (1, 2, 100):
        assert facts.histories(depth=depth) == size_estimate.estimate_size(fresh, 3).up_to_depth(depth)
        assert game_facts.probe(fresh, 3).histories(depth=depth) == facts.histories(depth=depth)


def test_the_length_of_matches() -> None:
    facts = game_facts.probe(games.compile_game("tictactoe"))
    assert (facts.longest_match, facts.step_capacity) == (9, 36)


def test_the_range_of_payoffs() -> None:
    facts = game_facts.probe(games.compile_game("kuhn_poker"))
    assert facts.payoff_range() == (-2.0, 2.0)
    assert facts.payoff_range("goal") == (48.0, 52.0)


def test_digests_distinguish_rules_not_propnets() -> None:
    digest = game_facts.probe(games.compile_game("kuhn_poker")).digest
    assert game_facts.probe(games.compile_game("kuhn_poker", recompile=True)).digest == digest
    assert game_facts.probe(games.compile_game("kuhn_poker", gdl=1)).digest != digest
    assert game_facts.probe(sheets.compile_text(sheets.COINS)).digest != digest
