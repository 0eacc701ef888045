"""Everything that is wrong with a rulesheet, all at once."""

import dataclasses

from gdlx.propnet.checks import growth, overview, structure, variables, vocabulary
from gdlx.propnet.syntax import diagnostics, kif, rulesheet, source

Diagnostic = diagnostics.Diagnostic  # a field of Report hides the module

_CHECKS = (variables.check, vocabulary.check, structure.check, growth.check)


@dataclasses.dataclass(frozen=True)
class CheckReport:
    """A sheet and its diagnostics in file order, those without a place last."""

    sheet: rulesheet.Rulesheet
    diagnostics: tuple[Diagnostic, ...]

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        return tuple(d for d in self.diagnostics if d.severity is diagnostics.Severity.ERROR)

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        return tuple(d for d in self.diagnostics if d.severity is diagnostics.Severity.WARNING)

    def require_usable(self) -> rulesheet.Rulesheet:
        """The sheet, or a GdlError with all its errors."""
        if self.errors:
            raise diagnostics.GdlError(self.errors, self.sheet.name)
        return self.sheet


def check(text: source.Source, *, fold_case: bool = False, gdl: int | None = None) -> CheckReport:
    """Read a sheet and check it.

    >>> report = check(source.Source("a.gdl", "(role x) (legal x ?m) (goal x 100)"))
    >>> [problem.code for problem in report.errors]
    ['variable-in-fact', 'missing-terminal']
    """
    sheet, found = rulesheet.parse_rulesheet(text, fold_case=fold_case, gdl=gdl)
    log = kif.DiagnosticLog(found)
    facts = overview.SheetAnalysis(sheet)
    try:
        for run in _CHECKS:
            run(facts, log)
    except diagnostics.GdlError as error:  # a rule that even the checks cannot work with
        log.entries += error.diagnostics
    placed = sorted((d for d in log.entries if d.span is not None), key=lambda d: d.span.start if d.span else 0)
    return CheckReport(sheet, (*placed, *(d for d in log.entries if d.span is None)))
