"""Rock-paper-scissors, played once, with the payoffs of several authors."""

import functools
from collections.abc import Mapping

from gdlx.propnet.library import game, kif, sources

_SIGNS = ("rock", "paper", "scissors")

# (sign, other sign) -> goal of the player that shows the first; the other player gets the rest of 100.
Payoffs = Mapping[tuple[str, str], int]


def _build(title: str, rules: str, source: str, payoffs: Payoffs) -> str:
    table = {(sign, sign): 50 for sign in _SIGNS}
    for (one, other), goal in payoffs.items():
        table |= {(one, other): goal, (other, one): 100 - goal}
    rows = ((first, other, table[first, other]) for first in _SIGNS for other in _SIGNS)
    return _sheet(title, rules, source, _SIGNS, kif.facts("payoff", rows))


def _sheet(title: str, rules: str, source: str, signs: tuple[str, ...], payoffs: str) -> str:
    return kif.sheet(
        kif.header(title, f"Both players show a sign at once, and the game is over. {rules}", source),
        kif.TWO_PLAYERS,
        kif.OPPONENTS,
        "(init choosing)",
        kif.values("sign", signs),
        f"; The goal of a player by its own sign and the opponent's.\n\n{payoffs.strip()}",
        _RULES,
    )


_RULES = """
(<= (legal ?p ?s)
    (role ?p)
    (sign ?s))

(<= (next (shown ?p ?s))
    (does ?p ?s))

(<= terminal
    (not (true choosing)))

(<= (goal ?p ?g)
    (opponent ?p ?q)
    (true (shown ?p ?a))
    (true (shown ?q ?b))
    (payoff ?a ?b ?g))
"""


def _build_circle(n: int) -> str:
    if n % 2 == 0:
        raise game.LibraryError(
            f"rps: n={n} is even, but every sign must beat as many others as beat it; use n={n + 1}."
        )
    signs = ("rock", "scissors", "paper") if n == 3 else tuple(str(i) for i in range(1, n + 1))
    beaten = ((signs[i], signs[(i + k) % n]) for i in range(n) for k in range(1, (n + 1) // 2))
    beaten_by_each = "the one" if n == 3 else f"the {(n - 1) // 2}"
    return _sheet(
        f"Rock-paper-scissors with {n} signs.",
        f"""The signs stand in a circle and each beats {beaten_by_each} after it; the winner gets 100, the
        loser 0, and equal signs give both 50.""",
        f"traditional; for more signs {sources.SCHLINDENBUCH}, section 3.2.5.",
        signs,
        f"{_WINNER_TAKES_ALL}\n{kif.facts('beats', beaten)}",
    )


_WINNER_TAKES_ALL = """
(<= (payoff ?a ?a 50)
    (sign ?a))

(<= (payoff ?a ?b 100)
    (beats ?a ?b))

(<= (payoff ?b ?a 0)
    (beats ?a ?b))
"""

_BIASED = functools.partial(
    _build,
    "Biased rock-paper-scissors.",
    """What a sign wins depends on the sign it beats, so that the only equilibrium is far from uniform: rock
    1/16, paper 10/16, scissors 5/16.""",
    f"Table 3.3 of {sources.SHAFIEI_KHADEM}.",
    {("rock", "paper"): 25, ("rock", "scissors"): 100, ("paper", "scissors"): 45},
)

_MODIFIED = functools.partial(
    _build,
    "Payoff-modified rock-paper-scissors.",
    """A win of paper over rock is worth half of the other wins; the only equilibrium is rock 2/5, paper
    2/5, scissors 1/5.""",
    f"Table 1 of {sources.WEST}.",
    {("rock", "paper"): 25, ("rock", "scissors"): 100, ("paper", "scissors"): 0},
)

_PLUS = functools.partial(
    _build,
    "Rock-paper-scissors plus (RPS+).",
    """The winner gets one chip from the loser, or two if either of them showed scissors; goals are 50 plus
    the chips won. The only equilibrium is rock 2/5, paper 2/5, scissors 1/5.""",
    "N. Brown, T. Sandholm and B. Amos, Depth-limited solving for imperfect-information games, 2018.",
    {("rock", "paper"): 49, ("rock", "scissors"): 52, ("paper", "scissors"): 48},
)

GAMES = (
    game.Game(
        name="rps",
        summary="rock-paper-scissors, or its generalisation to n signs in a circle",
        build=_build_circle,
        parameters={
            "n": game.Parameter(
                default=3,
                minimum=3,
                maximum=299,
                help="number of signs, odd; no limit in the rules, 299 signs already meet in 89 401 pairs",
            )
        },
    ),
    game.Game(name="biased_rps", summary="rock-paper-scissors whose wins have three values", build=_BIASED),
    game.Game(name="modified_rps", summary="rock-paper-scissors with a cheap win of paper", build=_MODIFIED),
    game.Game(name="rps_plus", summary="rock-paper-scissors in which scissors double the stake", build=_PLUS),
)
