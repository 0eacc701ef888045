"""Propnets, trainings and settings with the names from before the redesign are still read."""

import dataclasses
import json
import pathlib
import shutil
import warnings
from typing import Any

import pytest

from gdlx import cli
from gdlx.envs import game_spec
from gdlx.nets import checkpoints
from gdlx.nets.learners import learner_registry, self_play
from gdlx.propnet import games
from gdlx.propnet.io import files
from gdlx.tests.helpers import paths

OLD = paths.DATA / "before_redesign"
SETTINGS = self_play.Settings(widths=(8, 8))
CONFIG = learner_registry.TrainConfig(game_spec.GameSpec("kuhn_poker"), "self-play", 5, SETTINGS)


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


_FORMER = {"strangers": 0.25, "coldest": 0.02, "smoothing": 0.9}
_CURRENT: dict[str, Any] = {"uniform_opponent_fraction": 0.25, "min_temperature": 0.02, "ema_decay": 0.9}


def test_an_old_config_with_former_names_of_settings_is_read(tmp_path: pathlib.Path) -> None:
    settings = dataclasses.replace(CONFIG.settings, **_CURRENT)
    checkpoints.write_config(tmp_path, dataclasses.replace(CONFIG, settings=settings), "digest", 3)
    path = tmp_path / "config.json"
    config = json.loads(path.read_text())
    assert {name: config["settings"].pop(name) for name in _CURRENT} == _CURRENT
    path.write_text(json.dumps(config | {"settings": config["settings"] | _FORMER}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        config, digest, seed = checkpoints.read_train_config(tmp_path)
    assert (config.settings, digest, seed) == (settings, "digest", 3)


def test_former_names_of_settings_are_accepted_as_text_with_a_note() -> None:
    for (old, value), new in zip(_FORMER.items(), _CURRENT, strict=True):
        with pytest.warns(FutureWarning, match=f"the setting {old} of self-play is now called {new}"):
            settings = learner_registry.make_settings("self-play", {old: str(value)})
        assert settings == self_play.Settings(**{new: _CURRENT[new]})
        with (
            pytest.warns(FutureWarning),
            pytest.raises(learner_registry.TrainConfigError, match=f"set only {new}"),
        ):
            learner_registry.make_settings("self-play", {old: str(value), new: str(value)})
