"""The rules of gops with cards in slots: bids in turn, of which the other player first sees the slot, then the card.

What is dealt unseen is revealed one card at a time, many steps later.
"""

import itertools

from gdlx.propnet.library import kif, lead, sources


def build(rounds: int, extra: int) -> str:
    """Returns the rulesheet of a game with so many rounds, and cards beyond those that are dealt."""
    cards = 3 * rounds + extra
    most = sum(range(cards - rounds + 1, cards + 1))
    slots = range(1, rounds + 1)
    dealt = [("table", slot) for slot in slots] + [(player, s) for s in slots for player in ("player1", "player2")]
    deals = [(*here, *following) for here, following in itertools.pairwise(dealt)]
    return kif.sheet(
        kif.header(
            f"The game of pure strategy with cards in slots, {rounds} rounds and a deck of {cards} cards.",
            f"""Of the cards 1 to {cards}, {rounds} are dealt face down to the table, then {rounds} to either player in
            turn, one by one into numbered slots; players see their own. In every round the prize in the next slot of
            the table is turned up. The first player bids a card, then the second; of a bid the other sees only the
            slot, until both have bid and the bids are shown. The higher bid scores as many points as the prize shows.
            More points in the end win.""",
            f"{sources.RICHARDS}, section 4.4.3 and appendix B.3.",
        ),
        kif.TWO_PLAYERS + "(role random)",
        kif.OPPONENTS,
        kif.values("card", range(1, cards + 1)),
        kif.values("slot", slots),
        kif.successors(1, cards),
        "; The slot that is dealt after each one.",
        kif.facts("then", deals),
        _DEAL,
        f"(<= (turns_up 1)\n    (true (dealing player2 {rounds})))",
        _ROUND,
        lead.prize_account(cards, most),
        lead.GOALS,
    )


_DEAL = """
(init (dealing table 1))

(<= (init (deck ?c))
    (card ?c))

; The deal.

(<= dealing
    (true (dealing ?o ?s)))

(<= (legal random (deal ?c))
    dealing
    (true (deck ?c)))

(<= (legal ?p noop)
    dealing
    (opponent ?p ?q))

(<= (sees ?p (dealt ?s ?c))
    (true (dealing ?p ?s))
    (opponent ?p ?q)
    (does random (deal ?c)))

(<= (next (holds ?o ?s ?c))
    (true (dealing ?o ?s))
    (does random (deal ?c)))

(<= (next (holds ?o ?s ?c))
    (true (holds ?o ?s ?c)))

(<= (next (deck ?c))
    (true (deck ?c))
    (not (does random (deal ?c))))

(<= (next (dealing ?o ?t))
    (true (dealing ?q ?s))
    (then ?q ?s ?o ?t))
"""

_ROUND = """
; The prize of a round: the first is turned up after the deal, the others after the round before.

(<= (turns_up ?t)
    (true (bidding player2))
    (true (round ?s))
    (succ ?s ?t)
    (slot ?t))

(<= (turned_up ?c)
    (turns_up ?s)
    (true (holds table ?s ?c)))

(<= (sees ?p (prize ?c))
    (opponent ?p ?q)
    (turned_up ?c))

(<= (next (prize ?c))
    (turned_up ?c))

(<= (next (prize ?c))
    (true (prize ?c))
    (true (bidding player1)))

(<= (next (round ?s))
    (turns_up ?s))

(<= (next (round ?s))
    (true (round ?s))
    (true (bidding player1)))

; The bids, from slots that have not been played.

(<= (next (bidding player1))
    (turns_up ?s))

(<= (next (bidding player2))
    (true (bidding player1)))

(<= (legal ?p (bid ?s))
    (true (bidding ?p))
    (slot ?s)
    (not (true (played ?p ?s))))

(<= (legal ?q noop)
    (true (bidding ?p))
    (opponent ?p ?q))

(<= (legal random noop)
    (true (bidding ?p)))

(<= (next (played ?p ?s))
    (does ?p (bid ?s)))

(<= (next (played ?p ?s))
    (true (played ?p ?s)))

(<= (bids ?p ?c)
    (does ?p (bid ?s))
    (true (holds ?p ?s ?c)))

(<= (next (first_bid ?c))
    (bids player1 ?c))

(<= (sees ?q (bid_from ?s))
    (does ?p (bid ?s))
    (opponent ?p ?q))

(<= (sees player1 (opponent_bid ?c))
    (bids player2 ?c))

(<= (sees player2 (opponent_bid ?c))
    (true (first_bid ?c)))

; Who takes the prize: (below ?c) if the first bid is lower than card ?c. No two cards are alike.

(<= (below ?c)
    (true (first_bid ?b))
    (succ ?b ?c))

(<= (below ?d)
    (below ?c)
    (succ ?c ?d))

(<= raised
    (bids player2 ?c)
    (below ?c))

(<= (takes player2)
    raised)

(<= (takes player1)
    (true (bidding player2))
    (not raised))

; The end.

(<= terminal
    (not dealing)
    (not bidding))

(<= bidding
    (true (bidding ?p)))
"""
