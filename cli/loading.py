"""Load the propnet of the GAME argument, with progress."""

from typing import TYPE_CHECKING

from gdlx.cli import console
from gdlx.propnet import games
from gdlx.propnet.common import limits

if TYPE_CHECKING:
    from gdlx.propnet.circuits import propnet


def load_propnet(
    options: console.Options, game: str, gdl: int | None, fold_case: bool, within: limits.Limits
) -> "propnet.PropNet":
    """Compile a game, or read a propnet file."""
    if games.is_propnet_file(game):
        return games.compile_game(game, saved=True)
    sheet = games.load_rulesheet(game, fold_case=fold_case, gdl=gdl)
    with console.progress(options, f"compiling {game}") as advance:
        return games.compile_game(sheet, within=within, report=lambda statistics: advance(statistics.name))
