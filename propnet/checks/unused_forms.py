"""Malformed rules and facts that nothing uses do not make a game unusable: their errors become warnings."""

import dataclasses
from collections.abc import Iterable

from gdlx.propnet.checks import overview
from gdlx.propnet.common import graphs
from gdlx.propnet.syntax import diagnostics


def demote(facts: overview.SheetAnalysis, problems: Iterable[diagnostics.Diagnostic]) -> list[diagnostics.Diagnostic]:
    """Returns the diagnostics of a text, with warnings for the errors in forms that the game does not depend on."""
    problems = list(problems)
    if not facts.sheet.unparsed:
        return problems
    used = _used_names(facts)
    harmless = {
        id(problem)
        for form in facts.sheet.unparsed
        if form.head is not None and form.head not in used
        for problem in form.problems
        if problem.severity is diagnostics.Severity.ERROR
    }
    return [_as_warning(problem) if id(problem) in harmless else problem for problem in problems]


def _used_names(facts: overview.SheetAnalysis) -> set[str]:
    """Names that the game may depend on: all in malformed forms count, since what they mean is not known."""
    edges: dict[str, set[str]] = {}
    for (name, _), body in facts.edges.items():
        edges.setdefault(name, set()).update(used for used, _ in body)
    start = set(overview.ROOT_NAMES)
    for form in facts.sheet.unparsed:
        if form.head is None:
            start |= form.names
        else:
            edges.setdefault(form.head, set()).update(form.names)
    return graphs.reachable(edges, start)


def _as_warning(problem: diagnostics.Diagnostic) -> diagnostics.Diagnostic:
    hint = f"nothing uses this rule, which is left out; remove it, or correct it: {problem.hint}"
    return dataclasses.replace(problem, code="malformed-unused-rule", hint=hint)
