"""Princess and monster, a pursuit in the dark."""

from gdlx.propnet.library import binary, game, grid, kif, sources


def _build(turns: int) -> str:
    return kif.sheet(
        kif.header(
            f"Princess and monster, {turns} turns on a 3x3 grid.",
            f"""In every turn first the princess and then the monster moves to a neighbouring cell, without
            diagonals; nobody may stay, and nobody sees anything. They start in opposite corners. If the
            monster catches the princess it wins {2 * turns} chips less the number of moves both have made;
            if it does not within {turns} turns the princess wins {2 * turns} chips. Goals are 50 plus the
            chips won.""",
            f"{sources.SCHLINDENBUCH}, section 3.2.3.",
        ),
        "; Without percepts only this line tells that moves are hidden.\n; gdlx: gdl-ii",
        _ROLES,
        grid.axis("index", 3),
        kif.successors(1, 3),
        _RULES,
        binary.counter("turns", turns, "(true (control monster))"),
        f"; The end.\n\n(<= terminal\n    {binary.reached('turns', turns)})",
        _END,
        *(_catch(n, turns) for n in range(2, turns + 1)),
        f"(<= (goal princess {50 + 2 * turns})\n    (not caught))",
        f"(<= (goal monster {50 - 2 * turns})\n    (not caught))",
    )


_ROLES = """
(role princess)
(role monster)

(opponent princess monster)
(opponent monster princess)

(init (at princess 1 1))
(init (at monster 3 3))
(init (control princess))
"""

_RULES = """
; Moves.

(<= (beside ?x ?y1 ?x ?y2)
    (index ?x)
    (near ?y1 ?y2))

(<= (beside ?x1 ?y ?x2 ?y)
    (near ?x1 ?x2)
    (index ?y))

(<= (near ?a ?b)
    (index ?a)
    (succ ?a ?b)
    (index ?b))

(<= (near ?b ?a)
    (near ?a ?b))

(<= (legal ?p (go ?x2 ?y2))
    (true (control ?p))
    (true (at ?p ?x1 ?y1))
    (beside ?x1 ?y1 ?x2 ?y2))

(<= (legal ?p noop)
    (true (control ?q))
    (opponent ?p ?q))

; What follows.

(<= (next (at ?p ?x ?y))
    (does ?p (go ?x ?y)))

(<= (next (at ?p ?x ?y))
    (true (at ?p ?x ?y))
    (not (true (control ?p))))

(<= (next (control ?p))
    (true (control ?q))
    (opponent ?p ?q))

"""

_END = """
(<= terminal
    caught)

(<= caught
    (true (at princess ?x ?y))
    (true (at monster ?x ?y)))
"""


def _catch(turn: int, turns: int) -> str:
    """The goals if the princess is caught in a turn."""
    chips = 2 * (turns - turn)
    caught = f"    caught\n    {binary.equals('turns', turn, turns)})"
    return f"(<= (goal princess {50 - chips})\n{caught}\n\n(<= (goal monster {50 + chips})\n{caught}"


GAME = game.Game(
    name="princess_and_monster",
    summary="a pursuit in the dark on a 3x3 grid",
    build=_build,
    parameters={
        "turns": game.Parameter(
            default=5,
            minimum=2,
            maximum=25,
            help="turns until the princess is safe; 2 chips a turn, and goals leave room for 50 chips",
        )
    },
)
