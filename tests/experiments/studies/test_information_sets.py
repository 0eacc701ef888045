"""The study of information sets in miniature."""

import dataclasses
import pathlib

import pytest

from gdlx.experiments.studies import study_registry
from gdlx.experiments.studies.information_sets import published, study
from gdlx.propnet import games
from gdlx.propnet.observations import positions
from gdlx.tests.helpers import observations


def test_a_cell_counts_what_recursion_finds() -> None:
    name = "racko:slots=2,cards=6"
    row = study.measure_cell(name, 10.0, seed=1, count=3)
    assert row["ways"] == ["enumerate"] * 3
    assert row["histories"] == row["distinct"]
    net = games.compile_game(name)
    for number, (steps, histories) in enumerate(zip(row["moves"], row["histories"], strict=True)):
        player, match = number % 2, 100_000 + number
        position = positions.random_position(net, player, steps, match)
        assert histories == len(observations.list_histories(net, player, position.events))


def test_the_tables(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = {"racko": [published.Cell("racko:slots=2,cards=6", 131, 0)]}
    monkeypatch.setattr(published, "cells", lambda: cells)
    monkeypatch.setattr(study, "POSITIONS", 2)
    setting = study_registry.StudyConfig(tmp_path, minutes=1.0)
    (table,) = study.run(setting)
    ((game, counted, *_, constraints, search),) = table.rows
    assert (game, counted, constraints, search) == ("racko:slots=2,cards=6", "2 of 2", "131", "0")
    notes: list[str] = []
    (again,) = study.run(dataclasses.replace(setting, report=notes.append))
    assert again == table
    assert not notes  # cached
