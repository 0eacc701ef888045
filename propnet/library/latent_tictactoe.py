"""Tic-tac-toe in which a mark is revealed only after the opponent's next move."""

from gdlx.propnet.library import binary, game, grid, kif, sources

_CONFLICT = {
    "discarded": "A mark on a cell that proves to be taken is discarded.",
    "kept": "A mark on a cell that proves to be taken counts all the same, so that both own the cell.",
}
_FULL = {
    "discarded": "A full board without a line is a draw too.",
    "kept": """The game is a draw too when a player counts eight marks without a line: its own, and those
    revealed to it on cells that it had not marked before that move.""",
}


def _build(conflict: str) -> str:
    return kif.sheet(
        kif.header(
            f"Latent tic-tac-toe, conflicting marks are {conflict}.",
            f"""X and o take turns to mark a cell of a 3x3 board that is blank as far as they know. A mark
            is revealed to the other player only after the other's next move. {_CONFLICT[conflict]} Three in
            a line win. A line of o ends the game at once; after a line of x player o has one more move, and
            a line then makes it a draw. {_FULL[conflict]}""",
            f"""{sources.SCHLINDENBUCH}, section 3.2.4; it says that conflicting
            marks are discarded, but the sizes it gives are those of the game in which they are kept.""",
        ),
        _ROLES,
        grid.axis("index", 3),
        kif.successors(1, 3),
        _MOVES,
        _DISCARDED if conflict == "discarded" else _KEPT + binary.counter("marks", 9, "(adds_one ?p)", of="?p"),
        _END,
        grid.lines(3, 3, 3),
        grid.GOALS,
    )


_ROLES = """
(role x)
(role o)

(opponent x o)
(opponent o x)

(init (control x))
"""

_MOVES = """
; Moves. The last mark is the one that is not yet revealed.

(<= (legal ?p (mark ?x ?y))
    (true (control ?p))
    (index ?x)
    (index ?y)
    (not (known ?p ?x ?y)))

(<= (legal ?p noop)
    (true (control ?q))
    (opponent ?p ?q))

(<= (known ?p ?x ?y)
    (true (cell ?x ?y ?p)))

(<= (known ?p ?x ?y)
    (opponent ?p ?q)
    (true (cell ?x ?y ?q))
    (not (true (last ?x ?y))))

(<= (sees ?p (revealed ?x ?y))
    (true (control ?p))
    (true (last ?x ?y)))

; What follows.

(<= (next (last ?x ?y))
    (does ?p (mark ?x ?y)))

(<= (next (cell ?x ?y ?p))
    (true (cell ?x ?y ?p)))

(<= (next (control ?p))
    (true (control ?q))
    (opponent ?p ?q))
"""

_DISCARDED = """
(<= (next (cell ?x ?y ?p))
    (does ?p (mark ?x ?y))
    (not (taken ?x ?y)))

(<= (taken ?x ?y)
    (true (cell ?x ?y ?p)))

(<= full
    (not open))

(<= open
    (index ?x)
    (index ?y)
    (not (taken ?x ?y)))
"""

_KEPT = """
(<= (next (cell ?x ?y ?p))
    (does ?p (mark ?x ?y)))

; A player knows of one or two more marks with each of its moves: its own, and one that it learns of. Two more are a
; carry into the second place.

(<= learns
    (true (control ?p))
    (true (last ?x ?y))
    (not (true (cell ?x ?y ?p))))

(<= (adds_one ?p)
    (true (control ?p))
    (not learns))

(<= (marks_carry ?p 2)
    (true (control ?p))
    learns)

(<= full
    (true (marks ?p 8)))
"""

_END = """
; The end.

(<= terminal
    (line o))

(<= terminal
    (line x)
    (true (control x)))

(<= terminal
    full)
"""

GAME = game.Game(
    name="latent_tictactoe",
    summary="tic-tac-toe in which a mark is revealed only after the opponent's answer",
    build=_build,
    parameters={
        "conflict": game.Parameter(
            default="discarded",
            choices=tuple(_CONFLICT),
            help="what happens to a mark on a taken cell; kept is the smaller game of published tables",
        )
    },
)
