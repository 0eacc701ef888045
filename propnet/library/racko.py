"""Racko: cards are exchanged until those in the own rack ascend."""

import itertools

from gdlx.propnet.library import binary, game, kif, sources

_FIRST, _SECOND = "first", "second"


def _build(slots: int, cards: int, turns: int) -> str:
    if cards <= 2 * slots:
        raise game.LibraryError(
            f"racko: {cards} cards do not fill two racks of {slots} slots and the discard pile, "
            f"make cards at least {2 * slots + 1}."
        )
    dealt = [(player, slot) for slot in range(1, slots + 1) for player in (_FIRST, _SECOND)]
    deals = [(*here, *following) for here, following in itertools.pairwise(dealt)]
    return kif.sheet(
        kif.header(
            f"Racko with {slots} slots and {cards} cards, at most {turns} turns.",
            f"""The cards 1 to {cards} are shuffled. {2 * slots} of them are dealt in turn into the {slots} slots of the
            two racks, which only their owners see; one more is turned up and starts the discard pile. In a turn
            a player takes the card on top of the discard pile, which everybody has seen, or draws the next card of the
            deck, which only the player sees, and may discard it at once. A card that is kept replaces one of the rack,
            and that one is discarded: both see it, and the slot. A rack whose cards ascend wins, also if it is
            dealt so; if both do, or none after {turns} turns, it is a draw. Nobody draws from an empty deck.""",
            f"{sources.RICHARDS}, section 4.4.1 and appendix B.2, which has no limit of turns.",
        ),
        f"(role {_FIRST})\n(role {_SECOND})\n(role random)",
        f"(opponent {_FIRST} {_SECOND})\n(opponent {_SECOND} {_FIRST})",
        kif.values("card", range(1, cards + 1)),
        kif.values("slot", range(1, slots + 1)),
        kif.successors(1, max(cards, slots)),
        "; The slot that is dealt after each one.",
        kif.facts("then", deals),
        f"(init (dealing {_FIRST} 1))",
        _DEAL.format(slots=slots, first=_FIRST, second=_SECOND),
        _TURN,
        _EXCHANGE,
        binary.counter("turns", turns, "turn_ends"),
        f"(<= terminal\n    {binary.reached('turns', turns)})",
        _END,
    )


_DEAL = """
(<= (init (deck ?c))
    (card ?c))

; Chance deals a card: into a slot, then as the first of the discard pile, later to a player who draws.

(<= chance_acts
    (true (dealing ?p ?s)))

(<= chance_acts
    (true turning_up))

(<= chance_acts
    (true (drawing ?p)))

(<= (legal random (deal ?c))
    chance_acts
    (true (deck ?c)))

(<= (legal ?p noop)
    (opponent ?p ?q)
    chance_acts)

(<= (next (deck ?c))
    (true (deck ?c))
    (not (does random (deal ?c))))

(<= (sees ?p (dealt ?s ?c))
    (true (dealing ?p ?s))
    (does random (deal ?c)))

(<= (next (dealing ?q ?t))
    (true (dealing ?p ?s))
    (then ?p ?s ?q ?t))

(<= (next turning_up)
    (true (dealing {second} {slots})))

(<= (next (choosing {first}))
    (true turning_up))
"""

_TURN = """
; A turn: take the top of the discard pile, or draw.

(<= (legal ?p (take ?s))
    (true (choosing ?p))
    (slot ?s))

(<= (legal ?p draw)
    (true (choosing ?p))
    (true (deck ?c)))

(<= (legal ?p discard)
    (true (placing ?p)))

(<= (legal ?p (swap ?s))
    (true (placing ?p))
    (slot ?s))

(<= (active ?p)
    (true (choosing ?p)))

(<= (active ?p)
    (true (placing ?p)))

(<= (legal ?q noop)
    (active ?p)
    (opponent ?p ?q))

(<= (legal random noop)
    (active ?p))

(<= (next (drawing ?p))
    (does ?p draw))

(<= (next (placing ?p))
    (true (drawing ?p)))

(<= (sees ?p (drawn ?c))
    (true (drawing ?p))
    (does random (deal ?c)))

(<= (next (drawn ?c))
    (true (drawing ?p))
    (does random (deal ?c)))

(<= turn_ends
    (does ?p (take ?s)))

(<= turn_ends
    (true (placing ?p)))

(<= (next (choosing ?q))
    turn_ends
    (active ?p)
    (opponent ?p ?q))

; What the other player notices.

(<= (sees ?q draws)
    (does ?p draw)
    (opponent ?p ?q))

(<= (sees ?q (took ?s))
    (does ?p (take ?s))
    (opponent ?p ?q))

(<= (sees ?q (swapped ?s))
    (does ?p (swap ?s))
    (opponent ?p ?q))
"""

_EXCHANGE = """
; A card comes into a slot, and the one that was there on top of the discard pile.

(<= (fills ?p ?s)
    (true (dealing ?p ?s)))

(<= (fills ?p ?s)
    (does ?p (take ?s)))

(<= (fills ?p ?s)
    (does ?p (swap ?s)))

(<= (comes ?c)
    (does random (deal ?c)))

(<= (comes ?c)
    (true (choosing ?p))
    (true (top ?c)))

(<= (comes ?c)
    (true (drawn ?c)))

(<= (next (rack ?p ?s ?c))
    (fills ?p ?s)
    (comes ?c))

(<= (next (rack ?p ?s ?c))
    (true (rack ?p ?s ?c))
    (not (fills ?p ?s)))

(<= (discarded ?c)
    (true turning_up)
    (does random (deal ?c)))

(<= (discarded ?c)
    (true (rack ?p ?s ?c))
    (fills ?p ?s))

(<= (discarded ?c)
    (true (drawn ?c))
    (does ?p discard))

(<= (sees ?p (top ?c))
    (opponent ?p ?q)
    (discarded ?c))

(<= (next (top ?c))
    (discarded ?c))

(<= (next (top ?c))
    (true (top ?c))
    (not turn_ends))
"""

_END = """
; The end, which is noticed between turns. (up_to ?p ?s ?c): the card in the slot is at most ?c.

(<= (up_to ?p ?s ?c)
    (true (rack ?p ?s ?c)))

(<= (up_to ?p ?s ?d)
    (up_to ?p ?s ?c)
    (succ ?c ?d)
    (card ?d))

(<= (disordered ?p)
    (true (rack ?p ?t ?c))
    (succ ?s ?t)
    (slot ?t)
    (not (up_to ?p ?s ?c)))

(<= (ordered ?p)
    (opponent ?p ?q)
    (not (disordered ?p)))

(<= terminal
    (true (choosing ?q))
    (ordered ?p))

(<= (goal ?p 100)
    (ordered ?p)
    (opponent ?p ?q)
    (not (ordered ?q)))

(<= (goal ?p 0)
    (opponent ?p ?q)
    (ordered ?q)
    (not (ordered ?p)))

(<= (goal ?p 50)
    (ordered ?p)
    (opponent ?p ?q)
    (ordered ?q))

(<= (goal ?p 50)
    (opponent ?p ?q)
    (not (ordered ?p))
    (not (ordered ?q)))
"""

GAME = game.Game(
    name="racko",
    summary="exchange cards until the own rack ascends; what was dealt is revealed late",
    build=_build,
    parameters={
        "slots": game.Parameter(default=3, minimum=2, maximum=30, help="slots of each rack"),
        "cards": game.Parameter(
            default=12, minimum=5, maximum=200, help="cards of the deck; more than both racks have slots"
        ),
        "turns": game.Parameter(
            default=50, minimum=1, maximum=10_000, help="turns that end the game; no limit in the rules"
        ),
    },
)
