"""Table 4.1 of Richards (2012): histories found in 30 s a position, by constraint satisfaction and by search.

M. Richards, *Reasoning and decisions in partially observable games*, University of Illinois 2012. Entries are sums over
the ten positions; those of GOPS stopped at 30 histories of a position.
"""

from typing import NamedTuple


class Cell(NamedTuple):
    """One game, and what was found: by constraint satisfaction, and by depth-first search; None if not in the table."""

    game: str
    constraints: int
    search: int


_RACKO = {  # by slots, for 30, 40, 50 and 60 cards
    6: ((131, 0), (106, 30), (109, 0), (149, 0)),
    7: ((175, 0), (158, 0), (126, 0), (158, 0)),
    8: ((278, 0), (146, 0), (180, 0), (228, 0)),
    9: ((260, 0), (158, 0), (118, 0), (87, 0)),
    10: ((308, 0), (273, 0), (106, 0), (179, 0)),
}
_BATTLESHIP = {  # by ships, for sides of 4, 6, 8 and 10
    1: ((86, 86), (287, 232), (177, 114), (555, 166)),
    2: ((70, 70), (121, 117), (2161, 141), (792, 36)),
    3: ((39, 39), (656, 65), (318, 0), (792, 0)),
    4: ((1598, 194), (90, 1), (345, 0), (865, 0)),
    5: (None, (173, 0), (1087, 0), (1074, 0)),
}
_GOPS = {  # by rounds, for 10, 20, 30 and 40 cards more than are dealt
    2: ((300, 300), (300, 300), (300, 60), (300, 30)),
    4: ((300, 0), (300, 30), (300, 0), (300, 30)),
    6: ((300, 0), (300, 0), (300, 0), (300, 0)),
    8: ((300, 0), (300, 0), (300, 0), (300, 0)),
    10: ((300, 0), (300, 0), (300, 0), (300, 0)),
}


def cells() -> dict[str, list[Cell]]:
    """All cells, by the name of the game.

    >>> [len(cells) for cells in cells().values()]
    [20, 19, 20]
    """
    return {
        "racko": [
            Cell(f"racko:slots={slots},cards={cards}", *found)
            for slots, row in _RACKO.items()
            for cards, found in zip((30, 40, 50, 60), row, strict=True)
        ],
        "battleship": [
            Cell(f"battleship:side={side},ships={ships}", *found)
            for ships, row in _BATTLESHIP.items()
            for side, found in zip((4, 6, 8, 10), row, strict=True)
            if found is not None
        ],
        "gops": [
            Cell(f"gops:rounds={rounds},extra={extra},slots=yes", *found)
            for rounds, row in _GOPS.items()
            for extra, found in zip((10, 20, 30, 40), row, strict=True)
        ],
    }
