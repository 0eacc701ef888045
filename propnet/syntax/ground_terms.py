"""Ground terms as plain Python values: a symbol is a str, a compound a tuple (functor, argument, ..)."""

import re
from collections.abc import Mapping
from typing import Union

from gdlx.propnet.syntax import diagnostics, infix, kif, parser, source, terms

GroundTerm = Union[str, tuple["GroundTerm", ...]]  # noqa: UP007 - a recursive alias needs the string form
Fact = tuple[GroundTerm, ...]

_INTEGER = re.compile("-?[0-9]+")
_MOST_DIGITS = 9  # propnets hold goals in 32 bits


def to_text(value: GroundTerm) -> str:
    """Returns the KIF text of a value.

    >>> to_text(("mark", "1", ("cell", "2")))
    '(mark 1 (cell 2))'
    """
    return value if isinstance(value, str) else f"({' '.join(map(to_text, value))})"


def atom_text(name: str, args: Fact) -> str:
    return to_text((name, *args)) if args else name


def is_huge(value: GroundTerm, max_depth: int, max_size: int) -> bool:
    """Whether a value is nested deeper than `max_depth` or has more than `max_size` symbols.

    Stops at the limits: a rule with (f ?x ?x) doubles a value at each step by sharing, so full traversal may not end.
    """
    level: list[GroundTerm] = [value]
    size = 1
    for _ in range(max_depth + 1):
        compounds = [outer for outer in level if not isinstance(outer, str)]
        if not compounds:
            return False
        size += sum(map(len, compounds))
        if size > max_size:
            return True
        level = [inner for outer in compounds for inner in outer[1:]]
    return True


def from_term(term: terms.Term, bindings: Mapping[str, GroundTerm] | None = None) -> GroundTerm:
    """Returns the value of a term whose variables are all bound."""
    if isinstance(term, terms.Symbol):
        return term.name
    if isinstance(term, terms.Variable):
        return (bindings or {})[term.name]
    return (term.functor, *(from_term(arg, bindings) for arg in term.args))


def from_text(typed: str, what: str = "term") -> tuple[GroundTerm, ...]:
    """Parses ground terms that a person typed, such as `(mark 1 1) noop`."""
    log = kif.DiagnosticLog()
    read = infix.read_nodes if infix.looks_infix(typed) else kif.read_nodes
    nodes = read(source.Source(what, typed), log)
    values = parser.RuleParser(log).parse_terms(nodes)
    errors = [d for d in log.entries if d.severity is diagnostics.Severity.ERROR]
    for value in values:
        errors += [
            diagnostics.Diagnostic(
                "variable-in-fact",
                f"variable {v} in {'an' if what[0] in 'aeiou' else 'a'} {what}",
                v.span,
                "name a value",
            )
            for v in terms.variables_in([value])
        ]
    if errors:
        raise diagnostics.GdlError(errors, what)
    return tuple(map(from_term, values))


def role_name(role: GroundTerm, sheet_name: str) -> str:
    """Returns the name of a role; raises GdlError if it is a compound term."""
    if isinstance(role, str):
        return role
    message = f"role {diagnostics.shorten(to_text(role))} is not a name"
    problem = diagnostics.Diagnostic("compound-role", message, None, "give every role a name of its own")
    raise diagnostics.GdlError([problem], sheet_name)


def goal_value(value: GroundTerm, sheet_name: str) -> int:
    """Returns a goal value as an integer; raises GdlError if it is not one."""
    # int() would also accept underscores, blanks and the digits of other scripts.
    is_integer = isinstance(value, str) and _INTEGER.fullmatch(value) is not None
    if isinstance(value, str) and is_integer and len(value.lstrip("-").lstrip("0")) <= _MOST_DIGITS:
        return int(value)
    shown = diagnostics.shorten(to_text(value))
    message = f"goal value {shown} {f'has more than {_MOST_DIGITS} digits' if is_integer else 'is not an integer'}"
    problem = diagnostics.Diagnostic("goal-not-integer", message, None, "goals are integers from 0 to 100")
    raise diagnostics.GdlError([problem], sheet_name)
