"""Generates the rules of a game of hidden pieces on a board: many moves and percepts, as in stratego.

Each player places five pieces, whose kinds the other does not see, on two rows; then chance decides who moves first.
A piece moves to a neighbouring square and captures what stands there; a capture reveals what was captured. Who captures
the flag wins.
"""

import itertools
from collections.abc import Iterator

_KINDS = ("flag", "spy", "scout", "scout", "marshal")  # in the order of placing
_RULES = """
(role red) (role blue) (role random)
(player red) (player blue) (other red blue) (other blue red)
(mobile spy) (mobile scout) (mobile marshal)
(init (phase 1)) (init (step 1))
(<= (placing ?n) (true (phase ?n)) (distinct ?n play))
(<= (occupied ?x ?y) (true (cell ?x ?y ?p ?k)))
(<= (holds ?x ?y ?p) (true (cell ?x ?y ?p ?k)))
(<= (legal ?p (place ?x ?y)) (player ?p) (placing ?n) (home ?p ?x) (column ?y) (not (occupied ?x ?y)))
(<= (legal ?p (move ?x ?y ?u ?v))
    (true (turn ?p)) (true (cell ?x ?y ?p ?k)) (mobile ?k) (adjacent ?x ?y ?u ?v) (not (holds ?u ?v ?p)))
(<= (legal ?p noop) (player ?p) (true (phase play)))
(<= (legal random noop) (not (true (phase 5))))
(<= (legal random (first ?p)) (true (phase 5)) (player ?p))
(<= (next (phase ?m)) (true (phase ?n)) (next_phase ?n ?m))
(<= (next (phase play)) (true (phase play)))
(<= (next (turn ?p)) (does random (first ?p)))
(<= (next (turn ?q)) (true (turn ?p)) (other ?p ?q))
(<= (left ?x ?y) (does ?p (move ?x ?y ?u ?v)))
(<= (entered ?x ?y) (does ?p (move ?u ?v ?x ?y)))
(<= (next (cell ?x ?y ?p ?k)) (does ?p (place ?x ?y)) (true (phase ?n)) (placed ?n ?k))
(<= (next (cell ?x ?y ?p ?k)) (true (cell ?x ?y ?p ?k)) (not (left ?x ?y)) (not (entered ?x ?y)))
(<= (next (cell ?u ?v ?p ?k)) (does ?p (move ?x ?y ?u ?v)) (true (cell ?x ?y ?p ?k)))
(<= (next (known ?x ?y)) (true (known ?x ?y)) (not (left ?x ?y)))
(<= (next (known ?u ?v)) (does ?p (move ?x ?y ?u ?v)) (occupied ?u ?v))
(<= (next (known ?u ?v)) (does ?p (move ?x ?y ?u ?v)) (true (known ?x ?y)))
(<= (next (captured ?p)) (true (cell ?x ?y ?p flag)) (entered ?x ?y))
(<= (next (step ?m)) (true (step ?n)) (after ?n ?m))
(<= (sees ?p (own ?x ?y ?k)) (true (cell ?x ?y ?p ?k)))
(<= (sees ?p (hidden ?x ?y)) (true (cell ?x ?y ?q ?k)) (other ?p ?q) (not (true (known ?x ?y))))
(<= (sees ?p (theirs ?x ?y ?k)) (true (cell ?x ?y ?q ?k)) (other ?p ?q) (true (known ?x ?y)))
(<= (sees ?p (empty ?x ?y)) (player ?p) (row ?x) (column ?y) (not (occupied ?x ?y)))
(<= (sees ?p (turn ?q)) (player ?p) (true (turn ?q)))
(<= (sees ?p (first ?q)) (player ?p) (does random (first ?q)))
(<= any_captured (true (captured ?p)))
(<= terminal any_captured)
(<= terminal (true (step last)))
(<= (goal ?p 100) (true (captured ?q)) (other ?p ?q))
(<= (goal ?p 0) (true (captured ?p)))
(<= (goal ?p 50) (player ?p) (not any_captured))
"""


def rules(rows: int = 6, columns: int = 7, steps: int = 60) -> str:
    """The rulesheet for a board of at least four rows; with the default size, about as large as stratego.

    >>> from gdlx.propnet import games
    >>> games.compile_game(rules=rules(rows=4, columns=2, steps=8)).players[0].name
    'red'
    """
    return _RULES + "\n".join(_facts(rows, columns, steps)) + "\n"


def _facts(rows: int, columns: int, steps: int) -> Iterator[str]:
    squares = [(x, y) for x in range(1, rows + 1) for y in range(1, columns + 1)]
    yield from (f"(row {x})" for x in range(1, rows + 1))
    yield from (f"(column {y})" for y in range(1, columns + 1))
    yield from (f"(home {player} {x})" for player, x in (("red", 1), ("red", 2), ("blue", rows - 1), ("blue", rows)))
    yield from (f"(adjacent {x} {y} {u} {v})" for x, y in squares for u, v in squares if abs(x - u) + abs(y - v) == 1)
    phases = [*map(str, range(1, len(_KINDS) + 1)), "play"]
    yield from (f"(placed {phase} {kind})" for phase, kind in zip(phases[:-1], _KINDS, strict=True))
    yield from (f"(next_phase {now} {then})" for now, then in itertools.pairwise(phases))
    numbers = [*map(str, range(1, steps)), "last"]
    yield from (f"(after {now} {then})" for now, then in itertools.pairwise(numbers))
