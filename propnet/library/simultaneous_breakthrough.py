"""Breakthrough with simultaneous moves."""

from gdlx.propnet.library import game, grid, kif, sources


def _build(width: int, height: int, rows: int) -> str:
    if 2 * rows >= height:
        raise game.LibraryError(
            f"simultaneous_breakthrough: rows={rows} of pawns on each side leave no empty row with "
            f"height={height}, make rows at most {(height - 1) // 2} or the board higher."
        )
    return kif.sheet(
        kif.header(
            f"Simultaneous breakthrough on a board of {width}x{height}.",
            f"""Both players move a pawn at the same time, one row ahead: straight to an empty cell, or
            diagonally to a cell without a pawn of their own, where a pawn of the opponent is captured
            unless it moves away. If both move to the same cell the pawn of the privileged player stays and
            the other is lost; white is privileged first, and each such clash passes the privilege on. Who
            reaches the last row or has the only pawns wins; if both reach it the game is a draw. Each side
            starts with {rows} full row{"s" if rows > 1 else ""} of pawns.""",
            f"{sources.SHAFIEI_KHADEM}, section 5.3.",
        ),
        _ROLES,
        grid.axis("column", width),
        kif.successors(1, max(width, height)),
        "; The rows where pawns start, the row that a side must reach, and the way ahead.",
        kif.facts("home", _homes(rows, height)),
        f"(last_row white {height})\n(last_row black 1)",
        _RULES,
    )


def _homes(rows: int, height: int) -> list[tuple[str, int]]:
    white = [("white", row) for row in range(1, rows + 1)]
    return white + [("black", height + 1 - row) for _, row in white]


_ROLES = """
(role white)
(role black)

(opponent white black)
(opponent black white)
"""

_RULES = """
(<= (ahead white ?y1 ?y2)
    (succ ?y1 ?y2))

(<= (ahead black ?y2 ?y1)
    (succ ?y1 ?y2))

(<= (beside ?x1 ?x2)
    (column ?x1)
    (succ ?x1 ?x2)
    (column ?x2))

(<= (beside ?x2 ?x1)
    (beside ?x1 ?x2))

(init (privileged white))

(<= (init (pawn ?p ?x ?y))
    (home ?p ?y)
    (column ?x))

; Moves.

(<= (legal ?p (move ?x ?y1 ?x ?y2))
    (true (pawn ?p ?x ?y1))
    (ahead ?p ?y1 ?y2)
    (not (occupied ?x ?y2)))

(<= (legal ?p (move ?x1 ?y1 ?x2 ?y2))
    (true (pawn ?p ?x1 ?y1))
    (ahead ?p ?y1 ?y2)
    (beside ?x1 ?x2)
    (not (true (pawn ?p ?x2 ?y2))))

(<= (occupied ?x ?y)
    (true (pawn ?p ?x ?y)))

; What follows.

(<= (leaves ?p ?x1 ?y1)
    (does ?p (move ?x1 ?y1 ?x2 ?y2)))

(<= (enters ?p ?x2 ?y2)
    (does ?p (move ?x1 ?y1 ?x2 ?y2)))

(<= clash
    (enters white ?x ?y)
    (enters black ?x ?y))

(<= (next (pawn ?p ?x ?y))
    (enters ?p ?x ?y)
    (opponent ?p ?q)
    (not (enters ?q ?x ?y)))

(<= (next (pawn ?p ?x ?y))
    (enters ?p ?x ?y)
    (true (privileged ?p)))

(<= (next (pawn ?p ?x ?y))
    (true (pawn ?p ?x ?y))
    (not (leaves ?p ?x ?y))
    (opponent ?p ?q)
    (not (enters ?q ?x ?y)))

(<= (next (privileged ?p))
    (true (privileged ?p))
    (not clash))

(<= (next (privileged ?q))
    (true (privileged ?p))
    (opponent ?p ?q)
    clash)

; The end.

(<= (has_pawn ?p)
    (true (pawn ?p ?x ?y)))

(<= (succeeds ?p)
    (last_row ?p ?y)
    (true (pawn ?p ?x ?y)))

(<= (succeeds ?p)
    (opponent ?p ?q)
    (not (has_pawn ?q)))

(<= terminal
    (succeeds ?p))

(<= (goal ?p 100)
    (opponent ?p ?q)
    (succeeds ?p)
    (not (succeeds ?q)))

(<= (goal ?p 0)
    (opponent ?p ?q)
    (succeeds ?q)
    (not (succeeds ?p)))

(<= (goal ?p 50)
    (opponent ?p ?q)
    (succeeds ?p)
    (succeeds ?q))
"""

GAME = game.Game(
    name="simultaneous_breakthrough",
    summary="pawns race and capture, both sides at once",
    build=_build,
    parameters={
        "width": game.Parameter(default=3, minimum=2, maximum=1000, help=f"columns; {grid.SIZE_HELP}"),
        "height": game.Parameter(default=5, minimum=3, maximum=1000, help=f"rows; {grid.SIZE_HELP}"),
        "rows": game.Parameter(
            default=1, minimum=1, maximum=499, help="rows of pawns on each side; an empty row must be left"
        ),
    },
)
