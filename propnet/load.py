"""A game as a user names it, a library name with parameters or a path -> its checked rulesheet."""

import pathlib

from gdlx.propnet import check, errors, library, rulesheet, source

_SUFFIXES = (".gdl", ".kif", ".txt")
NETWORK_SUFFIXES = (".npz", ".json")


def find(game: str) -> source.Source:
    """The text of a library game (`goofspiel:cards=5`) or of a file."""
    if not isinstance(game, str):
        raise errors.UserError(f"a game is named by a string, a library name or a path; not by {game!r}")
    looks_like_path = "/" in game or "\\" in game or game.lower().endswith(_SUFFIXES)
    if looks_like_path or (game not in library.names() and game and pathlib.Path(game).exists()):
        if pathlib.Path(game).is_dir():
            raise errors.UserError(f"{game} is a folder, and this needs a rulesheet")
        if game.lower().endswith(NETWORK_SUFFIXES):
            raise errors.UserError(f"{game} is a network file, and this needs a rulesheet")
        return source.Source.from_path(game)
    return source.Source(game, library.text(game))


def load(game: str, *, fold_case: bool = False, gdl: int | None = None) -> rulesheet.Rulesheet:
    """The rulesheet of a game; raises GdlError with everything that makes it unusable."""
    if gdl not in (None, 1, 2):
        raise errors.UserError(f"a sheet is read as GDL (1) or GDL-II (2), not as {gdl!r}")
    return check.check(find(game), fold_case=fold_case, gdl=gdl).require_usable()
