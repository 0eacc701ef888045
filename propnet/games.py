"""Loads, checks and compiles a game: by library name, with or without parameters, by path, or by the text of rules."""

import os
import pathlib
import re
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from gdlx.propnet import library
from gdlx.propnet.checks import checker
from gdlx.propnet.common import errors, limits
from gdlx.propnet.syntax import rulesheet, source

if TYPE_CHECKING:
    from gdlx.propnet.circuits import compiler, propnet

_SUFFIXES = (".gdl", ".kif", ".txt")
PROPNET_SUFFIXES = (".npz", ".json")
OPEN_SPIEL = "spiel:"  # names a game of OpenSpiel, which has no rulesheet: it can be unrolled and solved
RULES_NAME = "rules"  # the name of a game whose rules were passed as text
_RULES = re.compile(r"\s*[(;]|.*(?:\n|<=|:-)", re.DOTALL)  # no library name or path that anybody would choose

GameName = str | os.PathLike[str]


class HasPropNet(Protocol):
    """An object that was made from a propnet, such as an environment."""

    @property
    def propnet(self) -> "propnet.PropNet": ...


@runtime_checkable
class Specification(Protocol):
    """A game and how to read its rules, such as a `GameSpec`."""

    @property
    def spec(self) -> str: ...

    @property
    def rules(self) -> str | None: ...

    @property
    def gdl(self) -> int | None: ...

    @property
    def fold_case(self) -> bool: ...


def require_one(game: object, rules: object) -> None:
    """Raises unless either a game or the text of its rules is passed."""
    if (game is None) == (rules is None):
        raise errors.UserError(
            f"pass a game, or the text of its rules as `rules=`{'; not both' if rules is not None else ''}"
        )
    if rules is not None and not isinstance(rules, str):
        raise errors.UserError(f"`rules=` is the text of a rulesheet, not a {type(rules).__name__}")


def wrong_type(game: object) -> errors.UserError:
    """Returns the error for an argument that cannot be a game."""
    return errors.UserError(
        "a game is a library name, a path, `rules=`, or a GameSpec, Rulesheet, PropNet, Env or GameTree; "
        f"not a {type(game).__name__}"
    )


def find_source(game: GameName | None = None, *, rules: str | None = None) -> source.Source:
    """Returns the text of a library game (`goofspiel:cards=5`), of a rulesheet file, or `rules` themselves."""
    require_one(game, rules)
    if rules is not None:
        return source.Source.from_bytes(RULES_NAME, rules.encode(errors="replace"))
    if isinstance(game, os.PathLike):
        return _read(os.fspath(game))
    if not isinstance(game, str):
        raise errors.UserError(
            f"this reads rules, so it takes a library name, a path, `rules=` or a GameSpec; not a {type(game).__name__}"
        )
    if _RULES.match(game):
        raise errors.UserError(
            "this is the text of rules, not the name or the path of a game: pass it as `rules=`, "
            "or write it to a file and name that"
        )
    if game.startswith(OPEN_SPIEL):
        raise errors.UserError(
            f"{game} is a game of OpenSpiel, which has no rulesheet, and this needs one; it can be unrolled and "
            "solved (`gdlx solve`; in Python `gdlx.unroll`, `gdlx.solve`)"
        )
    looks_like_path = "/" in game or "\\" in game or game.lower().endswith(_SUFFIXES)
    if looks_like_path or (game not in library.names() and game and pathlib.Path(game).exists()):
        return _read(game)
    try:
        return source.Source(game, library.text(game))
    except library.LibraryError as error:
        paths = [game + suffix for suffix in _SUFFIXES if pathlib.Path(game + suffix).is_file()]
        if not paths:
            raise
        raise library.LibraryError(f"{error} There is a file {paths[0]}: name it with its ending.") from None


def is_game(name: str) -> bool:
    """Whether a name is that of a library game or the path of a rulesheet."""
    try:
        find_source(name)
    except (errors.UserError, OSError):
        return False
    return True


def _read(path: str) -> source.Source:
    if pathlib.Path(path).is_dir():
        raise errors.UserError(f"{path} is a folder, and this needs a rulesheet")
    if is_propnet_file(path):
        raise errors.UserError(f"{path} is a propnet file, and this needs a rulesheet")
    return source.Source.from_path(path)


def is_propnet_file(game: GameName) -> bool:
    """Whether `game` is the path of a saved propnet."""
    return os.fspath(game).lower().endswith(PROPNET_SUFFIXES)


def load_rulesheet(
    game: GameName | Specification | rulesheet.Rulesheet | None = None,
    *,
    rules: str | None = None,
    fold_case: bool = False,
    gdl: int | None = None,
) -> rulesheet.Rulesheet:
    """Loads and checks the rulesheet of a game.

    Args:
      game: a library name, with or without parameters (`goofspiel:cards=5`), the path of a rulesheet, or a `GameSpec`;
        a `Rulesheet` is returned as it is.
      rules: the text of the rulesheet, instead of `game`.
      fold_case: whether names that differ only by case are the same.
      gdl: 1 or 2 to read the sheet as GDL or GDL-II; None to infer the language from the text.

    Returns:
      The rulesheet, which has no errors.

    Raises:
      GdlError: if the sheet has errors; it lists all of them.
      UserError: if `game` is not a rulesheet, or `gdl` is not 1, 2 or None.

    >>> load_rulesheet("rps")
    Rulesheet(rps: GDL, 18 rules)
    """
    if gdl not in (None, 1, 2):
        raise errors.UserError(f"a sheet is read as GDL (1) or GDL-II (2), not as {gdl!r}")
    if isinstance(game, rulesheet.Rulesheet):
        return game
    return check_game(game, rules=rules, fold_case=fold_case, gdl=gdl).require_usable()


def check_game(
    game: GameName | Specification | None = None,
    *,
    rules: str | None = None,
    fold_case: bool = False,
    gdl: int | None = None,
) -> checker.CheckReport:
    """Checks the rules of a game and reports all errors and warnings at once.

    Mistakes in the rules do not raise.

    Args:
      game: a library name, the path of a rulesheet, or a `GameSpec`, as in `load_rulesheet`.
      rules: the text of the rulesheet, instead of `game`.
      fold_case: as in `load_rulesheet`.
      gdl: as in `load_rulesheet`.

    Returns:
      The rulesheet, as far as it could be parsed, with diagnostics that point into its text.

    Raises:
      UserError: if `game` is not a rulesheet.

    >>> import gdlx
    >>> gdlx.check("kuhn_poker")
    CheckReport(kuhn_poker: 0 errors, 0 warnings)
    """
    if isinstance(game, Specification):
        gdl, fold_case, rules = game.gdl, game.fold_case, game.rules
        game = game.spec if rules is None else None
    return checker.check(find_source(game, rules=rules), fold_case=fold_case, gdl=gdl)


def compile_game(
    game: "GameName | Specification | rulesheet.Rulesheet | propnet.PropNet | HasPropNet | None" = None,
    *,
    rules: str | None = None,
    fold_case: bool = False,
    gdl: int | None = None,
    within: limits.Limits = limits.Limits(),
    report: "compiler.PassCallback | None" = None,
    recompile: bool = False,
    saved: bool = False,
) -> "propnet.PropNet":
    """Compiles a game to a propnet, or loads the propnet from the cache on disk.

    Args:
      game: a library name or the path of a rulesheet, as in `load_rulesheet`; a `GameSpec` or `Rulesheet`; or a
        `PropNet`, which is returned as it is, or an `Env`, whose propnet is returned.
      rules: the text of the rulesheet, instead of `game`.
      fold_case: as in `load_rulesheet`.
      gdl: as in `load_rulesheet`.
      within: limits on the time, memory and ground rules of compiling.
      report: called with the statistics of every compiler pass; never called if the propnet was cached.
      recompile: whether to compile even if the propnet is cached.
      saved: whether `game` may also be the path of a saved propnet (.npz, .json), which is then loaded.

    Returns:
      The simplified propnet.

    Raises:
      GdlError: if the sheet has errors, or compiling exceeds a limit.
      UserError: if `game` is not a rulesheet.
      PropNetFileError: if `saved` and the file is not a valid propnet.

    >>> import gdlx
    >>> propnet = gdlx.compile("kuhn_poker")
    >>> propnet
    PropNet(kuhn_poker: 2 players, 17 registers, 42 gates)
    >>> [role.name for role in propnet.players]
    ['player1', 'player2']
    """
    from gdlx.propnet.checks import explosions  # here, so that commands that only parse rules start sooner
    from gdlx.propnet.circuits import propnet
    from gdlx.propnet.io import cache, files

    require_one(game, rules)
    if isinstance(game, Specification):
        gdl, fold_case, rules = game.gdl, game.fold_case, game.rules
        game = game.spec if rules is None else None
    match getattr(game, "propnet", game):  # that of an environment
        case propnet.PropNet() as compiled:
            return compiled
        case rulesheet.Rulesheet() as sheet:
            pass
        case str() | os.PathLike() as name if saved and is_propnet_file(name):
            return files.load_propnet(name)
        case None | str() | os.PathLike() as name:
            sheet = load_rulesheet(name, rules=rules, fold_case=fold_case, gdl=gdl)
        case _:
            raise wrong_type(game)
    with explosions.explained(sheet):
        return cache.load_or_compile(sheet, within, report, recompile=recompile)
