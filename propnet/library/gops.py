"""The game of pure strategy with hands dealt at random."""

from gdlx.propnet.library import game, gops_slots, kif, lead, sources


def _build(rounds: int, extra: int, slots: str) -> str:
    return gops_slots.build(rounds, extra) if slots == "yes" else _build_at_once(rounds, extra)


def _build_at_once(rounds: int, extra: int) -> str:
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
        kif.successors(1, max(cards, 2 * rounds)),
        lead.BIDS,
        _RULES,
        f"(<= (next turning_up)\n    (true (dealing {2 * rounds})))",
        _ROUND,
        lead.prize_account(cards, most),
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
            help="rounds, and cards in a hand; no limit in the rules",
        ),
        "extra": game.Parameter(
            default=0, minimum=0, maximum=100, help="cards of the deck beyond the hands and the prizes"
        ),
        "slots": game.Parameter(
            default="no",
            choices=("no", "yes"),
            help="whether cards are dealt into slots, and bid in turn: the slot is seen first, the card later",
        ),
    },
)
