"""The lead of player 1, in binary or one of a list, and the goals of games that the player in the lead wins."""

from gdlx.propnet.library import binary, kif

# Who takes a prize: (below ?p ?c) if the bid of ?p is lower than card ?c. Cards count with succ.
BIDS = """
(<= (below ?p ?b)
    (does ?p (bid ?a))
    (succ ?a ?b))

(<= (below ?p ?c)
    (below ?p ?b)
    (succ ?b ?c))

(<= (takes ?p)
    (opponent ?p ?q)
    (does ?p (bid ?c))
    (below ?q ?c))
"""

# From the relation (ahead ?p).
GOALS = """
(<= decided
    (ahead ?p))

(<= (goal ?p 100)
    (ahead ?p))

(<= (goal ?p 0)
    (ahead ?q)
    (opponent ?p ?q))

(<= (goal ?p 50)
    (opponent ?p ?q)
    (not decided))
"""


def account(most: int, amount: str, gains: str) -> str:
    """Returns rules of `(ahead ?p)` for a player who gains more than the other, at most `most` points.

    Args:
      most: What a player can gain at most in a game.
      amount: A literal of `?i`, the points of a step in binary (see `binary`).
      gains: The relation `(GAINS ?p)` of the player who gains them.
    """
    sign = binary.places(-most, most)[-1]
    return f"""{binary.account("lead", -most, most, amount, f"({gains} player1)", f"({gains} player2)").rstrip()}

(<= (ahead player1)
    (true (lead ?i))
    (not (true (lead {sign}))))

(<= (ahead player2)
    (true (lead {sign})))
"""


def prize_account(highest: int, most: int) -> str:
    """Returns the account of prizes `(true (prize ?k))` of 1..highest points, which go to whoever `(takes ?p)`.

    The points of a player are at most `most` in a game.
    """
    return f"""
; The points of the prize.

{binary.constants("worth", range(1, highest + 1))}

(<= (points ?i)
    (true (prize ?k))
    (worth ?k ?i))

{account(most, "(points ?i)", "takes").strip()}
"""


def counting(limit: int) -> str:
    """Returns rules for the integers from -limit to limit and their signs; `limit` is at least 1.

    They are for games whose states are shown to users and solved by states, in which `(lead 3)` is read at a glance.
    """
    return f"{kif.successors(-limit, limit)}\n\n{_SIGNS.strip()}"


_SIGNS = """
(<= (positive ?n)
    (succ 0 ?n))

(<= (positive ?n)
    (positive ?m)
    (succ ?m ?n))

(<= (negative ?n)
    (succ ?n 0))

(<= (negative ?n)
    (negative ?m)
    (succ ?n ?m))
"""
