"""Draws fluents with two coordinates, such as (cell 1 2 x), as a board."""

import re
from collections.abc import Iterable

_CELL = re.compile(r"\(([^\s()]+) ([^\s()]+) ([^\s()]+) ([^\s()]+)\)")
_FEWEST_CELLS, _MOST_LINES = 4, 26
_BLANK = ("b", "blank", "empty", "none")


def draw_board(known: Iterable[str], true: Iterable[str]) -> list[str]:
    """Returns the lines of a board, and of the other fluents; only those if there is no board.

    Args:
      known: all fluents of the game.
      true: those that are true.

    >>> cells = [f"(cell {x} {y} {mark})" for x in "12" for y in "12" for mark in "xo"]
    >>> print("\\n".join(draw_board(cells, ["(cell 1 2 x)", "(control o)"])))
       1 2
    1  . x
    2  . .
    (control o)
    """
    places: dict[str, set[tuple[str, str]]] = {}
    for match in filter(None, map(_CELL.fullmatch, known)):
        places.setdefault(match[1], set()).add((match[2], match[3]))
    name = max(places, key=lambda each: len(places[each]), default="")
    held = list(true)
    rows, columns = (sorted({place[axis] for place in places.get(name, ())}, key=_size) for axis in (0, 1))
    if len(rows) * len(columns) < _FEWEST_CELLS or min(len(rows), len(columns)) < 2 or len(rows) > _MOST_LINES:
        return [" ".join(held)] if held else []
    marks: dict[tuple[str, str], str] = {}
    others = []
    for fluent in held:
        cell = _CELL.fullmatch(fluent)
        if cell is None or cell[1] != name:
            others.append(fluent)
        else:
            marks[cell[2], cell[3]] = "." if cell[4].lower() in _BLANK else cell[4]
    width = max(len(text) for text in (*columns, *marks.values(), "."))
    head = max(map(len, rows))
    lines = [" " * (head + 2) + " ".join(column.rjust(width) for column in columns)]
    lines += [
        f"{row.rjust(head)}  " + " ".join(marks.get((row, column), ".").rjust(width) for column in columns)
        for row in rows
    ]
    return [*lines, " ".join(others)] if others else lines


def _size(name: str) -> tuple[int, int, str]:
    return (0, int(name), "") if name.isascii() and name.isdigit() and len(name) < 10 else (1, 0, name)
