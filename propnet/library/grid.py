"""Boards of cells, and lines of marks on them."""

from gdlx.propnet.library import game, kif

SIZE_HELP = "no limit in the rules, 1000 only keeps the list of coordinates printable"

LINE_HELP = "must fit on the board; no other limit in the rules, 100 only keeps the rule of a line readable"

_DIRECTIONS = (  # columns and rows from a cell of a line to the next: along a row, a column and the two diagonals
    (1, 0),
    (0, 1),
    (1, 1),
    (1, -1),
)

# Goals from the relation (line ?p), for games in which both players may complete a line.
GOALS = """
(<= (goal ?p 100)
    (opponent ?p ?q)
    (line ?p)
    (not (line ?q)))

(<= (goal ?p 0)
    (opponent ?p ?q)
    (line ?q)
    (not (line ?p)))

(<= (goal ?p 50)
    (opponent ?p ?q)
    (line ?p)
    (line ?q))

(<= (goal ?p 50)
    (opponent ?p ?q)
    (not (line ?p))
    (not (line ?q)))
"""


def check_line(where: str, width: int, height: int, length: int) -> None:
    """Raises LibraryError for a line that no player could ever complete."""
    longest = max(width, height)
    if length > longest:
        raise game.LibraryError(
            f"{where}: a line of {length} does not fit on a {width}x{height} board, "
            f"make line at most {longest} or the board larger."
        )


def axis(relation: str, size: int) -> str:
    """Returns facts for the coordinates 1..size."""
    return kif.values(relation, range(1, size + 1))


def lines(width: int, height: int, length: int) -> str:
    """Returns rules of `(line ?p)`: adjacent cells `(cell ?x ?y ?p)`, for every direction in which they fit.

    The rules count with the relation `succ`.

    >>> print(lines(3, 1, 2))
    (<= (line ?p)
        (true (cell ?x1 ?y ?p))
        (succ ?x1 ?x2)
        (true (cell ?x2 ?y ?p)))
    """
    return "\n\n".join(
        _line(across, up, length)
        for across, up in _DIRECTIONS
        if (not across or length <= width) and (not up or length <= height)
    )


def _line(across: int, up: int, length: int) -> str:
    literals = []
    for i in range(1, length + 1):
        x = f"?x{i}" if across else "?x"
        y = f"?y{i}" if up else "?y"
        if i > 1 and across:
            literals.append(f"(succ ?x{i - 1} {x})")
        if i > 1 and up:
            literals.append(f"(succ ?y{i - 1} {y})" if up > 0 else f"(succ {y} ?y{i - 1})")
        literals.append(f"(true (cell {x} {y} ?p))")
    return "(<= (line ?p)\n    " + "\n    ".join(literals) + ")"
