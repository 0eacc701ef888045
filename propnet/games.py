"""Loads, checks and compiles a game that is specified by library name, with or without parameters, or by path."""

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
    """Returns the text of a library game (`goofspiel:cards=5`) or of a rulesheet file."""
    if not isinstance(game, str):
        raise errors.UserError(f"a game is named by a string, a library name or a path; not by {game!r}")
    looks_like_path = "/" in game or "\\" in game or game.lower().endswith(_SUFFIXES)
    if looks_like_path or (game not in library.names() and game and pathlib.Path(game).exists()):
        if pathlib.Path(game).is_dir():
            raise errors.UserError(f"{game} is a folder, and this needs a rulesheet")
        if is_propnet_file(game):
            raise errors.UserError(f"{game} is a propnet file, and this needs a rulesheet")
        return source.Source.from_path(game)
    return source.Source(game, library.text(game))


def is_propnet_file(game: str) -> bool:
    """Whether `game` is the path of a saved propnet."""
    return game.lower().endswith(PROPNET_SUFFIXES)


def load_rulesheet(game: str, *, fold_case: bool = False, gdl: int | None = None) -> rulesheet.Rulesheet:
    """Loads and checks the rulesheet of a game.

    Args:
      game: a library name, with or without parameters (`goofspiel:cards=5`), or the path of a rulesheet.
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
    return checker.check(find_source(game), fold_case=fold_case, gdl=gdl).require_usable()


def check_game(game: str, *, fold_case: bool = False, gdl: int | None = None) -> checker.CheckReport:
    """Checks the rules of a game and reports all errors and warnings at once.

    Mistakes in the rules do not raise.

    Args:
      game: a library name or the path of a rulesheet, as in `load_rulesheet`.
      fold_case: as in `load_rulesheet`.
      gdl: as in `load_rulesheet`.

    Returns:
      The rulesheet, as far as it could be parsed, with diagnostics that point into its text.

    Raises:
      UserError: if `game` is not a rulesheet.

    >>> check_game("kuhn_poker")
    CheckReport(kuhn_poker: 0 errors, 0 warnings)
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
    """Compiles a game to a propnet, or loads the propnet from the cache on disk.

    Args:
      game: a library name or the path of a rulesheet, as in `load_rulesheet`, or a `Rulesheet`.
      fold_case: as in `load_rulesheet`.
      gdl: as in `load_rulesheet`.
      within: limits on the time, memory and ground rules of grounding.
      report: called with the statistics of every compiler pass; never called if the propnet was cached.
      recompile: whether to compile even if the propnet is cached.
      saved: whether `game` may also be the path of a saved propnet (.npz, .json), which is then loaded.

    Returns:
      The simplified propnet.

    Raises:
      GdlError: if the sheet has errors, or grounding exceeds a limit.
      UserError: if `game` is not a rulesheet.
      PropNetFileError: if `saved` and the file is not a valid propnet.

    >>> net = compile_game("kuhn_poker")
    >>> net
    PropNet(kuhn_poker: 2 players, 17 registers, 42 gates)
    >>> [role.name for role in net.players]
    ['player1', 'player2']
    """
    from gdlx.propnet.io import cache, files  # imported here, so that commands that only parse rules start sooner

    if saved and isinstance(game, str) and is_propnet_file(game):
        return files.load_propnet(game)
    sheet = game if isinstance(game, rulesheet.Rulesheet) else load_rulesheet(game, fold_case=fold_case, gdl=gdl)
    return cache.load_or_compile(sheet, within, report, recompile=recompile)
