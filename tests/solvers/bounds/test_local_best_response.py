"""Local best responses against the exact ones of a tree, and bounds from the search of both responders."""

import json
import pathlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from gdlx import cli
from gdlx.envs.packed import packed_env
from gdlx.solvers import tabular_policies
from gdlx.solvers.bounds import approximate_response, estimates, local_best_response, search_bounds
from gdlx.solvers.exact import best_response
from gdlx.solvers.mccfr import table_policy
from gdlx.tests.helpers import samples
from gdlx.tests.solvers.bounds import test_approximate_response

CONFIG = local_best_response.ResponderConfig(steps=12, matches=256, size=128)
BOUND_CONFIG = search_bounds.BoundConfig(
    test_approximate_response.CONFIG, CONFIG, test_approximate_response.BITS, matches=2**14
)


def local_values(frozen_game: test_approximate_response.Frozen, number: int) -> Any:
    """Counterfactual values of every action of a player if all players follow the frozen policies."""
    profile = tabular_policies.to_levels(frozen_game.task.tree, frozen_game.task.layouts, frozen_game.policies)
    levels = best_response.counterfactual_values(frozen_game.task.form, profile, number)
    return tabular_policies.player_from_levels(frozen_game.task.layouts[number], levels)


def exact_payoff(frozen_game: test_approximate_response.Frozen, number: int) -> float:
    """The payoff of a player who takes the best action of every information set by these values."""
    player, values = frozen_game.task.tree.players[number], local_values(frozen_game, number)
    policies = list(frozen_game.policies)
    policies[number] = np.ones(player.sequences)
    for decision in range(player.sets):
        part = slice(player.first[decision], player.first[decision + 1])
        policies[number][part] = np.arange(part.stop - part.start) == values[part].argmax()
    return frozen_game.task.metrics(tuple(policies)).value[number]


def payoffs(player: int) -> Any:
    frozen_game = test_approximate_response.frozen("kuhn_poker")
    keys = jax.random.split(jax.random.key(player), 8)
    played = [local_best_response.play(frozen_game.game, frozen_game.table, key, player, config=CONFIG) for key in keys]
    return np.concatenate([np.asarray(part, np.float64) for part in played])


def test_is_the_local_best_response_of_a_tree() -> None:
    """Within the errors of matches, and of decisions between actions of nearly equal value."""
    frozen_game = test_approximate_response.frozen("kuhn_poker")
    metrics = frozen_game.task.metrics(frozen_game.policies)
    gained = 0.0
    for player in range(2):
        payoff, exact = payoffs(player), exact_payoff(frozen_game, player)
        error = payoff.std() / np.sqrt(len(payoff))
        assert exact <= metrics.value[player] + metrics.improvements[player] + 1e-5
        assert payoff.mean() < exact + 4 * error
        assert payoff.mean() > exact - 4 * error - 0.05 * metrics.improvements[player]
        gained += (payoff.mean() - metrics.value[player]) / error
    assert gained > 8  # standard errors above the policies


def test_moves_are_tried_evenly() -> None:
    rng = np.random.default_rng(0)
    legal = rng.random((5, 40)) < 0.5
    legal[:, 0] = False
    tried = np.asarray(local_best_response.assign_actions_evenly(jnp.asarray(legal), 13))
    assert tried.shape == (40, 13)
    for own, moves in zip(legal.T[1:], tried[1:], strict=True):
        if own.any():
            counts = np.bincount(moves, minlength=5)
            assert (counts[~own] == 0).all()
            assert np.ptp(counts[own]) <= 1


def test_means_and_errors() -> None:
    rng = np.random.default_rng(1)
    tried, payoff = rng.integers(0, 3, (6, 50)), rng.normal(size=(6, 50))
    mean, error = local_best_response.mean_payoff_by_action(jnp.asarray(tried), jnp.asarray(payoff), 4)
    for match in range(6):
        for move in range(3):
            own = payoff[match][tried[match] == move]
            assert mean[move, match] == pytest.approx(own.mean(), rel=1e-5, abs=1e-6)
            assert error[move, match] == pytest.approx(own.std() / np.sqrt(len(own)), rel=1e-5)
    assert np.isneginf(np.asarray(mean[3])).all()


def test_search_for_a_bound() -> None:
    frozen_game = test_approximate_response.frozen("kuhn_poker")
    exact = frozen_game.task.metrics(frozen_game.policies)
    rounds = list(
        search_bounds.search(frozen_game.game, frozen_game.table, jax.random.key(0), seconds=2.0, config=BOUND_CONFIG)
    )
    last = rounds[-1]
    assert len(rounds) > 1
    assert [own.batches for own in last.improvements] > [own.batches for own in rounds[0].improvements]
    assert last.exploitability is not None
    assert exact.exploitability is not None
    assert 0.8 * exact.exploitability < last.exploitability < exact.exploitability + 4 * last.standard_error
    for own, gain, value in zip(last.improvements, exact.improvements, exact.value, strict=True):
        assert own.improvement < gain + 4 * own.standard_error
        assert abs(own.value - value) < 0.05
        assert {response.method for response in own.responses} == {"learnt", "local"}
        assert own.sets == 6


def test_no_room_for_the_ends_of_matches() -> None:
    frozen_game = test_approximate_response.frozen("kuhn_poker")
    short = BOUND_CONFIG._replace(learning=approximate_response.LearnerConfig(steps=2))
    with pytest.raises(search_bounds.UnfinishedMatchesError, match=r"capacity of 2 joint actions.*`max_steps=4`"):
        next(search_bounds.search(frozen_game.game, frozen_game.table, jax.random.key(0), seconds=1.0, config=short))


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert cli.main(arguments) == 0
    return capsys.readouterr().out


class SearchCall(NamedTuple):
    """The arguments of a search."""

    game: packed_env.PackedEnv
    policies: table_policy.TablePolicy
    seconds: float
    config: search_bounds.BoundConfig


def some_bound() -> estimates.ExploitabilityBound:
    rng = np.random.default_rng(0)
    halves = estimates.EMPTY_SPLIT.plus(rng.normal(1, 1, 500)).plus(rng.normal(1, 1, 500))
    policies = estimates.empty_moments(2).plus(np.zeros((2, 500)))
    return estimates.combine_matches(
        ("player1", "player2"),
        estimates.SplitMatches(policies, policies),
        [estimates.ResponderMatches(halves, estimates.EMPTY_SPLIT, 3, 6)] * 2,
        1.5,
    )


def record_searches(monkeypatch: pytest.MonkeyPatch, *, is_interrupted: bool = False) -> list[SearchCall]:
    """Replaces searches: records their arguments and returns some bound."""
    calls = []

    def search(
        game: packed_env.PackedEnv,
        policies: table_policy.TablePolicy,
        key: jax.Array,
        *,
        seconds: float,
        config: search_bounds.BoundConfig,
    ) -> Iterator[estimates.ExploitabilityBound]:
        calls.append(SearchCall(game, policies, seconds, config))
        yield some_bound()
        if is_interrupted:
            raise KeyboardInterrupt

    monkeypatch.setattr(search_bounds, "search", search)
    return calls


def solved(capsys: pytest.CaptureFixture[str], folder: pathlib.Path, *more: str) -> str:
    arguments = ("solve", "kuhn_poker", "--iterations", "2", "--results", str(folder), "--json", *more)
    return str(json.loads(printed(capsys, *arguments))["result"])


@pytest.mark.parametrize(
    "more",
    [(), pytest.param(("--algorithm", "os-mccfr", "--table", "8", "--max-steps", "12"), marks=pytest.mark.slow)],
)
def test_evaluate(
    more: tuple[str, ...], tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = record_searches(monkeypatch)
    folder = solved(capsys, tmp_path, *more)
    output = json.loads(printed(capsys, "evaluate", folder, "--bound", "--bound-seconds", "7", "--json"))
    (question,) = calls
    assert question.seconds == 7
    assert question.config.steps == (12 if more else 5)
    tree = samples.load_tree("kuhn_poker")
    (*_, chosen), *_ = table_policy.to_tabular(question.policies, question.game.env, tree)
    last = output["policy"][-1]  # in the order of the rules, not of the tree
    infoset = tree.players[1].labels.index(last["history"])
    span = slice(tree.players[1].first[infoset], tree.players[1].first[infoset + 1])
    assert list(last["policy"].values()) == pytest.approx(chosen[span].tolist(), rel=1e-5)
    result = some_bound()
    assert result.interval is not None
    assert output["exploitability_bound"] == result.exploitability
    assert output["exploitability_bound_interval"] == list(result.interval)
    gained = output["bound"]["players"]["player1"]
    assert gained["improvement"] == result.improvements[0].improvement
    assert gained["response"] == "learnt"
    assert list(gained["responses"]) == ["learnt"]
    assert not output["bound"]["interrupted"]


def test_evaluate_in_words(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    record_searches(monkeypatch)
    text = printed(capsys, "evaluate", solved(capsys, tmp_path), "--bound")
    result = some_bound()
    assert f"lower bound on exploitability {result.exploitability:.4g} (95 %" in text
    assert "unknown" in text  # of the local response, which was not played


def test_ctrl_c_tells_what_there_is(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    record_searches(monkeypatch, is_interrupted=True)
    assert cli.main(["evaluate", solved(capsys, tmp_path), "--bound", "--json"]) == 130
    output = json.loads(capsys.readouterr().out)
    assert output["exploitability_bound"] == some_bound().exploitability
    assert output["bound"]["interrupted"]


def test_seconds_are_of_a_bound(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["evaluate", str(tmp_path), "--bound", "--bound-seconds", "inf"]) == 2
    assert "stop with Ctrl-C" in " ".join(capsys.readouterr().err.split())
    assert cli.main(["evaluate", str(tmp_path), "--bound-seconds", "3"]) == 2
    assert "--bound-seconds needs --bound" in capsys.readouterr().err
