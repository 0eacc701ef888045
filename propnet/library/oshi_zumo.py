"""Oshi-zumo: bids push a wrestler off a board of fields, as in OpenSpiel."""

from gdlx.propnet.library import binary, game, kif, lead

_END = {
    "false": "At the end the wrestler may also stand on a side of the board: then whoever pushed it there wins.",
    "true": "A wrestler that is on the board at the end is a draw.",
}


def _build(coins: int, size: int, min_bid: int, horizon: int, alesia: str) -> str:
    if min_bid > coins:
        raise game.LibraryError(f"oshi_zumo: nobody can bid {min_bid} of {coins} coins, make min_bid at most {coins}.")
    # A player who bids at least min_bid whenever it can has no coins left after this many bids.
    longest = -(-coins // min_bid) if min_bid else None
    is_timed = longest is None or horizon < longest
    limit = max(coins, size + 1)
    lowest = f"of at least {min_bid}, or all that it has left" if min_bid else "of zero or more"
    time_out = f", or after {horizon} bids" if is_timed else ""
    return kif.sheet(
        kif.header(
            f"Oshi-zumo with {coins} coins each, {size} fields on either side, bids of {min_bid} or more.",
            f"""A wrestler stands in the middle of {2 * size + 1} fields. Both players bid coins at once,
            {lowest}; the higher bid pushes the wrestler by a field, and the coins of both are spent. All bids are
            seen. Who pushes the wrestler off the board wins. The game also ends when nobody has coins{time_out}.
            {_END[alesia]}""",
            "the game of that name in OpenSpiel, github.com/google-deepmind/open_spiel",
        ),
        kif.TWO_PLAYERS,
        kif.OPPONENTS,
        kif.values("amount", range(coins + 1)),
        kif.values("too_little", range(min_bid)),
        kif.values("field", range(-size - 1, size + 2)),
        f"(off player1 {size + 1})\n(off player2 {-size - 1})",
        kif.successors(-size - 1, limit),
        f"(init (wrestler 0))\n\n(init (coins player1 {coins}))\n(init (coins player2 {coins}))",
        _BIDS.format(
            at_least_minimum="\n    (not (too_little ?b))" if min_bid else "", all_in=_ALL_IN if min_bid else ""
        ),
        f"{binary.counter('bids', horizon)}\n(<= terminal\n    {binary.reached('bids', horizon)})" if is_timed else "",
        _TERMINAL,
        _ALESIA if alesia == "true" else _sides(size),
        lead.GOALS,
    )


_ALL_IN = """
(<= (legal ?p (bid ?c))
    (true (coins ?p ?c))
    (too_little ?c))
"""

_BIDS = """
; The bids.

(<= (legal ?p (bid ?b))
    (true (coins ?p ?c))
    (plus ?b ?rest ?c){at_least_minimum})
{all_in}
(<= (next (coins ?p ?rest))
    (true (coins ?p ?c))
    (does ?p (bid ?b))
    (plus ?b ?rest ?c))

(<= (plus 0 ?b ?b)
    (amount ?b))

(<= (plus ?b ?c ?e)
    (plus ?a ?c ?d)
    (succ ?a ?b)
    (succ ?d ?e)
    (amount ?e))

; The wrestler: the first player pushes it up, the second down.

(<= (pushes ?p)
    (opponent ?p ?q)
    (does ?p (bid ?b))
    (does ?q (bid ?a))
    (plus ?a ?more ?b)
    (distinct ?more 0))

(<= moved
    (pushes ?p))

(<= (next (wrestler ?y))
    (true (wrestler ?x))
    (pushes player1)
    (succ ?x ?y)
    (field ?y))

(<= (next (wrestler ?y))
    (true (wrestler ?x))
    (pushes player2)
    (succ ?y ?x)
    (field ?y))

(<= (next (wrestler ?x))
    (true (wrestler ?x))
    (not moved))
"""

_TERMINAL = """
; The end.

(<= terminal
    (pushed_off ?p))

(<= terminal
    (true (coins player1 0))
    (true (coins player2 0)))

(<= (pushed_off ?p)
    (true (wrestler ?x))
    (off ?p ?x))
"""

_ALESIA = """
(<= (ahead ?p)
    (pushed_off ?p))
"""


def _sides(size: int) -> str:
    """The rules of who is ahead where the side of the board decides."""
    sides = [("player1", field) for field in range(1, size + 2)] + [("player2", -field) for field in range(1, size + 2)]
    return f"""
{kif.facts("side", sides)}

(<= (ahead ?p)
    (true (wrestler ?x))
    (side ?p ?x))
"""


GAME = game.Game(
    name="oshi_zumo",
    summary="bid coins to push a wrestler off the board, as in OpenSpiel",
    build=_build,
    parameters={
        "coins": game.Parameter(default=50, minimum=1, maximum=1000, help="of each player; no limit in the rules"),
        "size": game.Parameter(
            default=3, minimum=0, maximum=1000, help="fields on either side of the middle; no limit in the rules"
        ),
        "min_bid": game.Parameter(
            default=0, minimum=0, maximum=1000, help="the lowest bid, of players who have that many coins"
        ),
        "horizon": game.Parameter(
            default=1000, minimum=1, maximum=10_000, help="bids that end the game; no limit in the rules"
        ),
        "alesia": game.Parameter(
            default="false", choices=("false", "true"), help="whether only pushing the wrestler off the board wins"
        ),
    },
)
