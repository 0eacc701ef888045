"""Difference: a card scores as much as it differs from the one that was played before."""

from gdlx.propnet.library import binary, game, kif, lead, sources

_TIES = {
    "draw": "Equal scores are a draw.",
    "second": "The second player wins if both have the same score.",
}


def _build(cards: int, ties: str) -> str:
    turns = cards - 3
    most = (cards - 1) * -(-turns // 2)
    within = binary.places(0, cards)
    return kif.sheet(
        kif.header(
            f"Difference with {cards} cards.",
            f"""The cards 1 to {cards} are shuffled. One is turned up in the centre, and each player is dealt one unseen
            by the other. In turn a player draws a card and then plays one of both on the card in the centre, and scores
            the difference between the two. The game ends when the deck is empty, after {turns} turns; the higher
            score wins. {_TIES[ties]}""",
            f"{sources.RICHARDS}, section 5.3.1; in its appendix B.4 ties are won by the second player.",
        ),
        kif.TWO_PLAYERS + "(role random)",
        kif.OPPONENTS,
        kif.values("card", range(1, cards + 1)),
        _DEAL,
        _TURN,
        binary.constants("worth", range(1, cards + 1)),
        _DIGITS,
        binary.greater("rises", "(played ?i)", "(centre ?i)", within),
        kif.values("digit", within),
        _LARGER_AND_SMALLER,
        binary.plus("points", "(larger ?i)", "(complement ?i)", within, carry="plays"),
        lead.account(most, "(points ?i)", "gains"),
        _SECOND_WINS if ties == "second" else "",
        lead.GOALS,
    )


_DEAL = """
; The deal: to the centre, to the players, and then a card for each turn.

(init (dealing centre))

(<= (init (deck ?c))
    (card ?c))

(then centre player1)
(then player1 player2)

(<= (next (dealing ?y))
    (true (dealing ?x))
    (then ?x ?y))

(<= (next (drawing player1))
    (true (dealing player2)))

(<= deals
    (true (dealing ?x)))

(<= deals
    (true (drawing ?p)))

(<= (gets ?x)
    (true (dealing ?x)))

(<= (gets ?p)
    (true (drawing ?p)))

(<= (legal random (deal ?c))
    deals
    (true (deck ?c)))

(<= (legal ?p noop)
    deals
    (opponent ?p ?q))

(<= (sees ?p (dealt ?c))
    (gets ?p)
    (opponent ?p ?q)
    (does random (deal ?c)))

(<= (sees ?p (centre ?c))
    (true (dealing centre))
    (opponent ?p ?q)
    (does random (deal ?c)))

(<= (next (deck ?c))
    (true (deck ?c))
    (not (does random (deal ?c))))

(<= (next (hand ?p ?c))
    (gets ?p)
    (opponent ?p ?q)
    (does random (deal ?c)))

(<= (next (hand ?p ?c))
    (true (hand ?p ?c))
    (not (does ?p (play ?c))))

(<= (next (top ?c))
    (true (dealing centre))
    (does random (deal ?c)))
"""

_TURN = """
; A turn.

(<= (next (playing ?p))
    (true (drawing ?p)))

(<= plays
    (true (playing ?p)))

(<= (legal ?p (play ?c))
    (true (playing ?p))
    (true (hand ?p ?c)))

(<= (legal ?q noop)
    (true (playing ?p))
    (opponent ?p ?q))

(<= (legal random noop)
    plays)

(<= (sees ?q (opponent_played ?c))
    (does ?p (play ?c))
    (opponent ?p ?q))

(<= (next (top ?c))
    (does ?p (play ?c)))

(<= (next (top ?c))
    (true (top ?c))
    (not plays))

(<= deck_left
    (true (deck ?c)))

(<= (next (drawing ?q))
    (true (playing ?p))
    (opponent ?p ?q)
    deck_left)

(<= terminal
    (not deals)
    (not plays))

; The points: the larger minus the smaller of the card played and the one in the centre.

(<= (gains ?p)
    (true (playing ?p)))
"""

_DIGITS = """
(<= (played ?i)
    (does ?p (play ?c))
    (worth ?c ?i))

(<= (centre ?i)
    (true (top ?c))
    (worth ?c ?i))
"""

_LARGER_AND_SMALLER = """
(<= (larger ?i)
    rises
    (played ?i))

(<= (larger ?i)
    (not rises)
    (centre ?i))

(<= (smaller ?i)
    rises
    (centre ?i))

(<= (smaller ?i)
    (not rises)
    (played ?i))

(<= (complement ?i)
    (digit ?i)
    (not (smaller ?i)))
"""

_SECOND_WINS = """
(<= uneven
    (true (lead ?i)))

(<= (ahead player2)
    (not uneven))
"""

GAME = game.Game(
    name="difference",
    summary="draw, then play the card that differs most from the last one",
    build=_build,
    parameters={
        "cards": game.Parameter(default=9, minimum=5, maximum=200, help="cards of the deck, three more than turns"),
        "ties": game.Parameter(
            default="draw", choices=tuple(_TIES), help="whether equal scores are a draw, or won by the second player"
        ),
    },
)
