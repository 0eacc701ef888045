"""Parts of the rulesheets of Leduc poker, from which leduc_poker.py builds a sheet."""

DEAL = """
; The deal: a card for each player, and after the first round one for the board.

(<= (legal ?p noop)
    (true (dealing ?w))
    (opponent ?p ?q))

(<= (next (dealing player2))
    (true (dealing player1)))

(<= (next (dealing board))
    (true (round 1))
    closes)

(<= (next (round 1))
    (true (dealing player2)))

(<= (next (round 2))
    (true (dealing board)))

(<= (next (turn player1))
    (true (dealing player2)))

(<= (next (turn player1))
    (true (dealing board)))

(<= (next (raises 0))
    (true (dealing player2)))

(<= (next (raises 0))
    (true (dealing board)))
"""

SEEN_DEAL = """
(suit hearts)
(suit spades)

(<= (legal random (deal ?r ?s))
    (true (dealing ?w))
    (rank ?r)
    (suit ?s)
    (not (dealt ?r ?s)))

(<= (dealt ?r ?s)
    (true (card ?w ?r ?s)))

(<= (next (card ?w ?r ?s))
    (true (dealing ?w))
    (does random (deal ?r ?s)))

(<= (next (card ?w ?r ?s))
    (true (card ?w ?r ?s)))

(<= (sees ?p (private ?r ?s))
    (true (dealing ?p))
    (opponent ?p ?q)
    (does random (deal ?r ?s)))

(<= (sees ?p (public ?r ?s))
    (true (dealing board))
    (opponent ?p ?q)
    (does random (deal ?r ?s)))

(<= (holds ?w ?r)
    (true (card ?w ?r ?s)))
"""

# The state has ranks only. The two cards of a rank are two moves as long as both are in the deck.
HIDDEN_DEAL = """
(<= (legal random (deal ?r first))
    (true (dealing ?w))
    (rank ?r)
    (not (used_up ?r)))

(<= (legal random (deal ?r second))
    (true (dealing ?w))
    (rank ?r)
    (not (dealt ?r)))

(<= (dealt ?r)
    (holds ?w ?r))

(<= (used_up ?r)
    (holds player1 ?r)
    (holds player2 ?r))

(<= (next (card ?w ?r))
    (true (dealing ?w))
    (does random (deal ?r ?copy)))

(<= (next (card ?w ?r))
    (true (card ?w ?r)))

(<= (sees ?p (private ?r))
    (true (dealing ?p))
    (opponent ?p ?q)
    (does random (deal ?r ?copy)))

(<= (sees ?p (public ?r))
    (true (dealing board))
    (opponent ?p ?q)
    (does random (deal ?r ?copy)))

(<= (holds ?w ?r)
    (true (card ?w ?r)))
"""

CHIPS = """
(<= has_chips
    (not (true facing))
    (true (round ?r))
    (true (stake ?n))
    (lifts ?r ?n ?m))

(<= has_chips
    (true (round ?r))
    (true (stake ?n))
    (lifts ?r ?n ?m)
    (lifts ?r ?m ?k))
"""

BETTING = """
(<= (legal ?p noop)
    (true (turn ?q))
    (role ?p)
    (distinct ?p ?q))

(<= (sees ?q (opponent_did ?m))
    (true (turn ?p))
    (does ?p ?m)
    (opponent ?p ?q))

(<= called
    (does ?p call))

(<= raised
    (does ?p raise))

(<= closes
    called
    (true facing))

(<= closes
    called
    (true passed))

(<= pays
    (true facing)
    called)

(<= pays
    (true facing)
    raised)

(<= goes_on
    raised)

(<= goes_on
    called
    (not closes))

(<= (next facing)
    raised)

(<= (next passed)
    called
    (not closes))

(<= (next (turn ?q))
    (true (turn ?p))
    (opponent ?p ?q)
    goes_on)

(<= (next (round ?r))
    (true (round ?r))
    goes_on)

(<= (next (raises ?k))
    (true (raises ?j))
    (succ ?j ?k)
    raised)

(<= (next (raises ?k))
    (true (raises ?k))
    called)

(<= (next (stake ?m))
    (true (stake ?n))
    (true (round ?r))
    (lifts ?r ?n ?m)
    pays)

(<= (next (stake ?n))
    (true (stake ?n))
    (not pays))

(<= (next (folded ?p))
    (does ?p fold))

(<= (next showdown)
    (true (round 2))
    closes)
"""

END = """
; The end.

(<= terminal
    (true (folded ?p)))

(<= terminal
    (true showdown))

(<= (pair ?p)
    (holds board ?r)
    (holds ?p ?r)
    (opponent ?p ?q))

(<= paired
    (pair ?p))

(<= (higher ?a ?b)
    (succ ?b ?a)
    (rank ?b)
    (rank ?a))

(<= (higher ?a ?c)
    (higher ?a ?b)
    (succ ?c ?b)
    (rank ?c))

(<= (wins ?p)
    (true (folded ?q))
    (opponent ?p ?q))

(<= (wins ?p)
    (true showdown)
    (pair ?p))

(<= (wins ?p)
    (true showdown)
    (not paired)
    (better ?p))

(<= (better ?p)
    (opponent ?p ?q)
    (holds ?p ?a)
    (holds ?q ?b)
    (higher ?a ?b))

(<= decided
    (wins ?p))

(<= (goal ?p ?g)
    (wins ?p)
    (true (stake ?n))
    (payoff ?n ?g ?l))

(<= (goal ?p ?l)
    (wins ?q)
    (opponent ?p ?q)
    (true (stake ?n))
    (payoff ?n ?g ?l))

(<= (goal ?p 50)
    (opponent ?p ?q)
    (not decided))
"""
