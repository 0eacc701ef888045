"""Rock-paper-scissors for many rounds."""

from gdlx.propnet.library import binary, game, kif, lead, sources


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
        _RULES,
        binary.counter("rounds", rounds),
        f"(<= terminal\n    {binary.reached('rounds', rounds)})",
        "(one 1)",
        lead.account(rounds, "(one ?i)", "wins"),
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
            help="rounds of a game; no limit in the rules",
        )
    },
)
