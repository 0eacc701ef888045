"""Goofspiel, the game of pure strategy, with the prizes in a fixed order."""

from gdlx.propnet.library import game, kif, lead, sources

_OUTCOME = {
    "imperfect": "Both learn who won the prize, or that nobody did, but not the opponent's card.",
    "perfect": "Both cards are then shown.",
}


def _build(cards: int, info: str, order: str) -> str:
    first, last = (1, cards) if order == "ascending" else (cards, 1)
    following = "(succ ?j ?k)" if order == "ascending" else "(succ ?k ?j)"
    return kif.sheet(
        kif.header(
            f"Goofspiel with {cards} cards, {info} information, prizes in {order} order.",
            f"""Each player has the cards 1 to {cards}. The prizes {first} to {last} are offered one after
            the other: both bid a card at once, the higher one wins as many points as the prize shows, and
            equal cards win nothing. {_OUTCOME[info]} More points in the end win.""",
            f"II-Goofspiel of {sources.SCHLINDENBUCH}, section 3.2.2.",
        ),
        kif.TWO_PLAYERS,
        kif.OPPONENTS,
        kif.values("card", range(1, cards + 1)),
        f"(init (prize {first}))",
        _HANDS,
        lead.counting(cards * (cards + 1) // 2),
        lead.GREATER,
        _RULES,
        _PERCEPTS if info == "imperfect" else "",
        f"""
(<= (next (prize ?k))
    (true (prize ?j))
    {following}
    (card ?k))
""",
        _END,
        lead.prizes(cards),
        lead.GOALS,
    )


_HANDS = """
(<= (init (hand ?p ?c))
    (role ?p)
    (card ?c))
"""

_RULES = """
; A bid for the prize.

(<= (legal ?p (bid ?c))
    (true (hand ?p ?c)))

(<= (takes ?p)
    (opponent ?p ?q)
    (does ?p (bid ?b))
    (does ?q (bid ?a))
    (greater ?b ?a))

(<= (next (hand ?p ?c))
    (true (hand ?p ?c))
    (not (does ?p (bid ?c))))

(<= (next (won ?p ?k))
    (takes ?p)
    (true (prize ?k)))

(<= (next (won ?p ?k))
    (true (won ?p ?k)))
"""

_PERCEPTS = """
(<= (sees ?p won)
    (takes ?p))

(<= (sees ?p lost)
    (takes ?q)
    (opponent ?p ?q))

(<= (sees ?p tied)
    (role ?p)
    (does player1 (bid ?c))
    (does player2 (bid ?c)))
"""

_END = """
; The end.

(<= terminal
    (not bidding))

(<= bidding
    (true (prize ?k)))
"""

GAME = game.Game(
    name="goofspiel",
    summary="bid cards for prizes in a known order",
    build=_build,
    parameters={
        "cards": game.Parameter(
            default=5,
            minimum=2,
            maximum=100,
            help="cards in a hand; 100 cards already are worth 5050 points, each a fact of the sheet",
        ),
        "info": game.Parameter(
            default="imperfect",
            choices=("imperfect", "perfect"),
            help="after a bid: who won the prize is seen, or both cards",
        ),
        "order": game.Parameter(default="ascending", choices=("ascending", "descending"), help="order of the prizes"),
    },
)
