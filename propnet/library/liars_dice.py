"""Liar's dice of two players."""

from gdlx.propnet.library import game, kif


def _build(dice: int, sides: int) -> str:
    return _build_one(sides) if dice == 1 else _build_many(dice, sides)


def _build_one(sides: int) -> str:
    return kif.sheet(
        kif.header(
            f"Liar's dice, one {sides}-sided die each.",
            f"""Both players roll a die that only they see. In turn they bid how many of the two dice show a
            face: each bid has a higher count than the last, or the same count and a higher face. A die that
            shows {sides} counts as every face. Instead of bidding a player may call the last bid a lie; the
            caller wins if it is one, else the bidder wins.""",
            _SOURCE,
        ),
        kif.TWO_PLAYERS + "(role random)",
        kif.OPPONENTS,
        kif.values("face", range(1, sides + 1)),
        kif.values("wild", [sides]),
        kif.successors(1, sides),
        _ROLL_ONE,
        _BIDS.format(faces="", higher=_HIGHER_OF_TWO),
        _TRUTH_OF_ONE,
        _GOALS,
    )


def _build_many(dice: int, sides: int) -> str:
    return kif.sheet(
        kif.header(
            f"Liar's dice, {dice} dice of {sides} sides each.",
            f"""Both players roll {dice} dice that only they see, all at once: which die shows which face does not
            matter. In turn they bid how many of all dice show a face: each bid has a higher count than the last, or
            the same count and a higher face. A die that shows {sides} counts as every face. Instead of bidding a
            player may call the last bid a lie; the caller wins if it is one, else the bidder wins.""",
            _SOURCE,
        ),
        kif.TWO_PLAYERS + "(role random)",
        kif.OPPONENTS,
        kif.values("face", range(1, sides + 1)),
        kif.values("wild", [sides]),
        kif.values("number", range(2 * dice + 1)),
        kif.successors(0, max(2 * dice, sides)),
        f"(last_die {dice})",
        _ROLL_MANY,
        _BIDS.format(faces="\n    (face ?f)\n    (face ?g)", higher=_HIGHER),
        _TRUTH,
        _GOALS,
    )


_SOURCE = "traditional, with the rules of OpenSpiel's liars_dice."
_ROLL_ONE = """
(init (rolling player1))

; The roll.

(<= (legal random (roll ?f))
    (true (rolling ?p))
    (face ?f))

(<= (legal ?p noop)
    (true (rolling ?w))
    (opponent ?p ?q))

(<= (sees ?p (rolled ?f))
    (true (rolling ?p))
    (does random (roll ?f)))

(<= (next (die ?p ?f))
    (true (rolling ?p))
    (does random (roll ?f)))

(<= (next (die ?p ?f))
    (true (die ?p ?f)))

(<= (next (rolling player2))
    (true (rolling player1)))

(<= (next (turn player1))
    (true (rolling player2)))

"""

_ROLL_MANY = """
(init (rolling player1 1))

(<= (init (shows ?p ?f 0))
    (opponent ?p ?q)
    (face ?f))

; The rolls, one die after the other. The state and the player know how many dice show each face.

(<= (legal random (roll ?f))
    (true (rolling ?p ?d))
    (face ?f))

(<= (legal ?p noop)
    (true (rolling ?w ?d))
    (opponent ?p ?q))

(<= (rolls ?p ?f)
    (true (rolling ?p ?d))
    (does random (roll ?f)))

(<= (shows_now ?p ?f ?n)
    (true (shows ?p ?f ?m))
    (rolls ?p ?f)
    (succ ?m ?n))

(<= (shows_now ?p ?f ?n)
    (true (shows ?p ?f ?n))
    (not (rolls ?p ?f)))

(<= (next (shows ?p ?f ?n))
    (shows_now ?p ?f ?n))

(<= (sees ?p (rolled ?n ?f))
    (true (rolling ?p ?d))
    (last_die ?d)
    (shows_now ?p ?f ?n)
    (distinct ?n 0))

(<= (next (rolling ?p ?e))
    (true (rolling ?p ?d))
    (not (last_die ?d))
    (succ ?d ?e))

(<= (next (rolling player2 1))
    (true (rolling player1 ?d))
    (last_die ?d))

(<= (next (turn player1))
    (true (rolling player2 ?d))
    (last_die ?d))
"""

_HIGHER_OF_TWO = """
(<= (bid_above 2 ?g 1 ?f)
    (face ?f)
    (face ?g))

(count 1)
(count 2)
"""

_HIGHER = """
(<= (bid_above ?m ?g ?n ?f)
    (greater ?m ?n)
    (count ?m)
    (count ?n)
    (face ?f)
    (face ?g))

(<= (count ?n)
    (number ?n)
    (distinct ?n 0))
"""

_BIDS = """
; The bids.

(<= (bid_above ?n ?g ?n ?f)
    (count ?n)
    (greater ?g ?f){faces})
{higher}
(<= (greater ?g ?f)
    (succ ?f ?g))

(<= (greater ?h ?f)
    (greater ?g ?f)
    (succ ?g ?h))

(<= has_bid
    (true (last ?n ?f)))

(<= (legal ?p (bid ?n ?f))
    (true (turn ?p))
    (count ?n)
    (face ?f)
    (not has_bid))

(<= (legal ?p (bid ?n ?g))
    (true (turn ?p))
    (true (last ?m ?f))
    (bid_above ?n ?g ?m ?f))

(<= (legal ?p call)
    (true (turn ?p))
    has_bid)

(<= (legal ?p noop)
    (role ?p)
    (true (turn ?q))
    (distinct ?p ?q))

(<= (sees ?q (opponent_bid ?n ?f))
    (does ?p (bid ?n ?f))
    (opponent ?p ?q))

(<= (next (last ?n ?f))
    (does ?p (bid ?n ?f)))

(<= calls
    (does ?p call))

(<= (next (last ?n ?f))
    (true (last ?n ?f))
    calls)

(<= (next (turn ?q))
    (does ?p (bid ?n ?f))
    (opponent ?p ?q))

(<= (next (called ?p))
    (does ?p call))

; The end.

(<= terminal
    (true (called ?p)))

"""

_TRUTH_OF_ONE = """
(<= (matches ?p)
    (true (last ?n ?f))
    (true (die ?p ?f)))

(<= (matches ?p)
    (true (die ?p ?f))
    (wild ?f))

(<= truthful
    (true (last 1 ?f))
    (matches ?p))

(<= truthful
    (matches player1)
    (matches player2))

"""

_TRUTH = """
; How many dice show the face of the last bid or are wild, of each player and of both.

(<= (matches ?p ?n)
    (true (last ?b ?f))
    (true (shows ?p ?f ?n))
    (wild ?f))

(<= (matches ?p ?n)
    (true (last ?b ?f))
    (not (wild ?f))
    (true (shows ?p ?f ?k))
    (wild ?w)
    (true (shows ?p ?w ?m))
    (plus ?k ?m ?n))

(<= (plus 0 ?n ?n)
    (number ?n))

(<= (plus ?k ?m ?n)
    (plus ?j ?m ?i)
    (succ ?j ?k)
    (succ ?i ?n)
    (number ?n))

(<= truthful
    (true (last ?b ?f))
    (matches player1 ?k)
    (matches player2 ?m)
    (plus ?k ?m ?n)
    (plus ?b ?rest ?n))
"""

_GOALS = """
(<= (goal ?p 100)
    (true (called ?p))
    (not truthful))

(<= (goal ?p 0)
    (true (called ?p))
    truthful)

(<= (goal ?p 100)
    (opponent ?p ?q)
    (true (called ?q))
    truthful)

(<= (goal ?p 0)
    (opponent ?p ?q)
    (true (called ?q))
    (not truthful))
"""

GAME = game.Game(
    name="liars_dice",
    summary="bid on hidden dice, or call the last bid a lie",
    build=_build,
    parameters={
        "dice": game.Parameter(default=1, minimum=1, maximum=100, help="dice of each player; no limit in the rules"),
        "sides": game.Parameter(
            default=6,
            minimum=2,
            maximum=1000,
            help="faces of a die, the highest is wild; no limit in the rules, 1000 only keeps them printable",
        ),
    },
)
