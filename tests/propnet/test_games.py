"""Loading and compiling a game by its name."""

import pathlib

import pytest

from gdlx.propnet import games
from gdlx.propnet.circuits import compiler
from gdlx.propnet.common import errors
from gdlx.propnet.io import files


def test_a_game_is_compiled_by_name_path_or_rulesheet(tmp_path: pathlib.Path) -> None:
    sheet = games.load_rulesheet("rps")
    path = tmp_path / "rps.gdl"
    path.write_text(games.find_source("rps").text)
    propnets = [games.compile_game(game) for game in ("rps", str(path), sheet)]
    assert [propnet.fluents for propnet in propnets] == [propnets[0].fluents] * 3
    assert [propnet.name for propnet in propnets] == ["rps", str(path), "rps"]


def test_only_what_is_compiled_is_reported() -> None:
    games.compile_game("rps")
    passes: list[compiler.PassStatistics] = []
    games.compile_game("rps", report=passes.append)
    assert not passes
    games.compile_game("rps", report=passes.append, recompile=True)
    assert passes


@pytest.mark.parametrize("suffix", games.PROPNET_SUFFIXES)
def test_a_saved_propnet_is_read_only_where_it_may_be(suffix: str, tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / f"rps{suffix}")
    files.save_propnet(games.compile_game("rps"), path)
    assert games.compile_game(path, saved=True).fluents == games.compile_game("rps").fluents
    with pytest.raises(errors.UserError, match="this needs a rulesheet"):
        games.compile_game(path)


def test_how_a_sheet_is_read() -> None:
    assert games.load_rulesheet("kuhn_poker").language == 2
    assert games.load_rulesheet("kuhn_poker", gdl=1).language == 1
    as_gdl = games.compile_game("kuhn_poker", gdl=1)
    assert all(name.startswith("(does ") for role in as_gdl.players for name in role.percepts)
    with pytest.raises(errors.UserError, match="not as 3"):
        games.compile_game("kuhn_poker", gdl=3)
