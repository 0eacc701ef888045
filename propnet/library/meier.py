"""Meier, also called Mia: claims about two dice under a cup."""

import itertools

from gdlx.propnet.library import game, kif

# All values of two dice, higher die first, from the lowest to the Meier.
_VALUES = (
    *((high, low) for high in range(3, 7) for low in range(1, high)),
    *((face, face) for face in range(1, 7)),
    (2, 1),
)

_TRUTH = {
    "exact": "exactly what was claimed",
    "at_least": "what was claimed or a higher value",
}


def _build(truth: str) -> str:
    return kif.sheet(
        kif.header(
            "Meier.",
            f"""A player rolls two dice that the other does not see, and claims a value higher than the last
            claim. The other player then believes it and rolls the dice in turn, or doubts it; the highest
            claim can only be doubted. A doubt ends the game: the doubter loses if the dice show
            {_TRUTH[truth]}, else wins. The higher die is the first digit of a value; mixed values rank 31,
            32, 41 to 65, then come the doubles 11 to 66, and 21, the Meier, is the highest.""",
            "traditional; exact truth is the rule of the sheet meier in public collections of GDL-II games.",
        ),
        kif.TWO_PLAYERS + "(role random)",
        kif.OPPONENTS,
        "(init (rolling player1))",
        kif.values("face", range(1, 7)),
        kif.successors(1, 6),
        "; Values in ascending order: the next one after each.",
        kif.facts("ascends", ((*low, *high) for low, high in itertools.pairwise(_VALUES))),
        _RULES,
        _AT_LEAST if truth == "at_least" else "",
        _GOALS,
    )


_RULES = """
(<= (above ?h2 ?l2 ?h1 ?l1)
    (ascends ?h1 ?l1 ?h2 ?l2))

(<= (above ?h3 ?l3 ?h1 ?l1)
    (above ?h2 ?l2 ?h1 ?l1)
    (ascends ?h2 ?l2 ?h3 ?l3))

(<= (value ?h ?l)
    (shows ?a ?b ?h ?l))

; Two dice show the value that starts with the higher one.

(<= (shows ?a ?a ?a ?a)
    (face ?a))

(<= (shows ?a ?b ?a ?b)
    (greater ?a ?b))

(<= (shows ?b ?a ?a ?b)
    (greater ?a ?b))

(<= (greater ?b ?a)
    (succ ?a ?b))

(<= (greater ?c ?a)
    (greater ?b ?a)
    (succ ?b ?c))

; The roll.

(<= (legal random (roll ?a ?b))
    (true (rolling ?p))
    (face ?a)
    (face ?b))

(<= (legal ?p noop)
    (true (rolling ?w))
    (opponent ?p ?q))

(<= (rolled ?h ?l)
    (does random (roll ?a ?b))
    (shows ?a ?b ?h ?l))

(<= (sees ?p (dice ?h ?l))
    (true (rolling ?p))
    (rolled ?h ?l))

(<= (next (dice ?h ?l))
    (rolled ?h ?l))

(<= (next (dice ?h ?l))
    (true (dice ?h ?l))
    (not rolls))

(<= rolls
    (true (rolling ?p)))

(<= (next (claiming ?p))
    (true (rolling ?p)))

; The claim.

(<= claimed
    (true (claim ?h ?l)))

(<= (legal ?p (say ?h ?l))
    (true (claiming ?p))
    (value ?h ?l)
    (not claimed))

(<= (legal ?p (say ?h2 ?l2))
    (true (claiming ?p))
    (true (claim ?h1 ?l1))
    (above ?h2 ?l2 ?h1 ?l1))

(<= (legal ?p noop)
    (true (claiming ?q))
    (role ?p)
    (distinct ?p ?q))

(<= (sees ?q (heard ?h ?l))
    (does ?p (say ?h ?l))
    (opponent ?p ?q))

(<= (next (claim ?h ?l))
    (does ?p (say ?h ?l)))

(<= (next (claim ?h ?l))
    (true (claim ?h ?l))
    (not says))

(<= says
    (true (claiming ?p)))

(<= (next (answering ?q))
    (true (claiming ?p))
    (opponent ?p ?q))

; The answer.

(<= (legal ?p doubt)
    (true (answering ?p)))

(<= (legal ?p believe)
    (true (answering ?p))
    (not (true (claim 2 1))))

(<= (legal ?p noop)
    (true (answering ?q))
    (role ?p)
    (distinct ?p ?q))

(<= (next (rolling ?p))
    (does ?p believe))

(<= (next (doubted_by ?p))
    (does ?p doubt))

; The end.

(<= terminal
    (true (doubted_by ?p)))

(<= honest
    (true (claim ?h ?l))
    (true (dice ?h ?l)))
"""

_AT_LEAST = """
(<= honest
    (true (claim ?h1 ?l1))
    (true (dice ?h2 ?l2))
    (above ?h2 ?l2 ?h1 ?l1))
"""

_GOALS = """
(<= (goal ?p 100)
    (true (doubted_by ?p))
    (not honest))

(<= (goal ?p 0)
    (true (doubted_by ?p))
    honest)

(<= (goal ?p 100)
    (opponent ?p ?q)
    (true (doubted_by ?q))
    honest)

(<= (goal ?p 0)
    (opponent ?p ?q)
    (true (doubted_by ?q))
    (not honest))
"""

GAME = game.Game(
    name="meier",
    summary="roll two dice in secret, claim ever more, doubt or believe",
    build=_build,
    parameters={
        "truth": game.Parameter(
            default="exact",
            choices=tuple(_TRUTH),
            help="an honest claim is what the dice show exactly, or no more than they show",
        )
    },
)
