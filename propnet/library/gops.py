"""The game of pure strategy with hands dealt at random."""

from gdlx.propnet.library import game, kif, lead, sources


def _build(rounds: int, extra: int) -> str:
    cards = 3 * rounds + extra
    most = sum(range(cards - rounds + 1, cards + 1))
    turns = ((k, "player2" if k % 2 == 0 else "player1") for k in range(1, 2 * rounds + 1))
    return kif.sheet(
        kif.header(
            f"The game of pure strategy with {rounds} rounds and a deck of {cards} cards.",
            f"""Both players are dealt {rounds} of the cards 1 to {cards} at random. In every round a prize
            is turned up from the rest of the deck, and both bid a card of their hand at once; then the bids
            are shown. The higher bid scores as many points as the prize shows. More points in the end
            win.""",
            f"{sources.RICHARDS}, section 4.4.3.",
        ),
        kif.TWO_PLAYERS + "(role random)",
        kif.OPPONENTS,
        kif.values("card", range(1, cards + 1)),
        "; Who gets the card that is dealt at a step.",
        kif.facts("gets", turns),
        lead.counting(max(most, cards, 2 * rounds)),
        lead.GREATER,
        _RULES,
        f"(<= (next turning_up)\n    (true (dealing {2 * rounds})))",
        _ROUND,
        lead.prizes(cards),
        lead.GOALS,
    )


_RULES = """
(init (dealing 1))

(<= (init (deck ?c))
    (card ?c))

; The deal. Players look at their hands when the first prize is turned up.

(<= (legal random (deal ?c))
    (true (dealing ?k))
    (true (deck ?c)))

(<= (legal ?p noop)
    (true (dealing ?k))
    (opponent ?p ?q))

(<= (next (hand ?p ?c))
    (true (dealing ?k))
    (gets ?k ?p)
    (does random (deal ?c)))

(<= (next (hand ?p ?c))
    (true (hand ?p ?c))
    (not (does ?p (bid ?c))))

(<= (next (deck ?c))
    (true (deck ?c))
    (not (does random (deal ?c)))
    (not (does random (turn_up ?c))))

(<= (next (dealing ?n))
    (true (dealing ?m))
    (succ ?m ?n)
    (gets ?n ?p))
"""

_ROUND = """
; A round: a prize is turned up, then both bid.

(<= (legal random (turn_up ?c))
    (true turning_up)
    (true (deck ?c)))

(<= (legal ?p noop)
    (true turning_up)
    (opponent ?p ?q))

(<= (sees ?p (in_hand ?c))
    (true turning_up)
    (true (hand ?p ?c)))

(<= (sees ?p (prize ?c))
    (opponent ?p ?q)
    (does random (turn_up ?c)))

(<= (next (prize ?c))
    (does random (turn_up ?c)))

(<= (legal ?p (bid ?c))
    bidding
    (true (hand ?p ?c)))

(<= (legal random noop)
    bidding)

(<= bidding
    (true (prize ?k)))

(<= (sees ?p (opponent_bid ?c))
    (opponent ?p ?q)
    (does ?q (bid ?c)))

(<= (takes ?p)
    (opponent ?p ?q)
    (does ?p (bid ?b))
    (does ?q (bid ?a))
    (greater ?b ?a))

(<= (next (won ?p ?k))
    (takes ?p)
    (true (prize ?k)))

(<= (next (won ?p ?k))
    (true (won ?p ?k)))

(<= (next turning_up)
    bidding
    (true (hand player1 ?c))
    (not (does player1 (bid ?c))))

; The end.

(<= terminal
    (not playing))

(<= playing
    (true (dealing ?k)))

(<= playing
    (true turning_up))

(<= playing
    bidding)
"""

GAME = game.Game(
    name="gops",
    summary="bid cards for prizes, with hands and prizes dealt at random",
    build=_build,
    parameters={
        "rounds": game.Parameter(
            default=3,
            minimum=2,
            maximum=50,
            help="rounds, and cards in a hand; the sheet lists every possible lead, thousands for 50",
        ),
        "extra": game.Parameter(
            default=0, minimum=0, maximum=100, help="cards of the deck beyond the hands and the prizes"
        ),
    },
)
