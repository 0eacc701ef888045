"""Smallest, the game of the smallest unique number."""

from gdlx.propnet.library import binary, game, kif, sources

_POINTS = 10


def _build(players: int, numbers: int, target: int, steps: int) -> str:
    most = target // _POINTS
    return kif.sheet(
        kif.header(
            f"Smallest, {players} players, numbers 1 to {numbers}.",
            f"""In every round all players announce a number at once. Who announces the smallest number that
            nobody else announces scores {_POINTS} points; it may be nobody. The game ends when a player has
            {target} points, or after {steps} rounds, and the goal of a player is its points.""",
            f"the competition of general game playing 2009, in {sources.SHAFIEI_KHADEM}, section 5.3.1.",
        ),
        kif.values("role", (f"player{i}" for i in range(1, players + 1))),
        kif.values("number", range(1, numbers + 1)),
        kif.successors(1, numbers),
        _RULES,
        binary.counter("wins", most, "(scores ?p)", of="?p"),
        binary.counter("rounds", steps),
        "; The end.",
        f"(<= terminal\n    (role ?p)\n    {binary.reached('wins', most, of='?p')})",
        f"(<= terminal\n    {binary.reached('rounds', steps)})",
        *(
            f"(<= (goal ?p {n * _POINTS})\n    (role ?p)\n    {binary.equals('wins', n, most, of='?p')})"
            for n in range(most + 1)
        ),
    )


_RULES = """
; A round.

(<= (legal ?p (say ?n))
    (role ?p)
    (number ?n))

(<= (shared ?n)
    (does ?p (say ?n))
    (does ?q (say ?n))
    (distinct ?p ?q))

(<= (unique ?n)
    (does ?p (say ?n))
    (not (shared ?n)))

(<= (unique_below ?n)
    (succ ?m ?n)
    (unique ?m))

(<= (unique_below ?n)
    (succ ?m ?n)
    (number ?n)
    (unique_below ?m))

(<= (scores ?p)
    (does ?p (say ?n))
    (unique ?n)
    (not (unique_below ?n)))
"""

GAME = game.Game(
    name="smallest",
    summary="announce the smallest number that nobody else does",
    build=_build,
    parameters={
        "players": game.Parameter(default=3, minimum=2, maximum=1000, help="number of players; no limit in the rules"),
        "numbers": game.Parameter(
            default=10, minimum=2, maximum=1000, help="numbers to choose from; no limit in the rules"
        ),
        "target": game.Parameter(
            default=100,
            choices=tuple(range(_POINTS, 101, _POINTS)),
            help="points that end the game; 10 for a round, and a goal is at most 100",
        ),
        "steps": game.Parameter(
            default=25, minimum=1, maximum=10_000, help="rounds that end the game; no limit in the rules"
        ),
    },
)
