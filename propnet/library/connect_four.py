"""Connect four on a board of any size."""

from gdlx.propnet.library import game, grid, kif


def _build(width: int, height: int, line: int) -> str:
    grid.check_line("connect_four", width, height, line)
    return kif.sheet(
        kif.header(
            f"Connect four: {line} in a line on {width} columns of {height}.",
            f"""Red and yellow take turns to drop a disc into a column that is not full; it falls to the
            lowest free cell. {line} discs of a player in a row, a column or a diagonal win; a full board
            without such a line is a draw.""",
            "traditional.",
        ),
        _ROLES,
        grid.axis("column", width),
        grid.axis("row", height),
        kif.values("top", [height]),
        kif.successors(1, max(width, height)),
        _RULES,
        grid.lines(width, height, line),
        _GOALS,
    )


_ROLES = """
(role red)
(role yellow)

(opponent red yellow)
(opponent yellow red)

(init (control red))
"""

_RULES = """
; Moves.

(<= (legal ?p (drop ?x))
    (true (control ?p))
    (open ?x))

(<= (legal ?p noop)
    (true (control ?q))
    (opponent ?p ?q))

(<= (open ?x)
    (column ?x)
    (top ?y)
    (not (taken ?x ?y)))

(<= (taken ?x ?y)
    (true (cell ?x ?y ?p)))

; What follows.

(<= (next (cell ?x ?y ?p))
    (does ?p (drop ?x))
    (lowest ?x ?y))

(<= (next (cell ?x ?y ?p))
    (true (cell ?x ?y ?p)))

(<= (next (control ?p))
    (true (control ?q))
    (opponent ?p ?q))

(<= (lowest ?x 1)
    (column ?x)
    (not (taken ?x 1)))

(<= (lowest ?x ?y2)
    (succ ?y1 ?y2)
    (row ?y2)
    (taken ?x ?y1)
    (not (taken ?x ?y2)))

; The end.

(<= terminal
    decided)

(<= terminal
    (not playable))

(<= decided
    (line ?p))

(<= playable
    (open ?x))
"""

_GOALS = """
(<= (goal ?p 100)
    (line ?p))

(<= (goal ?p 0)
    (line ?q)
    (opponent ?p ?q))

(<= (goal ?p 50)
    (role ?p)
    (not decided))
"""

GAME = game.Game(
    name="connect_four",
    summary="discs fall into columns, four in a line win",
    build=_build,
    parameters={
        "width": game.Parameter(default=7, minimum=2, maximum=1000, help=f"columns; {grid.SIZE_HELP}"),
        "height": game.Parameter(default=6, minimum=2, maximum=1000, help=f"rows; {grid.SIZE_HELP}"),
        "line": game.Parameter(default=4, minimum=2, maximum=100, help=f"discs in a line that win; {grid.LINE_HELP}"),
    },
)
