"""Battleship: hidden ships, and shots of which both see the outcome."""

import itertools

from gdlx.propnet.library import game, kif, lead, sources

_SHIPS = {"destroyer": 2, "cruiser": 3, "submarine": 3, "battleship": 4, "carrier": 5}
# The smallest boards on which ships that are placed from the longest on always fit, wherever the others are.
_LEAST_SIDE = (2, 3, 3, 4, 5)


def _build(side: int, ships: int) -> str:
    least = _LEAST_SIDE[ships - 1]
    if side < least:
        raise game.LibraryError(
            f"battleship: {ships} ships do not always fit on a board of {side}x{side}, make side at least {least}."
        )
    fleet = sorted(itertools.islice(_SHIPS, ships), key=_SHIPS.__getitem__, reverse=True)
    placed = [(player, ship) for ship in fleet for player in ("first", "second")]
    return kif.sheet(
        kif.header(
            f"Battleship on a board of {side}x{side} with {ships} of the ships {', '.join(_SHIPS)}.",
            f"""Both players have a board of their own. In turn they place their ships, unseen by the other, from the
            longest to the shortest: a ship covers as many cells in a line as it is long, {_lengths(fleet)}. Then they
            shoot in turn, at a cell that they have not shot at before. Both see the cell, and whether it is a miss, a
            hit of which ship, or has sunk that ship, as the last of its cells. Who first sinks all ships wins.""",
            f"{sources.RICHARDS}, section 4.4.2 and appendix B.1.",
        ),
        "(role first)\n(role second)\n\n(opponent first second)\n(opponent second first)",
        kif.values("index", range(1, side + 1)),
        kif.facts("length", ((ship, _SHIPS[ship]) for ship in fleet)),
        "; The cells of a row or column that a ship of some length covers from each place on.",
        kif.facts("stretch", _stretches(side, sorted({_SHIPS[ship] for ship in fleet}))),
        "; The ship that is placed after each one.",
        kif.facts("then", ((*here, *following) for here, following in itertools.pairwise(placed))),
        f"(init (placing first {fleet[0]}))",
        _PLACEMENT,
        f"(<= (next (shooting first))\n    (true (placing second {fleet[-1]})))",
        _SHOTS,
        lead.GOALS,
    )


def _lengths(fleet: list[str]) -> str:
    return ", ".join(f"the {ship} {_SHIPS[ship]}" for ship in fleet)


def _stretches(side: int, lengths: list[int]) -> list[tuple[int, int, int]]:
    """Returns every (length, first cell, covered cell) of a row or column."""
    return [
        (length, first, cell)
        for length in lengths
        for first in range(1, side - length + 2)
        for cell in range(first, first + length)
    ]


_PLACEMENT = """
(<= (covers ?n ?x ?y across ?u ?y)
    (stretch ?n ?x ?u)
    (index ?y))

(<= (covers ?n ?x ?y down ?x ?v)
    (stretch ?n ?y ?v)
    (index ?x))

; The placement. A part is a cell of a ship that has not been hit.

(<= (taken ?p ?x ?y)
    (true (part ?p ?s ?x ?y)))

(<= (overlaps ?p ?n ?x ?y ?d)
    (covers ?n ?x ?y ?d ?u ?v)
    (taken ?p ?u ?v))

(<= (legal ?p (place ?x ?y ?d))
    (true (placing ?p ?s))
    (length ?s ?n)
    (covers ?n ?x ?y ?d ?u ?v)
    (not (overlaps ?p ?n ?x ?y ?d)))

(<= (legal ?q noop)
    (true (placing ?p ?s))
    (opponent ?p ?q))

(<= (next (part ?p ?s ?u ?v))
    (true (placing ?p ?s))
    (length ?s ?n)
    (does ?p (place ?x ?y ?d))
    (covers ?n ?x ?y ?d ?u ?v))

(<= (next (afloat ?p ?s))
    (true (placing ?p ?s)))

(<= (next (placing ?q ?t))
    (true (placing ?p ?s))
    (then ?p ?s ?q ?t))
"""

_SHOTS = """
; The shots.

(<= (legal ?p (shoot ?x ?y))
    (true (shooting ?p))
    (index ?x)
    (index ?y)
    (not (true (shot ?p ?x ?y))))

(<= (legal ?q noop)
    (true (shooting ?p))
    (opponent ?p ?q))

(<= (next (shooting ?q))
    (true (shooting ?p))
    (opponent ?p ?q))

(<= (next (shot ?p ?x ?y))
    (does ?p (shoot ?x ?y)))

(<= (next (shot ?p ?x ?y))
    (true (shot ?p ?x ?y)))

(<= (target ?q ?x ?y)
    (does ?p (shoot ?x ?y))
    (opponent ?p ?q))

(<= (hits ?q ?s)
    (target ?q ?x ?y)
    (true (part ?q ?s ?x ?y)))

(<= hits_one
    (hits ?q ?s))

(<= (spared ?q ?s ?x ?y)
    (true (part ?q ?s ?x ?y))
    (not (target ?q ?x ?y)))

(<= (floats ?q ?s)
    (spared ?q ?s ?x ?y))

(<= (next (part ?q ?s ?x ?y))
    (spared ?q ?s ?x ?y))

(<= (next (afloat ?q ?s))
    (true (afloat ?q ?s))
    (floats ?q ?s))

; Both see the cell, of which the shooter knows, and the outcome.

(<= (sees ?q (shot_at ?x ?y))
    (target ?q ?x ?y))

(<= (sees ?p miss)
    (opponent ?p ?q)
    (true (shooting ?r))
    (not hits_one))

(<= (sees ?p (hit ?s))
    (opponent ?p ?q)
    (hits ?r ?s)
    (floats ?r ?s))

(<= (sees ?p (sunk ?s))
    (opponent ?p ?q)
    (hits ?r ?s)
    (not (floats ?r ?s)))

; The end.

(<= (has_ships ?p)
    (true (afloat ?p ?s)))

(<= (ahead ?p)
    (opponent ?p ?q)
    (has_ships ?p)
    (not (has_ships ?q)))

(<= terminal
    (true (shooting ?r))
    (ahead ?p))
"""

GAME = game.Game(
    name="battleship",
    summary="place ships unseen, then shoot at those of the other; both see what is hit",
    build=_build,
    parameters={
        "side": game.Parameter(default=4, minimum=2, maximum=30, help="rows and columns of a board"),
        "ships": game.Parameter(
            default=2, minimum=1, maximum=5, help="ships of each player, the first of lengths 2, 3, 3, 4, 5"
        ),
    },
)
