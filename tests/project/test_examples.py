"""The programs of examples/ run, and do what they say."""

import importlib.util
import pathlib
from types import ModuleType

import numpy as np
import pytest

from gdlx.envs import game_spec
from gdlx.solvers import tabular_policies, tasks
from gdlx.tests.helpers import paths

FOLDER = paths.ROOT / "examples"
NAMES = {
    "custom_agent",
    "custom_cfr_variant",
    "ppo",
    "ppo_pgx",
    "random_play",
    "solve_own_game",
    "sweep_settings",
    "train_self_play",
}


def _load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_example_is_tested() -> None:
    assert {path.stem for path in pathlib.Path(FOLDER).glob("*.py")} == NAMES


def test_random_play() -> None:
    task = tasks.make_tree_task(game_spec.GameSpec("leduc_poker"))
    exact = task.metrics(tuple(map(tabular_policies.uniform, task.tree.players))).value[0]
    # Payoffs have a standard deviation of about 4 chips, so a mean of 4 096 games one of 0.06.
    assert _load("random_play").main() == pytest.approx(exact, abs=0.3)


def test_solve_own_game() -> None:
    solution = _load("solve_own_game").main()
    # 20 p = 10 (1 - p): even is indifferent where odd shows heads with 1/3, and the other way around; value 20/3.
    assert solution.policy("even")["(show heads)"] == pytest.approx(1 / 3, abs=0.01)
    assert solution.value[0] == pytest.approx(20 / 3, abs=0.01)


def test_ppo() -> None:
    """Uniform play is exploited by 2.4 chips, a fresh network by about 2; learning lowers it at once."""
    assert _load("ppo").main(30, every=30) < 1.5


def test_ppo_on_pgx(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The same loop learns to win against uniform play: a fresh network wins nothing."""
    pytest.importorskip("pgx")
    monkeypatch.syspath_prepend(FOLDER)
    _load("ppo_pgx").main(30, every=30)
    won = [float(line.split(", ")[1].split()[0]) for line in capsys.readouterr().out.splitlines()[:2]]
    assert won[0] < 0.5 < won[1]


def test_sweep_settings() -> None:
    exploitability = _load("sweep_settings").main()
    assert exploitability.shape == (1024,)
    assert np.all(exploitability > 0)
    assert exploitability.min() < 1e-3


def test_custom_agent() -> None:
    result = _load("custom_agent").main()
    assert result.games == 200
    assert not result.incidents
    # As the first player it bets: half of the time the other folds, else the showdown is even, which is worth 1/2.
    # As the second it folds to a bet and bets after a check: -1/2 + 1/4. 200 games leave a standard error of 0.1.
    assert result.scores[0].overall.payoff.mean == pytest.approx((1 / 2 - 1 / 4) / 2, abs=0.4)


def test_custom_cfr_variant() -> None:
    exploitability = _load("custom_cfr_variant").main()
    assert set(exploitability) == {"cfr", "dcfr", "slow-pcfr"}
    assert exploitability["slow-pcfr"] < exploitability["cfr"]


def test_train_self_play(capsys: pytest.CaptureFixture[str]) -> None:
    # Uniformly random play of tic-tac-toe gives the first player 58 % wins and 13 % draws, a goal of 65.
    assert _load("train_self_play").main(iterations=2) > 45
    assert "iteration 2: loss" in capsys.readouterr().out
