"""Liar's dice with one die for each of two players."""

from gdlx.propnet.library import game, kif


def _build(sides: int) -> str:
    return kif.sheet(
        kif.header(
            f"Liar's dice, one {sides}-sided die each.",
            f"""Both players roll a die that only they see. In turn they bid how many of the two dice show a
            face: each bid has a higher count than the last, or the same count and a higher face. A die that
            shows {sides} counts as every face. Instead of bidding a player may call the last bid a lie; the
            caller wins if it is one, else the bidder wins.""",
            "traditional, with the rules of OpenSpiel's liars_dice.",
        ),
        kif.TWO_PLAYERS + "(role random)",
        kif.OPPONENTS,
        kif.values("face", range(1, sides + 1)),
        kif.values("wild", [sides]),
        kif.successors(1, sides),
        _RULES,
    )


_RULES = """
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

; The bids.

(<= (bid_above ?n ?g ?n ?f)
    (count ?n)
    (greater ?g ?f))

(<= (bid_above 2 ?g 1 ?f)
    (face ?f)
    (face ?g))

(count 1)
(count 2)

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
    summary="bid on two hidden dice, or call the last bid a lie",
    build=_build,
    parameters={
        "sides": game.Parameter(
            default=6,
            minimum=2,
            maximum=1000,
            help="faces of a die, the highest is wild; no limit in the rules, 1000 only keeps them printable",
        )
    },
)
