"""Diagnostics of rulesheets: one stable code per cause, each with its severity.

docs/reference/diagnostics.md explains every code with an example and its fix.
"""

import dataclasses
import enum
from collections.abc import Iterable

from gdlx.propnet.common import errors
from gdlx.propnet.common.text import printable
from gdlx.propnet.syntax import source

_MAX_RENDERED = 50  # diagnostics in the text of one error


class Severity(enum.StrEnum):
    ERROR = "error"
    WARNING = "warning"


_ERRORS = (
    # the text
    "too-large",
    "bad-character",
    "symbol-too-long",
    "nesting-too-deep",
    "unclosed-parenthesis",
    "unmatched-parenthesis",
    "syntax",
    # the shape of a rule
    "empty-form",
    "bad-functor",
    "bad-head",
    "misplaced-connective",
    "keyword-arity",
    "variable-in-fact",
    "unsafe-variable",
    # the game as a whole
    "missing-role",
    "missing-legal",
    "missing-goal",
    "compound-role",
    "static-depends-on-state",
    "depends-on-does",
    "negative-cycle",
    "unbounded-term",
    # while evaluating
    "evaluation-limit",
    "grounding-limit",
    "goal-not-integer",
    "illegal-move",
    # seen in play
    "unplayable-state",
)
_WARNINGS = (
    "bad-encoding",
    "start-message",
    "needless-parentheses",
    "empty-body",
    "not-distinct",
    "double-negation",
    "keyword-as-function",
    "old-style-declaration",
    "keyword-in-body",
    "constant-distinct",
    "unbound-role",
    "negated-variable",
    "unsafe-unused-rule",
    "malformed-unused-rule",
    "missing-terminal",
    "no-percepts",
    "two-arities",
    "case-variants",
    "undefined-relation",
    "undefined-fluent",
    "undefined-move",
    "unused-relation",
    "unknown-role",
    "role-without-legal",
    "role-without-goal",
    "goal-value",
    "ground-stratified",
    "recursion-restriction",
    "growing-term",
    "undecided",
    # seen in play
    "two-goal-values",
    "no-goal-value",
    "endless-play",
    "repeated-state",
    "chance-may-idle",
    "chance-is-seen",
    "never-wins",
    "hidden-legal-moves",
)
SEVERITY: dict[str, Severity] = {
    **dict.fromkeys(_ERRORS, Severity.ERROR),
    **dict.fromkeys(_WARNINGS, Severity.WARNING),
}


@dataclasses.dataclass(frozen=True)
class Diagnostic:
    """One problem in a rulesheet: what it is, where it is, and how to fix it.

    `code` is stable, and `message` and `hint` are for people. `span` is None for a problem without a position, such as
    a missing rule.

    >>> Diagnostic("missing-role", "the sheet has no `role` rule", None).severity.value
    'error'
    """

    code: str
    message: str
    span: source.Span | None
    hint: str = ""

    def __post_init__(self) -> None:
        if self.code not in SEVERITY:
            raise ValueError(f"unknown diagnostic code {self.code!r}")

    @property
    def severity(self) -> Severity:
        return SEVERITY[self.code]

    def render(self, name: str = "") -> str:
        """Formats the diagnostic for people; `name` replaces the position of a diagnostic that has none."""
        if self.span is None:
            place, excerpt = name, []
        else:
            line, column = self.span.source.position(self.span.start)
            place, excerpt = f"{self.span.source.name}:{line}:{column}", [self.span.excerpt()]
        first = f"{printable.printable(place)}: {self.severity}: {self.message} [{self.code}]"
        return "\n".join([first, *excerpt, *([f"hint: {self.hint}"] if self.hint else [])])

    def as_json(self) -> dict[str, object]:
        line, column = (None, None) if self.span is None else self.span.source.position(self.span.start)
        return {"code": self.code, "message": self.message, "line": line, "column": column, "hint": self.hint}


class GdlError(errors.UserError):
    """Raised for a rulesheet that cannot be used.

    `name` is the name of the sheet and `diagnostics` has all its errors; the text of the exception shows at most 50.

    >>> problem = Diagnostic("missing-role", "the sheet has no `role` rule", None)
    >>> print(GdlError([problem], "empty.gdl"))
    empty.gdl: error: the sheet has no `role` rule [missing-role]
    """

    def __init__(self, diagnostics: Iterable[Diagnostic], name: str = "rulesheet") -> None:
        self.diagnostics = tuple(diagnostics)
        self.name = name
        rendered = [problem.render(name) for problem in self.diagnostics[:_MAX_RENDERED]]
        more = len(self.diagnostics) - len(rendered)
        super().__init__("\n".join([*rendered, *([f"and {more} more"] if more else [])]))


def shorten(text: object, width: int = 60) -> str:
    """Shortens text of a sheet for use in a message: hostile symbols may be a megabyte long."""
    plain = printable.printable(str(text))
    return plain if len(plain) <= width else plain[: width - 1] + "\N{HORIZONTAL ELLIPSIS}"
