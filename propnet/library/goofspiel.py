"""Goofspiel, the game of pure strategy, with the prizes in a fixed order or in a random one."""

from gdlx.propnet.library import game, kif, lead, sources

_OUTCOME = {
    "imperfect": "Both learn who won the prize, or that nobody did, but not the opponent's card.",
    "perfect": "Both cards are then shown.",
}


def _build(cards: int, info: str, order: str) -> str:
    is_random = order == "random"
    first, last = (1, cards) if order == "ascending" else (cards, 1)
    prizes = "1 to {cards} are turned up in random order" if is_random else f"{first} to {last} are offered"
    player = "(opponent ?p ?q)" if is_random else "(role ?p)"
    outcomes = _OUTCOMES.format(player=player)
    unless_starting = "\n    (not (true starting))" if is_random else ""
    return kif.sheet(
        kif.header(
            f"Goofspiel with {cards} cards, {info} information, prizes in {order} order.",
            f"""Each player has the cards 1 to {cards}. The prizes {prizes.format(cards=cards)} one after
            the other: both bid a card at once, the higher one wins as many points as the prize shows, and
            equal cards win nothing. {_OUTCOME[info]} More points in the end win.""",
            _SOURCE_RANDOM if is_random else f"II-Goofspiel of {sources.SCHLINDENBUCH}, section 3.2.2.",
        ),
        kif.TWO_PLAYERS + ("(role random)" if is_random else ""),
        kif.OPPONENTS,
        kif.values("card", range(1, cards + 1)),
        "" if is_random else f"(init (prize {first}))",
        _HANDS.format(player=player),
        kif.successors(1, cards),
        lead.BIDS,
        _RULES.format(unless_starting=unless_starting),
        outcomes if info == "imperfect" else _OPEN_BIDS if is_random else "",
        _DECK if is_random else _fixed_order(order),
        _END.format(unless_starting=unless_starting),
        lead.prize_account(cards, cards * (cards + 1) // 2),
        lead.GOALS,
    )


def _fixed_order(order: str) -> str:
    following = "(succ ?j ?k)" if order == "ascending" else "(succ ?k ?j)"
    return f"""
(<= (next (prize ?k))
    (true (prize ?j))
    {following}
    (card ?k))
"""


_SOURCE_RANDOM = "the game of that name in OpenSpiel, github.com/google-deepmind/open_spiel"

_HANDS = """
(<= (init (hand ?p ?c))
    {player}
    (card ?c))
"""

_RULES = """
; A bid for the prize.

(<= (legal ?p (bid ?c))
    (true (hand ?p ?c)){unless_starting})

(<= (next (hand ?p ?c))
    (true (hand ?p ?c))
    (not (does ?p (bid ?c))))
"""

_OUTCOMES = """
(<= (sees ?p won)
    (takes ?p))

(<= (sees ?p lost)
    (takes ?q)
    (opponent ?p ?q))

(<= (sees ?p tied)
    {player}
    (does player1 (bid ?c))
    (does player2 (bid ?c)))
"""

# A sheet with chance is GDL-II, in which open bids are percepts.
_OPEN_BIDS = """
(<= (sees ?p (opponent_bid ?c))
    (opponent ?p ?q)
    (does ?q (bid ?c)))
"""

_DECK = """
; The prizes: the first is turned up at the start, the others with the bids for the one before.

(init starting)

(<= (init (deck ?c))
    (card ?c))

(<= deck_left
    (true (deck ?c)))

(<= (legal random (turn_up ?c))
    (true (deck ?c)))

(<= (legal random noop)
    (not deck_left))

(<= (legal ?p noop)
    (opponent ?p ?q)
    (true starting))

(<= (sees ?p (prize ?c))
    (opponent ?p ?q)
    (does random (turn_up ?c)))

(<= (next (prize ?c))
    (does random (turn_up ?c)))

(<= (next (deck ?c))
    (true (deck ?c))
    (not (does random (turn_up ?c))))
"""

_END = """
; The end.

(<= terminal
    (not bidding){unless_starting})

(<= bidding
    (true (prize ?k)))
"""

GAME = game.Game(
    name="goofspiel",
    summary="bid cards for prizes in a known or random order",
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
        "order": game.Parameter(
            default="ascending",
            choices=("ascending", "descending", "random"),
            help="order of the prizes; random: each is turned up before the bids for it",
        ),
    },
)
