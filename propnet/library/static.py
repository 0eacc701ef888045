"""The games without parameters: each is a rulesheet in the folder `sheets`."""

import functools
import importlib.resources

from gdlx.propnet.library import game

_SUMMARIES = {
    "kuhn_poker": "three cards, an ante and one bet: the smallest poker with a bluff",
    "monty_hall": "three doors, one car, and the choice to switch",
    "phantom_tictactoe": "tic-tac-toe with unseen opponent; who hits a taken cell tries again",
    "simple_poker": "a king, a jack, and only the first player looks at its card",
    "simultaneous_tictactoe": "tic-tac-toe in which both mark at once and a clash leaves the cell blank",
    "three_card_poker": "jack, queen and king; both bet or fold at once",
    "tictactoe": "tic-tac-toe, three in a line on a 3x3 board",
}


def _read(name: str) -> str:
    folder = importlib.resources.files("gdlx.propnet.library") / "sheets"
    return (folder / f"{name}.gdl").read_text(encoding="utf-8")


GAMES = tuple(
    game.Game(name=name, summary=summary, build=functools.partial(_read, name)) for name, summary in _SUMMARIES.items()
)
