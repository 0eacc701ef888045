"""Phantom tic-tac-toe and dark hex: stones that only their owner sees, in turns of which the opponent sees the end.

Both are as in OpenSpiel, where a player observes its own tries alone. There a failed try takes no time that the other
would notice. In GDL-II time passes in steps, so that in the classical version every turn lasts as many steps as its
player may need, which is one more than the opponent has stones; who has placed a stone earlier waits.
"""

from gdlx.propnet.library import game, grid, kif

_OPEN_SPIEL = "the game of that name in OpenSpiel, github.com/google-deepmind/open_spiel"
_TRIES = {
    "classical": "Who tries a cell that the other has taken learns that, and tries another one",
    "abrupt": "Who tries a cell that the other has taken learns that, and loses the turn",
}
_MOST_CELLS = 100


def _build_phantom_ttt(width: int, height: int, line: int, tries: str) -> str:
    _check_board("phantom_ttt", width, height)
    grid.check_line("phantom_ttt", width, height, line)
    title = f"Phantom tic-tac-toe, {tries}: {line} in a line on a board of {width} columns and {height} rows."
    rules = f"{line} stones in a line win; a full board without a line is a draw."
    size = max(width, height)
    return _build(title, rules, width, height, tries, kif.successors(1, size), grid.lines(width, height, line))


def _build_dark_hex(columns: int, rows: int, tries: str) -> str:
    _check_board("dark_hex", columns, rows)
    title = f"Dark hex, {tries}: {columns} columns and {rows} rows of hexagons."
    rules = "X wins with a chain of stones from the first to the last row, o from the first to the last column."
    counting = kif.successors(1, max(columns, rows))
    chains = _CHAINS.format(columns=columns, rows=rows)
    return _build(title, rules, columns, rows, tries, counting, chains)


def _check_board(name: str, width: int, height: int) -> None:
    if width * height > _MOST_CELLS:
        raise game.LibraryError(
            f"{name}: a board of {width}x{height} has more than {_MOST_CELLS} cells, make it smaller."
        )


def _build(title: str, rules: str, width: int, height: int, tries: str, counting: str, wins: str) -> str:
    is_classical = tries == "classical"
    return kif.sheet(
        kif.header(
            title,
            f"X and o take turns to place a stone on a free cell, and see only their own. {_TRIES[tries]}. {rules} The "
            "opponent notices nothing but the end of a turn.",
            _OPEN_SPIEL,
        ),
        "(role x)\n(role o)\n\n(opponent x o)\n(opponent o x)",
        kif.values("column", range(1, width + 1)),
        kif.values("row", range(1, height + 1)),
        counting,
        _clock(width * height) if is_classical else _ALTERNATING,
        _STONES.format(still_to_place="\n    (not (true (placed ?p)))" if is_classical else ""),
        wins,
        _END,
        grid.GOALS,
    )


def _clock(cells: int) -> str:
    """The turns of the classical version: at each step who moves, and the last steps of turns."""
    movers: list[tuple[int, str]] = []
    ends: list[int] = []
    for turn in range(cells):
        opponent_stones = (turn + 1) // 2
        movers += [(len(movers) + n, "xo"[turn % 2]) for n in range(1 + opponent_stones)]
        ends.append(len(movers) - 1)
    return f"""
; The clock: who moves at each step, and the last step of every turn.

{kif.facts("mover", movers)}

{kif.values("last", ends)}

{kif.facts("then", ((step, step + 1) for step in range(len(movers))))}

(init (step 0))

(init turn_begins)

(<= (next (step ?t))
    (true (step ?s))
    (then ?s ?t))

(<= turn_ends
    (true (step ?s))
    (last ?s))

(<= (next turn_begins)
    turn_ends)

(<= (moves ?p)
    (true (step ?s))
    (mover ?s ?p))

; Who has placed a stone waits for the end of the turn.

(<= (next (placed ?p))
    (places ?p ?x ?y)
    (not turn_ends))

(<= (next (placed ?p))
    (true (placed ?p))
    (not turn_ends))

(<= (legal ?p noop)
    (moves ?p)
    (true (placed ?p)))
"""


_ALTERNATING = """
; The turns: a try each.

(init (control x))

(init turn_begins)

(next turn_begins)

(<= (next (control ?q))
    (true (control ?p))
    (opponent ?p ?q))

(<= (moves ?p)
    (true (control ?p)))
"""

_STONES = """
; A try: any cell on which the player knows of no stone.

(<= (legal ?p (mark ?x ?y))
    (moves ?p){still_to_place}
    (column ?x)
    (row ?y)
    (not (true (cell ?x ?y ?p)))
    (not (true (hit ?p ?x ?y))))

(<= (legal ?p noop)
    (moves ?q)
    (opponent ?p ?q))

(<= (taken ?x ?y)
    (true (cell ?x ?y ?p)))

(<= (places ?p ?x ?y)
    (does ?p (mark ?x ?y))
    (not (taken ?x ?y)))

(<= (sees ?p placed)
    (places ?p ?x ?y))

(<= (next (cell ?x ?y ?p))
    (places ?p ?x ?y))

(<= (next (cell ?x ?y ?p))
    (true (cell ?x ?y ?p)))

(<= (next (hit ?p ?x ?y))
    (does ?p (mark ?x ?y))
    (taken ?x ?y))

(<= (next (hit ?p ?x ?y))
    (true (hit ?p ?x ?y)))
"""

_CHAINS = """
; Chains of adjacent stones. A cell has two neighbours in each of three directions.

(<= (adjacent ?x ?y ?v ?y)
    (row ?y)
    (succ ?x ?v))

(<= (adjacent ?x ?y ?x ?w)
    (column ?x)
    (succ ?y ?w))

(<= (adjacent ?x ?w ?v ?y)
    (succ ?x ?v)
    (succ ?y ?w))

(<= (adjacent ?v ?w ?x ?y)
    (adjacent ?x ?y ?v ?w)
    (distinct (at ?x ?y) (at ?v ?w)))

(<= (chain x ?x 1)
    (true (cell ?x 1 x)))

(<= (chain o 1 ?y)
    (true (cell 1 ?y o)))

(<= (chain ?p ?v ?w)
    (chain ?p ?x ?y)
    (adjacent ?x ?y ?v ?w)
    (true (cell ?v ?w ?p)))

(<= (line x)
    (chain x ?x {rows}))

(<= (line o)
    (chain o {columns} ?y))
"""

_END = """
; The end, which is noticed at the end of a turn.

(<= open
    (column ?x)
    (row ?y)
    (not (taken ?x ?y)))

(<= terminal
    (true turn_begins)
    (line ?p))

(<= terminal
    (true turn_begins)
    (not open))
"""

_SIDE_HELP = "at least 1; no limit but 100 cells in all"
_TRIES_PARAMETER = game.Parameter(
    default="classical", choices=tuple(_TRIES), help="whether a failed try is repeated, or ends the turn"
)
GAMES = (
    game.Game(
        name="phantom_ttt",
        summary="OpenSpiel's phantom tic-tac-toe: nobody learns how often the other tries",
        build=_build_phantom_ttt,
        parameters={
            "width": game.Parameter(default=3, minimum=1, maximum=_MOST_CELLS, help=f"columns; {_SIDE_HELP}"),
            "height": game.Parameter(default=3, minimum=1, maximum=_MOST_CELLS, help=f"rows; {_SIDE_HELP}"),
            "line": game.Parameter(
                default=3, minimum=2, maximum=_MOST_CELLS, help=f"stones in a line that win; {grid.LINE_HELP}"
            ),
            "tries": _TRIES_PARAMETER,
        },
    ),
    game.Game(
        name="dark_hex",
        summary="OpenSpiel's dark hex: hex with unseen stones of the opponent",
        build=_build_dark_hex,
        parameters={
            "columns": game.Parameter(default=3, minimum=1, maximum=_MOST_CELLS, help=f"columns; {_SIDE_HELP}"),
            "rows": game.Parameter(default=3, minimum=1, maximum=_MOST_CELLS, help=f"rows; {_SIDE_HELP}"),
            "tries": _TRIES_PARAMETER,
        },
    ),
)
