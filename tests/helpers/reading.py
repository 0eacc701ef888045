"""Parses texts in tests, and has a rulesheet that several of them use."""

from gdlx.propnet.syntax import diagnostics, rulesheet, source

NOWHERE = source.Span(source.Source("nowhere", ""), 0, 0)
SHEET = """\
; A coin is tossed, and somebody guesses.
(role guesser) (role random)
(init (coin unknown))

(<= (legal random (toss ?side))
    (side ?side)
    (true (coin unknown)))
(<= (legal guesser (guess ?side)) (side ?side) (true (coin unknown)))
(side heads)
(side tails)
(<= (next (coin ?side)) (does random (toss ?side)))
(<= (next won) (does random (toss ?side)) (does guesser (guess ?side)))
(<= (sees guesser (landed ?side))
    (does random (toss ?side)))
(<= terminal
    (or (true (coin heads)) (true (coin tails))))
(<= (goal guesser 100) (true won))
(<= (goal guesser 0) (not (true won)))
"""
CORPUS_NAMES = [
    *("connectFour.kif", "simpleMutex.kif", "ticTacToe.kif", "montyhall.gdl", "meier.gdl", "transit.gdl"),
    *("blindtictactoe.gdl", "kriegTTT_5x5.gdl", "scissor_paper_rock.gdl", "guessSix.gdl", "mastermind.kif"),
    *("blind_breakthrough_5x5.gdl", "Qyshinsu_dresden.gdl", "switches.kif", "queens06ug.kif"),
    *("wargame01.kif", "amazons_8x8.kif", "reversi.kif", "ENDGAME_S.3357418313.kif"),
    *("test_case_3a.kif", "test_case_5b.kif", "test_clean_not_distinct.kif"),
]


def read(text: str | bytes, *, fold_case: bool = False, gdl: int | None = None) -> rulesheet.Rulesheet:
    """Parses a sheet, and asserts that it has no errors."""
    sheet, problems = read_all(text, fold_case=fold_case, gdl=gdl)
    errors = [problem for problem in problems if problem.severity is diagnostics.Severity.ERROR]
    assert errors == []
    return sheet


def read_all(
    text: str | bytes, *, fold_case: bool = False, gdl: int | None = None
) -> tuple[rulesheet.Rulesheet, list[diagnostics.Diagnostic]]:
    plain = source.Source("sheet", text) if isinstance(text, str) else source.Source.from_bytes("sheet", text)
    return rulesheet.parse_rulesheet(plain, fold_case=fold_case, gdl=gdl)


def codes(text: str | bytes) -> list[str]:
    return [problem.code for problem in read_all(text)[1]]


def printed(text: str | bytes) -> list[str]:
    return [" ".join(str(rule).split()) for rule in read(text).rules]
