"""Princess and monster, a pursuit in the dark."""

from gdlx.propnet.library import game, grid, kif, sources


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
        kif.successors(0, max(3, turns)),
        _RULES,
        f"; The end, and the goals of princess and monster if it comes after ?n turns with a catch.\n\n"
        f"(<= terminal\n    (true (turns {turns})))",
        _END,
        kif.facts("payoff", ((n, 50 - 2 * (turns - n), 50 + 2 * (turns - n)) for n in range(2, turns + 1))),
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
(init (turns 0))
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

(<= (next (turns ?n))
    (true (turns ?n))
    (true (control princess)))

(<= (next (turns ?n))
    (true (turns ?m))
    (succ ?m ?n)
    (true (control monster)))
"""

_END = """
(<= terminal
    caught)

(<= caught
    (true (at princess ?x ?y))
    (true (at monster ?x ?y)))

(<= (goal princess ?g)
    caught
    (true (turns ?n))
    (payoff ?n ?g ?h))

(<= (goal monster ?h)
    caught
    (true (turns ?n))
    (payoff ?n ?g ?h))
"""

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
