"""Propnets and trainings that were saved before the names of the redesign are still read."""

import json
import pathlib
import shutil

import pytest

from gdlx import cli
from gdlx.propnet import games
from gdlx.propnet.io import files
from gdlx.tests.helpers import paths

OLD = paths.DATA / "before_redesign"


@pytest.mark.parametrize("name", ["rps.npz", "rps.json"])
def test_a_propnet(name: str) -> None:
    old, new = files.load_propnet(OLD / name), games.compile_game("rps")
    for before, now in zip(old.roles, new.roles, strict=True):
        assert (before.name, before.moves, before.percepts) == (now.name, now.moves, now.percepts)
        assert before.goal_values == now.goal_values
    assert old.gates == new.gates


def test_a_training_is_evaluated_and_resumed(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = pathlib.Path(shutil.copytree(OLD / "self_play", tmp_path / "self_play"))
    assert "strangers" in json.loads((folder / "config.json").read_text())["settings"]  # the name before
    assert cli.main(["evaluate", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["iterations"] == 1
    assert cli.main(["train", "--resume", str(folder), "--iterations", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["iterations"] == 2
