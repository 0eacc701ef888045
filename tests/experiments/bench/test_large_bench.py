"""The figures of games of ten billion histories, measured on games that are small."""

import pathlib

import pytest

from gdlx.envs import compilation_cache
from gdlx.experiments.bench import large_bench
from gdlx.experiments.bench.measuring import children


@pytest.mark.parametrize("game", ["phantom_ttt:width=2,height=3", "dark_hex:columns=2,rows=2"])
def test_the_same_game_is_measured_with_and_without_symmetric_information_sets(
    game: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GDLX_CACHE", str(tmp_path))  # so that it is again what it was
    monkeypatch.setattr(compilation_cache, "enable", lambda: None)
    whole, symmetric = (large_bench.measure(game, 10, str(tmp_path), symmetries) for symmetries in (False, True))
    for name in ("terminals", "exploitability", "value"):
        assert symmetric[name] == pytest.approx(whole[name], abs=1e-5)
    assert symmetric["information_sets"] < whole["information_sets"]


def test_every_game_has_figures_and_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = dict.fromkeys(("terminals", "information_sets", "states"), 10.0)
    rest = ("unroll", "memory", "iteration", "evaluation", "exploitability", "value", "seconds", "solved")
    actual = counts | dict.fromkeys(rest, 0.5)
    monkeypatch.setattr(children, "call", lambda function, *_: 1.0 if function is large_bench.start_again else actual)
    figures = list(large_bench.figures())
    names = [figure.name for figure in figures]
    assert len(set(names)) == len(names)
    bounds = {figure.name: figure.target.bound for figure in figures if figure.target is not None}
    quotient = "without symmetric information sets: exact exploitability, processor time"
    assert bounds[f"phantom_ttt {quotient}"] == 0.1
    assert bounds[f"dark_hex {quotient}"] == 0.25
    exact = "abrupt phantom_ttt without symmetric information sets: from the rules to an exact exploitability"
    assert bounds[f"{exact}, processor time"] == 600
    state_game = "tictactoe: a process that solves it exactly by backward induction"
    assert bounds[f"{state_game}, with an empty cache, processor time"] == 10
    assert bounds[f"{state_game}, again, processor time"] == 3


def test_games_of_states_are_measured(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GDLX_CACHE", str(tmp_path))
    monkeypatch.setattr(compilation_cache, "enable", lambda: None)
    measured = large_bench.measure_states("repeated_rps:rounds=3", str(tmp_path))
    assert measured["states"] == 16
    assert measured["exploitability"] < 1e-9
    assert measured["seconds"] > 0
