"""Leduc poker, with any number of ranks and raises, limited stacks, and folds at any time."""

import itertools

from gdlx.propnet.library import game, kif, leduc_rules, sources

_ANTE = 1
_RAISE = {1: 2, 2: 4}  # chips by round
_MOST_CHIPS = 50  # goals are 50 plus or minus chips and must be within 0..100

_SUITS = {
    "seen": "Players see the suits of cards, although they never matter.",
    "hidden": "Players see only ranks.",
}
_FOLD = {
    "facing": "The player to act calls or raises, and may also fold if it faces a raise.",
    "any": "The player to act calls, raises or folds.",
}


def _build(ranks: int, raises: int, stacks: int | str, fold: str, suits: str) -> str:
    unlimited = _ANTE + raises * sum(_RAISE.values())
    stack = unlimited if stacks == "inf" else min(int(stacks), unlimited)
    if stack > _MOST_CHIPS:
        most = (_MOST_CHIPS - _ANTE) // sum(_RAISE.values())
        raise game.LibraryError(
            f"leduc_poker: with raises={raises} a player can lose {stack} chips, but goals of 50 plus or "
            f"minus chips allow only {_MOST_CHIPS}; use raises={most} or less, or stacks={_MOST_CHIPS}."
        )
    # Raises beyond what the stacks allow would only add unreachable state.
    counted = min(raises, -(-(stack - _ANTE) // _RAISE[1]))
    steps = _steps(counted, stack)
    limit = "" if stack == unlimited else f"No player puts in more than {stack} chips. "
    return kif.sheet(
        kif.header(
            f"Leduc poker with {ranks} ranks in two suits and {raises} raises a round.",
            f"""Both players ante one chip and get a private card. In a first round of betting a raise costs
            two chips; then a public card is turned up, and in a second round a raise costs four.
            {_FOLD[fold]} A call matches the opponent's chips, and with nothing to match passes. {limit}At
            the showdown a pair with the public card wins, else the higher rank; equal ranks are a draw.
            {_SUITS[suits]} Goals are 50 plus the chips won.""",
            f"""F. Southey and others, Bayes' bluff: opponent modelling in poker, 2005; the options are those
            of {sources.SCHLINDENBUCH}, section 3.2.1.""",
        ),
        kif.TWO_PLAYERS + "(role random)",
        kif.OPPONENTS,
        f"(init (dealing player1))\n(init (stake {_ANTE}))",
        kif.values("rank", range(1, ranks + 1)),
        kif.successors(0, max(ranks, counted)),
        f"; A raise in round ?r lifts a stake of ?n chips to ?m.\n\n{kif.facts('lifts', steps)}",
        leduc_rules.DEAL,
        leduc_rules.SEEN_DEAL if suits == "seen" else leduc_rules.HIDDEN_DEAL,
        _betting(counted, stack < unlimited, fold),
        leduc_rules.END,
        kif.facts("payoff", ((n, 50 + n, 50 - n) for n in _stakes(steps))),
    )


def _steps(raises: int, stack: int) -> list[tuple[int, int, int]]:
    """Returns every (round, stake, stake after a raise) that can occur; the stack caps the last raise."""
    steps: set[tuple[int, int, int]] = set()
    stakes = {_ANTE}
    for round_, size in _RAISE.items():
        for stake in tuple(stakes):
            ladder = sorted({min(stake + k * size, stack) for k in range(raises + 1)})
            steps.update((round_, n, m) for n, m in itertools.pairwise(ladder))
            stakes.update(ladder)
    return sorted(steps)


def _stakes(steps: list[tuple[int, int, int]]) -> list[int]:
    return sorted({_ANTE} | {m for _, _, m in steps})


def _betting(raises: int, limited: bool, fold: str) -> str:
    facing = "\n    (true facing)" if fold == "facing" else ""
    if limited:
        chips, has_chips = leduc_rules.CHIPS.strip() + "\n\n", "\n    has_chips"
    else:
        chips, has_chips = "", ""
    return f"""
; The betting. The stake is what the player to act has put in; one who faces a raise is a raise behind.

(<= (legal ?p call)
    (true (turn ?p)))

(<= (legal ?p fold)
    (true (turn ?p)){facing})

(<= (legal ?p raise)
    (true (turn ?p))
    (not (true (raises {raises}))){has_chips})

{chips}{leduc_rules.BETTING.strip()}
"""


GAME = game.Game(
    name="leduc_poker",
    summary="poker with two rounds of betting and one public card",
    build=_build,
    parameters={
        "ranks": game.Parameter(
            default=3,
            minimum=2,
            maximum=1000,
            help="ranks of each of the two suits; no limit in the rules, 1000 only keeps the deck printable",
        ),
        "raises": game.Parameter(
            default=2,
            minimum=1,
            maximum=1000,
            help="raises allowed in a round; above 8 only with stacks, for goals must stay within 0..100",
        ),
        "stacks": game.Parameter(
            default="inf",
            choices=("inf", *range(2, _MOST_CHIPS + 1)),
            help="chips of each player, the ante included; at most 50, for goals are 50 plus or minus chips",
        ),
        "fold": game.Parameter(
            default="facing", choices=("facing", "any"), help="fold only when facing a raise, or at any time"
        ),
        "suits": game.Parameter(
            default="seen", choices=("seen", "hidden"), help="whether players see the suits of cards"
        ),
    },
)
