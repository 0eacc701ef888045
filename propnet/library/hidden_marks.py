"""Tic-tac-toes in which both players mark at once and see only whether their own mark was placed."""

from gdlx.propnet.library import game, grid, kif, sources

_TICKETS = {"even": ("x", "o"), "x23": ("x", "x", "o"), "x": ()}
_TIES = {
    "even": "which of the two is drawn at random",
    "x23": "x is two times out of three, drawn at random",
    "x": "x always is",
}


def _build_blind(bias: str) -> str:
    tickets = _TICKETS[bias]
    return kif.sheet(
        kif.header(
            f"Blind tic-tac-toe, ties broken: {bias}.",
            f"""X and o mark a cell of a 3x3 board at the same time, and learn only whether their own mark
            was placed; nobody may try a cell twice. A mark is placed if the cell is blank. If both choose
            the same blank cell one of them is favoured: {_TIES[bias]}. Three in a line win; two lines at
            once, or a full board, are a draw.""",
            f"{sources.WEST}, section 4.3.",
        ),
        _ROLES + ("(role random)" if tickets else ""),
        grid.axis("index", 3),
        kif.successors(1, 3),
        _draw(tickets),
        _MARKS,
        _FAVOURED,
        _END,
        grid.lines(3, 3, 3),
        grid.GOALS,
    )


def _draw(tickets: tuple[str, ...]) -> str:
    if not tickets:
        return "(favoured x)"
    return f"""
; At every move a ticket is drawn; it names the favoured player.

{kif.facts("ticket", enumerate(tickets, start=1))}

(<= (legal random (draw ?t))
    (ticket ?t ?p))

(<= (favoured ?p)
    (does random (draw ?t))
    (ticket ?t ?p))
"""


def _build_krieg(size: int, line: int) -> str:
    grid.check_line("krieg_tictactoe", size, size, line)
    return kif.sheet(
        kif.header(
            f"Krieg tic-tac-toe: {line} in a line on a {size}x{size} board.",
            f"""X and o mark a cell at the same time, and learn only whether their own mark was placed;
            nobody may try a cell twice. A mark is placed if the cell is blank and the opponent did not
            choose it too; a cell that both chose at once stays blank for ever. {line} in a line win; two
            lines at once, or no cell left to try, are a draw.""",
            "own rules, after the game of that name in the collections of general game playing.",
        ),
        _ROLES,
        grid.axis("index", size),
        kif.successors(1, size),
        _MARKS,
        _END,
        grid.lines(size, size, line),
        grid.GOALS,
    )


_ROLES = """
(role x)
(role o)
"""

# A cell that nobody has tried is blank. One that somebody has tried is marked, or was chosen by both at once.
_MARKS = """
; Marks.

(opponent x o)
(opponent o x)

(<= (legal ?p (mark ?x ?y))
    (opponent ?p ?q)
    (index ?x)
    (index ?y)
    (not (true (tried ?p ?x ?y))))

(<= (touched ?x ?y)
    (true (tried ?p ?x ?y)))

(<= (contested ?x ?y)
    (does x (mark ?x ?y))
    (does o (mark ?x ?y)))

(<= (places ?p ?x ?y)
    (does ?p (mark ?x ?y))
    (not (touched ?x ?y))
    (not (contested ?x ?y)))

(<= (sees ?p placed)
    (places ?p ?x ?y))

(<= (next (tried ?p ?x ?y))
    (does ?p (mark ?x ?y)))

(<= (next (tried ?p ?x ?y))
    (true (tried ?p ?x ?y)))

(<= (next (cell ?x ?y ?p))
    (places ?p ?x ?y))

(<= (next (cell ?x ?y ?p))
    (true (cell ?x ?y ?p)))
"""

_FAVOURED = """
(<= (places ?p ?x ?y)
    (does ?p (mark ?x ?y))
    (not (touched ?x ?y))
    (favoured ?p))
"""

_END = """
; The end.

(<= terminal
    (line ?p))

(<= terminal
    (not open))

(<= open
    (index ?x)
    (index ?y)
    (not (touched ?x ?y)))
"""

GAMES = (
    game.Game(
        name="blind_tictactoe",
        summary="both mark a 3x3 board at once and see only their own success",
        build=_build_blind,
        parameters={
            "bias": game.Parameter(
                default="even",
                choices=tuple(_TICKETS),
                help="who gets a cell that both choose: each with 1/2, x with 2/3, or always x",
            )
        },
    ),
    game.Game(
        name="krieg_tictactoe",
        summary="both mark at once, unseen; a cell that both choose stays blank",
        build=_build_krieg,
        parameters={
            "size": game.Parameter(default=5, minimum=2, maximum=1000, help=f"rows and columns; {grid.SIZE_HELP}"),
            "line": game.Parameter(
                default=5, minimum=2, maximum=100, help=f"marks in a line that win; {grid.LINE_HELP}"
            ),
        },
    ),
)
