"""Runs all checks of a rulesheet and collects their diagnostics."""

import dataclasses

from gdlx.propnet.checks import growth, overview, structure, unused_forms, variables, vocabulary
from gdlx.propnet.common.text import plurals
from gdlx.propnet.syntax import diagnostics, kif, rulesheet, source

Diagnostic = diagnostics.Diagnostic  # a field of CheckReport hides the module

_CHECKS = (variables.check, vocabulary.check, structure.check, growth.check)


@dataclasses.dataclass(frozen=True)
class CheckReport:
    """A rulesheet and its diagnostics in file order; those without a position come last.

    >>> from gdlx.propnet import games
    >>> report = games.check_game("rps")
    >>> report, report.errors
    (CheckReport(rps: 0 errors, 0 warnings), ())
    """

    sheet: rulesheet.Rulesheet
    diagnostics: tuple[Diagnostic, ...]

    def __repr__(self) -> str:
        counts = ((len(self.errors), "error"), (len(self.warnings), "warning"))
        shown = ", ".join(plurals.count(count, noun) for count, noun in counts)
        return f"CheckReport({diagnostics.shorten(self.sheet.name)}: {shown})"

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        return tuple(d for d in self.diagnostics if d.severity is diagnostics.Severity.ERROR)

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        return tuple(d for d in self.diagnostics if d.severity is diagnostics.Severity.WARNING)

    def require_usable(self) -> rulesheet.Rulesheet:
        """Returns the sheet, or raises a GdlError with all its errors."""
        if self.errors:
            raise diagnostics.GdlError(self.errors, self.sheet.name)
        return self.sheet


def check(text: source.Source, *, fold_case: bool = False, gdl: int | None = None) -> CheckReport:
    """Parses a sheet and checks it.

    >>> report = check(source.Source("a.gdl", "(role x) (legal x ?m) (goal x 100)"))
    >>> [problem.code for problem in report.errors]
    ['variable-in-fact']
    """
    sheet, syntax_diagnostics = rulesheet.parse_rulesheet(text, fold_case=fold_case, gdl=gdl)
    facts = overview.SheetAnalysis(sheet)
    log = kif.DiagnosticLog(unused_forms.demote(facts, syntax_diagnostics))
    try:
        for run in _CHECKS:
            run(facts, log)
    except diagnostics.GdlError as error:  # a rule that the checks cannot process
        log.entries += error.diagnostics
    placed = sorted((d for d in log.entries if d.span is not None), key=lambda d: d.span.start if d.span else 0)
    return CheckReport(sheet, (*placed, *(d for d in log.entries if d.span is None)))
