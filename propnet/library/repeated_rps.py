"""Rock-paper-scissors for many rounds."""

from gdlx.propnet.library import game, kif, lead, sources


def _build(rounds: int) -> str:
    return kif.sheet(
        kif.header(
            f"Rock-paper-scissors, {rounds} rounds.",
            """In every round both players show a sign at once, and then know both signs. After the last
            round who won more rounds gets 100 and the other 0; as many won rounds give both 50. Uniform
            play in every round is an equilibrium.""",
            f"{sources.SHAFIEI_KHADEM}, section 5.2.1.",
        ),
        kif.TWO_PLAYERS,
        kif.OPPONENTS,
        _SIGNS,
        "(init (played 0))\n(init (lead 0))",
        lead.counting(rounds),
        _RULES,
        f"(<= terminal\n    (true (played {rounds})))",
        _AHEAD,
        lead.GOALS,
    )


_SIGNS = """
(beats rock scissors)
(beats scissors paper)
(beats paper rock)
"""

_RULES = """
; A round.

(<= (legal ?p ?s)
    (role ?p)
    (beats ?s ?t))

(<= (wins ?p)
    (opponent ?p ?q)
    (does ?p ?s)
    (does ?q ?t)
    (beats ?s ?t))

(<= tied
    (does player1 ?s)
    (does player2 ?s))

(<= (next (lead ?e))
    (true (lead ?d))
    (succ ?d ?e)
    (wins player1))

(<= (next (lead ?e))
    (true (lead ?d))
    (succ ?e ?d)
    (wins player2))

(<= (next (lead ?d))
    (true (lead ?d))
    tied)

(<= (next (played ?n))
    (true (played ?m))
    (succ ?m ?n))

; The end.
"""

_AHEAD = """
(<= (ahead player1)
    (true (lead ?d))
    (positive ?d))

(<= (ahead player2)
    (true (lead ?d))
    (negative ?d))
"""

GAME = game.Game(
    name="repeated_rps",
    summary="rock-paper-scissors for many rounds, more won rounds win",
    build=_build,
    parameters={
        "rounds": game.Parameter(
            default=9,
            minimum=1,
            maximum=10_000,
            help="rounds of a game; no limit in the rules, the sheet has two lines a round",
        )
    },
)
