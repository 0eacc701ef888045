"""Published studies, in miniature: what they print and cache, and how they resume."""

import json
import pathlib
from typing import Any

import pytest

from gdlx import cli
from gdlx.experiments.studies import study_registry
from gdlx.experiments.studies.blind_tictactoe import study as blind
from gdlx.experiments.studies.head_to_head import study as duel
from gdlx.solvers.runs import result_folder

TINY = duel.StudyGame("kuhn_poker", "nobody", True, 4.0, [duel.Pairing("mccfr", "random", (0.1, None))])


def test_tables_are_compared_with_the_game_that_was_published() -> None:
    # Section 4.4 of West (2024): Liar's Dice "also known as Meier"; a random first player gets 35 goals of 100.
    assert [game.spec for game in duel.GAMES if game.source == "West 2024, Table 6"] == ["meier"]


def test_every_study_is_there_and_has_a_readme() -> None:
    for name in study_registry.STUDIES:
        actual = study_registry.load_study(name)
        assert 0 < actual.MINUTES <= min(30, actual.FULL_MINUTES)
        readme = pathlib.Path(study_registry.__file__).parent / name / "README.md"
        assert f"gdlx experiment {name}" in readme.read_text()


def test_an_unknown_study_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["experiment", "blind_tictacto"]) == 1
    assert "is it blind_tictactoe?" in capsys.readouterr().err
    assert cli.main(["experiment"]) == 0
    assert "head_to_head" in capsys.readouterr().out
    assert cli.main(["experiment", "head_to_head", "--minutes", "-1"]) == 2


def test_kinds_of_openings() -> None:
    policy = {f"(mark {m} {n})": 10.0 * m + n for m in (1, 2, 3) for n in (1, 2, 3)}
    assert blind.summarize_openings(policy) == blind.Openings((22, 22), (11, 33), (12, 32))


@pytest.mark.slow
def test_a_match_of_a_study_is_cached(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(duel, "GAMES", (TINY,))
    monkeypatch.chdir(tmp_path)
    command = ["experiment", "head_to_head", "--minutes", "0.01", "--games", "64", "--json"]
    tables = []
    for _ in range(2):
        assert cli.main(command) == 0
        tables.append(json.loads(capsys.readouterr().out)["tables"])
    assert tables[0] == tables[1]  # the second time nothing is played
    (table,) = tables[0]
    (row,) = table["data"]["kuhn_poker"]
    assert row["published"][0] == pytest.approx(2.5)  # of a range of 4
    assert abs(row["ours"][0]) < 50
    assert json.loads((tmp_path / "results/experiments/head_to_head/tables.json").read_text())["tables"] == tables[1]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blind, "_SETTINGS", {"table": 14, "batch": 256})
    monkeypatch.setattr(blind, "PUBLISHED", {"even": blind.PUBLISHED["even"]})


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_sampling_resumes(tmp_path: pathlib.Path) -> None:
    def at(minutes: float, seed: int = 0) -> tuple[Any, Any]:
        return blind.solve_variant(
            "even", tmp_path / "even", minutes, study_registry.StudyConfig(tmp_path, minutes, seed)
        )

    _, first = at(0.01)
    task, second = at(0.02)
    assert second.metrics[-1].seconds >= 1.2 > first.metrics[-1].seconds >= 0.6
    assert second.iterations > first.iterations
    assert sum(second.policy("x").values()) == pytest.approx(1)
    assert task.env.num_players == 2
    with pytest.raises(result_folder.ResultError, match="other settings"):
        at(0.02, seed=1)
