"""Whatever names a game: paths, text, propnets, environments and trees are accepted wherever a name is."""

import pathlib
from typing import Any

import pytest

import gdlx
from gdlx.envs import game_spec
from gdlx.envs.bridges import pgx_env
from gdlx.propnet import library
from gdlx.propnet.common import errors
from gdlx.solvers import tasks

RULES = library.text("tictactoe")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    made = tmp_path_factory.mktemp("games") / "mine.gdl"
    made.write_text(library.text("rps"))
    return made


def test_everything_that_names_a_game(path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    env = gdlx.make(path)
    sheet = gdlx.check(path).require_usable()
    games: list[Any] = [path, str(path), pathlib.Path(path.name), env, env.propnet, gdlx.unroll(path), sheet]
    games += [game_spec.GameSpec(str(path)), game_spec.GameSpec("mine", rules=path.read_text())]
    for game in games:
        solution = gdlx.solve(game, "lp")
        assert sorted(solution.policy("player1").values()) == pytest.approx([1 / 3] * 3), game
        assert tasks.make_tree_task(game).players == ["player1", "player2"], game
        if not isinstance(game, gdlx.GameTree):
            assert gdlx.make(game).players == ("player1", "player2"), game
            assert gdlx.compile(game).gates == env.propnet.gates, game


def test_a_path_is_never_a_library_game(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match="rps"):
        gdlx.make(pathlib.Path("rps"))
    (tmp_path / "rps").write_text(RULES)
    assert len(gdlx.compile(pathlib.Path("rps")).players[0].moves) == 10  # of tictactoe


def test_rules_as_text() -> None:
    assert gdlx.make(rules=RULES).players == ("x", "o")
    assert gdlx.check(rules=RULES).errors == ()
    assert pgx_env.make_pgx_env(rules=RULES).num_actions == 10
    assert gdlx.compete(rules=RULES, players=["random", "random"], games=32).games == 32
    assert gdlx.check(game_spec.GameSpec("mine", rules="(role a)")).errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "pass a game, or the text of its rules"),
        ((RULES,), "this is the text of rules.*`rules=`"),
        (("rps", RULES), "not both"),
        ((3,), "a game is a library name.*not a int"),
    ],
)
def test_what_is_no_game(arguments: tuple[Any, ...], message: str) -> None:
    game, rules = (*arguments, None, None)[:2]
    for function in (gdlx.make, gdlx.solve, gdlx.unroll, gdlx.compete):
        with pytest.raises(errors.UserError, match=message) as caught:
            function(game, rules=rules)
        assert len(str(caught.value)) < 250  # not the whole game


def test_only_rules_can_be_checked() -> None:
    with pytest.raises(errors.UserError, match=r"this reads rules.*not a PropNet"):
        gdlx.check(gdlx.compile("rps"))  # type: ignore[arg-type]
    with pytest.raises(errors.UserError, match=r"has no rules to play by"):
        gdlx.make(gdlx.unroll("rps"))
