"""The one way from a game as a user names it, a library name with parameters or a path, to rulesheet and propnet."""

import pathlib
from typing import TYPE_CHECKING

from gdlx.propnet import library
from gdlx.propnet.checks import checker
from gdlx.propnet.common import errors, limits
from gdlx.propnet.syntax import rulesheet, source

if TYPE_CHECKING:
    from gdlx.propnet.circuits import compiler, propnet

_SUFFIXES = (".gdl", ".kif", ".txt")
PROPNET_SUFFIXES = (".npz", ".json")


def find_source(game: str) -> source.Source:
    """The text of a library game (`goofspiel:cards=5`) or of a file."""
    if not isinstance(game, str):
        raise errors.UserError(f"a game is named by a string, a library name or a path; not by {game!r}")
    looks_like_path = "/" in game or "\\" in game or game.lower().endswith(_SUFFIXES)
    if looks_like_path or (game not in library.names() and game and pathlib.Path(game).exists()):
        if pathlib.Path(game).is_dir():
            raise errors.UserError(f"{game} is a folder, and this needs a rulesheet")
        if is_propnet_file(game):
            raise errors.UserError(f"{game} is a network file, and this needs a rulesheet")
        return source.Source.from_path(game)
    return source.Source(game, library.text(game))


def is_propnet_file(game: str) -> bool:
    """Whether a game is named by the path of its saved propnet."""
    return game.lower().endswith(PROPNET_SUFFIXES)


def load_rulesheet(game: str, *, fold_case: bool = False, gdl: int | None = None) -> rulesheet.Rulesheet:
    """The checked rulesheet of a game.

    Args:
      game: a library name, with parameters or without (`goofspiel:cards=5`), or the path of a rulesheet.
      fold_case: whether names that differ only by case are the same.
      gdl: 1 or 2 to read the sheet as GDL or GDL-II; None to decide it from the text.

    Raises:
      GdlError: with everything that makes the sheet unusable.
    """
    if gdl not in (None, 1, 2):
        raise errors.UserError(f"a sheet is read as GDL (1) or GDL-II (2), not as {gdl!r}")
    return checker.check(find_source(game), fold_case=fold_case, gdl=gdl).require_usable()


def check_game(game: str, *, fold_case: bool = False, gdl: int | None = None) -> checker.CheckReport:
    """Everything that is wrong with the rules of a game; raises nothing for mistakes in them.

    Args:
      game: what `load_rulesheet` takes.
      fold_case: as in `load_rulesheet`.
      gdl: as in `load_rulesheet`.

    Returns:
      The rulesheet, as far as it could be read, with errors and warnings that point into the text.

    >>> check_game("kuhn_poker").errors
    ()
    """
    return checker.check(find_source(game), fold_case=fold_case, gdl=gdl)


def compile_game(
    game: str | rulesheet.Rulesheet,
    *,
    fold_case: bool = False,
    gdl: int | None = None,
    within: limits.Limits = limits.Limits(),
    report: "compiler.PassCallback | None" = None,
    recompile: bool = False,
    saved: bool = False,
) -> "propnet.PropNet":
    """The propnet of a game, from the cache or compiled and put there.

    Args:
      game: what `load_rulesheet` takes, or its rulesheet.
      fold_case: as in `load_rulesheet`.
      gdl: as in `load_rulesheet`.
      within: limits of grounding.
      report: called with the statistics of every pass of the compiler; not at all where the propnet was cached.
      recompile: whether to compile even what is cached.
      saved: whether `game` may also be the path of a saved propnet (.npz, .json), which is then read.

    Raises:
      GdlError: where the sheet is unusable or a limit stops its grounding.

    >>> [role.name for role in compile_game("kuhn_poker").players]
    ['player1', 'player2']
    """
    from gdlx.propnet.io import cache, files  # here, because commands that only read rules start sooner without

    if saved and isinstance(game, str) and is_propnet_file(game):
        return files.load_propnet(game)
    sheet = game if isinstance(game, rulesheet.Rulesheet) else load_rulesheet(game, fold_case=fold_case, gdl=gdl)
    return cache.load_or_compile(sheet, within, report, recompile=recompile)
