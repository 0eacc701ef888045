"""From the GAME of a command to its propnet, with progress."""

from typing import TYPE_CHECKING

from gdlx.cli import console
from gdlx.propnet import games
from gdlx.propnet.common import limits

if TYPE_CHECKING:
    from gdlx.propnet.circuits import propnet


def load_propnet(
    given: console.Options, game: str, gdl: int | None, fold_case: bool, within: limits.Limits
) -> "propnet.PropNet":
    """The network of a game, or the one in a network file."""
    if games.is_propnet_file(game):
        return games.compile_game(game, saved=True)
    sheet = games.load_rulesheet(game, fold_case=fold_case, gdl=gdl)
    with console.progress(given, f"compiling {game}") as advance:
        return games.compile_game(sheet, within=within, report=lambda done: advance(done.name))
