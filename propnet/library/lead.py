"""The lead of player 1 as an integer, and the goals of games that the player in the lead wins."""

from gdlx.propnet.library import kif


def counting(limit: int) -> str:
    """Returns rules for the integers from -limit to limit and their signs; `limit` is at least 1."""
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

# The order of cards (card ?k) that count with succ.
GREATER = """
(<= (greater ?b ?a)
    (card ?a)
    (succ ?a ?b)
    (card ?b))

(<= (greater ?c ?a)
    (greater ?b ?a)
    (succ ?b ?c)
    (card ?c))
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


def prizes(highest: int) -> str:
    """Returns rules of `(ahead ?p)` from `(won ?p ?k)` in the state, for prizes of 1..highest points.

    They count with `succ` and use `(card ?k)`. The lead is summed prize by prize, from the smallest on, so that the
    state has no score: two fluents per prize instead of one for every possible lead.
    """
    return f"""
; The lead of player 1, summed over the prizes 1 to ?k.

(lead 0 0)

(<= (lead ?k ?e)
    (succ ?j ?k)
    (lead ?j ?d)
    (true (won player1 ?k))
    (plus ?d ?k ?e))

(<= (lead ?k ?e)
    (succ ?j ?k)
    (lead ?j ?d)
    (true (won player2 ?k))
    (plus ?e ?k ?d))

(<= (lead ?k ?d)
    (succ ?j ?k)
    (lead ?j ?d)
    (card ?k)
    (not (claimed ?k)))

(<= (claimed ?k)
    (true (won ?p ?k)))

(<= (plus ?d 1 ?e)
    (succ ?d ?e))

(<= (plus ?d ?k ?f)
    (plus ?d ?j ?e)
    (succ ?j ?k)
    (card ?k)
    (succ ?e ?f))

(<= (ahead player1)
    (lead {highest} ?d)
    (positive ?d))

(<= (ahead player2)
    (lead {highest} ?d)
    (negative ?d))
"""
